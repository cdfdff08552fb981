package stream

import (
	"bytes"
	"strconv"

	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/internal/jsonscan"
)

// maxDepth bounds nested values in what is read; deeper ones pass through unread.
const maxDepth = 100

// span is a run of bytes. The zero value is nothing.
type span = jsonscan.Span

func there(s span) bool { return s.To > 0 }

// over returns a reader at a place in data.
func over(data []byte, at int) jsonscan.Cursor { return jsonscan.From(data, at, maxDepth+1) }

// pick reads the object at data[at] and notes in out where the values of keys stand: of a key that stands
// twice the last, as decoders do. It returns where the object ends; ok is false for what is no object or
// no JSON. It decodes nothing and allocates nothing.
func pick(data []byte, at int, keys []string, out []span) (end int, ok bool) {
	c := over(data, at)
	for ok := c.Open('{'); ok && c.More(); {
		key := c.Key()
		v := c.Value()
		for i, k := range keys {
			if string(key) == k && c.Err() == nil {
				out[i] = v
			}
		}
	}
	return c.At(), c.Err() == nil && c.At() > at
}

// members calls f with the name of each member of the object at data[at], and where its value stands.
func members(data []byte, at int, f func(key []byte, s span)) (end int, ok bool) {
	c := over(data, at)
	c.Members("the value", func(key []byte) {
		if v := c.Value(); c.Err() == nil {
			f(key, v)
		}
	})
	return c.At(), c.Err() == nil
}

// elements calls f with where each element of the list at data[at] stands.
func elements(data []byte, at int, f func(s span)) (end int, ok bool) {
	c := over(data, at)
	c.Elements("the value", func(int) {
		if v := c.Value(); c.Err() == nil {
			f(v)
		}
	})
	return c.At(), c.Err() == nil
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
// Everything else keeps its bytes.
func set(obj []byte, key string, value []byte) []byte {
	if len(obj) == 0 {
		obj = []byte("{}")
	}
	return jsonscan.Set(make([]byte, 0, len(obj)+len(key)+len(value)+4), obj, jsonscan.Field{Key: key, Value: value})
}

// valueOf is the value of a key of an object, nil if there is none.
func valueOf(obj []byte, key string) []byte { return jsonscan.Find(obj, key) }

// isObject says whether raw is an object.
func isObject(raw []byte) bool { return len(raw) > 0 && raw[0] == '{' }

// isNull says whether raw is nothing or null.
func isNull(raw []byte) bool { return len(raw) == 0 || raw[0] == 'n' }

func decimal(n int) []byte { return strconv.AppendInt(nil, int64(n), 10) }
