package worker

import (
	"net/http"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/session"
)

// postCommand carries out a line that a person typed after a slash. Its answer is the text of the outcome.
func (c *call) postCommand() error {
	raw, err := c.body()
	if err != nil {
		return err
	}
	var line, id string
	if err := decodeBody(raw, field{"line", "a string", &line}, field{"id", "a string", &id}); err != nil {
		return err
	}
	in, err := session.Command(line)
	if err != nil {
		return err
	}
	in.ID, in.Origin = id, tidemark.Origin{From: tidemark.FromPerson, Channel: "api", Owner: true}
	return c.deliver(in, false)
}

// getOutbound lists what is on its way to people over channels, and what became of it.
func (c *call) getOutbound() error {
	limit, err := c.limit()
	if err != nil {
		return err
	}
	s, err := c.session(false)
	if err != nil {
		return err
	}
	out, err := s.Outbound(c.r.Context(), limit)
	if err != nil {
		return err
	}
	return c.reply(http.StatusOK, struct {
		Outbound []session.Outbound `json:"outbound"`
	}{out})
}
