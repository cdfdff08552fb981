package session_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/session"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// endpoint is a fake of what says how much models take.
type endpoint struct {
	known map[string]tidemark.Tokens
	tells map[string]tidemark.Tokens
	fail  error
	asked atomic.Int64
}

func (e *endpoint) Place() string                      { return "http://local/v1" }
func (e *endpoint) Known(model string) tidemark.Tokens { return e.known[model] }
func (e *endpoint) Window(_ context.Context, model string) (tidemark.Window, error) {
	e.asked.Add(1)
	return tidemark.Window{Tokens: e.tells[model], From: tidemark.WindowEndpoint}, e.fail
}

// sizeFor is how many tokens a strict model counts of a request, its reply included: factor times what we estimate.
func sizeFor(req tidemark.Request, factor float64) tidemark.Tokens {
	n := tidemark.EstimateText(req.System)
	for _, t := range req.Tools {
		n += tidemark.EstimateText(t.Name + t.Description + string(t.InputSchema))
	}
	for _, m := range req.Sent() {
		n += tidemark.Estimate(m)
	}
	return tidemark.Tokens(factor*float64(n)) + req.MaxTokens
}

// TestWindowIsLearned: nobody has set the window of a model that takes far less than is assumed. Its first refusal says by
// how much, or does not; each message is answered, summaries too, and what one conversation learned the next one heeds
// from its first request on.
func TestWindowIsLearned(t *testing.T) {
	for _, c := range []struct {
		name         string
		takes        tidemark.Tokens
		factor       float64 // by which the model's count is over our estimate
		named, asked bool    // whether it says what it takes, and how large the request was without its reply
		most         int     // refusals
	}{
		{"named", 8192, 1, true, true, 2},
		{"named alone", 16_384, 1, true, false, 2},
		{"named, and it counts more than we do", 8192, 1.6, true, true, 30},
		{"named alone, and it counts more", 8192, 1.6, true, false, 30},
		{"not named", 8192, 1, false, false, 12},
		{"not named, and it counts more", 16_384, 1.6, false, false, 16},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHarness(t, session.Settings{})
			refused := 0
			h.model.set(func(_ int, req tidemark.Request) (tidemark.Message, error) {
				n := sizeFor(req, c.factor)
				if n <= c.takes {
					h.model.usage = tidemark.Usage{Input: n - req.MaxTokens, Output: 10}
					return tidemark.Message{}, nil
				}
				refused++
				e := &tidemark.APIError{Class: tidemark.ClassOverflow, Status: 400, Message: "too long"}
				if c.named {
					e.Limit = c.takes
				}
				if c.asked {
					e.Asked = n - req.MaxTokens
				}
				return tidemark.Message{}, e
			})
			talk := func(rounds int) {
				for i := range rounds {
					if got := h.say(filler(i)); !strings.HasPrefix(got, "ok") {
						t.Fatalf("message %d is answered %q", i, got)
					}
				}
			}
			talk(90)
			if refused == 0 || refused > c.most {
				t.Errorf("%d requests were refused, want 1 to %d", refused, c.most)
			}
			w := h.Window()
			if w.Tokens > c.takes || w.Tokens < c.takes/4 {
				t.Errorf("it uses %d of %d tokens", w.Tokens, c.takes)
			}
			if from := h.events("notice"); len(from) == 0 || !strings.Contains(from[0], fmt.Sprintf("not %d", session.DefaultWindow)) {
				t.Errorf("notices %q", from)
			}
			if len(h.events("compaction")) == 0 {
				t.Error("nothing was compacted")
			}
			h.stop()
			h.open()
			if again := h.Window(); again.Tokens != w.Tokens || again.From != w.From {
				t.Errorf("after a restart %+v, before it %+v", again, w)
			}
		})
	}
}

// TestNothingIsLearnedOfNo: what refuses everything for its size for a while, and names no limit, shows no window: the
// talk goes on as it was.
func TestNothingIsLearnedOfNo(t *testing.T) {
	h := newHarness(t, session.Settings{})
	for i := range 6 {
		h.say(filler(i))
	}
	h.model.set(func(int, tidemark.Request) (tidemark.Message, error) {
		return tidemark.Message{}, &tidemark.APIError{Class: tidemark.ClassOverflow, Status: 400, Message: "too long"}
	})
	for range 3 {
		if got := h.say("too much?"); !strings.HasPrefix(got, "error: ") {
			t.Fatalf("answered %q", got)
		}
	}
	h.model.set(nil)
	if got, w := h.say("and now?"), h.Window(); !strings.HasPrefix(got, "ok") || w.Tokens != session.DefaultWindow {
		t.Errorf("answered %q, %+v", got, w)
	}
}

