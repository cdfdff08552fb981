// Package host holds what every platform gives in the same way: the SQL log and its migrations,
// over the small database port of the root package. The platforms themselves are its subfolders.
package host

import (
	"context"
	"fmt"

	"github.com/tidemark-ai/tidemark"
)

// NewerError says that a newer version of the program wrote a database. It is
// [tidemark.ErrInvalid].
type NewerError struct {
	Space string
	Has   int // version of the database
	Knows int // newest version that this program knows
}

// Error names both versions and what to do.
func (e *NewerError) Error() string {
	return fmt.Sprintf("the tables %q have version %d, this program knows %d: run the newer program that wrote them", e.Space, e.Has, e.Knows)
}

// Is makes the error an [tidemark.ErrInvalid].
func (e *NewerError) Is(target error) bool { return target == tidemark.ErrInvalid }

// Migrate brings the tables of one space (session, agent, …) up to date. Migrations are an
// append-only list: each runs once, in order, in one transaction with its version; what a statement
// in use means never changes, a new one is added. How rows lie on disk may: a database keeps what it has,
// and both are tested. A database that a newer version of the
// program wrote is refused, a [*NewerError], since it may hold what this one would lose.
func Migrate(ctx context.Context, db tidemark.DB, space string, migrations [][]string) error {
	const table = `CREATE TABLE IF NOT EXISTS schema_versions(space TEXT PRIMARY KEY, version INTEGER NOT NULL) WITHOUT ROWID`
	if err := db.Tx(ctx, []tidemark.Stmt{{SQL: table}}); err != nil {
		return fmt.Errorf("migrate %s: %w", space, err)
	}
	rows, err := db.Query(ctx, `SELECT version FROM schema_versions WHERE space = ? LIMIT 1`, space)
	if err != nil {
		return fmt.Errorf("migrate %s: %w", space, err)
	}
	version := 0
	if len(rows) > 0 {
		version = int(rows[0].Int(0))
	}
	if version > len(migrations) {
		return &NewerError{Space: space, Has: version, Knows: len(migrations)}
	}
	for ; version < len(migrations); version++ {
		stmts := make([]tidemark.Stmt, 0, len(migrations[version])+1)
		for _, sql := range migrations[version] {
			stmts = append(stmts, tidemark.Stmt{SQL: sql})
		}
		stmts = append(stmts, tidemark.Stmt{
			SQL:  `INSERT INTO schema_versions(space, version) VALUES(?, ?) ON CONFLICT(space) DO UPDATE SET version = excluded.version`,
			Args: []any{space, version + 1}, Want: 1})
		if err := db.Tx(ctx, stmts); err != nil {
			return fmt.Errorf("migrate %s to version %d: %w", space, version+1, err)
		}
	}
	return nil
}
