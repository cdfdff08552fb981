// Package snapshots holds the rooms of the places of a conversation. [Room] takes snapshots and makes branches of them,
// [Merges] holds branches against each other and brings the outcome of one back, [Carry] writes a snapshot as an archive
// and reads one into an empty session. Begin with Room, Take and Branch.
package snapshots

import (
	"context"
	"fmt"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/room"
	"github.com/tidemark-ai/tidemark/snapshot"
)

// tables are made with the first snapshot, or the first branch, of a database. Nothing in them is changed but
// whether a snapshot is still told of: it is a place in a log, and a log only grows.
var tables = room.Tables{Space: "session_snapshots", Steps: []string{
	// What an agent keeps beside the log, as it was there: state. gone is one that was removed: its row stays, so that
	// nothing brings it back, a command that is carried out again or an archive of it. Conversations that share a database, as natively those
	// of an agent do, may each have read the same snapshot in: root is whose it is.
	`CREATE TABLE snapshots(
		id TEXT NOT NULL, root TEXT NOT NULL, log TEXT NOT NULL, seq INTEGER NOT NULL, parent TEXT NOT NULL DEFAULT '',
		created INTEGER NOT NULL, node TEXT NOT NULL, state TEXT NOT NULL DEFAULT '{}', gone INTEGER NOT NULL DEFAULT 0,
		PRIMARY KEY(id, root)) WITHOUT ROWID`,
	`CREATE INDEX snapshots_root ON snapshots(root, created)`,
	// A log that continues a snapshot. archived is how far the archives of its base held its history when it began: what
	// the base archives later, it archives again itself. Without a node it is a session that an archive was read into.
	`CREATE TABLE branches(
		log TEXT PRIMARY KEY, key TEXT NOT NULL, snapshot TEXT NOT NULL, orientation TEXT NOT NULL DEFAULT '', archived INTEGER NOT NULL DEFAULT 0,
		created INTEGER NOT NULL, node TEXT NOT NULL DEFAULT '') WITHOUT ROWID`,
	`CREATE INDEX branches_key ON branches(key, created)`,
}}

// Room takes snapshots of a conversation and makes branches of it.
type Room struct {
	room.Self
	room.Work
	room.Mail
	room.Past
	Log *host.Log
}

// Makers make the rooms of this package.
func Makers() []room.Maker { return []room.Maker{Make, MakeMerges, MakeCarry} }

// Make makes the room.
func Make(p room.Ports) any { return newRoom(p) }

func newRoom(p room.Ports) *Room { return &Room{p.Self, p.Work, p.Mail, p.Past, p.Log} }

var (
	_ room.Tabler   = (*Room)(nil)
	_ room.Reporter = (*Room)(nil)
	_ room.Answerer = (*Room)(nil)
	_ room.Brancher = (*Room)(nil)
)

// Tables implements room.Tabler.
func (s *Room) Tables() room.Tables { return tables }

// may refuses what a client keeps itself: its own branches are tracks.
func (s *Room) may() error {
	if s.Key.Channel() == tidemark.ChannelProxy {
		return fmt.Errorf("%s: its client keeps the history itself, so that snapshots and branches of it are for that client to make: %w", s.Key, tidemark.ErrInvalid)
	}
	return nil
}

// head is the session as its row has it.
type head struct {
	log, title string
	messages   int
	context    tidemark.Tokens
}

func (s *Room) head(ctx context.Context) (head, error) {
	rows, err := s.DB.Query(ctx, `SELECT log, title, messages, context FROM heads WHERE key = ? LIMIT 1`, string(s.Key))
	if err != nil {
		return head{}, fmt.Errorf("read session %s: %w", s.Key, err)
	}
	if len(rows) == 0 {
		return head{}, fmt.Errorf("session %s: %w", s.Key, tidemark.ErrNotFound)
	}
	r := rows[0]
	return head{r.Text(0), r.Text(1), int(r.Int(2)), tidemark.Tokens(r.Int(3))}, nil
}

// one asks the tables for a row, nil for none.
func (s *Room) one(ctx context.Context, sql string, args ...any) (tidemark.Row, error) {
	rows, err := s.Made.Query(ctx, tables, sql, args...)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	return rows[0], nil
}

// find reads a snapshot of this conversation.
func (s *Room) find(ctx context.Context, id string) (room.Place, error) {
	return s.findAs(ctx, id, false)
}

// findAs is find, also of one that was removed if gone is set.
func (s *Room) findAs(ctx context.Context, id string, gone bool) (room.Place, error) {
	most := 0
	if gone {
		most = 1
	}
	row, err := s.one(ctx, `SELECT log, seq, node, state FROM snapshots WHERE id = ? AND root = ? AND gone <= ? LIMIT 1`, id, string(s.Key.Root()), most)
	if err != nil {
		return room.Place{}, fmt.Errorf("read snapshot %.80q: %w", id, err)
	}
	if row == nil {
		return room.Place{}, fmt.Errorf("snapshot %.80q of %s: %w", id, s.Key.Root(), tidemark.ErrNotFound)
	}
	n := room.Place{Log: row.Text(0), Seq: row.Int(1)}
	if err = json.Unmarshal(row.Bytes(2), &n.Node); err == nil {
		err = json.Unmarshal(row.Bytes(3), &n.State)
	}
	if err != nil {
		return room.Place{}, fmt.Errorf("read snapshot %s: %w", id, err)
	}
	return n, nil
}

// branch returns the node of the branch that a log is of; none is tidemark.ErrNotFound.
func (s *Room) branch(ctx context.Context, log string) (n snapshot.Node, err error) {
	row, err := s.one(ctx, `SELECT node FROM branches WHERE log = ? AND node <> '' LIMIT 1`, log)
	if err == nil && row == nil {
		err = tidemark.ErrNotFound
	}
	if err != nil {
		return n, fmt.Errorf("read branch of %s: %w", log, err)
	}
	return n, json.Unmarshal(row.Bytes(0), &n)
}

// taken returns the id of the first snapshot at a position of a log, "" for none.
func (s *Room) taken(ctx context.Context, log string, seq int64) (string, error) {
	row, err := s.one(ctx, `SELECT id FROM snapshots WHERE root = ? AND log = ? AND seq = ? AND gone = 0 ORDER BY created LIMIT 1`, string(s.Key.Root()), log, seq)
	if err != nil || row == nil {
		return "", err
	}
	return row.Text(0), nil
}

// parentOf is the snapshot that a log continues, "" for none.
func (s *Room) parentOf(ctx context.Context, log string) (string, error) {
	row, err := s.one(ctx, `SELECT snapshot FROM branches WHERE log = ? LIMIT 1`, log)
	if err != nil || row == nil {
		return "", err
	}
	return row.Text(0), nil
}

// BaseArchived implements room.Brancher.
func (s *Room) BaseArchived(ctx context.Context, log string) (int64, error) {
	row, err := s.one(ctx, `SELECT archived FROM branches WHERE log = ? LIMIT 1`, log)
	if err != nil || row == nil {
		return 0, err
	}
	return row.Int(0), nil
}
