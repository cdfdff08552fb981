package wasi

import (
	"bytes"
	"encoding/base64"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

const plain = `"name":"a","description":"d","input_schema":{"type":"object"}`

func TestManifest(t *testing.T) {
	for _, row := range []struct{ name, in, want string }{
		{"plain", `{` + plain + `}`, ""},
		{"all", `{` + plain + `,"idempotent":true,"timeoutMs":1,"memoryMB":1024,"maxOutputBytes":1,"maxInputBytes":1,"mount":"/x"}`, ""},
		{"a mark of Windows", "\xef\xbb\xbf{" + plain + `}`, ""},
		{"no JSON", `{`, "want a JSON object"},
		{"null", `null`, "it is null"},
		{"list", `[]`, "want a JSON object"},
		{"other case", `{` + plain + `,"Mount":"/x"}`, `did you mean "mount"?`},
		{"camel case", `{"name":"a","description":"d","inputSchema":{"type":"object"}}`, `did you mean "input_schema"?`},
		{"unknown", `{` + plain + `,"zzzzzzzz":1}`, `there are name, description`},
		{"type", `{` + plain + `,"timeoutMs":"10"}`, "wrong type"},
		{"name", `{"name":"A b","description":"d","input_schema":{"type":"object"}}`, `"name" is "A b"`},
		{"long name", `{"name":"` + strings.Repeat("a", 65) + `","description":"d","input_schema":{"type":"object"}}`, "1 to 64"},
		{"no description", `{"name":"a","description":" ","input_schema":{"type":"object"}}`, `"description" is missing`},
		{"no schema", `{"name":"a","description":"d"}`, `"input_schema" is missing`},
		{"null schema", `{"name":"a","description":"d","input_schema":null}`, `"input_schema" is missing`},
		{"schema of a string", `{"name":"a","description":"d","input_schema":{"type":"string"}}`, "has type string"},
		{"schema without a type", `{"name":"a","description":"d","input_schema":{}}`, "has type <nil>"},
		{"property", `{"name":"a","description":"d","input_schema":{"type":"object","properties":{"x":{"type":"strnig"}}}}`, `did you mean "string"?`},
		{"property of a number", `{"name":"a","description":"d","input_schema":{"type":"object","properties":{"x":1}}}`, "want an object"},
		{"required", `{"name":"a","description":"d","input_schema":{"type":"object","required":"x"}}`, "no schema of an object"},
		{"negative", `{` + plain + `,"timeoutMs":-1}`, "want 1 to 300000"},
		{"too much", `{` + plain + `,"memoryMB":1025}`, "want 1 to 1024"},
		{"mount", `{` + plain + `,"mount":"notes"}`, "absolute path"},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := ParseManifest([]byte(row.in))
			if row.want == "" && err != nil || row.want != "" && (!errors.Is(err, tidemark.ErrInvalid) || !strings.Contains(err.Error(), row.want)) {
				t.Errorf("%v, want %q", err, row.want)
			}
		})
	}
	if _, err := ParseManifest(make([]byte, MaxManifest+1)); !errors.Is(err, tidemark.ErrTooLarge) {
		t.Error(err)
	}
}

func TestInput(t *testing.T) {
	s, err := parseSchema([]byte(`{"type":"object","required":["text","n"],"additionalProperties":false,"properties":{"text":{"type":"string"},"n":{"type":"integer"},"any":{},"x":{"type":["number","null"]},"list":{"type":"array"},"on":{"type":"boolean"},"o":{"type":"object"},"t":true}}`))
	if err != nil {
		t.Fatal(err)
	}
	for in, want := range map[string]string{
		`{"text":"a","n":1}`:   "",
		`{"text":"a","n":1.0}`: "",
		`{"text":"a","n":1e2,"any":[],"x":null,"list":[],"on":true,"o":{},"t":7}`: "",
		`{}`:                          `"text" is missing; "n" is missing`,
		`{"text":1,"n":1.5}`:          `"n" must be of type integer; "text" must be of type string`,
		`{"text":"a","n":1,"x":true}`: `"x" must be of type number or null`,
		`{"txet":"a","n":1}`:          `"text" is missing; "txet" is unknown, did you mean "text"?`,
		`[]`:                          "the input must be a JSON object",
		`null`:                        "the input must be a JSON object",
		``:                            "the input must be a JSON object",
	} {
		if got := s.wrong([]byte(in)); got != want {
			t.Errorf("%s: %q, want %q", in, got, want)
		}
	}
}

const pixel = `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"aGVsbG8="}}`

