package session

import (
	"errors"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
)

// weighing is a view of so many tokens, of which some are the system prompt's and some those of one message.
func weighing(log string, size, fixed, message tidemark.Tokens) View {
	var v View
	v.Log, v.Size, v.Fixed = log, size, fixed
	v.Items = []compaction.Item{{ID: "m", From: "m", To: "m", Tokens: message, Message: tidemark.NewText(tidemark.User, "hello")}}
	return v
}

// notices are the lines of a log's notices, oldest first.
func (s *Session) notices(t *testing.T) string {
	t.Helper()
	return s.reads(t, `SELECT json_extract(payload, '$.text') FROM entries WHERE log = ? AND kind = 'event' ORDER BY seq LIMIT 20`, s.current(t))
}

// TestMeasures: a view whose size a provider named, or refused it with, has the rest of the turn measured by that; one that
// knows better keeps its own.
func TestMeasures(t *testing.T) {
	for _, c := range []struct {
		name     string
		scale    scale
		size     tidemark.Tokens
		anchored bool
		want     tidemark.Tokens
		anchor   bool
		refused  bool
	}{
		{"nothing known", scale{}, 400, false, 400, false, false},
		{"counted", scale{300, 200, false}, 400, false, 600, true, false}, // 100 + 300 estimated
		{"counted, and reported since", scale{300, 200, false}, 450, true, 450, true, false},
		{"refused", scale{300, 200, true}, 450, true, 600, true, true},
		{"refused with less than is known", scale{300, 200, true}, 700, false, 700, true, true},
	} {
		v := weighing("", c.size, 100, 300)
		v.Anchor = c.anchored
		r := &run{scale: c.scale}
		if got := r.measured(v); got.Size != c.want || got.Anchor != c.anchor || got.Refused != c.refused {
			t.Errorf("%s: %d, anchored %v, refused %v", c.name, got.Size, got.Anchor, got.Refused)
		}
	}
	if got := weighing("", 800, 100, 300).measure(50); got != 100 {
		t.Errorf("50 estimated tokens are %d", got)
	}
	for _, c := range []struct {
		refused, size tidemark.Tokens
		heavier       bool
	}{{399, 399, false}, {400, 400, false}, {401, 401, true}} {
		v, r := weighing("", 400, 100, 300), &run{}
		if got := r.weigh(&v, c.refused); got != c.heavier || c.heavier && (v.Size != c.size || !v.Anchor || r.scale != scale{c.size, 400, true}) || !c.heavier && (v.Size != 400 || v.Anchor || r.scale != scale{}) {
			t.Errorf("refused with %d: %v, %+v", c.refused, got, r.scale)
		}
	}
}

// TestReplyRoom: the room for a reply is what is configured, or what the window leaves where that is less: less of it for a
// view of which only an estimate is known, and never nothing.
func TestReplyRoom(t *testing.T) {
	for _, c := range []struct {
		most, window, size tidemark.Tokens
		anchor             bool
		want               tidemark.Tokens
	}{
		{0, 32_000, 4_000, true, 0}, // as the provider has it
		{0, 32_000, 22_638, true, 8_191},
		{0, 32_000, 22_637, true, 0}, // 9,363 of 7/8 are 8,192
		{5_000, 32_000, 4_000, true, 5_000},
		{5_000, 32_000, 26_287, true, 4_998},
		{5_000, 32_000, 26_285, true, 5_000},
		{0, 32_000, 32_000, true, 1_000},
		{0, 32_000, 40_000, true, 1_000},
		{0, 32_000, 31_000, true, 1_000},
		{0, 32_000, 30_000, true, 1_750},
		{0, 32_000, 20_000, false, 6_125}, // 25,000
		{0, 32_000, 25_600, false, 2_000},
		{1_500, 32_000, 25_600, false, 1_500},
	} {
		s, _ := plain(t, Config{Settings: Settings{Window: c.window, MaxTokens: c.most}})
		v := weighing("", c.size, 0, 0)
		v.Anchor = c.anchor
		if got := s.replyRoom(v); got != c.want {
			t.Errorf("%d of %d tokens, anchored %v, at most %d: %d, want %d", c.size, c.window, c.anchor, c.most, got, c.want)
		}
	}
	s, _ := plain(t, Config{Settings: Settings{Zone: time.FixedZone("CET", 3600), Model: "m", MaxTokens: 9}})
	const now = "[It is Tuesday, 2023-11-14 23:13 CET.]"
	v := weighing("", 10, 0, 0)
	v.System, v.Tools, v.Pack = "Be kind.", []tidemark.Tool{{Name: "look"}}, "a pack"
	req := s.Request(v)
	if req.Model != "m" || req.System != "Be kind." || len(req.Tools) != 1 || len(req.Messages) != 1 || req.MaxTokens != 9 || req.Note != "a pack\n\n"+now {
		t.Errorf("the request is %+v", req)
	}
}

