package proxy

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/episodes"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/proxy/body"
	"github.com/tidemark-ai/tidemark/proxy/stream"
)

// Calls of ours with their results.
const (
	call1   = `{"type":"tool_use","id":"p1","name":"delimiter","input":{}}`
	call2   = `{"type":"tool_use","id":"p2","name":"delimiter","input":{}}`
	result1 = `{"type":"tool_result","tool_use_id":"p1","content":"ok"}`
	result2 = `{"type":"tool_result","tool_use_id":"p2","content":"ok"}`
)

// mixed is a history with all that may stand in one. The client never saw a call of ours in message 1, and one that ended message 5.
var mixed = []string{
	`{"role":"user","content":"q"}`,
	`{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"a"},{"type":"tool_use","id":"c1","name":"Read","input":{}}]}`,
	`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"r"}]}`,
	`{"role":"system","content":"a rule"}`,
	`{"role":"oracle","content":"thus"}`,
	`{"role":"assistant","content":"b"}`,
	`{"role":"user","content":"q2"}`,
	`{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"tool_use","id":"c3","name":"Read","input":{}}]}`,
	`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c3","content":"r"}]}`,
}

func mixedPuts() map[int]*put {
	return map[int]*put{
		1: {Places: []placed{{Visible: 1, Calls: raws(call1), Results: raws(result1)}}},
		5: {Places: []placed{{Visible: 1, Split: true, Calls: raws(call2), Results: raws(result2)}}},
	}
}

// exchangeOf is a request of these messages; message n is entry en, of 100+n tokens.
func exchangeOf(t *testing.T, puts map[int]*put, list ...string) *Exchange {
	t.Helper()
	x := &Exchange{c: &Conversation{}, treatment: Episodes, req: &body.Request{}}
	at := &node{}
	for i, raw := range list {
		it, err := body.NewItem([]byte(raw))
		if err != nil {
			t.Fatal(err)
		}
		m, _, err := messageOf(it)
		if err != nil {
			t.Fatal(err)
		}
		at = &node{id: tidemark.EntryID(fmt.Sprint("e", i)), parent: at, depth: i + 1, role: it.Role, form: formOf(it), sum: sha256.Sum256(it.Raw), put: puts[i],
			asks: it.Role == tidemark.User && len(m.Results()) == 0, foreign: it.Fixed(), passing: m.Countdown(), work: &work{tokens: tidemark.Tokens(100 + i)}}
		x.path, x.sums, x.req.Items = append(x.path, at), append(x.sums, at.sum), append(x.req.Items, it)
	}
	return x
}

// TestActsJoin: what a later act says of messages goes before what was said of them earlier; what stands beside stays, in order.
func TestActsJoin(t *testing.T) {
	one := func(from, to int) *act { return &act{Spans: []leftSpan{{From: from, To: to}}} }
	for _, row := range []struct {
		acts   []*act
		spans  string
		hidden []int
	}{
		{nil, "[]", nil},
		{[]*act{one(6, 8), one(2, 3)}, "[2-3 6-8]", []int{2, 3, 6, 7, 8}},
		{[]*act{one(2, 3), one(2, 4)}, "[2-4]", []int{2, 3, 4}},
		{[]*act{one(2, 4), one(1, 4)}, "[1-4]", []int{1, 2, 3, 4}},
		{[]*act{one(2, 2), one(4, 5), one(1, 6)}, "[1-6]", []int{1, 2, 3, 4, 5, 6}},
		{[]*act{one(1, 3), one(3, 5)}, "[1-3 3-5]", []int{1, 2, 3, 4, 5}},
		{[]*act{{Spans: []leftSpan{{From: 7, To: 7}, {From: 1, To: 1}}}}, "[1-1 7-7]", []int{1, 7}},
	} {
		path := []*node{{}, {acts: row.acts}}
		l := leftOf(path)
		spans := []string{}
		for _, s := range l.spans {
			spans = append(spans, fmt.Sprintf("%d-%d", s.From, s.To))
		}
		var hidden []int
		for i := range l.hidden() {
			hidden = append(hidden, i)
		}
		slices.Sort(hidden)
		if fmt.Sprint(spans) != row.spans || !slices.Equal(hidden, row.hidden) {
			t.Errorf("%v, hidden %v, want %s, %v", spans, hidden, row.spans, row.hidden)
		}
	}
	l := leftOf([]*node{{acts: []*act{{Blocks: []leftBlock{{Item: 1, place: place{N: 2}, Text: "old"}, {Item: 1, place: place{N: 3}, Text: "other"}}}}},
		{acts: []*act{{Blocks: []leftBlock{{Item: 1, place: place{N: 2}, Text: "new"}, {Item: 4}}}}}})
	if b := l.blocks[1]; len(b) != 2 || b[place{N: 2}].Text != "new" || b[place{N: 3}].Text != "other" || len(l.blocks[4]) != 1 || len(l.blocks) != 2 {
		t.Errorf("%+v", l.blocks)
	}
}

