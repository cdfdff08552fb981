package tidemark_test

import (
	"bytes"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// sameBytes are blocks that must come out as they went in.
var sameBytes = []struct{ name, json string }{
	{"text", `{"type":"text","text":"hello"}`},
	{"text with cache marker", `{"type":"text","text":"hello","cache_control":{"type":"ephemeral"}}`},
	{"type last", `{"text":"hello","type":"text"}`},
	{"unknown type", `{"type":"server_tool_use","id":"srv_1","name":"web_search","input":{"query":"x"}}`},
	{"unknown field", `{"type":"text","text":"x","citations":[{"z":1,"a":2}]}`},
	{"unknown type with foreign fields", `{"type":"odd","text":7,"content":{"a":1},"input":[1],"source":"here"}`},
	{"spaces between tokens", `{ "type" : "text" ,  "text" : "a" }`},
	{"tab between tokens", "{\t\"type\":\"text\",\t\"text\":\"a\"}"},
	{"number forms", `{"type":"tool_use","id":"c","name":"n","input":{"a":1.0,"b":1,"c":1e3,"d":-0,"e":0.10}}`},
	{"big numbers", `{"type":"tool_use","id":"c","name":"n","input":{"a":12345678901234567890123,"b":1e400}}`},
	{"key order", `{"type":"tool_use","name":"n","id":"c","input":{"z":1,"a":{"y":1,"b":2}}}`},
	{"duplicate keys in the input", `{"type":"tool_use","id":"c","name":"n","input":{"a":1,"a":2}}`},
	{"line separators", "{\"type\":\"text\",\"text\":\"a\u2028b\u2029c\"}"},
	{"escapes", `{"type":"text","text":"\u0041\/\b\f\n\r\t\\\"<>&\u003c"}`},
	{"escaped surrogate pair", `{"type":"text","text":"\ud83d\ude00"}`},
	{"lone surrogates", `{"type":"text","text":"\ud800 \udc00"}`},
	{"NUL", `{"type":"text","text":"a\u0000b"}`},
	{"thinking", `{"type":"thinking","thinking":"hm","signature":"c2ln"}`},
	{"redacted thinking", `{"type":"redacted_thinking","data":"EmwKAhgB"}`},
	{"result as a string", `{"type":"tool_result","tool_use_id":"c","content":"done \u0041"}`},
	{"result as a list", `{"type":"tool_result","tool_use_id":"c","content":[{"type":"text","text":"a"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBOR"}}],"is_error":true}`},
	{"result without content", `{"type":"tool_result","tool_use_id":"c"}`},
	{"result with null", `{"type":"tool_result","tool_use_id":"c","content":null}`},
	{"result with an empty list", `{"type":"tool_result","tool_use_id":"c","content":[]}`},
	{"results in results", nested(12)},
	{"image by URL", `{"type":"image","source":{"type":"url","url":"https://example.com/a.png"}}`},
	{"document", `{"type":"document","title":"T","source":{"type":"text","media_type":"text/plain","data":"words"}}`},
}

// nested returns a tool result n levels deep.
func nested(n int) string {
	s := `{"type":"text","text":"core"}`
	for range n {
		s = `{"type":"tool_result","tool_use_id":"c","content":[` + s + `]}`
	}
	return s
}

func TestBlockKeepsItsBytes(t *testing.T) {
	for _, tc := range sameBytes {
		t.Run(tc.name, func(t *testing.T) {
			var b tidemark.Block
			if err := json.Unmarshal([]byte(tc.json), &b); err != nil {
				t.Fatal(err)
			}
			if got := string(b.AppendJSON(nil)); got != tc.json {
				t.Errorf("got  %s\nwant %s", got, tc.json)
			}
			msg := `{"role":"user","content":[` + tc.json + `,` + tc.json + `]}`
			if got := string(decode(t, msg).AppendJSON(nil)); got != msg {
				t.Errorf("in a message: got  %s\nwant %s", got, msg)
			}
		})
	}
}

func decode(t testing.TB, s string) tidemark.Message {
	t.Helper()
	var m tidemark.Message
	if err := json.Unmarshal([]byte(s), &m); err != nil {
		t.Fatalf("decode %.200s: %v", s, err)
	}
	return m
}

// TestLineBreaksGo: a payload is one line, so a line break between tokens makes it compact; the
// rest of the block is as it came.
func TestLineBreaksGo(t *testing.T) {
	for _, tc := range []struct{ name, in, want string }{
		{"line feed", "{\"type\":\"text\",\n  \"text\":\"a  b\\n\"}", `{"type":"text","text":"a  b\n"}`},
		{"carriage return", "{\"type\":\"text\",\r\"text\":\"a\"}", `{"type":"text","text":"a"}`},
		{"numbers and order stay", "{\"type\":\"x\",\n\"z\": 1.0,\n\"a\": 1e2 }", `{"type":"x","z":1.0,"a":1e2}`},
		{"line separators stay", "{\"type\":\"text\",\n\"text\":\"a\u2028\"}", "{\"type\":\"text\",\"text\":\"a\u2028\"}"},
		{"none", `{ "type":"text", "text":"a" }`, `{ "type":"text", "text":"a" }`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m := decode(t, "{\"role\":\"user\",\n\"content\":[\n"+tc.in+"\n]\n}")
			if got, want := string(m.AppendJSON(nil)), `{"role":"user","content":[`+tc.want+`]}`; got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}

// TestStringContentKeepsItsBytes: content that is a string has no block to keep, but its literal.
func TestStringContentKeepsItsBytes(t *testing.T) {
	for _, s := range []string{`"plain"`, `""`, `"a\nb"`, `"\u0041\/\u003c<"`, `"\ud800"`, `"\ud83d\ude00 😀"`, "\"a\u2028b\"", `"a\u0000b"`, `"\u2028"`} {
		t.Run(s, func(t *testing.T) {
			msg := `{"role":"assistant","content":` + s + `}`
			m := decode(t, msg)
			if got := string(m.AppendJSON(nil)); got != msg || !m.Bare() {
				t.Errorf("message: got %s, want %s", got, msg)
			}
			result := `{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":` + s + `}]}`
			if got := string(decode(t, result).AppendJSON(nil)); got != result {
				t.Errorf("result: got %s, want %s", got, result)
			}
			block := tidemark.Message{Role: tidemark.User, Content: m.Content} // as strategies and notes put it into a list
			if got, want := string(block.AppendJSON(nil)), `{"role":"user","content":[{"type":"text","text":`+s+`}]}`; got != want {
				t.Errorf("as a list: got %s, want %s", got, want)
			}
		})
	}
}

// TestBlockWithoutAList: a content that is one block is a list of it, whatever its type.
func TestBlockWithoutAList(t *testing.T) {
	for _, b := range []string{`{"type":"text","text":"x"}`, `{"z":1.0,"type":"hologram","text":7}`, `{"type":"tool_result","tool_use_id":"c","content":{"type":"text","text":"x"}}`} {
		m, list := decode(t, `{"role":"user","content":`+b+`}`), `{"role":"user","content":[`+b+`]}`
		if got := string(m.AppendJSON(nil)); got != list || tidemark.Chain("", m) != tidemark.Chain("", decode(t, list)) {
			t.Errorf("got %s, want %s", got, list)
		}
	}
}

// TestMadeMessagesDecodeEqual: what a constructor makes is what decoding its JSON gives.
func TestMadeMessagesDecodeEqual(t *testing.T) {
	long := strings.Repeat("long ", 1000)
	for _, text := range []string{"", "plain", "two\nlines\r\n", "a\u2028b", "\x00\x1f\x7f", "quote \" slash \\ / <b>&", "😀 \ufffd", long} {
		for _, m := range []tidemark.Message{
			tidemark.NewText(tidemark.User, text),
			{Role: tidemark.User, Content: []tidemark.Block{tidemark.Text(text)}},
			{Role: tidemark.User, Content: []tidemark.Block{tidemark.ToolResult("c1", text, true), tidemark.ToolResult("c2", text, false), tidemark.Text(text)}},
			{Role: tidemark.Assistant, Content: []tidemark.Block{{Type: tidemark.TypeThinking, Text: text, Signature: "sig"}, tidemark.Text(text), tidemark.ToolUse(text, text, nil)}},
			{Role: tidemark.Assistant, Content: []tidemark.Block{tidemark.ToolUse("c", "n", []byte(`{"b": 1.0}`)), {Type: tidemark.TypeToolUse, ID: "d", Name: "n"}}},
		} {
			raw := m.AppendJSON(nil)
			got := decode(t, string(raw))
			if again := got.AppendJSON(nil); !bytes.Equal(again, raw) {
				t.Errorf("encoded again: %s\nat first %s", again, raw)
			}
			if a, b := plain(got), plain(m); a != b {
				t.Errorf("decoded %s\nmade %s", a, b)
			}
			if got.Bare() != m.Bare() || tidemark.Chain("", got) != tidemark.Chain("", m) || tidemark.Estimate(got) != tidemark.Estimate(m) {
				t.Errorf("%s: form, chain or estimate changed", raw)
			}
		}
	}
}

// plain prints the fields that strategies read.
func plain(m tidemark.Message) string {
	var b strings.Builder
	b.WriteString(string(m.Role))
	for _, c := range m.Content {
		input := string(c.Input)
		if c.Type == tidemark.TypeToolUse && input == "" {
			input = "{}"
		}
		fmt.Fprintf(&b, " [%s %q %s %s %s %s %v %s %v]", c.Type, c.Text, c.ID, c.Name, input, c.ToolUseID, c.IsError, c.Signature, c.Source)
		if len(c.Content) > 0 {
			b.WriteString(plain(tidemark.Message{Content: c.Content}))
		}
	}
	return b.String()
}

// TestInputIsOneLine: models write arguments over several lines, payloads are one.
func TestInputIsOneLine(t *testing.T) {
	b := tidemark.ToolUse("c", "n", []byte("{\n  \"a\": 1.0,\n  \"b\": \"x  y\"\n}"))
	if got, want := string(b.AppendJSON(nil)), `{"type":"tool_use","id":"c","name":"n","input":{"a":1.0,"b":"x  y"}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestBytesThatAreNotUTF8: JSON is UTF-8, and a host may hold text as UTF-16. Each foreign byte is
// replaced once, in the text and in the bytes that go out, so that hashes hold everywhere.
func TestBytesThatAreNotUTF8(t *testing.T) {
	for _, in := range []string{
		"{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"a\xff\xfeb\"}]}",
		"{\"role\":\"user\",\"content\":\"a\xff\xfeb\"}",
		"{\"role\":\"user\",\"content\":[{\"type\":\"text\",\n\"text\":\"a\xff\xfeb\"}]}",
	} {
		m := decode(t, in)
		out := m.AppendJSON(nil)
		if got := m.Content[0].Text; got != "a\ufffd\ufffdb" || !utf8.Valid(out) || !strings.Contains(string(out), got) {
			t.Errorf("text %q, bytes %q", got, out)
		}
	}
	if got := string(tidemark.NewText(tidemark.User, "a\xffb").AppendJSON(nil)); !utf8.ValidString(got) || decode(t, got).PlainText() != "a\ufffdb" {
		t.Errorf("a text made here: %q", got)
	}
}

func TestDecodeErrors(t *testing.T) {
	for _, tc := range []struct{ name, json, says string }{
		{"no role", `{"content":"x"}`, `"role"`},
		{"an empty role", `{"role":"","content":"x"}`, `"role"`},
		{"role of another type", `{"role":1,"content":"x"}`, "decode message"},
		{"no content", `{"role":"user"}`, `"content"`},
		{"null content", `{"role":"user","content":null}`, `"content"`},
		{"content is a number", `{"role":"user","content":1}`, "string or a list"},
		{"content is an object", `{"role":"user","content":{}}`, "string or a list"},
		{"content is no block", `{"role":"user","content":{"parts":["x"]}}`, "string or a list"},
		{"block is null", `{"role":"user","content":[null]}`, "want an object"},
		{"block is a string", `{"role":"user","content":["x"]}`, "block 0"},
		{"second block", `{"role":"user","content":[{"type":"text","text":"x"},{"type":"text","text":{}}]}`, "block 1"},
		{"text of another type", `{"role":"user","content":[{"type":"text","text":1}]}`, "block 0"},
		{"call without readable name", `{"role":"assistant","content":[{"type":"tool_use","id":1,"name":"n","input":{}}]}`, "block 0"},
		{"bad block in a result", `{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":[1]}]}`, "block 0"},
		{"result content is a number", `{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":1}]}`, "block 0"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var m tidemark.Message
			err := json.Unmarshal([]byte(tc.json), &m)
			if !errors.Is(err, tidemark.ErrInvalid) || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("got %v, want ErrInvalid that says %q", err, tc.says)
			}
		})
	}
	deep := `{"role":"user","content":[{"type":"x","a":` + strings.Repeat("[", 200_000) + strings.Repeat("]", 200_000) + `}]}`
	if err := json.Unmarshal([]byte(deep), new(tidemark.Message)); err == nil {
		t.Error("200,000 levels were decoded")
	}
}

// What a client knows and we do not passes through: it comes out as it came in.
func TestUnknownPasses(t *testing.T) {
	for _, tc := range []struct {
		name, json string
		role       tidemark.Role
		kind       string
	}{
		{"instructions between the others", `{"role":"system","content":"x"}`, tidemark.System, tidemark.TypeText},
		{"a change of tools", `{"role":"system","content":[{"type":"tool_addition","tool":{"name":"x"}}]}`, tidemark.System, "tool_addition"},
		{"another role", `{"role":"function","content":[{"type":"text","text":"x"}]}`, "function", tidemark.TypeText},
		{"a block of another type", `{"role":"user","content":[{"type":"container_upload","file_id":"f"}]}`, tidemark.User, "container_upload"},
		{"a block without a type", `{"role":"user","content":[{"text":"x","n":1.0}]}`, tidemark.User, ""},
		{"a type of another type", `{"role":"user","content":[{"n":1,"input":"x","is_error":"no"}]}`, tidemark.User, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var m tidemark.Message
			if err := json.Unmarshal([]byte(tc.json), &m); err != nil {
				t.Fatal(err)
			}
			if m.Role != tc.role || m.Content[0].Type != tc.kind {
				t.Errorf("got role %q, type %q", m.Role, m.Content[0].Type)
			}
			if got := string(m.AppendJSON(nil)); got != tc.json {
				t.Errorf("comes out as %s", got)
			}
		})
	}
}

