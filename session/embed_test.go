package session_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/room/search"
	"github.com/tidemark-ai/tidemark/session"
)

// senses is an endpoint that knows which words mean the same: a dimension for each meaning, and one for all
// else.
type senses struct {
	mu    sync.Mutex
	model string
	fails bool
	more  int // numbers of a vector
	asked int

	refuses string   // texts with this
	texts   []string // that it was given
}

var meanings = [][]string{{"car", "automobile"}, {"boat", "vessel"}, {"doctor", "physician"}}

func (e *senses) Name() string { return e.model }

func (e *senses) Embed(_ context.Context, texts []string) ([][]float32, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.asked++
	if e.fails {
		return nil, errors.New("the endpoint is down")
	}
	for _, text := range texts {
		if e.refuses != "" && strings.Contains(text, e.refuses) {
			return nil, &tidemark.APIError{Class: tidemark.ClassBadRequest, Message: "no"}
		}
	}
	e.texts = append(e.texts, texts...)
	out := make([][]float32, len(texts))
	for i, text := range texts {
		out[i] = make([]float32, len(meanings)+1+e.more)
		out[i][len(meanings)] = 0.2
		for m, words := range meanings {
			for _, w := range words {
				if strings.Contains(strings.ToLower(text), w) {
					out[i][m] = 1
				}
			}
		}
	}
	return out, nil
}

// embedded is a conversation of 30 turns whose vectors were made.
func embedded(t *testing.T, e *senses) (*harness, *clock) {
	t.Helper()
	h, c := newTimedAlone(t, session.Settings{}, "2026-05-01T08:00:00Z")
	h.stop() // this life had no endpoint
	h.embedder = e
	h.open()
	for i := range 30 {
		text := "Nothing much happened on this quiet day at the harbour, number " + strings.Repeat("i", i+1)
		if i == 11 {
			text = "Mara sold her automobile to the baker."
		}
		h.say(text)
	}
	c.advance(2 * time.Second)
	h.wake()
	return h, c
}

func (h *harness) count(query string, args ...any) int64 {
	h.t.Helper()
	rows, err := h.db.Query(h.t.Context(), query, args...)
	if err != nil {
		h.t.Fatal(err)
	}
	return rows[0].Int(0)
}

// TestVectors: each message has one after the next wake, once; another model makes all of them anew.
func TestVectors(t *testing.T) {
	e := &senses{model: "a"}
	h, c := embedded(t, e)
	if n := h.count(`SELECT count(*) FROM vectors LIMIT 1`); n != 60 || len(e.texts) != 60 {
		t.Fatalf("%d vectors of %d texts, want 60", n, len(e.texts))
	}
	h.wake()
	h.open()
	h.wake()
	if len(e.texts) != 60 {
		t.Errorf("%d texts were sent, 60 are there", len(e.texts))
	}
	e.model = "b"
	h.stop()
	h.open()
	c.advance(2 * time.Minute)
	h.wake()
	if n := h.count(`SELECT count(*) FROM vectors LIMIT 1`); n != 60 || len(e.texts) != 120 {
		t.Errorf("%d vectors of %d texts after a change of the model", n, len(e.texts))
	}
}

// TestVectorsPutOff: an endpoint that fails is asked again, later each time, and then for all that it missed.
func TestVectorsPutOff(t *testing.T) {
	e := &senses{model: "a", fails: true}
	h, c := embedded(t, e)
	if n := h.count(`SELECT count(*) FROM vectors LIMIT 1`); n != 0 {
		t.Fatal(n)
	}
	first := h.due().Sub(c.Now())
	c.advance(first)
	h.wake()
	if second := h.due().Sub(c.Now()); first <= 0 || second <= first {
		t.Errorf("tried again after %v and then %v", first, second)
	}
	e.fails = false
	c.advance(time.Hour)
	h.wake()
	if n := h.count(`SELECT count(*) FROM vectors LIMIT 1`); n != 60 {
		t.Error(n)
	}
}

// TestNoVectors: without an endpoint there is no table of them.
func TestNoVectors(t *testing.T) {
	h := newAlone(t, session.Settings{})
	h.say("hello")
	if n := h.count(`SELECT count(*) FROM sqlite_master WHERE name = 'vectors' LIMIT 1`); n != 0 {
		t.Error("a table that nobody uses")
	}
}

