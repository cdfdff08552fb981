package session_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/session"
)

var oddWords = tidemark.APIError{Class: tidemark.ClassBadRequest, Status: http.StatusBadRequest, Message: "those words make me dizzy"}

// holding reports whether a request has some text in its messages.
func holding(t *testing.T, req tidemark.Request, text string) bool {
	t.Helper()
	raw, err := json.Marshal(req.Messages)
	if err != nil {
		t.Error(err)
	}
	return strings.Contains(string(raw), text)
}

// TestMendThenDeclined: what was taken out since it was refused stays out where the model declines afterwards.
func TestMendThenDeclined(t *testing.T) {
	t.Parallel()
	h := newHarness(t, session.Settings{})
	h.say("POISON here")
	declines := false
	h.model.declines = func(tidemark.Request) bool { return declines }
	h.model.set(func(_ int, req tidemark.Request) (tidemark.Message, error) {
		switch {
		case holding(t, req, "POISON"):
			return tidemark.Message{}, &oddWords
		case declines:
			return tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{tidemark.Text("I can't help with that.")}}, nil
		}
		return tidemark.Message{}, nil
	})
	declines = true
	h.say("first")
	h.say("second")
	declines = false
	before := h.model.count()
	if got := h.say("third"); !strings.HasPrefix(got, "ok ") || h.model.count() != before+1 {
		t.Errorf("%q after %d calls", got, h.model.count()-before)
	}
	h.sentInOrder([]string{"Refused by the model's API", "first", "second", "third"})
}

// TestMendBusy: an API that is busy in the middle of a search is asked again.
func TestMendBusy(t *testing.T) {
	t.Parallel()
	h, _ := newTimed(t, session.Settings{}, noon)
	for i := range 20 {
		h.say(fmt.Sprint("number ", i, " of them"))
	}
	n := 0
	h.model.set(func(_ int, req tidemark.Request) (tidemark.Message, error) {
		if n++; n%3 == 0 {
			return tidemark.Message{}, &tidemark.APIError{Class: tidemark.ClassRate, Status: http.StatusTooManyRequests, Message: "slow down"}
		}
		if holding(t, req, "number 7 of") {
			return tidemark.Message{}, &oddWords
		}
		return tidemark.Message{}, nil
	})
	if got := h.say("and now?"); !strings.HasPrefix(got, "ok ") {
		t.Errorf("answered %q after %d calls", got, n)
	}
	h.sentInOrder([]string{"number 6 of", "Refused by the model's API", "number 8 of", "and now?"})
}

// TestMendReply: a model that answers with less than it is asked for, and says so in words that nobody knows, is asked for less;
// of its window nothing is learned.
func TestMendReply(t *testing.T) {
	t.Parallel()
	const most = 3_000
	h := newHarness(t, session.Settings{MaxTokens: 20_000})
	refused := 0
	h.model.set(func(_ int, req tidemark.Request) (tidemark.Message, error) {
		if req.MaxTokens > most {
			refused++
			return tidemark.Message{}, &oddWords
		}
		return tidemark.Message{}, nil
	})
	for i := range 3 {
		if got := h.say(fmt.Sprint("hello ", i)); !strings.HasPrefix(got, "ok ") {
			t.Fatalf("answered %q", got)
		}
	}
	if w, last := h.Window(), h.model.last(); w.Tokens != session.DefaultWindow || last.MaxTokens > most || last.MaxTokens < most/2 || len(h.events("notice")) > 0 || refused > 18 {
		t.Errorf("the window is %+v, a reply may have %d tokens, told %q, %d refused", w, last.MaxTokens, h.events("notice"), refused)
	}
}

