//go:build unix

// Groups of processes are looked at in the way of Unix.

package stdio_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	gosdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/mcp/stdio"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// TestMain is the server, too, where a test starts this program as one.
func TestMain(m *testing.M) {
	switch os.Getenv("STDIO_TEST_SERVER") {
	case "":
		os.Exit(m.Run())
	case "dumb": // says nothing, and lets nobody end it
		select {}
	case "noise":
		fmt.Println("hello, I am no server")
		os.Exit(0)
	}
	s := gosdk.NewServer(&gosdk.Implementation{Name: "probe", Version: "1"}, &gosdk.ServerOptions{PageSize: 2})
	add := func(name string, f func() (string, error)) {
		s.AddTool(&gosdk.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)}, func(context.Context, *gosdk.CallToolRequest) (*gosdk.CallToolResult, error) {
			text, err := f()
			return &gosdk.CallToolResult{Content: []gosdk.Content{&gosdk.TextContent{Text: text}}}, err
		})
	}
	add("environ", func() (string, error) { return strings.Join(os.Environ(), "\n"), nil })
	add("pid", func() (string, error) { return strconv.Itoa(os.Getpid()), nil })
	add("die", func() (string, error) { os.Exit(3); return "", nil })
	add("hang", func() (string, error) { return "", syscall.Kill(os.Getpid(), syscall.SIGSTOP) })
	add("huge", func() (string, error) { return strings.Repeat("a", 10<<20), nil })
	add("speak", func() (string, error) {
		fmt.Fprintln(os.Stderr, "the key is "+os.Getenv("KEY")+" "+strings.Repeat("x", 1<<20))
		return "", nil
	})
	add("child", func() (string, error) {
		cmd := exec.Command("sleep", "600")
		err := cmd.Start()
		return strconv.Itoa(cmd.Process.Pid), err
	})
	add("grow", func() (string, error) { add("grown", func() (string, error) { return "", nil }); return "", nil })
	if err := s.Run(context.Background(), &gosdk.StdioTransport{}); err != nil {
		os.Exit(1)
	}
	os.Exit(0)
}

// log is a buffer that a logger writes to.
type log struct {
	mu sync.Mutex // guards b
	b  bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func process(t *testing.T, kind string) (*stdio.Client, *log) {
	l := &log{}
	c := &stdio.Client{Name: "probe", Command: os.Args[0], Env: []string{"STDIO_TEST_SERVER=" + kind, "KEY=quite-secret"}, MaxBytes: 64 << 10,
		Logger: slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))}
	t.Cleanup(func() { _ = c.Close() }) // a process that was killed says so
	return c, l
}

func ask(t *testing.T, c *stdio.Client, tool string) (string, error) {
	ctx, stop := context.WithTimeoutCause(t.Context(), tidemarktest.Patience, tidemark.ErrTimeout)
	defer stop()
	b, err := c.Call(ctx, tidemark.ToolUse("call_1", tool, nil))
	if err != nil {
		return "", err
	}
	out := ""
	for _, part := range b.Content {
		out += part.Text
	}
	return out, nil
}

func must(t *testing.T, c *stdio.Client, tool string) string {
	t.Helper()
	out, err := ask(t, c, tool)
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	return out
}

