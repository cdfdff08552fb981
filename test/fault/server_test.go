//go:build !js

package fault

import (
	"bufio"
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	_ "modernc.org/sqlite" // reads beside the server, without its lock

	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// patience is how long anything may take that should take a moment; the machine may be busy.
const patience = tidemarktest.Patience

// fixture is a home folder with a configuration; its server comes and goes.
type fixture struct {
	t    *testing.T
	home string
	kind kind
	env  []string // more of it, for every process
	args []string // more of them, for every server in workerd

	trigger *os.File // what the next server in workerd waits for, nil for nothing

	document map[string]any // of the configuration
}

// newFixture makes a home whose model is at url, with a window that a few messages fill. settings
// are keys of the document beside those.
func newFixture(t *testing.T, url string, settings map[string]any) *fixture {
	t.Helper()
	home, err := os.MkdirTemp("", "tidemark-fault-home") //nolint:usetesting // what a failure left is worth reading
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{t: t, home: home, kind: binaryKind{}}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("what it left is in %s", home)
			return
		}
		if err := os.RemoveAll(home); err != nil {
			t.Error(err)
		}
	})
	f.configure(url, settings)
	return f
}

// configure writes the document.
func (f *fixture) configure(url string, settings map[string]any) {
	f.t.Helper()
	doc := map[string]any{
		"model":  map[string]any{"provider": "anthropic", "id": "fake-1", "baseUrl": url, "contextWindow": 8000},
		"agents": map[string]any{"list": []any{map[string]any{"id": "work"}}},
	}
	for k, v := range settings {
		doc[k] = v
	}
	f.document = doc
	raw, err := json.Marshal(doc)
	if err == nil {
		err = os.WriteFile(filepath.Join(f.home, "tidemark.jsonc"), raw, 0o600)
	}
	if err != nil {
		f.t.Fatal(err)
	}
}

// bucket is the folder of files.
func (f *fixture) bucket() string { return filepath.Join(f.home, "bucket") }

// command is the binary on this home.
func (f *fixture) command(args ...string) *exec.Cmd {
	c := exec.Command(binary, args...)
	c.Dir = f.home
	c.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + f.home, "TIDEMARK_HOME=" + f.home, "ANTHROPIC_API_KEY=fake-key"}, f.env...)
	return c
}

// run carries a command out and returns what it printed and its exit code.
func (f *fixture) run(args ...string) (stdout, stderr string, code int) {
	f.t.Helper()
	c := f.command(args...)
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	err := c.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		f.t.Fatalf("tidemark %s: %v", strings.Join(args, " "), err)
	}
	return out.String(), errs.String(), c.ProcessState.ExitCode()
}

// server is a process that serves a fixture.
type server struct {
	t    *testing.T
	cmd  *exec.Cmd
	told chan struct{} // closed when it has said where it serves
	done chan struct{} // closed when the process has ended
	log  *tail
	f    *fixture

	trigger *os.File // ends the wait of one that was launched ready

	url, control string // set before told is closed; control is that of a launcher of workerd
}

// launch starts a server and does not wait for it.
func (f *fixture) launch(env ...string) *server {
	f.t.Helper()
	s := &server{t: f.t, cmd: f.kind.command(f), told: make(chan struct{}), done: make(chan struct{}), log: &tail{}, f: f}
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	s.cmd.Env = append(s.cmd.Env, env...)
	s.cmd.Stderr = s.log
	out, err := s.cmd.StdoutPipe()
	if err == nil {
		err = s.cmd.Start()
	}
	if err != nil {
		f.t.Fatal(err)
	}
	go func() {
		in := bufio.NewScanner(out)
		for in.Scan() {
			if url, control := f.kind.serves(in.Text()); url != "" {
				s.url, s.control = url, control
				close(s.told)
			}
		}
		_ = s.cmd.Wait() // how it ended is in ProcessState
		close(s.done)
	}()
	f.t.Cleanup(func() {
		_ = s.end() // it has ended, unless the test failed
		<-s.done
	})
	return s
}

