package paging

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
)

// TestStubInputBounds: what a stub keeps, at its bounds: a value of 40 bytes, a text of 120, a path of 1,024, twelve fields, and of
// what left four by name.
func TestStubInputBounds(t *testing.T) {
	x := func(n int) string { return strings.Repeat("x", n) }
	big := `"big":"` + x(300) + `"`
	const left = `big: 300 bytes, 1 lines`
	var twelve, fourteen strings.Builder
	for i := range 14 {
		fmt.Fprintf(&fourteen, `"f%d":%d,`, i, i)
		if i < 12 {
			fmt.Fprintf(&twelve, `"f%d":%d,`, i, i)
		}
	}
	for _, row := range []struct{ name, tool, input, want string }{
		{"a small value", "t", `{"v":"` + x(38) + `",` + big + `}`, `{"v":"` + x(38) + `","paged_out":"` + left + `."}`},
		{"a byte more", "t", `{"v":"` + x(39) + `",` + big + `}`, `{"paged_out":"v: 39 bytes, 1 lines; ` + left + `."}`},
		{"a small list", "t", `{"v":[` + strings.Repeat("1,", 18) + `23],` + big + `}`, `{"v":[` + strings.Repeat("1,", 18) + `23],"paged_out":"` + left + `."}`},
		{"a list of a byte more", "t", `{"v":[` + strings.Repeat("1,", 18) + `234],` + big + `}`, `{"paged_out":"v: 41 bytes; ` + left + `."}`},
		{"a text that says what it does", "t", `{"query":"` + x(120) + `",` + big + `}`, `{"query":"` + x(120) + `","paged_out":"` + left + `."}`},
		{"a byte of it more", "t", `{"query":"` + x(121) + `",` + big + `}`, `{"query":"` + x(120) + `…","paged_out":"query: 121 bytes, 1 lines; ` + left + `."}`},
		{"one with escapes, by its text", "t", `{"query":"` + strings.Repeat(`\u0078`, 120) + `",` + big + `}`, `{"query":"` + strings.Repeat(`\u0078`, 120) + `","paged_out":"` + left + `."}`},
		{"a path", "Write", `{"path":"` + x(1022) + `",` + big + `}`, `{"path":"` + x(1022) + `","paged_out":"` + left + `. Re-read the file if needed."}`},
		{"a path of a byte more", "Write", `{"path":"` + x(1023) + `",` + big + `}`, `{"path":"` + x(120) + `…","paged_out":"path: 1023 bytes, 1 lines; ` + left + `."}`},
		{"a path that is a list", "Write", `{"path":["` + x(100) + `"],` + big + `}`, `{"path":["` + x(100) + `"],"paged_out":"` + left + `. Re-read the file if needed."}`},
		{"a path of a tool that only looks", "t", `{"path":"/a",` + big + `}`, `{"path":"/a","paged_out":"` + left + `."}`},
		{"a path as the tool's row has it", "ed", `{"path":"` + x(50) + `","to":"/a",` + big + `}`, `{"to":"/a","paged_out":"path: 50 bytes, 1 lines; ` + left + `. Re-read the file if needed."}`},
		{"twelve fields", "t", `{` + twelve.String() + big + `}`, `{` + twelve.String() + `"paged_out":"` + left + `."}`},
		{"fourteen", "t", `{` + fourteen.String() + big + `}`, `{` + twelve.String() + `"paged_out":"f12: 2 bytes; f13: 2 bytes; ` + left + `."}`},
		{"fourteen, and a value of a byte", "t", `{` + fourteen.String() + big + `,"a":"` + x(60) + `","b":7}`, `{` + twelve.String() + `"paged_out":"f12: 2 bytes; f13: 2 bytes; ` + left + `; a: 60 bytes, 1 lines; others: 1 bytes."}`},
		{"four that left", "t", `{"a":"` + x(60) + `","b":"` + x(60) + `","c":"` + x(60) + `","d":"` + x(60) + `"}`,
			`{"paged_out":"a: 60 bytes, 1 lines; b: 60 bytes, 1 lines; c: 60 bytes, 1 lines; d: 60 bytes, 1 lines."}`},
		{"six that left", "t", `{"a":"` + x(60) + `","b":"` + x(60) + `","c":"` + x(60) + `","d":"` + x(60) + `","e":"` + x(60) + `","f":[` + strings.Repeat("1,", 30) + `1]}`,
			`{"paged_out":"a: 60 bytes, 1 lines; b: 60 bytes, 1 lines; c: 60 bytes, 1 lines; d: 60 bytes, 1 lines; others: 125 bytes."}`},
		{"a long name of a field", "t", `{"` + x(40) + `":"` + x(60) + `","` + x(41) + `":"` + x(60) + `",` + big + `}`,
			`{"paged_out":"` + x(40) + `: 60 bytes, 1 lines; ` + x(40) + `…: 60 bytes, 1 lines; ` + left + `."}`},
		{"texts with and without an end of line", "t", `{"a":"` + x(60) + `\n","b":"\n` + x(60) + `","c":"",` + big + `}`, `{"c":"","paged_out":"a: 61 bytes, 1 lines; b: 61 bytes, 2 lines; ` + left + `."}`},
	} {
		table := DefaultTools().With(map[string]Tool{"ed": {Kind: Changes, Path: []string{"to"}}})
		if got := string(table.StubInput(row.tool, "", []byte(row.input))); got != row.want {
			t.Errorf("%s:\n got %s\nwant %s", row.name, got, row.want)
		}
	}
}

