package worker

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/session"
)

// formatSteps is the format of a log that a replay reads (paging.Scanner.Session).
const formatSteps = "steps"

// formatDecisions is the format of what was decided, as a replay tells it.
const formatDecisions = "decisions"

// exportSteps streams the requests of a conversation as a replay reads them: of a client's, what it sent, a line for each
// of its tracks; of any other, what its calls were made of, a line for each session.
func exportSteps(c *request, s *session.Session, all bool) (any, error) {
	key, err := tidemark.ParseKey(c.r.PathValue("key"))
	if err != nil {
		return nil, err
	}
	out := bufio.NewWriterSize(&begun{c: c}, 64<<10)
	if key.Channel() == proxyChannel && c.Proxies != nil {
		conv, err := c.Proxies(c.r.Context(), key.Root())
		if err == nil {
			err = conv.Steps(c.r.Context(), out)
		}
		if err != nil {
			return nil, fmt.Errorf("export %s: %w", key, err)
		}
		return nil, out.Flush()
	}
	if err := writeSteps(c.r.Context(), out, s, key, all); err != nil {
		return nil, fmt.Errorf("export %s: %w", key, err)
	}
	return nil, out.Flush()
}

// exportDecisions streams what was decided with each request of a client, a line for each of its tracks.
func exportDecisions(c *request) (any, error) {
	key, err := tidemark.ParseKey(c.r.PathValue("key"))
	if err != nil {
		return nil, err
	}
	if key.Channel() != proxyChannel || c.Proxies == nil {
		return nil, fmt.Errorf("format %s is of conversations of clients (channel %s); export --format %s and replay the others: %w", formatDecisions, proxyChannel, formatSteps, tidemark.ErrInvalid)
	}
	out := bufio.NewWriterSize(&begun{c: c}, 64<<10)
	conv, err := c.Proxies(c.r.Context(), key.Root())
	if err == nil {
		err = conv.Decisions(c.r.Context(), out)
	}
	if err != nil {
		return nil, fmt.Errorf("export %s: %w", key, err)
	}
	return nil, out.Flush()
}

// begun sends the head of an export with its first bytes, so that a conversation that cannot be read is an error and not an
// empty file.
type begun struct{ c *request }

// Write implements io.Writer.
func (b *begun) Write(p []byte) (int, error) {
	b.c.w.Header().Set("Content-Type", "application/x-ndjson")
	return b.c.w.Write(p)
}

// writeSteps writes a line for each session of a conversation. A request is all before a reply, so what was said
// behind the last reply is none yet. What the provider reported is left out of a conversation that was compacted: it is of requests
// that a replay, which has every message, does not make.
func writeSteps(ctx context.Context, w io.Writer, s *session.Session, key tidemark.Key, all bool) error {
	info, err := s.Info(ctx)
	if err != nil {
		return err
	}
	b := stepper{key: string(key), reported: info.Compactions == 0}
	for e, err := range s.Reader.All(ctx, all) {
		if err == nil {
			err = b.add(w, e)
		}
		if err != nil {
			return err
		}
	}
	return b.end(w)
}

// stepper makes steps of the messages of a log, in their order.
type stepper struct {
	key      string
	reported bool // calls tell what the provider reported
	log      string
	line     bool // the line of the log has begun
	steps    int
	messages [][]byte
	ids      []byte // of them, as a list
}

// add takes the next message. A reply ends the step before it, and stands at the start of the next one.
func (b *stepper) add(w io.Writer, e tidemark.Entry) error {
	if e.Log != b.log {
		if err := b.end(w); err != nil {
			return err
		}
		b.log = e.Log
	}
	m, err := e.Message()
	if err != nil {
		return err
	}
	if m.Role == tidemark.Assistant && len(b.messages) > 0 {
		if err := b.step(w, e.Call); err != nil {
			return err
		}
	}
	raw := m.AppendJSON(nil)
	if bytes.ContainsAny(raw, "\r\n") { // a line holds a session
		var one bytes.Buffer
		if err := json.Compact(&one, raw); err != nil {
			return fmt.Errorf("entry %s: %w", e.ID, err)
		}
		raw = one.Bytes()
	}
	if b.messages = append(b.messages, raw); len(b.ids) > 0 {
		b.ids = append(b.ids, ',')
	}
	b.ids = json.AppendString(b.ids, string(e.ID))
	return nil
}

// step writes the request that a call answered.
func (b *stepper) step(w io.Writer, call *tidemark.Call) error {
	var out []byte
	switch {
	case !b.line:
		model := ""
		if call != nil {
			model = call.Model
		}
		out = json.AppendString(append(out, `{"session":`...), b.key+"@"+b.log)
		out = append(json.AppendString(append(out, `,"model":`...), model), `,"steps":[`...)
		b.line = true
	case b.steps > 0:
		out = append(out, ',')
	}
	out = append(append(append(out, `{"append":[`...), bytes.Join(b.messages, []byte{','})...), `],"ids":[`...)
	out = append(append(out, b.ids...), ']')
	if call != nil && call.Reported && b.reported {
		raw, err := json.Marshal(call.Usage)
		if err != nil {
			return err
		}
		out = append(append(out, `,"usage":`...), raw...)
	}
	b.steps++
	b.messages, b.ids = nil, nil
	_, err := w.Write(append(out, '}'))
	return err
}

// end ends the line of a log. One without a reply has none.
func (b *stepper) end(w io.Writer) error {
	var err error
	if b.line {
		_, err = io.WriteString(w, "]}\n")
	}
	b.line, b.steps, b.messages, b.ids = false, 0, nil, nil
	return err
}
