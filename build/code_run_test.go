package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestTidyRuns: a module does the same after it was rewritten, and most functions with places to resume at were: where the compiler's form is another one, this is seen here and not by the size alone.
func TestTidyRuns(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles for WebAssembly")
	}
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("no node")
	}
	folder := t.TempDir()
	module := filepath.Join(folder, "raw.wasm")
	cmd := exec.Command("go", append(append([]string{"build"}, inlining...), "-o", module, "./testdata/runs")...)
	cmd.Env = append(os.Environ(), worker...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	raw, err := os.ReadFile(module)
	if err != nil {
		t.Fatal(err)
	}
	parts, err := sections(raw)
	if err != nil {
		t.Fatal(err)
	}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	args := regexp.MustCompile(`\([^()\n]*\)\n`) // of calls in a trace, which tidy drops
	run := func(name string, raw []byte) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, raw, 0o600); err != nil {
			t.Fatal(err)
		}
		loader := filepath.Join(strings.TrimSpace(string(root)), "lib", "wasm", "wasm_exec_node.js")
		cmd := exec.Command(node, "--stack-size=8192", loader, path)
		out, _ := cmd.CombinedOutput() // it ends with a panic
		return fmt.Sprintf("%s\nexit %d\n", args.ReplaceAll(out, []byte("()\n")), cmd.ProcessState.ExitCode())
	}
	want := run("before.wasm", raw)
	if !strings.Contains(want, "panic: the end") || !strings.HasSuffix(want, "exit 2\n") {
		t.Fatalf("the module as it was compiled prints %s", want)
	}
	short, err := tidy(raw, parts, true)
	if err != nil {
		t.Fatal(err)
	}
	if got := run("after.wasm", short); got != want {
		t.Errorf("it prints\n%s\nand printed\n%s", got, want)
	}
	for _, s := range parts {
		if s.kind == codeSection {
			if all, left := rewritten(t, s.body); all < 1000 || left > all/5 {
				t.Errorf("of %d functions with places to resume at %d are as they were", all, left)
			}
		}
	}
}

// rewritten counts the functions with a table of places, and those of them that shortenFunction leaves alone.
func rewritten(t *testing.T, body []byte) (all, left int) {
	r := wasmReader{rest: body}
	for i := range r.number() {
		code := r.bytes()
		if !bytes.Contains(code, []byte{opLocalGet, 0, opBrTable}) {
			continue
		}
		short, err := shortenFunction(code, firstPC+int64(i))
		if err != nil {
			t.Fatal(err)
		}
		if all++; bytes.Equal(short, code) {
			left++
		}
	}
	return all, left
}
