package session

import (
	"context"
	"slices"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/host"
)

// edits is what overlays put in the place of messages, resolved to positions.
type edits struct {
	log    string
	newest int64 // position of the last overlay that was read
	until  int64 // nothing behind it is shown; 0: all is
	placed []compaction.Placed
	back   map[tidemark.EntryID][]int // blocks, from 1, that an undo brought back
	again  []compaction.Span          // and stretches that had left as episodes
	scale  scale                      // in which the newest compaction that is not lifted was told; zero for none
	model  string                     // that counts so
}

// standingEdits returns the edits that are shown now. Those of a conversation that was compacted a thousand times
// sleep under a few others, so what was read once is kept without them, and a view reads what came since: overlays
// are never changed and come in order. A lift wakes what slept, so then all are read again.
func (s *Session) standingEdits(ctx context.Context, log string) (edits, error) {
	var known edits
	if l := s.laid.Load(); l != nil && l.log == log {
		known = *l
	}
	marks, err := s.lineage.Overlays(ctx, log, known.newest)
	if err != nil || len(marks) == 0 && known.newest > 0 {
		return known, err
	}
	if known.newest > 0 && slices.ContainsFunc(marks, func(m host.Mark) bool { return len(m.Overlay.Lifts) > 0 }) {
		known = edits{}
		if marks, err = s.lineage.Overlays(ctx, log, 0); err != nil {
			return known, err
		}
	}
	now, err := s.editsOf(ctx, marks)
	if err != nil {
		return now, err
	}
	now.log = log
	if now.back == nil { // without a lift among the new ones it is as it was
		now.back = known.back
	}
	if now.again == nil {
		now.again = known.again
	}
	if now.scale.estimated == 0 {
		now.scale, now.model = known.scale, known.model
	}
	now.placed = compaction.Lay(append(slices.Clone(known.placed), now.placed...)).Shown
	s.laid.Store(&now)
	return now, nil
}

// editsOf places overlays.
func (s *Session) editsOf(ctx context.Context, marks []host.Mark) (edits, error) {
	var e edits
	rows := make([]compaction.Row, len(marks))
	for i, m := range marks {
		e.newest = max(e.newest, m.Seq)
		rows[i] = compaction.Row{ID: m.ID, Seq: m.Seq, Overlay: m.Overlay}
	}
	lifted := compaction.Lifted(rows)
	for _, m := range marks {
		if o := m.Overlay; !lifted[m.ID] && o.After > o.Own/countFar && o.After < o.Own*countFar {
			e.scale = scale{counted: o.After, estimated: o.Own}
			e.model = o.Model
		}
	}
	e.back = backOf(rows)
	var err error
	if e.again, err = s.returned(ctx, rows); err != nil {
		return e, err
	}
	e.placed, err = s.place(ctx, marks)
	return e, err
}

// returned are the stretches that left as episodes and that an undo brought back.
func (s *Session) returned(ctx context.Context, rows []compaction.Row) ([]compaction.Span, error) {
	lifted := compaction.Lifted(rows)
	var ids []tidemark.EntryID // two of each
	for _, r := range rows {
		if !lifted[r.ID] || !slices.Contains(r.Overlay.By, (&compaction.Episodes{}).Name()) {
			continue
		}
		for _, e := range r.Overlay.Edits {
			if e.Block == 0 && e.To != "" {
				ids = append(ids, e.From, e.To)
			}
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	seqs, err := s.log.Seqs(ctx, ids)
	if err != nil {
		return nil, err
	}
	var out []compaction.Span
	for i := 0; i < len(ids); i += 2 {
		out = append(out, compaction.Span{From: seqs[ids[i]], To: seqs[ids[i+1]]})
	}
	return out, nil
}

// backOf are the blocks that overlays replaced which are lifted: what a person brought back is not paged out again.
func backOf(rows []compaction.Row) map[tidemark.EntryID][]int {
	lifted := compaction.Lifted(rows)
	var out map[tidemark.EntryID][]int
	for _, r := range rows {
		if !lifted[r.ID] {
			continue
		}
		for _, e := range r.Overlay.Edits {
			if e.Block > 0 && !slices.Contains(out[e.From], e.Block) {
				if out == nil {
					out = map[tidemark.EntryID][]int{}
				}
				out[e.From] = append(out[e.From], e.Block)
			}
		}
	}
	return out
}
