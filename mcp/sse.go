package mcp

import (
	"fmt"
	"io"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/sse"
)

// maxEvents bounds what one answer may stream beside its result.
const maxEvents = 10_000

// events reads messages that come as server-sent events. The sum of all that is read is bounded by the reader that it
// is given, each event by most.
type events struct {
	r *sse.Reader
	n int
}

func newEvents(r io.Reader, most int) *events {
	e := &events{r: sse.NewReader(r)}
	e.r.Max = most
	return e
}

// next returns the data of the next event that has some, valid until the next call. At the end it is io.EOF.
func (e *events) next() ([]byte, error) {
	for {
		if e.n++; e.n > maxEvents {
			return nil, fmt.Errorf("more than %d events: %w", maxEvents, tidemark.ErrTooLarge)
		}
		if ev, err := e.r.Next(); err != nil || len(ev.Data) > 0 {
			return ev.Data, err
		}
	}
}
