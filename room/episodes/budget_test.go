package episodes

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/host/hosttest"
	"github.com/tidemark-ai/tidemark/room"
)

// TestCount: a provider is asked near the budget only, waited for two seconds, and not asked for five minutes when it gave no
// count.
func TestCount(t *testing.T) {
	d := deskOf(t, hosttest.DB(t), "log")
	var answer tidemark.Tokens
	var fail error
	calls := 0
	count := func(ctx context.Context) (tidemark.Tokens, error) {
		if calls++; len(d.clock.limits) != calls || d.clock.limits[calls-1] != 2*time.Second {
			t.Errorf("waited for %v", d.clock.limits)
		}
		if _, bounded := ctx.Deadline(); !bounded {
			t.Error("it is waited for without end")
		}
		return answer, fail
	}
	want := func(ctx context.Context, name string, size, n tidemark.Tokens, asked bool) {
		t.Helper()
		before := calls
		got, was := d.Count(ctx, size, count)
		if got != n || was != asked || calls-before != map[bool]int{true: 1}[asked] {
			t.Errorf("%s: %d, asked %v %d times; want %d, %v", name, got, was, calls-before, n, asked)
		}
	}
	ctx, answer := t.Context(), 7
	want(ctx, "where that is not set", 20_000, 0, false)
	d.by.Exact = true
	want(ctx, "far below", 8_999, 0, false)
	want(ctx, "near", 9_000, 7, true)
	answer = 1
	want(ctx, "next to nothing", 9_000, 1, true)
	answer = 0
	want(ctx, "no count", 9_000, 0, true)
	d.clock.at = morning.Add(5*time.Minute - time.Millisecond)
	want(ctx, "soon behind that", 9_000, 0, false)
	d.clock.at, answer, fail = morning.Add(5*time.Minute), 7, errors.New("down")
	want(ctx, "a failure", 9_000, 0, true)
	want(ctx, "right behind that", 9_000, 0, false)
	d.clock.at = d.clock.at.Add(5 * time.Minute)
	gone, stop := context.WithCancel(ctx)
	stop()
	want(gone, "a turn that was stopped", 9_000, 0, true)
	fail = nil
	want(ctx, "which says nothing of the provider", 9_000, 7, true)
	d.by = nil
	want(ctx, "without the strategy", 9_000, 0, false)
	if d.Budgets() || d.Answers() != "" || d.Tools(false) != nil {
		t.Error("the strategy is in force that is not")
	}
}

// over has a view told of, and writes what is told down.
func (d *desk) over(run string, v compaction.View) room.Overdraft {
	d.t.Helper()
	out, err := d.Over(d.t.Context(), run, room.Seen{Log: d.log, View: v})
	if err == nil && len(out.Stmts) > 0 {
		err = d.DB.Tx(d.t.Context(), out.Stmts)
	}
	if err != nil {
		d.t.Fatal(err)
	}
	if out.Text != "" {
		out.Then()
	}
	return out
}

// What people and the model are told of 500 tokens too much.
const (
	toldPeople = "The context is 500 tokens over its budget of 10000, and no episode can leave: "
	toldModel  = "[The context is 500 tokens over its budget of 10000, and nothing more can leave. Divide what you do with delimiter; episodes that ended leave.]"
)

// TestOver: people are told once that a budget is not met, and once that it is met again; the model with each call.
func TestOver(t *testing.T) {
	db := hosttest.DB(t)
	d, beside := deskOf(t, db, "log"), deskOf(t, db, "a neighbour")
	over := func(run string, size tidemark.Tokens) room.Overdraft {
		t.Helper()
		return d.over(run, compaction.View{Size: size})
	}
	short := func() string {
		return d.query(`SELECT log, short FROM marked_logs WHERE log IN (?, ?) ORDER BY log LIMIT 9`, d.log, beside.log)
	}
	if err := d.Made.Open(t.Context(), tables); err != nil {
		t.Fatal(err)
	}
	beside.exec(`INSERT INTO marked_logs(log, upto, short) VALUES(?, 7, 400)`, beside.log)
	if got := over("r1", 10_500); got.Text != toldPeople+"what stands was said by people, is pinned, or is not finished." || got.Advice != toldModel || got.By != "episodes" || got.Left != (room.EpisodesLeft{Budget: 10_000, Short: 500}) {
		t.Errorf("at first: %+v", got)
	}
	if got := short(); got != "[[a neighbour 400] [log 500]]" {
		t.Errorf("written down: %s", got)
	}
	if got := over("r1", 10_500); got.Text != "" || got.Advice != toldModel || got.Stmts != nil {
		t.Errorf("again: %+v", got)
	}
	d = d.anew()
	if got := over("r2", 10_500); got.Text != "" || got.Advice != toldModel {
		t.Errorf("in another life: %+v", got)
	}
	if got := over("r3", 9_400); got.Text != "" || got.Advice != "" {
		t.Errorf("the first turn with room: %+v", got)
	}
	if got := over("r4", 9_400); got.Text != "The context is within its budget of 10000 tokens again: 9400." || got.Advice != "" || got.Left.Short != 0 || short() != "[[a neighbour 400] [log 0]]" {
		t.Errorf("the second: %+v, %s", got, short())
	}
	if got := over("r5", 9_400); got.Text != "" {
		t.Errorf("the third: %+v", got)
	}
	d.Strategies = func() []compaction.Strategy { return nil }
	if got := over("r9", 90_000); got.Advice != "" || got.Text != "" || got.By != "" {
		t.Errorf("without the strategy: %+v", got)
	}
}