// TestRefusalWithoutAReason: a model that takes less than is assumed says so in words that nobody knows. Asked whether it takes as
// many other words, it refuses them as well: so its window is found by halving, and learned for all; each message is answered.
// Where it says that it is for the bytes, nothing is learned of tokens.
func TestRefusalWithoutAReason(t *testing.T) {
	for _, c := range []struct {
		status int
		class  tidemark.Class
		says   string
	}{
		{400, tidemark.ClassBadRequest, "Bad Request"},
		{413, tidemark.ClassOverflow, "Request Entity Too Large"},
		{422, tidemark.ClassBadRequest, "no"},
		{500, tidemark.ClassOverloaded, "oops"},
	} {
		t.Run(fmt.Sprint(c.status), func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, session.Settings{})
			const takes = 15_000
			refused := 0
			h.model.set(func(_ int, req tidemark.Request) (tidemark.Message, error) {
				if n := sizeFor(req, 1) - req.MaxTokens; n <= takes {
					h.model.usage = tidemark.Usage{Input: n, Output: 10}
					return tidemark.Message{}, nil
				}
				refused++
				return tidemark.Message{}, &tidemark.APIError{Class: c.class, Status: c.status, Message: c.says}
			})
			for i := range 90 {
				if got := h.say(filler(i)); !strings.HasPrefix(got, "ok") {
					t.Fatalf("message %d is answered %q", i, got)
				}
			}
			w := h.Window()
			learned := w.Tokens < takes && w.Tokens > takes*3/4 && refused <= 12 && len(h.events("notice")) == 1 && len(h.agent.windows) == 1
			if c.status == 413 {
				learned = w.Tokens == session.DefaultWindow && refused <= 20 && len(h.events("notice")) == 0
			}
			if refused == 0 || !learned {
				t.Errorf("%d requests were refused, it uses %d tokens (%s), notices %q", refused, w.Tokens, w.From, h.events("notice"))
			}
		})
	}
}

// TestOutageTeachesNothing: a server that is down until the smaller request comes says nothing of the window, to no
// conversation.
func TestOutageTeachesNothing(t *testing.T) {
	h := newHarness(t, session.Settings{})
	for i := range 20 {
		h.say(filler(i))
	}
	down := 0
	h.model.set(func(_ int, req tidemark.Request) (tidemark.Message, error) {
		if down++; down <= 3 {
			return tidemark.Message{}, &tidemark.APIError{Class: tidemark.ClassOverloaded, Status: 500, Message: "Internal server error"}
		}
		return tidemark.Message{}, nil
	})
	if got := h.say("hello?"); !strings.HasPrefix(got, "ok") || down < 4 {
		t.Fatalf("answered %q after %d calls", got, down)
	}
	if w := h.Window(); w.Tokens != session.DefaultWindow || len(h.agent.windows) > 0 {
		t.Errorf("it uses %+v, all conversations %+v", w, h.agent.windows)
	}
}

// TestRefusalForSomethingElse: where a request without all that can be left out is refused as well, nothing is learned and nothing
// leaves the view. That costs some more requests a turn.
func TestRefusalForSomethingElse(t *testing.T) {
	h := newHarness(t, session.Settings{})
	n := h.other("agent:main:other")
	var last string
	for i := range 30 {
		last = filler(i)
		h.say(last)
		n.say(last)
	}
	h.sentInOrder([]string{filler(0), last})
	no := func(_ int, req tidemark.Request) (tidemark.Message, error) {
		if asksSummary(req) {
			return tidemark.Message{}, nil
		}
		return tidemark.Message{}, &tidemark.APIError{Class: tidemark.ClassBadRequest, Status: 400, Message: "this model is tired"}
	}
	h.model.set(no)
	if got := h.say("hello?"); !strings.Contains(got, "this model is tired") {
		t.Fatalf("answered %q", got)
	}
	before := h.model.count()
	if got := h.say("hello?"); !strings.Contains(got, "tired") || h.model.count() != before+4 {
		t.Errorf("answered %q after %d calls", got, h.model.count()-before)
	}
	h.model.set(nil)
	if got, w := h.say("and now?"), h.Window(); !strings.HasPrefix(got, "ok") || w.Tokens != session.DefaultWindow {
		t.Errorf("answered %q, %+v", got, w)
	}
	h.sentInOrder([]string{filler(0), last, "hello?", "and now?"})
	if told := h.events("compaction"); len(told) > 0 || len(h.events("notice")) > 0 {
		t.Errorf("compactions %q, notices %q", told, h.events("notice"))
	}
	n.say("and now?")
	n.sentInOrder([]string{filler(0), last, "and now?"})
}

