package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/memory"
)

// ledgerTables say what counts no more, and what the nights did. Rows of agent_ledger are never changed. The newest of a
// fact is in force; older ones go when more than ledgerTail have come since.
var ledgerTables = []string{
	`CREATE TABLE agent_ledger(seq INTEGER PRIMARY KEY AUTOINCREMENT, agent TEXT NOT NULL, target INTEGER NOT NULL, action TEXT NOT NULL,
		cause INTEGER NOT NULL, reason TEXT NOT NULL, sources TEXT NOT NULL, who TEXT NOT NULL, at INTEGER NOT NULL, undoes INTEGER NOT NULL DEFAULT 0)`,
	`CREATE INDEX agent_ledger_target ON agent_ledger(agent, target, seq)`,
	// How far the sweep and the night have come.
	`CREATE TABLE agent_nights(agent TEXT PRIMARY KEY, upto INTEGER NOT NULL DEFAULT 0, at INTEGER NOT NULL DEFAULT 0, note TEXT NOT NULL DEFAULT '') WITHOUT ROWID`,
	`CREATE TABLE agent_episodes(agent TEXT NOT NULL, key TEXT NOT NULL, first TEXT NOT NULL, at INTEGER NOT NULL, body TEXT NOT NULL, owner INTEGER NOT NULL,
		PRIMARY KEY(agent, key, first)) WITHOUT ROWID`,
	`CREATE INDEX agent_episodes_at ON agent_episodes(agent, owner, at)`,
	// What we wrote into files of the digest, and are about to write: whatever else is there is a person's.
	`CREATE TABLE agent_digest_files(agent TEXT NOT NULL, path TEXT NOT NULL, hash TEXT NOT NULL DEFAULT '', next TEXT NOT NULL DEFAULT '', edited INTEGER NOT NULL DEFAULT 0, PRIMARY KEY(agent, path)) WITHOUT ROWID`,
}

// ledgerTail is how many rows are kept beside those in force.
const ledgerTail = 500

// actionUndo is the action of a row that takes one back.
const actionUndo memory.Action = "UNDO"

// inForce is true of a fact f that a row of the ledger says counts no more.
const inForce = `EXISTS (SELECT 1 FROM agent_ledger l WHERE l.agent = f.agent AND l.target = f.seq AND l.action <> 'UNDO'
	AND NOT EXISTS (SELECT 1 FROM agent_ledger n WHERE n.agent = l.agent AND n.target = l.target AND n.seq > l.seq))`

// standing is what a query adds to leave out what counts no more.
const standing = " AND NOT " + inForce

// Row is a row of the ledger: that a fact counts no more, or does again.
type Row struct {
	ID      int64         `json:"id"`
	Action  memory.Action `json:"action"` // UPDATE, DELETE or UNDO
	Fact    string        `json:"fact"`
	Path    string        `json:"path"` // the file that has it
	Peer    string        `json:"peer,omitempty"`
	By      string        `json:"by,omitempty"` // the newer fact
	Reason  string        `json:"reason"`
	Sources []string      `json:"sources,omitempty"` // entries that both facts were drawn from
	Who     string        `json:"who"`               // model or person
	At      time.Time     `json:"at"`
	Undoes  int64         `json:"undoes,omitempty"` // of an UNDO: the row that it takes back
	InForce bool          `json:"inForce"`          // no later row of this fact is there
}

// Ledger lists the rows of the ledger, newest first. next is empty on the last page.
func (led *ledger) Ledger(ctx context.Context, cursor string, limit int) (page []Row, next string, err error) {
	limit = pageLimit(limit)
	before, err := parseCursor(cursor)
	if err != nil {
		return nil, "", err
	}
	all, err := host.Read(ctx, led.cfg.DB, "list ledger", ledgerRow, `SELECT l.seq, l.action, f.text, f.path, x.peer, coalesce(b.text, ''), l.reason, l.sources, l.who, l.at, l.undoes,
			NOT EXISTS (SELECT 1 FROM agent_ledger n WHERE n.agent = l.agent AND n.target = l.target AND n.seq > l.seq)
		FROM agent_ledger l JOIN agent_facts f ON f.seq = l.target JOIN agent_extractions x ON x.agent = f.agent AND x.id = f.extraction
		LEFT JOIN agent_facts b ON b.seq = l.cause WHERE l.agent = ? AND l.seq < ? ORDER BY l.seq DESC LIMIT ?`, led.cfg.Name, before, limit+1)
	page, next = paged(all, limit, func(r Row) string { return fmt.Sprint(r.ID) })
	return page, next, err
}

