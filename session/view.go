package session

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/blocks"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/episodes"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/room"
)

// View is what the model would see now.
type View struct {
	room.Seen
	System string
	Tools  []tidemark.Tool
	Last   int64  // position of the newest message
	Until  int64  // position up to which the log was read, overlays included
	Anchor bool   // Size rests on what the provider reported
	Pack   string // what is pushed beside the messages, in the note; filled in for a call

	mark string // hash of the mark of System's memory, empty when that has none
}

// View computes what the model would see now.
func (s *Session) View(ctx context.Context) (View, error) {
	h, err := s.head(ctx)
	if err != nil {
		return View{}, err
	}
	return s.view(ctx, h.Log)
}

// Request returns the request that would be sent for a view.
func (s *Session) Request(v View) tidemark.Request { return s.request(v) }

func (s *Session) request(v View) tidemark.Request {
	return tidemark.Request{Model: s.settings().Model, System: v.System, Tools: v.Tools, Messages: v.Messages(),
		MaxTokens: s.replyRoom(v), Note: s.note(v.Pack)}
}

// replyRoom is the bound on the reply to a view: what is configured, or what the window leaves where that is less, since
// providers refuse a request that asks for more than fits behind it.
func (s *Session) replyRoom(v View) tidemark.Tokens {
	most, window := s.settings().MaxTokens, s.settings().Window
	if found := tidemark.Tokens(s.mostReply.Load()); found > 0 && (most == 0 || found < most) {
		most = found
	}
	size, least := v.Size, compaction.Budget{Window: window}.LeastReply()
	if !v.Anchor { // it is an estimate, and of an anchored view the newest message is
		size, least = size+v.Size/4, 2*least
	}
	left := max((window-size)*7/8, least)
	if left < compaction.UsualReply && most == 0 || left < most {
		return left
	}
	return most
}

// note is what the model must know now and what would break the cached prefix if it stood in the
// system prompt: the pack, if there is one, and the time.
func (s *Session) note(pack string) string {
	now := s.Runtime.Now().In(s.settings().Zone).Format("[It is Monday, 2006-01-02 15:04 MST.]")
	if pack == "" {
		return now
	}
	return pack + "\n\n" + now
}

// view reads overlays first, then skeletons of what they leave visible, then the payloads that are
// shown: a session costs its tail, not its history.
func (s *Session) view(ctx context.Context, log string) (View, error) {
	now, err := s.standingEdits(ctx, log)
	if err != nil {
		return View{}, err
	}
	return s.viewOf(ctx, log, now, nil)
}

// viewOf computes the view under some edits. admit, if given, is told what it weighs before large
// blocks are read, and may wait.
func (s *Session) viewOf(ctx context.Context, log string, now edits, admit func(bytes int64) error) (View, error) {
	shown, layout, err := s.layout(ctx, now.placed)
	if err != nil {
		return View{}, err
	}
	hideBehind(&layout, now.until)
	entries, err := s.visible(ctx, log, layout, admit)
	if err != nil {
		return View{}, err
	}
	cv, err := compaction.Assemble(entries, shown)
	if err != nil {
		return View{}, fmt.Errorf("assemble view of %s: %w", log, err)
	}
	cv.Back, cv.Returned = now.back, now.again
	v := View{Seen: room.Seen{View: cv, Log: log, Shown: shown}}
	if len(entries) > 0 {
		v.Last = entries[len(entries)-1].Seq
	}
	v.Until = until(v, now.newest)
	if v.System, v.mark, err = s.system(ctx); err != nil {
		return View{}, err
	}
	if v.Tools, err = s.tools(ctx); err != nil {
		return View{}, err
	}
	v.Tools = withSkills(v.System, v.Tools)
	v.Fixed = tidemark.EstimateText(v.System) + estimateTools(v.Tools)
	v.Size, v.Anchor = s.size(v, entries, now)
	return v, nil
}

