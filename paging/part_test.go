package paging

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// TestParts has a row for what lets inputs and images go. tau is 1.
func TestParts(t *testing.T) {
	for _, row := range []struct{ name, policy, lines, want string }{
		{"an input goes as its result would", "lru", "begin; write /a v; bash x; say", "3: gc t2; 3: input t1"},
		{"that of a failed call, too", "lru", "begin; write /a v fail; bash short; bash short", "3: input t1"},
		{"not before there is a result", "lru", "begin; write /a v none + bash short" + says(3), ""},
		{"but when that comes", "lru", "begin; write /a v none + bash short as s" + says(3) + "; orphan short as t1; say", "5: input t1"},
		{"not while the newest turn names its file", "lru", "begin; write /aa v" + namedTurns(3, "/aa") + "; say", "5: input t1"},
		{"an image, but not in its own turn", "lru", "begin; show png; bash short; bash short; bash short; say; say", "5: image 2:1"},
		{"a document of text", "lru", "begin; show note; say; say", "2: image 2:1"},
		{"an address that is longer than its stub", "lru", "begin; show url; say; say", "2: image 2:1"},
		{"with cost", "cost", "begin; show png; write /a v" + says(14), "3: input t1; 3: image 2:1"},
		{"the paper has neither", "fifo", "begin; show png; write /a v" + says(9), ""},
		{"nor has what others are measured by", "batch", "begin; show png; write /a v" + says(9), ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := run(t, Options{Policy: row.policy, Tau: 1}, strings.Split(row.lines, "; ")); got != row.want {
				t.Errorf("got  %s\nwant %s", got, row.want)
			}
		})
	}
}

// TestImageStub: type and decoded size, and no size where the bytes stand elsewhere.
func TestImageStub(t *testing.T) {
	for kind, want := range map[string]string{
		"png":  "[Paged out: image/png (901 bytes). H]",
		"pdf":  "[Paged out: application/pdf (900 bytes). H]",
		"note": "[Paged out: text/plain (600 bytes). H]",
		"url":  "[Paged out: image. H]",
		`{"type":"image","source":{"type":"base64","media_type":"","data":"` + strings.Repeat("QUJD", 200) + `"}}`:             "[Paged out: image (600 bytes). H]",
		`{"type":"image","source":{"type":"base64","media_type":"a]\\n[b","data":"` + strings.Repeat("QUJD", 200) + `"}}`:      "[Paged out: image (600 bytes). H]",
		`{"type":"document","source":{"type":"base64","media_type":"a\\u0000b","data":"` + strings.Repeat("QUJD", 200) + `"}}`: "[Paged out: document (600 bytes). H]",
	} {
		s := Scanner{Tools: DefaultTools()}
		block := kind
		if block[0] != '{' {
			block = shown(kind)
		}
		m, err := s.Message([]byte(`{"role":"user","content":[` + block + `]}`))
		if err != nil {
			t.Fatal(err)
		}
		p, _ := New(Options{})
		if _, err := p.Step(Step{Append: []Message{m}}); err != nil {
			t.Fatal(err)
		}
		if len(p.pages) != 1 || p.pages[0].Stub("H") != want {
			t.Errorf("%s: %+v, want %s", kind, p.pages, want)
		}
	}
}

// TestStubInput: what stays of an input, and what is said of the rest.
func TestStubInput(t *testing.T) {
	long := strings.Repeat(`line\n`, 100)
	for _, row := range []struct{ name, tool, input, want string }{
		{"what was written", "Write", `{"file_path":"/src/a.go", "content":"` + long + `"}`,
			`{"file_path":"/src/a.go","paged_out":"content: 500 bytes, 100 lines. Re-read the file if needed. H"}`},
		{"two texts and a small value", "Edit", `{"replace_all":false,"old_string":"` + long + `","file_path":"a","new_string":"` + long + `x"}`,
			`{"replace_all":false,"file_path":"a","paged_out":"old_string: 500 bytes, 100 lines; new_string: 501 bytes, 101 lines. Re-read the file if needed. H"}`},
		{"a command is cut short", "Bash", `{"command":"` + long + `","timeout":5}`,
			`{"command":"` + strings.Repeat(`line\n`, 24) + `…","timeout":5,"paged_out":"command: 500 bytes, 100 lines. H"}`},
		{"not within a letter", "Bash", `{"command":"` + strings.Repeat("a", 119) + strings.Repeat("é", 90) + `"}`,
			`{"command":"` + strings.Repeat("a", 119) + `…","paged_out":"command: 299 bytes, 1 lines. H"}`},
		{"a list has no lines", "MultiEdit", `{"file_path":"a","edits":[ {"old_string":"` + long + `" } ]}`,
			`{"file_path":"a","paged_out":"edits: 619 bytes. Re-read the file if needed. H"}`},
		{"many fields", "x", `{"a1":"` + long + `","a2":"` + long + `","a3":"` + long + `","a4":"` + long + `","a5":"` + long + `","a6":[1]}`,
			`{"a6":[1],"paged_out":"a1: 500 bytes, 100 lines; a2: 500 bytes, 100 lines; a3: 500 bytes, 100 lines; a4: 500 bytes, 100 lines; others: 602 bytes. H"}`},
		{"nothing large", "Edit", `{"file_path":"` + strings.Repeat("a", 300) + `","old_string":"a","new_string":"b"}`, ""},
		{"small", "Write", `{"file_path":"a","content":"` + long[:120] + `"}`, ""},
		{"no object", "x", `["` + long + `"]`, ""},
		{"a stub", "Write", `{"file_path":"a","paged_out":"` + long + `"}`, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			want := row.want
			if want == "" {
				want = row.input
			}
			if got := string(DefaultTools().StubInput(row.tool, "H", []byte(row.input))); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}

// FuzzStubInput: a stub is JSON, shorter than what it stands for, and its own stub.
func FuzzStubInput(f *testing.F) {
	long := strings.Repeat(`\u00e9\n\\\"x`, 50)
	f.Add("Write", "h", []byte(` { "file_path" : "/a" , "content" : "`+long+`" } `))
	f.Add("Bash", "", []byte(`{"command":"`+long+`","comm\u0061nd":"`+long+`","k":{"a":[1,2,{"b":null}]}}`))
	f.Add("mcp__x__edit", "[\"\n", []byte(`{"path":"`+long+`","":"`+long+`"}`))
	f.Fuzz(func(t *testing.T, tool, handle string, input []byte) {
		if !json.Valid(input) {
			return
		}
		var whole bytes.Buffer
		if err := json.Compact(&whole, input); err != nil {
			t.Fatal(err)
		}
		tools := DefaultTools()
		stub := tools.StubInput(tool, handle, input)
		if bytes.Equal(stub, input) {
			return
		}
		if !json.Valid(stub) || len(stub) >= whole.Len() {
			t.Errorf("%s has %d bytes, what it stands for %d", stub, len(stub), whole.Len())
		}
		if again := tools.StubInput(tool, handle, stub); !bytes.Equal(again, stub) {
			t.Errorf("the stub of %s is %s", stub, again)
		}
		if other := tools.StubInput(tool, handle, whole.Bytes()); !bytes.Equal(other, stub) {
			t.Errorf("white space changes the stub: %s and %s", stub, other)
		}
	})
}
