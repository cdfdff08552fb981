package compaction

import (
	"fmt"
	"strings"
	"testing"
)

// TestCutLine: a line is cut to so many UTF-16 units with its mark.
func TestCutLine(t *testing.T) {
	for _, row := range []struct {
		line  string
		units int
		want  string
	}{
		{"abc", 3, "abc"}, {"abcd", 3, "ab…"}, {"éé", 2, "éé"}, {"ééé", 2, "é…"}, {"a🌊", 3, "a🌊"}, {"a🌊b", 3, "a…"}, {"🌊🌊", 3, "🌊…"}, {"🌊b", 2, "…"}, {"abc", 1, "…"}, {"abc", 0, "…"}, {"abc", -1, "…"}, {"", 0, ""},
	} {
		if got := cutLine(row.line, row.units); got != row.want {
			t.Errorf("%q in %d: %q, want %q", row.line, row.units, got, row.want)
		}
	}
}

// TestClean: of a line a terminal's leftovers and control characters go.
func TestClean(t *testing.T) {
	for line, want := range map[string]string{
		"a": "a", " a \t\r": " a", "x\ry": "y", "x\ry\r": "y", "a\tb": "a b", "\x00a\x7fb\x1f": "ab", " \t": "", "": "", "a\xffb": "ab", "\x01 ": "", " \x01x": " x", "~\u0080é": "~\u0080é",
	} {
		if got := clean(line); got != want {
			t.Errorf("%q becomes %q, want %q", line, got, want)
		}
	}
}

// TestFitLines: lines are joined as far as there is room, from the end where that matters; a single one takes it all.
func TestFitLines(t *testing.T) {
	a := func(n int) string { return strings.Repeat("a", n) }
	for _, row := range []struct {
		lines []string
		chars int
		last  bool
		want  string
	}{
		{nil, 10, false, ""},
		{[]string{"aaaa", "bbbb", "cc"}, 10, false, "aaaa\nbbbb"}, // each with a break behind it
		{[]string{"aaaa", "bbbb", "cc"}, 9, false, "aaaa"},
		{[]string{"aaaa", "bbbb", "cc"}, 10, true, "bbbb\ncc"},
		{[]string{"aaaa", "bbbb", "cc"}, 8, true, "bbbb\ncc"},
		{[]string{"aaaa", "bbbb", "cc"}, 7, true, "cc"},
		{[]string{"aaaa", "bbbb", "cc"}, 13, true, "aaaa\nbbbb\ncc"},
		{[]string{"", "a", " \t", "b"}, 10, false, "a\nb"}, // no blank ones
		{[]string{a(41), "b"}, 60, false, a(39) + "…\nb"},
		{[]string{a(40), "b"}, 60, false, a(40) + "\nb"},
		{[]string{a(70), "b"}, 180, false, a(59) + "…\nb"}, // a third of the room, when that is more
		{[]string{a(30), "b"}, 20, false, a(18) + "…"},     // of the first line what fits
		{[]string{"b", a(30)}, 20, true, a(18) + "…"},
		{[]string{a(30)}, 20, false, a(18) + "…"},
		{[]string{a(19)}, 20, false, a(19)},
		{[]string{a(30), "b"}, 2, false, "…"},
		{[]string{a(30), "b"}, 1, false, ""},
		{[]string{a(30), "b"}, 0, false, ""},
		{[]string{"🌊🌊", "b"}, 5, false, "🌊🌊"},
		{[]string{"🌊🌊", "b"}, 7, false, "🌊🌊\nb"},
	} {
		if got := fitLines(row.lines, row.chars, row.last); got != row.want {
			t.Errorf("%q in %d: %q, want %q", row.lines, row.chars, got, row.want)
		}
	}
}

