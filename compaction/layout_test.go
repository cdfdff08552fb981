package compaction_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
)

func text(s string) []tidemark.Message { return []tidemark.Message{tidemark.NewText(tidemark.User, s)} }

// newWorld returns a log of n messages m1, m2, … whose ids are e0001, e0002, …
func newWorld(n int) *world {
	w := &world{}
	for i := range n {
		role := tidemark.User
		if i%2 == 1 {
			role = tidemark.Assistant
		}
		w.add(tidemark.NewText(role, "m"+string(rune('1'+i))))
	}
	return w
}

func id(n int) tidemark.EntryID { return tidemark.EntryID("e000" + string(rune('0'+n))) }

func (w *world) read(t *testing.T) string {
	t.Helper()
	v, _ := w.view(t)
	var out []string
	for _, it := range v.Items {
		out = append(out, it.Message.PlainText())
	}
	return strings.Join(out, " ")
}

func (w *world) row(o tidemark.Overlay) tidemark.EntryID {
	w.seq++
	oid := tidemark.EntryID("o000" + string(rune('0'+w.seq%10)))
	w.rows = append(w.rows, compaction.Row{ID: oid, Seq: w.seq, Overlay: o})
	return oid
}

// TestOverlays walks through the rules of edits: nesting, holes, insertions, blocks, undo.
func TestOverlays(t *testing.T) {
	w := newWorld(9)
	step := func(want string) {
		t.Helper()
		if got := w.read(t); got != want {
			t.Fatalf("view %q, want %q", got, want)
		}
	}
	step("m1 m2 m3 m4 m5 m6 m7 m8 m9")
	w.row(tidemark.Overlay{Edits: []tidemark.Edit{{From: id(3), Block: 1, Blocks: []tidemark.Block{tidemark.Text("stub3")}}}})
	step("m1 m2 stub3 m4 m5 m6 m7 m8 m9")
	inner := w.row(tidemark.Overlay{Edits: []tidemark.Edit{{From: id(2), To: id(4), Keep: []tidemark.EntryID{id(3)}, Messages: text("S2-4")}}})
	step("m1 S2-4 stub3 m5 m6 m7 m8 m9") // the hole shows the stub that was there
	outer := w.row(tidemark.Overlay{Edits: []tidemark.Edit{{From: id(1), To: id(6), Messages: text("S1-6")}, {From: id(8), To: id(8)}}})
	step("S1-6 m7 m9") // a row of two edits; the second removes
	w.row(tidemark.Overlay{Lifts: []tidemark.EntryID{inner}})
	step("S1-6 m7 m9") // what sleeps may be lifted too
	lift := w.row(tidemark.Overlay{Lifts: []tidemark.EntryID{outer}})
	step("m1 m2 stub3 m4 m5 m6 m7 m8 m9")
	w.row(tidemark.Overlay{Lifts: []tidemark.EntryID{lift}})
	step("S1-6 m7 m9") // an undone undo
	w.row(tidemark.Overlay{Edits: []tidemark.Edit{{From: id(7), Messages: text("before7")}}})
	step("S1-6 before7 m7 m9")
	w.row(tidemark.Overlay{Edits: []tidemark.Edit{{From: id(1), To: id(6), Messages: text("again")}}})
	step("again before7 m7 m9") // of equal spans the later is the outer
}

func TestRefusedOverlays(t *testing.T) {
	for name, edits := range map[string][]tidemark.Edit{
		"partial overlap with what is shown": {{From: id(4), To: id(7)}},
		"under a shown span":                 {{From: id(3), To: id(3)}},
		"block under a shown span":           {{From: id(3), Block: 1}},
		"keep outside":                       {{From: id(6), To: id(7), Keep: []tidemark.EntryID{id(8)}}},
		"keep inside an inner span":          {{From: id(1), To: id(7), Keep: []tidemark.EntryID{id(3)}}},
		"two that overlap in one row":        {{From: id(6), To: id(7)}, {From: id(7), To: id(8)}},
		"two that nest in one row":           {{From: id(6), To: id(8)}, {From: id(7), To: id(7)}},
	} {
		w := newWorld(9)
		w.row(tidemark.Overlay{Edits: []tidemark.Edit{{From: id(2), To: id(5), Messages: text("S")}}})
		_, shown := w.view(t)
		if err := w.act(t, shown, edits); !errors.Is(err, tidemark.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	w := newWorld(9)
	w.row(tidemark.Overlay{Edits: []tidemark.Edit{{From: id(2), To: id(5), Keep: []tidemark.EntryID{id(3)}, Messages: text("S")}}})
	_, shown := w.view(t)
	if err := w.act(t, shown, []tidemark.Edit{{From: id(1), To: id(6), Keep: []tidemark.EntryID{id(3)}, Messages: text("T")}}); err != nil {
		t.Errorf("what an inner span keeps, the outer may keep: %v", err)
	}
	if got := w.read(t); got != "T m3 m7 m8 m9" {
		t.Errorf("view %q", got)
	}
}

// TestFork: a stub on m3 that was written behind m9 holds after a rewind to m8; a span that reaches
// beyond m8 stays behind, and what slept under it is shown again.
func TestFork(t *testing.T) {
	w := newWorld(9)
	w.row(tidemark.Overlay{Edits: []tidemark.Edit{{From: id(3), Block: 1, Blocks: []tidemark.Block{tidemark.Text("stub3")}}}})
	w.row(tidemark.Overlay{Edits: []tidemark.Edit{{From: id(5), To: id(6), Messages: text("S5-6")}}})
	w.row(tidemark.Overlay{Edits: []tidemark.Edit{{From: id(4), To: id(9), Messages: text("S4-9")}}})
	if got := w.read(t); got != "m1 m2 stub3 S4-9" {
		t.Fatalf("view %q", got)
	}
	held := compaction.Fork(w.placed(t, w.rows), 8)
	if len(held) != 2 || held[0].From != 3 || held[1].From != 5 || held[1].To != 6 {
		t.Errorf("held %+v", held)
	}
}
