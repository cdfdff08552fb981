package session

import (
	"context"
	"slices"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/room"
	"github.com/tidemark-ai/tidemark/room/anatomy"
	"github.com/tidemark-ai/tidemark/room/approvals"
	episodic "github.com/tidemark-ai/tidemark/room/episodes"
	"github.com/tidemark-ai/tidemark/room/outbound"
	"github.com/tidemark-ai/tidemark/room/reflection"
	"github.com/tidemark-ai/tidemark/room/search"
	"github.com/tidemark-ai/tidemark/room/selfcheck"
	"github.com/tidemark-ai/tidemark/room/sittings"
	"github.com/tidemark-ai/tidemark/room/snapshots"
	"github.com/tidemark-ai/tidemark/room/spool"
	"github.com/tidemark-ai/tidemark/room/task"
	"github.com/tidemark-ai/tidemark/room/toolset"
	"github.com/tidemark-ai/tidemark/room/vectors"
)

// MigrateAll makes the tables that sessions make with the first of what they hold, too.
func MigrateAll(ctx context.Context, db tidemark.DB) (*host.Log, error) {
	log, err := Migrate(ctx, db)
	all := slices.Clone(coreTables)
	for _, r := range []room.Tabler{&search.Pieces{}, &search.Skips{}, &anatomy.Room{}, &selfcheck.Room{}, &outbound.Room{}, &task.Room{}, &approvals.Room{}, &episodic.Room{}, &toolset.Room{}, &snapshots.Room{}, &snapshots.Merges{}, &spool.Room{}, &vectors.Room{}, &sittings.Room{}, &reflection.Room{}} {
		all = append(all, r.Tables())
	}
	for _, t := range all {
		if err == nil {
			err = t.Open(ctx, db)
		}
	}
	return log, err
}