// TestLastLines: the last ten lines that are not blank, of as much of the end as is looked at; what that cuts through is no line.
func TestLastLines(t *testing.T) {
	for _, row := range []struct{ text, want string }{
		{"", ""}, {"a", "a"}, {"a\n", "a"}, {"\na\n\n \nb", "a|b"}, {"0123456789", "0123456789"}, {"x0123456789", "0123456789"}, {"abc\ndefghijk", "defghijk"}, {"ab\ncdefghi", "ab|cdefghi"},
		{"abcdefghijk\n \n", "efghijk"}, {"abcdefghijk\nx", "x"},
	} {
		if got := strings.Join(lastLines(row.text, 10), "|"); got != row.want {
			t.Errorf("%q: %q, want %q", row.text, got, row.want)
		}
	}
	if got := strings.Join(lastLines("1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11", 100), " "); got != "2 3 4 5 6 7 8 9 10 11" {
		t.Errorf("of eleven lines: %s", got)
	}
}

// TestTables is the table of what is a table, by its first records.
func TestTables(t *testing.T) {
	for _, row := range []struct{ text, want string }{
		{"a,b\n1,2\n3,4\n", "a,b|1,2|3,4"},
		{"a,b\n1,2\n3,4", "a,b|1,2|3,4"},
		{"a,b\r\n1,2\r\n\r\n3,4\r\n5,6", "a,b|1,2|3,4"},
		{"a,b\n1,2\n", ""}, // two records are none
		{"a\n1\n2\n", ""},  // nor is one field
		{"a,b\n1,2\n3\n", ""},
		{"a,b\n1,2\n3,4,5\n", ""},
		{"a;b\n1;2,3\n4;5\n", "a;b|1;2,3|4;5"}, // another sign parts them
		{"a|b\n1|2\n3|4\n", "a|b|1|2|3|4"},
		{"a\tb\n1\t2\n3\t4\n", "a\tb|1\t2|3\t4"},
		{"a,b\n\"1,\n2\",3\n4,5\n", "a,b|\"1,\n2\",3|4,5"},
		{"a,b\n\"1,2\n3,4\n", ""},                                              // a quotation that does not end
		{"a,b\n1,2\n3,4\n5,6\n7,8\n9,0\n1,2\n3,4\n5,6\n7,8\n9", "a,b|1,2|3,4"}, // ten are looked at
		{"a,b\n1,2\n3,4\n5,6\n7,8\n9,0\n1,2\n3,4\n5,6\n7\n9", ""},
		{"1,b\n1,2\n3,4\n", ""}, // no name begins so
	} {
		records, ok := csvHead(row.text, 1000)
		if got := strings.Join(records, "|"); got != row.want || ok != (row.want != "") {
			t.Errorf("%q: %q, %v; want %q", row.text, got, ok, row.want)
		}
	}
	// What ends with what is looked at may go on behind it.
	if records, ok := csvHead("a,b\n1,2\n3,4", len("a,b\n1,2\n3,4")-1); ok {
		t.Errorf("a record that is cut: %q", records)
	}
	if records, fields := csvRecords("a,b\n1,2\n3", false, ','); len(records) != 2 || fields != 2 {
		t.Errorf("without the cut one: %q of %d", records, fields)
	}
	if records, fields := csvRecords("a,b\n1,2\n3", true, ','); len(records) != 3 || fields != 0 {
		t.Errorf("with the last: %q of %d", records, fields)
	}
}

// TestNamed is the table of what may be the header of a table.
func TestNamed(t *testing.T) {
	for record, want := range map[string]bool{
		"id,name": true, " Id , \"full name\" ": true, "\ufeffid,name": true, "_id,é": true, "a b c d,x": true, "a b c d e,x": false, "id,id": false, "id,": false, "": false, "A,Z,a,z": true,
		"@,a": false, "\x80a,b": true, "\x7fa,b": false, "[,a": false, "`,a": false, "{,a": false, "1a,b": false, "a1,b": true, "-a,b": false, "a.,b": false, "a.b,c": true, "a=b,c": false, "a;b": false, "a:b": false, "a!": false, "a?": false, "a*b": false, "it's": false,
		strings.Repeat("a", 40) + ",b": true, strings.Repeat("a", 41) + ",b": false,
	} {
		if got := named(record, ','); got != want {
			t.Errorf("%q is a header: %v", record, got)
		}
	}
}

