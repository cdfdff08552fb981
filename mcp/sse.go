package mcp

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/tidemark-ai/tidemark"
)

// maxEvents bounds what one answer may stream beside its result.
const maxEvents = 10_000

// events reads server-sent events of messages (https://html.spec.whatwg.org/multipage/server-sent-events.html).
// An event without data is skipped; names, ids and retry are not read. The sum of all that is read is bounded by
// the reader that it is given, each event by most.
type events struct {
	r    *bufio.Reader
	most int
	n    int
	data []byte
}

func newEvents(r io.Reader, most int) *events { return &events{r: bufio.NewReader(r), most: most} }

// next returns the data of the next event, valid until the next call. At the end it is io.EOF; what was cut off in
// the middle of an event is dropped.
func (e *events) next() ([]byte, error) {
	if e.n++; e.n > maxEvents {
		return nil, fmt.Errorf("more than %d events: %w", maxEvents, tidemark.ErrTooLarge)
	}
	e.data = e.data[:0]
	some := false
	for {
		line, err := e.line()
		if err != nil {
			return nil, err
		}
		if len(line) == 0 {
			if some && len(e.data) > 1 {
				return e.data[:len(e.data)-1], nil
			}
			e.data, some = e.data[:0], false
			continue
		}
		if value, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			some = true
			e.data = append(append(e.data, bytes.TrimPrefix(value, []byte(" "))...), '\n')
		}
		if len(e.data) > e.most {
			return nil, fmt.Errorf("an event has over %d bytes: %w", e.most, tidemark.ErrTooLarge)
		}
	}
}

// line is a line without its end, LF or CRLF. (A lone CR, which the format has too, no server of MCP writes.)
func (e *events) line() ([]byte, error) {
	var long []byte
	for {
		part, err := e.r.ReadSlice('\n')
		if err == nil && long == nil {
			return bytes.TrimRight(part, "\r\n"), nil
		}
		long = append(long, part...)
		switch {
		case len(long) > e.most+len("data: \r\n"):
			return nil, fmt.Errorf("a line has over %d bytes: %w", e.most, tidemark.ErrTooLarge)
		case err == nil:
			return bytes.TrimRight(long, "\r\n"), nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}