// TestTakenRequests: what a request showed once it was taken: how much the model takes, and the window that was tried with it,
// where each refusal of the trial was for its tokens.
func TestTakenRequests(t *testing.T) {
	for _, c := range []struct {
		name   string
		trial  trial
		size   tidemark.Tokens
		usage  tidemark.Usage
		taken  int64
		window tidemark.Tokens
		told   string
	}{
		{"nothing is tried", trial{}, 30_000, tidemark.Usage{}, 30_000, 100_000, ""},
		{"it reports more", trial{}, 30_000, tidemark.Usage{Input: 31_000, Output: 5}, 31_005, 100_000, ""},
		{"less than before", trial{}, 10, tidemark.Usage{}, 20_000, 100_000, ""},
		{"a window that is tried", trial{from: 100_000}, 30_000, tidemark.Usage{}, 30_000, 50_000, "The model takes 50000 tokens, not 100000: " + tidemark.WindowHalved.String() + "."},
		{"more than is tried", trial{from: 100_000}, 60_000, tidemark.Usage{}, 60_000, 60_000, "The model takes 60000 tokens, not 100000: " + tidemark.WindowHalved.String() + "."},
		{"one for its bytes", trial{from: 100_000, bytes: true}, 30_000, tidemark.Usage{}, 30_000, 100_000, ""},
	} {
		s, _ := plain(t, Config{Settings: Settings{Window: 100_000}})
		r := s.begun(t, "r", stateCalling)
		s.mostTaken.Store(20_000)
		if c.trial.from > 0 {
			if err := s.useWindow(t.Context(), 50_000); err != nil || s.settings().Window != 50_000 {
				t.Fatalf("%s: it uses %d, %v", c.name, s.settings().Window, err)
			}
		}
		r.trial = c.trial
		if err := s.took(t.Context(), r, weighing(r.Log, c.size, 0, 0), c.usage); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if w := s.Window(); s.mostTaken.Load() != c.taken || r.trial.from != 0 || w.Tokens != c.window || s.notices(t) != c.told {
			t.Errorf("%s: %d taken, %+v, told %q", c.name, s.mostTaken.Load(), w, s.notices(t))
		}
		if err := s.useWindow(t.Context(), 0); err != nil || s.settings().Window != c.window {
			t.Errorf("%s: then it uses %d, %v", c.name, s.settings().Window, err)
		}
	}
}

