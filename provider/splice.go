package provider

import (
	"bytes"

	"github.com/tidemark-ai/tidemark/internal/jsonscan"
)

// field is a top-level field of a JSON object; a nil value means: not there.
type field = jsonscan.Field

// unmark removes cache markers that came with a block, also from the blocks of a tool result: we
// place our own, and the API refuses a request with more than four. A block without one is
// returned as it is.
func unmark(block []byte, depth int) []byte {
	if depth > 4 || !bytes.Contains(block, []byte(`"cache_control"`)) {
		return block
	}
	sets := []field{{Key: "cache_control"}}
	if content := jsonscan.Find(block, "content"); len(content) > 0 && content[0] == '[' {
		sets = append(sets, field{Key: "content", Value: each(content, func(elem []byte) []byte {
			if elem[0] == '{' {
				return unmark(elem, depth+1)
			}
			return elem
		})})
	}
	return jsonscan.Set(nil, block, sets...)
}

// each is a list with other elements in the place of those that it has, or without them: nil.
func each(list []byte, f func(elem []byte) []byte) []byte {
	out, many := []byte{'['}, false
	err := jsonscan.Elements(list, func(elem []byte) {
		if elem = f(elem); elem == nil {
			return
		}
		if many {
			out = append(out, ',')
		}
		out, many = append(out, elem...), true
	})
	if err != nil {
		return list
	}
	return append(out, ']')
}
