package memory_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/memory"
)

// entries are random lines, some of them hostile.
func entries(r *rand.Rand, n int) []memory.Line {
	out := make([]memory.Line, n)
	for i := range out {
		out[i] = memory.Line{ID: fmt.Sprint(i), Text: fmt.Sprintf("fact %d of %d", i, r.IntN(1000)), Importance: 1 + r.IntN(10), At: noonOf(r.IntN(2000)), Past: r.IntN(4) == 0}
		switch r.IntN(12) {
		case 0:
			out[i].Text += "\n\n# heading\r\n- more\u2028 <!-- tidemark: x -->"
		case 1:
			out[i].Text = strings.Repeat("long ", 300)
		case 2:
			out[i].Text = "- [ ] " + out[i].Text
		}
	}
	return out
}

func noonOf(day int) time.Time {
	return time.Date(2021, 1, 1, 12, 0, 0, 0, time.UTC).AddDate(0, 0, day)
}

// checkDigest holds a digest against its laws.
func checkDigest(t *testing.T, in []memory.Line, most int) {
	t.Helper()
	d := memory.WriteDigest(in, most)
	if most <= 0 {
		most = memory.DefaultDigestLines
	}
	if n := strings.Count(d.Text, "\n"); n > most || !strings.HasSuffix(d.Text, "\n") {
		t.Fatalf("%d lines, at most %d:\n%s", n, most, d.Text)
	}
	bullets := 0
	for l := range strings.Lines(d.Text) {
		if strings.HasPrefix(l, "- ") {
			bullets++
		}
	}
	demoted, links := 0, 0
	for _, f := range d.Details {
		if err := memory.CheckPath(memory.DetailFile(f.Slug)); err != nil {
			t.Error(err)
		}
		links += strings.Count(d.Text, "digest/"+f.Slug+".md")
		n := 0
		for l := range strings.Lines(f.Text) {
			if strings.HasPrefix(l, "- ") {
				n++
			}
		}
		if n != f.Lines {
			t.Errorf("%s has %d lines and says %d", f.Slug, n, f.Lines)
		}
		demoted += n
	}
	if links < len(d.Details) {
		t.Errorf("%d of %d detail files are linked:\n%s", links, len(d.Details), d.Text)
	}
	if most > 1 && bullets != d.Shown+len(d.Details) {
		t.Errorf("%d bullets for %d entries and %d links", bullets, d.Shown, len(d.Details))
	}
	different := memory.WriteDigest(in, 1<<20) // all of them
	if d.Shown+demoted != different.Shown {
		t.Errorf("%d shown and %d demoted of %d", d.Shown, demoted, different.Shown)
	}
}

// TestDigestOnce: what says the same stands in a digest once, as it was said last, whatever its case; also what has no word.
func TestDigestOnce(t *testing.T) {
	var in []memory.Line
	for i, text := range []string{"Ann likes tea", "ANN likes tea.", "Bo likes tea", "!!", "??", "!!"} {
		in = append(in, memory.Line{ID: fmt.Sprint(i), Text: text, Importance: 3, At: noonOf(i)})
	}
	d := memory.WriteDigest(in, 20)
	for text, want := range map[string]int{"Ann likes": 0, "ANN likes": 1, "Bo likes": 1, "!!": 1, "??": 1} {
		if got := strings.Count(d.Text, text); got != want {
			t.Errorf("%q stands there %d times, want %d:\n%s", text, got, want, d.Text)
		}
	}
	if d.Shown != 4 {
		t.Errorf("%d are shown, want 4", d.Shown)
	}
}

// TestDigestBound: no entries break the bound, and none is lost.
func TestDigestBound(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		checkDigest(t, entries(r, r.IntN(400)), r.IntN(260))
	}
	checkDigest(t, entries(rand.New(rand.NewPCG(1, 1)), 5000), 200)
}

