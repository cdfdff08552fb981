package session

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/memory"
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
		p := &plan{Act: spanOf(0, 3), ChunkSize: 200, Chunk: 1, Rolling: "so far", Tier: tierPartial, Why: "why", Facts: []tidemark.Extraction{{ID: "f"}}, Owed: true, Instructions: "names"}
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
		p := &plan{Act: c.act, ChunkSize: 300, Tier: tierFull, Instructions: "names"}
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
	p := &plan{ID: "p", Log: s.current(t), Reason: "threshold", Instructions: "names", Act: act, At: rt.now, Last: 4, Size: 5, Chunk: 6, ChunkSize: 7, Rolling: "r", Tier: tierPartial, Why: "w",
		Facts: []tidemark.Extraction{{ID: "f"}}, Owed: true}
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
	for name, stmt := range map[string]tidemark.Stmt{"done twice": p.doneStmt(), "saved behind its end": (&plan{ID: "p", Chunk: 8}).saveStmt()} {
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
	if join("", "b") != "b" || join("a", "b") != "a\n\nb" || worse(tierPlaintext, tierPartial) != tierPlaintext || worse(tierFull, tierPartial) != tierPartial || worse(tierPartial, tierPlaintext) != tierPlaintext {
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
		if got := noSummary(c.err); passing(c.err) != c.passing || !strings.Contains(got, c.says) {
			t.Errorf("%s: passes %v, says %q", name, passing(c.err), got)
		}
	}
}

