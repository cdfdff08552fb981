//go:build !js

// It runs modules by compiled code.

package wasi

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
)

// TestFaults: whatever a module does, the call is answered in words.
func TestFaults(t *testing.T) {
	o := open(t)
	o.add(t, "hostile", hostile(t), limit(MaxTimeout))
	o.add(t, "short", hostile(t), limit(300*time.Millisecond))
	o.add(t, "small", hostile(t), limit(MaxTimeout), func(m *Manifest) { m.MemoryMB = 16 })
	times := 2
	if testing.Short() {
		times = 1
	}
	for _, row := range []struct {
		name, tool, do string
		words          []string
	}{
		{"loop", "short", "loop", []string{"short did not end within 300ms (timeoutMs in its manifest)"}},
		{"sleep", "short", "sleep", []string{"did not end within 300ms"}},
		{"memory", "small", "memory", []string{"exit code 2", "16 MB that it may have (memoryMB", "out of memory"}},
		{"stdout", "hostile", "stdout", []string{"wrote more than 1048576 bytes and was ended (maxOutputBytes"}},
		{"stderr", "short", "stderr", []string{"did not end within 300ms", "stderr: noise", "[…]"}},
		{"fail", "hostile", "fail", []string{"exit code 7", "stderr: the wheel came off", "stdout: half an answer"}},
		{"panic", "hostile", "panic", []string{"exit code 2", "on purpose"}},
		{"stack overflow of Go", "hostile", "deep", []string{"failed"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			for range times { // a fresh instance, and one that waited
				o.fails(t, row.tool, fmt.Sprintf(`{"do":%q}`, row.do), row.words...)
				o.filled(t, row.tool)
			}
		})
	}
	o.says(t, "hostile", `{"do":"say","text":"still here"}`, "still here")
}

// TestTraps: modules that no compiler makes.
func TestTraps(t *testing.T) {
	o := open(t)
	for _, row := range []struct {
		name   string
		module []byte
		limit  time.Duration
		words  string
	}{
		{"unreachable", raw(0, 0x00), MaxTimeout, "unreachable"},
		{"recursion", raw(0, 0x10, 0x00), MaxTimeout, "stack overflow"},
		{"loop", raw(0, 0x03, 0x40, 0x0c, 0x00, 0x0b), 500 * time.Millisecond, "did not end within 500ms"},
		{"outside", raw(1, 0x41, 0x7f, 0x28, 0x02, 0x00, 0x1a), MaxTimeout, "out of bounds memory access"},
		{"grow", raw(1, 0x03, 0x40, 0x41, 0x01, 0x40, 0x00, 0x1a, 0x0c, 0x00, 0x0b), 500 * time.Millisecond, "did not end within 500ms"},
	} {
		t.Run(row.name, func(t *testing.T) {
			o.add(t, row.name, row.module, limit(row.limit), func(m *Manifest) { m.MemoryMB = 8 })
			o.fails(t, row.name, `{}`, row.words)
			if n := o.filled(t, row.name); n != 0 {
				t.Errorf("%d instances wait of a module that never reads", n)
			}
			o.fails(t, row.name, `{}`, row.words)
		})
	}
	o.add(t, "nothing", raw(0))
	o.says(t, "nothing", `{}`, "(nothing ended well and wrote nothing)")
}

// TestEarly: what a module does before it reads its input costs nothing while nobody calls.
func TestEarly(t *testing.T) {
	data := t.TempDir()
	write(t, filepath.Join(data, "a.txt"), "first")
	o := open(t)
	mounted := func(m *Manifest) { m.Mount = data }
	for _, row := range []struct {
		name, want string
		limit      time.Duration
		isError    bool
	}{
		{"early-loop", "did not end within 200ms", 200 * time.Millisecond, true},
		{"early-sleep", "did not end within 200ms", 200 * time.Millisecond, true},
		{"early-exit", "no input needed", MaxTimeout, false},
		{"early-data", "first", MaxTimeout, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			o.add(t, row.name, hostile(t), limit(row.limit), mounted)
			for range maxStrikes + 1 {
				if text, isError := o.run(t, row.name, `{}`); isError != row.isError || !strings.Contains(text, row.want) {
					t.Errorf("%q (is_error %t), want %q", text, isError, row.want)
				}
				if n := o.filled(t, row.name); n != 0 {
					t.Errorf("%d instances wait", n)
				}
			}
			o.mu.Lock()
			defer o.mu.Unlock()
			if tool := o.all[row.name]; tool.strikes < maxStrikes || tool.live != 0 {
				t.Errorf("%d strikes, %d instances live: want it to go without, and none", tool.strikes, tool.live)
			}
		})
	}
	write(t, filepath.Join(data, "a.txt"), "second")
	o.says(t, "early-data", `{}`, "second")
}