// TestWhyOver: it is told why nothing leaves: an episode is open, or what stands was brought back.
func TestWhyOver(t *testing.T) {
	d := deskOf(t, hosttest.DB(t), "log")
	back := map[tidemark.EntryID][]int{"e": {1}}
	d.does("expl the tide")
	for name, v := range map[string]compaction.View{"open": {Size: 10_500}, "open, and undone": {Size: 10_500, Back: back}} {
		d = d.anew()
		if got := d.over("r6", v); got.Text != toldPeople+`exploration "the tide" is open.` || got.Advice != `[The context is 500 tokens over its budget of 10000, and nothing more can leave. Open is exploration "the tide": end it with delimiter as soon as you can.]` {
			t.Errorf("%s: %+v", name, got)
		}
		d.exec(`UPDATE marked_logs SET short = 0 WHERE log = ?`, d.log)
	}
	d.does("end it is so")
	for name, v := range map[string]compaction.View{"blocks": {Size: 10_500, Back: back}, "stretches": {Size: 10_500, Returned: []compaction.Span{{From: 1, To: 2}}}} {
		d = d.anew()
		if got := d.over("r7", v); got.Text != toldPeople+"what stands was brought back by undo, was said by people, is pinned, or is not finished." {
			t.Errorf("%s that were brought back: %+v", name, got)
		}
		d.exec(`UPDATE marked_logs SET short = 0 WHERE log = ?`, d.log)
	}
}

// TestMarkAdvice: a model that works and marks nothing is told how, shortly before something leaves.
func TestMarkAdvice(t *testing.T) {
	d := deskOf(t, hosttest.DB(t), "log")
	call := func(tool string) compaction.Item {
		return compaction.Item{Message: tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{tidemark.Text("so"), tidemark.ToolUse("c", tool, nil)}}}
	}
	said := compaction.Item{Message: tidemark.NewText(tidemark.User, "go on")}
	for _, c := range []struct {
		name  string
		size  tidemark.Tokens
		items []compaction.Item
		want  string
	}{
		{"near", 9_001, []compaction.Item{said, call("look")}, "[The context has 9001 of 10000 tokens. Divide work with delimiter: episodes that ended leave first.]"},
		{"at the budget", 10_000, []compaction.Item{call("look")}, "[The context has 10000 of 10000 tokens. Divide work with delimiter: episodes that ended leave first.]"},
		{"not so near", 9_000, []compaction.Item{call("look")}, ""},
		{"who marks", 9_001, []compaction.Item{call("look"), call(Tool.Name), call("look")}, ""},
		{"who does nothing", 9_001, []compaction.Item{said}, ""},
	} {
		d = d.anew()
		if got := d.over("r8", compaction.View{Size: c.size, Items: c.items}); got.Advice != c.want || got.Text != "" {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}

// TestAnswersOfMarks: calls of the tool are answered by what they would do, and those that are in no newest reply are refused.
func TestAnswersOfMarks(t *testing.T) {
	d := deskOf(t, hosttest.DB(t), "log")
	d.says(tidemark.NewText(tidemark.User, "go on"), tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{tidemark.ToolUse("c1", Tool.Name, []byte(`{"action":"start","name":"look","type":"expl"}`))}})
	got, err := d.Answer(t.Context(), d.log, []string{"c0", "c1"})
	if err != nil || len(got) != 2 || got[0].ToolUseID != "c0" || !got[0].IsError || got[0].Content[0].Text != "The call is not in the newest reply: nothing was marked." || got[1].ToolUseID != "c1" || got[1].IsError {
		t.Errorf("%+v, %v", got, err)
	}
	if one := d.Call(t.Context(), room.Call{Turn: room.Turn{Log: d.log}, ID: "c1"}); one.ToolUseID != "c1" || one.IsError {
		t.Errorf("%+v", one)
	}
	if one := d.Call(t.Context(), room.Call{Turn: room.Turn{Log: "unknown"}, ID: "c1"}); !one.IsError || one.ToolUseID != "c1" {
		t.Errorf("of a log that is not there: %+v", one)
	}
	if d.Answered(t.Context(), "unknown"); len(d.warned) != 1 {
		t.Errorf("warned of %q", d.warned)
	}
	gone, stop := context.WithCancel(t.Context())
	stop()
	if d.Answered(gone, "unknown"); len(d.warned) != 1 {
		t.Errorf("of a turn that was stopped: %q", d.warned)
	}
	if !d.Budgets() || d.Answers() != Tool.Name || len(d.Tools(false)) != 1 {
		t.Error("the tool is not offered")
	}
}

