package session

import (
	"context"
	"fmt"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/clip"
	"github.com/tidemark-ai/tidemark/room"
)

// past is what a room has of the history at its places.
func (s *Session) past() room.Past {
	return room.Past{Weigh: s.weighAt, Trim: s.trimAt, Archived: s.archivedTo, Begin: s.beginAt,
		State: func(ctx context.Context, upTo int64, past bool) (room.State, error) {
			if k, ok := Room[room.Keeper](s); ok {
				return k.State(ctx, upTo, past)
			}
			return room.State{}, nil
		},
		Restore: func(ctx context.Context, to tidemark.Key, from room.Place) ([]tidemark.Stmt, error) {
			if k, ok := Room[room.Keeper](s); ok {
				return k.Restore(ctx, to, from.Session, from.Seq, from.State)
			}
			return nil, nil
		},
		Enter: func(ctx context.Context, i tidemark.SessionInfo) error {
			i.Title, i.Window = clip.Bytes(i.Title, maxTitle), s.settings().Window
			return s.Agent.Report(ctx, i, nil)
		}}
}

// archivedTo is how far the archives of a history reach, none of which holds more than it up to a position.
func (s *Session) archivedTo(ctx context.Context, log string, upTo int64) (int64, error) {
	parts, err := s.parts(ctx, log)
	last := int64(0)
	for _, p := range parts {
		if p.Last > upTo {
			break
		}
		last = p.Last
	}
	return last, err
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

// counts is what stands in a log itself.
func (s *Session) counts(ctx context.Context, log string) (room.Counts, error) {
	rows, err := s.DB.Query(ctx, `SELECT (SELECT count(*) FROM entries WHERE log = ?), (SELECT count(*) FROM entries WHERE log = ? AND kind = 'message'), (SELECT count(*) FROM parts WHERE log = ?) LIMIT 1`, log, log, log)
	if err != nil {
		return room.Counts{}, fmt.Errorf("count entries: %w", err)
	}
	return room.Counts{Entries: int(rows[0].Int(0)), Messages: int(rows[0].Int(1)), Parts: int(rows[0].Int(2))}, nil
}
