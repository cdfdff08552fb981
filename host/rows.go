package host

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// Read makes something of each row of a query; doing says what for, in errors.
func Read[T any](ctx context.Context, db tidemark.DB, doing string, of func(tidemark.Row) (T, error), sql string, args ...any) ([]T, error) {
	rows, err := db.Query(ctx, sql, args...)
	out := make([]T, len(rows))
	for i := 0; i < len(rows) && err == nil; i++ {
		out[i], err = of(rows[i])
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	return out, nil
}

// One is what a query reads first; nothing is ErrNotFound, which says what.
func One[T any](ctx context.Context, db tidemark.DB, doing, what string, of func(tidemark.Row) (T, error), sql string, args ...any) (out T, err error) {
	found, err := Read(ctx, db, doing, of, sql, args...)
	if err == nil && len(found) == 0 {
		err = fmt.Errorf("%s: %w", what, tidemark.ErrNotFound)
	}
	if err != nil {
		return out, err
	}
	return found[0], nil
}

// First is the first row of a query, nil for none.
func First(ctx context.Context, db tidemark.DB, doing, sql string, args ...any) (tidemark.Row, error) {
	rows, err := db.Query(ctx, sql, args...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	if len(rows) == 0 {
		return nil, nil
	}
	return rows[0], nil
}

// Number is what a query of one number finds, 0 for nothing.
func Number(ctx context.Context, db tidemark.DB, doing, sql string, args ...any) (int64, error) {
	r, err := First(ctx, db, doing, sql, args...)
	if r == nil {
		return 0, err
	}
	return r.Int(0), nil
}

// Pages yields the rows of a query page by page. Its last parameter is its LIMIT, which is size; the others are what args
// gives for each page, of the last row that was taken. With an error it ends.
func Pages(ctx context.Context, db tidemark.DB, doing string, size int, args func() []any, sql string) iter.Seq2[tidemark.Row, error] {
	return func(yield func(tidemark.Row, error) bool) {
		for {
			rows, err := db.Query(ctx, sql, append(args(), size)...)
			if err != nil {
				yield(nil, fmt.Errorf("%s: %w", doing, err))
				return
			}
			for _, r := range rows {
				if !yield(r, nil) {
					return
				}
			}
			if len(rows) < size {
				return
			}
		}
	}
}

// JSON is a row of one column, which is encoded, and Text one of text.
func JSON[T any](r tidemark.Row) (v T, err error) {
	err = json.Unmarshal(r.Bytes(0), &v)
	return v, err
}

// Text is a row of one column of text.
func Text(r tidemark.Row) (string, error) { return r.Text(0), nil }

// Integer is a row of one column of whole numbers.
func Integer(r tidemark.Row) (int64, error) { return r.Int(0), nil }

// Marks is a list of n parameters.
func Marks(n int) string { return strings.TrimSuffix(strings.Repeat("?,", n), ",") }

// UTC is a time that is stored in milliseconds.
func UTC(ms int64) time.Time { return time.UnixMilli(ms).UTC() }
