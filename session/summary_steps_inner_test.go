package session

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/summary"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// What is said in a talk.
var (
	woods = strings.Fields("walnut oak birch cedar maple larch beech alder")
	fates = strings.Split("planed and stacked by the door, sold to the ferry, wet after the storm, sawn for the new roof, hidden under canvas, marked with red chalk, rejected by the joiner, kept for the boathouse", ", ")
)

// talk is a view of so many messages of 100 tokens, a person's and the model's in turn.
func talk(log string, n int) View {
	var v View
	v.Log = log
	for i := range n {
		id, seq := tidemark.EntryID(fmt.Sprint("i", i)), int64(i+1)
		v.Items = append(v.Items, compaction.Item{ID: id, From: id, To: id, Seq: seq, Last: seq, Tokens: 100, Source: []string{tidemark.FromPerson, tidemark.FromModel}[i%2],
			Message: tidemark.NewText([]tidemark.Role{tidemark.User, tidemark.Assistant}[i%2], fmt.Sprintf("message %d: %s planks of room %d are %s", i, woods[i%8], i, fates[i%8]))})
	}
	v.Size = v.Tokens()
	return v
}

// spanOf is an act that summarises some items of such a talk.
func spanOf(from, to int) compaction.Act {
	return compaction.Act{By: []string{"summary"}, Edits: []tidemark.Edit{{From: tidemark.EntryID(fmt.Sprint("i", from)), To: tidemark.EntryID(fmt.Sprint("i", to)), Summarize: true}}}
}

// summarizes answers as a model of summaries does.
func summarizes(req tidemark.Request) (tidemark.Message, error) {
	return tidemark.NewText(tidemark.Assistant, "<summary>\n## Decisions\n"+tidemarktest.Gist(req.Messages[0].PlainText())+"</summary>\n<memories>\n- the planks are planed\n</memories>"), nil
}

// TestInherit: a new plan begins behind the chunks that an old one has paid for, where its own first ones are the same and
// nothing else was asked for.
func TestInherit(t *testing.T) {
	s, _ := plain(t, Config{})
	v := talk("log", 8)
	old := func(change func(*plan)) *plan {
		p := &plan{Draft: summary.Draft{Chunk: 1, Rolling: "so far", Facts: []tidemark.Extraction{{ID: "f"}}, Instructions: "names"}, Act: spanOf(0, 3), ChunkSize: 200, Tier: tierPartial, Why: "why", Owed: true}
		if change != nil {
			change(p)
		}
		return p
	}
	for _, c := range []struct {
		name  string
		old   *plan
		act   compaction.Act
		takes bool
	}{
		{"the same, and more", old(nil), spanOf(0, 5), true},
		{"the same", old(nil), spanOf(0, 3), true},
		{"all of its chunks", old(func(p *plan) { p.Chunk = 2 }), spanOf(0, 3), true},
		{"less than it has paid for", old(func(p *plan) { p.Chunk = 2 }), spanOf(0, 1), false},
		{"more chunks than it had", old(func(p *plan) { p.Chunk = 3 }), spanOf(0, 5), false},
		{"from another message on", old(nil), spanOf(2, 5), false},
		{"the second chunk is another", old(func(p *plan) { p.Chunk = 2 }), compaction.Act{Edits: []tidemark.Edit{{From: "i0", To: "i5", Keep: []tidemark.EntryID{"i2", "i3"}}}}, false},
		{"none is paid for", old(func(p *plan) { p.Chunk = 0 }), spanOf(0, 5), false},
		{"the old one had no summary", old(func(p *plan) { p.Act.Summarize = -1 }), spanOf(0, 5), false},
		{"the new one has none", old(nil), compaction.Act{Edits: spanOf(0, 5).Edits, Summarize: -1}, false},
		{"the old one replaced another", old(func(p *plan) { p.Act.Replaces = "o" }), spanOf(0, 5), false},
		{"other instructions", old(func(p *plan) { p.Instructions = "" }), spanOf(0, 5), false},
		{"there was none", nil, spanOf(0, 5), false},
	} {
		p := &plan{Draft: summary.Draft{Instructions: "names"}, Act: c.act, ChunkSize: 300, Tier: tierFull}
		s.inherit(p, c.old, v)
		if !c.takes {
			if p.ChunkSize != 300 || p.Chunk != 0 || p.Rolling != "" || p.Tier != tierFull || p.Why != "" || p.Facts != nil || p.Owed {
				t.Errorf("%s: %+v", c.name, p)
			}
			continue
		}
		if p.ChunkSize != 200 || p.Chunk != c.old.Chunk || p.Rolling != "so far" || p.Tier != tierPartial || p.Why != "why" || len(p.Facts) != 1 || !p.Owed {
			t.Errorf("%s: %+v", c.name, p)
		}
	}
}

