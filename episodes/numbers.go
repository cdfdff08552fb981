package episodes

import (
	"errors"
	"slices"
	"strconv"
)

// Numbers are those of episodes, in order. As JSON, three or more in a row are a pair of the first and the last: as many as a
// log has of them take a few bytes.
type Numbers []int

// AppendJSON appends the numbers as JSON.
func (n Numbers) AppendJSON(data []byte) []byte {
	const least = 3 // in a row: a pair of two is no shorter
	data = append(data, '[')
	for i := 0; i < len(n); {
		if i > 0 {
			data = append(data, ',')
		}
		end := i + 1
		for end < len(n) && n[end] == n[end-1]+1 {
			end++
		}
		if end-i < least {
			data = strconv.AppendInt(data, int64(n[i]), 10)
			i++
			continue
		}
		data = strconv.AppendInt(append(data, '['), int64(n[i]), 10)
		data = append(strconv.AppendInt(append(data, ','), int64(n[end-1]), 10), ']')
		i = end
	}
	return append(data, ']')
}

// MarshalJSON makes the pairs.
func (n Numbers) MarshalJSON() ([]byte, error) { return n.AppendJSON(nil), nil }

// errNumbers is what is wrong with JSON that says no numbers of episodes.
var errNumbers = errors.New("want numbers of episodes, and pairs of the first and the last in a row")

// UnmarshalJSON reads the pairs, and numbers alone as they were stored before there were pairs. It is written out since it is
// read with each view, and lists of thousands are stored. Of more episodes than a log may have, none is made.
func (n *Numbers) UnmarshalJSON(data []byte) error {
	out, depth, digits := Numbers{}, 0, 0
	pair, number := 0, 0 // where a pair began
	take := func() bool {
		if digits > 0 {
			out = append(out, number)
		}
		digits, number = 0, 0
		return len(out) <= maxWork
	}
	for _, b := range data {
		var ok bool
		switch {
		case b == '[':
			depth, pair = depth+1, len(out)
			ok = depth <= 2
		case b >= '0' && b <= '9' && depth > 0:
			digits, number = digits+1, 10*number+int(b-'0')
			ok = number <= maxWork
		case b == ',':
			ok = take()
		case b == ']':
			if ok = take(); depth == 2 {
				ok = ok && out.spread(pair)
			}
			depth--
		default:
			ok = b == ' ' || b == '\n' || b == '\t' || b == '\r'
		}
		if !ok {
			return errNumbers
		}
	}
	*n = out
	return nil
}

// spread puts the numbers of a pair in its place, which are the last two; ok is false for what is no pair.
func (n *Numbers) spread(at int) (ok bool) {
	if len(*n) != at+2 {
		return false
	}
	from, to := (*n)[at], (*n)[at+1]
	if from > to || at+to-from >= maxWork {
		return false
	}
	*n = slices.Grow((*n)[:at], to-from+1)
	for i := from; i <= to; i++ {
		*n = append(*n, i)
	}
	return true
}
