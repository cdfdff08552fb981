package compaction_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/cleanup"
	"github.com/tidemark-ai/tidemark/compaction"
)

// carved is a world of turns with several calls each, of which a first row takes out texts and exchanges, and puts
// several blocks in the place of others.
func carved(t *testing.T, r *rand.Rand, before func(compaction.View)) *world {
	t.Helper()
	w := &world{}
	var edits []tidemark.Edit
	w.add(tidemark.NewText(tidemark.User, "go"))
	long := func() string { return strings.Repeat("a line of it\n", 20+r.IntN(100)) }
	for turn := range 8 {
		call := tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{tidemark.Text("now " + long())}}
		var answer tidemark.Message
		for n := range 3 {
			id := fmt.Sprintf("c%d_%d", turn, n)
			call.Content = append(call.Content, tidemark.ToolUse(id, "Write", fmt.Appendf(nil, `{"file_path":"/f%d","content":%q}`, turn, long())))
			answer.Content = append(answer.Content, tidemark.ToolResult(id, id+long(), false))
		}
		answer.Role = tidemark.User
		from, to := w.add(call), w.add(answer)
		for n := range 3 {
			if r.IntN(4) == 0 {
				edits = append(edits, tidemark.Edit{From: from, Block: n + 2}, tidemark.Edit{From: to, Block: n + 1})
			}
		}
		switch r.IntN(3) {
		case 0:
			edits = append(edits, tidemark.Edit{From: from, Block: 1})
		case 1:
			edits = append(edits, tidemark.Edit{From: from, Block: 1, Blocks: []tidemark.Block{tidemark.Text("one"), tidemark.Text("two")}})
		}
		if r.IntN(2) == 0 {
			w.add(tidemark.NewText(tidemark.Assistant, "done"))
			w.add(tidemark.NewText(tidemark.User, "and on"))
		}
	}
	for range 4 {
		w.add(tidemark.NewText(tidemark.Assistant, "yes"))
		w.add(tidemark.NewText(tidemark.User, "and on"))
	}
	v, shown := w.view(t)
	before(v)
	if err := w.act(t, shown, edits); err != nil {
		t.Fatal(err)
	}
	return w
}

// What stubs say: which block they stand for, and paging how large a result was.
var (
	named = regexp.MustCompile(`(e\d{4})#(\d+)`)
	sized = regexp.MustCompile(`Cleared: Write \((\d+) bytes, `)
)

