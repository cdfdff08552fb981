//go:build !js

// It runs modules by compiled code.

package wasi

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// TestExample: the example tool answers, by an instance that waited too.
func TestExample(t *testing.T) {
	o := open(t)
	raw, err := os.ReadFile("../examples/datecalc/tool.json")
	if err != nil {
		t.Fatal(err)
	}
	m, err := ParseManifest(raw)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.Add(context.Background(), datecalc(t), m, false); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		r, err := o.Run(context.Background(), call("datecalc", `{"from":"2024-02-29","to":"2026-11-25"}`))
		if err != nil {
			t.Fatal(err)
		}
		text := r.Result.Content[0].Text
		if r.Result.IsError || !strings.Contains(text, `"days":1000,"workdays":714`) {
			t.Errorf("%s", r.Result.AppendJSON(nil))
		}
		if r.Waited != (i > 0) || r.Memory == 0 || r.Output != len(text) {
			t.Errorf("call %d: %+v", i, r)
		}
		o.filled(t, "datecalc")
	}
	o.fails(t, "datecalc", `{"from":"2026-02-30"}`, "exit code 1", `"2026-02-30" is no date`)
	o.fails(t, "datecalc", `{"from":7}`, `was not run: "from" must be of type string`)
	o.fails(t, "datecalc", `[]`, "must be a JSON object")
}

// TestNothingShared: each call has an instance of its own.
func TestNothingShared(t *testing.T) {
	o := open(t)
	o.add(t, "hostile", hostile(t))
	for range 5 {
		o.says(t, "hostile", `{"do":"count"}`, "0")
		o.filled(t, "hostile")
	}
	o.add(t, "small", hostile(t), func(m *Manifest) { m.MaxInputBytes = 100 })
	o.fails(t, "small", `{"do":"say","text":"`+strings.Repeat("x", 100)+`"}`, "at most 100 (maxInputBytes")
	long := fmt.Sprintf(`{"do":"echo","text":%q}`, strings.Repeat("y", DefaultInput-100))
	o.says(t, "hostile", long, long)
}

// TestTaken: what is added, changed, broken, mended and removed is seen at once, also while it is in use.
func TestTaken(t *testing.T) {
	o := open(t)
	other := openHome(t, o.home) // of another process
	other.compiler.cache.dir = o.compiler.cache.dir
	names := func() (all []string) {
		t.Helper()
		tools, err := o.Tools.Tools(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		for _, tool := range tools {
			all = append(all, tool.Name+": "+tool.Description)
		}
		return all
	}
	if n := names(); len(n) != 0 {
		t.Errorf("%q in an empty home", n)
	}
	other.add(t, "tool-b", hostile(t))
	other.add(t, "tool-a", hostile(t), limit(MaxTimeout))
	if n := names(); !slices.Equal(n, []string{"tool-a: for a test", "tool-b: for a test"}) {
		t.Errorf("%q", n)
	}
	o.says(t, "tool-a", `{"do":"say","text":"old"}`, "old")
	o.filled(t, "tool-a")
	done := make(chan error, 1)
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, err := o.Call(ctx, call("tool-a", `{"do":"sleep"}`))
		done <- err
	}()
	for o.atWork() == 0 {
		time.Sleep(time.Millisecond)
	}
	o.mu.Lock()
	old := o.all["tool-a"]
	o.mu.Unlock()
	other.add(t, "tool-a", datecalc(t), func(m *Manifest) { m.Description = "another" })
	if n := names(); n[0] != "tool-a: another" {
		t.Errorf("after the change: %q", n)
	}
	if text, isError := o.run(t, "tool-a", `{"from":"2026-01-01"}`); isError || !strings.Contains(text, "Thursday") {
		t.Errorf("the new one says %q", text)
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("the old one ends with %v", err)
	}
	o.mu.Lock()
	if old.engine != nil || old.live != 0 || len(old.idle) != 0 {
		t.Errorf("the old version is kept: %d live", old.live)
	}
	o.mu.Unlock()
	manifest := filepath.Join(o.home, "tools", "tool-b", manifestName)
	write(t, manifest, `{"name":"tool-b","descriptionn":"x"}`)
	if n := names(); len(n) != 1 || !strings.Contains(o.log.String(), `did you mean \"description\"`) {
		t.Errorf("a broken one: %q, log %s", n, o.log)
	}
	o.fails(t, "tool-b", `{}`, "not run: ", `did you mean "description"?`)
	list, err := o.List()
	if err != nil || len(list) != 2 || list[0].Broken != "" || !strings.Contains(list[1].Broken, "descriptionn") {
		t.Errorf("%+v, %v", list, err)
	}
	if err := other.Remove("tool-a"); err != nil {
		t.Error(err)
	}
	o.fails(t, "tool-a", `{}`, `there is no tool "tool-a"; did you mean "tool-b"?`)
	if err := o.Remove("tool-a"); !errors.Is(err, tidemark.ErrNotFound) {
		t.Error(err)
	}
	for _, name := range []string{"", ".", "..", "../tools", "a/b"} {
		if err := o.Remove(name); !errors.Is(err, tidemark.ErrNotFound) {
			t.Errorf("remove %q: %v", name, err)
		}
	}
}