// TestTakes: the size of a request is what was reported last, with what came since, less what left since.
func TestTakes(t *testing.T) {
	results := func(n int) []json.RawMessage { return raws(strings.Repeat("x", 10*n)) } // of 3 tokens each
	for _, row := range []struct {
		name string
		make func(path []*node)
		want tidemark.Tokens
	}{
		{"nothing was reported", func([]*node) {}, 123 + 100 + 101 + 102 + 103},
		{"results of ours", func(p []*node) {
			p[0].put = &put{Places: []placed{{Split: true, Results: results(2)}, {Results: results(5)}}}
		}, 123 + 100 + 101 + 102 + 103 + 21},
		{"of the second message", func(p []*node) { p[1].reported = 1_000 }, 1_000 + 102 + 103},
		{"of the first and the third", func(p []*node) { p[0].reported, p[2].reported = 500, 1_000 }, 1_000 + 103},
		{"of the newest", func(p []*node) { p[3].reported = 1_000 }, 1_000},
		{"results that were seen, and others", func(p []*node) {
			p[1].reported = 1_000
			p[1].put = &put{Places: []placed{{Split: true, Results: results(2)}, {Results: results(5)}}}
			p[3].put = &put{Places: []placed{{Split: true, Results: results(3)}}}
		}, 1_000 + 15 + 102 + 103 + 9},
		{"what left since", func(p []*node) {
			p[1].reported, p[1].acts = 1_000, []*act{{Real: 7}}
			p[2].acts, p[3].acts = []*act{{Real: 20}, {Real: 30}}, []*act{{Real: 50, Freed: 60}}
		}, 1_000 + 102 + 103 - 100},
		{"more left than there was", func(p []*node) { p[3].acts = []*act{{Real: 5_000}} }, 0},
	} {
		x := &Exchange{path: []*node{{}, {}, {}, {}}, req: &body.Request{Fixed: 400}}
		for i, n := range x.path {
			n.work = &work{tokens: tidemark.Tokens(100 + i)}
		}
		x.plan.change.Tools = [][]byte{make([]byte, 7), make([]byte, 3)}
		row.make(x.path)
		if got := x.takes(); got != row.want {
			t.Errorf("%s: %d, want %d", row.name, got, row.want)
		}
	}
}

// TestLimit: what is sent leaves room in the window for the answer that is asked for, at most a quarter of it.
func TestLimit(t *testing.T) {
	for _, row := range []struct {
		budget episodes.Budget
		max    tidemark.Tokens
		want   tidemark.Tokens
	}{
		{episodes.Budget{Tokens: 50_000}, 0, 40_000},
		{episodes.Budget{Tokens: 50_000}, 1_000, 39_000},
		{episodes.Budget{Tokens: 50_000}, 10_000, 30_000},
		{episodes.Budget{Tokens: 50_000}, 10_001, 30_000},
		{episodes.Budget{Tokens: 35_000}, 4_999, 35_000},
		{episodes.Budget{Tokens: 35_000}, 5_001, 34_999},
		{episodes.Budget{Percent: 50}, 10_000, 20_000},
		{episodes.Budget{}, 0, 40_000},
	} {
		c := &Conversation{Config: Config{Settings: Settings{Window: 40_000, Episodes: EpisodeSettings{Budget: row.budget}}}}
		if got := c.limit(&body.Request{Max: row.max}); got != row.want {
			t.Errorf("%v with an answer of %d: %d, want %d", row.budget, row.max, got, row.want)
		}
	}
}

