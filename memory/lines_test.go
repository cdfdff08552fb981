package memory

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
)

// TestLinesOfFile: which lines of a file say something, what they stand under, and from which log they came.
func TestLinesOfFile(t *testing.T) {
	const file = "# Mine\n- a\n### Extracted from context compaction (07:05)\n<!-- tidemark: x session l -->\n\n- b <!-- tidemark: 1 -->\n- c\n## Other\n- d <!-- tidemark: 1 -->\n---\n" +
		"### Noted in conversation (07:05)\n<!-- tidemark: y -->\n- e <!-- tidemark: 2 -->\n<!-- tidemark: z session m more -->\n- f <!-- tidemark: 3 -->\n<!-- tidemark: z sessions m -->\n- g <!-- tidemark: 3 -->\n" +
		"<!-- tidemark: z session n -->\n- h <!-- tidemark: 3 -->\n <!-- tidemark: z session o -->\n- 1 <!-- tidemark: 3 -->\n#\n- i <!-- tidemark: 3 -->"
	want := "# Mine|# Mine|;- a|# Mine|;- b||l;- c||;## Other|## Other|;- d|## Other|;- e||;- f||;- g||;- h||n;- 1||n;- i|#|;"
	got := ""
	for _, l := range linesOf(file) {
		got += l.text + "|" + l.heading + "|" + l.log + ";"
	}
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for text, want := range map[string]string{"": "4fd0bfc1", "- a": "00a4f79c", "- likes tea": "484c8cda"} { // marks hold them, so they must not change
		if got := (line{text: text}).hash(); got != want {
			t.Errorf("%q: %s", text, got)
		}
	}
	all := linesOf("- a\n- b\n- c\n")
	for _, c := range []struct {
		path string
		most int
		want string
	}{{LongTerm, 3, "- a- b- c"}, {LongTerm, 2, "- a- b"}, {Soul, 1, "- a"}, {"memory/2026-11-21.md", 3, "- a- b- c"}, {"memory/2026-11-21.md", 2, "- b- c"}, {DigestFile, 0, ""}} {
		got := ""
		for _, l := range nearest(c.path, all, c.most) {
			got += l.text
		}
		if got != c.want {
			t.Errorf("%d of %s: %s", c.most, c.path, got)
		}
	}
	if got := shown("a\tb\u2028c\u2029d\x7fe\u0085f é\u200b"); got != "a b c d e f é\u200b" {
		t.Errorf("%q", got)
	}
}

// TestWithin: as many lines as there is room for, with the bar before each, the first or the newest.
func TestWithin(t *testing.T) {
	for _, c := range []struct {
		lines  string
		budget tidemark.Tokens
		newest bool
		want   string
		left   int
	}{
		{"1234567", 3, false, "1234567", 0}, {"12345678", 3, false, "", 1}, {"1234567 a b", 3, false, "1234567", 2}, {"a b 1234567", 3, true, "1234567", 2}, {"1234567 abcdefg", 6, false, "1234567 abcdefg", 0},
		{"1234567 abcdefg", 6, true, "1234567 abcdefg", 0}, {"1234567 abcdefgh", 6, true, "abcdefgh", 1}, {"a", 0, false, "", 1}, {"", 3, true, "", 0}, {"éééé🗼é", 3, false, "éééé🗼é", 0}, {"éééé🗼éé", 3, false, "", 1},
	} {
		kept, left := within(strings.Fields(c.lines), c.budget, c.newest)
		if got := strings.Join(kept, " "); got != c.want || left != c.left {
			t.Errorf("%q within %d: %q, %d left", c.lines, c.budget, got, left)
		}
	}
}

// TestManyGone: of very many lines that are gone so many are told as a note needs.
func TestManyGone(t *testing.T) {
	for _, n := range []int{maxGone - 1, maxGone, maxGone + 1} {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "- fact %d\n", i)
		}
		s := Since{Mark: MarkOf(time.UnixMilli(1), []Source{{Path: LongTerm, Text: b.String()}}), Most: 1000}
		news := s.News([]Source{{Path: LongTerm}})
		if len(news.Gone) != min(n, maxGone) || news.Files != nil {
			t.Errorf("%d: %d gone", n, len(news.Gone))
		}
		if known := s.Mark.Memories("- fact 0\n- fact 199\n- fact 200\n- a\n", news); len(known) != max(0, n-maxGone) {
			t.Errorf("%d: %q are memory still", n, known)
		}
	}
}

