package session

import (
	"context"
	"fmt"
	"slices"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/summary"
)

// queueAgain queues the summary that is owed for an overlay.
func (s *Session) queueAgain(ctx context.Context, overlay string) error {
	h, err := s.head(ctx)
	if err != nil {
		return err
	}
	now := s.Runtime.Now()
	id := fmt.Sprintf("again:%s:%d", overlay, h.Failures) // a later try is another input
	if _, err := s.Post(ctx, Input{ID: id, Kind: inputAgain, Text: overlay}); err != nil {
		return err
	}
	// Its run may have failed by now, and made the next try due.
	return s.DB.Tx(ctx, []tidemark.Stmt{{SQL: `DELETE FROM due WHERE key = ? AND kind = ? AND at <= ?`, Args: []any{string(s.Key), dueAgain, now.UnixMilli()}}})
}

// summarizeAgain writes the summary for which an extract stands in, from the originals in the log,
// now that the provider may be back. The new overlay has the same span, so it is the outer one.
func (s *Session) summarizeAgain(ctx context.Context, r *run, overlay tidemark.EntryID) error {
	v, err := s.view(ctx, r.Log)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(v.Shown, func(x compaction.Replacement) bool { return x.Overlay == overlay && x.Block == 0 })
	p, err := s.openPlan(ctx, v.Log)
	if err != nil {
		return err
	}
	if p != nil && (i < 0) == (p.Act.Replaces == overlay) { // what it stood for is gone; or it is one of the conversation, put off: it is made anew when it is due
		if err := s.dropPlan(ctx, r, p); err != nil {
			return err
		}
		p = nil
	}
	if i < 0 {
		return nil // a later compaction has read it, or a person lifted it
	}
	if p == nil {
		edit := v.Shown[i].Edit
		edit.Messages, edit.Data, edit.Summarize = nil, nil, true
		now := s.Runtime.Now()
		p = &plan{Draft: summary.Draft{ID: tidemark.NewID(now), Log: v.Log}, Reason: string(fitAgain), At: now, Size: v.Size, Tier: tierFull, ChunkSize: s.chunkSize(),
			Act: compaction.Act{By: []string{"summary"}, Edits: []tidemark.Edit{edit}, Replaces: overlay}}
		if err := s.step(ctx, r, stateCalling, p.insertStmt(s.Key)); err != nil {
			return fmt.Errorf("store plan: %w", err)
		}
	}
	if err = s.carryOut(ctx, r, v, p, false); err == nil {
		if v, err = s.view(ctx, r.Log); err == nil {
			_, err = s.checked(ctx, r, p, v)
		}
	}
	if summary.Passing(err) {
		h, e := s.head(ctx)
		if e != nil {
			return e
		}
		return s.DB.Tx(ctx, []tidemark.Stmt{s.dueStmt(dueAgain, h.Cooldown, string(overlay))})
	}
	return err
}

// viewWithout computes the view as if an overlay had been lifted.
func (s *Session) viewWithout(ctx context.Context, log string, overlay tidemark.EntryID) (View, error) {
	marks, err := s.lineage.Overlays(ctx, log, 0)
	if err != nil {
		return View{}, err
	}
	now, err := s.Reader.Edits(ctx, slices.DeleteFunc(marks, func(m host.Mark) bool { return m.ID == overlay }))
	if err != nil {
		return View{}, err
	}
	return s.viewOf(ctx, log, now, nil)
}
