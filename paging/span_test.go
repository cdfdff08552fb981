package paging

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"
)

// TestCovers: which range of a file has all of another one.
func TestCovers(t *testing.T) {
	var whole Range
	some, rest, odd := Range{From: 10, To: 20}, Range{From: 10}, Range{Odd: "pages 1"}
	for _, row := range []struct {
		r, s Range
		want bool
	}{
		{whole, whole, true}, {whole, some, true}, {whole, rest, true}, {whole, odd, true},
		{some, whole, false}, {rest, whole, false}, {odd, whole, false},
		{odd, odd, true}, {odd, Range{Odd: "pages 2"}, false}, {odd, some, false}, {some, odd, false}, {rest, odd, false},
		{some, some, true}, {some, Range{From: 11, To: 19}, true}, {some, Range{From: 10, To: 19}, true}, {some, Range{From: 11, To: 20}, true},
		{some, Range{From: 9, To: 20}, false}, {some, Range{From: 10, To: 21}, false}, {some, rest, false}, {some, Range{From: 15}, false},
		{rest, some, true}, {rest, rest, true}, {rest, Range{From: 11}, true}, {rest, Range{From: 9}, false}, {rest, Range{From: 9, To: 12}, false},
	} {
		if got := row.r.Covers(row.s); got != row.want {
			t.Errorf("%+v covers %+v: %v", row.r, row.s, got)
		}
	}
}

// TestSpan has a row for each form in which tools name a range.
func TestSpan(t *testing.T) {
	lines := func(from, to int64) Range { return Range{From: from, To: to} }
	odd := func(s string) Range { return Range{Odd: s} }
	var whole Range
	const far = 1 << 40
	for _, row := range []struct {
		input string
		want  Range
	}{
		{`{}`, whole}, {`[1]`, whole}, {`{"offset":null,"limit":null}`, whole},
		{`{"pages":"1-5"}`, odd("pages 1-5")}, {`{"pages":3}`, odd("pages 3")}, {`{"pages":null}`, whole}, {`{"pages":" "}`, whole}, {`{"pages":" 2 "}`, odd("pages 2")},
		{`{"tail":1}`, odd("last 1 lines")}, {`{"tail":0}`, whole}, {`{"tail":-1}`, whole}, {`{"tail":"7"}`, odd("last 7 lines")},
		{`{"head":1}`, lines(1, 1)}, {`{"head":20}`, lines(1, 20)}, {`{"head":0}`, whole}, {`{"head":-1}`, whole},
		{`{"view_range":[5,9]}`, lines(5, 9)}, {`{"view_range":[5,-1]}`, lines(5, 0)}, {`{"view_range":[5,0]}`, lines(5, 0)}, {`{"view_range":[5,1]}`, lines(5, 1)},
		{`{"view_range":[0,3]}`, lines(1, 3)}, {`{"view_range":[1,-1]}`, whole}, {`{"view_range":[2,-1]}`, lines(2, 0)},
		{`{"view_range":[1,2,3]}`, whole}, {`{"view_range":[5]}`, whole}, {`{"view_range":"5,9"}`, whole},
		{`{"should_read_entire_file":true,"start_line_one_indexed":5}`, whole}, {`{"should_read_entire_file":false,"start_line_one_indexed":5}`, lines(5, 0)},
		{`{"start_line":5}`, lines(5, 0)}, {`{"end_line":9}`, lines(1, 9)}, {`{"start_line":3,"end_line":9}`, lines(3, 9)}, {`{"start_line":3,"end_line":-1}`, lines(3, 0)}, {`{"start_line":3,"end_line":1}`, lines(3, 1)},
		{`{"line_start":3,"line_end":9}`, lines(3, 9)}, {`{"start_line_one_indexed":3,"end_line_one_indexed_inclusive":9}`, lines(3, 9)}, {`{"from_line":3,"to_line":9}`, lines(3, 9)},
		{`{"start_line":0,"end_line":0}`, whole}, {`{"start_line":-4,"end_line":9}`, lines(1, 9)},
		{`{"offset":10}`, lines(10, 0)}, {`{"offset":2}`, lines(2, 0)}, {`{"offset":1}`, whole}, {`{"offset":0}`, whole},
		{`{"offset":10,"limit":5}`, lines(10, 14)}, {`{"offset":10,"limit":1}`, lines(10, 10)}, {`{"offset":10,"limit":0}`, lines(10, 0)}, {`{"offset":10,"limit":-5}`, lines(10, 0)}, {`{"offset":10,"length":5}`, lines(10, 14)},
		{`{"offset":0,"limit":5}`, lines(1, 5)}, {`{"offset":1,"limit":5}`, lines(1, 5)}, {`{"limit":5}`, lines(1, 5)},
		{`{"offset":-3}`, odd("offset -3 limit ")}, {`{"offset":-1,"limit":2}`, odd("offset -1 limit 2")},
		{`{"offset":10,"limit":1099511627776}`, lines(10, 0)}, {`{"offset":10,"limit":1099511627775}`, lines(10, far+8)},
		{`{"offset":1099511627776,"limit":5}`, lines(far, 0)}, {`{"offset":1099511627775,"limit":5}`, lines(far-1, far+3)},
		{`{"offset":"10","limit":" 5 "}`, lines(10, 14)}, {`{"offset":1e1}`, lines(10, 0)}, {`{"offset":10.5}`, whole}, {`{"offset":"ten"}`, whole}, {`{"offset":"NaN"}`, whole}, {`{"offset":[10]}`, whole},
		{`{"head":0,"offset":5}`, lines(5, 0)}, {`{"tail":0,"offset":5}`, lines(5, 0)}, {`{"offset":2,"limit":0,"length":5}`, lines(2, 6)},
		{`{"pages":"2","tail":3}`, odd("pages 2")}, {`{"tail":3,"head":2}`, odd("last 3 lines")}, {`{"head":2,"view_range":[5,9]}`, lines(1, 2)},
		{`{"view_range":[5,9],"start_line":3}`, lines(5, 9)}, {`{"start_line":3,"offset":9}`, lines(3, 0)}, {`{"offset":1,"offset":7}`, lines(7, 0)},
	} {
		if got := fields([]byte(row.input)).span(); got != row.want {
			t.Errorf("%s: %+v, want %+v", row.input, got, row.want)
		}
	}
}

