package proxy

import (
	"context"
	"fmt"
	"io"

	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/paging"
)

// Steps writes the requests of all tracks as a replay reads them, a line for each track:
//
//	{"session","model","fixed","window","policy","tau","minBytes","zones",
//	 "steps":[{"keep"?,"stay"?,"release"?,"anchor"?,"append":[messages],"ids":[entries],"usage"?}]}
//
// A replay of that line by its own settings decides what was decided here.
func (c *Conversation) Steps(ctx context.Context, w io.Writer) error {
	tracks, err := c.told(ctx)
	if err != nil {
		return err
	}
	for _, t := range tracks {
		if err := c.stepsOf(ctx, t, w); err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
	}
	return nil
}

// told is a track as of one moment: what was answered of it, which changes no more.
type told struct {
	name  string
	steps []*step
}

// told takes down all tracks. Who reads of them may be slow, and no client is to wait for that.
func (c *Conversation) told(ctx context.Context) (out []told, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.load(ctx); err != nil {
		return nil, err
	}
	for _, t := range c.tree.tracks {
		if steps := t.answered(); len(steps) > 0 {
			out = append(out, told{c.nameOf(t), steps})
		}
	}
	return out, nil
}

func (c *Conversation) stepsOf(ctx context.Context, t told, w io.Writer) error {
	first := t.steps[0]
	out := json.AppendString([]byte(`{"session":`), t.name)
	out = json.AppendString(append(out, `,"model":`...), first.model)
	out = fmt.Appendf(out, `,"fixed":%d,`, first.fixed)
	o := c.Settings.Paging
	o.Window = c.Settings.Window
	out = append(paging.AppendSettings(out, o), `"steps":[`...)
	for i, s := range t.steps {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, '{')
		if s.cut {
			out = fmt.Appendf(out, `"keep":%d,"stay":true,`, s.keep)
		}
		out = names(out, "release", s.release)
		out = names(out, "anchor", s.anchor)
		out = append(out, `"append":[`...)
		var ids []string
		for j, n := range s.nodes {
			if j > 0 {
				out = append(out, ',')
			}
			m, err := c.message(ctx, n.id)
			if err != nil {
				return err
			}
			out = append(out, n.whole(logged(m))...)
			ids = append(ids, string(n.id))
		}
		out = append(out, ']')
		out = names(append(out, ','), "ids", ids)
		out = out[:len(out)-1]
		if s.usage != nil {
			raw, err := json.Marshal(s.usage)
			if err != nil {
				return err
			}
			out = append(append(out, `,"usage":`...), raw...)
		}
		out = append(out, '}')
		if _, err := w.Write(out); err != nil {
			return err
		}
		out = out[:0]
	}
	_, err := w.Write(append(out, "]}\n"...))
	return err
}

// names appends a list of names with a comma behind it, nothing for none.
func names(out []byte, field string, list []string) []byte {
	if len(list) == 0 {
		return out
	}
	out = append(append(append(out, '"'), field...), `":[`...)
	for i, s := range list {
		if i > 0 {
			out = append(out, ',')
		}
		out = json.AppendString(out, s)
	}
	return append(out, "],"...)
}

// Decisions writes what was decided with each request of all tracks, a line of JSON for each track as a replay tells it:
// {"session","requests":[…]}. A track tells of the requests before its fork, too.
func (c *Conversation) Decisions(ctx context.Context, w io.Writer) error {
	tracks, err := c.told(ctx)
	if err != nil {
		return err
	}
	for _, t := range tracks {
		out := append(json.AppendString([]byte(`{"session":`), t.name), `,"requests":[`...)
		for i, s := range t.steps {
			if i > 0 {
				out = append(out, ',')
			}
			line := s.line
			if len(line) == 0 {
				line = []byte("null") // it was never decided
			}
			out = append(out, line...)
		}
		if _, err := w.Write(append(out, "]}\n"...)); err != nil {
			return err
		}
	}
	return nil
}

// answered are the steps of a track up to the newest that is stored; none where it has none of its own.
func (t *track) answered() []*step {
	all := t.all()
	for n := len(all); n > 0; n-- {
		if all[n-1].stored {
			if n <= len(all)-len(t.steps) {
				return nil
			}
			return all[:n]
		}
	}
	return nil
}

// nameOf is the key of a track's branch.
func (c *Conversation) nameOf(t *track) string {
	if t.name == "" {
		return string(c.Key)
	}
	return string(c.Key) + "#" + t.name
}
