package search

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host/hosttest"
	"github.com/tidemark-ai/tidemark/recall"
	"github.com/tidemark-ai/tidemark/room"
)

// line is a message that a search found.
type line struct {
	seq  int64
	role tidemark.Role
	from string
	text string
}

// foundIn is a search that found some messages, the best first.
func foundIn(s *Room, lines ...line) *finding {
	f := &finding{s: s, docs: map[string]int64{}, known: map[int64]read{}}
	var docs []recall.Doc
	for i, l := range lines {
		id := fmt.Sprint("e", l.seq)
		f.docs[id] = l.seq
		f.known[l.seq] = read{entry: tidemark.Entry{ID: tidemark.EntryID(id), Seq: l.seq, Origin: tidemark.Origin{From: l.from}}, role: l.role, text: l.text, part: l.text}
		docs = append(docs, recall.Doc{ID: id, Pos: int64(2 * i), Text: l.text})
		f.hits = append(f.hits, recall.Hit{Doc: i, Score: float64(100 - i), Normalized: 1 - float64(i)/100})
	}
	f.index = recall.New(docs, nil)
	return f
}

// order is the positions of what was found.
func (f *finding) order() (out []int64) {
	for _, h := range f.hits {
		out = append(out, f.docs[f.index.Docs()[h.Doc].ID])
	}
	return out
}

