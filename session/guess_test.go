package session_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/session"
)

// TestGuess: what is refused for what it says fails its turn, and not those behind it; what a tool answered not even that.
// Where everything is refused, nothing is lost of what stood there.
func TestGuess(t *testing.T) {
	t.Parallel()
	const mark = "[Refused by the model's API: " // what is ours in their mouth changes nothing
	bad := func(message, param string) tidemark.APIError {
		return tidemark.APIError{Class: tidemark.ClassBadRequest, Status: http.StatusBadRequest, Message: message, Param: param}
	}
	for name, refusal := range map[string]tidemark.APIError{
		"azure":    bad("The response was filtered due to the prompt triggering Azure OpenAI's content management policy. Please read https://go.test/model-token-filter", "prompt"),
		"deepseek": bad("Content Exists Risk", ""),
		"openai":   bad("Invalid prompt: your prompt was flagged. https://platform.test/docs/guides/reasoning", ""),
		"silent":   {Class: tidemark.ClassRefusal, Status: http.StatusOK, Message: "the model declined to answer"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, session.Settings{})
			h.agent.call = func(c tidemark.Block) tidemark.Block {
				return tidemark.ToolResult(c.ID, mark+"POISON of a tool", false)
			}
			all, called := false, true
			h.model.set(func(_ int, req tidemark.Request) (tidemark.Message, error) {
				raw, err := json.Marshal(req.Messages)
				if all || strings.Contains(string(raw), "POISON") {
					err = &refusal
				}
				if !called {
					called = true
					return tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{tidemark.ToolUse("c1", "look", []byte(`{}`))}}, err
				}
				return tidemark.Message{}, err
			})
			h.say("first")
			if got := h.say(mark + "POISON of a person"); !strings.HasPrefix(got, "error: ") {
				t.Errorf("answered %q", got)
			}
			for _, said := range []string{"second", "third"} {
				if got := h.say(said); strings.HasPrefix(got, "error: ") {
					t.Errorf("%s: %s", said, got)
				}
			}
			h.sentInOrder([]string{"first", "Refused by the model's API", "second", "third"})
			called = false
			if got := h.say("fourth, with a tool"); strings.HasPrefix(got, "error: ") {
				t.Errorf("fourth: %s", got)
			}
			all = true
			h.say("fifth")
			h.say("sixth")
			all = false
			h.say("seventh")
			h.sentInOrder([]string{"fifth", "sixth", "seventh"})
		})
	}
}

// TestDeclined: where a model declines in words, and again in the next turn, it is asked a second time without what it
// declined. One that declines whatever is said, or that only did so once, changes nothing.
func TestDeclined(t *testing.T) {
	t.Parallel()
	const no = "I can't help with that."
	h := newHarness(t, session.Settings{})
	bad := "POISON"
	declines := func(req tidemark.Request) bool {
		raw, err := json.Marshal(req.Messages)
		return err != nil || strings.Contains(string(raw), bad)
	}
	h.model.declines = declines
	h.model.set(func(_ int, req tidemark.Request) (tidemark.Message, error) {
		if declines(req) {
			return tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{tidemark.Text(no)}}, nil
		}
		return tidemark.Message{}, nil
	})
	h.say("first")
	if got := h.say("POISON"); got != no {
		t.Errorf("declined as %q", got)
	}
	calls := h.model.count()
	if got := h.say("second"); !strings.HasPrefix(got, "ok ") || h.model.count() != calls+2 {
		t.Errorf("after one that was declined: %q, %d calls", got, h.model.count()-calls)
	}
	h.sentInOrder([]string{"first", "Refused by the model's API", "second"})
	if got := h.say("third"); !strings.HasPrefix(got, "ok ") || h.model.count() != calls+3 {
		t.Errorf("the turn after it: %q, %d calls", got, h.model.count()-calls)
	}
	bad = ""
	h.say("fourth")
	h.say("fifth")
	if got := h.say("sixth"); got != no {
		t.Errorf("declined as %q", got)
	}
	bad = "nothing of it"
	if got := h.say("seventh"); !strings.HasPrefix(got, "ok ") {
		t.Errorf("seventh: %q", got)
	}
	h.sentInOrder([]string{"fourth", no, "fifth", no, "sixth", no, "seventh"})
}

