// Package host holds what every platform gives in the same way: the SQL log and its migrations, over the
// small database port of the root package. The platforms themselves are its subfolders. Begin with
// log.go.
package host

import (
	"context"
	"errors"
	"fmt"
	"slices"

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
// append-only list: each runs once, in order, those that a database lacks in one transaction with their version; what a statement
// in use means never changes, a new one is added. How rows lie on disk may: a database keeps what it has,
// and both are tested. A database that a newer version of the
// program wrote is refused, a [*NewerError], since it may hold what this one would lose.
func Migrate(ctx context.Context, db tidemark.DB, space string, migrations [][]string) error {
	const table = `CREATE TABLE IF NOT EXISTS schema_versions(space TEXT PRIMARY KEY, version INTEGER NOT NULL) WITHOUT ROWID`
	if err := db.Tx(ctx, []tidemark.Stmt{{SQL: table}}); err != nil {
		return fmt.Errorf("migrate %s: %w", space, err)
	}
	for last := -1; ; {
		version, err := versionOf(ctx, db, space)
		switch {
		case err != nil:
			return fmt.Errorf("migrate %s: %w", space, err)
		case version > len(migrations):
			return &NewerError{Space: space, Has: version, Knows: len(migrations)}
		case version == len(migrations):
			return nil
		}
		// The version is claimed before anything is done: of two that share a database one migrates it, and
		// the other finds it migrated.
		stmts := []tidemark.Stmt{{SQL: `UPDATE schema_versions SET version = ? WHERE space = ? AND version = ?`, Args: []any{len(migrations), space, version}, Want: 1}}
		if version == 0 {
			stmts[0] = tidemark.Stmt{SQL: `INSERT INTO schema_versions(space, version) VALUES(?, ?) ON CONFLICT(space) DO NOTHING`, Args: []any{space, len(migrations)}, Want: 1}
		}
		for _, sql := range slices.Concat(migrations[version:]...) {
			stmts = append(stmts, tidemark.Stmt{SQL: sql})
		}
		if err = db.Tx(ctx, stmts); err == nil {
			return nil
		}
		if version == last || !errors.Is(err, tidemark.ErrConflict) {
			return fmt.Errorf("migrate %s from version %d to %d: %w", space, version, len(migrations), err)
		}
		last = version
	}
}

// Migrated reports whether a database has the tables of a space.
func Migrated(ctx context.Context, db tidemark.DB, space string) (bool, error) {
	rows, err := db.Query(ctx, `SELECT 1 FROM schema_versions WHERE space = ? LIMIT 1`, space)
	if err != nil {
		return false, fmt.Errorf("look for %s: %w", space, err)
	}
	return len(rows) > 0, nil
}

// TryWrite writes a row into a migrated database and takes it out again: whether it takes a write. Two statements, since
// one that changes nothing is not written.
func TryWrite(ctx context.Context, db tidemark.DB) error {
	return db.Tx(ctx, []tidemark.Stmt{{SQL: `INSERT INTO schema_versions(space, version) VALUES('', 0) ON CONFLICT(space) DO NOTHING`}, {SQL: `DELETE FROM schema_versions WHERE space = ''`}})
}

// versionOf returns the version of a space's tables, 0 when there are none.
func versionOf(ctx context.Context, db tidemark.DB, space string) (int, error) {
	rows, err := db.Query(ctx, `SELECT version FROM schema_versions WHERE space = ? LIMIT 1`, space)
	if err != nil || len(rows) == 0 {
		return 0, err
	}
	return int(rows[0].Int(0)), nil
}