// TestSourcesFirst: what a person said moves before what the assistant repeats of it later, and nothing else does.
func TestSourcesFirst(t *testing.T) {
	const said = "The oven comes from Lahti and costs a lot."
	echo := func(seq int64) line {
		return line{seq, tidemark.Assistant, tidemark.FromModel, "You said: “" + said + "”"}
	}
	source := func(seq int64) line { return line{seq, tidemark.User, tidemark.FromPerson, said} }
	other := func(seq int64) line { return line{seq, tidemark.User, tidemark.FromPerson, "Something else entirely."} }
	far := func(n int) (lines []line) {
		lines = []line{echo(90)}
		for i := range n {
			lines = append(lines, other(int64(10+i)))
		}
		return append(lines, source(1))
	}
	for _, c := range []struct {
		name  string
		found []line
		want  []int64
	}{
		{"an echo before its source", []line{echo(5), source(3)}, []int64{3, 5}},
		{"with others between", []line{other(9), echo(5), other(8), source(3), other(7)}, []int64{9, 3, 5, 8, 7}},
		{"the source first", []line{source(3), echo(5)}, []int64{3, 5}},
		{"said again behind the echo", []line{echo(5), source(7)}, []int64{5, 7}},
		{"of a tool", []line{echo(5), {3, tidemark.User, tidemark.FromTool, said}}, []int64{5, 3}},
		{"no echo", []line{{5, tidemark.Assistant, tidemark.FromModel, "The oven costs a lot."}, source(3)}, []int64{5, 3}},
		{"repeated by a person", []line{{5, tidemark.User, tidemark.FromPerson, said}, source(3)}, []int64{5, 3}},
		{"two sources", []line{echo(5), source(2), source(1)}, []int64{2, 1, 5}},
		{"the last that is looked at", far(candidates - 2), append([]int64{1, 90}, upward(10, 10+candidates-3)...)},
		{"one behind it", far(candidates - 1), append(append([]int64{90}, upward(10, 10+candidates-2)...), 1)},
	} {
		f := foundIn(east(), c.found...)
		f.sourcesFirst()
		if got := f.order(); !slices.Equal(got, c.want) {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
		if !slices.IsSortedFunc(f.hits, func(a, b recall.Hit) int { return int(100*b.Normalized) - int(100*a.Normalized) }) || f.hits[0].Normalized != 1 {
			t.Errorf("%s: the scores do not agree with the order", c.name)
		}
	}
}

// TestDistinctHits: each text once, and no more than are wanted; what is not given is told once, with the first reason.
func TestDistinctHits(t *testing.T) {
	f := foundIn(east(), line{seq: 1, text: "a"}, line{seq: 2, text: "a"}, line{seq: 3, text: "b"}, line{seq: 4, text: "c"})
	for k, want := range map[int]string{0: "", 1: "0", 2: "0 2", 3: "0 2 3", 9: "0 2 3"} {
		var got []string
		for _, h := range f.distinct(k) {
			got = append(got, fmt.Sprint(h.Doc))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%d of them: %q", k, got)
		}
	}
	var out Recalled
	f.leftOut(&out, f.hits[:1], []leaving{{filteredBudget, f.hits[:2]}, {filteredSuperseded, f.hits[1:3]}, {filteredSimilar, f.hits[:3]}})
	f.known[1], f.known[4] = read{lost: true}, read{lost: true}
	f.tellDamaged(&out)
	want := []Filtered{{filteredBudget, 1, []tidemark.EntryID{"e2"}}, {filteredSuperseded, 1, []tidemark.EntryID{"e3"}}, {filteredDamaged, 2, []tidemark.EntryID{"e1", "e4"}}}
	if fmt.Sprint(out.Filtered) != fmt.Sprint(want) {
		t.Errorf("%+v, want %+v", out.Filtered, want)
	}
	out = Recalled{}
	foundIn(east(), line{seq: 1, text: "a"}).tellDamaged(&out)
	if out.Filtered != nil {
		t.Errorf("of what is sound: %+v", out.Filtered)
	}
}

// TestRecollection: what is told of a find, with the messages that stand right beside it.
func TestRecollection(t *testing.T) {
	f := foundIn(east(), line{seq: 1, text: "a"}, line{seq: 2, text: "b"}, line{seq: 3, text: "c"})
	docs := slices.Clone(f.index.Docs())
	for i, pos := range []int64{4, 5, 7} {
		docs[i].Pos = pos
	}
	f.index = recall.New(docs, nil)
	f.known[2] = read{entry: tidemark.Entry{ID: "e2", Log: "log", At: morning, Origin: tidemark.Origin{From: tidemark.FromTool}}, role: tidemark.User, text: "the walnut", at: 7, amended: true, gone: true}
	for i, want := range []string{"[e2]", "[e1]", "[]"} {
		got := f.recollection(recall.Hit{Doc: i, Score: 1.00004, Normalized: 0.5, Coverage: 0.33336, Around: 0.25}, []string{"walnut"})
		if fmt.Sprint(got.Neighbours) != want || got.Neighbours == nil || got.Score != 1 || got.Normalized != 0.5 || got.Coverage != 0.3334 || got.Around != 0.25 {
			t.Errorf("%d: %+v", i, got)
		}
		if i == 1 && (got.ID != "e2" || got.Session != "log" || !got.At.Equal(morning) || got.Role != tidemark.User || got.From != tidemark.FromTool || got.Text != "the walnut" || got.Offset != 7 || !got.amended || !got.gone) {
			t.Errorf("%+v", got)
		}
	}
}

// uses is a message with calls of read, "ID PATH" each.
func uses(calls ...string) tidemark.Message {
	m := tidemark.Message{Role: tidemark.Assistant}
	for _, c := range calls {
		id, path, _ := strings.Cut(c, " ")
		m.Content = append(m.Content, tidemark.ToolUse(id, "read", fmt.Appendf(nil, `{"path":%q}`, path)))
	}
	return m
}

// gave is a message with results.
func gave(failed bool, ids ...string) tidemark.Message {
	m := tidemark.Message{Role: tidemark.User}
	for _, id := range ids {
		m.Content = append(m.Content, tidemark.ToolResult(id, "it says so", failed))
	}
	return m
}

// TestRepeated: a result is repeated when each of its calls was made again later and did not fail then. Another conversation
// that made calls of the same names between has no part in it.
func TestRepeated(t *testing.T) {
	d, beside := desks(t)
	want := map[int64]heldAs{}
	add := func(m tidemark.Message, kind recall.Kind, repeated bool) {
		t.Helper()
		want[d.logs(morning, "", m).Seq] = heldAs{kind, repeated}
		beside.logs(morning, "", uses("c0 other", "c1 other", "c2 other", "c3 other", "c4 other", "c5 other", "c6 other", "c7 other"))
		d.event()
	}
	call := func(calls ...string) { t.Helper(); add(uses(calls...), recall.ToolCall, false) }
	add(tidemark.NewText(tidemark.User, "go"), recall.UserMessage, false)
	call("c0 a", "c1 once")
	add(gave(false, "c0", "c1"), recall.ToolResult, false) // one of the two stands for nothing newer
	call("c2 a")
	add(gave(false, "c2"), recall.ToolResult, true)
	add(tidemark.NewText(tidemark.Assistant, "so"), recall.AgentMessage, false)
	call("c3 b")
	add(gave(true, "c3"), recall.ToolResult, true) // it failed, and did not later
	call("c4 a", "c5 b")
	add(gave(false, "c4", "c5"), recall.ToolResult, false)
	call("c6 a")
	add(gave(true, "c6"), recall.ToolResult, false)
	got, err := d.repeated(t.Context(), slices.Sorted(maps.Keys(want)))
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("%+v, %v\nwant %+v", got, err, want)
	}
}

