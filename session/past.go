package session

import (
	"context"
	"fmt"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/archive"
	"github.com/tidemark-ai/tidemark/internal/clip"
	"github.com/tidemark-ai/tidemark/parts"
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

// counts is what stands in a log itself.
func (s *Session) counts(ctx context.Context, log string) (room.Counts, error) {
	archived, err := s.parts.Of(ctx, log)
	if err != nil {
		return room.Counts{}, err
	}
	rows, err := s.DB.Query(ctx, `SELECT count(*), count(*) FILTER (WHERE kind = 'message') FROM entries WHERE log = ? LIMIT 1`, log)
	if err != nil {
		return room.Counts{}, fmt.Errorf("count entries: %w", err)
	}
	return room.Counts{Entries: int(rows[0].Int(0)), Messages: int(rows[0].Int(1)), Parts: len(archived)}, nil
}

// partPorts are what the keeper of archives is given.
func partPorts(s *Session) parts.Ports {
	return parts.Ports{Key: s.Key, DB: s.DB, Blobs: s.Blobs, Runtime: s.Runtime, Log: s.log, Lineage: &s.lineage, Messages: s.Reader.Messages,
		Tell: func(i archive.Info) tidemark.Stmt { return s.outboxStmt("archive:"+i.Key, outArchive, i) },
		BaseArchived: func(ctx context.Context, log string) (int64, error) {
			if b, ok := room.Find[room.Brancher](s.rooms); ok {
				return b.BaseArchived(ctx, log)
			}
			return 0, nil
		}}
}