// TestMendScript: a conversation in another script, of which each character is a token, is too large for what the model takes, in
// unknown words: its window is found, and nothing that was said becomes a note.
func TestMendScript(t *testing.T) {
	t.Parallel()
	const takes = 9_000
	h := newHarness(t, session.Settings{})
	h.model.set(func(_ int, req tidemark.Request) (tidemark.Message, error) {
		size := len(req.System) + len(req.Note) // in quarters
		for _, m := range req.Messages {
			for _, r := range string(m.AppendJSON(nil)) {
				if size += 1; r > 0x2FF {
					size += 3
				}
			}
		}
		if size/4 > takes && !asksSummary(req) {
			return tidemark.Message{}, &oddWords
		}
		h.model.usage = tidemark.Usage{Input: tidemark.Tokens(size / 4), Output: 10}
		return tidemark.Message{}, nil
	})
	for i := range 30 {
		if got := h.say(fmt.Sprint(i, " ", strings.Repeat("潮水转了时间到了", 60))); !strings.HasPrefix(got, "ok ") {
			t.Fatalf("message %d is answered %q", i, got)
		}
	}
	if w := h.Window(); w.From != tidemark.WindowHalved || w.Tokens > takes || holding(t, h.model.last(), "Refused by the model's API") {
		t.Errorf("the window is %+v; sent %.300s", w, texts(h.model.last().Messages))
	}
}

// TestMendQuoted: a refusal that quotes what it refuses, of whatever status that a gate on the way may have, costs just that: what
// stands in its place does not quote it.
func TestMendQuoted(t *testing.T) {
	t.Parallel()
	for status, class := range map[int]tidemark.Class{400: tidemark.ClassBadRequest, 403: tidemark.ClassAuth, 409: tidemark.ClassOverloaded, 413: tidemark.ClassOverflow} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, session.Settings{})
			h.say("one of POISON here")
			h.say("two")
			h.model.set(func(_ int, req tidemark.Request) (tidemark.Message, error) {
				if holding(t, req, "POISON") {
					return tidemark.Message{}, &tidemark.APIError{Class: class, Status: status, Message: `it has "POISON" in it`}
				}
				return tidemark.Message{}, nil
			})
			for i := range 2 {
				if got := h.say(fmt.Sprint("and now ", i)); !strings.HasPrefix(got, "ok ") {
					t.Fatalf("answered %q", got)
				}
			}
			h.sentInOrder([]string{"Refused by the model's API", "two", "and now 0", "and now 1"})
		})
	}
}

// TestMendManyMessages: an API that takes so many messages and no more, in words that nobody knows, is sent fewer; no window is learned.
func TestMendManyMessages(t *testing.T) {
	t.Parallel()
	h := newHarness(t, session.Settings{})
	h.model.set(func(_ int, req tidemark.Request) (tidemark.Message, error) {
		if len(req.Messages) > 41 && !asksSummary(req) {
			return tidemark.Message{}, &oddWords
		}
		return tidemark.Message{}, nil
	})
	for i := range 60 {
		if got := h.say(filler(i)); !strings.HasPrefix(got, "ok ") {
			t.Fatalf("message %d is answered %q", i, got)
		}
	}
	if w := h.Window(); w.Tokens != session.DefaultWindow || holding(t, h.model.last(), "Refused by the model's API") || !holding(t, h.model.last(), filler(59)) {
		t.Errorf("the window is %+v", w)
	}
}

// TestMendAmongWaiting: of messages that waited and are answered together, one that is refused does not take the others with it.
func TestMendAmongWaiting(t *testing.T) {
	t.Parallel()
	h := newHarness(t, session.Settings{})
	waiting := []session.Input{overApp("ann", "m1", "the bus leaves at six"), overApp("ann", "m2", "dizzying words"), overApp("ann", "m3", "and the train?")}
	h.model.set(func(_ int, req tidemark.Request) (tidemark.Message, error) {
		for _, in := range waiting {
			if _, err := h.Post(h.t.Context(), in); err != nil {
				t.Error(err)
			}
		}
		if waiting = nil; holding(t, req, "dizzying") {
			return tidemark.Message{}, &oddWords
		}
		return tidemark.Message{}, nil
	})
	h.say("hello")
	if got := h.say("and now?"); !strings.HasPrefix(got, "ok ") {
		t.Fatalf("answered %q", got)
	}
	h.sentInOrder([]string{"at six", "Refused by the model's API", "the train?", "and now?"})
	if errs := h.events("error"); len(errs) > 0 || len(h.events("notice")) != 1 {
		t.Errorf("failed %q, told %q", errs, h.events("notice"))
	}
}
