package stream

import (
	"bytes"
	"strconv"

	"github.com/tidemark-ai/tidemark/internal/json"
)

// maxDepth bounds nested values in what is read; deeper ones pass through unread.
const maxDepth = 100

// span is a run of bytes; pick gives the place of the key as well. The zero value is nothing.
type span struct{ from, to, key int }

func (s span) of(data []byte) []byte { return data[s.from:s.to:s.to] }

func (s span) there() bool { return s.to > 0 }

// pick reads the object at data[at] and notes in out where the values of keys stand: of a key that stands
// twice the last, as decoders do. It returns where the object ends; ok is false for what is no object or
// no JSON. It decodes nothing and allocates nothing.
func pick(data []byte, at int, keys []string, out []span) (end int, ok bool) {
	return members(data, at, 0, func(key []byte, s span) {
		for i, k := range keys {
			if string(key) == k {
				out[i] = s
			}
		}
	})
}

// members calls f with each member of the object at data[at]: its key without quotes, and where it stands.
func members(data []byte, at, depth int, f func(key []byte, s span)) (end int, ok bool) {
	i := blank(data, at)
	if depth > maxDepth || i >= len(data) || data[i] != '{' {
		return i, false
	}
	for i = blank(data, i+1); i < len(data) && data[i] == '"'; i = blank(data, i+1) {
		s := span{key: i}
		if i, ok = skipString(data, i); !ok {
			return i, false
		}
		key := data[s.key+1 : i-1]
		if i = blank(data, i); i >= len(data) || data[i] != ':' {
			return i, false
		}
		s.from = blank(data, i+1)
		if s.to, ok = skip(data, s.from, depth+1); !ok {
			return s.to, false
		}
		if f != nil {
			if bytes.IndexByte(key, '\\') >= 0 {
				key = []byte(text(data[s.key : s.key+len(key)+2]))
			}
			f(key, s)
		}
		if i = blank(data, s.to); i >= len(data) || data[i] != ',' {
			break
		}
		if next := blank(data, i+1); next >= len(data) || data[next] != '"' {
			return i, false
		}
	}
	return i + 1, i < len(data) && data[i] == '}'
}

// elements calls f with where each element of the list at data[at] stands.
func elements(data []byte, at, depth int, f func(s span)) (end int, ok bool) {
	i := blank(data, at)
	if depth > maxDepth || i >= len(data) || data[i] != '[' {
		return i, false
	}
	if i = blank(data, i+1); i < len(data) && data[i] == ']' {
		return i + 1, true
	}
	for {
		s := span{from: i}
		if s.to, ok = skip(data, i, depth+1); !ok {
			return s.to, false
		}
		if f != nil {
			f(s)
		}
		i = blank(data, s.to)
		if i >= len(data) || data[i] != ',' {
			return i + 1, i < len(data) && data[i] == ']'
		}
		i = blank(data, i+1)
	}
}

// skip returns where the value at data[at] ends.
func skip(data []byte, at, depth int) (end int, ok bool) {
	if at >= len(data) {
		return at, false
	}
	switch data[at] {
	case '"':
		return skipString(data, at)
	case '{':
		return members(data, at, depth, nil)
	case '[':
		return elements(data, at, depth, nil)
	}
	i := at
	for i < len(data) && (data[i] >= '0' && data[i] <= '9' || data[i] >= 'a' && data[i] <= 'z' || data[i] == '-' || data[i] == '+' || data[i] == '.' || data[i] == 'E') {
		i++
	}
	return i, word(data[at:i])
}

// word says whether w is a number or one of the three names.
func word(w []byte) bool {
	if len(w) > 0 && len(w) < 16 && (w[0] > '0' || len(w) == 1) { // nearly all are small whole numbers
		digits := true
		for _, b := range w {
			digits = digits && b >= '0' && b <= '9'
		}
		if digits {
			return true
		}
	}
	switch string(w) {
	case "null", "true", "false":
		return true
	}
	return json.Valid(w)
}

// skipString returns where the string at data[at] ends.
func skipString(data []byte, at int) (end int, ok bool) {
	for i := at + 1; i < len(data); i++ {
		switch b := data[i]; {
		case b == '"':
			return i + 1, true
		case b < ' ':
			return i, false
		case b == '\\':
			n := escape(data[i+1:])
			if n == 0 {
				return i, false
			}
			i += n
		}
	}
	return len(data), false
}

// escape is how many bytes behind a backslash belong to it, 0 if they are no escape.
func escape(s []byte) int {
	if len(s) == 0 {
		return 0
	}
	switch s[0] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 1
	case 'u':
		if len(s) < 5 {
			return 0
		}
		for _, b := range s[1:5] {
			if (b < '0' || b > '9') && (b|0x20 < 'a' || b|0x20 > 'f') {
				return 0
			}
		}
		return 5
	}
	return 0
}

func blank(data []byte, i int) int {
	for i < len(data) && (data[i] == ' ' || data[i] == '\n' || data[i] == '\t' || data[i] == '\r') {
		i++
	}
	return i
}

// text decodes a string that is given with its quotes; anything else is "".
func text(raw []byte) string {
	if len(raw) < 2 || raw[0] != '"' {
		return ""
	}
	s, _, rest, ok := json.CutString(raw)
	if ok && len(rest) == 0 {
		return s
	}
	return odd(raw)
}

// odd decodes a string that is not UTF-8.
func odd(raw []byte) (s string) {
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

// is says whether raw is the string s.
func is(raw []byte, s string) bool {
	if len(raw) == len(s)+2 {
		return raw[0] == '"' && string(raw[1:len(raw)-1]) == s
	}
	return bytes.IndexByte(raw, '\\') >= 0 && text(raw) == s
}

// quoted says whether raw is a string.
func quoted(raw []byte) bool { return len(raw) > 1 && raw[0] == '"' }

// number reads a small whole number.
func number(raw []byte) (n int, ok bool) {
	if len(raw) == 0 || len(raw) > 6 {
		return 0, false
	}
	for _, b := range raw {
		if b < '0' || b > '9' {
			return 0, false
		}
		n = n*10 + int(b-'0')
	}
	return n, true
}

// set returns a copy of obj with the value of key replaced, put at the end, or, for nil, taken out.
// Everything else keeps its bytes. obj is an object that was read.
func set(obj []byte, key string, value []byte) []byte {
	out := make([]byte, 0, len(obj)+len(key)+len(value)+4)
	out = append(out, '{')
	first, done := true, value == nil
	put := func(parts ...[]byte) {
		if !first {
			out = append(out, ',')
		}
		first = false
		for _, p := range parts {
			out = append(out, p...)
		}
	}
	members(obj, 0, 0, func(k []byte, s span) {
		switch {
		case string(k) != key:
			put(obj[s.key:s.to])
		case !done:
			put(obj[s.key:s.from], value)
			done = true
		}
	})
	if !done {
		put(json.AppendString(nil, key), []byte{':'}, value)
	}
	return append(out, '}')
}

// valueOf is the value of a key of an object, nil if there is none.
func valueOf(obj []byte, key string) []byte {
	var at [1]span
	if _, ok := pick(obj, 0, []string{key}, at[:]); !ok || !at[0].there() {
		return nil
	}
	return at[0].of(obj)
}

// isObject says whether raw is an object.
func isObject(raw []byte) bool { return len(raw) > 0 && raw[0] == '{' }

// isNull says whether raw is nothing or null.
func isNull(raw []byte) bool { return len(raw) == 0 || raw[0] == 'n' }

func decimal(n int) []byte { return strconv.AppendInt(nil, int64(n), 10) }
