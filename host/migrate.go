// Package host holds what every platform gives in the same way: the SQL log and its migrations, over the
// small database port of the root package. The platforms themselves are its subfolders. Begin with
// log.go.
package host

import (
	"context"
	"errors"
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

// Migrate brings the tables of one space (session, agent, …) up to date. Migrations are an append-only list of statements:
// each runs once, in order, those that a database lacks in one transaction with their number, which is its version. What a
// statement in use means never changes, a new one is added. A database that a newer version of the program wrote is refused,
// a [*NewerError], since it may hold what this one would lose.
func Migrate(ctx context.Context, db tidemark.DB, space string, migrations []string) error {
	if err := db.Tx(ctx, []tidemark.Stmt{{SQL: `CREATE TABLE IF NOT EXISTS schema_versions(space TEXT PRIMARY KEY, version INTEGER NOT NULL) WITHOUT ROWID`}}); err != nil {
		return fmt.Errorf("migrate %s: %w", space, err)
	}
	for last := -1; ; {
		have, err := Number(ctx, db, "migrate "+space, `SELECT version FROM schema_versions WHERE space = ? LIMIT 1`, space)
		version := int(have)
		switch {
		case err != nil:
			return err
		case version > len(migrations):
			return &NewerError{Space: space, Has: version, Knows: len(migrations)}
		case version == len(migrations):
			return nil
		}
		// The version is claimed before anything is done: of two that share a database one migrates it, and
		// the other finds it migrated.
		stmts := []tidemark.Stmt{{SQL: `INSERT INTO schema_versions(space, version) VALUES(?, ?) ON CONFLICT(space) DO UPDATE SET version = excluded.version WHERE version = ?`,
			Args: []any{space, len(migrations), version}, Want: 1}}
		for _, sql := range migrations[version:] {
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
	n, err := Number(ctx, db, "look for "+space, `SELECT 1 FROM schema_versions WHERE space = ? LIMIT 1`, space)
	return n > 0, err
}

// HasTable reports whether a database has a table, whoever made it. It changes nothing.
func HasTable(ctx context.Context, db tidemark.DB, name string) (bool, error) {
	n, err := Number(ctx, db, "look for "+name, `SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ? LIMIT 1`, name)
	return n > 0, err
}

// TryWrite writes a row into a migrated database and takes it out again: whether it takes a write. Two statements, since
// one that changes nothing is not written.
func TryWrite(ctx context.Context, db tidemark.DB) error {
	return db.Tx(ctx, []tidemark.Stmt{{SQL: `INSERT INTO schema_versions(space, version) VALUES('', 0) ON CONFLICT(space) DO NOTHING`}, {SQL: `DELETE FROM schema_versions WHERE space = ''`}})
}
