package cloudflare

import (
	"context"
	"errors"
	"fmt"
	"syscall/js"

	"github.com/tidemark-ai/tidemark"
)

// DB is the SQLite database of a Durable Object. Its calls do not wait: SQL is synchronous there.
type DB struct{ o *Obj }

var _ tidemark.DB = (*DB)(nil)

// DB is the object's own database.
func (o *Obj) DB() *DB { return &DB{o} }

// Query runs one statement that reads and gives its page.
func (d *DB) Query(ctx context.Context, sql string, args ...any) ([]tidemark.Row, error) {
	if err := d.o.alive(ctx); err != nil {
		return nil, fmt.Errorf("query: %w", err)
	}
	if err := tidemark.CheckStmt(sql, args); err != nil {
		return nil, fmt.Errorf("query: %w", err)
	}
	v, err := d.o.host("query", toBytes(packRows(append([]any{sql}, args...))))
	if err != nil {
		return nil, fmt.Errorf("query: %w", err)
	}
	rows, err := unpackRows(fromBytes(v))
	if err != nil {
		return nil, fmt.Errorf("query: %w", err)
	}
	return rows, nil
}

// Tx hands the whole list to JavaScript, which runs it in one transaction: with Go on the stack
// other goroutines could run inside it.
func (d *DB) Tx(ctx context.Context, stmts []tidemark.Stmt) error {
	if err := d.o.alive(ctx); err != nil {
		return fmt.Errorf("transaction: %w", err)
	}
	rows := make([][]any, len(stmts))
	for i, s := range stmts {
		if err := tidemark.CheckStmt(s.SQL, s.Args); err != nil {
			return fmt.Errorf("transaction, statement %d: %w", i+1, err)
		}
		rows[i] = append([]any{s.SQL, s.Want}, s.Args...)
	}
	if len(rows) == 0 {
		return nil
	}
	if _, err := d.o.host("tx", toBytes(packRows(rows...))); err != nil {
		if d.o.Refused != nil && errors.Is(err, tidemark.ErrUnavailable) {
			d.o.Refused(err)
		}
		return fmt.Errorf("transaction: %w", err)
	}
	return nil
}

// toBytes copies b into JavaScript.
func toBytes(b []byte) js.Value {
	v := js.Global().Get("Uint8Array").New(len(b))
	js.CopyBytesToJS(v, b)
	return v
}

// fromBytes copies a Uint8Array into Go.
func fromBytes(v js.Value) []byte {
	b := make([]byte, v.Get("length").Int())
	js.CopyBytesToGo(b, v)
	return b
}
