package paging

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
)

// scan reads a message.
func scan(t *testing.T, raw string) Message {
	t.Helper()
	s := Scanner{Tools: DefaultTools()}
	m, err := s.Message([]byte(raw))
	if err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return m
}

// TestMessageErrors: what is wrong with a message is said.
func TestMessageErrors(t *testing.T) {
	for raw, want := range map[string]string{
		`[]`:                             "byte 0: a message is an object with role and content",
		``:                               "byte 0: a message is an object with role and content",
		`{"content":"x"}`:                "byte 15: a message without a role",
		`{"role":7,"content":"x"}`:       "byte 24: a message without a role",
		`{"role":"user"}`:                "byte 15: a message without content: want a string or a list of blocks",
		`{"role":"user","content":7}`:    "byte 25: content of a message: want a string or a list of blocks",
		`{"content":{},"role":"user"}`:   "byte 11: content of a message: want a string or a list of blocks",
		`{"role":"user","content":""} 7`: "byte 29: more than one value",
		`{"role":"user","content":[{"type":"tool_result","content":[`: "byte 59: the value is cut off",
		`{"role":"user","content":"a\q"}`:                             "byte 28: unknown escape",
		`{"role":"us\q"}`:                                             "byte 12: unknown escape",
	} {
		s := Scanner{Tools: DefaultTools()}
		if _, err := s.Message([]byte(raw)); !errors.Is(err, tidemark.ErrInvalid) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %q", raw, err, want)
		}
	}
}

// TestMessageRead has a row for what is kept of a message whatever the order of its fields is.
func TestMessageRead(t *testing.T) {
	const result = `{"type":"tool_result","tool_use_id":"a","content":"x"}`
	for _, row := range []struct {
		name, raw     string
		role          tidemark.Role
		typed, speaks bool
		blocks        int
		names         string
	}{
		{"typed", `{"role":"user","content":"see a.go"}`, "user", true, true, 0, "a.go"},
		{"typed, the role behind it", `{"content":"see \u0061.go","role":"user"}`, "user", true, true, 0, "a.go"},
		{"a role with an escape", `{"role":"\u0075ser","content":"see a.go"}`, "user", true, true, 0, "a.go"},
		{"an answer", `{"role":"assistant","content":"see a.go"}`, "assistant", false, false, 0, ""},
		{"a role that has no pages", `{"role":"system","content":7}`, "system", false, false, 0, ""},
		{"results only", `{"role":"user","content":[` + result + `,` + result + `]}`, "user", false, false, 2, ""},
		{"results, the role behind them", `{"content":[` + result + `],"role":"user"}`, "user", false, false, 1, ""},
		{"a result and a text", `{"role":"user","content":[` + result + `,{"text":"b.go","type":"text"},` + result + `]}`, "user", true, true, 2, "b.go"},
		{"a text that is none", `{"role":"user","content":[` + result + `,{"text":["b.go"],"type":"text"}]}`, "user", true, false, 1, ""},
		{"a result in an answer", `{"role":"assistant","content":[` + result + `]}`, "assistant", false, false, 0, ""},
		{"a call of a person", `{"role":"user","content":[{"type":"tool_use","id":"a","name":"Read","input":{}}]}`, "user", true, false, 0, ""},
		{"of two contents the last", `{"role":"user","content":[` + result + `,{"type":"text","text":"a.go"}],"content":[` + result + `,` + result + `]}`, "user", false, false, 2, ""},
		{"one of them before the role", `{"content":"a.go","role":"user","content":[` + result + `]}`, "user", false, false, 1, ""},
		{"one of them behind the role", `{"role":"user","content":[` + result + `],"content":"b.go"}`, "user", true, true, 0, "b.go"},
		{"a text of another kind", `{"role":"user","content":[{"type":"x","text":"a.go"}]}`, "user", true, false, 0, ""},
		{"a text without one", `{"role":"user","content":[{"type":"text"}]}`, "user", true, false, 0, ""},
		{"a text of an answer", `{"role":"assistant","content":[{"type":"text","text":"a.go"}]}`, "assistant", false, false, 0, ""},
		{"kinds that are not known", `{"role":"user","content":["a",7,` + result + `]}`, "user", true, false, 1, ""},
		{"a kind that is not known in an answer", `{"role":"assistant","content":["a",{"type":"x","text":"a.go"},{"type":"tool_use","id":"a"}]}`, "assistant", false, false, 1, ""},
		{"no block", `{"role":"user","content":[]}`, "user", false, false, 0, ""},
	} {
		m := scan(t, row.raw)
		if m.Role != row.role || m.Typed != row.typed || (m.said != nil) != row.speaks || len(m.Blocks) != row.blocks || strings.Join(m.Names, " ") != row.names || m.Bytes != len(row.raw) {
			t.Errorf("%s: role %s, typed %v, speaks %v, %d blocks, names %q, %d bytes", row.name, m.Role, m.Typed, m.said != nil, len(m.Blocks), m.Names, m.Bytes)
		}
	}
}