// TestStubInputLeast: from 200 bytes as compact JSON on there is a stub, if it is shorter.
func TestStubInputLeast(t *testing.T) {
	const rest = len(`{"v":""}`)
	table := DefaultTools()
	for n, want := range map[int]bool{leastInput - 1: false, leastInput: true} {
		for _, space := range []string{"", "  "} {
			input := []byte(`{"v":` + space + `"` + strings.Repeat("x", n-rest) + `"` + space + `}` + space)
			if got := table.StubInput("t", "", input); !bytes.Equal(got, input) != want {
				t.Errorf("%d bytes: %s", n, got)
			}
		}
	}
	input := []byte(`{"v":"` + strings.Repeat("x", 300) + `"}`)
	stub := `{"paged_out":"v: 300 bytes, 1 lines. "}`
	for more, want := range map[int]bool{len(input) - len(stub) - 1: true, len(input) - len(stub): false, len(input): false} {
		if got := table.StubInput("t", strings.Repeat("h", more), input); !bytes.Equal(got, input) != want || len(got) > len(input) {
			t.Errorf("a handle of %d bytes: %d of %d bytes", more, len(got), len(input))
		}
	}
	for _, input := range []string{`{"v":"` + strings.Repeat("x", 300) + `"} 7`, `{"v":"` + strings.Repeat("x", 300) + `"`, `["` + strings.Repeat("x", 300) + `"]`, ``} {
		if got := table.StubInput("t", "", []byte(input)); string(got) != input {
			t.Errorf("what is no object became %s", got)
		}
	}
}

// TestInputPage: an input is a page from the least size on, if its stub is shorter, and never one with which the model takes part.
func TestInputPage(t *testing.T) {
	write := func(n int) string {
		return `"Write","input":{"file_path":"a","content":"` + strings.Repeat("x", n-len(`{"file_path":"a","content":""}`)) + `"}`
	}
	for _, row := range []struct {
		name, call string
		want       int
	}{
		{"the least size", write(500), 1}, {"a byte less", write(499), 0},
		{"a path only", `"Write","input":{"file_path":"` + strings.Repeat("a", 900) + `"}`, 0},
		{"a release", `"memory_release","input":{"paths":["a"],"reason":"` + strings.Repeat("x", 900) + `"}`, 0},
		{"a fault", `"memory_fault","input":{"paths":["a"],"reason":"` + strings.Repeat("x", 900) + `"}`, 0},
		{"a release of nothing", `"memory_release","input":{"reason":"` + strings.Repeat("x", 900) + `"}`, 1},
	} {
		for policy, more := range map[string]int{"cost": row.want, "lru": row.want, "fifo": 0, "batch": 0} {
			p, err := New(Options{Policy: policy})
			if err != nil {
				t.Fatal(err)
			}
			m := scan(t, `{"role":"assistant","content":[{"type":"tool_use","id":"t","name":`+row.call+`}]}`)
			if _, err := p.Step(Step{Append: []Message{m}}); err != nil {
				t.Fatal(err)
			}
			if len(p.pages) != more {
				t.Errorf("%s, %s: %d pages, want %d", policy, row.name, len(p.pages), more)
			}
		}
	}
}

