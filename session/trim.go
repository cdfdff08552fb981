package session

import (
	"context"
	"fmt"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
)

// TrimEstimate is what a branch of a session would weigh if it were made and trimmed now.
type TrimEstimate struct {
	compaction.TrimMetrics
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
	t := compaction.Trim{Threshold: threshold}
	if err := t.Check(); err != nil {
		return TrimEstimate{}, err
	}
	v, err := s.View(ctx)
	if err != nil {
		return TrimEstimate{}, err
	}
	pins, err := s.rooms.Pinned(ctx, v.Log)
	if err != nil {
		return TrimEstimate{}, err
	}
	v.View = compaction.Hold(v.View, pins, s.Budget())
	_, gain := t.Plan(v.View)
	return TrimEstimate{TrimMetrics: t.Metrics(v.View, gain), Log: v.Log, Fixed: v.Fixed, First: gain.First, Exact: v.Anchor}, nil
}

// trimAt plans the overlays with which a branch from a place is trimmed, none where nothing is to be. What is pinned
// there stays.
func (s *Session) trimAt(ctx context.Context, log string, upTo int64, pins map[tidemark.EntryID]bool, threshold int) (out []tidemark.Overlay, gain compaction.TrimMetrics, err error) {
	err = s.viewAt(ctx, log, upTo, func(v View) error {
		held := compaction.Hold(v.View, pins, s.Budget())
		if out, gain, err = (compaction.Trim{Threshold: threshold}).Overlays(held); err != nil {
			return err
		}
		for _, o := range out {
			if err := s.Reader.Fits(ctx, v.Shown, o.Edits); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, gain, fmt.Errorf("trim: %w", err)
	}
	return out, gain, nil
}