// TestLimitIsNamedLate: what a turn tried is forgotten once the API names its limit.
func TestLimitIsNamedLate(t *testing.T) {
	h := newHarness(t, session.Settings{})
	for i := range 20 {
		h.say(filler(i))
	}
	calls := 0
	h.model.set(func(_ int, req tidemark.Request) (tidemark.Message, error) {
		if asksSummary(req) {
			return tidemark.Message{}, nil
		}
		switch calls++; calls {
		case 1:
			return tidemark.Message{}, &tidemark.APIError{Class: tidemark.ClassOverflow, Status: 400, Message: "context length exceeded"}
		case 2:
			return tidemark.Message{}, &tidemark.APIError{Class: tidemark.ClassOverflow, Status: 400, Limit: 65_536}
		}
		return tidemark.Message{}, nil
	})
	if got := h.say("hello?"); !strings.HasPrefix(got, "ok") || calls < 3 {
		t.Fatalf("answered %q after %d calls", got, calls)
	}
	if w := h.Window(); w.Tokens != 65_536 || w.From != tidemark.WindowRefused {
		t.Errorf("it uses %+v", w)
	}
	if from := h.events("notice"); len(from) != 1 || !strings.Contains(from[0], fmt.Sprintf("65536 tokens, not %d", session.DefaultWindow)) {
		t.Errorf("notices %q", from)
	}
}

// TestModelIsTooSmall: of a model that takes next to nothing the person is told so.
func TestModelIsTooSmall(t *testing.T) {
	h := newHarness(t, session.Settings{})
	h.model.set(func(int, tidemark.Request) (tidemark.Message, error) {
		return tidemark.Message{}, &tidemark.APIError{Class: tidemark.ClassOverflow, Status: 400, Limit: 512}
	})
	if got := h.say("hello?"); !strings.HasPrefix(got, "error: ") {
		t.Fatalf("answered %q", got)
	}
	if from := h.events("notice"); len(from) != 1 || !strings.Contains(from[0], "takes 512 tokens, not") || !strings.Contains(from[0], "at least 4000") {
		t.Errorf("notices %q", from)
	}
}

// TestReplyHasLessRoom: where what is refused is the room for the reply, and nobody says so, a conversation of which nothing
// can leave is asked again with less of it.
func TestReplyHasLessRoom(t *testing.T) {
	h := newHarness(t, session.Settings{Window: 8192})
	h.model.set(func(_ int, req tidemark.Request) (tidemark.Message, error) {
		if req.MaxTokens == 0 || req.MaxTokens > 2_000 {
			return tidemark.Message{}, &tidemark.APIError{Class: tidemark.ClassOverflow, Status: 400, Message: "too long"}
		}
		return tidemark.Message{}, nil
	})
	long := strings.Repeat("a clause of the lease, ", 350)
	if got := h.say(long); !strings.HasPrefix(got, "ok") {
		t.Fatalf("answered %q, %+v", got, h.Window())
	}
	h.sentInOrder([]string{long})
}