// TestBounded: a name of up to its bound stays; a longer one keeps its beginning and is told apart by its hash.
func TestBounded(t *testing.T) {
	cut := func(name string, left int) string {
		sum := sha256.Sum256([]byte(name))
		return name[:left] + "…" + hex.EncodeToString(sum[:8])
	}
	long, wide := strings.Repeat("a", maxName), "a"+strings.Repeat("é", maxName)
	for name, want := range map[string]string{"": "", "a": "a", long: long, long + "b": cut(long+"b", maxName-40), long + "c": cut(long+"c", maxName-40), wide: cut(wide, maxName-41)} {
		if got := bounded(name); got != want {
			t.Errorf("%.20s of %d bytes: %q, want %q", name, len(name), got, want)
		}
	}
}

// TestPatched: the files that a patch names, in either form and each as often as it is named, the first apart; no more than so many.
func TestPatched(t *testing.T) {
	table := DefaultTools()
	c := table.Call("apply_patch", []byte(`{"input":"*** Begin Patch\n*** Update File: x/../a.go\n*** Move to: b.go\n--- not a file\n*** Delete File:  c.go \n*** Add File: \n*** Update File: a.go\n","patch":"--- a/d.go\n+++ b/d.go\n+++ b/a.go\n"}`))
	if got := c.Path + " " + strings.Join(c.More, " "); got != "a.go b.go c.go d.go d.go" || c.Kind != Changes {
		t.Errorf("%q, kind %d", got, c.Kind)
	}
	for n, want := range map[int]int{1: 0, 2: 1, maxPatched: maxPatched - 1, maxPatched + 1: maxPatched, maxPatched + 2: maxPatched, 2 * maxPatched: maxPatched} {
		var patch strings.Builder
		for i := range n {
			patch.WriteString(`*** Add File: f` + strings.Repeat("x", i) + `\n`)
		}
		if c := table.Call("apply_patch", []byte(`{"input":"`+patch.String()+`"}`)); len(c.More) != want || c.Path != "f" {
			t.Errorf("%d files: %q and %d more, want %d", n, c.Path, len(c.More), want)
		}
	}
	if c := table.Call("apply_patch", []byte(`{"input":"*** Begin Patch\n"}`)); c.Kind != Looks || c.Path != "" {
		t.Errorf("a patch of no file: %+v", c)
	}
}

// TestCallTells: which files a call names, and whether it changes one, as episodes ask.
func TestCallTells(t *testing.T) {
	table := DefaultTools().With(map[string]Tool{"Peek_At": {Kind: Reads}, "poke": {Kind: Changes, Path: []string{"what"}}, "look": {}, "peer": {Kind: Reads, Verb: "do", Views: []string{"show"}}})
	for _, row := range []struct {
		tool, input, paths string
		changes            bool
	}{
		{"Read", `{"file_path":"/a/../b"}`, "/b", false},
		{"Write", `{"file_path":"/b"}`, "/b", true},
		{"Write", `{}`, "", true},
		{"apply_patch", `{"input":"*** Add File: a\n*** Add File: b\n"}`, "a b", true},
		{"text_editor", `{"command":"view","path":"/b"}`, "/b", false},
		{"text_editor", `{"command":"create","path":"/b"}`, "/b", true},
		{"text_editor", `{"path":"/b"}`, "/b", true},
		{"text_editor", ``, "", true},
		{"mcp__disk__write_file", `{"path":"/b"}`, "/b", true},
		{"disk__write_file", `{"path":"/b"}`, "", false},
		{"mcp__write_file", `{"path":"/b"}`, "/b", true},
		{"Bash", `{"command":"view","path":"/b"}`, "", false},
		{"peekat", `{"target_file":"/b"}`, "/b", false},
		{"poke", `{"what":"/b","path":"/c"}`, "/b", true},
		{"look", `{"path":"/b"}`, "", false},
		{"peer", `{"do":"poke","path":"/b"}`, "/b", false},
	} {
		input := []byte(row.input)
		if got := strings.Join(table.Paths(row.tool, input), " "); got != row.paths || table.Changes(row.tool, input) != row.changes {
			t.Errorf("%s %s: names %q, changes %v; want %q and %v", row.tool, row.input, got, table.Changes(row.tool, input), row.paths, row.changes)
		}
	}
	if _, ok := DefaultTools()["peekat"]; ok || len(table) != len(DefaultTools())+4 {
		t.Errorf("%d rows, want those of the default and four", len(table))
	}
	if got := table.Paths("Bash", nil); got != nil {
		t.Errorf("of no file: %q", got)
	}
}

// TestTextOf: of two fields of one name the last counts, and of what is no text nothing.
func TestTextOf(t *testing.T) {
	f := fields([]byte(`{"Old_Path":"x","path":"a","Path":"\u0062","n":7,"m":{"path":"c"},"e":""}`))
	for name, want := range map[string]string{"path": "b", "old-path": "x", "oldPath": "x", "n": "", "m": "", "e": "", "z": ""} {
		if got := f.text(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if f := fields([]byte(`{"path":"a",`)); f != nil {
		t.Errorf("of what is no object: %d fields", len(f))
	}
}
