package session_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/archive"
	"github.com/tidemark-ai/tidemark/memory"
	"github.com/tidemark-ai/tidemark/room/replay"
	"github.com/tidemark-ai/tidemark/session"
)

// TestPanicEndsTheTurnVisibly: a mistake of ours in a turn must not leave the session busy.
func TestPanicEndsTheTurnVisibly(t *testing.T) {
	h := newHarness(t, session.Settings{})
	h.model.set(func(int, tidemark.Request) (tidemark.Message, error) { panic("a mistake, on purpose") })
	if got := h.say("hello"); !strings.HasPrefix(got, "error: the turn failed inside the server") {
		t.Fatalf("got %q", got)
	}
	h.model.set(nil)
	if got := h.say("again"); !strings.HasPrefix(got, "ok") {
		t.Errorf("next turn: %q", got)
	}
}

// TestManyLargeResults: results that together exceed a row of the database are stored apart.
func TestManyLargeResults(t *testing.T) {
	h := newHarness(t, session.Settings{Window: 1_000_000})
	h.agent.call = func(b tidemark.Block) tidemark.Block {
		return tidemark.ToolResult(b.ID, strings.Repeat(b.ID+" ", 80_000), false)
	}
	h.model.set(func(n int, _ tidemark.Request) (tidemark.Message, error) {
		m := tidemark.Message{Role: tidemark.Assistant}
		for i := range 12 {
			m.Content = append(m.Content, tidemark.ToolUse(fmt.Sprint("c", i), "look", nil))
		}
		if n > 1 {
			return tidemark.Message{}, nil
		}
		return m, nil
	})
	if got := h.say("look everywhere"); got != "ok 2" {
		t.Fatalf("got %.200q", got)
	}
	results := h.sent()[2]
	if len(results.Results()) != 12 || !strings.HasPrefix(results.Content[11].Content[0].Text, "c11 c11") {
		t.Errorf("results %v", results.Results())
	}
}

// TestBareContentSurvivesTheBucket: a long text that came as a string goes out as one.
func TestBareContentSurvivesTheBucket(t *testing.T) {
	h := newHarness(t, session.Settings{Window: 1_000_000})
	m := tidemark.NewText(tidemark.User, strings.Repeat("a long line ", 40_000))
	h.post(session.Input{Message: m})
	for e, err := range h.Reader.All(t.Context(), false) {
		if err != nil {
			t.Fatal(err)
		}
		if string(e.Payload) != string(m.AppendJSON(nil)) {
			t.Errorf("exported as %.60s…", e.Payload)
		}
		break
	}
}

// slowAgent holds its first report until it is told.
type slowAgent struct {
	*fakeAgent
	once    sync.Once
	entered chan struct{}
	release chan struct{}
}

func (a *slowAgent) Report(ctx context.Context, i tidemark.SessionInfo, x []archive.Info) error {
	a.once.Do(func() {
		close(a.entered)
		<-a.release
	})
	return a.fakeAgent.Report(ctx, i, x)
}

// TestTheEndOfOneRunIsNotTheEndOfTheNext: while the first turn still reports, the second can be
// seen working and can be stopped.
func TestTheEndOfOneRunIsNotTheEndOfTheNext(t *testing.T) {
	h := newHarness(t, session.Settings{})
	h.stop()
	h.key = "agent:main:local:dm:two"
	a := &slowAgent{fakeAgent: h.agent, entered: make(chan struct{}), release: make(chan struct{})}
	life, stop := context.WithCancel(context.Background())
	defer stop()
	s, err := session.Open(life, session.Config{Rooms: finding, Key: h.key, DB: h.db, Blobs: h.blobs, Provider: h.model, Agent: a, Runtime: h.rt, Settings: session.Settings{Model: "test"}})
	if err != nil {
		t.Fatal(err)
	}
	h.Session = s
	h.say("one")
	<-a.entered
	h.model.hold, h.model.entered = make(chan struct{}), make(chan struct{}, 1)
	sub, err := h.Subscribe()
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	r, err := h.Post(t.Context(), session.Input{Message: tidemark.NewText(tidemark.User, "two")})
	if err != nil {
		t.Fatal(err)
	}
	<-h.model.entered
	close(a.release)
	if !h.Working() || !h.Abort() {
		t.Error("the second run is not seen, or cannot be stopped")
	}
	if got := h.wait(sub, r.ID); got != "error: Stopped." {
		t.Errorf("got %q", got)
	}
}