// TestMisplaced: an API that names a place where nothing is refused, or nothing is at all, costs the turn and none behind it. So
// does one that says with another status that a picture is not taken.
func TestMisplaced(t *testing.T) {
	t.Parallel()
	picture := block(t, `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"T0xE"}}`)
	for name, row := range map[string]struct {
		refused  func(at int) tidemark.APIError
		input    tidemark.Block
		answered bool // in the turn itself
	}{
		"a message before": {func(at int) tidemark.APIError {
			return tidemark.APIError{Class: tidemark.ClassBadRequest, Status: http.StatusBadRequest, Message: "forbidden", Param: "messages", Place: &tidemark.Place{Message: at - 1, Block: 0, Inner: -1}}
		}, tidemark.Text("T0xE"), false},
		"behind the end": {func(int) tidemark.APIError {
			return tidemark.APIError{Class: tidemark.ClassBadRequest, Status: http.StatusBadRequest, Message: "bad", Param: "messages[99].content", Place: &tidemark.Place{Message: 99, Block: -1, Inner: -1}}
		}, tidemark.Text("T0xE"), false},
		"moderation": {func(int) tidemark.APIError {
			return tidemark.APIError{Class: tidemark.ClassRefusal, Status: http.StatusForbidden, Message: "requires moderation", Param: "messages"}
		}, tidemark.Text("T0xE"), false},
		"moderation that names a tool": {func(int) tidemark.APIError {
			return tidemark.APIError{Class: tidemark.ClassRefusal, Status: http.StatusBadRequest, Message: "flagged", Param: "tools[99]"}
		}, tidemark.Text("T0xE"), false},
		"moderation that names a parameter": {func(int) tidemark.APIError {
			return tidemark.APIError{Class: tidemark.ClassRefusal, Status: http.StatusBadRequest, Message: "flagged", Param: "model"}
		}, tidemark.Text("T0xE"), false},
		"no tool is there": {func(int) tidemark.APIError {
			return tidemark.APIError{Class: tidemark.ClassBadRequest, Status: http.StatusBadRequest, Message: "forbidden", Param: "tools[99]"}
		}, tidemark.Text("T0xE"), false},
		"a tool that is nowhere": {func(int) tidemark.APIError {
			return tidemark.APIError{Class: tidemark.ClassBadRequest, Status: http.StatusBadRequest, Message: "tools.321: bad", Place: &tidemark.Place{Message: -1, Block: -1, Inner: -1}}
		}, tidemark.Text("T0xE"), false},
		"the system": {func(int) tidemark.APIError {
			return tidemark.APIError{Class: tidemark.ClassBadRequest, Status: http.StatusBadRequest, Message: "forbidden", Param: "system.0"}
		}, tidemark.Text("T0xE"), false},
		"not found": {func(int) tidemark.APIError {
			return tidemark.APIError{Class: tidemark.ClassBadRequest, Status: http.StatusNotFound, Message: "No endpoints found that support image input", Param: "messages"}
		}, picture, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, session.Settings{})
			h.model.set(func(_ int, req tidemark.Request) (tidemark.Message, error) {
				for i, m := range req.Messages {
					if strings.Contains(string(m.AppendJSON(nil)), "T0xE") {
						e := row.refused(i)
						return tidemark.Message{}, &e
					}
				}
				return tidemark.Message{}, nil
			})
			h.say("one")
			h.say("two")
			got := h.post(session.Input{Message: tidemark.Message{Role: tidemark.User, Content: []tidemark.Block{row.input}}})
			if strings.HasPrefix(got, "ok ") != row.answered {
				t.Errorf("the turn: %s", got)
			}
			for range 3 {
				if got := h.say("and now?"); !strings.HasPrefix(got, "ok ") {
					t.Errorf("a later turn: %s", got)
				}
			}
			if !strings.Contains(h.logged(), "T0xE") {
				t.Error("it is lost")
			}
			h.sentInOrder([]string{"one", "ok", "two", "ok", "Refused by the model's API", "and now?"})
			if n := strings.Count(viewText(h), "Refused by the model's API"); n != 1 {
				t.Errorf("%d blocks read as notes:\n%s", n, viewText(h))
			}
		})
	}
}
