//go:build !js

package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/tidemark-ai/tidemark/internal/json"
)

// workerd is the built Worker in workerd, with objects and blobs on the disk. Its launcher leads a
// group of processes; to kill the group is a power cut.
type workerd struct {
	disk    string
	process binary
	control string
}

var _ target = (*workerd)(nil)

// module builds the Worker once, unless a folder was named, and finds what runs it.
var module = sync.OnceValues(func() (string, error) {
	if _, err := os.Stat("../../build/node_modules/miniflare"); err != nil {
		return "", errors.New("build/node_modules is missing: run `make e2e-worker`, which installs them, or leave workerd out with -targets in-process,native")
	}
	if *workerFlag != "" {
		return filepath.Abs(*workerFlag)
	}
	out := filepath.Join(scratch, "worker")
	build := exec.Command("go", "run", "./build", "-out", out)
	build.Dir = "../.."
	if said, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the Worker: %w\n%s", err, said)
	}
	return out, nil
})

func (w *workerd) start(env []string) (string, error) {
	folder, err := module()
	if err != nil {
		return "", err
	}
	args := []string{"../serve.mjs", "--folder", folder, "--disk", w.disk}
	for _, v := range append(env, "TIDEMARK_DEBUG=1") {
		args = append(args, "--var", v)
	}
	w.process.cmd = exec.Command("node", args...)
	w.process.cmd.Stderr = &w.process.log
	w.process.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	line, err := w.process.launch("{")
	if err != nil {
		if started := w.process.cmd.Process; started != nil {
			_ = syscall.Kill(-started.Pid, syscall.SIGKILL) // it may have ended already
		}
		return "", err
	}
	var at struct {
		URL     string `json:"url"`
		Control string `json:"control"`
	}
	if err := json.Unmarshal([]byte("{"+line), &at); err != nil {
		return "", fmt.Errorf("the launcher says %q: %w", line, err)
	}
	w.control = strings.TrimSuffix(at.Control, "/")
	if err := w.bucket().put("config.json", []byte(document)); err != nil {
		return "", errors.Join(err, w.stop(byKill))
	}
	return strings.TrimSuffix(at.URL, "/"), nil
}

func (w *workerd) stop(how string) error {
	p := &w.process
	if how == byKill {
		if err := syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL); err != nil {
			return fmt.Errorf("kill: %w", err)
		}
	} else if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("stop: %w\n%s", err, p.said())
	}
	select {
	case <-p.done:
	case <-time.After(patience):
		return errors.Join(fmt.Errorf("it does not stop\n%s", p.said()), syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL))
	}
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) // whoever of the group is left; mostly nobody
	return nil
}

func (w *workerd) databases() ([]string, error) {
	return filepath.Glob(filepath.Join(w.disk, "objects", "*", "*.sqlite"))
}

func (w *workerd) bucket() bucket { return r2(w.control) }
func (w *workerd) said() string   { return w.process.said() }

// r2 is a bucket of workerd, reached through the launcher.
type r2 string

var _ bucket = r2("")

// call makes a request of the launcher.
func (r r2) call(method, path string, body []byte) ([]byte, http.Header, error) {
	req, err := http.NewRequest(method, string(r)+path, bytes.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	res, err := (&http.Client{Timeout: patience}).Do(req)
	if err != nil {
		return nil, nil, err
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode >= http.StatusBadRequest {
		err = fmt.Errorf("%s %s: %d %s", method, path, res.StatusCode, raw)
	}
	return raw, res.Header, err
}

func escaped(key string) string {
	parts := strings.Split(key, "/")
	for i, p := range parts {
		parts[i] = url.PathEscape(p)
	}
	return strings.Join(parts, "/")
}

func (r r2) list(prefix string) ([]string, error) {
	raw, _, err := r.call(http.MethodGet, "/r2?prefix="+url.QueryEscape(prefix), nil)
	if err != nil {
		return nil, err
	}
	var out []string
	return out, json.Unmarshal(raw, &out)
}

func (r r2) get(key string) ([]byte, map[string]string, error) {
	raw, h, err := r.call(http.MethodGet, "/r2/"+escaped(key), nil)
	if err != nil {
		return nil, nil, err
	}
	var meta map[string]string
	text, err := url.PathUnescape(h.Get("X-Metadata"))
	if err == nil {
		err = json.Unmarshal([]byte(text), &meta)
	}
	return raw, meta, err
}

func (r r2) put(key string, body []byte) error {
	_, _, err := r.call(http.MethodPut, "/r2/"+escaped(key), body)
	return err
}
