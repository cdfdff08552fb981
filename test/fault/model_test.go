//go:build !js

package fault

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// Words in a message that make the model call tools.
const (
	wantLook = "[look]" // two calls side by side that may be repeated
	wantEdit = "[edit]" // one that may not
)

// model plays the model of all sessions: it answers at length so that windows fill, calls tools
// when it is told to, and writes summaries whose facts are unlike each other.
type model struct {
	*tidemarktest.API
	n *atomic.Int64 // makes ids of calls and facts unique over all models of a test
	// between is how long the model pauses between the events of an answer.
	between time.Duration
	// gate lets one event pass for each value; nil for all.
	gate <-chan struct{}
}

func newModel(t *testing.T, n *atomic.Int64, between time.Duration) *model {
	m := &model{API: tidemarktest.NewAPI(t), n: n, between: between}
	m.Respond(m.answer)
	return m
}

func (m *model) answer(c tidemarktest.APICall) tidemarktest.Step {
	const words, piece = 25, 60
	n := m.n.Add(1)
	step := tidemarktest.Step{Delay: m.between, Piece: piece, Gate: m.gate}
	last := c.Messages[len(c.Messages)-1]
	text := c.LastText()
	_, task, summary := strings.Cut(text, "</conversation>")
	switch {
	case summary:
		step.Text = fmt.Sprintf("<memories>\n- Fact %d: the person keeps notebook %d.\n</memories>", n, n)
		if strings.Contains(task, "<summary>") {
			step.Text = fmt.Sprintf("<summary>\n## Facts\n- Summary %d of the talk.\n%s</summary>\n\n", n, tidemarktest.Gist(text)) + step.Text
		}
	case len(last.Results()) > 0:
		step.Text = fmt.Sprintf("Answer %d, after %d results.", n, len(last.Results()))
	case strings.Contains(text, wantEdit) && offers(c, "memory_edit"):
		step.Calls = []tidemarktest.ToolCall{{ID: fmt.Sprintf("call_%d_e", n), Name: "memory_edit",
			Input: fmt.Sprintf(`{"path":"MEMORY.md","old":"","new":"- Edit %d of the curated file."}`, n)}}
	case strings.Contains(text, wantLook) || strings.Contains(text, wantEdit):
		step.Text = "Let me look."
		step.Calls = []tidemarktest.ToolCall{
			{ID: fmt.Sprintf("call_%d_a", n), Name: "recall", Input: `{"query":"message","k":2}`},
			{ID: fmt.Sprintf("call_%d_b", n), Name: "memory_append", Input: fmt.Sprintf(`{"text":"Note %d was written down."}`, n)}}
	default:
		step.Text = fmt.Sprintf("Answer %d. ", n) + strings.Repeat("It has some length, as answers do. ", words)
	}
	return step
}

func offers(c tidemarktest.APICall, name string) bool {
	for _, t := range c.Tools {
		if t.Name == name {
			return true
		}
	}
	return false
}

// long is a message that takes a noticeable part of the window.
func long(tag string) string {
	return "message " + tag + ": " + strings.Repeat("some words of a long talk ", 30)
}
