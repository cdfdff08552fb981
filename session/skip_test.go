package session_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/memory"
	"github.com/tidemark-ai/tidemark/room/search"
	"github.com/tidemark-ai/tidemark/session"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// chores is a model that answers "go on" with a call whose result is long, and then a word.
func chores(_ int, req tidemark.Request) (tidemark.Message, error) {
	last := req.Messages[len(req.Messages)-1]
	if asksSummary(req) || len(last.Results()) > 0 {
		return tidemark.Message{}, nil
	}
	if text := last.PlainText(); !strings.Contains(text, "go on") && !strings.Contains(text, "run") {
		return tidemark.Message{}, nil
	}
	return tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{tidemark.ToolUse(fmt.Sprint("c", len(req.Messages)), "look", nil)}}, nil
}

func long(tag string, bad bool) func(tidemark.Block) tidemark.Block {
	return func(c tidemark.Block) tidemark.Block {
		return tidemark.ToolResult(c.ID, strings.Repeat(tag+" output of a chore\n", 300), bad)
	}
}

// found returns the ids that the index has under a home, and those of messages that are under none.
func (h *harness) homes() (ordinary, skipped, none []string) {
	h.t.Helper()
	if _, err := h.Recall(h.t.Context(), search.Wanted{Query: "anything"}); err != nil { // settles what is open
		h.t.Fatal(err)
	}
	sum := string(tidemark.HashOf([]byte(h.key)))[:16]
	under := func(home string) []string {
		rows, err := h.db.Query(h.t.Context(), `SELECT e.id FROM words w JOIN entries e ON e.seq = w.rowid WHERE words MATCH ? ORDER BY e.seq LIMIT 1000`, `home : "`+home+`"`)
		if err != nil {
			h.t.Fatal(err)
		}
		var out []string
		for _, r := range rows {
			out = append(out, r.Text(0))
		}
		return out
	}
	ordinary, skipped = under("h"+sum), under("x"+sum)
	for e, err := range h.Reader.All(h.t.Context(), true) {
		if err != nil {
			h.t.Fatal(err)
		}
		if id := string(e.ID); !slices.Contains(ordinary, id) && !slices.Contains(skipped, id) {
			none = append(none, id)
		}
	}
	return ordinary, skipped, none
}

var overBudget = session.Settings{Gate: memory.BySize{Events: 2}}

// TestSkipTurns: a turn of low importance is left out as a whole once the budget is passed, and is counted and
// told with its ids; what anybody asked, an error and what comes within the budget are not.
func TestSkipTurns(t *testing.T) {
	for _, c := range []struct {
		name, text string
		set        session.Settings
		bad        bool
		skipped    bool
	}{
		{"a chore over the budget", "ok, go on", overBudget, false, true},
		{"within the budget", "ok, go on", session.Settings{Gate: memory.BySize{Events: 50}}, false, false},
		{"off", "ok, go on", session.Settings{}, false, false},
		{"an ask", "please run the tests of the parser", overBudget, false, false},
		{"an error", "ok, go on", overBudget, true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHarness(t, c.set)
			h.model.set(chores)
			h.agent.call = long("zebra", c.bad)
			h.say("what is a tide?")
			h.say("what is an ebb?")
			before, _ := h.Info(t.Context())
			h.say(c.text)
			ordinary, skipped, none := h.homes()
			info, err := h.Info(t.Context())
			if err != nil || len(none) > 0 {
				t.Fatalf("not in the index: %v, %v", none, err)
			}
			events := h.events("skip")
			want := 0
			if c.skipped {
				want = info.Messages - before.Messages
			}
			if len(skipped) != want || info.Skipped != want || len(events) != min(want, 1) || want == 1 {
				t.Fatalf("skipped %v, info says %d, want %d; events %v", skipped, info.Skipped, want, events)
			}
			for _, id := range skipped {
				if !strings.Contains(events[0], id) {
					t.Errorf("the event does not name %s: %s", id, events[0])
				}
			}
			if all := h.originals(); len(all) != len(ordinary)+len(skipped) {
				t.Errorf("%d messages in the log, %d and %d in the index", len(all), len(ordinary), len(skipped))
			}
			if got, err := h.Recall(t.Context(), search.Wanted{Query: "zebra"}); err != nil || (len(got.Results) == 0) != c.skipped {
				t.Errorf("recall finds %+v, %v", got.Results, err)
			}
			if h.say("and again: what is a tide?"); c.skipped {
				if _, again, none := h.homes(); len(again) != want || len(none) > 0 {
					t.Errorf("after the next turn: %v, %v", again, none)
				}
			}
		})
	}
}

