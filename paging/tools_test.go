package paging

import (
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark/internal/json"
)

// TestTools: what a call does, to which file and range.
func TestTools(t *testing.T) {
	table := DefaultTools().With(map[string]Tool{"peek": {Kind: Reads, Path: []string{"what"}}, "mcp__x__cat": {Kind: Looks}})
	for _, row := range []struct{ name, tool, input, want string }{
		{"a whole file", "Read", `{"file_path":"/a/./b//c.go"}`, "reads /a/b/c.go "},
		{"a part", "Read", `{"file_path":"/a","offset":10,"limit":5}`, "reads /a lines 10-14"},
		{"up to the end", "Read", `{"file_path":"/a","offset":10}`, "reads /a lines 10-"},
		{"from the first line to the end", "Read", `{"file_path":"/a","offset":1,"limit":null}`, "reads /a "},
		{"numbers as strings", "Read", `{"file_path":"/a","offset":"10","limit":"5"}`, "reads /a lines 10-14"},
		{"pages", "Read", `{"file_path":"/a.pdf","pages":"1-5"}`, "reads /a.pdf pages 1-5"},
		{"editor that views", "str_replace_based_edit_tool", `{"command":"view","path":"/a","view_range":[2,-1]}`, "reads /a lines 2-"},
		{"editor that changes", "str_replace_based_edit_tool", `{"command":"insert","path":"/a","insert_line":3}`, "changes /a "},
		{"camel case", "readFile", `{"filePath":"/a","startLine":3,"endLine":9}`, "reads /a lines 3-9"},
		{"an MCP server", "mcp__filesystem__read_text_file", `{"path":"/a","head":20}`, "reads /a lines 1-20"},
		{"the last lines", "read_text_file", `{"path":"/a","tail":20}`, "reads /a last 20 lines"},
		{"a patch", "apply_patch", `{"input":"*** Begin Patch\n*** Update File: a.go\n@@\n*** Add File: b.go\n"}`, "changes a.go  b.go"},
		{"a command", "Bash", `{"command":"cat /a"}`, "looks  "},
		{"no path", "Read", `{}`, "looks  "},
		{"no object", "Read", `[1]`, "looks  "},
		{"an escape in the name", "Read", `{"file_path":"/\u00e9"}`, "reads /é "},
		{"one of one's own", "peek", `{"what":"/a"}`, "reads /a "},
		{"overridden by name", "mcp__x__cat", `{"path":"/a"}`, "looks  "},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := table.Call(row.tool, []byte(row.input))
			got := strings.Join(append([]string{[]string{"looks", "reads", "changes"}[c.Kind], c.Path, c.Range.String()}, c.More...), " ")
			if got != row.want {
				t.Errorf("got %q, want %q", got, row.want)
			}
		})
	}
}

// FuzzMessage: sizes are those of compact JSON, whatever white space and order there is, and what is no
// JSON is refused.
func FuzzMessage(f *testing.F) {
	f.Add([]byte(` { "content" : [ {"type":"tool_result", "tool_use_id":"a", "content":[ {"type":"text","text":"\u00e9\ud83c\udf0a"} ] } ], "role":"user" } `))
	f.Add([]byte(`{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"Read","input":{"file_path":"x", "offset":1.5e3}}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		s := Scanner{Tools: DefaultTools()}
		m, err := s.Message(raw)
		if err != nil {
			return
		}
		if !json.Valid(raw) {
			t.Skip() // escapes of strings that are not needed are not looked at
		}
		whole, err := json.Marshal(json.RawMessage(raw))
		if err != nil || len(whole) != m.Bytes {
			t.Errorf("%d bytes, want %d: %s, %v", m.Bytes, len(whole), whole, err)
		}
		for _, b := range m.Blocks {
			if b.what == answered && b.wire > 0 && !json.Valid(whole[b.at:b.at+b.wire]) {
				t.Errorf("a result's content is not at %d: %s", b.at, whole)
			}
		}
	})
}