// TestPlanIsKept: a plan is read as it was stored, by its log alone; its chunks are stored one behind the other, once.
func TestPlanIsKept(t *testing.T) {
	s, rt := plain(t, Config{})
	ctx := t.Context()
	write := func(stmts ...tidemark.Stmt) error { return s.DB.Tx(ctx, stmts) }
	if p, err := s.openPlan(ctx, s.current(t)); p != nil || err != nil {
		t.Errorf("a plan of others: %+v, %v", p, err)
	}
	act := spanOf(0, 3)
	act.Edits[0].Summarize = false
	p := &plan{Draft: summary.Draft{ID: "p", Log: s.current(t), Instructions: "names", Chunk: 6, Rolling: "r", Facts: []tidemark.Extraction{{ID: "f"}}}, Reason: "threshold", Act: act, At: rt.now, Last: 4, Size: 5, ChunkSize: 7, Tier: tierPartial, Why: "w", Owed: true}
	other := *p
	other.ID = "a-done"
	if err := write(other.insertStmt("agent:main:twin"), p.insertStmt(s.Key)); err != nil {
		t.Fatal(err)
	}
	check := func(when string, want *plan) {
		t.Helper()
		got, err := s.openPlan(ctx, want.Log)
		if err != nil || got == nil || !got.At.Equal(want.At) {
			t.Fatalf("%s: %+v, %v", when, got, err)
		}
		same := *want
		same.At = got.At
		if mustJSON(got) != mustJSON(same) {
			t.Errorf("%s: %s, want %s", when, mustJSON(got), mustJSON(same))
		}
	}
	check("stored", p)
	p.Usage = tidemark.Usage{Input: 8}
	if err := write(p.paidStmt()); err != nil {
		t.Fatal(err)
	}
	check("paid", p)
	for _, c := range []struct {
		chunk int
		want  bool
	}{{6, false}, {8, false}, {7, true}, {7, false}} {
		next := *p
		next.Chunk, next.Rolling, next.Tier, next.Why, next.Facts, next.Owed = c.chunk, "r2", tierPlaintext, "w2", nil, false
		if err := write(next.saveStmt()); (err == nil) != c.want {
			t.Errorf("chunk %d is saved: %v", c.chunk, err)
		}
		if c.want {
			*p = next
		}
	}
	check("saved", p)
	if got := s.reads(t, `SELECT chunk, usage FROM plans WHERE id = 'a-done' LIMIT 1`); got != "6 {}" {
		t.Errorf("another's is %q", got)
	}
	if err := write(p.doneStmt()); err != nil {
		t.Fatal(err)
	}
	for name, stmt := range map[string]tidemark.Stmt{"done twice": p.doneStmt(), "saved behind its end": (&plan{Draft: summary.Draft{ID: "p", Chunk: 8}}).saveStmt()} {
		if err := write(stmt); !errors.Is(err, tidemark.ErrConflict) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got, err := s.openPlan(ctx, p.Log); got != nil || err != nil {
		t.Errorf("a plan that is done: %+v, %v", got, err)
	}
	s.does(t, `UPDATE plans SET state = 'open', log = 'older' WHERE key = ? AND id = 'p'`, string(s.Key))
	if got, err := s.openPlan(ctx, s.current(t)); got != nil || err != nil || s.reads(t, `SELECT state FROM plans WHERE key = ? LIMIT 1`, string(s.Key)) != "dropped" || s.reads(t, `SELECT state FROM plans WHERE id = 'a-done' LIMIT 1`) != "open" {
		t.Errorf("a plan of an older log: %+v, %v", got, err)
	}
	for _, column := range []string{"act", "facts", "usage"} {
		s.does(t, `UPDATE plans SET state = 'open', log = ?, act = '{}', facts = '[]', usage = '{}', `+column+` = '{' WHERE key = ?`, s.current(t), string(s.Key))
		if got, err := s.openPlan(ctx, s.current(t)); got != nil || err == nil || !strings.Contains(err.Error(), "read plan p") {
			t.Errorf("its %s cannot be read: %+v, %v", column, got, err)
		}
	}
}

// TestSummaryBudget: an eighth of the window and a quarter of what system prompt and tools leave, within bounds.
func TestSummaryBudget(t *testing.T) {
	for _, c := range []struct{ window, reserve, fixed, want tidemark.Tokens }{
		{32_000, 12_000, 0, 4_000}, {32_000, 12_000, 4_000, 4_000}, {32_000, 12_000, 8_000, 3_000}, {32_000, 12_000, 19_000, 300}, {32_000, 12_000, 30_000, 300}, {400_000, 12_000, 0, 8_192},
	} {
		s, _ := plain(t, Config{Settings: Settings{Window: c.window, Reserve: c.reserve, Keep: 1}})
		if got := s.summaryBudget(weighing("", 0, c.fixed, 0)); got != c.want {
			t.Errorf("of %d, %d fixed: %d, want %d", c.window, c.fixed, got, c.want)
		}
	}
	if summary.Join("", "b") != "b" || summary.Join("a", "b") != "a\n\nb" || worse(tierPlaintext, tierPartial) != tierPlaintext || worse(tierFull, tierPartial) != tierPartial || worse(tierPartial, tierPlaintext) != tierPlaintext {
		t.Error("a rolling summary, or the tier of it, is put together otherwise")
	}
	for name, c := range map[string]struct {
		err     error
		passing bool
		says    string
	}{
		"invalid":  {fmt.Errorf("no tags: %w", tidemark.ErrInvalid), false, "the model's answer could not be used: no tags"},
		"overflow": {&tidemark.APIError{Class: tidemark.ClassOverflow}, false, "it is too large for the model of summaries"},
		"network":  {&tidemark.APIError{Class: tidemark.ClassNetwork, Message: "cut"}, true, "could not be reached"},
		"auth":     {&tidemark.APIError{Class: tidemark.ClassAuth, Message: "no key"}, true, "refused the key"},
		"bad":      {&tidemark.APIError{Class: tidemark.ClassBadRequest, Message: "odd"}, false, "odd"},
		"other":    {errKnown, false, "known"},
	} {
		if got := noSummary(c.err); summary.Passing(c.err) != c.passing || !strings.Contains(got, c.says) {
			t.Errorf("%s: passes %v, says %q", name, summary.Passing(c.err), got)
		}
	}
}
