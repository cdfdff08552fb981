package agent

import (
	"context"
	"fmt"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/snapshot"
)

// snapshotTables are the tree of what sessions told. Conversations may have the same one, where it was read in: each tells
// of its own, and of its end. told orders those of one id. One that was removed stays as a row: what tells of its making may
// come behind what tells of its end.
var snapshotTables = []string{
	`CREATE TABLE agent_nodes(agent TEXT NOT NULL, id TEXT NOT NULL, root TEXT NOT NULL, told INTEGER NOT NULL, parent TEXT NOT NULL, created INTEGER NOT NULL,
		node TEXT NOT NULL, gone INTEGER NOT NULL DEFAULT 0, PRIMARY KEY(agent, id, root)) WITHOUT ROWID`,
	`CREATE INDEX agent_nodes_created ON agent_nodes(agent, created, id)`,
}

// maxNodes bounds what one report may hold.
const maxNodes = 1000

// takeNode takes up what a conversation tells of a node: that it has it, and its end.
const takeNode = `INSERT INTO agent_nodes(agent, id, root, told, parent, created, node, gone)
	VALUES(?, ?, ?, (SELECT coalesce(max(told), 0) + 1 FROM agent_nodes WHERE agent = ? AND id = ?), ?, ?, ?, ?)
	ON CONFLICT(agent, id, root) DO UPDATE SET gone = 1 WHERE excluded.gone > agent_nodes.gone`

// isShown is of the row that stands for a node: of the conversations that have it, the first that told of it. That is
// nearly always the only one, and needs no second look.
const isShown = `gone = 0 AND (told = 1 OR NOT EXISTS (SELECT 1 FROM agent_nodes o WHERE o.agent = n.agent AND o.id = n.id AND o.gone = 0 AND o.told < n.told))`

// Snapshots takes up what a session tells of its snapshots and branches. The same one twice is one: none changes but that
// it is removed, and then it stays so. One that several conversations have is there until the last has removed it.
func (d *directory) Snapshots(ctx context.Context, nodes []snapshot.Node) error {
	if len(nodes) == 0 {
		return nil
	}
	if len(nodes) > maxNodes {
		return fmt.Errorf("report %d snapshots, at most %d at once: %w", len(nodes), maxNodes, tidemark.ErrTooLarge)
	}
	stmts := make([]tidemark.Stmt, len(nodes))
	for i, n := range nodes {
		if err := n.Check(); err != nil {
			return fmt.Errorf("report snapshot %.80q: %w", n.ID, err)
		}
		if agent := tidemark.Key(n.Session).Agent(); agent != d.cfg.Name {
			return fmt.Errorf("report snapshot of %.80q to agent %s: %w", n.Session, d.cfg.Name, tidemark.ErrForbidden)
		}
		raw, err := json.Marshal(n)
		if err != nil {
			return fmt.Errorf("report snapshot %s: %w", n.ID, err)
		}
		gone := 0
		if n.Gone {
			gone = 1
		}
		stmts[i] = tidemark.Stmt{SQL: takeNode, Args: []any{d.cfg.Name, n.ID, string(tidemark.Key(n.Session).Root()),
			d.cfg.Name, n.ID, n.Parent, n.Created.UnixMilli(), string(raw), gone}}
	}
	if err := d.cfg.DB.Tx(ctx, stmts); err != nil {
		return fmt.Errorf("report snapshots: %w", err)
	}
	return nil
}

// Tree lists the snapshots and branches of all sessions, the oldest first, or with newest the newest. next is empty on the
// last page. Each is the JSON of a [snapshot.Node], as it was checked and stored: trees are large, and whoever asks wants
// to send them.
func (d *directory) Tree(ctx context.Context, cursor string, limit int, newest bool) (page []json.RawMessage, next string, err error) {
	limit = pageLimit(limit)
	ms, id, _ := strings.Cut(cursor, "@")
	after, err := parseCursor(ms)
	if err != nil {
		return nil, "", err
	}
	order := `(created, id) < (?, ?) ORDER BY created DESC, id DESC`
	if !newest {
		if order = `(created, id) > (?, ?) ORDER BY created, id`; cursor == "" {
			after = -1
		}
	}
	page = []json.RawMessage{}
	rows, err := d.cfg.DB.Query(ctx, `SELECT node, created, id FROM agent_nodes n WHERE agent = ? AND `+isShown+` AND `+order+` LIMIT ?`,
		d.cfg.Name, after, id, limit+1)
	if err != nil {
		return nil, "", fmt.Errorf("list snapshots: %w", err)
	}
	rows, next = paged(rows, limit, func(r tidemark.Row) string { return fmt.Sprintf("%d@%s", r.Int(1), r.Text(2)) })
	for _, r := range rows {
		page = append(page, r.Bytes(0))
	}
	return page, next, nil
}

// Snapshot returns one of them by its id, which for a branch is its key; an unknown one is tidemark.ErrNotFound.
func (d *directory) Snapshot(ctx context.Context, id string) (snapshot.Node, error) {
	return host.One(ctx, d.cfg.DB, "read snapshots", fmt.Sprintf("snapshot %.80q", id), host.JSON[snapshot.Node], `SELECT node FROM agent_nodes n WHERE agent = ? AND id = ? AND `+isShown+` LIMIT 1`, d.cfg.Name, id)
}
