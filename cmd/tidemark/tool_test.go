package main

import (
	"bytes"
	"context"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark/cmd/cli"
)

// Modules of one function, _start: one that ends, one that traps.
const (
	emptyModule = "0061736d010000000104016000000302010007" + "0a01065f7374617274" + "00000a040102000b"
	trapModule  = "0061736d010000000104016000000302010007" + "0a01065f7374617274" + "00000a05010300000b"
)

func TestToolCommand(t *testing.T) {
	home, dir := filepath.Join(t.TempDir(), "home"), t.TempDir()
	file := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	module := func(name, text string) string {
		t.Helper()
		raw, err := hex.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		return file(name, string(raw))
	}
	calm, trap := module("calm.wasm", emptyModule), module("trap.wasm", trapModule)
	file("calm.json", `{"name":"calm","description":"does nothing","input_schema":{"type":"object","required":["text"],"properties":{"text":{"type":"string"}}}}`)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/agents/main/tools" {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write([]byte(`{"sources":[{"name":"files","kind":"mcp","state":"failed","error":"refused","tools":2,"leftOut":["odd: no anyOf at the top"]}],"tools":[{"name":"files_read","description":"Read."}]}`))
	}))
	defer server.Close()
	for _, row := range []struct {
		name  string
		args  string
		stdin string
		code  int
		want  string // in what it prints
	}{
		{"none", "tool ls", "", 0, "no tools yet"},
		{"no manifest", "tool add " + trap, "", 1, "there is no manifest"},
		{"schema", "tool add " + trap + " --name trap --description x --schema nope.json", "", 1, "nope.json"},
		{"add", "tool add " + calm, "", 0, "tool calm is installed"},
		{"again", "tool add " + calm, "", 1, "give --force"},
		{"force", "tool add " + calm + " --force --json", "", 0, `"name": "calm"`},
		{"flags", "tool add " + trap + ` --name trap --description x --schema {"type":"object"} --mount ` + dir, "", 0, "it may read " + dir},
		{"built in", "tool add " + trap + ` --name recall --description x --schema {"type":"object"}`, "", 1, "built in"},
		{"no module", "tool add " + filepath.Join(dir, "calm.json") + ` --name x --description x --schema {"type":"object"}`, "", 1, "GOOS=wasip1"},
		{"list", "tool ls", "", 0, "does nothing"},
		{"test", `tool test calm {"text":"x"}`, "", 0, "(calm ended well and wrote nothing)"},
		{"test by standard input", "tool test calm - --json", `{"text":"x"}`, 0, `"ms"`},
		{"test of the schema", "tool test calm", "", 1, `"text" is missing`},
		{"no JSON", "tool test calm x", "", 2, "is no JSON"},
		{"trap", "tool test trap {}", "", 1, "unreachable"},
		{"unknown", "tool test clam {}", "", 1, `did you mean "calm"`},
		{"of a server", "tool ls --server " + server.URL, "", 0, "failed: refused"},
		{"what is left out", "tool ls --server " + server.URL, "", 0, "no anyOf at the top"},
		{"a server without", "tool ls --agent other --server " + server.URL, "", 0, "offers no tools of others"},
		{"remote", "tool add " + calm + " --server " + server.URL, "", 1, "modules lie in the home folder"},
		{"remove", "tool rm trap", "", 0, "trap is removed"},
		{"remove again", "tool rm trap", "", 1, "there is no tool"},
	} {
		t.Run(row.name, func(t *testing.T) {
			var out bytes.Buffer
			m := &cli.Main{Stdin: strings.NewReader(row.stdin), Stdout: &out, Stderr: &out, Environ: []string{"TIDEMARK_HOME=" + home, "HOME=" + dir}}
			if code := m.Run(context.Background(), commands(), strings.Fields(row.args)); code != row.code || !strings.Contains(out.String(), row.want) {
				t.Errorf("tidemark %s ends with %d and says\n%s\nwant %d and %q", row.args, code, &out, row.code, row.want)
			}
		})
	}
	if err := os.WriteFile(filepath.Join(home, "tools", "calm", "tool.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"tool ls", "doctor"} {
		var out bytes.Buffer
		m := &cli.Main{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &out, Environ: []string{"TIDEMARK_HOME=" + home, "HOME=" + dir}}
		m.Run(context.Background(), commands(), strings.Fields(command))
		if !strings.Contains(out.String(), "manifest: want a JSON object") {
			t.Errorf("%s of a broken tool:\n%s", command, &out)
		}
	}
}