// TestAddFacts: what a chunk gave to remember is named by its plan and chunk, of another half of it by how many came before,
// and says of which messages it is.
func TestAddFacts(t *testing.T) {
	s, rt := plain(t, Config{})
	items := talk("log", 3).Items
	p := &plan{ID: "p", Log: "log"}
	near := []memory.Known{{ID: 7, Text: "the planks are rough"}}
	s.addFacts(p, items, nil, nil)
	s.addFacts(p, nil, []string{"a"}, nil)
	if len(p.Facts) > 0 {
		t.Errorf("of nothing there are %+v", p.Facts)
	}
	s.addFacts(p, items, []string{"a", "b"}, nil)
	s.addFacts(p, items[1:2], []string{"c"}, nil)
	p.Chunk = 1
	s.addFacts(p, items[2:], []string{"d"}, nil)
	p.Chunk = 10
	s.addFacts(p, items, []string{"e"}, nil)
	var got []string
	for _, x := range p.Facts {
		for _, f := range x.Facts {
			got = append(got, fmt.Sprintf("%s:%s of %v", x.ID, f.Text, f.Sources))
		}
		if x.Session != "log" || x.Scope != s.Scope() || !x.At.Equal(rt.now) {
			t.Errorf("%+v", x)
		}
	}
	if want := []string{"log/p/0:a of [i0 i2]", "log/p/0:b of [i0 i2]", "log/p/0.1:c of [i1 i1]", "log/p/1:d of [i2 i2]", "log/p/10:e of [i0 i2]"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if countFacts(p.Facts) != 5 {
		t.Errorf("%d facts", countFacts(p.Facts))
	}
	n := len(p.Facts)
	if s.addFacts(p, items, []string{"the saw is blunt"}, near); len(p.Facts) != n+1 || p.Facts[n].Facts[0].Text != "the saw is blunt" || p.Facts[n].Facts[0].Sources[1] != "i2" {
		t.Errorf("beside known ones: %+v", p.Facts[n:])
	}
	n = len(p.Facts)
	if s.addFacts(p, items, []string{"NONE 7: the planks are rough"}, near); len(p.Facts) != n {
		t.Errorf("what is known is remembered again: %+v", p.Facts[n:])
	}
	s.settings().NoMemories = true
	n = len(p.Facts)
	if s.addFacts(p, items, []string{"z"}, nil); len(p.Facts) != n {
		t.Error("it remembers though it may not")
	}
}

// TestSummaryIsAskedFor: how often a summary is asked for, with which pauses, and what the answers cost.
func TestSummaryIsAskedFor(t *testing.T) {
	network := &tidemark.APIError{Class: tidemark.ClassNetwork, Message: "cut"}
	bad := &tidemark.APIError{Class: tidemark.ClassBadRequest, Status: 400, Param: "temperature", Message: "odd"}
	const nonsense, good = "...", ""
	for _, c := range []struct {
		name    string
		answers []any // an error, or a text; "" is a summary
		window  tidemark.Tokens
		calls   int
		slept   []time.Duration
		fails   error
	}{
		{"at once", []any{good}, 100_000, 1, nil, nil},
		{"at the third try", []any{network, network, good}, 100_000, 3, []time.Duration{time.Second, 2 * time.Second}, nil},
		{"never", []any{network, network, network, good}, 100_000, 3, []time.Duration{time.Second, 2 * time.Second}, network},
		{"at the second answer", []any{nonsense, good}, 100_000, 2, nil, nil},
		{"two answers are none", []any{nonsense, nonsense, good}, 100_000, 2, nil, tidemark.ErrInvalid},
		{"one is none, behind two that were cut off", []any{network, network, nonsense, good}, 100_000, 3, []time.Duration{time.Second, 2 * time.Second}, tidemark.ErrInvalid},
		{"refused", []any{bad, good}, 100_000, 1, nil, bad},
	} {
		m := &played{usage: tidemark.Usage{Input: 10}}
		m.play = func(req tidemark.Request) (tidemark.Message, error) {
			switch a := c.answers[len(m.calls)-1].(type) {
			case error:
				return tidemark.Message{}, a
			case string:
				if a != "" {
					return tidemark.NewText(tidemark.Assistant, a), nil
				}
			}
			return summarizes(req)
		}
		s, rt := plain(t, Config{Provider: m, Settings: Settings{Window: c.window}})
		v := talk(s.current(t), 6)
		p := &plan{ID: "p", Log: v.Log}
		w, err := s.askSummary(t.Context(), p, v, v.Items, false, "")
		answered := 0
		for _, a := range c.answers[:c.calls] {
			if _, text := a.(string); text {
				answered++
			}
		}
		if len(m.calls) != c.calls || !slices.Equal(rt.slept, c.slept) || (err == nil) != (c.fails == nil) || err != nil && !errors.Is(err, c.fails) || (w.Summary != "") != (err == nil) || p.Usage.Input != tidemark.Tokens(10*answered) {
			t.Errorf("%s: %d calls, slept %v, %+v, %v, cost %d", c.name, len(m.calls), rt.slept, w, err, p.Usage.Input)
		}
		if again := m.calls[len(m.calls)-1].Messages[0].PlainText(); strings.Contains(again, "could not be used") != (c.answers[0] == nonsense) {
			t.Errorf("%s: asked %q", c.name, again)
		}
	}
}

// TestSummaryRequest: the model of summaries is asked for as much as an eighth of its window holds, within bounds, and not for
// what fills more than half of it.
func TestSummaryRequest(t *testing.T) {
	for _, c := range []struct {
		window, most tidemark.Tokens
	}{{100_000, 4_096}, {16_000, 2_000}, {3_200, 400}} {
		m := &played{play: summarizes}
		s, _ := plain(t, Config{Provider: m, Settings: Settings{Window: c.window, SummaryModel: "small"}})
		v := talk(s.current(t), 2)
		if _, err := s.askSummary(t.Context(), &plan{}, v, v.Items, false, ""); err != nil || len(m.calls) != 1 || m.calls[0].MaxTokens != c.most || m.calls[0].Model != "small" {
			t.Errorf("a window of %d: %v, %d calls, %d tokens at most of %q", c.window, err, len(m.calls), m.calls[0].MaxTokens, m.calls[0].Model)
		}
	}
	m := &played{play: summarizes}
	s, _ := plain(t, Config{Provider: m, Settings: Settings{Window: 100_000}})
	v := talk(s.current(t), 6)
	size := tidemark.Estimate(compaction.Prompt(compaction.Ask{Items: v.Items}).Messages[0])
	for window, want := range map[tidemark.Tokens]int{2 * size: 1, 2*size - 1: 0} {
		m.calls = nil
		s.settings().set = window
		_, err := s.askSummary(t.Context(), &plan{}, v, v.Items, false, "")
		if len(m.calls) != want || (want == 0) != overflowed(err) {
			t.Errorf("%d tokens within %d: %d calls, %v", size, window, len(m.calls), err)
		}
	}
}

// TestSummaryRefused: what a refusal says of the window of the model of summaries: its limit where it names one, half of what
// was sent where it is not the conversation's own model; nothing where it is for bytes, or for something else.
func TestSummaryRefused(t *testing.T) {
	for _, c := range []struct {
		name  string
		model string
		api   error
		want  tidemark.Window
	}{
		{"a limit", "small", &tidemark.APIError{Class: tidemark.ClassOverflow, Status: 400, Limit: 9_000}, tidemark.Window{Tokens: 9_000, From: tidemark.WindowRefused}},
		{"a limit, with too many bytes", "small", &tidemark.APIError{Class: tidemark.ClassOverflow, Status: 413, Limit: 9_000}, tidemark.Window{Tokens: 9_000, From: tidemark.WindowRefused}},
		{"a limit of the conversation's own", "", &tidemark.APIError{Class: tidemark.ClassOverflow, Status: 400, Limit: 9_000}, tidemark.Window{Tokens: 9_000, From: tidemark.WindowRefused}},
		{"too long", "small", &tidemark.APIError{Class: tidemark.ClassOverflow, Status: 400}, tidemark.Window{Tokens: 5_000, From: tidemark.WindowHalved}},
		{"too long for the conversation's own", "", &tidemark.APIError{Class: tidemark.ClassOverflow, Status: 400}, tidemark.Window{}},
		{"too many bytes", "small", &tidemark.APIError{Class: tidemark.ClassOverflow, Status: 413}, tidemark.Window{}},
		{"another failure", "small", &tidemark.APIError{Class: tidemark.ClassAuth, Limit: 9_000}, tidemark.Window{}},
		{"of no API", "small", errKnown, tidemark.Window{}},
	} {
		s, _ := plain(t, Config{Settings: Settings{Model: "m", SummaryModel: c.model, Window: 100_000}})
		if err := s.summaryRefused(t.Context(), 5_000, c.api); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		got := learnedOf(t, s, s.summaryModel())
		if got.Tokens != c.want.Tokens || got.From != c.want.From {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}