// TestCallsAsked: of the calls of a message those count whose results are asked for.
func TestCallsAsked(t *testing.T) {
	m := uses("c1 a", "c2 b", "c3 c")
	m.Content = append(m.Content, tidemark.Text("c1"))
	if got, want := callsOf(m.AppendJSON(nil), []string{"c3", "c1"}), []string{`read {"path":"a"}`, `read {"path":"c"}`}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := callsOf(m.AppendJSON(nil), nil); got != nil {
		t.Errorf("%q", got)
	}
}

// TestJudged: hits are worth what their premise, their task, their kind and what replaced them say, and what a task must keep
// to has a floor.
func TestJudged(t *testing.T) {
	d, _ := desks(t)
	task := recall.Task{ID: "t", Phase: recall.Planning, Goals: []string{"g"}, Constraints: []string{"Never on a Sunday"}}
	marks := map[tidemark.EntryID]room.Mark{}
	var lines []line
	want := map[int64]float64{}
	add := func(worth float64, m room.Mark, text string) {
		e := d.says(morning, text)
		lines, want[e.Seq] = append(lines, line{e.Seq, tidemark.User, tidemark.FromPerson, text}), worth
		marks[tidemark.EntryID(fmt.Sprint("e", e.Seq))] = m
	}
	own := task.Premise()
	add(0.1, room.Mark{Premise: own, SupersededBy: "later"}, "walnut")
	add(1, room.Mark{Premise: own, Task: "t"}, "walnut")
	add(0.5, room.Mark{}, "walnut")
	add(0.4, room.Mark{Premise: "another"}, "walnut")
	add(0.3, room.Mark{Premise: own, Task: "u"}, "walnut")
	add(0.3, room.Mark{SupersededBy: "later", Pinned: true}, "walnut")
	add(0.3, room.Mark{SupersededBy: "later"}, "paint it, but never on a sunday")
	f := foundIn(d.Room, lines...)
	for i := range f.hits {
		f.hits[i].Normalized = 1
	}
	d.MarksOf = func(context.Context, []tidemark.EntryID) (map[tidemark.EntryID]room.Mark, error) { return marks, nil }
	d.Task = func(context.Context) (recall.Task, error) { return recall.Task{}, nil }
	if superseded, err := f.judge(t.Context()); superseded != nil || err != nil || f.hits[0].Normalized != 1 || f.order()[0] != 1 {
		t.Errorf("without a task: %v, %v", superseded, err)
	}
	d.Task = func(context.Context) (recall.Task, error) { return task, nil }
	superseded, err := f.judge(t.Context())
	if err != nil || len(superseded) != len(lines) {
		t.Fatal(superseded, err)
	}
	for i, h := range f.hits {
		seq := f.order()[i]
		if !about(h.Normalized, want[seq]) || superseded[fmt.Sprint("e", seq)] != (seq == 1 || seq > 5) {
			t.Errorf("message %d is worth %v, superseded %v; want %v", seq, h.Normalized, superseded[fmt.Sprint("e", seq)], want[seq])
		}
	}
	if got := f.order()[:3]; !slices.Equal(got, []int64{2, 3, 4}) || f.order()[6] != 1 {
		t.Errorf("in the order %d", f.order())
	}
}

