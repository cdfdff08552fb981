// Package snapshots is the room that holds branches of a conversation against each other: [Room.Compare] says where two
// part and what each has for itself, and [Room.Merge] brings the outcome of one back as a note. Snapshots and branches
// themselves are of the session. Begin with Room.
package snapshots

import (
	"context"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/room"
)

// tables are made with the first merge.
var tables = []string{
	// Which outcome of a branch, up to its last message, stands as a note in which log.
	`CREATE TABLE merges(log TEXT NOT NULL, seq INTEGER NOT NULL, target TEXT NOT NULL, hash TEXT NOT NULL, entry TEXT NOT NULL,
		PRIMARY KEY(log, seq, target, hash)) WITHOUT ROWID`,
}

// space is the name of the tables' version.
const space = "session_merges"

// Room compares and merges branches of one conversation.
type Room struct{ room.Ports }

// Make makes the room.
func Make(p room.Ports) any { return &Room{p} }

// Migrate makes the tables.
func Migrate(ctx context.Context, db tidemark.DB) error { return host.Migrate(ctx, db, space, tables) }
