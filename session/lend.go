package session

import (
	"context"
	"errors"
	"fmt"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/internal/clip"
	"github.com/tidemark-ai/tidemark/room"
)

// lend has work write into the session with its one run.
func (s *Session) lend(ctx context.Context, work func(room.Held) error) error {
	h, err := s.head(ctx)
	if err != nil {
		return err
	}
	now := s.Runtime.Now()
	r := s.newRun(h.Log)
	s.claim(r.ID)
	err = s.DB.Tx(ctx, []tidemark.Stmt{{
		SQL: `INSERT INTO runs(id, key, log, owner, state, started, updated) SELECT ?, key, log, ?, 'calling', ?, ?
			FROM heads WHERE key = ? AND log = ? AND NOT EXISTS (SELECT 1 FROM runs WHERE key = ? AND state IN ('calling', 'tools'))`,
		Args: []any{r.ID, r.owner, now.UnixMilli(), now.UnixMilli(), string(s.Key), h.Log, string(s.Key)}, Want: 1,
	}, s.dueStmt(dueRun, now.Add(heartbeat), "")})
	if err != nil {
		s.release(r.ID)
	}
	if errors.Is(err, tidemark.ErrConflict) {
		return fmt.Errorf("%s: a turn is in work; try again when it has ended: %w", s.Key, tidemark.ErrBusy)
	}
	if err != nil {
		return err
	}
	s.setAlarm(ctx)
	defer s.kick() // what was said meanwhile waits
	defer s.release(r.ID)
	if err := work(&held{s: s, r: r}); err != nil && r.State == stateDone { // it has moved, and is no failure
		return err
	} else if err != nil {
		return errors.Join(err, s.step(s.life, r, stateFailed, s.endStmts(outboxRetry)...))
	}
	if r.State == stateDone { // it has moved
		return nil
	}
	if err := s.step(ctx, r, stateDone, s.endStmts(outboxRetry)...); err != nil {
		return fmt.Errorf("end the work on %s: %w", s.Key, err)
	}
	s.rooms.Closed(ctx)
	s.report(ctx)
	return nil
}

// logFrom is a log that goes on from a place.
func logFrom(i tidemark.SessionInfo, from room.Place) host.Info {
	return host.Info{ID: i.ID, Key: i.Key, BaseLog: from.Log, BaseSeq: from.Seq, Created: i.CreatedAt}
}

// held is the session's run in the hands of a room.
type held struct {
	s *Session
	r *run

	stmts []tidemark.Stmt // that append messages
	count int             // of these
	size  tidemark.Tokens // of the view, with them
}

// Append implements room.Held.
func (h *held) Append(ctx context.Context, e *tidemark.Entry, m tidemark.Message, prev tidemark.Hash) error {
	stmts, err := h.s.entryStmts(ctx, h.r.Log, e, m, prev)
	if err == nil {
		h.stmts, h.count, h.size = append(h.stmts, stmts...), h.count+1, h.size+e.Tokens
	}
	return err
}

// Write implements room.Held.
func (h *held) Write(ctx context.Context, stmts ...tidemark.Stmt) error {
	all := h.stmts
	if h.count > 0 {
		now := h.s.Runtime.Now().UnixMilli()
		all = append(all, tidemark.Stmt{SQL: `UPDATE heads SET active = ?, people = ?, messages = messages + ?, context = ? WHERE key = ?`,
			Args: []any{now, now, h.count, int64(h.size), string(h.s.Key)}, Want: 1})
	}
	if err := h.s.step(ctx, h.r, stateCalling, append(all, stmts...)...); err != nil {
		return err
	}
	h.stmts, h.count = nil, 0
	return nil
}

// Size implements room.Held.
func (h *held) Size(ctx context.Context, fit bool) (tidemark.Tokens, error) {
	defer h.r.releaseView()
	v, err := h.s.light(ctx, h.r)
	if err == nil && fit {
		v, err = h.s.fit(ctx, h.r, v, fitAuto)
	}
	if err != nil {
		return 0, err
	}
	h.size = v.Size
	return v.Size, nil
}

// Move implements room.Held.
func (h *held) Move(ctx context.Context, i tidemark.SessionInfo, from room.Place, stmts ...tidemark.Stmt) error {
	s := h.s
	all := append(s.logStmts(logFrom(i, from), h.r.Log),
		tidemark.Stmt{SQL: `UPDATE runs SET log = ? WHERE id = ?`, Args: []any{i.ID, h.r.ID}, Want: 1},
		tidemark.Stmt{SQL: `UPDATE heads SET log = ?, title = CASE title WHEN '' THEN ? ELSE title END, active = ?, messages = ?, context = ?, prompt = '' WHERE key = ? AND log = ?`,
			Args: []any{i.ID, clip.Bytes(i.Title, maxTitle), i.UpdatedAt.UnixMilli(), i.Messages, int64(i.ContextTokens), string(s.Key), h.r.Log}, Want: 1},
		s.dueStmt(room.DueIndex, i.UpdatedAt, fmt.Sprint(host.LogEnd)))
	if err := s.step(ctx, h.r, stateDone, append(append(all, stmts...), s.endStmts(outboxRetry)...)...); err != nil {
		return err
	}
	h.r.Log = i.ID
	s.lineage.Forget()
	if r, ok := room.Find[room.Indexer](s.rooms); ok {
		r.Came()
	}
	return nil
}
