package memory

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/tidemark-ai/tidemark"
)

// TestComposeAlone: a text that Compose leaves alone is one that it would change nothing of.
func TestComposeAlone(t *testing.T) {
	for r := rune(0x80); r <= 0xffff; r++ {
		if r >= 0xd800 && r < 0xe000 {
			continue
		}
		s := "a " + string(r) // what stands behind it makes Compose look at every character
		if got := Compose(s + " e\u0301"); got != Compose(s)+" é" {
			t.Errorf("%U: %q beside another, %q alone", r, got, Compose(s))
		}
	}
}

// TestComposeWide: all characters of full width are plain ones, from the first to the last, and those beside them stay.
func TestComposeWide(t *testing.T) {
	for r := rune(0xff00); r <= 0xff60; r++ {
		want := string(r)
		if r > 0xff00 && r < 0xff5f {
			want = string(r - 0xff00 + ' ')
		}
		if got := Compose(string(r)); got != want {
			t.Errorf("%U: %q, want %q", r, got, want)
		}
	}
}

// TestTokenLetters: which ASCII characters hold a word together.
func TestTokenLetters(t *testing.T) {
	for c := rune(0); c < 0x80; c++ {
		in := unicode.IsLetter(c) || unicode.IsDigit(c) || strings.ContainsRune("_-./@", c)
		if got := slices.Contains(Terms("ab"+string(c)+"cd"), strings.ToLower("ab"+string(c)+"cd")); got != in {
			t.Errorf("%q: %q", c, Terms("ab"+string(c)+"cd"))
		}
	}
}

// TestCommentsOut: what is ours is taken out of a file, and a comment without an end stays.
func TestCommentsOut(t *testing.T) {
	for file, want := range map[string]string{
		"- a <!-- tidemark: x -->\n- b\n": "- a\n- b\n", "<!-- tidemark: x -->\n- a\n": "\n- a\n", "\n<!-- tidemark: x -->\n\n- a": "\n\n- a", "- a <!-- theirs -->\n": "- a <!-- theirs -->\n",
		"- a <!-- tidemark: x": "- a <!-- tidemark: x", "- a <!-- tidemark: x --> b <!-- tidemark: y": "- a b <!-- tidemark: y", "<!-- tidemark: x -->": "", "<!-- tidemark: x -->\n": "\n",
	} {
		if got := Strip(file); got != want {
			t.Errorf("%q: %q, want %q", file, got, want)
		}
	}
	const file = "# Day\n- Tea is hot <!-- tidemark: x -->\n  - tea is HOT\n- Milk is cold\nTea is hot\n"
	if got := Without(file, map[string]bool{Fold("tea is hot"): true}); got != "# Day\n- Milk is cold\nTea is hot\n" {
		t.Errorf("%q", got)
	}
	if got := Without(file, nil); got != file {
		t.Errorf("%q", got)
	}
	m := MarkOf(time.UnixMilli(7), []Source{{Text: "- lost"}, {Path: "a", Text: "- one\n- two", Tag: "t"}})
	if m.At != 7 || len(m.Files) != 1 || m.Files[0].Path != "a" || m.Tag("a") != "t" || m.Tag("") != "" || len(m.Files[0].Lines) != 2*hashDigits {
		t.Errorf("%+v", m)
	}
}

// TestShares: a budget is divided so that what fits within an equal share is whole, nothing is left while something is cut, and
// nothing is given twice.
func TestShares(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 2000 {
		texts := make([]string, 1+r.IntN(6))
		all := tidemark.Tokens(0)
		for i := range texts {
			texts[i] = strings.Repeat("x", r.IntN(400))
			all += tidemark.EstimateText(texts[i])
		}
		budget := tidemark.Tokens(r.IntN(600))
		given, cut, open := tidemark.Tokens(0), tidemark.Tokens(-1), 0
		for i, n := range share(budget, texts...) {
			need := tidemark.EstimateText(texts[i])
			if given += min(n, need); n >= need {
				continue
			}
			if open++; cut >= 0 && n != cut {
				t.Fatalf("%d and %d are cut to", n, cut)
			}
			cut = n
		}
		if given > budget || open > 0 && budget-given >= tidemark.Tokens(open) || open == 0 && given != all {
			t.Fatalf("%d of %d given, %d wanted, %d cut", given, budget, all, open)
		}
	}
}

