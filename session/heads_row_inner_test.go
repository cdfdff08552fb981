package session

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/history"
	"github.com/tidemark-ai/tidemark/room"
)

// TestHeadRow: each column of the row of a conversation is read as what it is, and the directory is told of it as it is.
func TestHeadRow(t *testing.T) {
	s, _ := plain(t, Config{Settings: Settings{Window: 90_000}})
	s.does(t, `UPDATE heads SET title = 'Mine', created = 11, active = 12, people = 13, messages = 14, context = 15, compactions = 16, resets = 17, usage = '{"input_tokens":18,"output_tokens":19}',
		prompt = 'p20', prompt_day = 'd21', cooldown = 22, failures = 23, mark = 'm24' WHERE key = ?`, string(s.Key))
	s.does(t, `UPDATE logs SET previous = 'older' WHERE key = ?`, string(s.Key))
	h, err := s.head(t.Context())
	if err != nil || h.Title != "Mine" || h.Created.UnixMilli() != 11 || h.Active.UnixMilli() != 12 || h.People.UnixMilli() != 13 || h.Messages != 14 || h.Context != 15 || h.Compactions != 16 || h.Resets != 17 || h.Usage != (tidemark.Usage{Input: 18, Output: 19}) ||
		h.Prompt != "p20" || h.PromptDay != "d21" || h.Cooldown.UnixMilli() != 22 || h.Failures != 23 || h.Mark != "m24" {
		t.Errorf("%+v, %v", h, err)
	}
	i, err := s.Info(t.Context())
	if err != nil || i.Key != s.Key || i.ID != h.Log || i.Previous != "older" || i.Title != "Mine" || !i.CreatedAt.Equal(h.Created) || !i.UpdatedAt.Equal(h.Active) || i.Messages != 14 || i.ContextTokens != 15 || i.Window != 90_000 || i.Compactions != 16 || i.Resets != 17 || i.Usage != h.Usage || i.Skipped != 0 {
		t.Errorf("%+v, %v", i, err)
	}
	s.does(t, `UPDATE heads SET people = 0 WHERE key = ?`, string(s.Key))
	if h, err := s.head(t.Context()); err != nil || h.People.UnixMilli() != 12 {
		t.Errorf("of an older row people spoke at %s, %v", h.People, err)
	}
	r := &run{ID: "r", origins: []tidemark.Origin{{}}}
	if err := s.DB.Tx(t.Context(), append(s.usageStmts(r, tidemark.Call{Usage: tidemark.Usage{Input: 1, CacheRead: 2, Output: 3}}), s.countStmt())); err != nil {
		t.Fatal(err)
	}
	if got := s.reads(t, `SELECT active, people, messages, context, usage FROM heads WHERE key = ? LIMIT 1`, string(s.Key)); got != `1700000000000 1700000000000 16 6 {"cache_read_input_tokens":2,"input_tokens":19,"output_tokens":22}` {
		t.Errorf("behind a reply its row is %s", got)
	}
	r.origins[0].From = tidemark.FromSystem
	s.does(t, `UPDATE heads SET people = 5 WHERE key = ?`, string(s.Key))
	if err := s.DB.Tx(t.Context(), s.usageStmts(r, tidemark.Call{})); err != nil || s.reads(t, `SELECT people FROM heads WHERE key = ? LIMIT 1`, string(s.Key)) != "5" {
		t.Errorf("a reply to the program counts as one to people, %v", err)
	}
	s.does(t, `UPDATE heads SET usage = '{' WHERE key = ?`, string(s.Key))
	if _, err := s.head(t.Context()); err == nil || !strings.Contains(err.Error(), "usage") {
		t.Errorf("a row that cannot be read: %v", err)
	}
	s.does(t, `DELETE FROM heads WHERE key = ?`, string(s.Key))
	if _, err := s.head(t.Context()); !errors.Is(err, tidemark.ErrNotFound) {
		t.Errorf("a row that is gone: %v", err)
	}
	if err := s.readLearned(t.Context()); !errors.Is(err, tidemark.ErrNotFound) {
		t.Errorf("what was learned in it: %v", err)
	}
	s.does(t, `DELETE FROM refs WHERE name = ?`, headRef(s.Key))
	if err := s.ensure(t.Context()); err != nil || s.reads(t, `SELECT created, active, people, messages FROM heads WHERE key = ? LIMIT 1`, string(s.Key)) != "1700000000000 1700000000000 1700000000000 0" {
		t.Errorf("it is made anew: %v", err)
	}
}

// TestViewOfBytes: a view may have as many bytes as it may, and no more, whatever its tokens; of blocks that others stand for nothing counts.
func TestViewOfBytes(t *testing.T) {
	s, _ := plain(t, Config{})
	s.spoken(t, 4)
	log := s.current(t)
	rows, err := s.DB.Query(t.Context(), `SELECT sum(length(payload)) FROM entries WHERE log = ? LIMIT 1`, log)
	if err != nil {
		t.Fatal(err)
	}
	all := rows[0].Int(0)
	for _, c := range []struct {
		bytes int64
		fits  bool
	}{{all, true}, {all - 1, false}} {
		s.settings().ViewBytes = c.bytes
		if _, err := s.View(t.Context()); (err == nil) != c.fits || err != nil && !errors.Is(err, history.ErrHeavy) {
			t.Errorf("%d bytes of %d: %v", all, c.bytes, err)
		}
	}
	_, stmts, err := s.overlayStmts(log, tidemark.FromSystem, tidemark.Overlay{By: []string{"session"}, Edits: []tidemark.Edit{{From: "i0", Block: 1, Blocks: []tidemark.Block{tidemark.Text("short")}}, {From: "i1", Messages: []tidemark.Message{tidemark.NewText(tidemark.Assistant, "inserted")}}, {From: "i3", To: "i3"}}})
	if err == nil {
		err = s.DB.Tx(t.Context(), stmts)
	}
	if err != nil {
		t.Fatal(err)
	}
	v, err := s.View(t.Context())
	if err != nil || len(v.Items) != 4 || v.Items[0].Message.PlainText() != "short" || v.Items[1].Message.PlainText() != "inserted" || v.Items[2].ID != "i1" || v.Items[2].Source != tidemark.FromModel || v.Last == 0 || v.Until != v.Last+2 || v.Anchor || len(v.Shown) != 3 {
		t.Errorf("%+v, %v", v.Items, err)
	}
}