// TestJudgedMost: as many hits as a search may have are judged by the task, and no more.
func TestJudgedMost(t *testing.T) {
	d, _ := desks(t)
	var lines []line
	for range taskHits + 1 {
		lines = append(lines, line{d.says(morning, "walnut").Seq, tidemark.User, tidemark.FromPerson, "walnut"})
	}
	f := foundIn(d.Room, lines...)
	d.Task = func(context.Context) (recall.Task, error) {
		return recall.Task{ID: "t", Phase: recall.Planning, Goals: []string{"g"}}, nil
	}
	superseded, err := f.judge(t.Context())
	if err != nil || len(superseded) != taskHits || superseded[fmt.Sprint("e", taskHits+1)] {
		t.Errorf("%d are judged, %v", len(superseded), err)
	}
	f.hits = nil
	if superseded, err := f.judge(t.Context()); superseded != nil || err != nil {
		t.Errorf("of none: %v, %v", superseded, err)
	}
}

// TestLookNear: what stands out by its vector is ranked with what words found, though it has none of them.
func TestLookNear(t *testing.T) {
	d, _ := desks(t)
	for i, text := range []string{"the walnut boat", "something else", "a green vessel", "more of that"} {
		d.says(minutes(10*i), text)
	}
	q := recall.Parse("walnut boat", d.Stemmer)
	f := &finding{s: d.Room, line: d.line(), known: map[int64]read{}, size: sizeOf{docs: wholeMost + 1}, seqs: []int64{1}, near: map[int64]recall.Stand{1: {Rank: 2, Z: 9}, 3: {Rank: 1, Z: 9}}}
	if err := f.lookNear(t.Context(), q); err != nil || !slices.Equal(f.seqs, []int64{1, 3}) {
		t.Errorf("candidates %d, %v", f.seqs, err)
	}
	if got := f.order(); !slices.Equal(got, []int64{1, 3}) {
		t.Errorf("found are %d", got)
	}
}

// TestChained: what only another message leads to is found by a second search, also in a long conversation, and where nothing
// of it fits into a budget.
func TestChained(t *testing.T) {
	d := deskOf(t, hosttest.DB(t), "agent:main:main", silent{})
	filler := func(n int) {
		d.exec(`INSERT INTO entries(id, log, kind, role, at, tokens, skel, origin, hash, payload) WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 600)
			SELECT ? || i, ?, 'message', 'user', ?, 1, '{"n":1}', '{"from":"person"}', '', '{"role":"user","content":"so"}' FROM n`, fmt.Sprint("filler", n, "-"), d.log, morning.UnixMilli())
	}
	filler(1)
	led := d.says(minutes(1), "The walnut gate is in the care of MIRA-12 since last spring.")
	filler(2)
	answer := d.says(minutes(2), "MIRA-12 carries the code 5f3a99c1.")
	w := Wanted{Query: "which code does the one carry who cares for the walnut gate"}
	got, err := d.Recall(t.Context(), w)
	if err != nil || got.Verdict != recall.Confident || len(got.Results) < 2 || got.Results[0].ID != answer.ID || got.Results[1].ID != led.ID || !strings.Contains(got.Reformulated, "mira-12") {
		t.Errorf("%s, second %q, %+v, %v", got.Verdict, got.Reformulated, got.Results, err)
	}
	w.Budget = 1
	if got, err := d.Recall(t.Context(), w); err != nil || len(got.Results) != 0 || got.Hint == "" {
		t.Errorf("within nothing: %+v, %v", got, err)
	}
}

