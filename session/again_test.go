package session_test

import (
	"context"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/session"
)

// shifted is a runtime whose clock can be moved.
type shifted struct {
	tidemark.Runtime
	by *time.Duration
}

func (r shifted) Now() time.Time { return r.Runtime.Now().Add(*r.by) }

// afterRuns is a database that forgets what was due only when the run that it began has ended.
type afterRuns struct{ tidemark.DB }

func (d afterRuns) Tx(ctx context.Context, stmts []tidemark.Stmt) error {
	for len(stmts) == 1 && strings.HasPrefix(stmts[0].SQL, "DELETE FROM due") && slices.Contains(stmts[0].Args, any("again")) {
		rows, err := d.Query(ctx, `SELECT 1 FROM inputs WHERE key = 'agent:main:main' AND state <> 'done' LIMIT 1`)
		if err != nil {
			return err
		}
		if len(rows) == 0 {
			break
		}
		runtime.Gosched()
	}
	return d.DB.Tx(ctx, stmts)
}

// TestSummaryIsMadeAgain: when the provider is down and the next call would not fit, an extract
// stands in; when it is back, the span is summarised from the originals, and the facts are kept.
func TestSummaryIsMadeAgain(t *testing.T) {
	h := newHarness(t, small)
	h.stop()
	var by time.Duration
	h.rt, h.db = shifted{h.rt, &by}, afterRuns{h.db}
	h.key = "agent:main:local:dm:again"
	h.open()
	down := fails(tidemark.ClassAuth) // no backoff, and may pass
	h.model.set(func(_ int, req tidemark.Request) (tidemark.Message, error) {
		if !asksSummary(req) {
			return tidemark.Message{}, nil
		}
		_, err := down(req)
		return tidemark.Message{}, err
	})
	for i := 0; len(h.events("compaction")) == 0 && i < 40; i++ {
		if got := h.say(filler(i)); strings.HasPrefix(got, "error") {
			t.Fatal(got)
		}
	}
	if head := h.sent()[0].Content[0].Text; !strings.Contains(head, "Summary unavailable") {
		t.Fatalf("no extract: %.200q", head)
	}
	wake := func() {
		t.Helper()
		by += 20 * time.Minute
		sub, err := h.Subscribe()
		if err != nil {
			t.Fatal(err)
		}
		defer sub.Close()
		if err := h.Wake(t.Context()); err != nil {
			t.Fatal(err)
		}
		for range sub.Ready {
			for n, ok := sub.Next(); ok; n, ok = sub.Next() {
				if n.Type == session.NoticeDone || n.Type == session.NoticeError {
					return
				}
			}
		}
	}
	wake() // still down: it is tried again later
	if head := h.sent()[0].Content[0].Text; !strings.Contains(head, "Summary unavailable") {
		t.Fatalf("the extract is gone: %.200q", head)
	}
	originals := false
	h.model.set(func(_ int, req tidemark.Request) (tidemark.Message, error) {
		originals = originals || asksSummary(req) && strings.Contains(req.Messages[0].PlainText(), "message 0: some words")
		return tidemark.Message{}, nil
	})
	wake()
	if !originals {
		t.Error("the summary was not made from the originals")
	}
	head := h.sent()[0].Content[0].Text
	if !strings.HasPrefix(head, compaction.SummaryMarker) || !strings.Contains(head, "## Decisions") || strings.Contains(head, "Summary unavailable") {
		t.Errorf("summary reads %.300q", head)
	}
	if got := h.agent.remembered(); len(got) == 0 {
		t.Errorf("facts %q", got)
	}
}

// TestOwedIsPaidOnce: what is finished of a summary that is owed is not asked for again, whatever is said before the rest
// of it can be.
func TestOwedIsPaidOnce(t *testing.T) {
	h, clock := newTimed(t, small, noon)
	down := fails(tidemark.ClassAuth) // no backoff, and may pass
	answers, first := 0, 0            // how many are left, and how often the oldest chunk was asked for
	h.model.set(func(_ int, req tidemark.Request) (tidemark.Message, error) {
		if !asksSummary(req) {
			return tidemark.Message{}, nil
		}
		if answers--; answers < 0 {
			_, err := down(req)
			return tidemark.Message{}, err
		}
		if strings.Contains(inner(req.Messages[0].PlainText(), "<conversation>", "</conversation>"), "message 0: some words") {
			first++
		}
		return tidemark.Message{}, nil
	})
	for i := 0; len(h.events("compaction")) == 0 && i < 40; i++ {
		h.say(filler(i))
	}
	clock.advance(20 * time.Minute)
	answers = 1
	h.wake()
	h.say("hello")
	clock.advance(20 * time.Minute)
	answers = 9
	h.wake()
	if head := h.sent()[0].Content[0].Text; first != 1 || answers > 7 || strings.Contains(head, "Summary unavailable") {
		t.Errorf("the oldest chunk was asked for %d times, %d calls were left; the view begins %.100q", first, answers, head)
	}
}
