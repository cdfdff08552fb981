package session_test

import (
	"context"
	"iter"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/session"
)

// reporter answers with usage as a provider reports it, under a name of its own for the model.
type reporter struct {
	*model
	usage tidemark.Usage
}

func (r *reporter) Stream(ctx context.Context, req tidemark.Request) iter.Seq2[tidemark.Delta, error] {
	return func(yield func(tidemark.Delta, error) bool) {
		for d, err := range r.model.Stream(ctx, req) {
			if d.Reply != nil {
				d.Reply.Call = tidemark.Call{Model: req.Model + "-20260101", Stop: "end_turn", Usage: r.usage, Reported: true}
			}
			if !yield(d, err) {
				return
			}
		}
	}
}

// TestContextSize: what is counted is all that the provider reported for the last single call, the
// cached part too, plus the estimate of what came since; a compaction and another model drop it.
func TestContextSize(t *testing.T) {
	for _, c := range []struct {
		name  string
		usage tidemark.Usage
		want  tidemark.Tokens
	}{
		{"cached: nearly all of the prompt was read from the cache", tidemark.Usage{Input: 3, CacheRead: 90_000, CacheCreation: 500, Output: 40}, 90_543},
		{"uncached", tidemark.Usage{Input: 4000, Output: 10}, 4010},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHarness(t, session.Settings{Window: 100_000})
			h.stop()
			h.key = "agent:main:local:dm:anchor"
			life, stop := context.WithCancel(context.Background())
			defer stop()
			s, err := session.Open(life, session.Config{Key: h.key, DB: h.db, Blobs: h.blobs, Provider: &reporter{h.model, c.usage}, Agent: h.agent,
				Runtime: h.rt, Settings: session.Settings{Model: "alias", Window: 100_000}})
			if err != nil {
				t.Fatal(err)
			}
			h.Session = s
			h.say("hello")
			v, err := h.View(t.Context())
			if err != nil || v.Size != c.want || !v.Anchor {
				t.Errorf("size %d, anchored %v, %v: want %d", v.Size, v.Anchor, err, c.want)
			}
			if err := h.Configure(t.Context(), session.Override{Model: "another"}); err != nil {
				t.Fatal(err)
			}
			if v, err = h.View(t.Context()); err != nil || v.Anchor || v.Size > 2000 {
				t.Errorf("with another model: size %d, anchored %v, %v", v.Size, v.Anchor, err)
			}
		})
	}
}

// TestCachedUsageTriggers: a provider that reports 3 uncached tokens and 90,000 cached ones has a
// full window (the reference compared the 3).
func TestCachedUsageTriggers(t *testing.T) {
	h := newHarness(t, session.Settings{})
	h.stop()
	h.key = "agent:main:local:dm:cached"
	life, stop := context.WithCancel(context.Background())
	defer stop()
	s, err := session.Open(life, session.Config{Key: h.key, DB: h.db, Blobs: h.blobs, Agent: h.agent, Runtime: h.rt,
		Provider: &reporter{h.model, tidemark.Usage{Input: 3, CacheRead: 90_000, Output: 20}},
		Settings: session.Settings{Model: "m", Window: 100_000, Keep: 1000}})
	if err != nil {
		t.Fatal(err)
	}
	h.Session = s
	for i := range 12 {
		h.say(filler(i))
		if info, _ := h.Info(t.Context()); info.Compactions > 0 {
			return
		}
	}
	t.Error("no compaction at 90,023 of 100,000 tokens")
}
