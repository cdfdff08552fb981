//go:build !js

package e2e

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// TestRestart: the host is stopped in the middle of a stream, of a compaction and of a reset, with
// inputs waiting behind them. After it has come back each input is answered once.
func TestRestart(t *testing.T) {
	eachOwn(t, nil, func(t *testing.T, s *site) { restart(t, s, gracefully) })
}

// TestPowerCut is the same with SIGKILL.
func TestPowerCut(t *testing.T) {
	eachOwn(t, nil, func(t *testing.T, s *site) {
		if _, ok := s.target.(*inProcess); ok {
			t.Skip("it has no process of its own: " + errCannot.Error())
		}
		restart(t, s, byKill)
	})
}

func restart(t *testing.T, s *site, how string) {
	gate := make(chan struct{}, 100) // of what is in the middle when the host ends
	hold := func(k *talk, step tidemarktest.Step) {
		step.Gate = gate
		k.model.Push(step)
	}
	quiet := begin(t, s, "web", "quiet")
	quiet.say("Nothing happens here.")
	before := same(quiet.messages())

	streaming := begin(t, s, "web", "stream")
	streaming.say("We begin.")
	hold(streaming, tidemarktest.Step{Text: "One piece and another.", Piece: 10})
	for range 4 {
		gate <- struct{}{}
	}
	e := streaming.stream("Speak at length.", "s1")
	e.until("text")
	streaming.post("And this waits.", "s2")

	compacting := begin(t, s, "web", "compact")
	for i := range 9 {
		compacting.say(long(i))
	}
	compacting.set(4000) // the next input finds it over its limit
	hold(compacting, tidemarktest.Step{})
	c := compacting.stream("What was the first station?", "c1")
	c.until("compacting")
	compacting.post("And this waits.", "c2")

	resetting := begin(t, s, "web", "reset")
	resetting.say("This is to be archived.")
	hold(resetting, tidemarktest.Step{})
	old := resetting.info().ID
	ask[map[string]any](resetting, 202, "POST", resetting.path("/reset?wait=0"), map[string]string{"id": "r1"})
	eventually(t, s, func() string {
		if resetting.model.Open() == 0 {
			return "the reset asks for no memories"
		}
		return ""
	})
	resetting.post("A new beginning.", "r2")

	if err := s.halt(how); err != nil {
		t.Fatal(err)
	}
	e.leave()
	c.leave()
	close(gate)
	if err := s.run(); err != nil {
		t.Fatal(err)
	}
	streaming.once("Speak at length.", "s1")
	streaming.once("And this waits.", "s2")
	compacting.once("What was the first station?", "c1")
	compacting.once("And this waits.", "c2")
	resetting.once("A new beginning.", "r2")
	compacting.keptAll()
	if i := resetting.info(); i.ID == old || i.Messages != 2 {
		t.Errorf("%+v", i)
	}
	resetting.archives(old, 1)
	if after := same(quiet.messages()); after != before {
		t.Errorf("a quiet session was\n%s\nand is\n%s", before, after)
	}
}

// keptAll holds that a session was compacted and nothing of it is lost.
func (k *talk) keptAll() {
	k.t.Helper()
	i := k.info()
	if i.Compactions == 0 || i.ContextTokens > i.Limit {
		k.t.Fatalf("%+v", i)
	}
	var kept []tidemark.Message
	for _, p := range k.archives(i.ID, i.Compactions) {
		kept = append(kept, decodeLines(k.t, k.text(k.agent("/archives/"+p.name()+"?format=jsonl")))...)
	}
	if d := difference(words(append(kept, behind(k.view())...)), words(k.messages())); d != "" {
		k.t.Errorf("archives and view are not the history: %s", d)
	}
}

// post makes an input durable and waits for no answer.
func (k *talk) post(text, id string) {
	k.t.Helper()
	ask[map[string]any](k, 202, "POST", k.path("/messages?wait=0"), map[string]string{"text": text, "id": id})
}

// once sends an input again under its id and holds that it was taken and answered once.
func (k *talk) once(text, id string) {
	k.t.Helper()
	got := ask[turn](k, 200, "POST", k.path("/messages"), map[string]string{"text": text, "id": id})
	log := k.messages()
	if err := k.answered(log, text); err != nil || got.Text == "" || !got.Duplicate {
		k.t.Errorf("%s: %v: %+v\n%s", id, err, got, k.s.said())
	}
	if err := tidemark.Check(log); err != nil && len(log) > 0 {
		k.t.Error(err)
	}
}

// answered reports whether a text stands once in a history, with a reply somewhere behind it.
func (k *talk) answered(log []tidemark.Message, text string) error {
	at, n := -1, 0
	for i, m := range log {
		if c := strings.Count(m.PlainText(), text); m.Role == tidemark.User && c > 0 {
			at, n = i, n+c
		}
	}
	switch {
	case n != 1:
		return fmt.Errorf("it stands %d times in\n%s", n, words(log))
	case at == len(log)-1:
		return errors.New("it has no answer")
	}
	said, replies := 0, 0
	for _, m := range log {
		if m.Role == tidemark.Assistant {
			replies++
		} else {
			said += len(people([]tidemark.Message{m}))
		}
	}
	if replies > said {
		return fmt.Errorf("%d replies to %d inputs:\n%s", replies, said, words(log))
	}
	return nil
}
