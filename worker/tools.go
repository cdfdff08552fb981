package worker

import (
	"fmt"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/agent"
	"github.com/tidemark-ai/tidemark/toolbox"
)

// getTools tells where an agent's tools of others come from and how these are, and what the owner's own conversation
// may use of them. Sources that are due are asked.
func getTools(c *request, _ *agent.Agent) (any, error) {
	report := toolbox.Report{Sources: []toolbox.State{}, Tools: []toolbox.Shown{}}
	if c.Tools != nil {
		box, err := c.Tools(c.r.Context())
		if err != nil {
			return nil, fmt.Errorf("open tools: %w", err)
		}
		key := tidemark.Key("agent:" + c.r.PathValue("agent") + ":main")
		report = box.Report(c.r.Context(), key.Scope())
	}
	return report, nil
}
