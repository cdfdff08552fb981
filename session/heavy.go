package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/blocks"
	"github.com/tidemark-ai/tidemark/compaction"
)

// errHeavy is a view of more bytes than may stand in memory. Images are the reason: each counts a flat
// number of tokens, so that no compaction is due however large they are.
var errHeavy = fmt.Errorf("more is visible than fits into memory; run /compact or /reset: %w", tidemark.ErrTooLarge)

// withoutReplaced empties the blocks of a message that are replaced: nobody reads them.
func withoutReplaced(m tidemark.Message, replaced []compaction.Placed) tidemark.Message {
	m = tidemark.Message{Role: m.Role, Content: slices.Clone(m.Content)}
	for _, p := range replaced {
		if p.Block <= len(m.Content) {
			m.Content[p.Block-1] = tidemark.Text("")
		}
	}
	return m
}

const (
	freeView   = 1 << 20 // bytes of a view that are nothing to ask for
	admitAgain = 50 * time.Millisecond
)

// light returns the view of a run. One that does not fit into memory is made to: its oldest large
// blocks read as a note from now on. One that does not fit beside others waits.
func (s *Session) light(ctx context.Context, r *run) (View, error) {
	v, err := s.admitted(ctx, r)
	for spare := 1; errors.Is(err, errHeavy) && spare >= 0; spare-- {
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
	now, err := s.standingEdits(ctx, r.Log)
	if err != nil {
		return View{}, err
	}
	return s.viewOf(ctx, r.Log, now, func(bytes int64) (err error) {
		r.release, err = s.room(ctx, bytes)
		return err
	})
}

// room waits until there is memory for a view of that many bytes. release is nil when none is to be given
// back.
func (s *Session) room(ctx context.Context, bytes int64) (release func(), err error) {
	if s.Admit == nil || bytes <= freeView {
		return nil, nil
	}
	for {
		release, ok := s.Admit(bytes)
		if ok {
			return release, nil
		}
		if err := s.Runtime.Sleep(ctx, admitAgain); err != nil {
			return nil, err
		}
	}
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
	shown, err := s.standingEdits(ctx, r.Log)
	if err != nil {
		return err
	}
	_, layout, err := s.layout(ctx, shown.placed)
	if err != nil {
		return err
	}
	entries, _, _, err := s.kept(ctx, r.Log, layout)
	if !errors.Is(err, errHeavy) {
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
