package session_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/session"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// TestSummaryModelIsSmall: a model of summaries whose window is a small part of that of the conversation refuses each chunk
// as too large: it is asked for halves of it, down to what it takes, and all of it is summarised and remembered.
func TestSummaryModelIsSmall(t *testing.T) {
	for name, row := range map[string]struct {
		class  tidemark.Class
		status int
		learns bool
	}{
		"too long":       {tidemark.ClassOverflow, 400, true},
		"too many bytes": {tidemark.ClassOverflow, 413, false},
		"other words":    {tidemark.ClassBadRequest, 400, false},
	} {
		t.Run(name, func(t *testing.T) {
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
					return tidemark.Message{}, &tidemark.APIError{Class: row.class, Status: row.status, Message: "in its own words"}
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
			known, err := h.agent.Windows(t.Context(), nil)
			if learned := slices.ContainsFunc(known, func(w tidemark.Window) bool { return w.Model == "small-1" }); err != nil || learned != row.learns {
				t.Errorf("known of windows: %+v, %v", known, err)
			}
			if small := h.Window(); small.Tokens != 60_000 {
				t.Errorf("the conversation's own window is %+v", small)
			}
		})
	}
}

// TestBesideTheChunk: what is known already and the summary before are shown to a small model of summaries as far as they
// leave room for what is to be summarised.
func TestBesideTheChunk(t *testing.T) {
	for name, row := range map[string]struct{ summary, memories int }{"memories": {0, 120}, "the summary before": {250, 0}} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, session.Settings{Window: 60_000, Reserve: 20_000, Keep: 2000, SummaryModel: "small-1"})
			h.stop()
			h.windows = &endpoint{tells: map[string]tidemark.Tokens{"small-1": 8192}}
			h.open()
			asked := 0
			h.model.set(func(n int, req tidemark.Request) (tidemark.Message, error) {
				if req.Model != "small-1" {
					return tidemark.Message{}, nil
				}
				asked++
				var b strings.Builder
				b.WriteString("<summary>\n" + tidemarktest.Gist(req.Messages[0].PlainText()))
				for i := range row.summary {
					fmt.Fprintf(&b, "\nIn call %d the words of a long talk came to point %d of message %d.", n, i*n, i+n)
				}
				b.WriteString("</summary>\n<memories>\n- learned something\n")
				for i := range row.memories {
					fmt.Fprintf(&b, "- In room %d of house %d the lamp is lit, and the key of the door hangs behind it.\n", i, n)
				}
				return tidemark.NewText(tidemark.Assistant, b.String()+"</memories>"), nil
			})
			for i := 0; len(h.events("compaction")) < 2 && i < 300; i++ {
				if got := h.say(filler(i) + strings.Repeat(" and more of it", 60)); strings.HasPrefix(got, "error") {
					t.Fatal(got)
				}
			}
			events := h.events("compaction")
			if len(events) != 2 || !strings.Contains(events[0], `"tier":"full"`) || !strings.Contains(events[1], `"tier":"full"`) || asked < 20 {
				t.Errorf("%d calls: %q", asked, events)
			}
		})
	}
}