func TestOutput(t *testing.T) {
	for _, row := range []struct {
		name, in string
		blocks   int
		isError  bool
		first    string
	}{
		{"text", "hello\n", 1, false, "hello\n"},
		{"JSON as it is", `{"b":1.0,"a":2}`, 1, false, `{"b":1.0,"a":2}`},
		{"blocks", `{"content":[{"type":"text","text":"a"},` + pixel + `]}`, 2, false, "a"},
		{"failure", ` {"is_error":true,"content":[{"type":"text","text":"no"}]} `, 1, true, "no"},
		{"another member", `{"content":[{"type":"text","text":"a"}],"x":1}`, 1, false, `{"content":[{"type":"text","text":"a"}],"x":1}`},
		{"another member of a block", `{"content":[{"type":"text","text":"a","cache_control":{}}]}`, 1, false, `{"content":[{"type":"text","text":"a","cache_control":{}}]}`},
		{"content is text", `{"content":"a"}`, 1, false, `{"content":"a"}`},
		{"a call", `{"content":[{"type":"tool_use","id":"x","name":"y","input":{}}]}`, 1, false, `{"content":[{"type":"tool_use","id":"x","name":"y","input":{}}]}`},
		{"an image by URL", `{"content":[{"type":"image","source":{"type":"url","url":"https://example.com/?secret"}}]}`, 1, false, `{"content":[{"type":"image","source":{"type":"url","url":"https://example.com/?secret"}}]}`},
		{"is_error is no truth", `{"content":[],"is_error":"yes"}`, 1, false, `{"content":[],"is_error":"yes"}`},
		{"empty blocks", `{"content":[{"type":"text","text":" "}]}`, 0, false, ""},
		{"nothing", " \n", 0, false, ""},
		{"no UTF-8", "a\xffb", 1, false, "a\uFFFDb"},
	} {
		t.Run(row.name, func(t *testing.T) {
			blocks, isError := output([]byte(row.in))
			if len(blocks) != row.blocks || isError != row.isError || len(blocks) > 0 && blocks[0].Text != row.first {
				t.Errorf("%d blocks, is_error %t, %+v", len(blocks), isError, blocks)
			}
		})
	}
}

func FuzzManifest(f *testing.F) {
	f.Add([]byte(`{` + plain + `,"timeoutMs":5}`))
	f.Add([]byte(`{"name":"a","description":"d","input_schema":{"type":"object","required":["x"],"properties":{"x":{"type":["string","null"]}}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := ParseManifest(data)
		if err != nil {
			if tidemark.Sentinel(err) == nil {
				t.Fatalf("an error without a kind: %v", err)
			}
			return
		}
		raw, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		if len(raw) > MaxManifest { // escapes may make it longer
			return
		}
		again, err := ParseManifest(raw)
		if err != nil {
			t.Fatalf("what was written is not read: %v\n%s", err, raw)
		}
		m.InputSchema, again.InputSchema = compact(t, m.InputSchema), compact(t, again.InputSchema)
		a, _ := json.Marshal(m)
		b, _ := json.Marshal(again)
		if !bytes.Equal(a, b) {
			t.Fatalf("%s, then %s", a, b)
		}
		l := m.limits()
		if l.time <= 0 || l.time > MaxTimeout || l.pages == 0 || l.output <= 0 || l.output > MaxOutput || l.input <= 0 {
			t.Fatalf("limits %+v", l)
		}
	})
}

func compact(t *testing.T, raw json.RawMessage) json.RawMessage {
	t.Helper()
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// FuzzOutput: whatever a module writes becomes blocks that the API takes: text that says something, and images
// that are there.
func FuzzOutput(f *testing.F) {
	f.Add([]byte(`{"content":[{"type":"text","text":"a"},` + pixel + `],"is_error":false}`))
	f.Add([]byte("plain"))
	f.Fuzz(func(t *testing.T, data []byte) {
		blocks, _ := output(data)
		result := tidemark.Block{Type: tidemark.TypeToolResult, ToolUseID: "x", Content: blocks}
		var again tidemark.Block
		if err := json.Unmarshal(result.AppendJSON(nil), &again); err != nil || len(again.Content) != len(blocks) {
			t.Fatalf("%v: %s", err, result.AppendJSON(nil))
		}
		for i, b := range again.Content {
			switch {
			case b.Type == tidemark.TypeText && strings.TrimSpace(b.Text) != "" && utf8.ValidString(b.Text) && b.Text == blocks[i].Text:
			case b.Type == tidemark.TypeImage && b.Source != nil && b.Source.Type == "base64":
				var w struct{ Source struct{ Data string } }
				if err := json.Unmarshal(b.Raw(), &w); err != nil || w.Source.Data == "" {
					t.Fatalf("%v: %s", err, b.Raw())
				}
				if _, err := base64.StdEncoding.DecodeString(w.Source.Data); err != nil {
					t.Fatal(err)
				}
			default:
				t.Fatalf("block %d: %s", i, b.AppendJSON(nil))
			}
		}
	})
}