// holding is a room that lets the words of a turn wait for its end.
type holding struct{ room.Skipper }

func (holding) HoldStmts(_ context.Context, run, log string) ([]tidemark.Stmt, error) {
	return []tidemark.Stmt{{SQL: run + log}}, nil
}

// TestWordsAreHeld: the words of a turn wait for its end where they are its first, can be read, and nobody asked for anything.
func TestWordsAreHeld(t *testing.T) {
	s, _ := plain(t, Config{Rooms: []room.Maker{func(room.Ports) any { return holding{} }}})
	beat := queued{Payload: tidemark.NewText(tidemark.User, "heartbeat").AppendJSON(nil), Origin: tidemark.Origin{From: tidemark.FromSystem, Occasion: &tidemark.Occasion{Schedule: "s1"}}}
	broken := beat
	broken.Payload = []byte(`{`)
	asks := queued{Payload: tidemark.NewText(tidemark.User, "Remember that the key hangs behind the door.").AppendJSON(nil), Origin: tidemark.Origin{From: tidemark.FromPerson, Owner: true}}
	if !small(beat) || small(broken) || small(asks) {
		t.Fatalf("small are %v, %v, %v", small(beat), small(broken), small(asks))
	}
	for _, c := range []struct {
		name string
		r    run
		q    []queued
		held bool
	}{{"the first", run{}, []queued{beat, beat}, true}, {"none", run{}, nil, true}, {"later in a turn", run{Round: 1}, []queued{beat}, false}, {"behind others", run{took: []string{"x"}}, []queued{beat}, false}, {"beside one that asks", run{}, []queued{beat, asks}, false}, {"beside one that cannot be read", run{}, []queued{broken, beat}, false}} {
		c.r.ID, c.r.Log = "r", "log"
		stmts, err := s.holdStmts(t.Context(), &c.r, c.q)
		if (len(stmts) == 1 && stmts[0].SQL == "rlog") != c.held || err != nil {
			t.Errorf("%s: %+v, %v", c.name, stmts, err)
		}
	}
}

// TestErrandIsPosted: an errand is an input with limits of its own: what it may use is set with the first of its id, and what it asks
// for that is not there is refused.
func TestErrandIsPosted(t *testing.T) {
	s, _ := plain(t, Config{Strategies: []compaction.Strategy{compaction.Summary{}}})
	q := s.queue()
	e := tidemark.Errand{ID: "e", Text: "count the planks", Origin: tidemark.Origin{From: tidemark.FromAgent}, Limits: tidemark.Limits{Rounds: 4}}
	rounds := func() string { return fmt.Sprint(s.settings().MaxRounds) }
	if err := q.Post(t.Context(), e); err != nil || rounds() != "4" || s.reads(t, `SELECT id, kind, state, origin FROM inputs WHERE key = ? LIMIT 9`, string(s.Key)) != `e message new {"from":"agent"}` {
		t.Errorf("posted: %v, %s rounds", err, rounds())
	}
	e.Limits.Rounds = 9
	if err := q.Post(t.Context(), e); err != nil || rounds() != "4" {
		t.Errorf("the same again: %v, %s rounds", err, rounds())
	}
	e.ID, e.Limits.Strategies = "f", []string{"paging"}
	if err := q.Post(t.Context(), e); !errors.Is(err, tidemark.ErrInvalid) || !strings.Contains(err.Error(), "errand f") {
		t.Errorf("a strategy that is not there: %v", err)
	}
	e.ID = strings.Repeat("x", maxInputID+1)
	if err := q.Post(t.Context(), e); !errors.Is(err, tidemark.ErrInvalid) {
		t.Errorf("an id that is too long: %v", err)
	}
	if p, err := q.Find(t.Context(), "e"); !p.There || err != nil {
		t.Errorf("it is %+v, %v", p, err)
	}
	sub, err := s.Subscribe()
	if err != nil {
		t.Fatal(err)
	}
	if err := q.Withdraw(t.Context(), "e"); err != nil || fmt.Sprint(heardOf(sub)) != "[done e]" {
		t.Errorf("withdrawn: %v", err)
	}
	if err := q.Stop(t.Context(), "halt"); err != nil || s.reads(t, `SELECT kind, state, origin FROM inputs WHERE key = ? AND id = 'halt' LIMIT 1`, string(s.Key)) != `ask done {"from":"agent"}` {
		t.Errorf("stopped: %v", err)
	}
	ends, err := q.Follow()
	if err != nil {
		t.Fatal(err)
	}
	ends.Close()
}