// TestSandbox: a module sees its mount and nothing else, and changes nothing.
func TestSandbox(t *testing.T) {
	outside, data := t.TempDir(), t.TempDir()
	write(t, filepath.Join(outside, "secret.txt"), "secret")
	write(t, filepath.Join(data, "a.txt"), "in the mount")
	write(t, filepath.Join(data, "sub", "b.txt"), "below it")
	link := func(to, name string) {
		t.Helper()
		if err := os.Symlink(to, filepath.Join(data, name)); err != nil {
			t.Skip(err)
		}
	}
	link(filepath.Join(outside, "secret.txt"), "absolute")
	link("../"+filepath.Base(outside)+"/secret.txt", "relative")
	link("..", "up")
	link(outside, "folder")
	link("/dev/zero", "device")
	link("sub/b.txt", "inside")
	link("loop", "loop")
	if err := syscall.Mkfifo(filepath.Join(data, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	o := open(t)
	o.add(t, "bare", hostile(t))
	o.add(t, "box", hostile(t), func(m *Manifest) { m.Mount = data })
	o.says(t, "box", `{"do":"read","path":"/data/a.txt"}`, "in the mount")
	o.says(t, "box", `{"do":"read","path":"/data/sub/../sub/b.txt"}`, "below it")
	o.says(t, "box", `{"do":"read","path":"/data/inside"}`, "below it")
	o.says(t, "box", `{"do":"list","path":"/data/sub"}`, "b.txt\n")
	rel, err := filepath.Rel(data, outside)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/data/absolute", "/data/relative", "/data/up/" + filepath.Base(outside) + "/secret.txt", "/data/folder/secret.txt", "/data/device", "/data/loop", "/data/pipe",
		"/data/../etc/passwd", "/etc/passwd", filepath.Join(outside, "secret.txt"), "/data/" + rel + "/secret.txt", "../../etc/passwd", "/data/./../" + outside + "/secret.txt", "/data/a.txt/../../etc/passwd", "/proc/self/environ", ""} {
		for _, tool := range []string{"box", "bare"} {
			o.fails(t, tool, fmt.Sprintf(`{"do":"read","path":%q}`, path), "exit code 1")
		}
	}
	o.fails(t, "bare", `{"do":"read","path":"/data/a.txt"}`, "exit code 1")
	o.fails(t, "bare", `{"do":"list","path":"/"}`, "exit code 1")
	o.says(t, "box", `{"do":"args"}`, `["box"] []`)
	text, _ := o.run(t, "box", `{"do":"open","path":"/data/a.txt","n":1000}`)
	if n := 0; !sscan(text, &n) || n >= maxOpen {
		t.Errorf("%q: want an end below %d files", text, maxOpen)
	}
	text, _ = o.run(t, "box", `{"do":"net","path":"127.0.0.1:80"}`)
	if text == "" || strings.Contains(text, "<nil>") {
		t.Errorf("a module dials: %s", text)
	}
	unchanged(t, o, data)
}

func sscan(text string, n *int) bool { _, err := fmt.Sscan(text, n); return err == nil }

// unchanged has a module try to change its mount.
func unchanged(t *testing.T, o opened, data string) {
	t.Helper()
	before := files(t, data)
	text, _ := o.run(t, "box", `{"do":"change","path":"/data/a.txt"}`)
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if len(lines) != 9 || slices.Contains(lines, "<nil>") || !strings.HasPrefix(lines[8], "false ") {
		t.Errorf("what changes something must fail, nine times:\n%s", text)
	}
	if after := files(t, data); after != before {
		t.Errorf("the mount was\n%sand is\n%s", before, after)
	}
}

func files(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		fmt.Fprintln(&b, path, info.Size(), info.Mode(), info.ModTime())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestCancelled: a caller that gives up gets its cause back, and the module is gone.
func TestCancelled(t *testing.T) {
	o := open(t)
	o.add(t, "hostile", hostile(t))
	for _, do := range []string{"loop", "sleep"} {
		ctx, cancel := context.WithCancelCause(context.Background())
		why := errors.New("stopped by a person")
		time.AfterFunc(100*time.Millisecond, func() { cancel(why) })
		if _, err := o.Call(ctx, call("hostile", fmt.Sprintf(`{"do":%q}`, do))); !errors.Is(err, why) {
			t.Errorf("%s: %v, want %v", do, err, why)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := o.Call(ctx, call("hostile", `{"do":"loop"}`)); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want it not to run", err)
	}
	o.filled(t, "hostile")
	if n := o.live("hostile"); n > idlePerTool {
		t.Errorf("%d instances live", n)
	}
}

// live counts the instances of a tool that have not ended.
func (o opened) live(name string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.all[name].live
}

// atWork counts the instances that have their input, or start.
func (o opened) atWork() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.running) - o.idle
}

// TestClosed: closing ends what runs, and later calls are told so.
func TestClosed(t *testing.T) {
	o := open(t)
	o.add(t, "hostile", hostile(t))
	o.says(t, "hostile", `{"do":"say","text":"x"}`, "x")
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			if _, err := o.Call(context.Background(), call("hostile", `{"do":"loop"}`)); !errors.Is(err, tidemark.ErrUnavailable) {
				t.Errorf("%v, want %v", err, tidemark.ErrUnavailable)
			}
		})
	}
	for o.atWork() < 3 {
		time.Sleep(time.Millisecond)
	}
	if err := o.Close(); err != nil {
		t.Error(err)
	}
	wg.Wait()
	if _, err := o.Call(context.Background(), call("hostile", `{"do":"say"}`)); !errors.Is(err, tidemark.ErrUnavailable) {
		t.Errorf("after the end: %v", err)
	}
	if len(o.running) != 0 {
		t.Errorf("%d instances run after the end", len(o.running))
	}
}
