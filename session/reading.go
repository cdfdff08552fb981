package session

import (
	"context"
	"fmt"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/history"
	"github.com/tidemark-ai/tidemark/lineage"
	"github.com/tidemark-ai/tidemark/paging"
	"github.com/tidemark-ai/tidemark/parts"
	"github.com/tidemark-ai/tidemark/recall"
	"github.com/tidemark-ai/tidemark/room"
)

// reading is what the session reads with.
type reading struct {
	lineage lineage.Lineage // what the session continues, as a branch
	parts   parts.Keeper    // the archives of its logs
	Reader  *history.Reader // of what was said
}

// readerOf is what reads the history of a session.
func readerOf(s *Session) *history.Reader {
	return &history.Reader{Key: s.Key, Log: s.log, Blocks: &s.blocks, Lineage: &s.lineage, Runtime: s.Runtime, Admit: s.Admit,
		ViewBytes: func() int64 { return s.settings().ViewBytes }, Zone: func() *time.Location { return s.settings().Zone },
		Current: func(ctx context.Context) (string, error) {
			h, err := s.head(ctx)
			return h.Log, err
		}}
}

// What a turn may read of what was said, as it is shown to a model.
const (
	// The paper has 3. Agents follow two hops for several facts, and a refusal costs a turn more than a search does.
	toolRecalls = 8
	// What a turn reads in all, entries included: about 50,000 tokens, and the last answer.
	toolBytes = 200_000
	toolPage  = room.ToolPage // bytes of an entry; what a call that is not done yet is taken to give
)

// turnFrom is the position of the first message of a turn in work, 0 when it has none. What it asks and calls is no
// answer to itself.
func (s *Session) turnFrom(ctx context.Context, r *run) (int64, error) {
	const most = 1000 // messages of a turn
	rows, err := s.DB.Query(ctx, `SELECT coalesce(min(e.seq), 0) FROM (SELECT seq, origin FROM entries WHERE log = ? AND kind = 'message' ORDER BY seq DESC LIMIT ?) e
		WHERE json_extract(e.origin, '$.input') IN (SELECT id FROM inputs WHERE run = ?) LIMIT 1`, r.Log, most, r.ID)
	if err != nil {
		return 0, fmt.Errorf("recall: the turn in work: %w", err)
	}
	return rows[0].Int(0), nil
}

// mayRecall refuses a search when a turn had as many as it may have, and a search or an entry when it was given as much
// as it may be.
func (s *Session) mayRecall(ctx context.Context, r *run, c call, entry bool) error {
	rows, err := s.DB.Query(ctx, `SELECT coalesce(sum(json_extract(call, '$.name') = ? AND coalesce(json_extract(call, '$.input.entry'), '') || coalesce(json_extract(call, '$.input.episode'), '') = ''), 0), coalesce(sum(CASE state WHEN 'done' THEN length(result) ELSE ? END), 0)
		FROM calls WHERE run = ? AND (round < ? OR round = ? AND n < ?) AND json_extract(call, '$.name') IN (?, ?) LIMIT 1`,
		room.RecallTool, toolPage, r.ID, r.Round, r.Round, c.N, room.RecallTool, paging.FaultTool)
	if err != nil {
		return fmt.Errorf("recall: %w", err)
	}
	switch {
	case !entry && rows[0].Int(0) >= toolRecalls:
		err = fmt.Errorf("recall was called %d times in this turn", toolRecalls)
	case rows[0].Int(1) >= toolBytes:
		err = fmt.Errorf("recall gave %d bytes in this turn", rows[0].Int(1))
	default:
		return nil
	}
	return fmt.Errorf("%w, which is the most: answer from what was found, or say that it was not: %w", err, tidemark.ErrInvalid)
}

// Who recalled something.
const (
	ByModel  = room.ByModel
	ByPerson = room.ByPerson
	ByPack   = room.ByPack
	ByWide   = room.ByWide
)

// noteRecall counts a recall and tells a room how it went.
func (s *Session) noteRecall(ctx context.Context, by string, v recall.Verdict, first tidemark.EntryID) {
	if s.Observe != nil {
		s.Observe(Notice{Type: NoticeRecalled, Text: by, Verdict: v})
	}
	if r, ok := room.Find[room.Recaller](s.rooms); ok {
		r.Recalled(ctx, by, v, first)
	}
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
	rows := history.Rows(marks)
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
