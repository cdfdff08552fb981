package session

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/cleanup"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/room"
)

// TestReplyIsHeard: a reply without calls ends its turn: the run and its input are done, the run names it, and who listens hears
// of what was tidied in it, of it and of the end, in this order. One with calls goes on with them. Whoever lost the run writes
// nothing of it, says nothing, and has its tries as before.
func TestReplyIsHeard(t *testing.T) {
	calls := tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{tidemark.Text("I look."), tidemark.ToolUse("c1", "look", nil)}}
	for _, c := range []struct {
		name    string
		m       tidemark.Message
		tidies  bool
		lost    bool
		state   string
		input   string
		n       string
		calls   string
		heard   []string
		attempt int
	}{
		{name: "an answer", m: tidemark.NewText(tidemark.Assistant, "fine"), state: "done", input: "done", n: "1", heard: []string{"reply in", "done in"}},
		{name: "one that tidies", m: tidemark.NewText(tidemark.Assistant, "fine"), tidies: true, state: "done", input: "done", n: "1", heard: []string{"event", "reply in", "done in"}},
		{name: "one without a word", m: tidemark.NewText(tidemark.Assistant, " "), state: "done", input: "done", n: "1", heard: []string{"text " + wordless, "reply in", "done in"}},
		{name: "with calls", m: calls, state: "tools", input: "taken", n: "1", calls: "c1 registered", heard: []string{"reply in"}},
		{name: "of a lost run", m: tidemark.NewText(tidemark.Assistant, " "), tidies: true, lost: true, state: "calling", input: "taken", n: "0", attempt: 3},
	} {
		fake := &tidying{done: compaction.Tidied{Pins: []tidemark.EntryID{"x"}, Done: []compaction.Tidy{{Op: cleanup.Op{Verb: cleanup.Drop, Handle: "x#0"}}}}}
		s, _ := plain(t, Config{Rooms: []room.Maker{func(room.Ports) any { return fake }}})
		r := s.begun(t, "r", stateCalling)
		r.Attempt, r.took, r.origins = 3, []string{"in"}, []tidemark.Origin{{From: tidemark.FromPerson, Owner: true}}
		s.puts(t, s.Key, "in", InputMessage, "taken", "r")
		if c.tidies {
			r.asked = compaction.Wishes{Ops: make([]cleanup.Op, 1), Blocks: []int{0}}
		}
		if c.lost {
			s.does(t, `UPDATE runs SET owner = '000000000009/x' WHERE key = ?`, string(s.Key))
		}
		v, err := s.View(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		sub, err := s.Subscribe()
		if err != nil {
			t.Fatal(err)
		}
		err = s.commit(context.WithoutCancel(t.Context()), r, v, tidemark.Reply{Message: c.m})
		if errors.Is(err, tidemark.ErrConflict) != c.lost || !c.lost && err != nil || r.Attempt != c.attempt {
			t.Errorf("%s: %v, %d tries", c.name, err, r.Attempt)
		}
		if heard := heardOf(sub); !slices.Equal(heard, c.heard) {
			t.Errorf("%s: heard are %q", c.name, heard)
		}
		reply := s.reads(t, `SELECT id FROM entries WHERE log = ? AND kind = 'message' LIMIT 1`, r.Log)
		want := c.state + " "
		if c.state == stateDone {
			want += reply
		}
		if got := s.reads(t, `SELECT state, reply FROM runs WHERE key = ? LIMIT 1`, string(s.Key)); got != want {
			t.Errorf("%s: the run is %q, want %q", c.name, got, want)
		}
		if got := s.reads(t, `SELECT state FROM inputs WHERE key = ? LIMIT 1`, string(s.Key)); got != c.input {
			t.Errorf("%s: the input is %q", c.name, got)
		}
		if got := s.reads(t, `SELECT messages FROM heads WHERE key = ? LIMIT 1`, string(s.Key)); got != c.n {
			t.Errorf("%s: %s messages", c.name, got)
		}
		if got := s.reads(t, `SELECT id, state FROM calls WHERE run = 'r' LIMIT 9`); got != c.calls {
			t.Errorf("%s: its calls are %q", c.name, got)
		}
	}
}