// TestWindowIsAsked: what the endpoint tells, or the model's maker, bounds what is set; it is asked once an hour, every
// ten minutes where it does not say, and one that does not answer costs no turn.
func TestWindowIsAsked(t *testing.T) {
	for _, c := range []struct {
		name string
		is   *endpoint
		set  tidemark.Tokens
		want tidemark.Window
		asks [2]int64 // within the hour, and behind it
	}{
		{"it tells", &endpoint{tells: map[string]tidemark.Tokens{"test": 32_000}}, 0, tidemark.Window{Tokens: 32_000, From: tidemark.WindowEndpoint}, [2]int64{1, 2}},
		{"more than is set", &endpoint{tells: map[string]tidemark.Tokens{"test": 32_000}}, 16_000, tidemark.Window{Tokens: 16_000, From: tidemark.WindowSet}, [2]int64{1, 2}},
		{"its maker says", &endpoint{known: map[string]tidemark.Tokens{"test": 128_000}}, 0, tidemark.Window{Tokens: 128_000, From: tidemark.WindowKnown}, [2]int64{2, 2}},
		{"started with less", &endpoint{known: map[string]tidemark.Tokens{"test": 128_000}, tells: map[string]tidemark.Tokens{"test": 4096}}, 0, tidemark.Window{Tokens: 4096, From: tidemark.WindowEndpoint}, [2]int64{1, 2}},
		{"nobody says", &endpoint{}, 0, tidemark.Window{Tokens: session.DefaultWindow, From: tidemark.WindowSet}, [2]int64{2, 2}},
		{"it fails", &endpoint{fail: errors.New("no way")}, 0, tidemark.Window{Tokens: session.DefaultWindow, From: tidemark.WindowSet}, [2]int64{2, 2}},
	} {
		t.Run(c.name, func(t *testing.T) {
			now := &clock{Runtime: tidemarktest.NewRuntime(t), now: time.Date(2026, 11, 3, 9, 0, 0, 0, time.UTC)}
			h := unopened(t, session.Settings{Window: c.set})
			h.windows, h.rt = c.is, now
			h.open()
			for range 3 {
				if got := h.say("hello"); !strings.HasPrefix(got, "ok") {
					t.Fatalf("answered %q", got)
				}
			}
			if w := h.Window(); w.Tokens != c.want.Tokens || w.From != c.want.From {
				t.Errorf("%+v, want %+v", w, c.want)
			}
			if n := c.is.asked.Load(); n != 1 {
				t.Errorf("it was asked %d times in a moment", n)
			}
			for i, d := range []time.Duration{59 * time.Minute, 2 * time.Minute} {
				now.advance(d)
				h.say("later")
				if n := c.is.asked.Load(); n != c.asks[i] {
					t.Errorf("it was asked %d times, want %d", n, c.asks[i])
				}
			}
		})
	}
}

// TestWindowIsToldNoMore: what an endpoint said holds while it does not answer, here and for other conversations, and no
// longer.
func TestWindowIsToldNoMore(t *testing.T) {
	now := &clock{Runtime: tidemarktest.NewRuntime(t), now: time.Date(2026, 11, 3, 9, 0, 0, 0, time.UTC)}
	h := unopened(t, session.Settings{})
	is := &endpoint{tells: map[string]tidemark.Tokens{"test": 8192}}
	h.windows, h.rt = is, now
	h.open()
	h.say("hello")
	uses := func(when string, want tidemark.Tokens) {
		t.Helper()
		h.say(when)
		if w := h.Window(); w.Tokens != want || w.From != tidemark.WindowEndpoint {
			t.Errorf("%s it uses %+v, want %d", when, w, want)
		}
		if all := h.agent.windows; len(all) == 0 || all[len(all)-1].Tokens != want {
			t.Errorf("%s all conversations use %+v, want %d", when, all, want)
		}
	}
	is.fail = errors.New("slow")
	is.tells = nil
	for _, when := range []string{"an hour later", "two hours later"} {
		now.advance(61 * time.Minute)
		uses(when, 8192)
	}
	is.fail, is.tells = nil, map[string]tidemark.Tokens{"test": 16_384}
	now.advance(11 * time.Minute)
	uses("when it answers again", 16_384)
}

// TestTooManyBytes: a refusal for the bytes of a request with pictures makes it smaller, and says nothing of the window.
func TestTooManyBytes(t *testing.T) {
	h := newHarness(t, session.Settings{Window: 100_000, Keep: 500})
	picture := picture(4 << 10)
	for i := range 8 {
		h.post(session.Input{Message: tidemark.Message{Role: tidemark.User, Content: []tidemark.Block{picture, tidemark.Text(filler(i))}}})
	}
	refused := 0
	h.model.set(func(_ int, req tidemark.Request) (tidemark.Message, error) {
		if raw, err := json.Marshal(req.Messages); !asksSummary(req) && (err != nil || len(raw) > 16<<10) {
			refused++
			return tidemark.Message{}, &tidemark.APIError{Class: tidemark.ClassOverflow, Status: 413, Message: "Request Entity Too Large"}
		}
		return tidemark.Message{}, nil
	})
	if got := h.say("once"); !strings.HasPrefix(got, "ok") || refused == 0 {
		t.Fatalf("answered %q after %d refusals", got, refused)
	}
	if w := h.Window(); w.Tokens != 100_000 {
		t.Errorf("the window is %+v", w)
	}
}