// never is a gate that keeps nothing.
type never struct{ turns []memory.Turn }

func (n *never) DecideHot(t memory.Turn, _ memory.Held) memory.Hot {
	n.turns = append(n.turns, t)
	return memory.None
}

// TestSkipByGate: a gate that is given counts without a setting, and sees a turn once and whole, with its sizes.
func TestSkipByGate(t *testing.T) {
	h := newHarness(t, session.Settings{})
	g := &never{}
	h.set.Gate = g
	h.stop()
	h.open()
	h.model.set(chores)
	h.agent.call = long("zebra", false)
	h.say("go on")
	_, skipped, none := h.homes()
	if len(g.turns) != 1 || len(g.turns[0]) != 4 || len(skipped) != 4 || len(none) > 0 {
		t.Fatalf("asked with %+v, skipped %v, nowhere %v", g.turns, skipped, none)
	}
	if e := g.turns[0][2]; e.Importance != 3 || e.Bytes < 5000 {
		t.Errorf("the result is %+v", e)
	}
}

// TestReconcileOffIsNothing: with the setting off, or on with all that is said within the budget, the rows
// of the database are the same: the same tables but those of the setting, the same messages, the same words.
func TestReconcileOffIsNothing(t *testing.T) {
	rows := func(set session.Settings) string {
		h := newHarness(t, set)
		h.model.set(chores)
		h.agent.call = long("zebra", false)
		for _, text := range []string{"what is a tide?", "ok, go on", "thanks"} {
			h.say(text)
		}
		h.stop()
		var b strings.Builder
		for _, sql := range []string{
			`SELECT name FROM sqlite_master WHERE name NOT IN ('skips', 'skips_first', 'working') AND name NOT LIKE 'sqlite_%' ORDER BY name LIMIT 1000`,
			`SELECT kind, role, tokens, skel, payload FROM entries WHERE payload NOT LIKE '%"ms"%' ORDER BY seq LIMIT 1000`,
			`SELECT id, length(block) FROM words_data ORDER BY id LIMIT 1000`,
			`SELECT messages, context, compactions, usage, settings FROM heads LIMIT 10`,
			`SELECT kind, state FROM inputs ORDER BY n LIMIT 100`,
		} {
			rows, err := h.db.Query(t.Context(), sql)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintln(&b, rows)
		}
		return b.String()
	}
	want := rows(session.Settings{})
	for name, set := range map[string]session.Settings{"on, within the budget": {Gate: memory.BySize{}}} {
		if got := rows(set); got != want {
			t.Errorf("%s:\n%s\nwithout:\n%s", name, got, want)
		}
	}
}

// TestSkipKilled kills the process before and after each write of a turn that is skipped. In the end each message
// is in the index once, and the turn is there whole or not at all.
func TestSkipKilled(t *testing.T) {
	chore := session.Input{ID: "chore", Message: tidemark.NewText(tidemark.User, "go on")}
	const writes = 14 // from opening to the end of the turn, and some behind it
	for n := 1; n <= writes; n += killStep(3) {
		for _, after := range []bool{false, true} {
			h := newHarness(t, overBudget)
			h.model.set(chores)
			h.agent.call = long("zebra", false)
			h.say("what is a tide?")
			h.say("what is an ebb?")
			h.homes()
			real := h.db
			h.stop()
			m := &mortal{DB: real, left: n, after: after, dead: make(chan struct{})}
			h.db = m
			if s, err := h.tryOpen(); err == nil {
				if _, err := s.Post(t.Context(), chore); err == nil {
					select {
					case <-m.dead:
					case <-time.After(tidemarktest.Patience):
						t.Fatalf("the turn has fewer than %d writes", n)
					}
				}
			}
			h.stop()
			h.db = real
			h.open()
			if got := h.finish(chore); strings.HasPrefix(got, "error") {
				t.Fatal(got)
			}
			ordinary, skipped, none := h.homes()
			if len(none) > 0 || len(skipped) != 0 && len(skipped) != 4 || len(ordinary) < 4 {
				t.Errorf("killed at write %d (after: %v): %d ordinary, %d skipped, nowhere %v", n, after, len(ordinary), len(skipped), none)
			}
			h.stop()
		}
	}
}