// TestResultRead has a row for each form of a result's content: where it stands, and its text.
func TestResultRead(t *testing.T) {
	for _, row := range []struct {
		name, content string // "" is none
		text          string // that is hashed
		size, lines   int
		paged, clear  uint8
	}{
		{"no content", ``, "", 0, 0, 0, 0},
		{"a text", `"ab\ncd"`, "ab\ncd", 5, 2, 1, 1},
		{"with an end of its last line", `"ab\ncd\n"`, "ab\ncd\n", 6, 2, 1, 1},
		{"of nothing", `""`, "", 0, 0, 1, 1},
		{"texts", `[ {"type":"text","text":"ab"}, {"text":"\u0063\nd","x":1,"type":"text"} ]`, "ab\xffc\nd", 5, 2, 0, 0},
		{"one text", `[{"type":"text","text":"ab","cache_control":{"type":"ephemeral"}}]`, "ab", 2, 1, 0, 0},
		{"a text beside another string", `[{"type":"text","text":"ab","id":"zz"}]`, "ab", 2, 1, 0, 0},
		{"no texts", `[]`, "", 0, 0, 0, 0},
		{"null", `null`, "null", 4, 0, 0, 0},
		{"an object", `{ "a" : 1 }`, `{"a":1}`, 7, 0, 0, 0},
		{"a text and what is none", `[{"type":"text","text":"ab"}, 7]`, `[{"type":"text","text":"ab"},7]`, 31, 0, 0, 0},
		{"a text of another type", `[{"type":"x","text":"ab"}]`, `[{"type":"x","text":"ab"}]`, 26, 0, 0, 0},
		{"a text that is no string", `[{"type":"text","text":7}]`, `[{"type":"text","text":7}]`, 26, 0, 0, 0},
		{"a stub of a page", `"[Paged out: x"`, "[Paged out: x", 13, 1, 13, 2},
		{"a stub of garbage", `"[Cleared: x"`, "[Cleared: x", 11, 1, 2, 11},
		{"nearly one", `"[Pagex"`, "[Pagex", 6, 1, 6, 2},
		{"its beginning", `"[Paged"`, "[Paged", 6, 1, 7, 2},
	} {
		raw := `{"role":"user","content":[{"type":"text","text":"é"}, {"type":"tool_result", "content":` + row.content + `, "is_error":true,"tool_use_id":"\u0061"}, 7 ]}`
		if row.content == "" {
			raw = strings.Replace(raw, ` "content":,`, "", 1)
		}
		m := scan(t, raw)
		if len(m.Blocks) != 1 {
			t.Fatalf("%s: %d blocks", row.name, len(m.Blocks))
		}
		b := m.Blocks[0]
		var whole, content bytes.Buffer
		if err := json.Compact(&whole, []byte(raw)); err != nil {
			t.Fatal(err)
		}
		_ = json.Compact(&content, []byte(row.content))
		if b.what != answered || b.index != 1 || b.ID != "a" || !b.Err || row.content != "" && whole.String()[b.at:b.at+b.wire] != content.String() || b.wire != content.Len() {
			t.Errorf("%s: %+v stands at %d", row.name, b, b.at)
		}
		if b.Hash != sha256.Sum256([]byte(row.text)) || b.Size != row.size || b.Lines != row.lines || b.paged != row.paged || b.clear != row.clear {
			t.Errorf("%s: %d bytes, %d lines, as a stub %d and %d; want %d, %d, %d, %d", row.name, b.Size, b.Lines, b.paged, b.clear, row.size, row.lines, row.paged, row.clear)
		}
		if m.Bytes != whole.Len() {
			t.Errorf("%s: %d bytes, want %d", row.name, m.Bytes, whole.Len())
		}
	}
}

