package session

import (
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/episodes"
	"github.com/tidemark-ai/tidemark/paging"
	"github.com/tidemark-ai/tidemark/room"
	"github.com/tidemark-ai/tidemark/skill"
)

// TestSearchableCalls: a call that looks for what was said is no thing that was said, and one that says something is.
func TestSearchableCalls(t *testing.T) {
	for _, name := range []string{room.RecallTool, room.TaskTool, skill.Tool, paging.ReleaseTool, paging.FaultTool, episodes.ToolName, room.DelegateTool, "read"} {
		m := tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{tidemark.ToolUse("c", name, []byte(`{"q":"walnut"}`))}}
		if said, want := room.Searchable(m) != "", !retold(name) || name == episodes.ToolName; said != want {
			t.Errorf("a call of %s is searchable: %v, want %v", name, said, want)
		}
	}
}
