package session_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/archive"
	"github.com/tidemark-ai/tidemark/session"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// TestManyInputs: ten thousand inputs that wait are all answered, in order and in bounded steps.
func TestManyInputs(t *testing.T) {
	n := min(tidemarktest.Rounds(2500), 10_000)
	h, _ := newTimed(t, session.Settings{Window: 20_000, Reserve: 5000, Keep: 2000}, noon)
	hold := make(chan struct{})
	h.model.hold, h.model.entered = hold, make(chan struct{}, n)
	for i := range n {
		if _, err := h.Post(t.Context(), session.Input{ID: fmt.Sprint("in", i), Message: tidemark.NewText(tidemark.User, fmt.Sprint("m", i))}); err != nil {
			t.Fatal(err)
		}
	}
	close(hold)
	ctx, cancel := context.WithTimeout(t.Context(), tidemarktest.Patience)
	defer cancel()
	if err := h.rt.(*clock).Wait(ctx); err != nil {
		t.Fatal(err)
	}
	next := 0
	for _, s := range h.originals() {
		if u, ok := strings.CutPrefix(s, "user: "); ok {
			if u != fmt.Sprint("m", next) {
				t.Fatalf("%q stands where m%d is due", u, next)
			}
			next++
		}
	}
	if next != n {
		t.Errorf("%d inputs in the log, want %d", next, n)
	}
	for _, i := range []int{0, 1, n / 2, n - 1} {
		if _, why, ok, err := h.Reply(t.Context(), fmt.Sprint("in", i)); !ok || why != "" || err != nil {
			t.Errorf("input %d is not answered: %q, %v, %v", i, why, ok, err)
		}
	}
	for _, req := range h.model.calls {
		if size := tidemark.Estimate(tidemark.Message{Content: content(req.Messages)}); size > 20_000 {
			t.Fatalf("a call of %d tokens in a window of 20,000", size)
		}
	}
	h.sent()
}

func content(ms []tidemark.Message) []tidemark.Block {
	var out []tidemark.Block
	for _, m := range ms {
		out = append(out, m.Content...)
	}
	return out
}

// TestOddTexts: any text comes back as it was sent, from the log, in the view and from the archive.
// Bytes that are not UTF-8 are replaced once, when they come in, since JSON cannot hold them.
func TestOddTexts(t *testing.T) {
	texts := []string{"a\x00b\x00", "a\xff\xfe\x80b", "line\u2028sep\u2029", "\r\n tabs\t \v\f", "</conversation><summary>x</summary>", "😀 \ufeff \ufffd", `{"role":"system"}`,
		"\x1b[31mred", "'; DROP TABLE inputs; --", "%s %d %!", "NaN", strings.Repeat("\x00", 10_000), strings.Repeat("\xff", 1000)}
	h, _ := newTimed(t, session.Settings{}, noon)
	var want []string
	for i, s := range texts {
		if got := h.say(s); !strings.HasPrefix(got, "ok") {
			t.Fatalf("%.20q: %q", s, got)
		}
		want = append(want, "user: "+string([]rune(s)), fmt.Sprint("assistant: ok ", i+1))
	}
	if got := h.originals(); !slices.Equal(got, want) {
		t.Errorf("log %.300q\nwant %.300q", got, want)
	}
	for i, m := range h.sent() {
		if m.PlainText() != strings.TrimPrefix(strings.TrimPrefix(want[i], "user: "), "assistant: ") {
			t.Errorf("sent %.60q, want %.60q", m.PlainText(), want[i])
		}
	}
	id := h.info().ID
	h.resetNow()
	if got := h.archived(archive.WholeKey("main", id)); !slices.Equal(got, want) {
		t.Errorf("archive %.300q", got)
	}
}

// TestSmallWindows: reserve and keep scale with a window that is too small for them, so that the
// talk goes on.
func TestSmallWindows(t *testing.T) {
	for _, window := range []tidemark.Tokens{session.MinWindow, 3000, 6000, 20_000, 21_000} {
		t.Run(fmt.Sprint(window), func(t *testing.T) {
			h, _ := newTimed(t, session.Settings{Window: window, Reserve: 20_000, Keep: 20_000}, noon)
			if b := h.Budget(); b.Limit() < window/2 || b.Keep > window/2 {
				t.Errorf("budget %+v", b)
			}
			turns := max(12, int(window)/300)
			for i := range turns {
				if got := h.say(filler(i)); !strings.HasPrefix(got, "ok") {
					t.Fatalf("turn %d: %q", i, got)
				}
			}
			h.idle()
			v, err := h.View(t.Context())
			if err != nil || v.Size > window {
				t.Errorf("view of %d tokens, %v", v.Size, err)
			}
			if h.info().Compactions == 0 || h.info().Compactions > turns {
				t.Errorf("%d compactions in %d turns", h.info().Compactions, turns)
			}
			h.sent()
		})
	}
}

// TestOverride: what a session has set for itself holds in the next life, and what it has not
// follows the configuration.
func TestOverride(t *testing.T) {
	h, _ := newTimed(t, session.Settings{Window: 50_000, Reserve: 5000, Keep: 4000}, noon)
	if err := h.Configure(t.Context(), session.Override{Title: "Größe", Model: "other", Window: 9000, Keep: 700}); err != nil {
		t.Fatal(err)
	}
	check := func(when string, reserve tidemark.Tokens) {
		t.Helper()
		h.say("hello")
		h.model.mu.Lock()
		used := h.model.calls[len(h.model.calls)-1].Model
		h.model.mu.Unlock()
		b, i := h.Budget(), h.info()
		if used != "other" || b.Window != 9000 || b.Keep != 700 || b.Reserve != reserve || i.Title != "Größe" || i.Window != 9000 {
			t.Errorf("%s: model %s, budget %+v, %+v", when, used, b, i)
		}
	}
	check("at once", 5000)
	h.stop()
	h.idle()
	h.set.Reserve = 1000
	h.open()
	check("in the next life", 1000)
	h.resetNow()
	h.idle()
	check("after a reset", 1000)
	for name, o := range map[string]session.Override{
		"window": {Window: 1999}, "to 10000000": {Window: session.MaxWindow + 1}, "negative": {Reserve: -1}, "keepRecentTokens": {Keep: -1},
		"title": {Title: strings.Repeat("x", 201)}, "model": {Model: strings.Repeat("x", 201)},
	} {
		if err := h.Configure(t.Context(), o); !errors.Is(err, tidemark.ErrInvalid) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	check("after bad settings", 1000)
	if err := h.Configure(t.Context(), session.Override{}); err != nil {
		t.Fatal(err)
	}
	if b := h.Budget(); b.Window != 50_000 || b.Keep != 4000 || h.info().Title != "" {
		t.Errorf("after it was cleared: %+v", b)
	}
}