// tellRows are messages as a ledger takes them, each on a line: the item, its place in the graph, who speaks, its blocks (those
// of ours by where they were put), their numbers, and what else is known.
func tellRows(rows []row, items []episodes.Item) (out []string) {
	for i, r := range rows {
		it, s := items[i], fmt.Sprint(r.item)
		if r.to > 0 {
			s += fmt.Sprint("-", r.to)
		}
		if r.back {
			s += "+"
		}
		units := []string{}
		for _, u := range r.units {
			name := fmt.Sprint(u.own)
			if u.own < 0 {
				name = fmt.Sprint("p", u.put)
			}
			if u.back {
				name = "<" + name
			}
			units = append(units, name)
		}
		s += fmt.Sprintf(" %d %s %v %v", it.Seq, it.Message.Role, units, it.Numbers)
		if it.Person {
			s += " person"
		}
		if it.Together {
			s += " together"
		}
		if it.Line != nil {
			s += fmt.Sprintf(" line %v %q", it.Line.Lines, it.Message.PlainText())
		}
		if len(it.Told) > 0 {
			s += fmt.Sprintf(" told %v", it.Told)
		}
		if it.Stays {
			s += fmt.Sprintf(" stays %d", it.Tokens)
		} else if it.Tokens != tidemark.Estimate(*it.Message) || len(it.Message.Content) != len(r.units) {
			s += fmt.Sprintf(" %d tokens of %d blocks", it.Tokens, len(it.Message.Content))
		}
		out = append(out, s)
	}
	return out
}

// TestRows: a history as a ledger takes it, as it stands and with what left of it.
func TestRows(t *testing.T) {
	line := episodes.Line{Lines: []int{3}}
	for _, row := range []struct {
		name string
		left left
		want []string
	}{
		{"all of it", left{}, []string{"0 2 user [0] [0] person", "1 4 assistant [0 1 p0 2] [0 0 1 2]", "2 6 user [<p0 0] [0 0]", "4 10 oracle [0] [] stays 104",
			"5 12 assistant [0 p0] [0 1]", "5+ 13 user [<p0] [0]", "6 14 user [0] [0] person", "7 16 assistant [0 1] [0 0] together", "8 18 user [0] [0]"}},
		{"messages that left", left{spans: []leftSpan{{From: 1, To: 2, Line: line, Text: "gone"}, {From: 5, To: 5}}},
			[]string{"0 2 user [0] [0] person", `1-2 4 user [0] [] line [3] "gone"`, "4 10 oracle [0] [] stays 104", "6 14 user [0] [0] person", "7 16 assistant [0 1] [0 0] together", "8 18 user [0] [0]"}},
		{"blocks that left", left{blocks: map[int]map[place]leftBlock{1: {{N: 1}: {}}, 5: {{N: 1}: {Text: "a line", Told: 2}},
			7: {{N: 0, Thought: 1}: {}, {N: 0}: {Text: "words"}}, 8: {{N: 0}: {}}}},
			[]string{"0 2 user [0] [0] person", "1 4 assistant [0 1 2] [0 0 2]", "2 6 user [0] [0]", "4 10 oracle [0] [] stays 104",
				"5 12 assistant [0 p0] [0 -1] told [2]", "6 14 user [0] [0] person", "7 16 assistant [1] [-1]"}},
	} {
		rows, items := exchangeOf(t, mixedPuts(), mixed...).rows(&row.left)
		if got := tellRows(rows, items); !slices.Equal(got, row.want) {
			t.Errorf("%s:\n%s\nwant\n%s", row.name, strings.Join(got, "\n"), strings.Join(row.want, "\n"))
		}
	}
	x := exchangeOf(t, nil, mixed[0], `{"role":"assistant","content":["x",{"type":"text","text":"a"}]}`)
	rows, items := x.rows(&left{})
	if got := tellRows(rows, items); len(got) != 2 || got[1] != "1 4 assistant [0 1] [-1 1]" {
		t.Errorf("a block that cannot be read: %q", got)
	}
	rows, items = exchangeOf(t, nil, mixed[1], mixed[2]).rows(&left{})
	if got := tellRows(rows, items); len(got) != 2 || got[0] != "0 2 assistant [0 1 2] [0 0 1] together" {
		t.Errorf("a loop that nobody asked for: %q", got)
	}
}

