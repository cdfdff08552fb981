package history

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/blocks"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// ErrHeavy is a view of more bytes than may stand in memory. Images are the reason: each counts a flat number of tokens, so
// that no compaction is due however large they are.
var ErrHeavy = fmt.Errorf("more is visible than fits into memory; run /compact or /reset: %w", tidemark.ErrTooLarge)

// View is what edits leave visible of a log.
type View struct {
	compaction.View
	Shown   []compaction.Replacement
	Entries []compaction.Visible // oldest first
}

// View computes what edits leave visible: from skeletons of that, then the payloads that are shown, so that it costs the
// tail of a log and not its history. admit, if given, is told what it weighs before large blocks are read, and may wait.
func (r *Reader) View(ctx context.Context, log string, now Edits, admit func(bytes int64) error) (v View, err error) {
	shown, layout, err := r.layout(ctx, now)
	if err != nil {
		return v, err
	}
	entries, err := r.visible(ctx, log, layout, admit)
	if err != nil {
		return v, err
	}
	seen, err := compaction.Assemble(entries, shown)
	if err != nil {
		return v, fmt.Errorf("assemble view of %s: %w", log, err)
	}
	seen.Back, seen.Returned = now.Back, now.Again
	return View{seen, shown, entries}, nil
}

// AsOf computes the view of a log as it was when its newest entry had a position, with the messages, overlays and lifts up to
// there, and gives it to use while there is memory for it.
func (r *Reader) AsOf(ctx context.Context, log string, until int64, use func(compaction.View) error) error {
	then, err := r.EditsAt(ctx, log, until)
	if err != nil {
		return err
	}
	then.Back, then.Again = nil, nil // only who plans asks for these
	var give func()
	v, err := r.View(ctx, log, then, func(bytes int64) (err error) {
		give, err = r.Reserve(ctx, bytes)
		return err
	})
	if give != nil {
		defer give()
	}
	if err != nil {
		return err
	}
	return use(v.View)
}

// Estimate is how many tokens are visible of a history as it was when its newest entry had a position, by the estimates in the
// log.
func (r *Reader) Estimate(ctx context.Context, log string, until int64) (size tidemark.Tokens, err error) {
	then, err := r.EditsAt(ctx, log, until)
	if err != nil {
		return 0, err
	}
	for _, gap := range compaction.Lay(then.Placed).Gaps(1, until) {
		_, n, err := r.Log.Count(ctx, log, host.Range{From: gap.From, To: gap.To}, 1<<40)
		if err != nil {
			return 0, err
		}
		size += n
	}
	return size, nil
}

// Kept returns the entries that edits leave visible as the database has them, without what is large of them. The error is
// ErrHeavy when all of it together is too much; the entries are given all the same.
func (r *Reader) Kept(ctx context.Context, log string, now Edits) ([]compaction.Visible, error) {
	_, layout, err := r.layout(ctx, now)
	if err != nil {
		return nil, err
	}
	entries, _, _, err := r.kept(ctx, log, layout)
	return entries, err
}

// layout lays out edits and reads the replacements of those that are shown.
func (r *Reader) layout(ctx context.Context, now Edits) ([]compaction.Replacement, compaction.Layout, error) {
	layout := compaction.Lay(now.Placed)
	rows := map[int64]tidemark.Overlay{}
	var seqs []int64
	for _, p := range layout.Shown {
		if _, ok := rows[p.Row]; !ok {
			rows[p.Row] = tidemark.Overlay{}
			seqs = append(seqs, p.Row)
		}
	}
	entries, err := r.Log.Payloads(ctx, seqs)
	if err != nil {
		return nil, layout, err
	}
	left := amendedFiles
	for _, e := range slices.Backward(entries) {
		var o tidemark.Overlay
		err := json.Unmarshal(e.Payload, &o)
		if err == nil && Amends(o) {
			err = r.amendedWith(ctx, o.Edits, &left)
		}
		if err != nil {
			return nil, layout, fmt.Errorf("read overlay %s: %w", e.ID, err)
		}
		rows[e.Seq] = o
	}
	shown := make([]compaction.Replacement, len(layout.Shown))
	for i, p := range layout.Shown {
		shown[i] = compaction.Replacement{Placed: p, Edit: rows[p.Row].Edits[p.N]}
	}
	if now.Until > 0 {
		layout.Hidden = append(layout.Hidden, compaction.Span{From: now.Until + 1, To: host.LogEnd})
	}
	return shown, layout, nil
}

