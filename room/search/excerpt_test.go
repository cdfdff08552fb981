package search

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// ruler is a text of so many bytes that says at each fifth byte which one it is.
func ruler(n int) string {
	var b strings.Builder
	for i := 0; i < n; i += 5 {
		fmt.Fprintf(&b, "%04d ", i)
	}
	return b.String()
}

// cutFrom is stretches of a text as an excerpt joins them.
func cutFrom(text string, spans ...[2]int) string {
	var parts []string
	for _, s := range spans {
		parts = append(parts, text[s[0]:s[1]])
	}
	return strings.Join(parts, " … ")
}

// TestExcerptSpans: around a place and around the terms 160 bytes before and 320 behind are taken, as far as they fit, and
// the beginning of the text where more than 160 bytes are left.
func TestExcerptSpans(t *testing.T) {
	text := ruler(5000)
	type spans = [][2]int
	for _, c := range []struct {
		name  string
		place int
		terms []string
		most  int
		want  spans
	}{
		{"nothing", -1, nil, 1000, spans{{0, 1000}}},
		{"a place", 2500, nil, 1000, spans{{0, 520}, {2340, 2820}}},
		{"a place at the very beginning", 0, nil, 1000, spans{{0, 680}}},
		{"a place near the end", 4990, nil, 1000, spans{{0, 830}, {4830, 5000}}},
		{"a place that leaves no room", 2500, []string{"1000"}, 400, spans{{2340, 2820}}},
		{"a term", -1, []string{"2500"}, 1000, spans{{0, 516}, {2340, 2824}}},
		{"a term near the beginning", -1, []string{"0100"}, 1000, spans{{0, 576}}},
		{"a term near the end", -1, []string{"4990"}, 1000, spans{{0, 830}, {4830, 5000}}},
		{"a term that is not there", -1, []string{"absent", "2500"}, 1000, spans{{0, 516}, {2340, 2824}}},
		{"two terms, in the order of the text", -1, []string{"4000", "1000"}, 1000, spans{{840, 1324}, {3840, 4324}}},
		{"three terms, of which the last does not fit", -1, []string{"4000", "1000", "3000"}, 1000, spans{{840, 1324}, {3840, 4324}}},
		{"two terms that fill it", -1, []string{"4000", "1000"}, 968, spans{{840, 1324}, {3840, 4324}}},
		{"two terms and a byte too little", -1, []string{"4000", "1000"}, 967, spans{{0, 483}, {3840, 4324}}},
		{"a term that fills it", -1, []string{"2500"}, 484, spans{{2340, 2824}}},
		{"a term and a byte too little", -1, []string{"2500"}, 483, spans{{2340, 2823}}},
		{"a term in the excerpt of a neighbour", -1, []string{"2500", "1000"}, 400, spans{{2340, 2740}}},
		{"too little left for the beginning", -1, []string{"2500"}, 644, spans{{2340, 2824}}},
		{"just enough left for it", -1, []string{"2500"}, 645, spans{{0, 161}, {2340, 2824}}},
		{"a term that is shown with another", -1, []string{"2500", "2505"}, 1000, spans{{0, 516}, {2340, 2824}}},
		{"one that begins what is shown", -1, []string{"2500", "2340"}, 1000, spans{{0, 516}, {2340, 2824}}},
		{"one that ends it", -1, []string{"2500", "2820"}, 1000, spans{{0, 516}, {2340, 2824}}},
		{"one that begins before it", -1, []string{"2500", "2335"}, 1000, spans{{2175, 2824}}},
		{"one that ends behind it", -1, []string{"2500", "2825"}, 1000, spans{{2340, 3149}}},
		{"what meets the beginning", 680, nil, 1000, spans{{0, 1000}}},
		{"what overlaps the beginning", 500, nil, 1000, spans{{0, 820}}},
	} {
		if got, want := excerpt(text, c.place, c.terms, c.most), cutFrom(text, c.want...); got != want {
			t.Errorf("%s: %q\nwant %q", c.name, got, want)
		}
	}
	if got := excerpt(text, 2500, []string{"1000"}, len(text)); got != text {
		t.Errorf("a text that is as long as may be is cut to %d bytes", len(got))
	}
	if got := excerpt(text, -1, nil, len(text)-1); got != text[:len(text)-1] {
		t.Errorf("a text that is a byte too long is cut to %d bytes", len(got))
	}
	// Lower case has another length there, so places in it would be others in the text.
	other := "İ" + text[:1000] + "NEEDLE " + text
	if got := excerpt(other, -1, []string{"needle"}, 600); got != other[:600] {
		t.Errorf("where letters change their length: %q", got)
	}
}

// TestExcerptBegins: a term with which a text begins is shown as one within it, before those that are less rare.
func TestExcerptBegins(t *testing.T) {
	text := "keya " + strings.Repeat("calm ", 200) + "keyb " + strings.Repeat("calm ", 200)
	for most, second := range map[int]bool{700: false, 807: false, 808: true} { // 324 bytes around the first, 484 around the second
		got := excerpt(text, -1, []string{"keya", "keyb"}, most)
		if !strings.HasPrefix(got, "keya calm") || strings.Contains(got, "keyb") != second {
			t.Errorf("in %d bytes: %q", most, got)
		}
	}
}

