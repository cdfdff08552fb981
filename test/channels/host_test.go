//go:build !js

package channels

import (
	"bufio"
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark/internal/graph"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

var (
	targetFlag = flag.String("targets", "native,workerd", "hosts to try, separated by commas")
	workerFlag = flag.String("worker", "", "folder with a built Worker, made when empty")
)

const (
	token    = "open-sesame"
	patience = tidemarktest.Patience
)

var scratch string

func TestMain(m *testing.M) {
	flag.Parse()
	var err error
	if scratch, err = os.MkdirTemp("", "channels"); err != nil {
		panic(err)
	}
	if err := flag.Set("test.parallel", "4"); err != nil {
		panic(err)
	}
	code := m.Run()
	os.RemoveAll(scratch)
	os.Exit(code)
}

// built makes what is run, once, unless TIDEMARK_BIN names it.
var built = sync.OnceValues(func() (string, error) {
	if given := os.Getenv("TIDEMARK_BIN"); given != "" {
		return given, nil
	}
	out, err := exec.Command("go", "build", "-o", filepath.Join(scratch, "tidemark"), "github.com/tidemark-ai/tidemark/cmd/tidemark").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return filepath.Join(scratch, "tidemark"), nil
})

var builtWorker = sync.OnceValues(func() (string, error) {
	if *workerFlag != "" {
		return filepath.Abs(*workerFlag)
	}
	make := exec.Command("go", "run", "./build", "-out", filepath.Join(scratch, "worker"))
	make.Dir = "../.."
	if out, err := make.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return filepath.Join(scratch, "worker"), nil
})

// host is one of ours that serves what lies in a folder, with the fake on its other side.
type host struct {
	t      *testing.T
	target string
	folder string
	env    []string
	meta   *graph.Server
	cmd    *exec.Cmd
	done   chan struct{}
	log    lockedBuffer
	url    string
}

// lockedBuffer collects what a process says.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// newHost starts a host with settings of WhatsApp as variables.
func newHost(t *testing.T, target string, cfg graph.Config, env ...string) *host {
	t.Helper()
	meta, err := graph.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	h := &host{t: t, target: target, folder: t.TempDir(), meta: meta, env: append([]string{
		"TIDEMARK_TOKEN=" + token, "TIDEMARK_MODEL_PROVIDER=offline", "TIDEMARK_LOG_LEVEL=info", "TIDEMARK_SERVER_GRACESECONDS=1",
		"WHATSAPP_TOKEN=" + graph.DefaultToken, "WHATSAPP_APP_SECRET=" + graph.DefaultAppSecret, "WHATSAPP_VERIFY_TOKEN=" + graph.DefaultVerifyToken,
		"TIDEMARK_CHANNELS_WHATSAPP_BASEURL=" + meta.URL,
	}, env...)}
	h.start()
	t.Cleanup(func() {
		h.kill()
		if err := meta.Close(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("%s said:\n%s", target, h.log.String())
		}
	})
	return h
}

// start serves, and tells the fake where.
func (h *host) start() {
	h.t.Helper()
	var mark string
	if h.target == "native" {
		path, err := built()
		if err != nil {
			h.t.Fatal(err)
		}
		h.cmd, mark = exec.Command(path, "serve", "--listen", "127.0.0.1:0"), " serves at "
		h.cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + h.folder, "TIDEMARK_HOME=" + h.folder}, h.env...)
	} else {
		path, err := builtWorker()
		if err != nil {
			h.t.Fatal(err)
		}
		args := []string{"../serve.mjs", "--folder", path, "--disk", h.folder}
		for _, v := range h.env {
			args = append(args, "--var", v)
		}
		h.cmd, mark = exec.Command("node", args...), "{"
	}
	h.cmd.SysProcAttr, h.cmd.Stderr = &syscall.SysProcAttr{Setpgid: true}, &h.log
	out, err := h.cmd.StdoutPipe()
	if err == nil {
		err = h.cmd.Start()
	}
	if err != nil {
		h.t.Fatal(err)
	}
	told, done := make(chan string, 1), make(chan struct{})
	h.done = done
	cmd := h.cmd
	go func() {
		for in := bufio.NewScanner(out); in.Scan(); {
			if _, at, ok := strings.Cut(in.Text(), mark); ok && len(told) == 0 {
				told <- at
			}
		}
		_ = cmd.Wait()
		close(done)
	}()
	select {
	case h.url = <-told:
	case <-h.done:
		h.t.Fatalf("%s ended before it served\n%s", h.target, h.log.String())
	case <-time.After(patience):
		h.t.Fatalf("%s does not say where it serves\n%s", h.target, h.log.String())
	}
	if h.target != "native" {
		var at struct{ URL string }
		if err := json.Unmarshal([]byte("{"+h.url), &at); err != nil {
			h.t.Fatal(err)
		}
		h.url = at.URL
	}
	h.url = strings.TrimSuffix(h.url, "/")
	h.meta.SetWebhook(h.url + "/webhooks/whatsapp")
}