// gone waits until there is no process of a number.
func gone(t *testing.T, pid string) {
	t.Helper()
	n, err := strconv.Atoi(pid)
	if err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(tidemarktest.Patience); time.Now().Before(end); {
		state, err := os.ReadFile("/proc/" + pid + "/stat")
		if errors.Is(syscall.Kill(n, 0), syscall.ESRCH) || err == nil && strings.Contains(string(state), ") Z ") { // nobody reaps what was left behind in a container
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Errorf("process %s is still there", pid)
}

func TestProcess(t *testing.T) {
	t.Setenv("ANTHROPIC_API_KEY", "not-for-servers")
	c, l := process(t, "all")
	tools, err := c.Tools(t.Context())
	if err != nil || len(tools) != 8 {
		t.Fatalf("%d tools, %v", len(tools), err)
	}
	for _, e := range strings.Split(must(t, c, "environ"), "\n") {
		name, _, _ := strings.Cut(e, "=")
		if !strings.Contains(" PATH HOME LANG STDIO_TEST_SERVER KEY ", " "+name+" ") {
			t.Errorf("the process got %s", name)
		}
	}
	pid := must(t, c, "pid")
	child := must(t, c, "child")
	must(t, c, "speak")
	if again := must(t, c, "pid"); again != pid {
		t.Error("each call starts a process")
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	gone(t, pid)
	gone(t, child)
	said := l.String()
	if !strings.Contains(said, "the key is [secret]") || strings.Contains(said, "quite-secret") || len(said) > 10_000 {
		t.Errorf("logged %d bytes: %.300s", len(said), said)
	}
	if _, err := ask(t, c, "pid"); !errors.Is(err, tidemark.ErrUnavailable) {
		t.Errorf("behind its close: %v", err)
	}
}

// TestProcessDies: one that ends is started again, for the next caller after a moment and then later each time, and what is
// too long does not stay in memory.
func TestProcessDies(t *testing.T) {
	c, _ := process(t, "all")
	pid := must(t, c, "pid")
	if _, err := ask(t, c, "die"); !errors.Is(err, tidemark.ErrUnavailable) {
		t.Errorf("%v", err)
	}
	gone(t, pid)
	if again := must(t, c, "pid"); again == pid {
		t.Error("the same process")
	}
	if _, err := ask(t, c, "huge"); err == nil || errors.Is(err, tidemark.ErrBusy) {
		t.Errorf("10 MB: %v", err)
	}
	if _, err := ask(t, c, "die"); !errors.Is(err, tidemark.ErrUnavailable) {
		t.Errorf("%v", err)
	}
	if _, err := ask(t, c, "pid"); !errors.Is(err, tidemark.ErrBusy) || !strings.Contains(err.Error(), "started again in") {
		t.Errorf("after two in a row: %v", err)
	}
}

// TestProcessHangs: one that answers nothing any more is ended after a few calls, and started again.
func TestProcessHangs(t *testing.T) {
	c, _ := process(t, "all")
	pid := must(t, c, "pid")
	silent := 0
	for try := 0; silent < 3 && try < 10; try++ { // the first may be answered before it stops
		ctx, stop := context.WithTimeout(t.Context(), 300*time.Millisecond)
		_, err := c.Call(ctx, tidemark.ToolUse("1", "hang", nil))
		if stop(); errors.Is(err, context.DeadlineExceeded) {
			silent++
		}
	}
	gone(t, pid)
	if again := must(t, c, "pid"); again == pid {
		t.Error("the same process")
	}
}

// TestProcessGrows: a process says when its list is another one.
func TestProcessGrows(t *testing.T) {
	c, _ := process(t, "all")
	must(t, c, "pid")
	_, before := c.Fresh()
	must(t, c, "grow")
	for end := time.Now().Add(tidemarktest.Patience); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if _, now := c.Fresh(); now > before {
			if tools, err := c.Tools(t.Context()); err != nil || len(tools) != 9 {
				t.Errorf("%d tools, %v", len(tools), err)
			}
			return
		}
	}
	t.Error("nobody was told")
}

func TestProcessIdle(t *testing.T) {
	c, _ := process(t, "all")
	c.Idle = 50 * time.Millisecond
	pid := must(t, c, "pid")
	gone(t, pid)
	if again := must(t, c, "pid"); again == pid {
		t.Error("the same process")
	}
}

// TestNoServer: programs that are none end within the time, and nothing of them stays.
func TestNoServer(t *testing.T) {
	for _, kind := range []string{"dumb", "noise"} {
		c, _ := process(t, kind)
		ctx, stop := context.WithTimeoutCause(t.Context(), 500*time.Millisecond, tidemark.ErrTimeout)
		defer stop()
		if _, err := c.Tools(ctx); !errors.Is(err, tidemark.ErrTimeout) && !errors.Is(err, tidemark.ErrUnavailable) {
			t.Errorf("%s: %v", kind, err)
		}
	}
	c := &stdio.Client{Name: "probe", Command: "/no/such/program"}
	if _, err := c.Tools(t.Context()); !errors.Is(err, tidemark.ErrUnavailable) || !strings.Contains(err.Error(), "tools.mcp.probe.command") {
		t.Errorf("%v", err)
	}
}
