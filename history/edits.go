package history

import (
	"context"
	"slices"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/host"
)

// Edits is what overlays put in the place of messages, resolved to positions.
type Edits struct {
	Newest int64 // position of the last overlay that was read
	Until  int64 // nothing behind it is shown; 0: all is
	Placed []compaction.Placed
	Back   map[tidemark.EntryID][]int // blocks, from 1, that an undo brought back
	Again  []compaction.Span          // and stretches that had left as episodes
	// Counted is what a provider counted, and Estimated what we estimated, when the newest compaction that is not lifted was
	// told; zero for none. Model counts so.
	Counted, Estimated tidemark.Tokens
	Model              string

	log string
}

// CountFar is how many times larger or smaller than the estimate a count may be to be believed.
const CountFar = 4

// Standing returns the edits that are shown now. Those of a conversation that was compacted a thousand times sleep under a
// few others, so what was read once is kept without them, and a view reads what came since: overlays are never changed and
// come in order. A lift wakes what slept, so then all are read again.
func (r *Reader) Standing(ctx context.Context, log string) (Edits, error) {
	var known Edits
	if l := r.laid.Load(); l != nil && l.log == log {
		known = *l
	}
	marks, err := r.Lineage.Overlays(ctx, log, known.Newest)
	if err != nil || len(marks) == 0 && known.Newest > 0 {
		return known, err
	}
	if known.Newest > 0 && slices.ContainsFunc(marks, func(m host.Mark) bool { return len(m.Overlay.Lifts) > 0 }) {
		known = Edits{}
		if marks, err = r.Lineage.Overlays(ctx, log, 0); err != nil {
			return known, err
		}
	}
	now, err := r.Edits(ctx, marks)
	if err != nil {
		return now, err
	}
	now.log = log
	if now.Back == nil { // without a lift among the new ones it is as it was
		now.Back = known.Back
	}
	if now.Again == nil {
		now.Again = known.Again
	}
	if now.Estimated == 0 {
		now.Counted, now.Estimated, now.Model = known.Counted, known.Estimated, known.Model
	}
	now.Placed = compaction.Lay(append(slices.Clone(known.Placed), now.Placed...)).Shown
	r.laid.Store(&now)
	return now, nil
}

// EditsAt returns the edits of a history as they were when its newest entry had a position.
func (r *Reader) EditsAt(ctx context.Context, log string, until int64) (Edits, error) {
	marks, err := r.Lineage.Overlays(ctx, log, 0)
	if err != nil {
		return Edits{}, err
	}
	e, err := r.Edits(ctx, slices.DeleteFunc(marks, func(m host.Mark) bool { return m.Seq > until }))
	e.Until = until
	return e, err
}

// Edits places overlays.
func (r *Reader) Edits(ctx context.Context, marks []host.Mark) (Edits, error) {
	var e Edits
	rows := Rows(marks)
	lifted := compaction.Lifted(rows)
	for _, m := range marks {
		e.Newest = max(e.Newest, m.Seq)
		if o := m.Overlay; !lifted[m.ID] && o.After > o.Own/CountFar && o.After < o.Own*CountFar {
			e.Counted, e.Estimated, e.Model = o.After, o.Own, o.Model
		}
	}
	e.Back = backOf(rows)
	var err error
	if e.Again, err = r.returned(ctx, rows); err != nil {
		return e, err
	}
	e.Placed, err = r.place(ctx, rows)
	return e, err
}

// Places resolves the entries that edits name which are not logged yet.
func (r *Reader) Places(ctx context.Context, edits []tidemark.Edit) ([]compaction.Placed, error) {
	return r.place(ctx, []compaction.Row{{ID: "planned", Seq: host.LogEnd, Overlay: tidemark.Overlay{Edits: edits}}})
}

// Fits refuses edits that a view could not show whole beside what it shows.
func (r *Reader) Fits(ctx context.Context, shown []compaction.Replacement, edits []tidemark.Edit) error {
	row, err := r.Places(ctx, edits)
	if err != nil {
		return err
	}
	placed := make([]compaction.Placed, len(shown))
	for i, s := range shown {
		placed[i] = s.Placed
	}
	return compaction.CheckOverlay(placed, row)
}

// Rows are overlays as package compaction reads them.
func Rows(marks []host.Mark) []compaction.Row {
	rows := make([]compaction.Row, len(marks))
	for i, m := range marks {
		rows[i] = compaction.Row{ID: m.ID, Seq: m.Seq, Overlay: m.Overlay}
	}
	return rows
}

// place resolves the entries that overlays name.
func (r *Reader) place(ctx context.Context, rows []compaction.Row) ([]compaction.Placed, error) {
	var ids []tidemark.EntryID
	for _, row := range rows {
		ids = append(ids, editIDs(row.Overlay)...)
	}
	slices.Sort(ids) // each summary begins at the same entry as the one before
	seqs, err := r.Log.Seqs(ctx, slices.Compact(ids))
	if err != nil {
		return nil, err
	}
	return compaction.Place(rows, func(id tidemark.EntryID) (int64, bool) {
		seq, ok := seqs[id]
		return seq, ok
	})
}

func editIDs(o tidemark.Overlay) []tidemark.EntryID {
	var ids []tidemark.EntryID
	for _, e := range o.Edits {
		ids = append(ids, e.From)
		if e.To != "" {
			ids = append(ids, e.To)
		}
		ids = append(ids, e.Keep...)
	}
	return ids
}

// returned are the stretches that left as episodes and that an undo brought back.
func (r *Reader) returned(ctx context.Context, rows []compaction.Row) ([]compaction.Span, error) {
	lifted := compaction.Lifted(rows)
	var ids []tidemark.EntryID // two of each
	for _, row := range rows {
		if !lifted[row.ID] || !slices.Contains(row.Overlay.By, (&compaction.Episodes{}).Name()) {
			continue
		}
		for _, e := range row.Overlay.Edits {
			if e.Block == 0 && e.To != "" {
				ids = append(ids, e.From, e.To)
			}
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	seqs, err := r.Log.Seqs(ctx, ids)
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

// EvictedAt returns when an entry of the present session left the view, the zero time if it is there.
func (r *Reader) EvictedAt(ctx context.Context, id tidemark.EntryID) (time.Time, error) {
	log, err := r.Current(ctx)
	if err != nil {
		return time.Time{}, err
	}
	seqs, err := r.Log.Seqs(ctx, []tidemark.EntryID{id})
	if err != nil {
		return time.Time{}, err
	}
	marks, err := r.Lineage.Overlays(ctx, log, 0)
	if err != nil {
		return time.Time{}, err
	}
	placed, err := r.place(ctx, Rows(marks))
	if err != nil {
		return time.Time{}, err
	}
	row := int64(0)
	for _, p := range placed { // the first that took it away
		if seq := seqs[id]; !p.Insert && seq >= p.From && seq <= p.To && !slices.Contains(p.Keep, seq) && (row == 0 || p.Row < row) {
			row = p.Row
		}
	}
	if row == 0 {
		return time.Time{}, nil
	}
	took, err := r.Log.Payloads(ctx, []int64{row})
	if err != nil || len(took) == 0 {
		return time.Time{}, err
	}
	return took[0].At, nil
}