// dotted is so many dots with words at some places.
func dotted(n int, words map[int]string) string {
	b := []byte(strings.Repeat(".", n))
	for at, w := range words {
		copy(b[at:], w)
	}
	return string(b)
}

// TestDensest: the place is that of the term about which most terms stand, within ten bytes here; long and rare ones count
// more, of equal places the first is taken.
func TestDensest(t *testing.T) {
	rows := func(n int) map[int]string { // two terms, which meet where they stand for the last time
		words := map[int]string{}
		for i := range n {
			words[100*i+10], words[100*i+60] = "aa", "bb"
		}
		delete(words, 100*(n-1)+60)
		words[100*(n-1)+16] = "bb"
		return words
	}
	var absent, twelve []string
	lonely := map[int]string{500: "xx"}
	many := map[int]string{1115: "zz"}
	for i := range 12 {
		absent = append(absent, fmt.Sprintf("absent%d", i))
		twelve = append(twelve, fmt.Sprintf("q%02d", i))
		many[100*i+10] = twelve[i]
	}
	for _, c := range []struct {
		name  string
		words map[int]string
		terms []string
		want  int
	}{
		{"none", nil, []string{"xx"}, -1},
		{"no term", map[int]string{5: "xx"}, nil, -1},
		{"an empty one", map[int]string{30: "xx"}, []string{"", "xx"}, 30},
		{"at the very beginning", map[int]string{0: "xx"}, []string{"xx"}, 0},
		{"another that ends at the last byte", map[int]string{20: "aa", 28: "bb"}, []string{"aa", "bb"}, 20},
		{"another that ends behind it", map[int]string{20: "aa", 29: "bb"}, []string{"aa", "bb"}, 29},
		{"another at the first byte", map[int]string{10: "bb", 20: "xx", 60: "xx", 63: "c"}, []string{"bb", "xx", "c"}, 20},
		{"another before it", map[int]string{9: "bb", 20: "xx", 60: "xx", 63: "c"}, []string{"bb", "xx", "c"}, 9},
		{"a longer one", map[int]string{10: "ab", 50: "longer"}, []string{"ab", "longer"}, 50},
		{"a shorter one that is rare", map[int]string{10: "aaaa", 30: "aaaa", 50: "aaaa", 90: "bb"}, []string{"aaaa", "bb"}, 90},
		{"behind the first place", map[int]string{10: "aa", 40: "bb", 80: "aa", 86: "bb"}, []string{"aa", "bb"}, 80},
		{"of equal places the first", map[int]string{10: "aa", 40: "aa"}, []string{"aa"}, 10},
		{"at the sixteenth place", rows(16), []string{"aa", "bb"}, 1510},
		{"at the seventeenth, where nobody looks", rows(17), []string{"aa", "bb"}, 10},
		{"behind terms that are not there", lonely, append(absent, "xx"), 500},
		{"the worthiest behind twelve", map[int]string{10: "q00", 1500: "theLongest"}, append(slices.Clone(twelve), "theLongest"), 1500},
		{"twelve terms", many, append(twelve, "zz"), 10},
	} {
		if got := densest(dotted(2000, c.words), c.terms, 10); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

// TestSnippetAt: so many bytes at either side, and a mark where something is left out.
func TestSnippetAt(t *testing.T) {
	text := ruler(1000)
	for at, want := range map[int]string{
		0: text[:300] + "…", 300: text[:600] + "…", 301: "…" + text[1:601] + "…", 699: "…" + text[399:999] + "…", 700: "…" + text[400:],
	} {
		if got := snippetAt(text, at, 300); got != want {
			t.Errorf("at %d: %q", at, got)
		}
	}
	if got := snippet(strings.Repeat("İ", 400)+"needle"+text, []string{"needle"}, 20); !strings.Contains(got, "İneedle0000") {
		t.Errorf("where letters change their length: %q", got)
	}
	if got := snippet(text[:500]+"NEEDLE"+text[500:], []string{"needle"}, 10); got != "…0490 0495 NEEDLE0500…" {
		t.Errorf("in other letters: %q", got)
	}
}

// TestPlaceOf: where in a long text a snippet begins, which is told of texts that are so long that one reads on.
func TestPlaceOf(t *testing.T) {
	long := func(n int) string { return "01234tide" + strings.Repeat(".", n-9) }
	for _, c := range []struct {
		name    string
		of      read
		snippet string
		want    int
	}{
		{"a short text", read{text: long(pieceBytes/2 - 1)}, "…tide…", 0},
		{"a long text", read{text: long(pieceBytes / 2)}, "…tide…", 5},
		{"the end of a short one", read{at: 1000, text: long(pieceBytes/2 - 1001)}, "tide", 1000},
		{"a piece", read{at: 1000, text: long(pieceBytes/2 - 1000)}, "tide", 1005},
		{"its beginning", read{at: 100_000, text: long(100)}, "01234", 100_000},
		{"what is not in it", read{at: 100_000, text: long(100)}, "ebb", 100_000},
	} {
		if got := c.of.placeOf(c.snippet); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}