// TestPut: a tool is there whole or not at all, and no other one is replaced unasked.
func TestPut(t *testing.T) {
	o := open(t)
	first := o.add(t, "tool", hostile(t))
	m := first.Manifest
	if _, err := o.Add(context.Background(), datecalc(t), m, false); !errors.Is(err, tidemark.ErrConflict) {
		t.Errorf("a second: %v", err)
	}
	for _, row := range []struct {
		name   string
		module []byte
		change func(*Manifest)
		want   string
	}{
		{"built in", hostile(t), func(m *Manifest) { m.Name = "recall" }, "built in"},
		{"bad mount", hostile(t), func(m *Manifest) { m.Mount = filepath.Join(o.home, "no") }, "make the folder"},
		{"mount of the home", hostile(t), func(m *Manifest) { m.Mount = filepath.Dir(o.home) }, "holds, or lies in, the home folder"},
		{"mount in the home", hostile(t), func(m *Manifest) { m.Mount = filepath.Join(o.home, "tools") }, "holds, or lies in, the home folder"},
		{"no module", []byte("#!/bin/sh"), func(*Manifest) {}, "no WebAssembly"},
		{"too much memory", raw(2000), func(*Manifest) {}, "more memory than it may have, which is 64 MB"},
	} {
		t.Run(row.name, func(t *testing.T) {
			m := m
			row.change(&m)
			if _, err := o.Add(context.Background(), row.module, m, true); err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("%v, want %q", err, row.want)
			}
		})
	}
	o.says(t, "tool", `{"do":"say","text":"as before"}`, "as before")
	dir := filepath.Join(o.home, "tools")
	if err := os.Rename(filepath.Join(dir, "tool"), filepath.Join(dir, ".tool"+oldMark+"KILLED")); err != nil {
		t.Fatal(err) // a process was killed while it replaced the tool
	}
	write(t, filepath.Join(dir, ".tool"+newMark+"KILLED", "x"), "")
	openHome(t, o.home)
	o.says(t, "tool", `{"do":"say","text":"back"}`, "back")
	if _, err := os.Stat(filepath.Join(dir, ".tool"+newMark+"KILLED")); err != nil {
		t.Errorf("what another process may be writing is gone: %v", err)
	}
}

// TestModules: what is no command of WASI preview 1 is refused with what it is and how to build it.
func TestModules(t *testing.T) {
	o := open(t)
	m := Manifest{Name: "x", Description: "x", InputSchema: json.RawMessage(`{"type":"object"}`)}
	for _, row := range []struct {
		name   string
		module []byte
		want   string
	}{
		{"empty", nil, "empty"},
		{"text", []byte("(module)"), "as text"},
		{"program", []byte("\x7fELF1234"), "kind of machine"},
		{"cut off", []byte("\x00asm\x01"), "cut off"},
		{"component", []byte("\x00asm\x0d\x00\x01\x00"), "component (WASI preview 2)"},
		{"version", []byte("\x00asm\x02\x00\x00\x00"), "unknown version"},
		{"garbage", append([]byte("\x00asm\x01\x00\x00\x00"), "\xff\xff\xff"...), "does not compile"},
		{"library", module("_initialize", nil, 1), "library"},
		{"no start", module("run", nil, 1), "no _start"},
		{"page", module("_start", imported("gojs", "runtime.wasmExit"), 1), "GOOS=js"},
		{"emscripten", module("_start", imported("env", "abort"), 1), "STANDALONE_WASM"},
		{"old", module("_start", imported("wasi_unstable", "fd_read"), 1), "old preview"},
		{"other", module("_start", imported("http", "fetch"), 1), `"http"."fetch"`},
		{"missing", module("_start", imported("wasi_snapshot_preview1", "fd_dance"), 1), "fd_dance"},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := o.Add(context.Background(), row.module, m, false)
			if !errors.Is(err, tidemark.ErrInvalid) || !strings.Contains(err.Error(), row.want) || !strings.Contains(err.Error(), "GOOS=wasip1") {
				t.Errorf("%v, want %q", err, row.want)
			}
		})
	}
	if _, err := o.Add(context.Background(), make([]byte, MaxModule+1), m, false); !errors.Is(err, tidemark.ErrTooLarge) {
		t.Error(err)
	}
	if list, err := o.List(); err != nil || len(list) != 0 {
		t.Errorf("%v, %v", list, err)
	}
}

