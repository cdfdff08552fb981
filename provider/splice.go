package provider

import (
	"bytes"

	"github.com/tidemark-ai/tidemark/internal/json"
)

// field is a top-level field of a JSON object; a nil value means: not there.
type field struct {
	key   string
	value []byte
}

// splice appends obj to dst with some top-level fields replaced, removed or added at the end. The
// bytes of all others stay as they are. obj is valid JSON.
func splice(dst, obj []byte, sets ...field) []byte {
	dst = append(dst, '{')
	first := true
	put := func(parts ...[]byte) {
		if !first {
			dst = append(dst, ',')
		}
		first = false
		for _, p := range parts {
			dst = append(dst, p...)
		}
	}
	var done uint64 // bit i: sets[i] stands in the output already, or was removed
	eachField(obj, func(key, pair []byte) {
		for i, s := range sets {
			if string(key) != s.key {
				continue
			}
			if s.value != nil && done&(1<<i) == 0 {
				put(json.AppendString(nil, s.key), []byte{':'}, s.value)
			}
			done |= 1 << i
			return
		}
		put(pair)
	})
	for i, s := range sets {
		if s.value != nil && done&(1<<i) == 0 {
			put(json.AppendString(nil, s.key), []byte{':'}, s.value)
		}
	}
	return append(dst, '}')
}

// eachField calls f with every top-level key of a valid object, without its quotes, and with the
// bytes from the key's quote to the end of its value.
func eachField(obj []byte, f func(key, pair []byte)) {
	i := skipSpace(obj, 0) + 1
	for {
		i = skipSpace(obj, i)
		if i >= len(obj) || obj[i] != '"' {
			return
		}
		start := i
		i = skipString(obj, i)
		key := obj[start+1 : i-1]
		i = skipSpace(obj, i) + 1 // the colon
		i = skipValue(obj, skipSpace(obj, i))
		f(key, obj[start:i])
		i = skipSpace(obj, i)
		if i < len(obj) && obj[i] == ',' {
			i++
		}
	}
}

// valueOf is the value of what [eachField] gives.
func valueOf(key, pair []byte) []byte {
	value := pair[skipSpace(pair, len(key)+2)+1:]
	return value[skipSpace(value, 0):]
}

// eachElement calls f with every element of a valid array.
func eachElement(arr []byte, f func(elem []byte)) {
	i := skipSpace(arr, 0) + 1
	for {
		i = skipSpace(arr, i)
		if i >= len(arr) || arr[i] == ']' {
			return
		}
		start := i
		i = skipValue(arr, i)
		f(arr[start:i])
		i = skipSpace(arr, i)
		if i < len(arr) && arr[i] == ',' {
			i++
		}
	}
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// skipString returns the index behind the string that begins at i. Pictures are strings of megabytes, so it leaps from
// quote to quote.
func skipString(b []byte, i int) int {
	for start := i; ; {
		n := bytes.IndexByte(b[i+1:], '"')
		if n < 0 {
			return len(b)
		}
		i += 1 + n
		if body := b[start+1 : i]; backslashes(body)%2 == 0 {
			return i + 1
		}
	}
}

// skipValue returns the index behind the value that begins at i.
func skipValue(b []byte, i int) int {
	depth := 0
	for i < len(b) {
		switch b[i] {
		case '"':
			i = skipString(b, i)
			if depth == 0 {
				return i
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 { // the end of what holds a bare scalar
				return i
			}
			if depth--; depth == 0 {
				return i + 1
			}
		case ',', ' ', '\n', '\t', '\r':
			if depth == 0 {
				return i
			}
		}
		i++
	}
	return len(b)
}

// unmark removes cache markers that came with a block, also from the blocks of a tool result: we
// place our own, and the API refuses a request with more than four. A block without one is
// returned as it is.
func unmark(block []byte, depth int) []byte {
	if depth > 4 || !bytes.Contains(block, []byte(`"cache_control"`)) {
		return block
	}
	sets := []field{{key: "cache_control"}}
	eachField(block, func(key, pair []byte) {
		value := valueOf(key, pair)
		if string(key) != "content" || len(value) == 0 || value[0] != '[' {
			return
		}
		list := []byte{'['}
		eachElement(value, func(elem []byte) {
			if len(list) > 1 {
				list = append(list, ',')
			}
			if elem[0] == '{' {
				elem = unmark(elem, depth+1)
			}
			list = append(list, elem...)
		})
		sets = append(sets, field{"content", append(list, ']')})
	})
	return splice(nil, block, sets...)
}