// layout lays out edits and reads the replacements of those that are shown.
func (s *Session) layout(ctx context.Context, placed []compaction.Placed) ([]compaction.Replacement, compaction.Layout, error) {
	layout := compaction.Lay(placed)
	rows := map[int64]tidemark.Overlay{}
	var seqs []int64
	for _, p := range layout.Shown {
		if _, ok := rows[p.Row]; !ok {
			rows[p.Row] = tidemark.Overlay{}
			seqs = append(seqs, p.Row)
		}
	}
	entries, err := s.log.Payloads(ctx, seqs)
	if err != nil {
		return nil, layout, err
	}
	left := amendedFiles
	for _, e := range slices.Backward(entries) {
		var o tidemark.Overlay
		err := json.Unmarshal(e.Payload, &o)
		if err == nil && amends(o) {
			err = s.amendedWith(ctx, o.Edits, &left)
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
	return shown, layout, nil
}

// place resolves the entries that overlays name.
func (s *Session) place(ctx context.Context, marks []host.Mark) ([]compaction.Placed, error) {
	var ids []tidemark.EntryID
	rows := make([]compaction.Row, len(marks))
	for i, m := range marks {
		rows[i] = compaction.Row{ID: m.ID, Seq: m.Seq, Overlay: m.Overlay}
		ids = append(ids, editIDs(m.Overlay)...)
	}
	slices.Sort(ids) // each summary begins at the same entry as the one before
	seqs, err := s.log.Seqs(ctx, slices.Compact(ids))
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

// visible reads the entries that a layout leaves visible, with their large blocks; beyond what a view
// may weigh it is errHeavy.
func (s *Session) visible(ctx context.Context, log string, layout compaction.Layout, admit func(int64) error) ([]compaction.Visible, error) {
	out, large, size, err := s.kept(ctx, log, layout)
	if err == nil && admit != nil {
		err = admit(size)
	}
	if err != nil {
		return nil, err
	}
	sh := s.blocks.Shelf()
	var yields host.Yielder
	for i, v := range out {
		if large[v.Seq] == nil {
			continue
		}
		refs := blocks.RowRefs(v.Message, large[v.Seq])
		err := sh.Fetch(ctx, refs, func(yield func(blocks.Ref) bool) {
			for _, v := range out[i+1:] {
				for _, r := range blocks.RowRefs(v.Message, large[v.Seq]) {
					if !yield(r) {
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
		out[i].Message, _ = s.blocks.Noted(v.Message, full, string(v.ID))
		for _, r := range refs {
			if err := yields.Did(ctx, s.Runtime, r.Bytes); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// kept reads the entries that a layout leaves visible as the database has them; large are the blocks
// to bring back, from 0, by the position of their entry. The error is errHeavy when all of it together,
// size, is too much; the entries are given all the same.
func (s *Session) kept(ctx context.Context, log string, layout compaction.Layout) (out []compaction.Visible, large map[int64][]int, size int64, err error) {
	var seqs []int64
	stubs := map[int64][]compaction.Placed{} // by the entry that they are in
	for _, p := range layout.Shown {
		if p.Block > 0 {
			stubs[p.From] = append(stubs[p.From], p)
		}
	}
	for _, gap := range layout.Gaps(1, 1<<53) {
		skeletons, err := s.log.Skeletons(ctx, log, host.Range{From: gap.From, To: gap.To})
		if err != nil {
			return nil, nil, 0, err
		}
		for _, k := range skeletons {
			if compaction.NeedsPayload(k, stubs[k.Seq]) {
				seqs = append(seqs, k.Seq)
			}
			k.At = k.At.In(s.settings().Zone) // as markers say it
			out = append(out, compaction.Visible{Skeleton: k})
		}
	}
	large = map[int64][]int{}
	var yields host.Yielder
	for at := 0; len(seqs) > 0; {
		n := min(len(seqs), tidemark.MaxParams)
		entries, err := s.log.Payloads(ctx, seqs[:n])
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
			if err := yields.Did(ctx, s.Runtime, len(e.Payload)); err != nil {
				return nil, nil, 0, err
			}
		}
	}
	if size > s.settings().ViewBytes {
		err = fmt.Errorf("view of %s: %d bytes, at most %d: %w", log, size, s.settings().ViewBytes, errHeavy)
	}
	return out, large, size, err
}

// size returns the context size: the provider's last report for a single call plus the estimate of
// what came since, if no overlay was written after it and the model is the same; else the estimate
// of all that would be sent, in the measure that the last compaction was told in, if that was the model's.
// A lift changes what is sent as much as another overlay does.
func (s *Session) size(v View, entries []compaction.Visible, now edits) (tidemark.Tokens, bool) {
	var since tidemark.Tokens
	for i := len(entries) - 1; i >= 0 && entries[i].Seq > now.newest; i-- {
		if c := entries[i].Call; c != nil && c.Reported && c.Requested == s.settings().Model {
			return c.Usage.Context() + since, true
		}
		since += entries[i].Tokens
	}
	own := v.Fixed + v.View.Tokens()
	if now.model != s.settings().Model {
		return own, false
	}
	return episodes.Scaled(own, now.scale.counted, now.scale.estimated), false
}

// estimateTools counts the schemas, which the reference forgot.
func estimateTools(tools []tidemark.Tool) tidemark.Tokens {
	if len(tools) == 0 {
		return 0
	}
	return tidemark.EstimateText(mustJSON(tools))
}

// entryStmts completes a message entry and returns what stores it: the entry and its words. The message is as
// it came: what looks like a reference in it is none of ours.
func (s *Session) entryStmts(ctx context.Context, log string, e *tidemark.Entry, m tidemark.Message, prev tidemark.Hash) ([]tidemark.Stmt, error) {
	stored, err := s.blocks.Spill(ctx, m)
	if err != nil {
		return nil, err
	}
	return s.storedStmts(ctx, log, e, m, stored, prev)
}

// storedStmts is entryStmts for a message whose large blocks were spilled before.
func (s *Session) storedStmts(ctx context.Context, log string, e *tidemark.Entry, full, stored tidemark.Message, prev tidemark.Hash) ([]tidemark.Stmt, error) {
	e.Chain = tidemark.Chain(prev, full)
	stored, stmts, err := s.blocks.Compress(ctx, stored, s.settings().ArtifactChars)
	if err != nil {
		return nil, err
	}
	e.Payload = stored.AppendJSON(nil)
	entry, err := s.log.AppendStmts(log, *e)
	if err != nil {
		return nil, err
	}
	stmts = append(stmts, entry...)
	if r, ok := Room[room.Indexer](s); ok {
		index, err := r.IndexStmts(ctx, *e, full)
		return append(stmts, index...), err
	}
	return stmts, nil
}

// until returns the position up to which a view knows the log. Everything that is written later has a
// greater one, so it and the log tell what was shown.
func until(v View, newest int64) int64 {
	n := max(v.Last, newest)
	for _, sh := range v.Shown {
		n = max(n, sh.From, sh.To)
	}
	return n
}