// TestCache: code is kept, shared by processes, made again when it is damaged, and done without when it cannot be
// written.
func TestCache(t *testing.T) {
	home := t.TempDir()
	o := openHome(t, home)
	o.add(t, "tool", raw(1))
	dir := filepath.Join(home, "cache", "wasm")
	entry := func() (file string) {
		t.Helper()
		found, err := filepath.Glob(filepath.Join(dir, "*", "*", "*"))
		if err != nil || len(found) != 1 {
			t.Fatalf("the cache holds %q", found)
		}
		return found[0]
	}
	before, err := os.Stat(entry())
	if err != nil {
		t.Fatal(err)
	}
	kept := func() bool {
		now, err := os.Stat(entry())
		return err == nil && os.SameFile(before, now)
	}
	var wg sync.WaitGroup
	for range 4 { // processes
		wg.Go(func() { openHome(t, home).says(t, "tool", `{}`, "(tool ended well and wrote nothing)") })
	}
	wg.Wait()
	if !kept() {
		t.Error("the code was compiled again")
	}
	for name, damage := range map[string]func([]byte) []byte{
		"a bit":   func(b []byte) []byte { b[len(b)/2] ^= 4; return b },
		"a head":  func(b []byte) []byte { b[20] ^= 1; return b },
		"cut off": func(b []byte) []byte { return b[:len(b)/3] },
		"empty":   func([]byte) []byte { return nil },
	} {
		raw, err := os.ReadFile(entry())
		if err != nil {
			t.Fatal(err)
		}
		good := len(raw)
		if err := os.WriteFile(entry(), damage(raw), 0o600); err != nil {
			t.Fatal(err)
		}
		openHome(t, home).says(t, "tool", `{}`, "(tool ended well and wrote nothing)")
		if now, err := os.Stat(entry()); err != nil || now.Size() != int64(good) {
			t.Errorf("%s: the entry was not made again", name)
		}
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	write(t, dir, "a file where the cache should be")
	for range 2 {
		o := openHome(t, home)
		o.add(t, "other", raw(0))
		o.says(t, "tool", `{}`, "(tool ended well and wrote nothing)")
		if n := strings.Count(o.log.String(), "are not kept"); n != 1 {
			t.Errorf("said %d times: %s", n, o.log)
		}
	}
}

// TestPrune: the cache is bounded, and the longest unused go.
func TestPrune(t *testing.T) {
	c := cache{dir: filepath.Join(t.TempDir(), "cache")}
	old := time.Now().Add(-time.Hour)
	for i := range maxCached + 3 {
		dir, err := c.fresh()
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, "code"), fmt.Sprint(i))
		entry := c.entry([]byte{byte(i)})
		if err := c.keep(dir, entry); err != nil {
			t.Fatal(err)
		}
		if at := old.Add(time.Duration(i) * time.Second); os.Chtimes(entry, at, at) != nil {
			t.Fatal("no times")
		}
		if i == 10 && !c.sound(c.entry([]byte{0})) { // the first is used
			t.Fatal("the first is not sound")
		}
	}
	for i, want := range map[byte]bool{0: true, 1: false, 2: false, 3: false, 4: true, maxCached + 2: true} {
		if got := c.sound(c.entry([]byte{i})); got != want {
			t.Errorf("entry %d is there: %t, want %t", i, got, want)
		}
	}
}

// TestParallel: many calls at once are all answered, some at a time.
func TestParallel(t *testing.T) {
	o := open(t)
	o.add(t, "hostile", hostile(t), limit(MaxTimeout))
	o.add(t, "datecalc", datecalc(t), limit(MaxTimeout))
	stop := make(chan struct{})
	most := make(chan int)
	go func() {
		n := 0
		for {
			select {
			case <-stop:
				most <- n
				return
			default:
				o.mu.Lock()
				n = max(n, len(o.running)-o.idle)
				o.mu.Unlock()
				runtime.Gosched()
			}
		}
	}()
	var wg sync.WaitGroup
	for i := range 100 {
		wg.Go(func() {
			if i%2 == 0 {
				want := fmt.Sprintf(`{"do":"echo","n":%d}`, i)
				o.says(t, "hostile", want, want)
				return
			}
			date := fmt.Sprintf("20%02d-01-01", i)
			if text, isError := o.run(t, "datecalc", `{"from":"`+date+`"}`); isError || !strings.Contains(text, date) {
				t.Errorf("%q, want %s", text, date)
			}
		})
	}
	wg.Wait()
	close(stop)
	if n := <-most; n > DefaultRunning+1 { // one is started in advance meanwhile
		t.Errorf("%d ran at once, at most %d", n, DefaultRunning)
	}
	if n := o.filled(t, "hostile"); n != idlePerTool {
		t.Errorf("%d wait afterwards, want %d", n, idlePerTool)
	}
}