// TestBlocksOfTheEntry: edits name the block of the entry whatever was taken out before it, and so do the handles in
// what they put there: by pointers, by paging with and without what it knew before, and by what a model asks for.
func TestBlocksOfTheEntry(t *testing.T) {
	edited := map[string]int{}
	for seed := range uint64(fewer(60)) { //nolint:gosec // a count
		r := rand.New(rand.NewPCG(seed, 31))
		known := eager()
		w := carved(t, r, func(v compaction.View) { known.State(v, wide) })
		v, shown := w.view(t)
		var ops []cleanup.Op
		for i := range v.Items {
			for n := range v.Items[i].Blocks() {
				ops = append(ops, cleanup.Op{Verb: []string{cleanup.Drop, cleanup.Summarize}[r.IntN(2)], Handle: compaction.Handle(v.Items[i].ID, n), Text: "so it was"})
			}
		}
		for name, edits := range map[string][]tidemark.Edit{
			"pointer":      compaction.Pointer{Tail: 1, Large: 50}.Plan(v, compaction.Budget{Window: 8000, Reserve: 2000, Keep: 500}),
			"paging":       eager().Plan(v, wide),
			"paging known": known.Plan(v, wide),
			"tidy":         eager().Tidy(v, wide, ops).Edits,
			"tidy bare":    (&compaction.Paging{}).Tidy(v, compaction.Budget{Window: 1 << 40}, ops).Edits,
		} {
			for _, e := range edits {
				if e.Block == 0 {
					continue
				}
				edited[name]++
				was, now := w.entries[w.at[e.From]-1].Message.Content[e.Block-1], e.Blocks[0]
				if was.Type != now.Type || was.ID != now.ID || was.ToolUseID != now.ToolUseID {
					t.Fatalf("seed %d: %s puts %s in the place of block %d of %s: %s", seed, name, now.AppendJSON(nil), e.Block, e.From, was.AppendJSON(nil))
				}
				if size := sized.FindSubmatch(now.AppendJSON(nil)); size != nil && string(size[1]) != fmt.Sprint(len(was.Content[0].Text)) {
					t.Fatalf("seed %d: %s says %s bytes of %d", seed, name, size[1], len(was.Content[0].Text))
				}
				for _, h := range named.FindAllSubmatch(now.AppendJSON(nil), -1) {
					if want := compaction.Handle(e.From, e.Block-1); string(h[0]) != want {
						t.Fatalf("seed %d: %s says %s of %s", seed, name, h[0], want)
					}
				}
			}
			after, err := compaction.Preview(v, edits, wide)
			if err == nil {
				err = tidemark.Check(after.Messages())
			}
			if err == nil && len(edits) > 0 {
				copied := world{entries: w.entries, at: w.at, rows: w.rows, seq: w.seq}
				err = copied.act(t, shown, edits)
			}
			if err != nil {
				t.Fatalf("seed %d: %s: %v", seed, name, err)
			}
		}
	}
	for _, name := range []string{"pointer", "paging", "paging known", "tidy", "tidy bare"} {
		if edited[name] == 0 {
			t.Errorf("%s edited nothing", name)
		}
	}
}

// TestTidyOfWhatLeft: what a model says of a block that was taken out, or for which several stand, is answered by its
// number in the entry.
func TestTidyOfWhatLeft(t *testing.T) {
	w := &world{}
	w.add(tidemark.NewText(tidemark.User, "go"))
	long := strings.Repeat("word ", 200)
	e := w.add(tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{tidemark.Text(long), tidemark.Text(long), tidemark.Text(long)}})
	w.add(tidemark.NewText(tidemark.User, "on"))
	_, shown := w.view(t)
	if err := w.act(t, shown, []tidemark.Edit{{From: e, Block: 1}, {From: e, Block: 2, Blocks: []tidemark.Block{tidemark.Text(long), tidemark.Text(long)}}}); err != nil {
		t.Fatal(err)
	}
	v, _ := w.view(t)
	for _, row := range []struct {
		verb  string
		block int
		why   string
		edits int
	}{
		{cleanup.Drop, 0, "", 0},
		{cleanup.Summarize, 0, "it left the context", 0},
		{cleanup.Drop, 1, "", 0},
		{cleanup.Summarize, 1, "several blocks stand in its place", 0},
		{cleanup.Drop, 2, "", 1},
		{cleanup.Summarize, 2, "", 1},
		{cleanup.Drop, 3, "its message has no such block", 0},
	} {
		got := (&compaction.Paging{}).Tidy(v, wide, []cleanup.Op{{Verb: row.verb, Handle: compaction.Handle(e, row.block), Text: "s"}})
		if got.Done[0].Why != row.why || len(got.Edits) != row.edits || row.edits > 0 && got.Edits[0].Block != row.block+1 {
			t.Errorf("%s of %d: %q, %+v", row.verb, row.block, got.Done[0].Why, got.Edits)
		}
	}
}

// taker is a strategy that takes all blocks of some entries out.
type taker []tidemark.EntryID

func (taker) Name() string { return "taker" }

func (k taker) Plan(v compaction.View, _ compaction.Budget) (edits []tidemark.Edit) {
	for i := range v.Items {
		for n := range v.Items[i].Blocks() {
			for _, id := range k {
				if id == v.Items[i].ID {
					edits = append(edits, tidemark.Edit{From: id, Block: n + 1})
				}
			}
		}
	}
	return edits
}

