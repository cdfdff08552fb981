// Package sse reads and writes server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html).
package sse

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"

	tidemark "github.com/tidemark-ai/tidemark"
)

const (
	firstBuffer = 16 << 10 // first size of the buffer; a delta is some 150 bytes
	maxLine     = 8 << 20  // a line holds one event: a block of the reply at most
	maxData     = 16 << 20 // of one event, all its data lines
)

// Event is one dispatched event.
type Event struct {
	Name string
	Data []byte // valid until the next call of Next
}

// Reader reads server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html,
// "Parsing an event stream"): lines end in LF, CRLF or CR, data lines are joined by LF, comments and
// the fields id and retry are skipped. It differs in one point: an event whose lines are complete
// is dispatched at the end of the stream although the empty line is missing, since some servers
// close right after their last event.
type Reader struct {
	Max int // bytes of one event; 0: some 8 MB in a line, 16 MB in all

	r          io.Reader
	buf        []byte
	start, end int  // unread part of buf
	skipLF     bool // the line before ended in CR: an LF that follows belongs to it
	begun      bool // a byte order mark may no longer come
	err        error
	data       []byte
}

// NewReader returns a reader of a stream.
func NewReader(r io.Reader) *Reader { return &Reader{r: r, buf: make([]byte, firstBuffer)} }

// Next returns the next event, or io.EOF at the end, or ErrTooLarge, or the reader's error.
func (s *Reader) Next() (Event, error) {
	var ev Event
	s.data = s.data[:0]
	any := false
	for {
		line, err := s.line()
		if err != nil {
			if errors.Is(err, io.EOF) && any {
				return s.event(ev), nil
			}
			return Event{}, err
		}
		if len(line) == 0 {
			if any {
				return s.event(ev), nil
			}
			ev.Name = ""
			continue
		}
		name, value, _ := bytes.Cut(line, []byte{':'})
		value = bytes.TrimPrefix(value, []byte{' '})
		switch string(name) {
		case "event":
			ev.Name = string(value)
		case "data":
			if most := cmp.Or(s.Max, maxData); len(s.data)+len(value) > most {
				return Event{}, fmt.Errorf("read event: data over %d bytes: %w", most, tidemark.ErrTooLarge)
			}
			s.data = append(append(s.data, value...), '\n')
			any = true
		}
	}
}

func (s *Reader) event(ev Event) Event {
	ev.Data = s.data[:len(s.data)-1]
	return ev
}

// line returns the next complete line without its end. It is valid until the next call. An
// incomplete last line is dropped: it was cut off.
func (s *Reader) line() ([]byte, error) {
	searched := 0
	for {
		if s.skipLF && s.start < s.end {
			s.skipLF = false
			if s.buf[s.start] == '\n' {
				s.start++
			}
		}
		rest := s.buf[s.start:s.end]
		if i := LineEnd(rest[searched:]); i >= 0 {
			i += searched
			s.skipLF = rest[i] == '\r'
			s.start += i + 1
			line := rest[:i]
			if !s.begun {
				s.begun = true
				line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
			}
			return line, nil
		}
		searched = len(rest)
		if s.err != nil {
			return nil, s.err
		}
		if err := s.fill(); err != nil {
			return nil, err
		}
	}
}

// LineEnd returns the index of the first line feed or carriage return, -1 if there is none.
func LineEnd(b []byte) int {
	lf := bytes.IndexByte(b, '\n')
	if lf >= 0 {
		b = b[:lf]
	}
	if cr := bytes.IndexByte(b, '\r'); cr >= 0 {
		return cr
	}
	return lf
}

// fill makes room and reads once. The reader's error is kept until what came with it is used up.
func (s *Reader) fill() error {
	if s.start > 0 {
		copy(s.buf, s.buf[s.start:s.end])
		s.end -= s.start
		s.start = 0
	}
	if s.end == len(s.buf) {
		if most := cmp.Or(s.Max, maxLine); len(s.buf) >= most+len("data: \r\n") {
			return fmt.Errorf("read event: line over %d bytes: %w", most, tidemark.ErrTooLarge)
		}
		grown := make([]byte, 2*len(s.buf))
		copy(grown, s.buf)
		s.buf = grown
	}
	for range 100 { // io.Reader may return nothing without an error, but not for ever
		var n int
		n, s.err = s.r.Read(s.buf[s.end:])
		s.end += n
		if some := n > 0 || s.err != nil; some {
			return nil
		}
	}
	return io.ErrNoProgress
}

// Append appends one event: a line break of any kind within
// data begins a new data line, since each kind would end the field.
func Append(dst []byte, event, data string) []byte {
	if event != "" {
		dst = append(dst, "event: "...)
		dst = append(dst, strings.NewReplacer("\r", "", "\n", "").Replace(event)...)
		dst = append(dst, '\n')
	}
	for {
		i := strings.IndexAny(data, "\r\n")
		dst = append(dst, "data: "...)
		if i < 0 {
			return append(append(dst, data...), "\n\n"...)
		}
		dst = append(append(dst, data[:i]...), '\n')
		if strings.HasPrefix(data[i:], "\r\n") {
			i++
		}
		data = data[i+1:]
	}
}
