package session

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/archive"
	"github.com/tidemark-ai/tidemark/blocks"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/internal/clip"
	"github.com/tidemark-ai/tidemark/parts"
	"github.com/tidemark-ai/tidemark/room"
)

// messages yields the message entries of a range, oldest first, with their large blocks, in
// bounded pages, and lets others have a turn now and then.
func (s *Session) messages(ctx context.Context, log string, r host.Range) iter.Seq2[tidemark.Entry, error] {
	return func(yield func(tidemark.Entry, error) bool) {
		var yields room.Yielder
		skeletons, err := s.log.Skeletons(ctx, log, r)
		if err != nil {
			yield(tidemark.Entry{}, err)
			return
		}
		for at := 0; at < len(skeletons); {
			seqs := room.PageOf(skeletons[at:])
			at += len(seqs)
			entries, err := s.log.Payloads(ctx, seqs)
			if err != nil {
				yield(tidemark.Entry{}, err)
				return
			}
			for _, e := range entries {
				e, err := s.whole(ctx, e)
				if !yield(e, err) || err != nil {
					return
				}
				if err := yields.Did(ctx, s.Runtime, len(e.Payload)); err != nil {
					yield(tidemark.Entry{}, err)
					return
				}
			}
		}
	}
}

// whole brings an entry's large blocks back: of one entry at a time, since a page of them may be larger
// than the memory.
func (s *Session) whole(ctx context.Context, e tidemark.Entry) (tidemark.Entry, error) {
	if !bytes.Contains(e.Payload, []byte(blocks.Field)) {
		return e, nil
	}
	m, err := s.blocks.Message(ctx, e)
	if err != nil {
		return tidemark.Entry{}, err
	}
	e.Payload = m.AppendJSON(nil)
	return e, nil
}

// History yields every message of the current session in order, or, with all, of the sessions
// before it under the same key too, oldest first.
func (s *Session) History(ctx context.Context, all bool) iter.Seq2[tidemark.Entry, error] {
	return func(yield func(tidemark.Entry, error) bool) {
		logs, err := s.Logs(ctx)
		if err != nil {
			yield(tidemark.Entry{}, err)
			return
		}
		if !all {
			logs = logs[:1]
		}
		for i := len(logs) - 1; i >= 0; i-- {
			for e, err := range s.messages(ctx, logs[i], host.Range{From: 1, To: 1 << 53}) {
				if !yield(e, err) || err != nil {
					return
				}
			}
		}
	}
}

// Logs returns the session ids of the conversation, newest first.
func (s *Session) Logs(ctx context.Context) ([]string, error) {
	h, err := s.head(ctx)
	if err != nil {
		return nil, err
	}
	var out []string
	for id := h.Log; id != "" && len(out) < 10_000; {
		out = append(out, id)
		i, err := s.log.Info(ctx, id)
		if err != nil {
			return nil, err
		}
		id = i.Previous
	}
	return out, nil
}

// Entries returns entries of every kind of the current session, newest first, before a position
// (0: the newest).
func (s *Session) Entries(ctx context.Context, before int64, limit int) ([]tidemark.Entry, error) {
	h, err := s.head(ctx)
	if err != nil {
		return nil, err
	}
	if before == 1 { // nothing stands before the first
		return nil, nil
	}
	var out []tidemark.Entry
	for e, err := range s.log.Walk(ctx, h.Log, max(before-1, 0)) {
		if err != nil {
			return nil, err
		}
		if out = append(out, e); len(out) >= limit {
			break
		}
	}
	return out, nil
}

// Acts returns what [Session.Entries] does, without the messages: overlays and events, newest first.
func (s *Session) Acts(ctx context.Context, before int64, limit int) ([]tidemark.Entry, error) {
	h, err := s.head(ctx)
	if err != nil {
		return nil, err
	}
	if before <= 0 {
		before = 1 << 53
	}
	seqs, err := s.log.Acts(ctx, h.Log, before, limit)
	if err != nil {
		return nil, err
	}
	bases, err := s.lineage.Bases(ctx, h.Log)
	if err != nil {
		return nil, err
	}
	for _, b := range bases {
		if len(seqs) >= limit {
			break
		}
		more, err := s.log.Acts(ctx, b.Log, min(before, b.To+1), limit-len(seqs))
		if err != nil {
			return nil, err
		}
		seqs = append(seqs, more...)
	}
	slices.Reverse(seqs)
	out, err := s.log.Payloads(ctx, seqs)
	slices.Reverse(out)
	return out, err
}