// TestSpanOverWhatLeft: a strategy may lay a span around an entry that the one before took out in the same act, which
// the row would not show whole.
func TestSpanOverWhatLeft(t *testing.T) {
	w := &world{}
	for n := range 30 {
		w.add(tidemark.NewText([]tidemark.Role{tidemark.User, tidemark.Assistant}[n%2], strings.Repeat("word ", 400)))
	}
	v, shown := w.view(t)
	act, err := compaction.Plan([]compaction.Strategy{taker{"e0004"}, compaction.Summary{}}, v, compaction.Budget{Window: 6000, Reserve: 1000, Keep: 1000}, true)
	if err != nil || act.Summarize < 0 || len(act.Edits) == 0 || len(act.By) != 2 {
		t.Fatalf("%+v: %v", act, err)
	}
	if err := w.act(t, shown, act.Edits); err != nil {
		t.Error(err)
	}
}

// TestThinkingBehindWhatLeft: where the message between two replies left, they are one; a reply that begins with
// thinking begins a message all the same, since that must be first in it.
func TestThinkingBehindWhatLeft(t *testing.T) {
	thinking := tidemark.Block{Type: tidemark.TypeThinking, Text: "hm", Signature: "s"}
	for _, row := range []struct {
		name          string
		first, second []tidemark.Block
		want          string // roles of the messages
	}{
		{"no thinking", []tidemark.Block{tidemark.Text("a")}, []tidemark.Block{tidemark.Text("b")}, "user assistant user"},
		{"thinking first", []tidemark.Block{thinking, tidemark.Text("a")}, []tidemark.Block{tidemark.Text("b")}, "user assistant user"},
		{"thinking in both", []tidemark.Block{thinking, tidemark.Text("a")}, []tidemark.Block{thinking, tidemark.Text("b")}, "user assistant user"},
		{"thinking in the second", []tidemark.Block{tidemark.Text("a")}, []tidemark.Block{thinking, tidemark.Text("b")}, "user assistant user assistant user"},
		{"behind an open call", []tidemark.Block{tidemark.ToolUse("c", "n", []byte(`{}`))}, []tidemark.Block{thinking, tidemark.Text("b")}, "user assistant user assistant user"},
	} {
		w := &world{}
		w.add(tidemark.NewText(tidemark.User, "go"))
		w.add(tidemark.Message{Role: tidemark.Assistant, Content: row.first})
		gone := w.add(tidemark.NewText(tidemark.User, "gone"))
		w.add(tidemark.Message{Role: tidemark.Assistant, Content: row.second})
		w.add(tidemark.NewText(tidemark.User, "on"))
		_, shown := w.view(t)
		if err := w.act(t, shown, []tidemark.Edit{{From: gone, Block: 1}}); err != nil {
			t.Fatal(err)
		}
		v, _ := w.view(t)
		var roles []string
		for _, m := range v.Messages() {
			roles = append(roles, string(m.Role))
		}
		if got := strings.Join(roles, " "); got != row.want {
			t.Errorf("%s: %s, want %s", row.name, got, row.want)
		}
		if err := tidemark.Check(v.Messages()); err != nil {
			t.Errorf("%s: %v", row.name, err)
		}
	}
}

// TestPlanNamesWhoDid: an act is by those that had something to do, and who had nothing is not named.
func TestPlanNamesWhoDid(t *testing.T) {
	v := dialogue(40, 40)
	act, err := compaction.Plan([]compaction.Strategy{taker{}, compaction.Pointer{Tail: 2}}, v, compaction.Budget{Window: 100_000, Keep: 500}, true)
	if err != nil || fmt.Sprint(act.By) != "[pointer]" || len(act.Edits) == 0 {
		t.Errorf("by %v, %d edits, %v", act.By, len(act.Edits), err)
	}
}
