package session_test

import (
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/session"
)

// TestRefusedParameter: a refusal for a parameter costs its own turn, in whatever words. What tools answered in it stays in view,
// and so does what was said long ago, though the request was the largest so far.
func TestRefusedParameter(t *testing.T) {
	t.Parallel()
	for _, says := range []string{"metadata.user_id: string too long", "tools: too many tools", "this model is tired", "messages: so many"} {
		t.Run(says, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, session.Settings{})
			h.agent.call = func(c tidemark.Block) tidemark.Block {
				return tidemark.ToolResult(c.ID, "it is under the stone", false)
			}
			for i := range 30 {
				h.say(filler(i))
			}
			calls := 0
			h.model.set(func(int, tidemark.Request) (tidemark.Message, error) {
				if calls++; calls == 1 {
					return tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{tidemark.ToolUse("c1", "look", []byte(`{}`))}}, nil
				}
				return tidemark.Message{}, &tidemark.APIError{Class: tidemark.ClassBadRequest, Status: 400, Message: says}
			})
			if got := h.say("where is the key?"); !strings.Contains(got, says) || calls != 5 {
				t.Errorf("answered %q after %d calls", got, calls)
			}
			h.model.set(nil)
			if got := h.say("and now?"); !strings.HasPrefix(got, "ok") {
				t.Errorf("answered %q", got)
			}
			h.sentInOrder([]string{filler(0), filler(29), "where is the key?", "and now?"})
			h.sentInOrder([]string{"under the stone", "and now?"})
			if told := append(h.events("compaction"), h.events("notice")...); len(told) > 0 {
				t.Errorf("told %q", told)
			}
		})
	}
}
