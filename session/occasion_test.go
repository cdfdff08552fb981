package session_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/session"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// Ran has the fake agent hear of schedules, but not while it fails.
func (a *fakeAgent) Ran(_ context.Context, ran tidemark.Ran) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.fail == nil {
		a.ran = append(a.ran, ran)
	}
	return a.fail
}

// scheduled is an errand of a schedule to a person.
func scheduled(due int64, to *tidemark.Address, quiet string, said ...string) tidemark.Errand {
	return tidemark.Errand{ID: fmt.Sprintf("schedule:s1:%d", due), Text: "Look around.", Origin: tidemark.Origin{From: tidemark.FromSystem, Channel: tidemark.ChannelSchedule, Owner: true, To: to,
		Occasion: &tidemark.Occasion{Schedule: "s1", Due: due, Quiet: quiet, Said: said}}}
}

// run starts an errand twice and waits until the session is quiet.
func (h *harness) run(e tidemark.Errand) {
	h.t.Helper()
	for range 2 {
		if err := h.Start(h.t.Context(), e); err != nil {
			h.t.Fatal(err)
		}
	}
	h.idle()
}

// TestScheduledAnswers: of a run of a schedule people read the answer alone, and of a quiet one only news.
func TestScheduledAnswers(t *testing.T) {
	c := &tidemarktest.Courier{}
	h, _ := newPhone(t, c)
	say := func(text string) {
		h.model.set(func(int, tidemark.Request) (tidemark.Message, error) {
			return tidemark.NewText(tidemark.Assistant, text), nil
		})
	}
	h.model.usage = tidemark.Usage{Input: 5, Output: 1}
	say("The boiler is off.")
	h.run(scheduled(1, &ann, ""))
	h.run(scheduled(2, &ann, "HEARTBEAT_OK", tidemark.SaidHash("The boiler is off.")))
	h.run(scheduled(3, nil, ""))
	say("**HEARTBEAT_OK**.")
	h.run(scheduled(4, &ann, "HEARTBEAT_OK"))
	say("HEARTBEAT_OK, but the boiler is off.")
	h.run(scheduled(5, &ann, "HEARTBEAT_OK"))
	h.model.set(func(int, tidemark.Request) (tidemark.Message, error) {
		return tidemark.Message{}, &tidemark.APIError{Status: 401, Class: tidemark.ClassAuth, Message: "no key"}
	})
	h.run(scheduled(6, &ann, ""))
	wantTexts(t, c, "The boiler is off.", "HEARTBEAT_OK, but the boiler is off.")
	var got []string
	for _, r := range h.agent.ran {
		got = append(got, fmt.Sprintf("%d %t %t %t", r.Due, r.Delivered, r.Outcome.Error != "", r.Outcome.Usage.Context() > 0))
		if r.Schedule != "s1" || r.Session != h.key || r.At.IsZero() || r.Outcome.Error == "" && (r.Outcome.Text == "" || r.Outcome.Entry == "" || r.Said != tidemark.SaidHash(r.Outcome.Text)) {
			t.Errorf("%+v", r)
		}
	}
	if want := "1 true false true,2 false false true,3 false false true,4 false false true,5 true false true,6 false true false"; strings.Join(got, ",") != want {
		t.Errorf("the agent heard %s, want %s", strings.Join(got, ","), want)
	}
}

// TestScheduledWithPeople: a person who wrote at the same time reads the answer, whatever the run says.
func TestScheduledWithPeople(t *testing.T) {
	c := &tidemarktest.Courier{}
	h, _ := newPhone(t, c)
	h.model.set(func(int, tidemark.Request) (tidemark.Message, error) {
		return tidemark.NewText(tidemark.Assistant, "HEARTBEAT_OK"), nil
	})
	h.stop()
	if _, err := h.Post(context.Background(), wrote(ann, "m1", "Is all well?")); err != nil && !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	h.open()
	h.run(scheduled(1, &ann, "HEARTBEAT_OK"))
	wantTexts(t, c, "HEARTBEAT_OK")
}

// TestScheduledOutcomeIsKept: an agent that cannot be reached hears of the end of a run later, once.
func TestScheduledOutcomeIsKept(t *testing.T) {
	c := &tidemarktest.Courier{}
	h, clock := newPhone(t, c)
	h.agent.mu.Lock()
	h.agent.fail = tidemark.ErrUnavailable
	h.agent.mu.Unlock()
	h.run(scheduled(1, nil, ""))
	h.stop()
	h.open()
	h.agent.mu.Lock()
	h.agent.fail = nil
	h.agent.mu.Unlock()
	clock.advance(2 * time.Minute)
	for range 2 {
		if err := h.Wake(t.Context()); err != nil {
			t.Fatal(err)
		}
		h.idle()
	}
	if len(h.agent.ran) != 1 {
		t.Errorf("it heard %+v", h.agent.ran)
	}
}

// TestCorrespondent: where somebody wrote from last; in the main session only the owner counts, and never a schedule.
func TestCorrespondent(t *testing.T) {
	c := &tidemarktest.Courier{}
	h, _ := newPhone(t, c)
	h.stop()
	h.key = "agent:main:main"
	h.open()
	if _, err := h.Correspondent(t.Context()); !errors.Is(err, tidemark.ErrNotFound) {
		t.Errorf("%v", err)
	}
	own := func(by tidemark.Address, id string) session.Input {
		in := wrote(by, id, "Hello.")
		in.Origin.Owner = true
		return in
	}
	h.post(own(ann, "m1"))
	h.post(wrote(bob, "m2", "Hello."))
	h.run(scheduled(1, &group, ""))
	o, err := h.Correspondent(t.Context())
	if err != nil || o.To == nil || *o.To != ann || o.Peer != "ann" {
		t.Errorf("%+v, %v", o, err)
	}
	h.post(own(bob, "m3"))
	if o, err := h.Correspondent(t.Context()); err != nil || *o.To != bob {
		t.Errorf("%+v, %v", o, err)
	}
	if busy, err := h.Occupied(t.Context()); busy || err != nil {
		t.Errorf("%t, %v", busy, err)
	}
}