// serve starts a server and waits until it answers.
func (f *fixture) serve(env ...string) *server {
	f.t.Helper()
	s := f.launch(env...)
	if !s.ready() {
		f.t.Fatalf("the server did not start:\n%s", s.log)
	}
	return s
}

// ready waits until the server has said where it is, or has ended.
func (s *server) ready() bool {
	select {
	case <-s.told:
		return true
	case <-s.done:
	case <-time.After(patience):
	}
	return false
}

// end kills the process and all that it started.
func (s *server) end() error { return syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL) }

// kill ends the process as the kernel or a power cut would.
func (s *server) kill() {
	s.t.Helper()
	if err := s.end(); err != nil && !errors.Is(err, syscall.ESRCH) {
		s.t.Fatal(err)
	}
	<-s.done
	s.judge()
}

// quiet waits until a running server has nothing left to do, and reports what it does not get done.
func (f *fixture) quiet(s *server) {
	f.t.Helper()
	f.quietWithin(s, patience)
}

func (f *fixture) quietWithin(s *server, enough time.Duration) {
	f.t.Helper()
	var left []string
	for end := time.Now().Add(enough); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		paths, err := f.kind.databases(f.home)
		if err != nil {
			f.t.Fatal(err)
		}
		left = nil
		for _, path := range paths {
			left = append(left, outstanding(f.t, path)...)
		}
		if len(left) == 0 {
			return
		}
	}
	f.t.Errorf("after %s without any input there is still %q\n%s", enough, left, s.log)
}

// outstanding lists what is half done in a database, see unfinished.
func outstanding(t *testing.T, path string) []string {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?mode=ro&_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var out []string
	for what, query := range unfinished {
		rows, err := db.QueryContext(t.Context(), query)
		if err != nil && strings.Contains(err.Error(), "no such table") {
			continue // it is that of another kind of object
		}
		if err != nil {
			t.Fatalf("%s: %v", query, err)
		}
		for rows.Next() {
			var name string
			if err := rows.Scan(&name); err != nil {
				t.Fatal(err)
			}
			out = append(out, what+" "+name)
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// killed reports whether a signal ended the process, and waits for it.
func (s *server) killed() bool {
	s.t.Helper()
	select {
	case <-s.done:
	case <-time.After(patience):
		return false
	}
	w, ok := s.cmd.ProcessState.Sys().(syscall.WaitStatus)
	return ok && w.Signaled() && w.Signal() == syscall.SIGKILL
}

// stop asks the server to end and expects it to do so well.
func (s *server) stop() {
	s.t.Helper()
	if err := s.f.kind.keep(s.f, s); err != nil {
		s.t.Errorf("keep the bucket: %v", err)
	}
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		s.t.Fatalf("stop: %v\n%s", err, s.log)
	}
	select {
	case <-s.done:
	case <-time.After(patience):
		s.t.Fatalf("the server did not stop:\n%s", s.log)
	}
	if code := s.cmd.ProcessState.ExitCode(); code != 0 {
		s.t.Errorf("the server ended with %d:\n%s", code, s.log)
	}
	s.judge()
}

// judge holds that the log of an ended server reports no broken invariant.
func (s *server) judge() {
	s.t.Helper()
	text := s.log.String()
	for _, word := range []string{"panic", "go instance ended", "in an event of"} {
		if strings.Contains(text, word) {
			s.t.Errorf("the server has %q in its log:\n%s", word, text)
			return
		}
	}
}

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex // guards text
	text []byte
}

// Write implements io.Writer.
func (b *tail) Write(p []byte) (int, error) {
	const most = 64 << 10
	b.mu.Lock()
	defer b.mu.Unlock()
	b.text = append(b.text, p...)
	if len(b.text) > most {
		b.text = append([]byte(nil), b.text[len(b.text)-most/2:]...)
	}
	return len(p), nil
}

func (b *tail) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return string(b.text)
}

// contains reports whether all words stand in a text.
func contains(text string, words ...string) error {
	for _, w := range words {
		if !strings.Contains(text, w) {
			return fmt.Errorf("want %q in:\n%s", w, text)
		}
	}
	return nil
}
