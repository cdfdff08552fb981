package session_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/memory"
	"github.com/tidemark-ai/tidemark/session"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// TestWindowIsShared: what one conversation learned of a model, another one of the agent heeds from its first request on.
func TestWindowIsShared(t *testing.T) {
	h := newHarness(t, session.Settings{})
	h.windows = &endpoint{}
	h.stop()
	h.open()
	h.model.set(func(_ int, req tidemark.Request) (tidemark.Message, error) {
		if sizeFor(req, 1) > 8192 {
			return tidemark.Message{}, &tidemark.APIError{Class: tidemark.ClassOverflow, Status: 400, Limit: 8192}
		}
		return tidemark.Message{}, nil
	})
	for i := range 40 {
		h.say(filler(i))
	}
	if len(h.agent.windows) == 0 {
		t.Fatal("the agent was told of no window")
	}
	other := unopened(t, session.Settings{})
	other.key, other.agent, other.windows = "agent:main:web:dm:ann", h.agent, h.windows
	other.open()
	refused := 0
	other.model.set(func(_ int, req tidemark.Request) (tidemark.Message, error) {
		if sizeFor(req, 1) > 8192 {
			refused++
			return tidemark.Message{}, &tidemark.APIError{Class: tidemark.ClassOverflow, Status: 400, Limit: 8192}
		}
		return tidemark.Message{}, nil
	})
	for i := range 40 {
		if got := other.say(filler(i)); !strings.HasPrefix(got, "ok") {
			t.Fatalf("message %d is answered %q", i, got)
		}
	}
	if w := other.Window(); refused > 0 || w.Tokens != 8192 || w.From != tidemark.WindowRefused {
		t.Errorf("%d refusals, %+v", refused, w)
	}
}

// TestWindowReachesWhoRuns: what one conversation learned of a model reaches one that runs with its next turn, before its request is
// made, and what it knew is not what the others are told.
func TestWindowReachesWhoRuns(t *testing.T) {
	h := newHarness(t, session.Settings{})
	h.windows, h.agent.files = &endpoint{}, []memory.Source{{Path: "MEMORY.md", Text: "- The boat is blue."}}
	h.reopen()
	n := h.other("agent:main:other")
	n.stop()
	n.agent, n.windows = h.agent, h.windows
	n.open()
	refused := 0
	no := func(_ int, req tidemark.Request) (tidemark.Message, error) {
		if sizeFor(req, 1) > 8192 {
			refused++
			return tidemark.Message{}, &tidemark.APIError{Class: tidemark.ClassOverflow, Status: 400, Limit: 8192}
		}
		return tidemark.Message{}, nil
	}
	h.model.set(no)
	n.model.set(no)
	n.say("hello")
	for i := range 12 {
		n.say(filler(i))
	}
	for i := 0; h.Window().Tokens != 8192; i++ {
		if got := h.say(filler(i)); !strings.HasPrefix(got, "ok") || i > 60 {
			t.Fatalf("message %d is answered %q", i, got)
		}
	}
	if w := n.Window(); w.Tokens != session.DefaultWindow {
		t.Fatalf("the other one knew: %+v", w)
	}
	refused = 0
	for i := range 40 {
		if got := n.say(filler(i)); !strings.HasPrefix(got, "ok") || n.Window().Tokens != 8192 {
			t.Fatalf("message %d is answered %q, %+v", i, got, n.Window())
		}
	}
	if refused > 0 {
		t.Errorf("%d refusals", refused)
	}
	for _, w := range h.agent.windows {
		if w.From.Met() && w.Tokens != 8192 {
			t.Errorf("the agent was told %+v", w)
		}
	}
}

// TestManyModels: what requests met while the agent was away it is told later, however many models were tried.
func TestManyModels(t *testing.T) {
	h := unopened(t, session.Settings{})
	h.windows = &endpoint{}
	h.open()
	met := map[string]bool{}
	h.model.set(func(_ int, req tidemark.Request) (tidemark.Message, error) {
		if met[req.Model] {
			return tidemark.Message{}, nil
		}
		met[req.Model] = true
		return tidemark.Message{}, &tidemark.APIError{Class: tidemark.ClassOverflow, Status: 400, Limit: 8192}
	})
	h.agent.fail = errors.New("away")
	for i := range 12 {
		if err := h.Configure(t.Context(), session.Override{Model: fmt.Sprint("m", i)}); err != nil {
			t.Fatal(err)
		}
		h.say("hello")
	}
	h.agent.fail = nil
	if err := h.Configure(t.Context(), session.Override{Model: "another"}); err != nil {
		t.Fatal(err)
	}
	h.stop()
	h.open()
	h.say("hello")
	if !slices.ContainsFunc(h.agent.windows, func(w tidemark.Window) bool { return w.Model == "http://local/v1 m11" && w.Tokens == 8192 }) {
		t.Errorf("the agent knows %+v", h.agent.windows)
	}
}

// TestWindowWhileTheAgentIsAway: what a request met is not given up for what the agent heard before, and it is told once
// it is there.
func TestWindowWhileTheAgentIsAway(t *testing.T) {
	h := unopened(t, session.Settings{})
	now := &clock{Runtime: tidemarktest.NewRuntime(t), now: time.Date(2026, 11, 3, 9, 0, 0, 0, time.UTC)}
	h.windows, h.rt = &endpoint{tells: map[string]tidemark.Tokens{"test": 32_768}}, now
	h.open()
	h.say("hello")
	h.model.set(func(_ int, req tidemark.Request) (tidemark.Message, error) {
		if sizeFor(req, 1) > 8192 {
			return tidemark.Message{}, &tidemark.APIError{Class: tidemark.ClassOverflow, Status: 400, Limit: 8192}
		}
		return tidemark.Message{}, nil
	})
	h.agent.fail = errors.New("away")
	for i := range 40 {
		h.say(filler(i))
	}
	h.agent.fail = nil
	now.advance(2 * time.Hour)
	h.say("later")
	if w := h.Window(); w.Tokens != 8192 || w.From != tidemark.WindowRefused {
		t.Errorf("it uses %+v", w)
	}
}