// TestAssembleShares: how many lines of each file there is room for, to the line.
func TestAssembleShares(t *testing.T) {
	const row = "123456789\n"
	text := strings.Repeat(row, 1000)
	for name, c := range map[string]struct {
		p      Prompt
		budget tidemark.Tokens
		want   string // lines of each section
	}{
		"one file":                          {Prompt{LongTerm: text}, 1001, "## Long-Term Memory 267"},
		"beside skills and a runtime":       {Prompt{LongTerm: text, Skills: strings.Repeat("s", 20), Runtime: "0123456789"}, 1010, "## Long-Term Memory 267"},
		"beside today":                      {Prompt{LongTerm: text, Today: Note{Path: "t", Text: text}}, 1506, "## Long-Term Memory 268;### Today (t) 178"},
		"beside a short day":                {Prompt{LongTerm: text, Today: Note{Path: "t", Text: "tod"}}, 1002, "## Long-Term Memory 267;### Today (t) 0"},
		"yesterday beside a short day":      {Prompt{Yesterday: Note{Path: "y", Text: text}, Today: Note{Path: "t", Text: "tod"}}, 1000, "### Yesterday (y) 284;### Today (t) 0"},
		"today beside skills and a runtime": {Prompt{Today: Note{Path: "t", Text: text}, Skills: strings.Repeat("s", 20), Runtime: "0123456789"}, 1009, "### Today (t) 286"},
		"a small one and a large one":       {Prompt{Soul: strings.Repeat(row, 10), LongTerm: text}, 1031, "## Your Soul 10;## Long-Term Memory 267"},
		"two large ones":                    {Prompt{Human: text, ToolNotes: text}, 1802, "## About Your Human 267;## Tool Notes 267"},
		"nothing fits":                      {Prompt{LongTerm: row}, 100, "## Long-Term Memory 0"},
	} {
		var got []string
		rows := map[string]int{}
		for l := range strings.Lines(c.p.Assemble(c.budget)) {
			l = strings.TrimSpace(l)
			if strings.HasPrefix(l, "##") && l != "## Recent Context" && l != "## Runtime" {
				got = append(got, l)
			}
			if l != "" && len(l) < len(row)-1 && strings.HasSuffix(row, l+"\n") {
				t.Errorf("%s: a piece of a line: %s", name, l)
			}
			if l == strings.TrimSpace(row) {
				rows[got[len(got)-1]]++
			}
		}
		for i, heading := range got {
			got[i] = fmt.Sprint(heading, " ", rows[heading])
		}
		if s := strings.Join(got, ";"); s != c.want {
			t.Errorf("%s: %s, want %s", name, s, c.want)
		}
	}
	if got := (Prompt{LongTerm: "a\nb\n"}).Assemble(100); got != "## Long-Term Memory\n\n\n\n[2 lines left out here; read them with memory_read(\"MEMORY.md\")]" {
		t.Errorf("%q", got)
	}
	if got := (Prompt{Today: Note{Path: "t", Text: strings.Repeat("x", 9999)}}).Assemble(1000); !strings.HasSuffix(got, "### Today (t)\n\n[1 line left out here; read them with memory_read(\"t\")]") {
		t.Errorf("of a day of one line: %.300s", got)
	}
	if a, b := (Prompt{LongTerm: text}).Assemble(0), (Prompt{LongTerm: text}).Assemble(DefaultBudget); a != b {
		t.Error("0 is not the default")
	}
}

// TestTopics: the words that tell most of a sitting, said often and long, each counted up to a bound.
func TestTopics(t *testing.T) {
	counts := map[string]int{"deploy": 2, "aaaa": 3, "server": 1, "kubernetes": 100, "elephants": 8, "crocodile": 9, "api": 50, "because": 50, "always": 50, "1234": 50, "1.2/3-4": 50, "wiki": 1}
	if got := topics(counts); !slices.Equal(got, []string{"kubernetes", "crocodile", "elephants", "aaaa", "deploy"}) {
		t.Errorf("%q", got)
	}
	if got := topics(map[string]int{"wiki": 1, "été": 9, "épée": 1}); !slices.Equal(got, []string{"wiki", "épée"}) {
		t.Errorf("%q", got)
	}
	at := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	for words, want := range map[int]bool{maxTerms - 1: true, maxTerms: false} {
		var ms []Moment
		for from := 0; from < words; from += 400 {
			var b strings.Builder
			for i := from; i < min(from+400, words); i++ {
				fmt.Fprintf(&b, "w%04d ", i)
			}
			ms = append(ms, Moment{At: at, Text: b.String()})
		}
		ms = append(ms, Moment{At: at, Text: strings.Repeat("zebra ", 6) + strings.Repeat("w0007 ", 5)})
		s := Sittings("k", ms, at.Add(SittingGap))
		if len(s) != 1 || slices.Contains(s[0].Topics, "zebra") != want || !slices.Contains(s[0].Topics, "w0007") {
			t.Errorf("%d words: %+v", words, s)
		}
	}
	often := []Moment{{At: at, Text: strings.Repeat("giraffe ", 5) + strings.Repeat("zebra ", 8)}} // eight short ones tell more
	if s := Sittings("k", often, at.Add(SittingGap)); len(s) != 1 || !slices.Equal(s[0].Topics, []string{"zebra", "giraffe"}) {
		t.Errorf("%+v", s)
	}
	long := Moment{At: at, Text: strings.Repeat("x", readMoment-7) + " zebra z"} // cut at its last word
	if s := Sittings("k", []Moment{long, long}, at.Add(SittingGap)); len(s) != 1 || slices.Contains(s[0].Topics, "zebra") {
		t.Errorf("%+v", s)
	}
	if s := Sittings("k", []Moment{{At: at}}, at.Add(SittingGap-1)); s != nil {
		t.Errorf("what is not over is a sitting: %+v", s)
	}
	s := Sitting{Key: "k", First: "a", Last: "b", From: at, To: at.Add(15 * time.Hour), Count: 2}
	if got := s.Line(nil); got != "2026-11-21 09:00–2026-11-22 00:00 k (2 messages, a..b)" {
		t.Errorf("%s", got)
	}
}