// TestDivide: a view is divided when it is over the budget, or has to be.
func TestDivide(t *testing.T) {
	d := deskOf(t, hosttest.DB(t), "log")
	d.does("expl look")
	for _, c := range []struct {
		name  string
		size  tidemark.Tokens
		force bool
		want  bool
	}{{"within", 10_000, false, false}, {"over", 10_001, false, true}, {"within, by force", 1, true, true}} {
		divided := false
		if err := d.Divide(t.Context(), d.log, compaction.View{Size: c.size}, c.force, func(v compaction.View) error {
			divided = v.Graph != nil && v.Graph.Active() != nil && v.Size == c.size
			return nil
		}); err != nil || divided != c.want {
			t.Errorf("%s: divided %v, %v", c.name, divided, err)
		}
	}
	for _, force := range []bool{true, false} {
		if err := d.Divide(t.Context(), d.log, compaction.View{Size: 20_000}, force, func(compaction.View) error { return tidemark.ErrNoGain }); !errors.Is(err, tidemark.ErrNoGain) {
			t.Errorf("what use says is lost: %v", err)
		}
	}
	d.by = nil
	if err := d.Divide(t.Context(), d.log, compaction.View{Size: 20_000}, true, func(v compaction.View) error {
		if v.Graph != nil {
			t.Error("it is divided without the strategy")
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	n := deskOf(t, hosttest.DB(t), "log")
	if ever, err := n.Ever(t.Context()); ever || err != nil {
		t.Errorf("episodes have left: %v, %v", ever, err)
	}
	if err := n.Made.Open(t.Context(), tables); err != nil {
		t.Fatal(err)
	}
	if ever, err := n.Ever(t.Context()); !ever || err != nil {
		t.Errorf("episodes may have left: %v, %v", ever, err)
	}
}

// TestLeft: what an act did is told where the strategy had a part in it: which episodes left whole, and which in part.
func TestLeft(t *testing.T) {
	d := deskOf(t, hosttest.DB(t), "log")
	for _, name := range []string{"one", "two", "three"} {
		d.does("act "+name, "look a.go", "end")
	}
	v, err := d.Seen(t.Context(), d.log)
	if err != nil {
		t.Fatal(err)
	}
	after := v.View
	after.Items = slices.Clone(v.Items[2:])
	after.Size = 10_300
	reply := &after.Items[0].Message
	reply.Content = slices.Delete(slices.Clone(reply.Content), 1, 2)
	got, err := d.Left(t.Context(), d.log, []string{"paging", "episodes"}, v.View, after)
	if err != nil || got == nil || *got != (room.EpisodesLeft{Whole: 1, Part: 1, Budget: 10_000, Short: 300}) {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := d.Left(t.Context(), d.log, []string{"episodes"}, after, after); err != nil || *got != (room.EpisodesLeft{Budget: 10_000, Short: 300}) {
		t.Errorf("of nothing: %+v, %v", got, err)
	}
	if got, err := d.Left(t.Context(), d.log, []string{"paging"}, v.View, after); got != nil || err != nil {
		t.Errorf("of another strategy: %+v, %v", got, err)
	}
	d.by = nil
	if got, err := d.Left(t.Context(), d.log, []string{"episodes"}, v.View, after); got != nil || err != nil {
		t.Errorf("without the strategy: %+v, %v", got, err)
	}
}
