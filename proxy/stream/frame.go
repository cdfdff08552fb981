package stream

import (
	"bytes"
	"fmt"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/internal/jsonscan"
	"github.com/tidemark-ai/tidemark/internal/sse"
)

// maxFrame bounds one event of a stream with all its lines.
const maxFrame = 4 << 20

// frame is one server-sent event (https://html.spec.whatwg.org/multipage/server-sent-events.html): the
// bytes that it came in, up to the end of its empty line, and what its data lines say together. It is
// valid until the next one.
type frame struct {
	raw  []byte
	data []byte
	at   int  // where data stands in raw, -1 when it is of several lines
	has  bool // data lines
}

// edit puts other bytes into the data of a frame. Edits are in order and do not overlap.
type edit = jsonscan.Edit

// framer cuts a body into frames.
type framer struct {
	buf  []byte // what is not passed on yet
	line int    // where in buf the last line begins
	pos  int    // what was searched
	cr   bool   // the frame before ended in a carriage return: a line feed that follows is its own
	data []byte // several data lines, joined
	eol  string // how lines end here
	name bool   // events have names here
}

// frames takes bytes and hands on each frame that is complete. A comment in front of an event is handed on
// when its line is complete: it may be there to keep a connection alive.
func (f *Filter) frames(p []byte) {
	c := &f.framer
	c.buf = append(c.buf, p...)
	rest := c.buf
	for len(rest) > 0 && f.err == nil && !f.leg.pass {
		if c.cr {
			c.cr = false
			if rest[0] == '\n' {
				f.lineFeed()
				rest = rest[1:]
				continue
			}
		}
		n := c.end(rest)
		if n == 0 && len(rest) <= maxFrame {
			break
		}
		if n == 0 || n > maxFrame {
			f.tooLong()
			break
		}
		c.line, c.pos = 0, 0
		c.cr = rest[n-1] == '\r'
		f.frame(c.parse(rest[:n]))
		rest = rest[n:]
	}
	if f.leg.pass && f.err == nil {
		f.put(rest)
		rest, c.line, c.pos = nil, 0, 0
	}
	c.buf = append(c.buf[:0], rest...)
}

// tooLong is met by an event that is longer than can be held. As long as nothing was taken from the
// answer the rest of it passes as it is.
func (f *Filter) tooLong() {
	if f.shifted || len(f.legs) > 0 {
		f.err = fmt.Errorf("read event: over %d bytes: %w", maxFrame, tidemark.ErrTooLarge)
		return
	}
	f.letPass()
}

// end returns the length of the frame, or of the comment, that b begins with; 0 when it is not complete.
func (c *framer) end(b []byte) int {
	for {
		i := sse.LineEnd(b[c.pos:])
		if i < 0 {
			c.pos = len(b)
			return 0
		}
		e := c.pos + i
		next := e + 1
		if b[e] == '\r' {
			if next < len(b) && b[next] == '\n' {
				next++
			} else if next == len(b) && e > c.line {
				c.pos = e // a line feed may follow
				return 0
			}
		}
		if e == c.line || c.line == 0 && b[0] == ':' {
			return next
		}
		c.line, c.pos = next, next
	}
}

// parse reads the lines of a frame.
func (c *framer) parse(raw []byte) frame {
	fr := frame{raw: raw}
	named := false
	eachLine(raw, func(line span, end int) {
		l := raw[line.From:line.To]
		if line.From == 0 {
			l = bytes.TrimPrefix(l, []byte("\xef\xbb\xbf"))
		}
		if len(l) > 4 && string(l[:5]) == "event" {
			named = true
		}
		v, is := dataLine(l)
		switch {
		case !is:
		case !fr.has:
			fr.has, fr.data, fr.at = true, v, line.To-len(v)
		case fr.at >= 0:
			c.data = append(append(append(c.data[:0], fr.data...), '\n'), v...)
			fr.at = -1
		default:
			c.data = append(append(c.data, '\n'), v...)
		}
		if line.From == 0 && l != nil {
			c.style(raw[line.To:end])
		}
	})
	if fr.has && fr.at < 0 {
		fr.data = c.data
	}
	if fr.has {
		c.name = named
	}
	return fr
}

// style notes how lines end.
func (c *framer) style(end []byte) {
	switch string(end) {
	case "\r\n":
		c.eol = "\r\n"
	case "\r":
		c.eol = "\r"
	default:
		c.eol = "\n"
	}
}

// dataLine returns what a data line says.
func dataLine(l []byte) ([]byte, bool) {
	v, is := bytes.CutPrefix(l, []byte("data"))
	if !is || len(v) > 0 && v[0] != ':' {
		return nil, false
	}
	if len(v) > 0 {
		v = v[1:]
	}
	return bytes.TrimPrefix(v, []byte{' '}), true
}

// eachLine calls f with each line of raw and where the line behind it begins.
func eachLine(raw []byte, f func(line span, end int)) {
	for at := 0; at < len(raw); {
		i := sse.LineEnd(raw[at:])
		if i < 0 {
			f(span{From: at, To: len(raw)}, len(raw))
			return
		}
		end := at + i + 1
		if raw[end-1] == '\r' && end < len(raw) && raw[end] == '\n' {
			end++
		}
		f(span{From: at, To: at + i}, end)
		at = end
	}
}

// render appends a frame with edits. Without any it is the very bytes; with some all bytes beside them,
// but data of several lines comes to be one line.
func render(dst []byte, fr frame, edits ...edit) []byte {
	if len(edits) == 0 {
		return append(dst, fr.raw...)
	}
	if fr.at >= 0 {
		dst = append(dst, fr.raw[:fr.at]...)
		dst = jsonscan.Splice(dst, fr.data, edits...)
		return append(dst, fr.raw[fr.at+len(fr.data):]...)
	}
	done := false
	eachLine(fr.raw, func(line span, end int) {
		if _, is := dataLine(fr.raw[line.From:line.To]); !is {
			dst = append(dst, fr.raw[line.From:end]...)
			return
		}
		if done {
			return
		}
		done = true
		dst = append(dst, "data: "...)
		begin := len(dst)
		dst = jsonscan.Splice(dst, fr.data, edits...)
		for i := begin; i < len(dst); i++ {
			if dst[i] == '\n' { // between two tokens
				dst[i] = ' '
			}
		}
		dst = append(dst, fr.raw[line.To:end]...)
	})
	return dst
}

// rest takes what stands behind the last complete frame when a body ends. An event that lacks only its
// empty line counts: some servers close right after their last one. One that is cut off is dropped, no
// client would have read it.
func (f *Filter) rest() {
	c := &f.framer
	raw := c.buf
	c.buf, c.line, c.pos, c.cr = nil, 0, 0, false
	if len(raw) == 0 || f.err != nil {
		return
	}
	fr := c.parse(raw)
	switch {
	case fr.has && len(fr.data) > 0 && (fr.data[0] != '{' || json.Valid(fr.data)) && !bytes.HasPrefix([]byte("[DONE"), fr.data):
		f.frame(fr)
		f.torn = true
	case !fr.has && !partial(raw):
		f.put(raw)
	}
}

// partial says whether raw may be the beginning of an event.
func partial(raw []byte) bool {
	for _, field := range [...]string{"data:", "event:", "id:", "retry:"} {
		n := min(len(raw), len(field))
		if string(raw[:n]) == field[:n] {
			return true
		}
	}
	return false
}
