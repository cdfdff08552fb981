package snapshots

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/snapshot"
)

// Bounds of the snapshots and branches of one conversation, all its branches together. Whatever lists, draws or looks
// for a name reads them all: ten thousand take some tens of milliseconds and 4 MB.
const (
	MaxNodes   = 10_000
	GuestNodes = 200 // beyond which only the owner takes more: others ask over a channel, and cannot remove one
)

// fits refuses more snapshots and branches than a conversation may have: so many are to be made.
func (s *Room) fits(ctx context.Context, most, made int) error {
	root := string(s.Key.Root())
	rows, err := s.Made.Query(ctx, tables, `SELECT (SELECT count(*) FROM snapshots WHERE root = ? AND gone = 0) + (SELECT count(*) FROM branches WHERE key BETWEEN ? AND ? AND node <> '') LIMIT 1`,
		root, root+"#", root+"#~")
	if err != nil {
		return fmt.Errorf("count snapshots of %s: %w", root, err)
	}
	if len(rows) == 0 || rows[0].Int(0)+int64(made) <= int64(most) {
		return nil
	}
	if most < MaxNodes {
		return fmt.Errorf("this conversation has %d snapshots and branches, and only its owner may take more; the owner can also remove some: %w", rows[0].Int(0), tidemark.ErrTooLarge)
	}
	return fmt.Errorf("this conversation has %d snapshots and branches, at most %d: remove a snapshot that no branch was made of, or export one and import it into a conversation of its own: %w",
		rows[0].Int(0), most, tidemark.ErrTooLarge)
}

// Bounds of a page of snapshots.
const (
	defaultNodes = 100
	pageNodes    = 1000
)

// List lists the snapshots and branches of the whole conversation, whichever of its sessions they are of, in the
// order in which they were made, or with newest the other way round. next, the cursor of the next page, is "" on the
// last one.
//
// # Errors
//
// tidemark.ErrInvalid for a cursor that no page returned.
func (s *Room) List(ctx context.Context, cursor string, limit int, newest bool) (page []snapshot.Node, next string, err error) {
	page = []snapshot.Node{}
	if limit <= 0 {
		limit = defaultNodes
	}
	limit = min(limit, pageNodes)
	root := string(s.Key.Root())
	where, order, args := "", "ORDER BY 1, 2, 3", []any{root, root + "#", root + "#~"}
	if newest {
		order = "ORDER BY 1 DESC, 2 DESC, 3 DESC"
	}
	if cursor != "" {
		at := strings.SplitN(cursor, "@", 3)
		made, bad := strconv.ParseInt(at[0], 10, 64)
		if len(at) != 3 || bad != nil || at[1] != "0" && at[1] != "1" {
			return nil, "", fmt.Errorf("cursor %.40q: give back what the last page returned: %w", cursor, tidemark.ErrInvalid)
		}
		where = "WHERE (created, kind, name) > (?, ?, ?)"
		if newest {
			where = "WHERE (created, kind, name) < (?, ?, ?)"
		}
		args = append(args, made, int64(at[1][0]-'0'), at[2])
	}
	rows, err := s.Made.Query(ctx, tables, `SELECT created, kind, name, node FROM (SELECT created, 0 AS kind, id AS name, node FROM snapshots WHERE root = ? AND gone = 0
		UNION ALL SELECT created, 1, log, node FROM branches WHERE key BETWEEN ? AND ? AND node <> '') `+where+` `+order+` LIMIT ?`, append(args, limit+1)...)
	if err != nil {
		return nil, "", fmt.Errorf("list snapshots of %s: %w", root, err)
	}
	for i, r := range rows {
		if len(page) == limit {
			last := rows[i-1]
			return page, fmt.Sprintf("%d@%d@%s", last.Int(0), last.Int(1), last.Text(2)), nil
		}
		var n snapshot.Node
		if err := json.Unmarshal(r.Bytes(3), &n); err != nil {
			return nil, "", fmt.Errorf("read snapshot %s: %w", r.Text(2), err)
		}
		page = append(page, n)
	}
	return page, "", nil
}

// Node returns one of them by its id: a branch's is its key. An unknown one is tidemark.ErrNotFound.
func (s *Room) Node(ctx context.Context, id string) (snapshot.Node, error) {
	if n, err := s.find(ctx, id); err == nil || !errors.Is(err, tidemark.ErrNotFound) {
		return n.Node, err
	}
	if tidemark.Key(id).Root() == s.Key.Root() {
		rows, err := s.Made.Query(ctx, tables, `SELECT node FROM branches WHERE key = ? AND node <> '' ORDER BY created LIMIT 1`, id)
		if err != nil {
			return snapshot.Node{}, fmt.Errorf("read branch %.80q: %w", id, err)
		}
		if len(rows) > 0 {
			var n snapshot.Node
			return n, json.Unmarshal(rows[0].Bytes(0), &n)
		}
	}
	return snapshot.Node{}, fmt.Errorf("snapshot %.80q: %w", id, tidemark.ErrNotFound)
}

// Remove takes a snapshot out of all lists, and its name with it: no branch begins there any more. No message
// goes with it, and another one may be taken at the same place. Removed twice is removed; the node is what it was.
//
// # Errors
//
// tidemark.ErrNotFound for one that never was, tidemark.ErrInvalid for a branch, tidemark.ErrConflict for a snapshot that
// a branch was made of: the tree would not hold together.
func (s *Room) Remove(ctx context.Context, id string) (snapshot.Node, error) {
	n, err := s.remove(ctx, id)
	if err != nil {
		return snapshot.Node{}, fmt.Errorf("remove %.80q: %w", id, err)
	}
	gone := n
	gone.Gone = true
	s.tellNow(ctx, gone)
	s.tellSoon()
	return n, nil
}

func (s *Room) remove(ctx context.Context, id string) (snapshot.Node, error) {
	if err := s.may(); err != nil {
		return snapshot.Node{}, err
	}
	if strings.Contains(id, "#") {
		return snapshot.Node{}, fmt.Errorf("it is a branch, which is a session and stays: only snapshots are removed: %w", tidemark.ErrInvalid)
	}
	n, err := s.findAs(ctx, id, true)
	if err != nil {
		return snapshot.Node{}, err
	}
	root := string(s.Key.Root())
	const made = `FROM branches WHERE snapshot = ? AND (key = ? OR key BETWEEN ? AND ?)`
	of := []any{id, root, root + "#", root + "#~"}
	rows, err := s.DB.Query(ctx, `SELECT key `+made+` ORDER BY created LIMIT 1`, of...)
	if err != nil {
		return snapshot.Node{}, fmt.Errorf("read branches: %w", err)
	}
	if len(rows) > 0 {
		return snapshot.Node{}, fmt.Errorf("the session %s began at it, and would have no parent in the tree: %w", rows[0].Text(0), tidemark.ErrConflict)
	}
	gone := n.Node
	gone.Gone = true
	stmts := []tidemark.Stmt{{SQL: `UPDATE snapshots SET gone = 1 WHERE id = ? AND root = ? AND NOT EXISTS (SELECT 1 ` + made + `)`, Args: append([]any{id, root}, of...), Want: 1}}
	stmts = append(stmts, s.tellStmts(gone, "snapshot-gone:"+id)...) // beside what tells of its making, in whatever order
	if err := s.DB.Tx(ctx, stmts); errors.Is(err, tidemark.ErrConflict) {
		return snapshot.Node{}, fmt.Errorf("a session began at it just now, and would have no parent in the tree: %w", tidemark.ErrConflict)
	} else if err != nil {
		return snapshot.Node{}, err
	}
	return n.Node, nil
}
