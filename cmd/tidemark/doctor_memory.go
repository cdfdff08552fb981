package main

import (
	"context"
	"strings"

	"github.com/tidemark-ai/tidemark/agent"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// nights tells what a server's memory left out lately, and of files of the digest that a person edited. It is
// silent where nothing is on.
func (d *doctor) nights(ctx context.Context, c *client) {
	var out struct {
		Night agent.Night `json:"night"`
	}
	if err := c.get(ctx, agentPath(mainAgent, "/memory/ledger?limit=1"), &out); err != nil {
		return // an older server, or it was told above what it answers
	}
	if n := out.Night; n.Superseded > 0 {
		d.add("memory", fine, "", "%d facts count no more since newer ones replaced or ended them (`tidemark memory ledger`); the last night was %s", n.Superseded, when(n.At))
	}
	var last agent.Consolidated
	if json.Unmarshal(out.Night.Last, &last) == nil && last.Waiting != "" {
		d.add("memory", odd, "mend the model's key, quota or address, or name another one (compaction.model)", "new facts are not compared with older ones: %s", safe(last.Waiting))
	}
	if n := out.Night; len(n.Edited) > 0 {
		d.add("digest", odd, "take over what you want, then remove your file: the agent goes on with its own", "edited by a person and left as it is: %s; ours stands beside, as .suggested.md", safe(strings.Join(n.Edited, ", ")))
	}
}
