package session

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/room"
	"github.com/tidemark-ai/tidemark/room/approvals"
	"github.com/tidemark-ai/tidemark/room/reflection"
	"github.com/tidemark-ai/tidemark/room/sittings"
	"github.com/tidemark-ai/tidemark/room/snapshots"
	"github.com/tidemark-ai/tidemark/room/spool"
	"github.com/tidemark-ai/tidemark/room/task"
	"github.com/tidemark-ai/tidemark/room/vectors"
)

// GuestNodes is how many snapshots a conversation has when only its owner takes more.
const GuestNodes = guestNodes

// ReadEpisode is a page of an episode of the current log.
func (s *Session) ReadEpisode(ctx context.Context, name string, offset int) (string, error) {
	h, err := s.head(ctx)
	if err != nil {
		return "", err
	}
	return s.readEpisode(ctx, h.Log, name, offset)
}

// MigrateAll makes the tables that sessions make with the first of what they hold, too.
func MigrateAll(ctx context.Context, db tidemark.DB) (*host.Log, error) {
	log, err := Migrate(ctx, db)
	all := slices.Clone(coreTables)
	for _, r := range []room.Tabler{&task.Room{}, &approvals.Room{}, &snapshots.Room{}, &spool.Room{}, &vectors.Room{}, &sittings.Room{}, &reflection.Room{}} {
		all = append(all, r.Tables())
	}
	for _, t := range all {
		if err == nil {
			err = t.Open(ctx, db)
		}
	}
	return log, err
}

// Skips returns the newest turns that recall leaves out, newest first.
func (s *Session) Skips(ctx context.Context, limit int) ([]SkippedTurn, error) {
	there, err := s.made.Has(ctx, skipTables)
	if err != nil || !there {
		return nil, err
	}
	rows, err := s.DB.Query(ctx, `SELECT at, ids, bytes FROM skips WHERE key = ? AND state = ? ORDER BY at DESC, run DESC LIMIT ?`, string(s.Key), skipSkipped, min(limit, maxSkipped))
	if err != nil {
		return nil, fmt.Errorf("list skipped turns: %w", err)
	}
	out := make([]SkippedTurn, len(rows))
	for i, r := range rows {
		out[i] = SkippedTurn{At: time.UnixMilli(r.Int(0)).UTC(), Bytes: r.Int(2)}
		if err := json.Unmarshal(r.Bytes(1), &out[i].Entries); err != nil {
			return nil, fmt.Errorf("list skipped turns: %w", err)
		}
	}
	return out, nil
}

// SkippedTurn is a turn that recall leaves out.
type SkippedTurn struct {
	At      time.Time          `json:"at"`
	Entries []tidemark.EntryID `json:"entries"`
	Bytes   int64              `json:"bytes"`
}
