package session_test

import (
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/session"
)

// TestRefusedParameter: a refusal for a parameter costs its own turn. What tools answered in it stays in view, and so does
// what was said long ago, though the request was the largest so far.
func TestRefusedParameter(t *testing.T) {
	t.Parallel()
	for _, says := range []string{"metadata.user_id: string too long", "stream_options: Extra inputs are not permitted", "tools: too many tools",
		"Unrecognized request argument supplied: stop_sequences", "Unsupported value: 'temperature' does not support 0.2 with this model."} {
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
				switch calls++; calls {
				case 1:
					return tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{tidemark.ToolUse("c1", "look", []byte(`{}`))}}, nil
				case 2:
					return tidemark.Message{}, &tidemark.APIError{Class: tidemark.ClassBadRequest, Status: 400, Message: says}
				}
				return tidemark.Message{}, nil
			})
			if got := h.say("where is the key?"); !strings.Contains(got, says) || calls != 2 {
				t.Errorf("answered %q after %d calls", got, calls)
			}
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
