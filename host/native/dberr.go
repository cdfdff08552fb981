//go:build !js

package native

import (
	"errors"
	"fmt"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/tidemark-ai/tidemark"
)

// fail turns an error of SQLite into one of ours: what failed, which file, what to do. A mistake in
// a statement stays an error without a sentinel, since nobody but us can mend it.
// https://www.sqlite.org/rescode.html
func (d *DB) fail(verb string, err error) error {
	var se *sqlite.Error
	if !errors.As(err, &se) {
		return fmt.Errorf("%s %s: %w", verb, d.path, err)
	}
	kind, hint := error(nil), ""
	switch se.Code() & 0xff {
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return d.damaged(verb, err)
	case sqlite3.SQLITE_FULL:
		kind, hint = tidemark.ErrUnavailable, "; the disk is full, free some space"
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH:
		kind, hint = tidemark.ErrUnavailable, "; make the file and its folder writable for this user"
	case sqlite3.SQLITE_CANTOPEN:
		kind, hint = tidemark.ErrUnavailable, "; the path must be a file in a folder that this user may write"
	case sqlite3.SQLITE_IOERR, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_PROTOCOL:
		kind = tidemark.ErrUnavailable
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		kind, hint = tidemark.ErrBusy, "; another program holds a lock on the file"
	case sqlite3.SQLITE_TOOBIG:
		kind = tidemark.ErrTooLarge
	case sqlite3.SQLITE_CONSTRAINT:
		kind = constraint(se.Code())
	}
	if kind == nil {
		return fmt.Errorf("%s %s: %w", verb, d.path, err)
	}
	return fmt.Errorf("%s %s: %w%s: %w", verb, d.path, err, hint, kind)
}

// constraint tells a key that exists already from a row that breaks another rule of the schema.
func constraint(code int) error {
	switch code {
	case sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY, sqlite3.SQLITE_CONSTRAINT_ROWID:
		return tidemark.ErrConflict
	}
	return tidemark.ErrInvalid
}

// failRead is fail for a connection that must not write.
func (d *DB) failRead(err error) error {
	var se *sqlite.Error
	if errors.As(err, &se) && se.Code()&0xff == sqlite3.SQLITE_READONLY {
		return fmt.Errorf("query %s: the statement writes, which only Tx does: %w", d.path, tidemark.ErrInvalid)
	}
	return d.fail("query", err)
}

// damaged says how a person gets out of it. It is ErrUnavailable to callers: a retry after the
// repair succeeds, and no client has sent anything wrong.
func (d *DB) damaged(verb string, err error) error {
	return fmt.Errorf("%s %s: %w; the file is damaged or no SQLite database: move it and its -wal file away and "+
		"put a backup there, or recover what is left with: sqlite3 %s .recover: %w",
		verb, d.path, err, d.path, tidemark.ErrUnavailable)
}