// lines says what an act takes out.
func (a *act) lines() (out []string) {
	for _, s := range a.Spans {
		out = append(out, fmt.Sprintf("span %d-%d %v %q", s.From, s.To, s.Lines, s.Text))
	}
	for _, b := range a.Blocks {
		out = append(out, fmt.Sprintf("block %d.%d %q line %d", b.Item, b.N, b.Text, b.Told))
	}
	return out
}

// TestActOfRuns: a run of messages leaves as the client's messages in it; one of nothing but results of ours as the line in the
// place of their call, and where that call leaves too, both lines stand there.
func TestActOfRuns(t *testing.T) {
	at := func(n int) []part { return []part{{unit: unit{place: place{N: n}}}} }
	rows := []row{{item: 0, units: at(0)}, {item: 1, to: 4, units: at(0)}, {item: 5, back: true, units: at(2)}, {item: 6, units: at(0)}, {item: 7, back: true, units: at(3)}}
	run := func(from, to int, text string, lines ...int) episodes.Run {
		return episodes.Run{From: from, To: to, Line: episodes.Line{Lines: lines}, Text: text}
	}
	for _, row := range []struct {
		run  episodes.Run
		want []string
	}{
		{run(0, 0, "", 1), []string{`span 0-0 [1] ""`}},
		{run(0, 1, "a", 1, 2), []string{`span 0-4 [1 2] "a"`}},
		{run(1, 3, "a", 1), []string{`span 1-6 [1] "a"`}},
		{run(2, 3, "a"), []string{`span 6-6 [] "a"`}},
		{run(2, 2, "a", 4), []string{`block 5.2 "a" line 4`}},
		{run(4, 4, "a", 4, 5), []string{`block 7.3 "a" line 0`}},
		{run(2, 2, "", 4), nil},
	} {
		a := &act{}
		a.run(rows, row.run)
		if got := a.lines(); !slices.Equal(got, row.want) {
			t.Errorf("rows %d-%d: %q, want %q", row.run.From, row.run.To, got, row.want)
		}
	}
	there := func(n int, text string, told int) leftBlock {
		return leftBlock{Item: 5, place: place{N: n}, Text: text, Told: told}
	}
	for _, row := range []struct {
		had, more leftBlock
		want      []string
	}{
		{there(2, "a", 4), there(2, "b", 3), []string{`block 5.2 "a\nb" line 4`}},
		{there(2, "a", 4), there(2, "b", 6), []string{`block 5.2 "a\nb" line 6`}},
		{there(2, "a", 4), there(2, "", 0), []string{`block 5.2 "a" line 4`}},
		{there(2, "", 0), there(2, "b", 6), []string{`block 5.2 "b" line 6`}},
		{there(2, "a", 4), there(3, "b", 6), []string{`block 5.2 "a" line 4`, `block 5.3 "b" line 6`}},
		{there(2, "a", 4), leftBlock{Item: 6, place: place{N: 2}, Text: "b"}, []string{`block 5.2 "a" line 4`, `block 6.2 "b" line 0`}},
	} {
		a := &act{Blocks: []leftBlock{row.had}}
		a.block(a.Blocks, row.more)
		if got := a.lines(); !slices.Equal(got, row.want) {
			t.Errorf("%+v and %+v: %q, want %q", row.had, row.more, got, row.want)
		}
	}
}