// ReadEntry returns a page of the text of a message of this conversation, from an offset in bytes on, and says where
// the next begins.
func (s *Session) ReadEntry(ctx context.Context, id tidemark.EntryID, offset int) (string, error) {
	m, err := s.entry(ctx, id)
	if err != nil {
		return "", err
	}
	text, size := room.TextAt(m, max(offset, 0), toolPage)
	if offset < 0 || offset > size {
		return "", fmt.Errorf("offset %d: the entry has %d bytes: %w", offset, size, tidemark.ErrInvalid)
	}
	if offset+len(text) < size {
		text = clip.Runes(text)
	}
	end := offset + len(text)
	out := strings.ToValidUTF8(text, "")
	if end < size {
		out += fmt.Sprintf("\n[%d of %d bytes; go on with offset %d]", len(text), size, end)
	}
	return out, nil
}

// Undo lifts an overlay: what it replaced is visible again. Only between turns. changed is false for one that is
// lifted already: nothing is logged then.
func (s *Session) Undo(ctx context.Context, overlay tidemark.EntryID) (changed bool, err error) {
	h, err := s.head(ctx)
	if err != nil {
		return false, err
	}
	e, err := s.log.Entry(ctx, overlay)
	if err != nil {
		return false, err
	}
	ours, err := s.lineage.OfHistory(ctx, h.Log, e)
	if err != nil {
		return false, err
	}
	if !ours || e.Kind != tidemark.KindOverlay {
		return false, fmt.Errorf("overlay %s of this session: %w", overlay, tidemark.ErrNotFound)
	}
	marks, err := s.lineage.Overlays(ctx, h.Log, e.Seq-1)
	if err != nil {
		return false, err
	}
	rows := make([]compaction.Row, len(marks))
	for i, m := range marks {
		rows[i] = compaction.Row{ID: m.ID, Seq: m.Seq, Overlay: m.Overlay}
	}
	if compaction.Lifted(rows)[overlay] {
		return false, nil
	}
	o := tidemark.Overlay{By: []string{"person"}, Lifts: []tidemark.EntryID{overlay}, Reason: "undo"}
	_, stmts, err := s.overlayStmts(h.Log, tidemark.FromPerson, o)
	if err != nil {
		return false, err
	}
	idle := tidemark.Stmt{SQL: `UPDATE heads SET prompt = '' WHERE key = ? AND NOT EXISTS (SELECT 1 FROM runs WHERE key = ? AND state IN ('calling', 'tools'))`,
		Args: []any{string(s.Key), string(s.Key)}, Want: 1}
	stmts = append(stmts, idle, tidemark.Stmt{SQL: `UPDATE plans SET state = 'dropped' WHERE key = ? AND state = 'open'`, Args: []any{string(s.Key)}})
	if len(rows[0].Overlay.Lifts) > 0 { // it was a lift itself
		again, err := s.rereadStmts(ctx, h.Log)
		if err != nil {
			return false, err
		}
		stmts = append(stmts, again...)
	}
	if err := s.DB.Tx(ctx, stmts); err != nil {
		return false, fmt.Errorf("undo overlay %s: %w", overlay, err)
	}
	s.setAlarm(ctx)
	return true, nil
}

// partPorts are what the keeper of archives is given.
func partPorts(s *Session) parts.Ports {
	return parts.Ports{Key: s.Key, DB: s.DB, Blobs: s.Blobs, Runtime: s.Runtime, Log: s.log, Lineage: &s.lineage, Messages: s.messages,
		Tell: func(i archive.Info) tidemark.Stmt { return s.outboxStmt("archive:"+i.Key, outArchive, i) },
		BaseArchived: func(ctx context.Context, log string) (int64, error) {
			if b, ok := room.Find[room.Brancher](s.rooms); ok {
				return b.BaseArchived(ctx, log)
			}
			return 0, nil
		}}
}
