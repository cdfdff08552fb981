package session

import (
	"context"
	"slices"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/room"
	"github.com/tidemark-ai/tidemark/room/approvals"
	"github.com/tidemark-ai/tidemark/room/reflection"
	"github.com/tidemark-ai/tidemark/room/search"
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
	for _, r := range []room.Tabler{&search.Pieces{}, &search.Skips{}, &task.Room{}, &approvals.Room{}, &snapshots.Room{}, &spool.Room{}, &vectors.Room{}, &sittings.Room{}, &reflection.Room{}} {
		all = append(all, r.Tables())
	}
	for _, t := range all {
		if err == nil {
			err = t.Open(ctx, db)
		}
	}
	return log, err
}
