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

// retold reports whether a tool answers with what stands elsewhere: then that is found there, and no memory of this
// conversation.
func retold(name string) bool { return ownTool(name) || name == skill.Tool }
