//go:build !js

package fault

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host/native"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// token is what the Worker asks for; the binary on its loopback asks for none.
const token = "fault"

// workerKind is the built Worker in workerd: a database an object, a bucket behind the launcher. The
// launcher leads a group of processes; to kill the group is a power cut.
type workerKind struct{ folder string }

var _ kind = workerKind{}

// module builds the Worker once, unless TIDEMARK_WORKER names a folder, and finds what runs it.
var module = sync.OnceValues(func() (string, error) {
	if _, err := os.Stat("../../build/node_modules/miniflare"); err != nil {
		return "", errors.New("build/node_modules is missing: run `make build/node_modules/.package-lock.json`")
	}
	if given := os.Getenv("TIDEMARK_WORKER"); given != "" {
		return filepath.Abs(given)
	}
	out := filepath.Join(scratch, "worker")
	build := exec.Command("go", "run", "./build", "-out", out)
	build.Dir = "../.."
	if said, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the Worker: %w\n%s", err, said)
	}
	return out, nil
})

// newWorker is a fixture whose server is the Worker.
func newWorker(t *testing.T, url string, settings map[string]any) *fixture {
	t.Helper()
	folder, err := module()
	if err != nil {
		t.Fatal(err)
	}
	f := newFixture(t, url, settings)
	f.kind = workerKind{folder: folder}
	return f
}

func (k workerKind) command(f *fixture) *exec.Cmd {
	args := []string{"../serve.mjs", "--folder", k.folder, "--disk", f.home,
		"--var", "TIDEMARK_TOKEN=" + token, "--var", "ANTHROPIC_API_KEY=fake-key"}
	for section, v := range f.document {
		keys, ok := v.(map[string]any)
		for key, value := range keys {
			if _, list := value.([]any); ok && !list {
				args = append(args, "--var", fmt.Sprintf("TIDEMARK_%s_%s=%v", strings.ToUpper(section), strings.ToUpper(key), value))
			}
		}
	}
	c := exec.Command("node", append(args, f.args...)...)
	if f.trigger != nil {
		c.Args = append(c.Args, "--stdin")
		c.Stdin = f.trigger
	}
	c.Env = append(os.Environ(), f.env...)
	return c
}

func (workerKind) serves(line string) (url, control string) {
	var at struct{ URL, Control string }
	if json.Unmarshal([]byte(line), &at) != nil {
		return "", ""
	}
	return at.URL, at.Control
}

func (workerKind) tally() *tally { return &workerTally }

func (workerKind) databases(home string) ([]string, error) {
	paths, err := filepath.Glob(filepath.Join(home, "objects", "*", "*.sqlite"))
	return slices.DeleteFunc(paths, func(p string) bool { return filepath.Base(p) == alarms }), err
}

// alarms is the file beside the objects of a class in which workerd notes when to wake which.
const alarms = "metadata.sqlite"

// keep copies the bucket into the folder that the binary would have.
func (workerKind) keep(f *fixture, s *server) error {
	dir, err := native.NewDir(f.bucket())
	if err != nil {
		return err
	}
	defer dir.Close()
	ctx := f.t.Context()
	raw, _, err := s.ask(ctx, http.MethodGet, "/r2?prefix=")
	if err != nil {
		return err
	}
	var keys []string
	if err := json.Unmarshal(raw, &keys); err != nil {
		return err
	}
	for _, key := range keys {
		body, head, err := s.ask(ctx, http.MethodGet, "/r2/"+strings.ReplaceAll(url.PathEscape(key), "%2F", "/"))
		if err != nil {
			return err
		}
		opt := tidemark.PutOptions{ContentType: head.Get("Content-Type")}
		meta, err := url.PathUnescape(head.Get("x-metadata"))
		if err == nil {
			err = json.Unmarshal([]byte(meta), &opt.Metadata)
		}
		if err == nil {
			_, err = dir.Put(ctx, key, bytes.NewReader(body), int64(len(body)), opt)
		}
		if err != nil {
			return fmt.Errorf("keep %s: %w", key, err)
		}
	}
	return nil
}

// launchReady starts a launcher that has all in memory and waits for begin: a kill is then followed by
// the start of workerd alone.
func (f *fixture) launchReady() *server {
	f.t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		f.t.Fatal(err)
	}
	f.trigger = r
	s := f.launch()
	f.trigger = nil
	s.trigger = w
	if err := r.Close(); err != nil {
		f.t.Error(err)
	}
	f.t.Cleanup(func() { _ = w.Close() }) // begin may have closed it
	return s
}

// begin lets a launcher go on that waits.
func (s *server) begin() {
	s.t.Helper()
	if _, err := s.trigger.Write([]byte("\n")); err != nil {
		s.t.Fatalf("begin: %v\n%s", err, s.log)
	}
	if err := s.trigger.Close(); err != nil {
		s.t.Error(err)
	}
}

func (s *server) mustBeReady() {
	s.t.Helper()
	if !s.ready() {
		s.t.Fatalf("the server did not start:\n%s", s.log)
	}
}

// ask makes a request of the launcher.
func (s *server) ask(ctx context.Context, method, path string) ([]byte, http.Header, error) {
	req, err := http.NewRequestWithContext(ctx, method, s.control+path, nil)
	if err != nil {
		return nil, nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode >= http.StatusBadRequest {
		err = fmt.Errorf("%s %s: %d %s", method, path, resp.StatusCode, raw)
	}
	return raw, resp.Header, err
}

// tell makes a request of the launcher that must be fine.
func (s *server) tell(path string) {
	s.t.Helper()
	if _, _, err := s.ask(s.t.Context(), http.MethodPost, path); err != nil {
		s.t.Fatal(err)
	}
}

// later lets time pass while no server runs: all that is due, and the alarms for it, come earlier by d.
// The heartbeat of a run is a minute, and a test of each step cannot wait for it.
func (f *fixture) later(d time.Duration) {
	f.t.Helper()
	paths, err := filepath.Glob(filepath.Join(f.home, "objects", "*", "*.sqlite"))
	if err != nil || len(paths) == 0 {
		f.t.Fatalf("objects of %s: %q, %v", f.home, paths, err)
	}
	for _, path := range paths {
		db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(5000)")
		if err != nil {
			f.t.Fatal(err)
		}
		for _, change := range []string{
			fmt.Sprintf(`UPDATE _cf_ALARM SET scheduled_time = scheduled_time - %d`, d.Nanoseconds()), // of the class
			fmt.Sprintf(`UPDATE _cf_METADATA SET value = value - %d WHERE key = 1`, d.Nanoseconds()),  // of the object
			fmt.Sprintf(`UPDATE due SET at = at - %d`, d.Milliseconds()),
		} {
			if _, err := db.ExecContext(f.t.Context(), change); err != nil && !strings.Contains(err.Error(), "no such table") {
				f.t.Fatalf("%s: %s: %v", path, change, err)
			}
		}
		if err := db.Close(); err != nil {
			f.t.Error(err)
		}
	}
}