func ledgerRow(r tidemark.Row) (Row, error) {
	row := Row{ID: r.Int(0), Action: memory.Action(r.Text(1)), Fact: r.Text(2), Path: r.Text(3), Peer: r.Text(4), By: r.Text(5), Reason: r.Text(6), Who: r.Text(8),
		At: host.UTC(r.Int(9)), Undoes: r.Int(10), InForce: r.Int(11) != 0}
	return row, json.Unmarshal(r.Bytes(7), &row.Sources)
}

// UndoDecision takes a row of the ledger back by another row: the fact counts again, and no sweep decides on it
// any more. Undoing what is undone already is done.
//
// # Errors
//
// ErrNotFound for an id that no row has, ErrInvalid for one of an UNDO, ErrConflict for one that a later
// decision about the same fact stands over.
func (led *ledger) UndoDecision(ctx context.Context, id int64) error {
	r, err := host.First(ctx, led.cfg.DB, fmt.Sprintf("undo row %d", id), `SELECT action, target, (SELECT seq FROM agent_ledger n WHERE n.agent = l.agent AND n.target = l.target ORDER BY seq DESC LIMIT 1),
			EXISTS (SELECT 1 FROM agent_ledger u WHERE u.agent = l.agent AND u.target = l.target AND u.undoes = l.seq)
		FROM agent_ledger l WHERE agent = ? AND seq = ? LIMIT 1`, led.cfg.Name, id)
	switch {
	case err != nil:
		return err
	case r == nil:
		return fmt.Errorf("row %d of the ledger: %w", id, tidemark.ErrNotFound)
	case memory.Action(r.Text(0)) == actionUndo:
		return fmt.Errorf("row %d of the ledger is an undo itself: %w", id, tidemark.ErrInvalid)
	case r.Int(3) != 0:
		return nil
	case r.Int(2) != id:
		return fmt.Errorf("row %d of the ledger: row %d says something newer of the same fact, undo that: %w", id, r.Int(2), tidemark.ErrConflict)
	}
	err = led.cfg.DB.Tx(ctx, []tidemark.Stmt{{
		SQL: `INSERT INTO agent_ledger(agent, target, action, cause, reason, sources, who, at, undoes)
			SELECT agent, target, 'UNDO', cause, 'taken back', sources, 'person', ?, seq FROM agent_ledger l WHERE agent = ? AND seq = ?
			AND NOT EXISTS (SELECT 1 FROM agent_ledger n WHERE n.agent = l.agent AND n.target = l.target AND n.seq > l.seq)`,
		Args: []any{led.now().UnixMilli(), led.cfg.Name, id}, Want: 1,
	}})
	if errors.Is(err, tidemark.ErrConflict) {
		return fmt.Errorf("row %d of the ledger: a newer row of the same fact came just now, look again: %w", id, err)
	}
	return err
}

// decided is the newest row of the ledger, 0 without one: what counts no more is the same while it is.
func (led *ledger) decided(ctx context.Context) (int64, error) {
	return host.Number(ctx, led.cfg.DB, "read ledger", `SELECT seq FROM agent_ledger WHERE agent = ? ORDER BY seq DESC LIMIT 1`, led.cfg.Name)
}

// supersededPage is how many facts that count no more are read at a time.
const supersededPage = 2000

// superseded returns what some files say that counts no more, folded, by path. What was said again since counts.
func (led *ledger) superseded(ctx context.Context, paths ...string) (map[string]map[string]bool, error) {
	const step = 50
	out := map[string]map[string]bool{}
	for from := 0; from < len(paths); from += step {
		some := paths[from:min(from+step, len(paths))]
		args := []any{led.cfg.Name}
		for _, p := range some {
			args = append(args, p)
		}
		path, fold := "", ""
		for r, err := range host.Pages(ctx, led.cfg.DB, "read ledger", supersededPage, func() []any { return append(slices.Clone(args), path, path, fold) },
			`SELECT f.path, f.fold FROM agent_facts f WHERE f.agent = ? AND f.path IN (`+host.Marks(len(some))+`) AND (f.path > ? OR f.path = ? AND f.fold > ?)
			GROUP BY f.path, f.fold HAVING min(`+inForce+`) ORDER BY f.path, f.fold LIMIT ?`) {
			if err != nil {
				return nil, err
			}
			if path, fold = r.Text(0), r.Text(1); out[path] == nil {
				out[path] = map[string]bool{}
			}
			out[path][fold] = true
		}
	}
	return out, nil
}
