package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/room"
	"github.com/tidemark-ai/tidemark/snapshot"
)

// snapshotTables are made with the first snapshot, or the first branch, of a database. Nothing in them is changed but
// whether a snapshot is still told of: it is a place in a log, and a log only grows.
var snapshotTables = room.Tables{Space: "session_snapshots", Steps: []string{
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

// SnapshotOptions say what a snapshot is called and where it is taken. The zero value is the newest message, by the
// session's title.
type SnapshotOptions struct {
	Name        string           `json:"name,omitempty"` // a label; "" is made of the title, or the time
	Description string           `json:"description,omitempty"`
	Tags        []string         `json:"tags,omitempty"`
	At          tidemark.EntryID `json:"at,omitempty"` // the last message of it; "" is the newest that it can end with

	id   string // of what may be asked for twice: one that is there is taken for it
	most int    // of the conversation; 0 is MaxNodes
	more int    // that are made with it: its branch
}

// Snapshot names a place in the session: its messages up to there, as they are shown. It costs a row, copies nothing
// and never changes. While a turn is between a call and its result it is taken before that turn's call.
//
// # Errors
//
// tidemark.ErrInvalid for a name or a place that cannot be one, tidemark.ErrNotFound for a message that is not of this
// session.
func (s *Session) Snapshot(ctx context.Context, o SnapshotOptions) (snapshot.Node, error) {
	made, stmts, err := s.snapshotStmts(ctx, o)
	if err == nil && len(stmts) > 0 {
		err = s.DB.Tx(ctx, stmts)
	}
	if err != nil {
		return snapshot.Node{}, fmt.Errorf("snapshot of %s: %w", s.Key, err)
	}
	s.tellNow(ctx, made.Node)
	s.tellSoon()
	return made.Node, nil
}

// keptNow is what rooms keep now of messages up to a place.
func (s *Session) keptNow(ctx context.Context, at spot) (room.State, error) {
	if k, ok := Room[room.Keeper](s); ok {
		return k.State(ctx, at.seq, at.past)
	}
	return room.State{}, nil
}

// keptStmts give a new session what a snapshot of another kept.
func (s *Session) keptStmts(ctx context.Context, key tidemark.Key, of room.Place) ([]tidemark.Stmt, error) {
	if k, ok := Room[room.Keeper](s); ok {
		return k.Restore(ctx, key, of.Session, of.Seq, of.State)
	}
	return nil, nil
}

// snapshotStmts returns a snapshot and what stores it, nothing for one that is there.
func (s *Session) snapshotStmts(ctx context.Context, o SnapshotOptions) (room.Place, []tidemark.Stmt, error) {
	if err := s.mayBranch(); err != nil {
		return room.Place{}, nil, err
	}
	if err := o.check(); err != nil {
		return room.Place{}, nil, err
	}
	if err := s.made.Open(ctx, snapshotTables); err != nil {
		return room.Place{}, nil, err
	}
	if o.id != "" {
		if n, err := s.snapshotAs(ctx, o.id, true); !errors.Is(err, tidemark.ErrNotFound) {
			return n, nil, err
		}
	}
	if err := s.haveRoom(ctx, cmp.Or(o.most, MaxNodes), 1+o.more); err != nil {
		return room.Place{}, nil, err
	}
	h, err := s.head(ctx)
	if err != nil {
		return room.Place{}, nil, err
	}
	p, err := s.placeOf(ctx, h.Log, o.At)
	if err != nil {
		return room.Place{}, nil, err
	}
	state, err := s.keptNow(ctx, p) // at once: what follows takes a while, and a card of later is of what was said later
	if err != nil {
		return room.Place{}, nil, err
	}
	now := s.Runtime.Now()
	out := room.Place{Log: h.Log, Seq: p.seq, State: state, Node: snapshot.Node{
		ID: cmp.Or(o.id, snapID(tidemark.NewID(now))), Kind: snapshot.KindSnapshot, Of: snapshot.OfSession, Session: string(s.Key),
		Name: cmp.Or(o.Name, snapshot.Label(h.Title), now.In(s.settings().Zone).Format("2006-01-02 15.04.05")), Description: o.Description, Tags: o.Tags,
		Created: now.UTC().Truncate(time.Millisecond)}}
	if out.Parent, err = s.parentOf(ctx, h.Log); err != nil {
		return out, nil, err
	}
	if out.Hash, err = s.log.ChainAt(ctx, h.Log, p.seq); err != nil {
		return out, nil, err
	}
	if out.Messages, _, err = s.log.Count(ctx, h.Log, host.Range{From: 1, To: p.seq}, 0); err != nil {
		return out, nil, err
	}
	if out.Tokens, err = s.weighAt(ctx, h, p); err != nil {
		return out, nil, err
	}
	return out, append(s.storeSnapshot(out), s.tellStmt(out.Node)...), nil
}

// snapID makes the id of a snapshot of a [tidemark.NewID].
func snapID(id string) string { return "snap-" + strings.ToLower(id) }

// storeSnapshot is the row of a snapshot.
func (s *Session) storeSnapshot(n room.Place) []tidemark.Stmt {
	return []tidemark.Stmt{{SQL: `INSERT INTO snapshots(id, root, log, seq, parent, created, node, state) VALUES(?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT(id, root) DO NOTHING`,
		Args: []any{n.ID, string(s.Key.Root()), n.Log, n.Seq, n.Parent, n.Created.UnixMilli(), mustJSON(n.Node), mustJSON(n.State)}, Want: 1}}
}

// mayBranch refuses what a client keeps itself: its own branches are tracks.
func (s *Session) mayBranch() error {
	if Tracked(s.Key) {
		return fmt.Errorf("%s: its client keeps the history itself, so that snapshots and branches of it are for that client to make: %w", s.Key, tidemark.ErrInvalid)
	}
	return nil
}

func (o SnapshotOptions) check() error {
	if o.Name != "" {
		if err := snapshot.CheckName(o.Name); err != nil {
			return err
		}
	}
	if err := snapshot.CheckDescription(o.Description); err != nil {
		return err
	}
	return snapshot.CheckTags(o.Tags)
}

// snapshotOf reads a snapshot of this conversation.
func (s *Session) snapshotOf(ctx context.Context, id string) (room.Place, error) {
	return s.snapshotAs(ctx, id, false)
}

// snapshotAs is snapshotOf, also of one that was removed if gone is set.
func (s *Session) snapshotAs(ctx context.Context, id string, gone bool) (room.Place, error) {
	most := 0
	if gone {
		most = 1
	}
	rows, err := s.made.Query(ctx, snapshotTables, `SELECT log, seq, node, state FROM snapshots WHERE id = ? AND root = ? AND gone <= ? LIMIT 1`, id, string(s.Key.Root()), most)
	if err != nil {
		return room.Place{}, fmt.Errorf("read snapshot %.80q: %w", id, err)
	}
	if len(rows) == 0 {
		return room.Place{}, fmt.Errorf("snapshot %.80q of %s: %w", id, s.Key.Root(), tidemark.ErrNotFound)
	}
	n := room.Place{Log: rows[0].Text(0), Seq: rows[0].Int(1)}
	if err = json.Unmarshal(rows[0].Bytes(2), &n.Node); err == nil {
		err = json.Unmarshal(rows[0].Bytes(3), &n.State)
	}
	if err != nil {
		return room.Place{}, fmt.Errorf("read snapshot %s: %w", id, err)
	}
	return n, nil
}

// parentOf is the snapshot that a log continues, "" for none.
func (s *Session) parentOf(ctx context.Context, log string) (string, error) {
	rows, err := s.made.Query(ctx, snapshotTables, `SELECT snapshot FROM branches WHERE log = ? LIMIT 1`, log)
	if err != nil || len(rows) == 0 {
		return "", err
	}
	return rows[0].Text(0), nil
}

// shower is an [Agent] that keeps the tree of all snapshots.
type shower interface {
	// Snapshots takes up nodes; the same one twice is one.
	Snapshots(ctx context.Context, nodes []snapshot.Node) error
}

// tellStmt has the agent told of a snapshot or branch. Conversations that share a database may each have the same one.
func (s *Session) tellStmt(n snapshot.Node) []tidemark.Stmt {
	if _, ok := s.Agent.(shower); !ok {
		return nil
	}
	return []tidemark.Stmt{s.outboxStmt("snapshot:"+n.ID+" "+n.Session, outSnapshot, n), s.dueStmt(dueOutbox, s.Runtime.Now(), "")}
}

// tellSnapshot hands one to the agent.
func (s *Session) tellSnapshot(ctx context.Context, raw []byte) error {
	var n snapshot.Node
	if err := decode(raw, &n); err != nil {
		return err
	}
	to, ok := s.Agent.(shower)
	if !ok {
		return nil
	}
	return to.Snapshots(ctx, []snapshot.Node{n})
}

// tellWait is how long a caller waits for the agent to hear of what was made.
const tellWait = 2 * time.Second

// tellNow has the agent know of nodes before their maker does, who may ask it for one next. An agent that is slow, or
// fails, hears of them from the outbox.
func (s *Session) tellNow(ctx context.Context, nodes ...snapshot.Node) {
	to, ok := s.Agent.(shower)
	if !ok {
		return
	}
	wait, told := context.WithCancel(ctx)
	s.Runtime.Go(func() {
		defer told()
		if err := to.Snapshots(s.life, nodes); err != nil {
			s.warn("tell of a snapshot", err)
		}
	})
	_ = s.Runtime.Sleep(wait, tellWait)
	told()
}

// tellSoon tells the agent behind what the caller waits for.
func (s *Session) tellSoon() {
	s.Runtime.Go(func() {
		s.report(s.life)
		s.setAlarm(s.life)
	})
}
