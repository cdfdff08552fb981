package host

import (
	"context"
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
			seq, err := Number(ctx, l.DB, "sample log "+log, `SELECT seq FROM entries WHERE log = ? AND kind = 'message' AND seq BETWEEN ? AND ? ORDER BY seq LIMIT 1`, s.Log, low, s.To)
			if err != nil {
				return nil, err
			}
			if seq > 0 {
				out = append(out, seq)
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
	sum := func(what string) (total int64, err error) {
		low := r.From
		for _, s := range segments {
			n, err := Number(ctx, l.DB, "count messages of "+log, `SELECT `+what+` FROM entries WHERE log = ? AND kind = 'message' AND seq BETWEEN ? AND ? LIMIT 1`, s.Log, low, s.To)
			if err != nil {
				return 0, err
			}
			total, low = total+n, max(low, s.To+1)
		}
		return total, nil
	}
	all, err := sum("count(*)")
	if err != nil || all > int64(most) {
		return int(all), 0, err
	}
	weight, err := sum("coalesce(sum(tokens), 0)")
	return int(all), tidemark.Tokens(weight), err
}
