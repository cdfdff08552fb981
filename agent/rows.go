package agent

import (
	"context"
	"fmt"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// read makes something of each row of a query; doing says what for, in errors.
func read[T any](ctx context.Context, c *core, doing string, of func(tidemark.Row) (T, error), sql string, args ...any) ([]T, error) {
	rows, err := c.cfg.DB.Query(ctx, sql, args...)
	out := make([]T, len(rows))
	for i := 0; i < len(rows) && err == nil; i++ {
		out[i], err = of(rows[i])
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	return out, nil
}

// one is the only thing that a query reads; none is ErrNotFound, which says what.
func one[T any](ctx context.Context, c *core, doing, what string, of func(tidemark.Row) (T, error), sql string, args ...any) (T, error) {
	found, err := read(ctx, c, doing, of, sql, args...)
	if err == nil && len(found) == 0 {
		err = fmt.Errorf("%s: %w", what, tidemark.ErrNotFound)
	}
	if err != nil {
		var none T
		return none, err
	}
	return found[0], nil
}

// number is what a query of one number finds, 0 for nothing.
func (c *core) number(ctx context.Context, doing, sql string, args ...any) (int64, error) {
	rows, err := c.cfg.DB.Query(ctx, sql, args...)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", doing, err)
	}
	if len(rows) == 0 {
		return 0, nil
	}
	return rows[0].Int(0), nil
}

// decoded is a row of one column of JSON, and worded one of text.
func decoded[T any](r tidemark.Row) (v T, err error) {
	err = json.Unmarshal(r.Bytes(0), &v)
	return v, err
}

func worded(r tidemark.Row) (string, error) { return r.Text(0), nil }

// paged cuts what was read, one more than a page, to the page and the cursor of the next: that of the last of it.
func paged[T any](all []T, limit int, cursor func(T) string) (page []T, next string) {
	switch {
	case len(all) == 0:
		return nil, ""
	case len(all) <= limit:
		return all, ""
	}
	return all[:limit], cursor(all[limit-1])
}

// utc is a time of a row.
func utc(ms int64) time.Time { return time.UnixMilli(ms).UTC() }