// TestDigestIsStable: the order of the input is nothing, twice is once, and a digest of what a digest shows is
// that digest.
func TestDigestIsStable(t *testing.T) {
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 2))
		in, most := entries(r, r.IntN(300)), 1+r.IntN(220)
		a := memory.WriteDigest(in, most)
		r.Shuffle(len(in), func(i, j int) { in[i], in[j] = in[j], in[i] })
		if b := memory.WriteDigest(in, most); a.Text != b.Text || fmt.Sprint(a.Details) != fmt.Sprint(b.Details) {
			t.Fatalf("seed %d: another order, other bytes", seed)
		}
		again := memory.WriteDigest(shown(a.Text), most)
		want, _, _ := strings.Cut(a.Text, "\n## In detail")
		if most >= 24 && again.Text != strings.TrimSuffix(want, "\n")+"\n" {
			t.Fatalf("seed %d: the digest of a digest is\n%s\nof\n%s", seed, again.Text, a.Text)
		}
	}
}

// shown reads the entries of a digest with headings.
func shown(text string) []memory.Line {
	var out []memory.Line
	past := false
	for l := range strings.Lines(text) {
		l = strings.TrimSuffix(l, "\n")
		switch body, ok := strings.CutPrefix(l, "- "); {
		case l == "## Episodes":
			past = true
		case l == "## In detail":
			return out
		case ok:
			out = append(out, memory.Line{ID: fmt.Sprintf("%06d", len(out)), Text: body, Importance: 5, Past: past})
		}
	}
	return out
}

// TestDigestDemotes: what matters least goes first, facts and sittings alike.
func TestDigestDemotes(t *testing.T) {
	in := []memory.Line{
		{ID: "a", Text: "never call before nine", Importance: 9, At: noonOf(1)},
		{ID: "b", Text: "likes tea", Importance: 7, At: noonOf(2)},
		{ID: "c", Text: "bought bread", Importance: 3, At: noonOf(40)},
		{ID: "d", Text: "2021-01-03 12:00–12:30 talk", Importance: 4, At: noonOf(3), Past: true},
	}
	d := memory.WriteDigest(in, 4)
	want := "# Memory digest\n- never call before nine\n- likes tea\n- 2 entries in [older](digest/older.md)\n"
	if d.Text != want || len(d.Details) != 1 || !strings.Contains(d.Details[0].Text, "- 2021-01-03 12:00–12:30 talk\n- bought bread\n") {
		t.Errorf("digest\n%s%+v", d.Text, d.Details)
	}
	if d := memory.WriteDigest(in, 1); d.Text != "# Memory digest: 4 entries in [older](digest/older.md)\n" {
		t.Errorf("one line: %s", d.Text)
	}
	if d := memory.WriteDigest(nil, 200); d.Text != "# Memory digest\n" || d.Details != nil {
		t.Errorf("nothing: %+v", d)
	}
}

func FuzzDigest(f *testing.F) {
	f.Add("a\nb\n<!-- x -->\n[l](m)", 3)
	f.Add("- 1\n## Facts\n\n", 1)
	f.Fuzz(func(t *testing.T, text string, most int) {
		var in []memory.Line
		for i, l := range strings.Split(text, "\x00") {
			in = append(in, memory.Line{ID: fmt.Sprint(i), Text: l, Importance: i % 10, At: noonOf(i), Past: i%3 == 0})
		}
		checkDigest(t, in, most%10_000)
	})
}