// TestFits: as much of a text as is within a budget, to the character, from either end.
func TestFits(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	for range 2000 {
		var b strings.Builder
		for range r.IntN(60) {
			b.WriteString([]string{"a", "é", "東", "🗼", " ", "\uffff"}[r.IntN(6)])
		}
		text, budget := b.String(), tidemark.Tokens(r.IntN(25)-2)
		for _, fromEnd := range []bool{false, true} {
			n := fit(text, budget, fromEnd)
			kept, left := []rune(text[:n]), []rune(text[n:])
			if fromEnd {
				kept, left = []rune(text[len(text)-n:]), []rune(text[:len(text)-n])
			}
			most := max(int(budget), 0) * 10 / 3
			if got := tidemark.UTF16Len(string(kept)); got > most || len(left) > 0 && got+2 <= most {
				t.Fatalf("%d of %d units of %q, %d left", got, most, text, len(left))
			}
			if next := left; len(next) > 0 {
				c := next[0]
				if fromEnd {
					c = next[len(next)-1]
				}
				if tidemark.UTF16Len(string(kept))+tidemark.UTF16Len(string(c)) <= most {
					t.Fatalf("%q fits beside %q in %d", c, string(kept), most)
				}
			}
		}
	}
}

// TestCutAtWords: a text is cut behind a word, if that leaves more than half of it, and is never longer than it may be.
func TestCutAtWords(t *testing.T) {
	for text, want := range map[string]string{
		"1234567890": "1234567890", "12345678901": "123456789…", "123456 8901": "123456…", "1234 678901": "1234 6789…", "éééééééé 012": "éééééééé…", "123456, 8901": "123456…", "1234567: 01": "1234567…",
	} {
		if got := cut(text, 10); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// TestOverAtOnce: the smallest budgets are meant as they are, and only 0 is the default.
func TestOverAtOnce(t *testing.T) {
	for _, c := range []struct {
		b    BySize
		h    Held
		over bool
	}{
		{BySize{Events: 1}, Held{Events: 1}, false}, {BySize{Events: 1}, Held{Events: 2}, true}, {BySize{Bytes: 1}, Held{Bytes: 1}, false}, {BySize{Bytes: 1}, Held{Bytes: 2}, true},
		{BySize{}, Held{Events: DefaultWorkingEvents, Bytes: DefaultWorkingBytes}, false}, {BySize{}, Held{Events: DefaultWorkingEvents + 1}, true}, {BySize{}, Held{Bytes: DefaultWorkingBytes + 1}, true},
		{BySize{Events: -1, Bytes: -1}, Held{Events: DefaultWorkingEvents}, false},
	} {
		if c.b.Over(c.h) != c.over {
			t.Errorf("%+v", c)
		}
	}
}

// TestSittingLines: what a sitting says of itself, whatever is known of it.
func TestSittingLines(t *testing.T) {
	at := time.Date(2026, 11, 21, 9, 5, 0, 0, time.UTC)
	for _, c := range []struct {
		s    Sitting
		want string
	}{
		{Sitting{Count: 1}, "2026-11-21 09:05–09:06 k (1 message, a..b)"},
		{Sitting{Count: 2, Topics: []string{"oak", "elm"}}, "2026-11-21 09:05–09:06 k: oak, elm (2 messages, a..b)"},
		{Sitting{Count: 2, About: "x"}, "2026-11-21 09:05–09:06 k: “x” (2 messages, a..b)"},
		{Sitting{Count: 2, About: "x", Open: true}, "2026-11-21 09:05–09:06 k: “x”, not answered (2 messages, a..b)"},
		{Sitting{Count: 2, About: "x", Ended: "y"}, "2026-11-21 09:05–09:06 k: “x”, ended with “y” (2 messages, a..b)"},
		{Sitting{Count: 2, About: "x", Ended: "y", Open: true, Topics: []string{"oak"}}, "2026-11-21 09:05–09:06 k: “x”, then “y”, not answered; oak (2 messages, a..b)"},
	} {
		c.s.Key, c.s.First, c.s.Last, c.s.From, c.s.To = "k", "a", "b", at, at.Add(time.Minute)
		if got := c.s.Line(time.UTC); got != c.want {
			t.Errorf("%s\nwant %s", got, c.want)
		}
	}
}

// TestPeerLetters: which characters the folder of a peer is made of.
func TestPeerLetters(t *testing.T) {
	for c := rune(0); c < 0x80; c++ {
		ok := c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c >= 'A' && c <= 'F' || strings.ContainsRune("-_.@+~%", c)
		if err := CheckPath("memory/peers/x" + string(c) + "/2026-11-21.md"); (err == nil) != ok {
			t.Errorf("%q: %v", c, err)
		}
	}
	for name, ok := range map[string]bool{strings.Repeat("x", maxPeer): true, strings.Repeat("x", maxPeer+1): false, ".x": false, "x.": true} {
		if err := CheckPath("memory/peers/" + name + "/2026-11-21.md"); (err == nil) != ok {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// TestDigestFits: what fits into the lines of a digest stands in it, to the line, and what does not is in details.
func TestDigestFits(t *testing.T) {
	for n := range 12 {
		for past := range n + 1 {
			var all []Line
			for i := range n {
				all = append(all, Line{ID: fmt.Sprintf("f%03d", i), Text: fmt.Sprintf("fact %d", i), Importance: 3, At: time.UnixMilli(int64(i)), Past: i < past})
			}
			whole := WriteDigest(all, 1000)
			if whole.Shown != n || len(whole.Details) != 0 {
				t.Fatalf("%d of %d, %d details", whole.Shown, n, len(whole.Details))
			}
			lines := strings.Count(whole.Text, "\n")
			for most := 1; most < roomy+lines; most++ {
				d := WriteDigest(all, most)
				fits := most >= roomy && most >= lines || most < roomy && most > n
				if got := strings.Count(d.Text, "\n"); got > most || fits != (d.Shown == n && len(d.Details) == 0) || fits && (d.Text == whole.Text) != (most >= roomy || n == 0) {
					t.Errorf("%d lines with %d of the past within %d: %d shown in %d lines, want %d", n, past, most, d.Shown, got, lines)
				}
			}
		}
	}
}

// TestDigestQuarter: what is demoted is divided by months while their links take no more than a quarter of the lines.
func TestDigestQuarter(t *testing.T) {
	var all []Line
	for i := range 40 {
		all = append(all, Line{ID: fmt.Sprintf("f%03d", i), Text: fmt.Sprintf("fact %d", i), Importance: 3, At: time.Date(2026, time.Month(1+i%2), 5, 0, 0, i, 0, time.UTC)})
	}
	for most, want := range map[int]string{7: "facts-2026", 8: "facts-2026-01 facts-2026-02", 9: "facts-2026-01 facts-2026-02"} {
		var slugs []string
		for _, f := range WriteDigest(all, most).Details {
			slugs = append(slugs, f.Slug)
		}
		if got := strings.Join(slugs, " "); got != want {
			t.Errorf("%d lines: %s, want %s", most, got, want)
		}
	}
}

// TestGoneLines: ten lines that are gone are named, and how many more there are.
func TestGoneLines(t *testing.T) {
	for n, want := range map[int]string{0: "", 1: "", showGone: "", showGone + 1: "; and 1 more line.]", showGone + 3: "; and 3 more lines.]"} {
		var lines []string
		for i := range n {
			lines = append(lines, fmt.Sprintf("- fact %d", i))
		}
		text := strings.Join(lines, "\n")
		s := Since{Mark: MarkOf(time.UnixMilli(1), []Source{{Path: LongTerm, Text: text}}), Most: 1000}
		note := s.News([]Source{{Path: LongTerm, Text: ""}}).Note(text)
		if strings.Count(note, "fact") != min(n, showGone) || !strings.HasSuffix(note, want) || want == "" && strings.Contains(note, "more line") || (note == "") != (n == 0) {
			t.Errorf("%d: %s", n, note)
		}
	}
}