// TestElsewhere: what a query would find at other times, and among what is left out, is counted: of an answer that is sure only
// the former.
func TestElsewhere(t *testing.T) {
	d, _ := desks(t)
	if err := d.Made.Open(t.Context(), skipTables); err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		d.says(minutes(i), "walnut")
	}
	d.exec(`INSERT INTO words(rowid, home, terms) VALUES(90, ?, 'walnut'), (91, ?, 'walnut'), (92, ?, 'walnut'), (93, ?, 'acorn')`, recall.SkippedHome(d.Key), recall.SkippedHome(d.Key), recall.SkippedHome("agent:main:second"), recall.SkippedHome(d.Key))
	walnut := recall.Query{Terms: []string{"walnut"}}
	nine := recall.Query{Terms: []string{"a1", "a2", "a3", "a4", "a5", "a6", "a7", "a8", "walnut"}}
	for _, c := range []struct {
		name    string
		q       recall.Query
		verdict recall.Verdict
		w       Wanted
		want    string
	}{
		{"not sure", walnut, recall.Weak, Wanted{}, "[{skipped 2 []}]"},
		{"sure", walnut, recall.Confident, Wanted{}, "[]"},
		{"all", walnut, recall.Nothing, Wanted{All: true}, "[]"},
		{"since", walnut, recall.Confident, Wanted{Since: minutes(1)}, "[{out of range 1 []}]"},
		{"until", walnut, recall.Confident, Wanted{Until: minutes(1)}, "[{out of range 3 []}]"},
		{"until, not sure", walnut, recall.Weak, Wanted{Until: minutes(1)}, "[{out of range 3 []}]"},
		{"eight terms", recall.Query{Terms: append([]string{"walnut"}, nine.Terms[:7]...)}, recall.Weak, Wanted{}, "[{skipped 2 []}]"},
		{"the ninth term", nine, recall.Weak, Wanted{}, "[]"},
	} {
		f := &finding{s: d.Room, w: c.w, line: d.line(), size: sizeOf{docs: 5, last: 100}}
		out := Recalled{Verdict: c.verdict}
		if err := f.elsewhere(t.Context(), c.q, &out); err != nil || fmt.Sprint(out.Filtered) != c.want {
			t.Errorf("%s: %v, %v; want %s", c.name, out.Filtered, err, c.want)
		}
	}
	f, out := &finding{s: d.Room, w: Wanted{Since: minutes(1)}, line: d.line(), size: sizeOf{docs: 5, last: 100}}, Recalled{}
	d.DB = unreadable{d.DB}
	if err := f.elsewhere(t.Context(), walnut, &out); err == nil || len(out.Filtered) != 0 {
		t.Errorf("of a database that fails: %+v, %v", out.Filtered, err)
	}
}

// TestResultsWithinABudget: as many results as are wanted, as fit into a budget with what stands between them, and to a model
// with what stands before them; what does not fit is told.
func TestResultsWithinABudget(t *testing.T) {
	d := deskOf(t, hosttest.DB(t), "agent:main:main", silent{})
	for i := range 120 {
		d.says(minutes(i), fmt.Sprintf("walnut a%d", 100+i))
	}
	one, err := d.Recall(t.Context(), Wanted{Query: "walnut", K: 1})
	if err != nil || len(one.Results) != 1 {
		t.Fatal(one, err)
	}
	each, told := tidemark.Tokens(recall.Cost(one.Results[0].Text)), tidemark.Tokens(d.toldCost(one.Results[0]))
	for _, c := range []struct {
		name string
		w    Wanted
		want int
		over int
	}{
		{"none said", Wanted{}, DefaultK, 0}, {"fewer than none", Wanted{K: -5}, DefaultK, 0}, {"one", Wanted{K: 1}, 1, 0},
		{"the most", Wanted{K: MaxK}, MaxK, 0}, {"more", Wanted{K: MaxK + 1}, MaxK, 0},
		{"three fit", Wanted{Budget: 3 * each}, 3, DefaultK}, {"a token too little", Wanted{Budget: 3*each - 1}, 2, DefaultK}, {"more fit than are wanted", Wanted{Budget: 3 * each, K: 2}, 2, 0},
		{"three fit for a model", Wanted{Budget: headTokens + 3*told, told: true}, 3, DefaultK}, {"a token too little for a model", Wanted{Budget: headTokens + 3*told - 1, told: true}, 2, DefaultK},
		{"none fits", Wanted{Budget: each - 1}, 0, DefaultK},
	} {
		c.w.Query = "walnut"
		got, err := d.Recall(t.Context(), c.w)
		over := 0
		for _, f := range got.Filtered {
			if f.Reason == filteredBudget {
				over = f.Count
			}
		}
		hint := ""
		if c.want == 0 {
			hint = fmt.Sprintf("the shortest text that was found does not fit into a budget of %d tokens: raise it", c.w.Budget)
		}
		if err != nil || len(got.Results) != c.want || over != c.over || got.Hint != hint {
			t.Errorf("%s: %d results, %d over the budget, hint %q, %v; want %d, %d", c.name, len(got.Results), over, got.Hint, err, c.want, c.over)
		}
	}
}
