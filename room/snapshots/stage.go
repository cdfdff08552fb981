package snapshots

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/room"
)

// What an import has read stands in logs under a key that no session has, until the archive is known to be whole. One
// that broke off leaves them: its next try goes on from there, so does an import of the same conversation into another
// session, and when nobody tried for a while they go.

const (
	stagingPrefix = "import:"
	stagingKept   = 24 * time.Hour
)

// errAstray is of an archive whose middle this store has, and not its beginning. Of what imports left it can be so behind
// one that took less of it.
var errAstray = fmt.Errorf("this store has it, but not what stands before it in the archive; what earlier imports left was cleared, so try once more: %w", tidemark.ErrConflict)

// staging is the key of logs that are written by an import in work: no session has it.
func (s *Carry) staging() string { return stagingPrefix + string(s.Key) }

// stagedStmt has what an import leaves looked after.
func (s *Carry) stagedStmt() tidemark.Stmt {
	return s.Due(staged, s.Runtime.Now().Add(stagingKept), "")
}

// unstagedStmt ends that, unless something is left.
func (s *Carry) unstagedStmt() tidemark.Stmt {
	stmt := s.Undue(staged)
	stmt.SQL += ` AND NOT EXISTS (SELECT 1 FROM logs WHERE key = ?)`
	stmt.Args = append(stmt.Args, s.staging())
	return stmt
}

// known is an entry as this store has it.
type known struct {
	host.Segment
	kind  string
	hash  string
	chain string
}

// known looks which entries of the page are here. What an import into another session left is this one's from now on.
func (im *carrier) known(ctx context.Context) (map[tidemark.EntryID]known, error) {
	there, others, err := im.look(ctx)
	if err == nil && len(others) > 0 {
		if err = im.inherit(ctx, others); err == nil {
			there, others, err = im.look(ctx)
		}
	}
	if err == nil && len(others) > 0 {
		err = fmt.Errorf("the same conversation is read into %s, or a turn is in work there: try again when that has ended: %w", others[0][len(stagingPrefix):], tidemark.ErrBusy)
	}
	return there, err
}

// look is known, with the keys under which other imports have some of them.
func (im *carrier) look(ctx context.Context) (there map[tidemark.EntryID]known, others []string, err error) {
	args := make([]any, len(im.page))
	for i, e := range im.page {
		args[i] = string(e.ID)
	}
	rows, err := im.s.DB.Query(ctx, `SELECT e.id, e.log, e.seq, e.kind, e.hash, e.chain, l.key FROM entries e JOIN logs l ON l.id = e.log WHERE e.id IN (?`+strings.Repeat(",?", len(args)-1)+`) LIMIT ?`, append(args, len(args))...)
	if err != nil {
		return nil, nil, fmt.Errorf("look for entries: %w", err)
	}
	there = map[tidemark.EntryID]known{}
	for _, r := range rows {
		if key := r.Text(6); strings.HasPrefix(key, stagingPrefix) && key != im.s.staging() && !slices.Contains(others, key) {
			others = append(others, key)
		}
		there[tidemark.EntryID(r.Text(0))] = known{host.Segment{Log: r.Text(1), To: r.Int(2)}, r.Text(3), r.Text(4), r.Text(5)}
	}
	return there, others, nil
}

// inherit takes over what imports that nobody works on have left. One that is in work has the run of its session.
func (im *carrier) inherit(ctx context.Context, keys []string) error {
	err := im.h.Write(ctx, tidemark.Stmt{
		SQL: `UPDATE logs SET key = ? WHERE key IN (SELECT value FROM json_each(?)) AND NOT EXISTS
			(SELECT 1 FROM runs WHERE runs.key = substr(logs.key, ?) AND state IN ('calling', 'tools'))`,
		Args: []any{im.s.staging(), room.JSON(keys), len(stagingPrefix) + 1}}, im.s.stagedStmt(), im.s.unstagedStmt())
	if err != nil {
		return fmt.Errorf("take over what another import left: %w", err)
	}
	return nil
}

// discard takes out what an archive brought that is refused: nobody has seen it, and the right one is not to meet it.
func (im *carrier) discard(ctx context.Context) error {
	return im.s.clearStaging(ctx, func(stmts ...tidemark.Stmt) error { return im.h.Write(ctx, stmts...) })
}

// clearStaging removes what an import left, some at a time and the newest first: what is left by a life that ends here is
// a beginning still.
func (s *Carry) clearStaging(ctx context.Context, write func(...tidemark.Stmt) error) error {
	const most = 500 // rows at a time
	for {
		rows, err := s.DB.Query(ctx, `SELECT 1 FROM entries WHERE log IN (SELECT id FROM logs WHERE key = ?) LIMIT 1`, s.staging())
		if err != nil {
			return fmt.Errorf("discard: %w", err)
		}
		stmts := []tidemark.Stmt{{SQL: `DELETE FROM entries WHERE seq IN (SELECT seq FROM entries WHERE log IN (SELECT id FROM logs WHERE key = ?) ORDER BY seq DESC LIMIT ?)`, Args: []any{s.staging(), most}}}
		if len(rows) == 0 {
			stmts = []tidemark.Stmt{{SQL: `DELETE FROM logs WHERE key = ?`, Args: []any{s.staging()}}, s.Undue(staged)}
		}
		if err := write(stmts...); err != nil || len(rows) == 0 {
			return err
		}
		if err := s.Runtime.Sleep(ctx, host.YieldRest); err != nil {
			return err
		}
	}
}

// staged is the kind of due work that clears what an import left.
const staged = "import"

// Wakes implements room.Waker.
func (s *Carry) Wakes() string { return staged }

// Wake clears what an import left that was not made again; while one is in work, or a turn, it waits.
func (s *Carry) Wake(ctx context.Context) error {
	err := s.clearStaging(ctx, func(stmts ...tidemark.Stmt) error {
		idle := tidemark.Stmt{SQL: `UPDATE due SET at = at WHERE key = ? AND kind = ? AND NOT EXISTS (SELECT 1 FROM runs WHERE key = ? AND state IN ('calling', 'tools'))`,
			Args: []any{string(s.Key), staged, string(s.Key)}, Want: 1}
		return s.DB.Tx(ctx, append([]tidemark.Stmt{idle}, stmts...))
	})
	if errors.Is(err, tidemark.ErrConflict) {
		return s.DB.Tx(ctx, []tidemark.Stmt{s.stagedStmt()})
	}
	return err
}
