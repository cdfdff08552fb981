package worker

import (
	"fmt"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/room/outbound"
	"github.com/tidemark-ai/tidemark/session"
)

// postCommand carries out a line that a person typed after a slash. Its answer is the text of the outcome.
func postCommand(c *request) (any, error) {
	var line, id string
	c.decode(field{"line", "a string", &line}, field{"id", "a string", &id})
	in, err := session.Command(line)
	c.note(err)
	in.ID, in.Origin = id, tidemark.Origin{From: tidemark.FromPerson, Channel: "api", Owner: true}
	return deliver(c, in, false)
}

// getOutbound lists what is on its way to people over channels, and what became of it.
func getOutbound(c *request) (any, error) {
	limit := c.limit()
	s, err := c.session(false)
	if err != nil {
		return nil, err
	}
	r, ok := session.Room[*outbound.Room](s)
	if !ok {
		return nil, fmt.Errorf("outbound of %s: its host sends nothing: %w", s.Key, tidemark.ErrUnavailable)
	}
	out, err := r.Messages(c.r.Context(), limit)
	return struct {
		Outbound []outbound.Message `json:"outbound"`
	}{out}, err
}
