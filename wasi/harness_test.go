//go:build !js

// It builds modules with the go command, and runs them by compiled code.

package wasi

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// builds are modules by their package, each built once a run of the tests.
var builds sync.Map

// build compiles a program of this repository to a module.
func build(t testing.TB, pkg string) []byte {
	t.Helper()
	once, _ := builds.LoadOrStore(pkg, sync.OnceValues(func() ([]byte, error) {
		dir, err := os.MkdirTemp("", "wasi-test-*") //nolint:usetesting // it outlives the test that builds it
		if err != nil {
			return nil, err
		}
		defer os.RemoveAll(dir)
		out := filepath.Join(dir, "tool.wasm")
		cmd := exec.Command("go", "build", "-ldflags=-s -w", "-o", out, pkg)
		cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
		if said, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("build %s: %w\n%s", pkg, err, said)
		}
		return os.ReadFile(out)
	}))
	module, err := once.(func() ([]byte, error))()
	if err != nil {
		t.Fatal(err)
	}
	return module
}

func hostile(t testing.TB) []byte { return build(t, "./testdata/hostile") }
func datecalc(t testing.TB) []byte {
	return build(t, "github.com/tidemark-ai/tidemark/examples/datecalc")
}

// sharedCache is where all tests keep compiled modules: each compiles for a second.
var sharedCache = sync.OnceValues(func() (string, error) { return os.MkdirTemp("", "wasi-cache-*") })

func TestMain(m *testing.M) {
	code := m.Run()
	if dir, err := sharedCache(); err == nil {
		_ = os.RemoveAll(dir)
	}
	os.Exit(code)
}

// opened are the tools of a home, and what they logged.
type opened struct {
	*Tools
	home string
	log  *bytes.Buffer
}

// open opens an empty home with the cache that all tests share.
func open(t testing.TB) opened {
	t.Helper()
	dir, err := sharedCache()
	if err != nil {
		t.Fatal(err)
	}
	o := openHome(t, t.TempDir())
	o.compiler.cache.dir = dir
	return o
}

func openHome(t testing.TB, home string) opened {
	t.Helper()
	log := &bytes.Buffer{}
	ts, err := Open(Config{Home: home, Reserved: []string{"recall"}, Logger: slog.New(slog.NewTextHandler(log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := ts.Close(); err != nil {
			t.Error(err)
		}
	})
	return opened{ts, home, log}
}

// add installs a module under a name, with a manifest that may be changed.
func (o opened) add(t testing.TB, name string, module []byte, change ...func(*Manifest)) Installed {
	t.Helper()
	m := Manifest{Name: name, Description: "for a test", InputSchema: json.RawMessage(`{"type":"object"}`)}
	for _, f := range change {
		f(&m)
	}
	one, err := o.Add(context.Background(), module, m, true)
	if err != nil {
		t.Fatal(err)
	}
	return one
}

func limit(d time.Duration) func(*Manifest) {
	return func(m *Manifest) { m.TimeoutMs = int(d.Milliseconds()) }
}

func call(name, input string) tidemark.Block {
	return tidemark.ToolUse("toolu_1", name, json.RawMessage(input))
}

// run calls a tool, which must answer the call.
func (o opened) run(t testing.TB, name, input string) (text string, isError bool) {
	t.Helper()
	b, err := o.Call(context.Background(), call(name, input))
	if err != nil {
		t.Fatalf("%s %s: %v", name, input, err)
	}
	if b.Type != tidemark.TypeToolResult || b.ToolUseID != "toolu_1" || len(b.Content) == 0 {
		t.Fatalf("%s %s: %s is no result", name, input, b.AppendJSON(nil))
	}
	for _, c := range b.Content {
		text += c.Text
	}
	return text, b.IsError
}

// fails calls a tool that must fail, with these words.
func (o opened) fails(t testing.TB, name, input string, words ...string) {
	t.Helper()
	text, isError := o.run(t, name, input)
	for _, w := range words {
		if !isError || !strings.Contains(text, w) {
			t.Errorf("%s %.80s: %q (is_error %t), want a failure with %q", name, input, text, isError, w)
		}
	}
}

// says calls a tool that must answer so.
func (o opened) says(t testing.TB, name, input, want string) {
	t.Helper()
	if text, isError := o.run(t, name, input); isError || text != want {
		t.Errorf("%s %.80s: %q (is_error %t), want %q", name, input, text, isError, want)
	}
}

// filled waits until nothing is started in advance any more.
func (o opened) filled(t testing.TB, name string) (idle int) {
	t.Helper()
	for {
		o.mu.Lock()
		tool := o.all[name]
		filling, idle := tool.filling, len(tool.idle)
		o.mu.Unlock()
		if !filling {
			return idle
		}
		func() {
			o.filler.Lock() // held while one starts
			defer o.filler.Unlock()
		}()
	}
}

// raw assembles a module of one function, _start, with a memory of pages (https://webassembly.github.io/spec/core/binary/).
func raw(pages int, code ...byte) []byte {
	return module("_start", nil, pages, code...)
}

func module(export string, imports []byte, pages int, code ...byte) []byte {
	section := func(id byte, body ...byte) []byte {
		return append(binary.AppendUvarint([]byte{id}, uint64(len(body))), body...)
	}
	fn := byte(0)
	out := []byte("\x00asm\x01\x00\x00\x00")
	out = append(out, section(1, 1, 0x60, 0, 0)...)
	if imports != nil {
		out, fn = append(out, section(2, imports...)...), 1
	}
	out = append(out, section(3, 1, 0)...)
	if pages > 0 {
		out = append(out, section(5, append([]byte{1, 0}, binary.AppendUvarint(nil, uint64(pages))...)...)...)
	}
	out = append(out, section(7, append(append([]byte{1, byte(len(export))}, export...), 0, fn)...)...)
	body := append(append([]byte{0}, code...), 0x0b)
	return append(out, section(10, append([]byte{1, byte(len(body))}, body...)...)...)
}

// imported is an import of a function.
func imported(module, name string) []byte {
	out := append([]byte{1, byte(len(module))}, module...)
	return append(append(append(out, byte(len(name))), name...), 0, 0)
}
