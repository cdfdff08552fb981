package session

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/blocks"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/history"
)

// light returns the view of a run. One that does not fit into memory is made to: its oldest large
// blocks read as a note from now on. One that does not fit beside others waits.
func (s *Session) light(ctx context.Context, r *run) (View, error) {
	v, err := s.admitted(ctx, r)
	for spare := 1; errors.Is(err, history.ErrHeavy) && spare >= 0; spare-- {
		if err := s.lighten(ctx, r, spare); err != nil {
			return View{}, err
		}
		v, err = s.admitted(ctx, r)
	}
	return v, err
}

// admitted computes the view of a run as soon as there is room for it. The room is the run's until it
// leaves.
func (s *Session) admitted(ctx context.Context, r *run) (View, error) {
	r.releaseView()
	now, err := s.Reader.Standing(ctx, r.Log)
	if err != nil {
		return View{}, err
	}
	return s.viewOf(ctx, r.Log, now, func(bytes int64) (err error) {
		r.release, err = s.Reader.Reserve(ctx, bytes)
		return err
	})
}

// releaseView gives back the room of the run's view.
func (r *run) releaseView() {
	if r.release != nil {
		r.release()
		r.release = nil
	}
}

// lighten keeps the newest messages whole, up to half of what a view may weigh and the spare ones whatever
// they weigh, and puts notes in the places of the large blocks before them. The originals stay in the log, and the overlay can be lifted.
func (s *Session) lighten(ctx context.Context, r *run, spare int) error {
	shown, err := s.Reader.Standing(ctx, r.Log)
	if err != nil {
		return err
	}
	entries, err := s.Reader.Kept(ctx, r.Log, shown)
	if !errors.Is(err, history.ErrHeavy) {
		return err
	}
	o := tidemark.Overlay{By: []string{"session"}, Reason: "memory"}
	var kept, left int64
	for i, e := range slices.Backward(entries) {
		edits, bytes := noteBlocks(e)
		if i >= len(entries)-spare || kept+bytes <= s.settings().ViewBytes/2 {
			kept += bytes
			continue
		}
		o.Edits, left = append(o.Edits, edits...), left+bytes
	}
	if len(o.Edits) == 0 { // of the spare ones alone, or of text
		return nil
	}
	_, stmts, err := s.overlayStmts(r.Log, tidemark.FromSystem, o)
	if err != nil {
		return err
	}
	event := tidemark.Event{Type: "notice", Text: fmt.Sprintf("%d large blocks (%d MB) of older messages are notes to the model from now on: together they do not fit into memory. They stay whole in the log.", len(o.Edits), left>>20)}
	if err := s.stepEvent(ctx, r, event, stmts...); err != nil {
		return fmt.Errorf("lighten view: %w", err)
	}
	return nil
}

// noteBlocks returns an edit for each block of an entry that is large and whose tokens do not say so, and
// what they weigh. A call stays, since its result names it, and so does thinking.
func noteBlocks(e compaction.Visible) (edits []tidemark.Edit, bytes int64) {
	const least = 4 << 10
	for i, b := range e.Message.Content {
		ref, stored := blocks.Reference(b)
		switch b.Type {
		case tidemark.TypeToolUse, tidemark.TypeThinking, tidemark.TypeRedactedThinking:
			continue
		case tidemark.TypeText:
			if !stored {
				continue
			}
		}
		if !stored {
			ref.Bytes = len(b.AppendJSON(nil))
		}
		if ref.Bytes < least {
			continue
		}
		note := fmt.Sprintf("[A block of type %q and %d bytes stood here. It is in entry %s.]", b.Type, ref.Bytes, e.ID)
		edits, bytes = append(edits, tidemark.Edit{From: e.ID, Block: i + 1, Blocks: []tidemark.Block{blocks.Note(b, note)}}), bytes+int64(ref.Bytes)
	}
	return edits, bytes
}
