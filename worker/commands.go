package worker

import (
	"github.com/tidemark-ai/tidemark"
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
	out, err := s.Outbound(c.r.Context(), limit)
	return struct {
		Outbound []session.Outbound `json:"outbound"`
	}{out}, err
}
