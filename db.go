package tidemark

import (
	"context"
	"fmt"
	"strconv"
)

// DB is the SQL database of one object: a Durable Object's own storage on Workers, one file per
// agent natively. The dialect is the part of SQLite that both speak.
//
// Limits, the same on both hosts (https://developers.cloudflare.com/durable-objects/platform/limits/):
// at most [MaxParams] arguments a statement, rows under [MaxRow] bytes, integers within ±2^53.
// Arguments are nil, bool (stored as 0 or 1), int, int64, float64, string and []byte; numbers may
// be bound as REAL, so a column that holds integers must have INTEGER affinity.
//
// Both methods may be called at once by several goroutines. A Tx is seen whole or not at all.
type DB interface {
	// Query returns one bounded page of rows; its cursor is closed before it returns. The
	// statement must carry its own LIMIT: more than [MaxPageRows] rows is ErrTooLarge.
	Query(ctx context.Context, sql string, args ...any) ([]Row, error)
	// Tx runs the statements in order in one transaction. If any fails, or changes another number
	// of rows than its Want, nothing is changed; the latter is ErrConflict.
	Tx(ctx context.Context, stmts []Stmt) error
}

// Bounds that every DB enforces.
const (
	MaxParams   = 100       // arguments a statement
	MaxRow      = 1_900_000 // bytes of all text and blob arguments of one statement
	MaxPageRows = 20_000    // rows a Query returns
)

// Stmt is one statement of a transaction.
type Stmt struct {
	SQL  string
	Args []any
	// Want is the number of rows that the statement must change; 0 asks for nothing. It is the
	// fence and the compare-and-swap: a guarded UPDATE that finds no row undoes the transaction.
	Want int
}

// Row is one row of a result: nil, int64, float64, string or []byte a column. Whole numbers may
// arrive as either number type, so read them through the methods, which convert.
type Row []any

// Int returns column i as an integer; NULL is 0.
func (r Row) Int(i int) int64 {
	switch v := r[i].(type) {
	case int64:
		return v
	case float64:
		return int64(v)
	case string:
		n, _ := strconv.ParseInt(v, 10, 64)
		return n
	}
	return 0
}

// Float returns column i as a float; NULL is 0.
func (r Row) Float(i int) float64 {
	switch v := r[i].(type) {
	case int64:
		return float64(v)
	case float64:
		return v
	}
	return 0
}

// Text returns column i as a string; NULL is empty.
func (r Row) Text(i int) string {
	switch v := r[i].(type) {
	case string:
		return v
	case []byte:
		return string(v)
	case nil:
		return ""
	}
	return fmt.Sprint(r[i])
}

// Bytes returns column i as bytes; NULL is nil.
func (r Row) Bytes(i int) []byte {
	switch v := r[i].(type) {
	case []byte:
		return v
	case string:
		return []byte(v)
	}
	return nil
}

// Null reports whether column i is NULL.
func (r Row) Null(i int) bool { return r[i] == nil }

// CheckStmt reports a breach of the limits of [DB], so that a statement that the strictest host
// would refuse fails everywhere. Adapters call it before they run anything.
func CheckStmt(sql string, args []any) error {
	if len(args) > MaxParams {
		return fmt.Errorf("statement has %d arguments, at most %d: %w", len(args), MaxParams, ErrTooLarge)
	}
	size := 0
	for i, a := range args {
		switch v := a.(type) {
		case nil, bool, float64:
		case int:
			if err := safeInt(int64(v)); err != nil {
				return fmt.Errorf("argument %d: %w", i, err)
			}
		case int64:
			if err := safeInt(v); err != nil {
				return fmt.Errorf("argument %d: %w", i, err)
			}
		case string:
			size += len(v)
		case []byte:
			size += len(v)
		default:
			return fmt.Errorf("argument %d has type %T: %w", i, a, ErrInvalid)
		}
	}
	if size > MaxRow {
		return fmt.Errorf("statement carries %d bytes, at most %d: %w", size, MaxRow, ErrTooLarge)
	}
	return nil
}

// safeInt refuses integers that a JavaScript number cannot hold.
func safeInt(n int64) error {
	const limit = 1 << 53
	if n > limit || n < -limit {
		return fmt.Errorf("integer %d is beyond 2^53: %w", n, ErrTooLarge)
	}
	return nil
}