// kill is a power cut.
func (h *host) kill() {
	_ = syscall.Kill(-h.cmd.Process.Pid, syscall.SIGKILL)
	<-h.done
}

// call makes a request with the token.
func (h *host) call(method, path string, in, out any) int {
	h.t.Helper()
	var body io.Reader
	if in != nil {
		raw, err := json.Marshal(in)
		if err != nil {
			h.t.Fatal(err)
		}
		body = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(h.t.Context(), method, h.url+path, body)
	if err != nil {
		h.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		h.t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err == nil && out != nil && res.StatusCode == http.StatusOK {
		err = json.Unmarshal(raw, out)
	}
	if err != nil {
		h.t.Fatalf("%s %s: %d, %v: %.300s", method, path, res.StatusCode, err, raw)
	}
	return res.StatusCode
}

// must is call that succeeds.
func (h *host) must(method, path string, in, out any) {
	h.t.Helper()
	if status := h.call(method, path, in, out); status != http.StatusOK {
		h.t.Fatalf("%s %s: %d", method, path, status)
	}
}

// patient ends when a test has waited for long enough.
func (h *host) patient() (context.Context, context.CancelFunc) {
	return context.WithTimeout(h.t.Context(), patience)
}

// answers waits until n messages were sent in all, and returns them.
func (h *host) answers(n int) []graph.Sent {
	h.t.Helper()
	ctx, cancel := h.patient()
	defer cancel()
	if err := h.meta.Await(ctx, n); err != nil {
		for _, s := range h.meta.Sent() {
			h.t.Logf("sent to %s: %q", s.To, s.Text)
		}
		h.t.Fatalf("%d messages were sent, want %d: %v", len(h.meta.Sent()), n, err)
	}
	return h.meta.Sent()
}

// acknowledged waits until every webhook was.
func (h *host) acknowledged() {
	h.t.Helper()
	ctx, cancel := h.patient()
	defer cancel()
	if err := h.meta.Idle(ctx); err != nil {
		h.t.Fatalf("webhooks are not acknowledged: %v\n%+v", err, h.meta.Posts())
	}
}

// eventually waits until something holds that nobody tells of.
func (h *host) eventually(what string, holds func() bool) {
	h.t.Helper()
	for end := time.Now().Add(patience); !holds(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			h.t.Fatalf("never: %s", what)
		}
	}
}

// log gives the log of a session as text, empty when there is none.
func (h *host) history(key string) string {
	h.t.Helper()
	var out json.RawMessage
	if status := h.call("GET", "/v1/sessions/"+key+"/log?limit=1000", nil, &out); status == http.StatusNotFound {
		return ""
	}
	return string(out)
}

// owed is a message in the ledger of a session.
type owed struct{ Ref, State, Text string }

// ledger lists what a session sent or is to send, empty when there is no such session yet.
func (h *host) ledger(key string) []owed {
	h.t.Helper()
	var out struct{ Outbound []owed }
	h.call("GET", "/v1/sessions/"+key+"/outbound", nil, &out)
	return out.Outbound
}

// everywhere runs a test on each host, beside other tests: each has hosts of its own, and mostly waits.
func everywhere(t *testing.T, test func(t *testing.T, target string)) {
	t.Parallel()
	for _, target := range strings.Split(*targetFlag, ",") {
		t.Run(target, func(t *testing.T) {
			t.Parallel()
			test(t, target)
		})
	}
}
