// Package snapshots is the room that holds branches of a conversation against each other: [Room.Compare] says where two
// part and what each has for itself, and [Room.Merge] brings the outcome of one back as a note. Snapshots and branches
// themselves are of the session. Begin with Room.
package snapshots

import "github.com/tidemark-ai/tidemark/room"

// tables are made with the first merge.
var tables = room.Tables{Space: "session_merges", Steps: []string{
	// Which outcome of a branch, up to its last message, stands as a note in which log.
	`CREATE TABLE merges(log TEXT NOT NULL, seq INTEGER NOT NULL, target TEXT NOT NULL, hash TEXT NOT NULL, entry TEXT NOT NULL,
		PRIMARY KEY(log, seq, target, hash)) WITHOUT ROWID`,
}}

// Room compares and merges branches of one conversation.
type Room struct {
	room.Self
	room.History
	room.Past
}

// Make makes the room.
func Make(p room.Ports) any { return &Room{p.Self, p.History, p.Past} }

// Tables implements room.Tabler.
func (s *Room) Tables() room.Tables { return tables }
