package session_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/room/search"
	"github.com/tidemark-ai/tidemark/session"
)

// slow is a database each of whose writes takes a second, and each query a fiftieth.
type slow struct {
	tidemark.DB
	clock *clock
	on    bool
}

func (s *slow) Tx(ctx context.Context, stmts []tidemark.Stmt) error {
	if s.on {
		s.clock.jump(time.Second)
	}
	return s.DB.Tx(ctx, stmts)
}

func (s *slow) Query(ctx context.Context, sql string, args ...any) ([]tidemark.Row, error) {
	if s.on {
		s.clock.jump(20 * time.Millisecond)
	}
	return s.DB.Query(ctx, sql, args...)
}

// TestIndexInSlices: what a first recall has to read is bounded; the answer says how much is missing, and alarms
// read the rest, also when all that a slice reads has no words.
func TestIndexInSlices(t *testing.T) {
	h, c := newTimedAlone(t, session.Settings{}, noon)
	h.stop()
	db := &slow{DB: h.db, clock: c}
	h.db = db
	h.open()
	var log []tidemark.Message
	for i := range 1000 {
		text := fmt.Sprintf("talk of the harbour, tag NEEDLE_%d", i)
		if i >= 300 && i < 800 {
			text = "!"
		}
		log = append(log, tidemark.NewText(tidemark.User, text), tidemark.NewText(tidemark.Assistant, "…"))
	}
	h.told(log...)
	if err := h.db.Tx(t.Context(), []tidemark.Stmt{{SQL: `INSERT INTO words(words) VALUES('delete-all')`}}); err != nil {
		t.Fatal(err)
	}
	h.stop()
	h.open()
	db.on = true
	ask := func(query string) (search.Recalled, int) {
		t.Helper()
		got, err := h.Recall(t.Context(), search.Wanted{Query: query})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range got.Filtered {
			if f.Reason == "not indexed yet" {
				return got, f.Count
			}
		}
		return got, 0
	}
	begun := c.Now()
	got, missing := ask("NEEDLE_990")
	if took := c.Now().Sub(begun); took > 5*time.Second || missing < 500 || len(got.Results) == 0 || !strings.Contains(got.Results[0].Text, "NEEDLE_990") {
		t.Fatalf("%v, %d missing, %+v", took, missing, got.Results)
	}
	if told := h.toolSays("What is in the tag?", `{"query":"NEEDLE_7"}`); !strings.Contains(told, " messages are not indexed yet") {
		t.Errorf("the model is told %q", told)
	}
	h.stop() // a life later, too
	h.open()
	for n := 0; ; n++ {
		at, err := session.NextDue(t.Context(), h.db)
		if err != nil {
			t.Fatal(err)
		}
		if h.count(`SELECT count(*) FROM due WHERE kind = 'index' LIMIT 1`) == 0 {
			break
		}
		if n > 40 {
			t.Fatalf("the index is not done after %d alarms, next at %v", n, at)
		}
		c.advance(time.Minute)
		h.wake()
	}
	if got, missing := ask("NEEDLE_7"); missing != 0 || len(got.Results) == 0 || !strings.Contains(got.Results[0].Text, "NEEDLE_7") {
		t.Errorf("%d missing, %+v", missing, got.Results)
	}
}
