package stream

import (
	"strconv"

	"github.com/tidemark-ai/tidemark"
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

// messagesUsage reads the figures of the Messages API.
func messagesUsage(raw []byte) (u tidemark.Usage, reported bool) {
	var w struct {
		Input         *tidemark.Tokens `json:"input_tokens"`
		Output        *tidemark.Tokens `json:"output_tokens"`
		CacheRead     *tidemark.Tokens `json:"cache_read_input_tokens"`
		CacheCreation *tidemark.Tokens `json:"cache_creation_input_tokens"`
	}
	if len(raw) == 0 || json.Unmarshal(raw, &w) != nil {
		return u, false
	}
	for _, f := range [...]struct{ to, from *tidemark.Tokens }{{&u.Input, w.Input}, {&u.Output, w.Output}, {&u.CacheRead, w.CacheRead}, {&u.CacheCreation, w.CacheCreation}} {
		if f.from != nil && *f.from >= 0 {
			*f.to = *f.from
			reported = true
		}
	}
	return u, reported
}

// chatUsage reads the figures of chat completions, whose prompt tokens include the cached ones.
func chatUsage(raw []byte) (u tidemark.Usage, reported bool) {
	var w struct {
		Prompt     tidemark.Tokens `json:"prompt_tokens"`
		Completion tidemark.Tokens `json:"completion_tokens"`
		Details    *struct {
			Cached tidemark.Tokens `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
		CacheHit tidemark.Tokens `json:"prompt_cache_hit_tokens"` // DeepSeek
	}
	if len(raw) == 0 || json.Unmarshal(raw, &w) != nil || w.Prompt < 0 || w.Completion < 0 || w.Prompt+w.Completion == 0 {
		return u, false
	}
	cached := w.CacheHit
	if w.Details != nil {
		cached = max(cached, w.Details.Cached)
	}
	cached = min(max(cached, 0), w.Prompt)
	return tidemark.Usage{Input: w.Prompt - cached, CacheRead: cached, Output: w.Completion}, true
}
