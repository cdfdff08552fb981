package session_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/session"
)

func TestTurnAnswersAndStores(t *testing.T) {
	h := newHarness(t, session.Settings{})
	if got := h.say("hello"); got != "ok 1" {
		t.Fatalf("reply %q", got)
	}
	if got := h.say("again"); got != "ok 2" {
		t.Fatalf("reply %q", got)
	}
	want := []string{"user: hello", "assistant: ok 1", "user: again", "assistant: ok 2"}
	if got := h.originals(); !slices.Equal(got, want) {
		t.Errorf("log %q, want %q", got, want)
	}
	info, err := h.Info(t.Context())
	if err != nil || info.Messages != 4 {
		t.Errorf("info %+v, %v: want 4 messages", info, err)
	}
}

func TestSameInputIsOneTurn(t *testing.T) {
	h := newHarness(t, session.Settings{})
	in := session.Input{ID: "wamid.1", Message: tidemark.NewText(tidemark.User, "hello")}
	h.post(in)
	r, err := h.Post(t.Context(), in)
	if err != nil || !r.Duplicate || r.State != "done" {
		t.Fatalf("second post: %+v, %v: want a duplicate that is done", r, err)
	}
	if n := h.model.count(); n != 1 {
		t.Errorf("model called %d times", n)
	}
	e, failure, ok, err := h.Reply(t.Context(), "wamid.1")
	if err != nil || !ok || failure != "" || !strings.Contains(string(e.Payload), "ok 1") {
		t.Errorf("stored reply: %s %q %v %v", e.Payload, failure, ok, err)
	}
}

func TestInputsQueueAndAreTakenTogether(t *testing.T) {
	h := newHarness(t, session.Settings{})
	hold := make(chan struct{})
	h.model.hold = hold
	sub, err := h.Subscribe()
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	var ids []string
	for i := range 5 {
		r, err := h.Post(t.Context(), session.Input{Message: tidemark.NewText(tidemark.User, fmt.Sprint("m", i))})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, r.ID)
	}
	close(hold)
	h.wait(sub, ids[4])
	log := strings.Join(h.originals(), "|")
	at := -1
	for i := range 5 {
		n := strings.Index(log, fmt.Sprint("user: m", i))
		if n <= at {
			t.Fatalf("order of %q", log)
		}
		at = n
	}
	if n := h.model.count(); n > 3 {
		t.Errorf("%d calls for 5 quick inputs", n)
	}
	h.sent()
}

func TestToolLoop(t *testing.T) {
	h := newHarness(t, session.Settings{})
	h.told(tidemark.NewText(tidemark.User, "The lamp helps to find it."), tidemark.NewText(tidemark.Assistant, "Noted."))
	h.model.set(func(n int, _ tidemark.Request) (tidemark.Message, error) {
		if n > 1 {
			return tidemark.Message{}, nil
		}
		return tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{tidemark.Text("looking"),
			tidemark.ToolUse("c1", "look", nil), tidemark.ToolUse("c2", "send", []byte(`{"to":"x"}`)), tidemark.ToolUse("c3", "recall", []byte(`{"query":"find"}`))}}, nil
	})
	if got := h.say("find it"); got != "ok 2" {
		t.Fatalf("reply %q", got)
	}
	sent := h.sent()[2:]
	if len(sent) != 4 || len(sent[2].Results()) != 3 || !slices.Equal(sent[2].Results(), []string{"c1", "c2", "c3"}) {
		t.Fatalf("messages %d, results %v", len(sent), sent[2].Results())
	}
	if got := sent[2].Content[2].Content[0].Text; !strings.Contains(got, "person, entry") || !strings.Contains(got, "\n| The lamp helps to find it.") {
		t.Errorf("recall gave %q", got)
	}
}

// TestResultIsLoggedBeforeItsNotice: a page that hears of a result looks for it in the log once, and would show the
// call as running until the next notice if it were not there yet.
func TestResultIsLoggedBeforeItsNotice(t *testing.T) {
	h := newHarness(t, session.Settings{})
	var told []string
	h.observe = func(n session.Notice) {
		if n.Type == session.NoticeResult {
			results := 0
			for e, err := range h.Reader.All(h.t.Context(), true) {
				m, bad := e.Message()
				if err != nil || bad != nil {
					t.Error(err, bad)
				}
				results += len(m.Results())
			}
			told = append(told, fmt.Sprint(n.Text, " ", results))
		}
	}
	h.stop()
	h.open()
	h.model.set(func(n int, _ tidemark.Request) (tidemark.Message, error) {
		if n > 1 {
			return tidemark.Message{}, nil
		}
		return tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{tidemark.ToolUse("c1", "look", nil), tidemark.ToolUse("c2", "look", nil)}}, nil
	})
	h.say("look twice")
	if want := []string{"look 2", "look 2"}; !slices.Equal(told, want) {
		t.Errorf("results in the log at each notice: %q, want %q", told, want)
	}
}