// TestCallRead: an input that a stub can stand for has the stub's size and a hash of its compact form, from its least size on.
func TestCallRead(t *testing.T) {
	for _, n := range []int{leastInput - 1, leastInput, leastInput + 50} {
		input := `{"file_path":"a.go", "content":"` + strings.Repeat("x", n-len(`{"file_path":"a.go","content":""}`)) + `"}`
		raw := `{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"Write", "input": ` + input + ` }]}`
		m := scan(t, raw)
		var whole, plain bytes.Buffer
		_ = json.Compact(&whole, []byte(raw))
		_ = json.Compact(&plain, []byte(input))
		b := m.Blocks[0]
		if len(m.Blocks) != 1 || b.what != called || b.Size != n || whole.String()[b.at:b.at+b.wire] != plain.String() || b.Call.Path != "a.go" || b.Call.Kind != Changes {
			t.Fatalf("%d bytes: %+v", n, b)
		}
		if n < leastInput {
			if b.stub != n || b.Hash != [sha256.Size]byte{} {
				t.Errorf("%d bytes: a stub of %d", n, b.stub)
			}
			continue
		}
		stub := DefaultTools().StubInput("Write", "", plain.Bytes())
		if b.stub != len(stub) || b.common != len(`{"file_path":"a.go","`) || b.Hash != sha256.Sum256(plain.Bytes()) {
			t.Errorf("%d bytes: a stub of %d with %d as before, want %s", n, b.stub, b.common, stub)
		}
	}
	if b := scan(t, `{"role":"assistant","content":[{"type":"tool_use","name":"Read"}]}`).Blocks[0]; b.wire != 0 || b.Size != 0 || b.stub != 0 || b.Call.Tool != "Read" {
		t.Errorf("a call without input: %+v", b)
	}
}

// TestImageRead: an image is kept with its stub, whatever white space it came with, and in an answer only by what it counts.
func TestImageRead(t *testing.T) {
	const image = `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"QUJD\nQUI="}}`
	const spaced = ` { "type" : "image" , "source" : { "data":"QUJD\nQUI=", "type" : "base64", "media_type":"image/png" } } `
	const stub = `{"type":"text","text":"[Paged out: image/png (5 bytes).]"}`
	m := scan(t, `{"role":"user","content":[`+image+`,`+spaced+`]}`)
	if len(m.Blocks) != 2 || !m.Typed {
		t.Fatalf("%+v", m)
	}
	for i, b := range m.Blocks {
		var plain bytes.Buffer
		_ = json.Compact(&plain, []byte([]string{image, spaced}[i]))
		at := len(`{"role":"user","content":[`) + i*(len(image)+1)
		want := Block{what: pictured, index: i, Hash: sha256.Sum256(plain.Bytes()), Size: len(image), media: "image/png", decoded: 5, inline: inline{data: len(`QUJD\nQUI=`), images: 1},
			at: at, wire: len(image), stub: len(stub), common: len(`{"type":"`)}
		if !reflect.DeepEqual(b, want) {
			t.Errorf("got  %+v\nwant %+v", b, want)
		}
	}
	answer := scan(t, `{"role":"assistant","content":[`+image+`]}`)
	want := Block{what: pictured, Size: len(image), inline: inline{data: 10, images: 1}, at: len(`{"role":"assistant","content":[`), wire: len(image)}
	if len(answer.Blocks) != 1 || !reflect.DeepEqual(answer.Blocks[0], want) || answer.Typed {
		t.Errorf("got  %+v\nwant %+v", answer.Blocks, want)
	}
}

