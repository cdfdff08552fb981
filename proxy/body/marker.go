package body

import "bytes"

// marker is the member that makes an API cache all that stands before it
// (https://docs.anthropic.com/en/docs/build-with-claude/prompt-caching).
const marker = "cache_control"

// Markers counts the cache markers in a request, a message, a block or a definition.
func Markers(raw []byte) int {
	if !bytes.Contains(raw, []byte(`"`+marker+`"`)) {
		return 0
	}
	n := 0
	c := cursor{data: raw}
	c.markers(func(s span, null bool) {
		if !null {
			n++
		}
	})
	return n
}

// unmarked is raw without cache markers; raw itself if it has none.
func unmarked(raw []byte) []byte {
	if !bytes.Contains(raw, []byte(`"`+marker+`"`)) {
		return raw
	}
	var cuts []span
	c := cursor{data: raw}
	c.markers(func(s span, _ bool) { cuts = append(cuts, s) })
	if c.err != nil || len(cuts) == 0 {
		return raw
	}
	out := make([]byte, 0, len(raw))
	at := 0
	for _, s := range cuts {
		out = append(out, raw[at:s.from]...)
		at = s.to
	}
	return append(out, raw[at:]...)
}

// markers finds the markers of the value that is next, but for arguments of calls and schemas, where the
// name means something else. Each is given with the comma that is to go with it.
func (c *cursor) markers(found func(s span, null bool)) {
	switch c.peek() {
	case '[':
		for ok := c.open('['); ok && c.more(']'); {
			c.markers(found)
		}
	case '{':
		kept, end := false, 0 // whether a member stands before, and where the last one ends
		for ok := c.open('{'); ok && c.more('}'); end = c.i {
			from := c.i
			switch string(c.key()) {
			case marker:
				null := c.peek() == 'n'
				c.skip()
				s := span{from, c.i}
				if kept {
					s.from = end
				} else if c.peek() == ',' {
					s.to = c.i + 1
				}
				if c.err == nil {
					found(s, null)
				}
				continue
			case "input", "input_schema", "parameters", "arguments":
				c.skip()
			default:
				c.markers(found)
			}
			kept = true
		}
	default:
		c.skip()
	}
}

// markerOf is the cache marker of a block, nil if it has none.
func markerOf(raw []byte) (value []byte) {
	c := cursor{data: raw}
	c.members("the block", func(key []byte) {
		if string(key) == marker && c.peek() != 'n' {
			value = c.value().of(raw)
			return
		}
		c.skip()
	})
	return value
}

// marked is a block with that marker and no other of its own.
func marked(raw, value []byte) []byte {
	if value == nil {
		return raw
	}
	return setMember(unmarked(raw), marker, value)
}