// visible reads the entries that a layout leaves visible, with their large blocks; beyond what a view
// may weigh it is ErrHeavy.
func (r *Reader) visible(ctx context.Context, log string, layout compaction.Layout, admit func(int64) error) ([]compaction.Visible, error) {
	out, large, size, err := r.kept(ctx, log, layout)
	if err == nil && admit != nil {
		err = admit(size)
	}
	if err != nil {
		return nil, err
	}
	sh := r.Blocks.Shelf()
	var yields host.Yielder
	for i, v := range out {
		if large[v.Seq] == nil {
			continue
		}
		refs := blocks.RowRefs(v.Message, large[v.Seq])
		err := sh.Fetch(ctx, refs, func(yield func(blocks.Ref) bool) {
			for _, v := range out[i+1:] {
				for _, ref := range blocks.RowRefs(v.Message, large[v.Seq]) {
					if !yield(ref) {
						return
					}
				}
			}
		})
		if err != nil {
			return nil, err
		}
		full, err := sh.Read(ctx, v.Message, large[v.Seq])
		if err != nil {
			return nil, err
		}
		out[i].Message, _ = r.Blocks.Noted(v.Message, full, string(v.ID))
		for _, ref := range refs {
			if err := yields.Did(ctx, r.Runtime, ref.Bytes); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// kept reads the entries that a layout leaves visible as the database has them; large are the blocks
// to bring back, from 0, by the position of their entry. The error is ErrHeavy when all of it together,
// size, is too much; the entries are given all the same.
func (r *Reader) kept(ctx context.Context, log string, layout compaction.Layout) (out []compaction.Visible, large map[int64][]int, size int64, err error) {
	var seqs []int64
	stubs := map[int64][]compaction.Placed{} // by the entry that they are in
	for _, p := range layout.Shown {
		if p.Block > 0 {
			stubs[p.From] = append(stubs[p.From], p)
		}
	}
	for _, gap := range layout.Gaps(1, host.LogEnd) {
		skeletons, err := r.Log.Skeletons(ctx, log, host.Range{From: gap.From, To: gap.To})
		if err != nil {
			return nil, nil, 0, err
		}
		for _, k := range skeletons {
			if compaction.NeedsPayload(k, stubs[k.Seq]) {
				seqs = append(seqs, k.Seq)
			}
			k.At = k.At.In(r.Zone()) // as markers say it
			out = append(out, compaction.Visible{Skeleton: k})
		}
	}
	large = map[int64][]int{}
	var yields host.Yielder
	for at := 0; len(seqs) > 0; {
		n := min(len(seqs), tidemark.MaxParams)
		entries, err := r.Log.Payloads(ctx, seqs[:n])
		if err != nil {
			return nil, nil, 0, err
		}
		seqs = seqs[n:]
		for _, e := range entries {
			for out[at].Seq != e.Seq {
				at++
			}
			if out[at].Message, err = e.Message(); err != nil {
				return nil, nil, 0, fmt.Errorf("read entry %s: %w", e.ID, err)
			}
			out[at].Source, out[at].Call = e.Origin.From, e.Call
			w := int64(len(e.Payload))
			if replaced := stubs[e.Seq]; len(replaced) > 0 {
				out[at].Message = withoutReplaced(out[at].Message, replaced)
				w = int64(len(out[at].Message.AppendJSON(nil)))
			}
			size += w
			if bytes.Contains(e.Payload, []byte(blocks.Field)) {
				large[e.Seq], w = blocks.Large(out[at].Message)
				size += w
			}
			if err := yields.Did(ctx, r.Runtime, len(e.Payload)); err != nil {
				return nil, nil, 0, err
			}
		}
	}
	if size > r.ViewBytes() {
		err = fmt.Errorf("view of %s: %d bytes, at most %d: %w", log, size, r.ViewBytes(), ErrHeavy)
	}
	return out, large, size, err
}
