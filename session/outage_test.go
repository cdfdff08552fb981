package session_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/session"
)

// TestLastingOutageMayBeTheSize: where a model of summaries only ever says 500 to what is too large for it, halves of it are
// tried once the compaction was put off. The summary is whole then.
func TestLastingOutageMayBeTheSize(t *testing.T) {
	h, c := newTimed(t, session.Settings{Window: 30_000, Reserve: 4000, Keep: 800}, noon)
	h.model.set(func(_ int, req tidemark.Request) (tidemark.Message, error) {
		if asksSummary(req) && len(req.Messages[0].PlainText()) > 16_000 {
			return tidemark.Message{}, &tidemark.APIError{Class: tidemark.ClassOverloaded, Status: http.StatusInternalServerError, Message: "Internal server error"}
		}
		return tidemark.Message{}, nil
	})
	for i := 0; i < 200 && len(h.events("compaction")) == 0; i++ {
		h.say(strings.Repeat(filler(i)+"\n", 2))
		c.advance(2 * time.Minute)
	}
	if put, made := h.events("notice"), h.events("compaction"); len(put) != 1 || len(made) != 1 || strings.Contains(made[0], "extract") || !strings.Contains(put[0], "put off") {
		t.Errorf("put off %q, made %q", put, made)
	}
}

// TestOutageIsTold: while the model of summaries is down the conversation is told once that its compaction is put off, and
// why, and the compaction that is made at last says that it made up for it.
func TestOutageIsTold(t *testing.T) {
	h, c := newTimed(t, session.Settings{Window: 9000, Reserve: 2500, Keep: 800}, noon)
	down := true
	h.model.set(func(_ int, req tidemark.Request) (tidemark.Message, error) {
		if down && asksSummary(req) {
			return tidemark.Message{}, failure(tidemark.ClassAuth) // no backoff, and may pass
		}
		return tidemark.Message{}, nil
	})
	told := func() (out []string) {
		for _, e := range h.events("notice") {
			if strings.Contains(e, "put off") {
				out = append(out, e)
			}
		}
		return out
	}
	i := 0
	for ; len(told()) == 0 && i < 40; i++ {
		h.say(filler(i))
	}
	for range 2 { // it is tried again, and fails again
		c.advance(16 * time.Minute)
		h.say("and on")
	}
	if got := told(); len(got) != 1 || !strings.Contains(got[0], "12:01 UTC") || !strings.Contains(got[0], "refused the key") || len(h.events("compaction")) != 0 {
		t.Fatalf("told %q, compactions %q", got, h.events("compaction"))
	}
	down = false
	c.advance(16 * time.Minute)
	h.say("and on")
	if got := h.events("compaction"); len(got) != 1 || !strings.Contains(got[0], "made up for what was put off (failed tries: 3)") || len(told()) != 1 {
		t.Errorf("compactions %q, told %q", got, told())
	}
}
