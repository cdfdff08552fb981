//go:build !js

package native

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"strings"

	"modernc.org/sqlite"

	"github.com/tidemark-ai/tidemark"
)

// maxStmts bounds the prepared statements of a connection. Ours number some dozens; lists of
// varying length (IN (?, ?, …)) make more. Keeping them pays: a transaction of one insert took
// 22 µs when each statement was compiled again, 15 with the cache, both without the fsync.
const maxStmts = 256

// conn is one SQLite connection with its prepared statements. It is used by one goroutine at a
// time. It speaks to the driver directly: database/sql adds a goroutine for each cancellable
// context and a copy of each value to a pool that DB has in three channels.
type conn struct {
	raw   driver.Conn
	stmts map[string]driver.Stmt
}

func openConn(dsn string) (*conn, error) {
	raw, err := (&sqlite.Driver{}).Open(dsn)
	if err != nil {
		return nil, err
	}
	return &conn{raw: raw, stmts: make(map[string]driver.Stmt)}, nil
}

func (c *conn) close() error {
	for _, s := range c.stmts {
		s.Close()
	}
	return c.raw.Close()
}

// unguessed hides the value of a LIMIT from the planner of SQLite: one that it has looked at has the
// statement compiled again whenever it is bound anew, which took more time than most of our queries.
var unguessed = strings.NewReplacer("LIMIT ?", "LIMIT coalesce(?, NULL)")

// prepare compiles a statement once. SQLite compiles it again by itself when the schema changes.
func (c *conn) prepare(sql string) (driver.Stmt, error) {
	if s, ok := c.stmts[sql]; ok {
		return s, nil
	}
	s, err := c.raw.Prepare(unguessed.Replace(sql))
	if err != nil {
		return nil, err
	}
	for old, o := range c.stmts {
		if len(c.stmts) < maxStmts {
			break
		}
		o.Close()
		delete(c.stmts, old)
	}
	c.stmts[sql] = s
	return s, nil
}

// exec runs a statement to its end, whatever happens to the caller, and counts the rows it changed.
func (c *conn) exec(sql string, args []any) (int64, error) {
	s, err := c.prepare(sql)
	if err != nil {
		return 0, err
	}
	res, err := s.(driver.StmtExecContext).ExecContext(context.Background(), bind(args))
	if err != nil || res == nil { // no result: nothing but a comment
		return 0, err
	}
	return res.RowsAffected()
}

// query reads a bounded page and closes the cursor.
func (c *conn) query(ctx context.Context, sql string, args []any) (page []tidemark.Row, err error) {
	s, err := c.prepare(sql)
	if err != nil {
		return nil, err
	}
	rows, err := s.(driver.StmtQueryContext).QueryContext(ctx, bind(args))
	if err != nil {
		return nil, err
	}
	defer func() {
		if e := rows.Close(); err == nil && e != nil {
			page, err = nil, e
		}
	}()
	n := len(rows.Columns())
	for {
		vals := make([]driver.Value, n)
		switch err := rows.Next(vals); {
		case errors.Is(err, io.EOF):
			return page, nil
		case err != nil:
			return nil, err
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case len(page) == tidemark.MaxPageRows:
			return nil, fmt.Errorf("more than %d rows, the statement needs a LIMIT: %w", tidemark.MaxPageRows, tidemark.ErrTooLarge)
		}
		row, err := toRow(vals)
		if err != nil {
			return nil, err
		}
		page = append(page, row)
	}
}

// toRow refuses what the driver makes of columns that are declared as dates.
func toRow(vals []driver.Value) (tidemark.Row, error) {
	row := make(tidemark.Row, len(vals))
	for i, v := range vals {
		switch v.(type) {
		case nil, int64, float64, string, []byte:
			row[i] = v
		default:
			return nil, fmt.Errorf("column %d came as %T; declare it INTEGER, REAL, TEXT or BLOB: %w", i, v, tidemark.ErrInvalid)
		}
	}
	return row, nil
}

// bind numbers the arguments and turns every number into REAL, see [DB].
func bind(args []any) []driver.NamedValue {
	vals := make([]driver.NamedValue, len(args))
	for i, a := range args {
		vals[i].Ordinal = i + 1
		switch v := a.(type) {
		case bool:
			vals[i].Value = 0.0
			if v {
				vals[i].Value = 1.0
			}
		case int:
			vals[i].Value = float64(v)
		case int64:
			vals[i].Value = float64(v)
		default:
			vals[i].Value = v
		}
	}
	return vals
}
