package session_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/session"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// TestSummaryModelIsSmall: a model of summaries whose window is a small part of that of the conversation refuses each chunk
// as too large: it is asked for halves of it, down to what it takes, and all of it is summarised and remembered.
func TestSummaryModelIsSmall(t *testing.T) {
	for _, class := range []tidemark.Class{tidemark.ClassOverflow, tidemark.ClassBadRequest} {
		t.Run(string(class), func(t *testing.T) {
			h := newHarness(t, session.Settings{Window: 60_000, Reserve: 20_000, Keep: 2000, SummaryModel: "small-1"})
			most, refused := 0, 0
			seen := map[string]bool{}
			h.model.set(func(n int, req tidemark.Request) (tidemark.Message, error) {
				if req.Model != "small-1" {
					return tidemark.Message{}, nil
				}
				prompt := req.Messages[0].PlainText()
				if len(prompt) > 16_000 {
					refused++
					return tidemark.Message{}, &tidemark.APIError{Class: class, Status: 400, Message: "in its own words"}
				}
				most = max(most, len(prompt))
				talk := inner(prompt, "<conversation>", "</conversation>")
				for i := range 200 {
					if strings.Contains(talk, fmt.Sprintf("message %d:", i)) {
						seen[fmt.Sprint(i)] = true
					}
				}
				return tidemark.NewText(tidemark.Assistant, fmt.Sprintf("<summary>\n%s</summary>\n<memories>\n- learned %d\n</memories>", tidemarktest.Gist(prompt), n)), nil
			})
			said := 0
			for ; len(h.events("compaction")) == 0 && said < 150; said++ {
				if got := h.say(filler(said) + strings.Repeat(" and more of it", 60)); strings.HasPrefix(got, "error") {
					t.Fatal(got)
				}
			}
			events := h.events("compaction")
			if len(events) != 1 || !strings.Contains(events[0], `"tier":"full"`) || !strings.Contains(events[0], " memories offered") || refused == 0 || most == 0 {
				t.Fatalf("events %q, %d refusals, %d characters at most", events, refused, most)
			}
			if len(seen) < said-8 {
				t.Errorf("%d of %d messages were read by the model", len(seen), said)
			}
			if got := h.agent.remembered(); len(got) < 4 {
				t.Errorf("remembered %q", got)
			}
			if small := h.Window(); small.Tokens != 60_000 {
				t.Errorf("the conversation's own window is %+v", small)
			}
		})
	}
}
