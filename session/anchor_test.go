package session_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strings"
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
			s, err := session.Open(life, session.Config{Rooms: finding, Key: h.key, DB: h.db, Blobs: h.blobs, Provider: &reporter{h.model, c.usage}, Agent: h.agent,
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
	s, err := session.Open(life, session.Config{Rooms: finding, Key: h.key, DB: h.db, Blobs: h.blobs, Agent: h.agent, Runtime: h.rt,
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

// counting reports what a provider counts that has a rate of its own: so many hundredths of what we estimate.
type counting struct {
	*model
	percent tidemark.Tokens
	last    tidemark.Tokens // that it counted, of a call that asks no summary
}

func (c *counting) Stream(ctx context.Context, req tidemark.Request) iter.Seq2[tidemark.Delta, error] {
	n := tidemark.EstimateText(req.System)
	if len(req.Tools) > 0 {
		schemas, _ := json.Marshal(req.Tools)
		n += tidemark.EstimateText(string(schemas))
	}
	for _, m := range req.Messages {
		n += tidemark.Estimate(m)
	}
	n = n * c.percent / 100
	if !asksSummary(req) {
		c.last = n
	}
	return (&reporter{c.model, tidemark.Usage{Input: n, Output: 1}}).Stream(ctx, req)
}

// TestOneMeasure: what a compaction is told to leave, the size behind it, and the record of the next call are in the
// measure of the provider, whether that counts less than we estimate or more.
func TestOneMeasure(t *testing.T) {
	for _, percent := range []tidemark.Tokens{60, 80, 100, 120} {
		t.Run(fmt.Sprint(percent), func(t *testing.T) {
			h := newHarness(t, session.Settings{})
			h.stop()
			h.key = "agent:main:local:dm:measure"
			life, stop := context.WithCancel(context.Background())
			defer stop()
			p := &counting{model: h.model, percent: percent}
			s, err := session.Open(life, session.Config{Rooms: h.rooms(), Key: h.key, DB: h.db, Blobs: h.blobs, Agent: h.agent, Runtime: h.rt, Provider: p,
				Settings: session.Settings{Model: "m", Window: 16_000, Reserve: 4000, Keep: 2000}})
			if err != nil {
				t.Fatal(err)
			}
			h.Session = s
			near := func(what string, got, want tidemark.Tokens) {
				t.Helper()
				if 100*got < 94*want || 100*got > 106*want {
					t.Errorf("%s is %d, the provider counts %d", what, got, want)
				}
			}
			var told session.Compacted
			for i := 0; told.After == 0 && i < 60; i++ {
				h.say(filler(i) + strings.Repeat(" and more of it", 60))
				if events := h.events("compaction"); len(events) > 0 {
					var e struct{ Data session.Compacted }
					if err := json.Unmarshal([]byte(events[0]), &e); err != nil {
						t.Fatal(err)
					}
					told = e.Data
				}
			}
			near("what is left", told.After, p.last)
			a := h.anatomies()
			call := a[len(a)-1]
			near("the size of the call", call.Size, p.last)
			sum := call.System + call.Tools
			for _, part := range call.Parts {
				sum += part.Tokens
			}
			near("the sum of the parts", sum, p.last)
			if got := h.post(session.Input{Kind: session.InputCompact}); strings.HasPrefix(got, "error") {
				t.Fatal(got)
			}
			v, err := h.View(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			h.say("on")
			near("what a compaction by hand leaves", v.Size, p.last)
		})
	}
}

// TestMeasureIsOfItsModel: the measure of a compaction holds for the model that counted so, and as long as it stands.
func TestMeasureIsOfItsModel(t *testing.T) {
	h := newHarness(t, session.Settings{Window: 16_000, Reserve: 4000, Keep: 2000})
	h.stop()
	h.provider = &counting{model: h.model, percent: 200}
	h.open()
	for i := 0; len(h.events("compaction")) == 0 && i < 60; i++ {
		h.say(filler(i) + strings.Repeat(" and more of it", 60))
	}
	for i := range 4 {
		h.say(filler(i))
	}
	if got := h.post(session.Input{Kind: session.InputCompact}); strings.HasPrefix(got, "error") {
		t.Fatal(got)
	}
	sized := func() (v session.View, times float64) {
		t.Helper()
		v, err := h.View(t.Context())
		if err != nil || v.Anchor {
			t.Fatal(v.Anchor, err)
		}
		return v, float64(v.Size) / float64(v.Fixed+v.View.Tokens())
	}
	v, times := sized()
	if len(h.events("compaction")) != 2 || times < 1.8 {
		t.Fatalf("%d compactions, the view counts %.2f times the estimate", len(h.events("compaction")), times)
	}
	configure := func(model string) {
		t.Helper()
		if err := h.Configure(t.Context(), session.Override{Model: model}); err != nil {
			t.Fatal(err)
		}
	}
	configure("another")
	if _, times := sized(); times != 1 {
		t.Errorf("with another model the view counts %.2f times the estimate", times)
	}
	configure("test")
	if _, times := sized(); times < 1.8 {
		t.Errorf("with the first one again it counts %.2f times the estimate", times)
	}
	for i := range 2 {
		for _, sh := range v.Shown {
			if _, err := h.Undo(t.Context(), sh.Overlay); err != nil {
				t.Fatal(err)
			}
		}
		if v, times = sized(); (times == 1) != (i == 1) {
			t.Errorf("behind the undo of %d compactions it counts %.2f times the estimate", i+1, times)
		}
	}
}