// TestRecallByVectors: what was said in other words is found, not as certain; an endpoint that fails, or that
// knows nothing, leaves what the words find as it is.
func TestRecallByVectors(t *testing.T) {
	e := &senses{model: "a"}
	h, _ := embedded(t, e)
	ask := func(query string) search.Recalled {
		t.Helper()
		r, err := h.Recall(t.Context(), search.Wanted{Query: query, K: 5})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	found := ask("who has the car now")
	if len(found.Results) == 0 || !strings.Contains(found.Results[0].Text, "automobile") || found.Verdict != "weak" || found.Vectors != "used" {
		t.Errorf("%+v", found)
	}
	if late, err := h.Recall(t.Context(), search.Wanted{Query: "car", Since: time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)}); err != nil || len(late.Results) > 0 {
		t.Errorf("%+v, %v", late, err)
	}
	if words := ask("Mara baker"); words.Verdict != "confident" || words.Vectors != "" {
		t.Errorf("vectors are not asked where words are sure: %+v", words)
	}
	e.fails = true
	if found = ask("who has the car now"); found.Verdict == "confident" || found.Vectors != "unreachable" {
		t.Errorf("%+v", found)
	}
}

// TestVectorsOfAnotherLength: the endpoint has another model behind the same name: all vectors are made anew, and
// none are held against others.
func TestVectorsOfAnotherLength(t *testing.T) {
	e := &senses{model: "a"}
	h, c := embedded(t, e)
	e.more = 3
	h.say("One more day.")
	for range 4 {
		c.advance(2 * time.Minute)
		h.wake()
	}
	if n := h.count(`SELECT count(*) FROM vectors WHERE length(vector) = 7 LIMIT 1`); n != 62 {
		t.Errorf("%d vectors of the new length, want 62", n)
	}
}

// TestVectorsRest: an endpoint that failed is not asked by each recall.
func TestVectorsRest(t *testing.T) {
	e := &senses{model: "a", fails: true}
	h, c := embedded(t, e)
	e.asked = 0
	for range 5 {
		if _, err := h.Recall(t.Context(), search.Wanted{Query: "the car of the physician"}); err != nil {
			t.Fatal(err)
		}
	}
	if e.asked != 1 {
		t.Errorf("asked %d times", e.asked)
	}
	e.fails = false
	c.advance(-24 * time.Hour) // it was ahead
	if r, err := h.Recall(t.Context(), search.Wanted{Query: "the car of the physician"}); err != nil || r.Vectors != "used" {
		t.Errorf("%+v, %v", r, err)
	}
	c.advance(24*time.Hour + 2*time.Minute)
	if r, err := h.Recall(t.Context(), search.Wanted{Query: "the car of the physician"}); err != nil || r.Vectors != "used" {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestVectorsRefused: one text that the endpoint refuses goes without; one that refuses all is asked again later.
func TestVectorsRefused(t *testing.T) {
	e := &senses{model: "a", refuses: "automobile"}
	h, c := embedded(t, e)
	for range 10 {
		c.advance(time.Minute)
		h.wake()
	}
	want := int64(60 - strings.Count(strings.Join(h.current(), "\n"), "automobile"))
	if n := h.count(`SELECT count(*) FROM vectors LIMIT 1`); n != want || want > 59 {
		t.Errorf("%d vectors, want %d", n, want)
	}
	all := &senses{model: "b", refuses: ""}
	all.fails = true
	h.stop()
	h.embedder = all
	h.open()
	c.advance(time.Hour)
	h.wake()
	if n := h.count(`SELECT count(*) FROM vectors LIMIT 1`); n != 0 {
		t.Errorf("%d vectors of an endpoint that refuses all", n)
	}
}

// TestVectorsOfSkipped: what recall leaves out has no vector, also when vectors are made while its turn is in work.
func TestVectorsOfSkipped(t *testing.T) {
	e := &senses{model: "a"}
	h, c := newTimedAlone(t, overBudget, noon)
	h.stop()
	h.embedder = e
	h.open()
	h.model.set(chores)
	wake := func() {
		c.advance(2 * time.Second)
		if err := h.Wake(t.Context()); err != nil {
			t.Error(err)
		}
	}
	h.agent.call = func(b tidemark.Block) tidemark.Block {
		wake() // before it is decided
		return long("zebra", false)(b)
	}
	h.say("what is a tide?")
	h.say("what is an ebb?")
	h.say("ok, go on")
	wake()
	_, skipped, _ := h.homes()
	if len(skipped) == 0 {
		t.Fatal("nothing was skipped")
	}
	h.say("what is the flood?")
	wake()
	for _, text := range e.texts {
		if strings.Contains(text, "zebra") || strings.Contains(text, "go on") {
			t.Errorf("the endpoint was given %.40q", text)
		}
	}
	if n := h.count(`SELECT count(*) FROM vectors LIMIT 1`); n != 6 {
		t.Errorf("%d vectors, want 6", n)
	}
}
