package session_test

import (
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/session"
)

// TestOutageDuringATrial: a window that is tried is learned once a request within it is taken. A refusal without a reason on the
// way, which passes, changes nothing of it.
func TestOutageDuringATrial(t *testing.T) {
	large := &tidemark.APIError{Class: tidemark.ClassOverflow, Status: 400, Message: "too long"}
	odd := &tidemark.APIError{Class: tidemark.ClassBadRequest, Status: 400, Message: "the request could not be processed"}
	for _, c := range []struct {
		name     string
		refusals []error
		window   tidemark.Tokens
	}{
		{"all of them said so", []error{large, large}, 30_419},
		{"one gave no reason", []error{large, large, odd}, 30_419},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHarness(t, session.Settings{Keep: 60_000})
			for i := range 120 {
				h.say(filler(i) + strings.Repeat(" and more of it", 150))
			}
			h.stop()
			h.open() // a new life does not know what the model took before
			left := c.refusals
			h.model.set(func(_ int, req tidemark.Request) (tidemark.Message, error) {
				if len(left) == 0 || asksSummary(req) {
					return tidemark.Message{}, nil
				}
				err := left[0]
				left = left[1:]
				return tidemark.Message{}, err
			})
			if got := h.say("hello?"); !strings.HasPrefix(got, "ok") || len(left) > 0 {
				t.Fatalf("answered %q, %d refusals are left", got, len(left))
			}
			if w := h.Window(); w.Tokens != c.window {
				t.Errorf("it uses %d tokens (%s)", w.Tokens, w.From)
			}
		})
	}
}

// TestTooLittleReported: a model API that reports a fraction of what it reads and refuses more than 16,000 tokens without a
// figure. The view is made smaller by what we estimate of it, so that the first window that is tried is taken: a window that
// was tried with the same view as before was refused, halved again, and learned too small.
func TestTooLittleReported(t *testing.T) {
	h := newHarness(t, session.Settings{})
	h.model.usage = tidemark.Usage{Input: 3_000, Output: 10}
	h.model.set(func(_ int, req tidemark.Request) (tidemark.Message, error) {
		const window = 16_000
		size := tidemark.EstimateText(req.System)
		for _, m := range req.Messages {
			size += tidemark.Estimate(m)
		}
		if size > window {
			return tidemark.Message{}, &tidemark.APIError{Class: tidemark.ClassOverflow, Status: 400, Message: "context length exceeded"}
		}
		return tidemark.Message{}, nil
	})
	for i := range 60 {
		h.say(filler(i) + strings.Repeat(" and more of it", 100))
	}
	if w := h.Window(); w.Tokens < 8_000 {
		t.Errorf("it uses %d tokens (%s)", w.Tokens, w.From)
	}
}