// TestImagePage: an image is a page from the least size on, as it stands there or decoded, if its stub is shorter.
func TestImagePage(t *testing.T) {
	for _, row := range []struct {
		name          string
		wire, decoded int
		stub, least   int
		want          int
	}{
		{"the least size", 500, 300, 60, 500, 1}, {"a byte less", 499, 300, 60, 500, 0}, {"decoded it is of the least size", 400, 500, 60, 500, 1},
		{"its stub is as long", 60, 500, 60, 1, 0}, {"its stub is a byte shorter", 61, 500, 60, 1, 1}, {"of an answer", 500, 500, 0, 1, 0},
	} {
		p, err := New(Options{MinBytes: row.least})
		if err != nil {
			t.Fatal(err)
		}
		b := Block{what: pictured, index: 3, wire: row.wire, decoded: row.decoded, stub: row.stub, at: 9, common: 7, media: "image/png", inline: inline{5, 1}}
		if _, err := p.Step(Step{Append: []Message{{Role: tidemark.User, Bytes: 600, Typed: true, Blocks: []Block{b}}}}); err != nil {
			t.Fatal(err)
		}
		if len(p.pages) != row.want {
			t.Errorf("%s: %d pages", row.name, len(p.pages))
			continue
		}
		for _, g := range p.pages {
			if g.Part != Image || g.Block != 3 || g.Size != row.decoded || g.Media != "image/png" || g.at != 9 || g.wire != row.wire || g.common != 7 || g.short != row.stub || g.inline != b.inline || len(p.pictures) != 1 {
				t.Errorf("%s: %+v", row.name, g)
			}
		}
	}
}

// TestSubstitute: a value is put in the place of another, of two with one name of the last, and all else stays.
func TestSubstitute(t *testing.T) {
	for _, row := range []struct{ object, want, err string }{
		{`{"a":1, "input" : {"b":[2]} ,"c":3}`, `{"a":1, "input" : "x" ,"c":3}`, ""},
		{`{"input":1,"input":2}`, `{"input":1,"input":"x"}`, ""},
		{`{"inp\u0075t":1}`, `{"inp\u0075t":"x"}`, ""},
		{`{"a":{"input":1}}`, "", "a block without input"},
		{`{}`, "", "a block without input"},
		{`[1]`, "", "a block is no object"},
		{`{"input":1`, "", "byte 10"},
	} {
		got, err := Substitute([]byte(row.object), "input", []byte(`"x"`))
		if string(got) != row.want || (err == nil) != (row.err == "") || err != nil && (!errors.Is(err, tidemark.ErrInvalid) || !strings.Contains(err.Error(), row.err)) {
			t.Errorf("%s: %s, %v; want %s, %q", row.object, got, err, row.want, row.err)
		}
	}
}

// TestShorter: what stands for a page must be shorter than the page, by a byte at least.
func TestShorter(t *testing.T) {
	s := &Scanner{Tools: DefaultTools()}
	result := &Page{Call: Call{Tool: "Bash"}, Size: 9, Lines: 1}
	image := &Page{Part: Image, Media: "image/png", Size: 9}
	for _, row := range []struct {
		name string
		page *Page
		stub int
	}{
		{"a result", result, len(`"[Cleared: Bash (9 bytes, 1 lines). get H]"`)},
		{"an image", image, len(`{"type":"text","text":"[Paged out: image/png (9 bytes). get H]"}`)},
	} {
		for more, want := range map[int]bool{-1: false, 0: false, 1: true} {
			row.page.wire = row.stub + more
			if got := s.Shorter(tidemark.Block{}, row.page, "get H"); got != want {
				t.Errorf("%s of %d bytes with a stub of %d: %v", row.name, row.page.wire, row.stub, got)
			}
		}
	}
	for input, want := range map[string]bool{`{"v":"` + strings.Repeat("x", 300) + `"}`: true, `{ "v" : "` + strings.Repeat("x", 300) + `" }`: true, `{"v":"` + strings.Repeat("x", 100) + `"}`: false, `{"v" : "x"}`: false} {
		if got := s.Shorter(tidemark.Block{Name: "t", Input: []byte(input)}, &Page{Part: Input}, ""); got != want {
			t.Errorf("an input of %d bytes: %v", len(input), got)
		}
	}
}

// TestSmallHelpers: lines end with their end or with the text; names are the same whatever their capitals; what two texts share ends with
// the shorter.
func TestSmallHelpers(t *testing.T) {
	for text, want := range map[string]int{"": 0, "a": 1, "a\n": 1, "a\nb": 2, "\n": 1, "\n\n": 2} {
		if got := countLines([]byte(text)); got != want {
			t.Errorf("%q has %d lines", text, got)
		}
	}
	for _, row := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"a", "", 0}, {"abc", "abd", 2}, {"abc", "abcd", 3}, {"abcd", "abc", 3}, {"xbc", "abc", 0}} {
		if got := sameBegin([]byte(row.a), []byte(row.b)); got != row.want {
			t.Errorf("%q and %q share %d", row.a, row.b, got)
		}
	}
	if !has([]string{"a", "file_path"}, "FilePath") || has([]string{"a"}, "b") || has(nil, "a") {
		t.Error("a name is not told")
	}
	if got := cutShort(strings.Repeat("é", 30)); got != strings.Repeat("é", 20)+"…" {
		t.Errorf("%q", got)
	}
	if got := cutShort("a" + strings.Repeat("é", 30)); got != "a"+strings.Repeat("é", 19)+"…" {
		t.Errorf("%q", got)
	}
}
