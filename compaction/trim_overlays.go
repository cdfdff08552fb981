package compaction

import (
	"fmt"
	"slices"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// TrimMetrics is what trimming did to what a branch shows, or would do. The names are those of the trimmer of session
// logs where they mean the same.
type TrimMetrics struct {
	Threshold int             `json:"threshold"` // characters, as it held
	Results   int             `json:"toolResultsStubbed"`
	Inputs    int             `json:"toolUseInputsStubbed"`
	Thinking  int             `json:"signaturesStripped"`
	Media     int             `json:"imagesStripped"`   // documents, too
	Before    tidemark.Tokens `json:"liveTokensBefore"` // of the context: system prompt, tools and messages
	After     tidemark.Tokens `json:"liveTokensAfter"`
	// Prefix is the tokens before the first change, system prompt and tools with them: what of a cache stays good.
	Prefix tidemark.Tokens `json:"prefixTokens"`

	ResultTokens   tidemark.Tokens `json:"toolResultTokens"` // that left, by kind
	InputTokens    tidemark.Tokens `json:"toolUseInputTokens"`
	ThinkingTokens tidemark.Tokens `json:"thinkingTokens"`
	MediaTokens    tidemark.Tokens `json:"imageTokens"`
}

// Check refuses a threshold that is no count of characters.
//
// # Errors
//
// tidemark.ErrInvalid.
func (t Trim) Check() error {
	if t.Threshold < 0 {
		return fmt.Errorf("threshold %d: want how many characters a tool's result may have and stay, at least %d, or 0 for %d: %w",
			t.Threshold, MinTrimThreshold, DefaultTrimThreshold, tidemark.ErrInvalid)
	}
	return nil
}

// Metrics tells what a plan for a view comes to.
func (t Trim) Metrics(v View, g TrimGain) TrimMetrics {
	return TrimMetrics{Threshold: t.Characters(), Results: g.Results.Blocks, Inputs: g.Inputs.Blocks, Thinking: g.Thinking.Blocks, Media: g.Media.Blocks,
		Before: v.Size, After: g.Size, Prefix: g.Prefix,
		ResultTokens: g.Results.Tokens, InputTokens: g.Inputs.Tokens, ThinkingTokens: g.Thinking.Tokens, MediaTokens: g.Media.Tokens}
}

// Overlays plans the overlays that a trimmed branch of a view begins with, none where nothing is to be trimmed. They
// belong into the transaction that makes the branch, in their order.
func (t Trim) Overlays(v View) ([]tidemark.Overlay, TrimMetrics, error) {
	edits, gain := t.Plan(v)
	m := t.Metrics(v, gain)
	out, err := trimRows(edits, m)
	return out, m, err
}

// trimRow bounds the edits of one overlay, whose row has to fit into any database beside its other columns.
const trimRow = tidemark.MaxRow / 2

// trimRows puts edits into overlays that fit into a row each. The first tells what all of them come to.
func trimRows(edits []tidemark.Edit, m TrimMetrics) ([]tidemark.Overlay, error) {
	const reason = "branch"
	var out []tidemark.Overlay
	size := 0
	for _, e := range edits {
		raw, err := json.Marshal(e)
		if err != nil {
			return nil, fmt.Errorf("encode an edit of entry %s: %w", e.From, err)
		}
		if size += len(raw); len(out) == 0 || size > trimRow {
			out, size = append(out, tidemark.Overlay{By: []string{TrimName}, Reason: reason}), len(raw)
		}
		o := &out[len(out)-1]
		o.Edits = append(o.Edits, e)
	}
	if len(out) > 0 {
		out[0].Before, out[0].After = m.Before, m.After
	}
	return slices.Clip(out), nil
}