// TestTellAct: an act tells of how many episodes it took all, of how many a part, and what that freed.
func TestTellAct(t *testing.T) {
	step := func(n int, l episodes.Level) episodes.Step {
		return episodes.Step{Episode: &episodes.Episode{N: n}, Level: l}
	}
	e := episodes.Account{Whole: 10, Part: 20, Freed: 5}
	tellAct(&e, &act{Freed: 99, Real: 40, steps: []episodes.Step{step(1, episodes.Bulk), step(1, episodes.Whole), step(2, episodes.Whole), step(2, episodes.Bulk),
		step(3, episodes.Reasoning), step(3, episodes.Intermediate), step(4, episodes.Whole)}})
	if e != (episodes.Account{Whole: 13, Part: 21, Freed: 45}) {
		t.Errorf("%+v", e)
	}
}

// TestReported: the size of the context with an answer is what the API reported of its last call, where episodes may leave and the
// request was sent with what left; the first report of an answer counts.
func TestReported(t *testing.T) {
	leg := func(n tidemark.Tokens, reported bool) stream.Leg {
		return stream.Leg{Usage: tidemark.Usage{Input: n, CacheRead: 1, CacheCreation: 2, Output: 3}, Reported: reported}
	}
	for _, row := range []struct {
		name      string
		treatment string
		why       string
		had       tidemark.Tokens
		legs      []stream.Leg
		want      tidemark.Tokens
		said      bool
	}{
		{"one call", Episodes, "", 0, []stream.Leg{leg(100, true)}, 106, true},
		{"of two the last", EpisodesTrim, "", 0, []stream.Leg{leg(100, true), leg(200, true)}, 206, true},
		{"the last is not reported", Episodes, "", 0, []stream.Leg{leg(100, true), leg(200, false)}, 0, false},
		{"nothing was answered", Episodes, "", 0, nil, 0, false},
		{"episodes do not leave", Page, "", 0, []stream.Leg{leg(100, true)}, 0, false},
		{"it went out as it came", Episodes, "since", 0, []stream.Leg{leg(100, true)}, 0, false},
		{"it was reported", Episodes, "", 70, []stream.Leg{leg(100, true)}, 70, false},
	} {
		x, n := &Exchange{treatment: row.treatment, why: row.why, step: &step{}}, &node{reported: row.had}
		x.report(stream.Turn{Legs: row.legs}, n)
		if n.reported != row.want || (x.step.said == n) != row.said {
			t.Errorf("%s: %d, of the step %t", row.name, n.reported, x.step.said == n)
		}
	}
}

// TestUndo: what left with a request that the API did not take is back, unless it is stored or somebody else was sent the same.
func TestUndo(t *testing.T) {
	for _, row := range []struct {
		stored bool
		busy   int
		gone   bool
	}{{false, 0, true}, {false, 1, true}, {false, 2, false}, {true, 1, false}} {
		a, other := &act{stored: row.stored}, &act{}
		x := &Exchange{path: []*node{{acts: []*act{{}}}, {acts: []*act{other, a}}}, step: &step{busy: row.busy}, act: a}
		x.undo()
		left := x.path[1].acts
		if gone := len(left) == 1 && left[0] == other && x.act == nil; gone != row.gone || !gone && (len(left) != 2 || x.act != a) || len(x.path[0].acts) != 1 {
			t.Errorf("%+v: %d are left, of the request %t", row, len(left), x.act != nil)
		}
	}
	x := &Exchange{path: []*node{{acts: []*act{{}}}}, step: &step{}}
	if x.undo(); len(x.path[0].acts) != 1 {
		t.Error("what left with another request is back")
	}
}