// TestDigestOrder: what matters most stands first, then the newest, then by id and text, and a fact before what stands for it.
func TestDigestOrder(t *testing.T) {
	at := func(n int) time.Time { return time.UnixMilli(int64(n)) }
	in := []Line{
		{ID: "2", Text: "a", Importance: 5, At: at(1)}, {ID: "1", Text: "b", Importance: 5, At: at(1), Past: true}, {ID: "1", Text: "e", Importance: 5, At: at(1)}, {ID: "9", Text: "c", Importance: 7, At: at(0)},
		{ID: "9", Text: "d", Importance: 5, At: at(2)}, {ID: "0", Text: "x", Importance: 1, At: at(9), Past: true}, {ID: "0", Text: "x", Importance: 1, At: at(9)}, {ID: "3", Text: " - ", At: at(9)},
	}
	for range in {
		in = append(in[1:], in[0])
		got := ""
		for _, l := range ranked(in) {
			got += fmt.Sprint(l.Text, flag(l.Past), " ")
		}
		if got != "c0 d0 b1 e0 a0 x0 " {
			t.Errorf("%s", got)
		}
	}
	var many []Line
	for i := range 300 {
		many = append(many, Line{ID: fmt.Sprint(i), Text: fmt.Sprint("fact ", i), Importance: 3, At: at(i)})
	}
	for _, most := range []int{0, -1} {
		if got, want := WriteDigest(many, most), WriteDigest(many, DefaultDigestLines); got.Text != want.Text {
			t.Errorf("%d lines are not the default", most)
		}
	}
	if d := WriteDigest(many, 1); d.Shown != 0 || len(d.Details) != 1 || d.Details[0].Slug != oldest || d.Details[0].Lines != 300 {
		t.Errorf("one line: %+v", d.Text)
	}
	if d := WriteDigest(nil, 1); d.Text != digestTitle+"\n" {
		t.Errorf("nothing in one line: %q", d.Text)
	}
	if d := WriteDigest(many[:1], 1); d.Text != digestTitle+": 1 entry in [older](digest/older.md)\n" {
		t.Errorf("one entry in one line: %q", d.Text)
	}
}

// TestDigestWithHeadings: from so many lines on a digest has headings, which count.
func TestDigestWithHeadings(t *testing.T) {
	const each = 3 // lines of a heading with what stands around it
	for name, c := range map[string]struct {
		past     func(i int) bool
		sections int
	}{"facts": {func(int) bool { return false }, 1}, "the past": {func(int) bool { return true }, 1}, "both": {func(i int) bool { return i%2 > 0 }, 2}} {
		for n := 2; n < 40; n++ {
			var in []Line
			for i := range n {
				in = append(in, Line{ID: fmt.Sprint(i), Text: fmt.Sprint("fact ", i), Importance: 3, At: time.UnixMilli(int64(i)), Past: c.past(i)})
			}
			for most, headings := range map[int]int{2: 0, 3: 0, roomy - 1: 0, roomy: each, roomy + 1: each} {
				want := n
				if room := most - 1 - c.sections*headings; n > room { // a link for each month of each kind, or one for all
					links := c.sections
					if 4*links > most {
						links = 1
					}
					want = max(0, room-links-headings)
				}
				d := WriteDigest(in, most)
				if lines := strings.Count(d.Text, "\n"); lines > most || d.Shown != want || strings.Contains(d.Text, "\n## ") != (headings > 0) {
					t.Errorf("%d of %s in %d lines: %d shown in %d lines, want %d", n, name, most, d.Shown, lines, want)
				}
			}
		}
	}
	d := WriteDigest([]Line{{Text: "a", At: time.UnixMilli(1)}, {Text: "b", At: time.UnixMilli(2)}}, 2)
	if want := "# Memory digest: older\n\nWhat does not fit into [the digest](../DIGEST.md), the most important first.\n\n- b\n- a\n"; len(d.Details) != 1 || d.Details[0].Text != want {
		t.Errorf("%+v", d)
	}
}
