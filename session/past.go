package session

import (
	"context"
	"fmt"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/internal/clip"
	"github.com/tidemark-ai/tidemark/room"
)

// past is what a room has of the history at its places.
func (s *Session) past() room.Past {
	return room.Past{Weigh: s.weighAt, Trim: s.trimAt, Archived: s.parts.UpTo, Begin: s.beginAt,
		State: func(ctx context.Context, upTo int64, past bool) (room.State, error) {
			if k, ok := room.Find[room.Keeper](s.rooms); ok {
				return k.State(ctx, upTo, past)
			}
			return room.State{}, nil
		},
		Restore: func(ctx context.Context, to tidemark.Key, from room.Place) ([]tidemark.Stmt, error) {
			if k, ok := room.Find[room.Keeper](s.rooms); ok {
				return k.Restore(ctx, to, from.Session, from.Seq, from.State)
			}
			return nil, nil
		},
		Enter: func(ctx context.Context, i tidemark.SessionInfo) error {
			i.Title, i.Window = clip.Bytes(i.Title, maxTitle), s.settings().Window
			return s.Agent.Report(ctx, i, nil)
		}}
}

// beginAt makes another session, in a log of its own that goes on from a place, with the settings of the session that it is
// of. It tells its agent that it is there, if nobody else does before.
func (s *Session) beginAt(i tidemark.SessionInfo, from room.Place) []tidemark.Stmt {
	at := i.CreatedAt.UnixMilli()
	due := s.dueStmt(dueOutbox, i.CreatedAt, "")
	due.Args[0] = string(i.Key)
	return append(s.logStmts(logFrom(i, from), ""), tidemark.Stmt{SQL: `INSERT INTO heads(key, log, title, created, active, messages, context, settings)
			SELECT ?, ?, ?, ?, ?, ?, ?, json_remove(coalesce((SELECT settings FROM heads WHERE key = ?), '{}'), '$.title') WHERE true ON CONFLICT(key) DO NOTHING`,
		Args: []any{string(i.Key), i.ID, clip.Bytes(i.Title, maxTitle), at, at, i.Messages, int64(i.ContextTokens), from.Session}, Want: 1}, due)
}

// logFrom is a log that goes on from a place.
func logFrom(i tidemark.SessionInfo, from room.Place) host.Info {
	return host.Info{ID: i.ID, Key: i.Key, BaseLog: from.Log, BaseSeq: from.Seq, Created: i.CreatedAt}
}

// held is the session's run in the hands of a room.
type held struct {
	s *Session
	r *run
}

// Write implements room.Held.
func (h held) Write(ctx context.Context, stmts ...tidemark.Stmt) error {
	return h.s.step(ctx, h.r, stateCalling, stmts...)
}

// Move implements room.Held.
func (h held) Move(ctx context.Context, i tidemark.SessionInfo, from room.Place, stmts ...tidemark.Stmt) error {
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
