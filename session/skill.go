package session

import (
	"slices"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/skill"
)

// withSkills leaves the tool that reads skills out where the system prompt lists none. The prompt is frozen, so the
// offer is as stable as it, also in another life of the session.
func withSkills(system string, tools []tidemark.Tool) []tidemark.Tool {
	if skill.Listed(system) {
		return tools
	}
	return slices.DeleteFunc(tools, func(t tidemark.Tool) bool { return t.Name == skill.Tool })
}
