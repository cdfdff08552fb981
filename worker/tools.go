package worker

import (
	"fmt"
	"net/http"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/toolbox"
)

// getTools tells where an agent's tools of others come from and how these are, and what the owner's own conversation
// may use of them. Sources that are due are asked.
func (c *call) getTools() error {
	_, name, err := c.owner(c.r.PathValue("agent"))
	if err != nil {
		return err
	}
	report := toolbox.Report{Sources: []toolbox.State{}, Tools: []toolbox.Shown{}}
	if c.Tools != nil {
		box, err := c.Tools(c.r.Context())
		if err != nil {
			return fmt.Errorf("open tools: %w", err)
		}
		key := tidemark.Key("agent:" + name + ":main")
		report = box.Report(c.r.Context(), key.Scope())
	}
	return c.reply(http.StatusOK, report)
}