// TestLearnedWindow: of a window that a refusal named the conversation is told where it is less than before; of one in which no
// talk is possible that another model is to be chosen. None is learned below what any request takes.
func TestLearnedWindow(t *testing.T) {
	named := tidemark.WindowRefused.String()
	for _, c := range []struct {
		tokens, window tidemark.Tokens
		told           string
	}{
		{100_000, 100_000, ""},
		{120_000, 100_000, ""},
		{99_999, 99_999, "The model takes 99999 tokens, not 100000: " + named + "."},
		{4_000, 4_000, "The model takes 4000 tokens, not 100000: " + named + "."},
		{3_999, 3_999, "The model takes 3999 tokens, not 100000: " + named + ". That is too few for a conversation: choose a model that takes at least 4000."},
		{512, 1_000, "The model takes 512 tokens, not 100000: " + named + ". That is too few for a conversation: choose a model that takes at least 4000."},
	} {
		s, _ := plain(t, Config{Settings: Settings{Window: 100_000}})
		r := s.begun(t, "r", stateCalling)
		r.Attempt = 2
		s.does(t, `UPDATE heads SET prompt = 'frozen' WHERE key = ?`, string(s.Key))
		if err := s.learnAnd(t.Context(), r, 100_000, c.tokens, tidemark.WindowRefused); err != nil {
			t.Fatal(err)
		}
		prompt := map[bool]string{true: "frozen"}[c.window == 100_000]
		if w := s.Window(); w.Tokens != c.window || s.settings().Window != c.window || s.notices(t) != c.told || s.reads(t, `SELECT prompt FROM heads WHERE key = ? LIMIT 1`, string(s.Key)) != prompt {
			t.Errorf("%d tokens: %+v, told %q", c.tokens, w, s.notices(t))
		}
		if r.Attempt != 2 { // it is no call
			t.Errorf("%d tokens: attempt %d", c.tokens, r.Attempt)
		}
	}
}

// TestRefusedReplyRoom: where the view fits the window that is named, what was refused was the room for the reply: nothing
// leaves, and the request is smaller by what the API counts more. Below the window in force a limit is learned.
func TestRefusedReplyRoom(t *testing.T) {
	for _, c := range []struct {
		name         string
		asked, limit tidemark.Tokens
		window       tidemark.Tokens
		heavier      bool
	}{
		{"more than is known, within the window", 30_000, 100_000, 100_000, true},
		{"more than is known, within a larger one", 30_000, 200_000, 100_000, true},
		{"more than is known, within a smaller one", 30_000, 99_999, 99_999, true},
		{"no more than is known, within a smaller one", 10_000, 90_000, 90_000, false},
		{"not asked, within a smaller one", 0, 90_000, 90_000, false},
	} {
		s, _ := plain(t, Config{Settings: Settings{Window: 100_000}})
		r := s.begun(t, "r", stateCalling)
		if err := s.refit(t.Context(), r, weighing(r.Log, 10_000, 0, 0), tidemark.APIError{Class: tidemark.ClassOverflow, Status: 400, Limit: c.limit, Asked: c.asked}); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if r.refits != 1 || r.scale.refused != c.heavier || s.Window().Tokens != c.window {
			t.Errorf("%s: refitted %d times, %+v, %+v", c.name, r.refits, r.scale, s.Window())
		}
	}
}

// TestFitsTheWindow: a view that fits a window as it was refused is left alone, and so is one of which nothing can leave where
// the reply has room; one that does not fit is an overflow.
func TestFitsTheWindow(t *testing.T) {
	for _, c := range []struct {
		name         string
		size, asked  tidemark.Tokens
		before       tidemark.Tokens
		scaled, fits bool
	}{
		{"it fits", 10_000, 0, 200_000, false, true},
		{"as large as is said, it fits", 90_000, 20_000, 200_000, false, true},
		{"more than may be sent, with room for a reply", 85_000, 0, 200_000, false, true},
		{"as much as leaves room for a reply", 96_875, 0, 200_000, false, true},
		{"more", 96_876, 0, 200_000, false, false},
		{"as large as is said, more", 10_000, 96_876, 200_000, false, false},
		{"the window is the one before: it is larger than was estimated", 10_000, 0, 100_000, true, true},
		{"a smaller window than before", 10_000, 0, 100_001, false, true},
	} {
		s, _ := plain(t, Config{Settings: Settings{Window: 100_000, Reserve: 20_000, Keep: 1_000}})
		r := s.begun(t, "r", stateCalling)
		err := s.fitInto(t.Context(), r, weighing(r.Log, c.size, 0, c.size), c.before, c.asked)
		if (err == nil) != c.fits || err != nil && !errors.Is(err, tidemark.ErrNoGain) || r.scale.refused != c.scaled {
			t.Errorf("%s: %v, %+v", c.name, err, r.scale)
		}
	}
}