// TestUndoDropsTheAnchor: what a provider reported under a summary says nothing without it.
func TestUndoDropsTheAnchor(t *testing.T) {
	h := newHarness(t, small)
	h.fill(1)
	v, err := h.View(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	h.stop()
	life, stop := context.WithCancel(context.Background())
	defer stop()
	set := small
	set.Model = "test"
	s, err := session.Open(life, session.Config{Rooms: finding, Key: h.key, DB: h.db, Blobs: h.blobs, Provider: &reporter{h.model, tidemark.Usage{Input: 1500, Output: 10}},
		Agent: h.agent, Runtime: h.rt, Settings: set})
	if err != nil {
		t.Fatal(err)
	}
	h.Session = s
	h.say("short")
	if _, err := h.Undo(t.Context(), v.Shown[0].Overlay); err != nil {
		t.Fatal(err)
	}
	if v, err = h.View(t.Context()); err != nil || v.Anchor || v.Size < v.Fixed+v.View.Tokens() {
		t.Errorf("size %d of %d tokens, anchored %v, %v", v.Size, v.Fixed+v.View.Tokens(), v.Anchor, err)
	}
}

// TestImportBehindAFailure: what was said while an import failed is answered.
func TestImportBehindAFailure(t *testing.T) {
	h := newHarness(t, session.Settings{})
	sub, err := h.Subscribe()
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	var id string
	_, err = h.Import(t.Context(), func(yield func(replay.Message, error) bool) {
		if !yield(replay.Message{Message: tidemark.NewText(tidemark.User, "imported")}, nil) {
			return
		}
		if !h.Working() {
			t.Error("an import is work")
		}
		r, err := h.Post(t.Context(), session.Input{Message: tidemark.NewText(tidemark.User, "hello?")})
		if err != nil {
			t.Error(err)
		}
		id = r.ID
		yield(replay.Message{}, errors.New("the file is broken"))
	}, nil)
	if err == nil {
		t.Fatal("the import did not fail")
	}
	if got := h.wait(sub, id); !strings.HasPrefix(got, "ok") {
		t.Errorf("got %q", got)
	}
}

// TestRefusedBlock: a block that the model API refuses does not fail its turn.
func TestRefusedBlock(t *testing.T) {
	h := newHarness(t, session.Settings{})
	h.model.set(func(_ int, req tidemark.Request) (tidemark.Message, error) {
		for _, m := range req.Messages {
			for _, b := range m.Content {
				if b.Type == "weird" {
					return tidemark.Message{}, &tidemark.APIError{Class: tidemark.ClassBadRequest, Status: 400, Message: "Input tag 'weird'"}
				}
			}
		}
		return tidemark.Message{}, nil
	})
	var m tidemark.Message
	if err := m.UnmarshalJSON([]byte(`{"role":"user","content":[{"type":"weird","foo":1},{"type":"text","text":"look"}]}`)); err != nil {
		t.Fatal(err)
	}
	if got := h.post(session.Input{Message: m}); !strings.HasPrefix(got, "ok") {
		t.Fatalf("got %q", got)
	}
	if got := h.say("plain"); !strings.HasPrefix(got, "ok") {
		t.Errorf("next turn: %q", got)
	}
	for e, err := range h.Reader.All(t.Context(), false) {
		if err != nil || !strings.Contains(string(e.Payload), `{"type":"weird","foo":1}`) {
			t.Errorf("the original is %s, %v", e.Payload, err)
		}
		break
	}
}

// TestUnknownModelSetsNothingAside: a model that is not found says nothing of the picture that came with the message.
func TestUnknownModelSetsNothingAside(t *testing.T) {
	h := newHarness(t, session.Settings{})
	known := false
	h.model.set(func(int, tidemark.Request) (tidemark.Message, error) {
		if !known {
			return tidemark.Message{}, &tidemark.APIError{Class: tidemark.ClassBadRequest, Status: 404, Type: "not_found_error", Message: "model: claude-opsu-image"}
		}
		return tidemark.Message{}, nil
	})
	var m tidemark.Message
	if err := m.UnmarshalJSON([]byte(`{"role":"user","content":[{"type":"image","source":{"type":"url","url":"https://example.org/a.png"}},{"type":"text","text":"look"}]}`)); err != nil {
		t.Fatal(err)
	}
	if got := h.post(session.Input{Message: m}); !strings.Contains(got, "claude-opsu") {
		t.Fatalf("got %q", got)
	}
	known = true
	h.say("and now")
	if first := h.sent()[0].Content[0]; first.Type != tidemark.TypeImage {
		t.Errorf("the model reads %+v in the place of the picture", first)
	}
}

// TestOneIDTwoMessages: the same id with other words is a mistake of the client, not a duplicate.
func TestOneIDTwoMessages(t *testing.T) {
	h := newHarness(t, session.Settings{})
	h.post(session.Input{ID: "a1", Message: tidemark.NewText(tidemark.User, "once")})
	if _, err := h.Post(t.Context(), session.Input{ID: "a1", Message: tidemark.NewText(tidemark.User, "different")}); !errors.Is(err, tidemark.ErrConflict) {
		t.Errorf("got %v", err)
	}
}

// TestAnEarlierLifeTakesNothingBack: a later life has taken the run over; an object that should be
// gone does not call the model for it again when it is woken.
func TestAnEarlierLifeTakesNothingBack(t *testing.T) {
	h := newHarness(t, session.Settings{})
	hold := make(chan struct{})
	h.model.hold, h.model.entered = hold, make(chan struct{}, 10)
	earlier := h.Session
	r, err := h.Post(t.Context(), session.Input{Message: tidemark.NewText(tidemark.User, "hello")})
	if err != nil {
		t.Fatal(err)
	}
	<-h.model.entered
	h.open()
	sub, err := h.Subscribe()
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	<-h.model.entered
	due := tidemark.Stmt{SQL: `UPDATE due SET at = 1`}
	if err := h.db.Tx(t.Context(), []tidemark.Stmt{due}); err != nil {
		t.Fatal(err)
	}
	hold <- struct{}{} // one of the two calls returns, then the other
	hold <- struct{}{}
	if err := earlier.Wake(t.Context()); err != nil {
		t.Fatal(err)
	}
	if e, failure, ok, err := h.Reply(t.Context(), r.ID); !ok && err == nil {
		h.wait(sub, r.ID)
	} else if failure != "" || err != nil {
		t.Errorf("reply %s: %s, %v", e.ID, failure, err)
	}
	if n := h.model.count(); n != 2 {
		t.Errorf("the model was called %d times", n)
	}
}

// fullMemory is an agent whose memory fills whatever it may.
type fullMemory struct{ *fakeAgent }

func (a fullMemory) PromptWithin(_ context.Context, _ tidemark.Scope, _ time.Time, most tidemark.Tokens) (string, memory.Mark, error) {
	return strings.Repeat("- fact\n", int(most)*10/3/8), memory.Mark{}, nil
}

func (a fullMemory) News(context.Context, tidemark.Scope, memory.Since) (memory.News, error) {
	return memory.News{}, nil
}

// TestMemoryLeavesRoom: system prompt, summary and tail fit the limit together, however much is
// remembered, so that no compaction is followed by the next.
func TestMemoryLeavesRoom(t *testing.T) {
	for _, window := range []tidemark.Tokens{6000, 8000, 16_000, 32_000} {
		h := newHarness(t, session.Settings{})
		h.stop()
		h.key = tidemark.Key(fmt.Sprintf("agent:main:local:dm:w%d", window))
		life, stop := context.WithCancel(context.Background())
		defer stop()
		s, err := session.Open(life, session.Config{Rooms: finding, Key: h.key, DB: h.db, Blobs: h.blobs, Provider: h.model, Agent: fullMemory{h.agent}, Runtime: h.rt,
			Settings: session.Settings{Model: "test", Window: window}})
		if err != nil {
			t.Fatal(err)
		}
		h.Session = s
		h.fill(3)
		v, err := h.View(t.Context())
		if err != nil || v.Size > h.Budget().Limit() {
			t.Errorf("window %d: %d tokens behind a compaction, limit %d, fixed %d, %v", window, v.Size, h.Budget().Limit(), v.Fixed, err)
		}
	}
}