// TestJSONHead is the table of what is JSON as far as it goes, and how it is shown by lines.
func TestJSONHead(t *testing.T) {
	deep := func(n int) string { return strings.Repeat("[", n) + "1" + strings.Repeat("]", n) }
	for _, row := range []struct{ text, want string }{ // "" is none
		{`{}`, "{|}"}, {`[]`, "[|]"}, {` [1] `, "[|  1|]"}, {"", ""}, {" ", ""}, {"1", ""}, {`"a"`, ""}, {`a{}`, ""},
		{`{"a":1,"b":[true,false,null]}`, `{|  "a": 1,|  "b": [|    true,|    false,|    null|  ]`},
		{`{"a" : "x\"}" }`, `{|  "a": "x\"}"|}`}, {`["a\\",1]`, `[|  "a\\",|  1|]`},
		{`[1,-2.5e+10,1e-5,3E7]`, `[|  1,|  -2.5e+10,|  1e-5,|  3E7|]`},
		{`[1,]`, ""}, {`[,1]`, ""}, {`{"a"}`, ""}, {`{"a":}`, ""}, {`{"a":1,}`, ""}, {`{a:1}`, ""}, {`{1:1}`, ""}, {`[1 2]`, ""}, {`{"a":1 "b":2}`, ""}, {`{"a","b"}`, ""}, {`["a":1]`, ""},
		{`[1}`, ""}, {`{]`, ""}, {`]`, ""}, {`{"a":1]`, ""}, {`[1`, ""}, {`["a`, ""}, {"[\"a\nb\"]", ""}, {`[truth]`, ""}, {`[nul]`, ""}, {`[1-2]`, ""}, {`[--1]`, ""},
		{`{}{}`, "{|}|{|}"}, {"{\"a\":1}\n[2]\n", "{|  \"a\": 1|}|[|  2|]"}, {`{} x`, ""}, {`{} 1`, ""}, {`{},{}`, ""},
		{"[\n1,\n2,\n3,\n4,\n5,\n6\n]", "[|1,|2,|3,|4,|5,|6"}, // as it stands, when it has more lines than are shown
		{"[\n1,\n2,\n3,\n4,\n5\n]", "[|  1,|  2,|  3,|  4,|  5|]"},
		{`["` + strings.Repeat("x", 200) + `"]`, `[|  "` + strings.Repeat("x", 157) + "|]"}, // four widths a line
		{deep(64), strings.Join([]string{"[", "  [", "    [", "      [", "        [", "          [", "            ["}, "|")},
		{deep(65), ""},
		{"\t[\r\n1 ,\t2]\r", "[|  1,|  2|]"},
	} {
		lines, ok := jsonHead(row.text, 40, 1000)
		if got := strings.Join(lines, "|"); got != row.want || ok != (row.want != "") {
			t.Errorf("%q: %q, %v; want %q", row.text, got, ok, row.want)
		}
	}
}

// TestJSONHeadCut: of a text of which only the beginning is read, what stands there may end anywhere.
func TestJSONHeadCut(t *testing.T) {
	long := `["word",12,true,{"key":"value","n":-1.5}]` + strings.Repeat(" ", 60)
	for n := 1; n < len(long)-60; n++ {
		lines, ok := jsonHead(long, 40, n)
		if !ok || lines[0] != "[" {
			t.Errorf("the first %d bytes: %q, %v", n, lines, ok)
		}
	}
	for text, want := range map[string]string{
		`[12345678901234567890123456789012345678`:   "[", // a word may go on
		`[123456789012345678901234567890123456789`:  "[",
		`[1234567890123456789012345678901234567890`: "[|  1234567890123456789012345678901234567890",
		`["abc`: "[", `{"abc`: "{", `[tr`: "[", `[1,`: "[|  1,", `[1}`: "", `{"a"]`: "",
	} {
		lines, ok := jsonHead(text+"x", 40, len(text))
		if got := strings.Join(lines, "|"); got != want || ok != (want != "") {
			t.Errorf("%q and more: %q, %v; want %q", text, got, ok, want)
		}
	}
	for i, c := range []string{"{", "["} {
		if got := fmt.Sprint(jsonHead(c+"x", 40, 1)); got != fmt.Sprintf("[%s] true", c) {
			t.Errorf("%d: %s", i, got)
		}
	}
}
