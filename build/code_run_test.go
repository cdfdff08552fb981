package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestTidyRuns: a module does the same after it was rewritten, and most functions with places to resume at were: where the compiler's form is another one, this is seen here and not by the size alone.
func TestTidyRuns(t *testing.T) {
	node, raw, parts := compiled(t)
	folder := t.TempDir()
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

// compiled gives node and a small module as Go compiles it.
func compiled(t *testing.T) (node string, raw []byte, parts []section) {
	if testing.Short() {
		t.Skip("compiles for WebAssembly")
	}
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("no node")
	}
	module := filepath.Join(t.TempDir(), "raw.wasm")
	cmd := exec.Command("go", append(append([]string{"build"}, inlining...), "-o", module, "./testdata/runs")...)
	cmd.Env = append(os.Environ(), worker...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if raw, err = os.ReadFile(module); err != nil {
		t.Fatal(err)
	}
	if parts, err = sections(raw); err != nil {
		t.Fatal(err)
	}
	return node, raw, parts
}

// instantiate prints the memory of a module before anything of Go runs.
const instantiate = `
const module = new WebAssembly.Module(require("fs").readFileSync(process.argv[1]));
const imports = {};
for (const { module: m, name } of WebAssembly.Module.imports(module)) (imports[m] ??= {})[name] = () => {};
require("fs").writeFileSync(process.argv[2], new Uint8Array(new WebAssembly.Instance(module, imports).exports.mem.buffer));
`

// TestUnpacked: what the start of the module writes is what the linker wrote, to the byte, and the packed
// form is gone.
func TestUnpacked(t *testing.T) {
	node, raw, parts := compiled(t)
	for name, lines := range map[string]bool{"without lines": false, "with lines": true} {
		t.Run(name, func(t *testing.T) {
			var want []byte
			for _, s := range parts {
				if s.kind == dataSection {
					memory, err := readData(s.body)
					if err != nil {
						t.Fatal(err)
					}
					if err := dropTables(memory, lines); err != nil {
						t.Fatal(err)
					}
					before := countersOf(t, memory)
					if err := joinCounters(memory); err != nil {
						t.Fatal(err)
					}
					if !slices.Equal(countersOf(t, memory), before) {
						t.Error("a function has another table by program counter")
					}
					want = memory
				}
			}
			small, err := tidy(raw, parts, lines)
			if err != nil {
				t.Fatal(err)
			}
			module, memory := filepath.Join(t.TempDir(), "app.wasm"), filepath.Join(t.TempDir(), "memory")
			if err := os.WriteFile(module, small, 0o600); err != nil {
				t.Fatal(err)
			}
			if out, err := exec.Command(node, "-e", instantiate, module, memory).CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			got, err := os.ReadFile(memory)
			if err != nil {
				t.Fatal(err)
			}
			for i, b := range got {
				if i < len(want) && b != want[i] || i >= len(want) && b != 0 {
					t.Fatalf("at %d of %d stands %d", i, len(want), b)
				}
			}
			if len(got) < len(want) || !bytes.Contains(want, []byte("main.main")) {
				t.Errorf("a memory of %d, want %d", len(got), len(want))
			}
		})
	}
}

// countersOf gives the tables by program counter of all functions.
func countersOf(t *testing.T, memory []byte) []string {
	table, err := findTable(memory)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for i := range table.count {
		f, err := table.function(i)
		if err != nil {
			t.Fatal(err)
		}
		starts := []int{number(f, funcSPTable), number(f, funcFiles), number(f, funcLines)}
		for k := range number(f, funcPCTables) {
			starts = append(starts, number(f, funcSize+4*k))
		}
		for _, start := range starts {
			counters := ""
			if start != 0 {
				end, err := table.counterEnd(start)
				if err != nil {
					t.Fatal(err)
				}
				counters = string(table.counters[start:end])
			}
			out = append(out, counters)
		}
	}
	return out
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