// TestSittings: half an hour of silence, another task, another session.
func TestSittings(t *testing.T) {
	start := noonOf(0)
	at := func(minutes int, log, task, text string) memory.Moment {
		return memory.Moment{ID: tidemark.EntryID(fmt.Sprint("e", minutes)), Seq: int64(minutes), At: start.Add(time.Duration(minutes) * time.Minute), Log: log, Task: task, Text: text}
	}
	ms := []memory.Moment{
		at(0, "a", "", "deploy the staging server"), at(29, "a", "", "staging server deployed"),
		at(59, "a", "x", "invoices"), at(60, "a", "x", "more invoices"),
		at(61, "a", "y", "holidays"), at(62, "a", "", "holidays in Rome"),
		at(63, "b", "", "hello again"),
	}
	late := start.Add(2 * time.Hour)
	counts := func(es []memory.Sitting) (out []int) {
		for _, e := range es {
			out = append(out, e.Count)
		}
		return out
	}
	if got := counts(memory.Sittings("agent:main:main", ms, late)); fmt.Sprint(got) != "[2 2 2 1]" {
		t.Errorf("sittings of %v messages", got)
	}
	if got := counts(memory.Sittings("agent:main:main", ms, start.Add(70*time.Minute))); fmt.Sprint(got) != "[2 2 2]" {
		t.Errorf("the last is not over: %v", got)
	}
	first := memory.Sittings("agent:main:main", ms, late)[0]
	if first.First != "e0" || first.Last != "e29" || first.Upto != 29 || fmt.Sprint(first.Topics) != "[staging server deployed deploy]" {
		t.Errorf("first sitting %+v", first)
	}
	if got := first.Line(time.UTC); got != "2021-01-01 12:00–12:29 agent:main:main: staging, server, deployed, deploy (2 messages, e0..e29)" {
		t.Errorf("its line: %s", got)
	}
}

func TestImportance(t *testing.T) {
	for _, c := range []struct {
		text       string
		days, want int
	}{
		{"bought bread", 1, 5}, {"Ann likes tea", 1, 7}, {"never call before nine", 1, 9}, {"the owner prefers that it must be cold", 1, 9}, {"nevertheless bought bread", 1, 5},
		{"bought bread", 0, 5}, {"bought bread", 2, 6}, {"bought bread", 9, 7}, {"must be cold", 2, 10}, {"must be cold", 5, 10},
	} {
		if got := memory.Importance(c.text, c.days); got != c.want {
			t.Errorf("%q on %d days: %d, want %d", c.text, c.days, got, c.want)
		}
	}
}

// TestSittingTells: a sitting says what a person asked for and how it ended, in the words that were said; thanks are no
// end, and a question that nobody answered is told as that.
func TestSittingTells(t *testing.T) {
	user, model := tidemark.User, tidemark.Assistant
	for _, row := range []struct {
		name string
		said []memory.Moment
		want string
	}{
		{"asked and done", []memory.Moment{{Role: user, Text: "Move the wiki to the new host. Today."}, {Role: model, Text: "I copy it."}, {Role: model, Text: "The wiki runs on\nfrosch.\n"}, {Role: user, Text: "thanks"}},
			": “Move the wiki to the new host.”, ended with “The wiki runs on”;"},
		{"one line", []memory.Moment{{Role: user, Text: "ok"}, {Role: user, Text: "Move the wiki."}, {Text: "{\"ok\":true}"}, {Role: model, Text: "It runs on frosch. More to come."}}, ": “Move the wiki.”, ended with “It runs on frosch.”;"},
		{"nobody answered", []memory.Moment{{Role: user, Text: "Move the wiki."}, {Role: model, Text: "When?"}, {Role: user, Text: "At noon."}}, ": “Move the wiki.”, then “At noon.”, not answered;"},
		{"one question", []memory.Moment{{Role: user, Text: "Move the wiki."}}, ": “Move the wiki.”, not answered;"},
		{"nobody asked", []memory.Moment{{Role: model, Text: "The backup is done."}}, ": backup"},
	} {
		for i := range row.said {
			row.said[i].Seq, row.said[i].At = int64(i), noonOf(0).Add(time.Duration(i)*time.Minute)
		}
		got := memory.Sittings("agent:main:main", row.said, noonOf(3))
		if len(got) != 1 || !strings.Contains(got[0].Line(nil), row.want) {
			t.Errorf("%s: %d, %s", row.name, len(got), got[0].Line(nil))
		}
	}
}