// FuzzBlock: a block that decodes comes out byte for byte, unless a line break or foreign bytes
// had to go, and decodes to the same.
func FuzzBlock(f *testing.F) {
	for _, tc := range sameBytes {
		f.Add([]byte(tc.json))
	}
	f.Add([]byte("{\"type\":\"text\",\n\"text\":\"\xff\"}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var b tidemark.Block
		if json.Unmarshal(data, &b) != nil {
			return
		}
		out := b.AppendJSON(nil)
		if trimmed := bytes.Trim(data, " \t\r\n"); utf8.Valid(data) && !bytes.ContainsAny(data, "\r\n") && !bytes.Equal(out, trimmed) {
			t.Fatalf("out %q, in %q", out, trimmed)
		}
		if bytes.ContainsAny(out, "\r\n") || !utf8.Valid(out) || !stdjson.Valid(out) {
			t.Fatalf("%q is not one line of JSON", out)
		}
		var again tidemark.Block
		if err := json.Unmarshal(out, &again); err != nil {
			t.Fatalf("decode %q again: %v", out, err)
		}
		if !reflect.DeepEqual(again, b) {
			t.Fatalf("%q decodes to %#v, then to %#v", data, b, again)
		}
	})
}

// FuzzMessage: decode, encode, decode gives the same; the content of a message on one line is
// byte-equal to what came.
func FuzzMessage(f *testing.F) {
	for _, tc := range sameBytes {
		f.Add([]byte(`{"role":"user","content":[` + tc.json + `, ` + tc.json + `]}`))
	}
	f.Add([]byte(`{"role":"assistant","content":"\ud800\/"}`))
	f.Add([]byte("{\"content\" :\n\"a\u2028\" ,\"role\":\"user\"}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var m tidemark.Message
		if json.Unmarshal(data, &m) != nil {
			return
		}
		out := m.AppendJSON(nil)
		if bytes.ContainsAny(out, "\r\n") || !utf8.Valid(out) || !stdjson.Valid(out) {
			t.Fatalf("%q is not one line of JSON", out)
		}
		if utf8.Valid(data) && !bytes.ContainsAny(data, "\r\n") {
			if got, want := contents(t, out), contents(t, data); !reflect.DeepEqual(got, want) {
				t.Fatalf("content %q, came as %q", got, want)
			}
		}
		again := decode(t, string(out))
		if !reflect.DeepEqual(again, m) {
			t.Fatalf("%q decodes to %#v, then to %#v", data, m, again)
		}
		if tidemark.Chain("", again) != tidemark.Chain("", m) || tidemark.Estimate(m) <= 0 {
			t.Fatalf("chain or estimate of %q", data)
		}
	})
}

// contents returns the blocks of a message, or its string, as bytes; by another decoder.
func contents(t *testing.T, data []byte) []string {
	var w struct {
		Content stdjson.RawMessage `json:"content"`
	}
	if err := stdjson.Unmarshal(data, &w); err != nil {
		t.Fatalf("encoding/json refuses %q: %v", data, err)
	}
	var list []stdjson.RawMessage
	if len(w.Content) > 0 && w.Content[0] == '"' {
		return []string{string(w.Content)}
	}
	if err := stdjson.Unmarshal(w.Content, &list); err != nil {
		t.Fatalf("encoding/json refuses %q: %v", data, err)
	}
	out := make([]string, len(list))
	for i, r := range list {
		out[i] = string(r)
	}
	return out
}
