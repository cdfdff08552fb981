package host

import (
	"context"
	"fmt"
	"slices"

	"github.com/tidemark-ai/tidemark"
)

// Spread returns the positions of up to n messages of a history, spread evenly over a range by position, in
// order. The same history gives the same ones.
func (l *Log) Spread(ctx context.Context, log string, r Range, n int) ([]int64, error) {
	segments, err := l.Segments(ctx, log, r.To)
	if err != nil {
		return nil, err
	}
	slices.Reverse(segments)
	var out []int64
	for i := range n {
		low := r.From + (r.To-r.From)*int64(i)/int64(max(n-1, 1))
		for _, s := range segments {
			rows, err := l.DB.Query(ctx, `SELECT seq FROM entries WHERE log = ? AND kind = 'message' AND seq BETWEEN ? AND ? ORDER BY seq LIMIT 1`, s.Log, low, s.To)
			if err != nil {
				return nil, fmt.Errorf("sample log %s: %w", log, err)
			}
			if len(rows) > 0 {
				out = append(out, rows[0].Int(0))
				break
			}
			low = max(low, s.To+1)
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// Count returns how many messages of a history lie within a range, and their tokens unless there are more
// than most: the number stands in an index, the tokens do not.
func (l *Log) Count(ctx context.Context, log string, r Range, most int) (n int, tokens tidemark.Tokens, err error) {
	segments, err := l.Segments(ctx, log, r.To)
	if err != nil {
		return 0, 0, err
	}
	slices.Reverse(segments)
	for _, what := range []string{"count(*)", "coalesce(sum(tokens), 0)"} {
		low, total := r.From, int64(0)
		for _, s := range segments {
			rows, err := l.DB.Query(ctx, `SELECT `+what+` FROM entries WHERE log = ? AND kind = 'message' AND seq BETWEEN ? AND ? LIMIT 1`, s.Log, low, s.To)
			if err != nil {
				return 0, 0, fmt.Errorf("count messages of %s: %w", log, err)
			}
			total += rows[0].Int(0)
			low = max(low, s.To+1)
		}
		if what == "count(*)" {
			if n = int(total); n > most {
				return n, 0, nil
			}
			continue
		}
		tokens = tidemark.Tokens(total)
	}
	return n, tokens, nil
}