// TestInlineOf: what counts as an image, and how much of it is data.
func TestInlineOf(t *testing.T) {
	for block, want := range map[string]inline{
		`{"type":"image","source":{"type":"base64","data":"QUJD"}}`:       {4, 1},
		`{"type":"image","source":{"type":"base64","data":""}}`:           {0, 1},
		`{"type":"image","source":{"type":"base64","data":7}}`:            {0, 1},
		`{"type":"image","source":{"type":"url","url":"x"}}`:              {0, 1},
		`{"type":"image","source":{}}`:                                    {0, 1},
		`{"type":"image","source":"x"}`:                                   {},
		`{"type":"image"}`:                                                {},
		`{"type":"document","source":{"type":"text","data":"abc"}}`:       {},
		`{"type":"document","source":{"data":"abc","type":"text"}}`:       {},
		`{"type":"document","source":{"type":"content","content":["a"]}}`: {},
		`{"type":"document","source":{"type":"base64","data":"QUI="}}`:    {4, 1},
	} {
		if m := scan(t, `{"role":"user","content":[`+block+`]}`); len(m.Blocks) != 1 || m.Blocks[0].inline != want {
			t.Errorf("%s by itself: %+v", block, m.Blocks)
		}
		twice := inline{2 * want.data, 2 * want.images}
		if m := scan(t, `{"role":"user","content":[{"type":"tool_result","content":[`+block+`,{"source":{"type":"base64","data":"QUJD"},"type":"x"},`+block+`]}]}`); m.Blocks[0].inline != twice {
			t.Errorf("%s in a result: %+v, want %+v", block, m.Blocks[0].inline, twice)
		}
	}
}

// TestMediaType: the type of an image that a stub may name, by each byte and by its length.
func TestMediaType(t *testing.T) {
	for c := range 256 {
		s := "a" + string([]byte{byte(c)}) + "b"
		want := s
		if c <= ' ' || c >= 0x7f || strings.IndexByte(`"\[]`, byte(c)) >= 0 {
			want = ""
		}
		if got := mediaType(s); got != want {
			t.Errorf("byte %#x: %q", c, got)
		}
	}
	for n, want := range map[int]bool{0: false, 1: true, maxMedia: true, maxMedia + 1: false} {
		if got := mediaType(strings.Repeat("a", n)); (got != "") != want {
			t.Errorf("%d bytes: %q", n, got)
		}
	}
}

// TestOfDecoded: a decoded message is kept as the same message read from JSON.
func TestOfDecoded(t *testing.T) {
	s := &Scanner{Tools: DefaultTools()}
	for _, raw := range odd() {
		m, err := s.Of(parse(t, raw))
		if err != nil || !reflect.DeepEqual(m, scan(t, raw)) {
			t.Errorf("%v: %+v", err, m)
		}
	}
}

// TestStubNameBytes: each byte of a name stands as it is, or as what cannot end a line or a bracket.
func TestStubNameBytes(t *testing.T) {
	for c := range 256 {
		name := "a" + string([]byte{byte(c)})
		want := name
		switch {
		case c == '[':
			want = "a("
		case c == ']':
			want = "a)"
		case c < ' ' || c == 0x7f:
			want = "a_"
		case c > 0x7f:
			want = "a\ufffd"
		}
		if got := StubName(name); got != want {
			t.Errorf("byte %#x: %q, want %q", c, got, want)
		}
		inside := c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || slices.Contains([]byte("._-"), byte(c))
		if n := bracketed("[" + name + "]x"); (n == 4) != inside && c != '[' && c != ']' {
			t.Errorf("a bracket around byte %#x has %d bytes", c, n)
		}
	}
	for s, want := range map[string]int{"": 0, "[": 0, "[]": 2, "[]]": 2, "[[]": 0, "[[a]b]c": 6, "a[b]": 0, "]": 0} {
		if got := bracketed(s); got != want {
			t.Errorf("%q: a bracket of %d bytes, want %d", s, got, want)
		}
	}
}
