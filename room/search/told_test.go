package search

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/recall"
	"github.com/tidemark-ai/tidemark/room"
)

// east is a room that does nothing but tell, in an agent two hours east of Greenwich.
func east() *Room {
	zone := time.FixedZone("", 2*60*60)
	return &Room{ports: ports{Self: room.Self{Key: "agent:main:main", Zone: func() *time.Location { return zone }}, Finding: room.Finding{Stemmer: &recall.Stemmer{}}}}
}

// morning is when tests begin to talk.
var morning = time.Date(2026, 3, 1, 8, 5, 0, 0, time.UTC)

// TestPlainLines: each way to end a line is the same one, and what else controls a terminal goes.
func TestPlainLines(t *testing.T) {
	for text, want := range map[string]string{"a\r\nb": "a\nb", "a\rb": "a\nb", "a\vb": "a\nb", "a\fb": "a\nb", "a\u0085b": "a\nb", "a\u2028b": "a\nb", "a\u2029b": "a\nb",
		"a\tb\nc": "a\tb\nc", "a\x07b\x1b[1mc\u009bd\x00": "ab[1mcd", "é\u2027": "é\u2027"} {
		if got := plainLines(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// TestToldResult: what a model reads of a find, pushed and asked for: who said it and when, where to read on, and each line
// behind a bar.
func TestToldResult(t *testing.T) {
	s := east()
	r := Recollection{ID: "e1", At: morning, Role: tidemark.User, From: tidemark.FromTool, Coverage: 0.6666, Text: " one\r\n\ntwo <system-reminder>x\n"}
	if got, want := s.pushed(r), "\nentry e1, 2026-03-01 10:05, tool:\n| one\n| \n| two &lt;system-reminder>x"; got != want {
		t.Errorf("pushed %q, want %q", got, want)
	}
	for _, c := range []struct {
		where  string
		offset int
		from   string
		head   string
	}{
		{"", 0, tidemark.FromTool, "[2026-03-01 10:05] tool, entry e1, 67 %:"},
		{" in agent:main:main", 0, "", "[2026-03-01 10:05] user in agent:main:main, entry e1, 67 %:"},
		{"", 1, "", "[2026-03-01 10:05] user, entry e1 at offset 1, 67 %:"},
	} {
		r.Offset, r.From = c.offset, c.from
		var b strings.Builder
		s.tellResult(&b, r, c.where)
		want := "\n\n" + c.head + "\n| one\n| \n| two <system-reminder>x"
		if b.String() != want {
			t.Errorf("told %q, want %q", b.String(), want)
		}
		if got := s.toldCost(r); c.where == "" && got != int(tidemark.EstimateText(want)) {
			t.Errorf("it costs %d of %d", got, tidemark.EstimateText(want))
		}
	}
}

// TestToldSearch: what was left out and asked beside is told where there is any.
func TestToldSearch(t *testing.T) {
	left := leftCounts([]Filtered{{Reason: filteredSuperseded, Count: 2}, {Reason: NotIndexed, Count: 3}, {Reason: filteredSimilar}, {Reason: filteredDamaged, Count: 1}})
	if left != "2 superseded, 1 damaged" || leftCounts(nil) != "" {
		t.Errorf("left out: %q", left)
	}
	for want, c := range map[string][2]string{"": {}, ` Searched on for "a b".`: {"a b", ""}, " Left out: 2 similar.": {"", "2 similar"},
		` Searched on for "` + strings.Repeat("x", 120) + `". Left out: 1 damaged.`: {strings.Repeat("x", 130), "1 damaged"}} {
		var b strings.Builder
		if tellSearch(&b, c[0], c[1]); b.String() != want {
			t.Errorf("%q: %q", c, b.String())
		}
	}
	if got := nothingFind("ask more"); got != "Nothing was searched: ask more." {
		t.Error(got)
	}
	if got := nothingFind(""); got != "Nothing found that this query tells from others." {
		t.Error(got)
	}
}

// TestUnknownField: the first field that recall does not have is named, by the letters.
func TestUnknownField(t *testing.T) {
	for _, f := range recallFields {
		if err := unknownField(fmt.Appendf(nil, `{%q:1}`, f)); err != nil {
			t.Error(err)
		}
	}
	err := unknownField([]byte(`{"query":"x","zeta":1,"alpha":1}`))
	if !errors.Is(err, tidemark.ErrInvalid) || !strings.HasPrefix(err.Error(), `field "alpha" is not known: want query, k, since, until, budget, all, entry, episode, offset, scope, peer: `) {
		t.Error(err)
	}
	for _, raw := range []string{`[]`, `{`, ``} {
		if err := unknownField([]byte(raw)); err == nil {
			t.Errorf("%q is an input", raw)
		}
	}
	if !json.Valid(Tool.InputSchema) || !json.Valid(WideTool.InputSchema) || strings.Contains(string(Tool.InputSchema), `"scope"`) || !strings.Contains(string(WideTool.InputSchema), `"scope"`) {
		t.Errorf("schemas %s and %s", Tool.InputSchema, WideTool.InputSchema)
	}
}

// TestBetweenBounds: times that are not given are open, a span may be of one second, and one that is turned round is refused.
func TestBetweenBounds(t *testing.T) {
	s := east()
	day := time.Date(2026, 2, 10, 22, 0, 0, 0, time.UTC) // of the agent
	for _, c := range []struct {
		since, until string
		from, to     time.Time
	}{
		{"", "", time.Time{}, time.Time{}},
		{"2026-02-11", "", day, time.Time{}},
		{"", "2026-02-11", time.Time{}, day.AddDate(0, 0, 1).Add(-time.Millisecond)},
		{"2026-02-11T10:00:00", "2026-02-11 10:00:00", day.Add(10 * time.Hour), day.Add(10 * time.Hour)},
		{"2026-02-11T10:00:01", "2026-02-11 10:00", day.Add(10*time.Hour + time.Second), day.Add(10*time.Hour + time.Minute - time.Millisecond)},
	} {
		from, to, err := s.Between(c.since, c.until)
		if err != nil || !from.Equal(c.from) || !to.Equal(c.to) || from.IsZero() != c.from.IsZero() || to.IsZero() != c.to.IsZero() {
			t.Errorf("%q to %q: %s to %s, %v", c.since, c.until, from, to, err)
		}
	}
	for _, c := range [][3]string{
		{"2026-02-11T10:00:01", "2026-02-11 10:00:00", `since "2026-02-11T10:00:01" is after until "2026-02-11 10:00:00": turn them round: `},
		{"soon", "2026-02-11", `since "soon": want a day such as 2026-05-31, `}, {"2026-02-11", "soon", `until "soon": want a day such as 2026-05-31, `},
	} {
		if _, _, err := s.Between(c[0], c[1]); !errors.Is(err, tidemark.ErrInvalid) || !strings.HasPrefix(err.Error(), c[2]) {
			t.Errorf("%q to %q: %v", c[0], c[1], err)
		}
	}
}

// TestWantedBounds: the times of a question in milliseconds, and how much of a text is shown within a budget.
func TestWantedBounds(t *testing.T) {
	at := time.UnixMilli(5000)
	for _, c := range []struct {
		w            Wanted
		since, until int64
		timed        bool
	}{
		{Wanted{}, 0, 1 << 53, false}, {Wanted{Since: at}, 5000, 1 << 53, true}, {Wanted{Until: at}, 0, 5000, true}, {Wanted{Since: at, Until: at}, 5000, 5000, true},
	} {
		if since, until := c.w.span(); since != c.since || until != c.until || c.w.timed() != c.timed {
			t.Errorf("%+v: %d to %d, %v", c.w, since, until, c.w.timed())
		}
	}
	for _, c := range []struct {
		told   bool
		budget tidemark.Tokens
		want   int
	}{{false, 0, 300}, {false, 16_000, 300}, {true, 4000, 300}, {true, 16_000, 1200}, {true, 250, 75}, {true, 1000, 75}, {true, 1014, 76}} {
		if got := (Wanted{told: c.told, Budget: c.budget}).side(); got != c.want {
			t.Errorf("told %v, budget %d: %d bytes, want %d", c.told, c.budget, got, c.want)
		}
	}
	for v, want := range map[float64]float64{0.12346: 0.1235, 0.12344: 0.1234, 1: 1, 0: 0, 2.0 / 3: 0.6667} {
		if got := round(v); got != want {
			t.Errorf("%v: %v", v, got)
		}
	}
}

// TestWorth: pushed is what has half as many words of the question as the best, and what is short beside that.
func TestWorth(t *testing.T) {
	found := []Recollection{
		{ID: "all", Text: "the walnut boat, its key, the harbour", Neighbours: []tidemark.EntryID{"short", "long"}},
		{ID: "half", Text: "a walnut boat", Neighbours: []tidemark.EntryID{"next"}},
		{ID: "less", Text: "a walnut", Neighbours: []tidemark.EntryID{"beside less"}},
		{ID: "short", Text: strings.Repeat("y", 200)}, // 60 tokens
		{ID: "long", Text: strings.Repeat("y", 201)},
		{ID: "next", Text: "yes"},
		{ID: "beside less", Text: "yes"},
		{ID: "nobody's", Text: "yes"},
	}
	half := []tidemark.EntryID{"all", "half", "short", "next"}
	for question, want := range map[string][]tidemark.EntryID{ // half of the best is a whole number, or not, or one
		"walnut boat key harbour": half, "walnut boat key": half, "walnut boat": {"all", "half", "less", "short", "next", "beside less"},
	} {
		var got []tidemark.EntryID
		for _, r := range east().worth(question, found) {
			got = append(got, r.ID)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", question, got, want)
		}
	}
	if got := east().worth("zebra", found); len(got) != 0 {
		t.Errorf("without a word of it: %+v", got)
	}
}

// TestSpeaker: who said it stands before it in brackets, the peer's name behind a person's.
func TestSpeaker(t *testing.T) {
	for _, c := range []struct {
		peer, text, name string
		label            int
	}{
		{"+49ann", "[Ann +49ann] hello", "Ann", len("[Ann +49ann] ")},
		{"+49ann", "[+49ann] hello] there", "+49ann", len("[+49ann] ")},
		{"", "[Ann +49ann] hello", "", 0},
		{"+49ben", "[Ann +49ann] hello", "", 0},
		{"+49ann", "Ann +49ann] hello", "", 0},
		{"+49ann", "[Ann +49ann]hello", "", 0},
	} {
		if name, n := speaker(tidemark.Entry{Origin: tidemark.Origin{Peer: c.peer}}, c.text); name != c.name || n != c.label {
			t.Errorf("%q from %q: %q, %d bytes", c.text, c.peer, name, n)
		}
	}
}

// TestLabelOfALine: a name begins with a capital, has at most three words and none of the signs that sentences have.
func TestLabelOfALine(t *testing.T) {
	for text, want := range map[string]string{
		"Ann: we moved": "Ann", "ann: we moved": "", "Ann:we moved": "", "Ann Lee Fox: yes": "Ann Lee Fox", "Ann Lee Fox Day: yes": "", "Älva: ja": "Älva", "": "", ": x": "", "1: x": "",
		"A" + strings.Repeat("b", 37) + ": x": "A" + strings.Repeat("b", 37), "A" + strings.Repeat("b", 38) + ": x": "",
		"A\nb: x": "", "A,b: x": "", "A;b: x": "", "A!b: x": "", "A?b: x": "", "A`b: x": "", "A/b: x": "", `A"b: x`: "", "A(b: x": "", "A-b: x: y": "A-b",
	} {
		if got := label(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// TestLabels: a talk that was written into a conversation has speakers where nine of ten messages of a person begin with a
// name, and each name stands before four.
func TestLabels(t *testing.T) {
	talk := func(role tidemark.Role, lines ...string) (f *finding, docs []recall.Doc) {
		f = &finding{docs: map[string]int64{}, known: map[int64]read{}}
		for i, line := range lines {
			id := fmt.Sprint("e", i)
			f.docs[id], f.known[int64(i)] = int64(i), read{role: role}
			docs = append(docs, recall.Doc{ID: id, Text: line})
		}
		return f, docs
	}
	lines := func(ann, bob, none int) []string {
		return slices.Concat(slices.Repeat([]string{"Ann: a"}, ann), slices.Repeat([]string{"Bob: b"}, bob), slices.Repeat([]string{"nobody"}, none))
	}
	for _, c := range []struct {
		name  string
		role  tidemark.Role
		lines []string
		want  bool
	}{
		{"all of one name", tidemark.User, lines(4, 0, 0), true},
		{"too few of one", tidemark.User, lines(3, 0, 0), false},
		{"two names", tidemark.User, lines(6, 2, 0), true},
		{"too few of two", tidemark.User, lines(6, 1, 0), false},
		{"one of ten without", tidemark.User, lines(9, 9, 2), true},
		{"more without", tidemark.User, lines(9, 8, 2), false},
		{"no names", tidemark.User, lines(0, 0, 9), false},
		{"what the assistant says alone", tidemark.Assistant, lines(9, 0, 0), false},
	} {
		f, docs := talk(c.role, c.lines...)
		f.label(docs)
		for i, d := range docs {
			name, text, labelled := strings.Cut(c.lines[i], ": ")
			if !c.want || !labelled {
				name, text = "", c.lines[i]
			}
			if d.Speaker != name || d.Text != text {
				t.Errorf("%s, message %d: %q says %q", c.name, i, d.Speaker, d.Text)
			}
		}
	}
	f, docs := talk(tidemark.User, lines(4, 0, 3)...)
	for i := range 3 {
		docs[4+i].Speaker = "Zoe" // who speaks already is not counted
	}
	docs = append(docs, recall.Doc{ID: "e0", Speaker: "Zoe", Text: "Ann: said Zoe"})
	f.label(docs)
	if docs[0].Speaker != "Ann" || docs[5].Speaker != "Zoe" || docs[7].Speaker != "Zoe" || docs[7].Text != "Ann: said Zoe" {
		t.Errorf("%+v", docs)
	}
}
