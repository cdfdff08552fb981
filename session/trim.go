package session

import (
	"context"
	"fmt"
	"slices"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
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

// TrimEstimate is what a branch of a session would weigh if it were made and trimmed now.
type TrimEstimate struct {
	TrimMetrics
	Log   string           `json:"sessionId"`
	Fixed tidemark.Tokens  `json:"fixedTokens"`            // of Before and After: system prompt and tools
	First tidemark.EntryID `json:"firstChanged,omitempty"` // entry, "" when nothing would change
	Exact bool             `json:"anchored"`               // Before rests on what a provider reported
}

// TrimEstimate tells what trimming would give, and writes nothing. A threshold of 0 is the usual one.
//
// # Errors
//
// tidemark.ErrInvalid for a negative threshold.
func (s *Session) TrimEstimate(ctx context.Context, threshold int) (TrimEstimate, error) {
	if err := checkThreshold(threshold); err != nil {
		return TrimEstimate{}, err
	}
	v, err := s.View(ctx)
	if err != nil {
		return TrimEstimate{}, err
	}
	if v, err = s.holdPinned(ctx, v); err != nil {
		return TrimEstimate{}, err
	}
	t := compaction.Trim{Threshold: threshold}
	_, gain := t.Plan(v.View)
	return TrimEstimate{TrimMetrics: trimMetrics(t, v, gain), Log: v.Log, Fixed: v.Fixed, First: gain.First, Exact: v.Anchor}, nil
}

// checkThreshold refuses what is no count of characters.
func checkThreshold(threshold int) error {
	if threshold < 0 {
		return fmt.Errorf("threshold %d: want how many characters a tool's result may have and stay, at least %d, or 0 for %d: %w",
			threshold, compaction.MinTrimThreshold, compaction.DefaultTrimThreshold, tidemark.ErrInvalid)
	}
	return nil
}

// holdPinned marks what is pinned in a view.
func (s *Session) holdPinned(ctx context.Context, v View) (View, error) {
	pins, err := s.pinned(ctx, v.Log)
	if err != nil {
		return v, err
	}
	v.View = compaction.Hold(v.View, pins, s.Budget())
	return v, nil
}

// trimmed plans the overlays that a trimmed branch of a view begins with, none where nothing is to be trimmed. What is
// pinned in its snapshot stays. They belong into the transaction that makes the branch, in their order.
func (s *Session) trimmed(v View, pins map[tidemark.EntryID]bool, threshold int) ([]tidemark.Overlay, TrimMetrics, error) {
	if err := checkThreshold(threshold); err != nil {
		return nil, TrimMetrics{}, err
	}
	v.View = compaction.Hold(v.View, pins, s.Budget())
	edits, m := s.trimEdits(v, threshold)
	return trimOverlays(edits, m), m, nil
}

// trimEdits plans what leaves when a view is trimmed. A row may have fewer of them: see trimOverlays.
func (*Session) trimEdits(v View, threshold int) ([]tidemark.Edit, TrimMetrics) {
	t := compaction.Trim{Threshold: threshold}
	edits, gain := t.Plan(v.View)
	return edits, trimMetrics(t, v, gain)
}

// trimRow bounds the edits of one overlay, whose row has to fit into any database beside its other columns.
const trimRow = tidemark.MaxRow / 2

// trimOverlays puts edits into overlays that fit into a row each.
func trimOverlays(edits []tidemark.Edit, m TrimMetrics) []tidemark.Overlay {
	const reason = "branch"
	var out []tidemark.Overlay
	size := 0
	for _, e := range edits {
		n := len(mustJSON(e))
		if size += n; len(out) == 0 || size > trimRow {
			out, size = append(out, tidemark.Overlay{By: []string{compaction.TrimName}, Reason: reason}), n
		}
		o := &out[len(out)-1]
		o.Edits = append(o.Edits, e)
	}
	if len(out) > 0 {
		out[0].Before, out[0].After = m.Before, m.After
	}
	return slices.Clip(out)
}

func trimMetrics(t compaction.Trim, v View, g compaction.TrimGain) TrimMetrics {
	return TrimMetrics{Threshold: t.Characters(), Results: g.Results.Blocks, Inputs: g.Inputs.Blocks, Thinking: g.Thinking.Blocks, Media: g.Media.Blocks,
		Before: v.Size, After: g.Size, Prefix: g.Prefix,
		ResultTokens: g.Results.Tokens, InputTokens: g.Inputs.Tokens, ThinkingTokens: g.Thinking.Tokens, MediaTokens: g.Media.Tokens}
}
