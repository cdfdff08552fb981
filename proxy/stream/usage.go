package stream

import (
	"strconv"

	"github.com/tidemark-ai/tidemark/internal/json"
)

// Figures are kept as the JSON in which they came, so that fields that nobody here knows are summed and
// passed on like those that are known.

// addUsage returns the sum of two objects of figures: numbers are added, objects summed, lists joined;
// of all else what b says counts. Either may be nil.
func addUsage(a, b []byte) []byte { return merge(a, b, 0, true) }

// overUsage returns a with what b says in place of it: the figures of a message_delta are totals.
func overUsage(a, b []byte) []byte { return merge(a, b, 0, false) }

func merge(a, b []byte, depth int, sum bool) []byte {
	switch {
	case isNull(b):
		return a
	case isNull(a) || depth > maxDepth:
		return b
	case isObject(a) && isObject(b):
		out := append([]byte(nil), b...)
		members(a, 0, func(key []byte, s span) {
			name := string(key)
			if v := merge(s.Of(a), valueOf(b, name), depth+1, sum); v != nil {
				out = set(out, name, v)
			}
		})
		return out
	case !sum:
		return b
	case a[0] == '[' && b[0] == '[':
		return join(a, b)
	}
	if n, ok := add(a, b); ok {
		return n
	}
	return b
}

// join makes one list of two.
func join(a, b []byte) []byte {
	out := []byte{'['}
	for _, list := range [...][]byte{a, b} {
		elements(list, 0, func(s span) {
			if len(out) > 1 {
				out = append(out, ',')
			}
			out = append(out, s.Of(list)...)
		})
	}
	return append(out, ']')
}

// add sums two numbers.
func add(a, b []byte) ([]byte, bool) {
	i, errI := strconv.ParseInt(string(a), 10, 62)
	j, errJ := strconv.ParseInt(string(b), 10, 62)
	if errI == nil && errJ == nil {
		return strconv.AppendInt(nil, i+j, 10), true
	}
	x, errX := strconv.ParseFloat(string(a), 64)
	y, errY := strconv.ParseFloat(string(b), 64)
	if errX != nil || errY != nil {
		return nil, false
	}
	sum := strconv.AppendFloat(nil, x+y, 'g', -1, 64)
	return sum, json.Valid(sum) // the sum of two large numbers may be none
}
