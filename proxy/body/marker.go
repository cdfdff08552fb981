package body

import (
	"bytes"

	"github.com/tidemark-ai/tidemark/internal/jsonscan"
)

// marker is the member that makes an API cache all that stands before it
// (https://docs.anthropic.com/en/docs/build-with-claude/prompt-caching).
const marker = "cache_control"

// unmarked is raw without cache markers; raw itself if it has none.
func unmarked(raw []byte) []byte {
	if !bytes.Contains(raw, []byte(`"`+marker+`"`)) {
		return raw
	}
	var cuts []jsonscan.Edit
	c := over(raw)
	c.markers(func(s span, _ bool) { cuts = append(cuts, jsonscan.Edit{Span: s}) })
	if c.Err() != nil || len(cuts) == 0 {
		return raw
	}
	return jsonscan.Splice(make([]byte, 0, len(raw)), raw, cuts...)
}

// markers finds the markers of the value that is next, but for arguments of calls and schemas, where the
// name means something else. Each is given with the comma that is to go with it.
func (c *cursor) markers(found func(s span, null bool)) {
	switch c.Peek() {
	case '[':
		for ok := c.Open('['); ok && c.More(); {
			c.markers(found)
		}
	case '{':
		kept, end := false, 0 // whether a member stands before, and where the last one ends
		for ok := c.Open('{'); ok && c.More(); end = c.At() {
			from := c.At()
			switch string(c.Key()) {
			case marker:
				null := c.Peek() == 'n'
				c.Skip()
				s := span{From: from, To: c.At()}
				if kept {
					s.From = end
				} else if c.Peek() == ',' {
					s.To = c.At() + 1
				}
				if c.Err() == nil {
					found(s, null)
				}
				continue
			case "input", "input_schema", "parameters", "arguments":
				c.Skip()
			default:
				c.markers(found)
			}
			kept = true
		}
	default:
		c.Skip()
	}
}

// markerOf is the cache marker of a block, nil if it has none.
func markerOf(raw []byte) []byte {
	if value := find(raw, marker); value != nil && value[0] != 'n' {
		return value
	}
	return nil
}

// marked is a block with that marker and no other of its own.
func marked(raw, value []byte) []byte {
	if value == nil {
		return raw
	}
	return setMember(unmarked(raw), marker, value)
}