func TestFailureIsVisibleAndTheNextTurnWorks(t *testing.T) {
	h := newHarness(t, session.Settings{})
	h.model.set(func(int, tidemark.Request) (tidemark.Message, error) {
		return tidemark.Message{}, &tidemark.APIError{Class: tidemark.ClassAuth, Status: 401, Message: "invalid x-api-key"}
	})
	if got := h.say("one"); !strings.Contains(got, "refused the key") {
		t.Fatalf("got %q", got)
	}
	if n := len(h.events("error")); n != 1 {
		t.Errorf("%d error events", n)
	}
	h.model.set(nil)
	if got := h.say("two"); got != "ok 2" {
		t.Fatalf("got %q", got)
	}
	if sent := h.sent(); len(sent) != 2 || len(sent[0].Content) != 2 {
		t.Errorf("both questions must stand in one message: %d messages", len(sent))
	}
}

func TestAbortWhileTheModelIsCalled(t *testing.T) {
	h := newHarness(t, session.Settings{})
	h.model.hold, h.model.entered = make(chan struct{}), make(chan struct{}, 1)
	sub, err := h.Subscribe()
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	r, err := h.Post(t.Context(), session.Input{Message: tidemark.NewText(tidemark.User, "go")})
	if err != nil {
		t.Fatal(err)
	}
	<-h.model.entered
	if !h.Abort() {
		t.Fatal("nothing to abort")
	}
	if got := h.wait(sub, r.ID); got != "error: Stopped." {
		t.Fatalf("got %q", got)
	}
	if busy, _ := h.Busy(t.Context()); busy != "" {
		t.Errorf("run %s is still active", busy)
	}
}

// TestAbortAnswersCalls: an abort in the middle of a tool leaves a history whose calls all have
// results, so that the next turn can be sent.
func TestAbortAnswersCalls(t *testing.T) {
	h := newHarness(t, session.Settings{})
	running := make(chan struct{})
	release := make(chan struct{})
	h.agent.call = func(c tidemark.Block) tidemark.Block {
		close(running)
		<-release
		return tidemark.ToolResult(c.ID, "late", false)
	}
	h.model.set(func(n int, _ tidemark.Request) (tidemark.Message, error) {
		if n > 1 {
			return tidemark.Message{}, nil
		}
		return tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{tidemark.ToolUse("c1", "send", nil)}}, nil
	})
	sub, err := h.Subscribe()
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	r, err := h.Post(t.Context(), session.Input{Message: tidemark.NewText(tidemark.User, "go")})
	if err != nil {
		t.Fatal(err)
	}
	<-running
	h.Abort()
	close(release)
	if got := h.wait(sub, r.ID); got != "error: Stopped." {
		t.Fatalf("got %q", got)
	}
	sent := h.sent()
	last := sent[len(sent)-1]
	if len(last.Results()) != 1 || !strings.Contains(last.Content[0].Content[0].Text, "may have run") {
		t.Errorf("the open call reads %s", last.AppendJSON(nil))
	}
	if got := h.say("and now"); got != "ok 2" {
		t.Errorf("next turn: %q", got)
	}
}

func TestBadInputsNameTheField(t *testing.T) {
	h := newHarness(t, session.Settings{})
	long := strings.Repeat("x", 300)
	for name, in := range map[string]session.Input{
		"role":    {Message: tidemark.NewText(tidemark.Assistant, "hi")},
		"empty":   {Message: tidemark.Message{Role: tidemark.User}},
		"result":  {Message: tidemark.Message{Role: tidemark.User, Content: []tidemark.Block{tidemark.ToolResult("x", "y", false)}}},
		"kind":    {Kind: "dance", Message: tidemark.NewText(tidemark.User, "hi")},
		"id":      {ID: long, Message: tidemark.NewText(tidemark.User, "hi")},
		"command": {Kind: session.InputCompact, Text: strings.Repeat("x", 5000)},
	} {
		if _, err := h.Post(t.Context(), in); !errors.Is(err, tidemark.ErrInvalid) && !errors.Is(err, tidemark.ErrTooLarge) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if len(h.originals()) != 0 {
		t.Error("a bad input reached the log")
	}
}
