package session

import (
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	episodic "github.com/tidemark-ai/tidemark/room/episodes"
	"github.com/tidemark-ai/tidemark/room/pager"
	"github.com/tidemark-ai/tidemark/room/search"
	"github.com/tidemark-ai/tidemark/room/task"
)

// TestToolBudget: the session's own tools and the system text that is ours have what agent.TestTools leaves of
// the 1,500 tokens of all built-in tools, and 1,000 tokens.
func TestToolBudget(t *testing.T) {
	raw, err := json.Marshal([]tidemark.Tool{search.WideTool, task.Tool, pager.ReleaseTool, pager.FaultTool, episodic.Tool})
	if err != nil {
		t.Fatal(err)
	}
	if n := tidemark.EstimateText(string(raw)); n > 1_145 {
		t.Errorf("the schemas take %d tokens", n)
	} else {
		t.Logf("the schemas take %d tokens, the system text %d", n, tidemark.EstimateText(defaultSystem))
	}
	for _, tool := range []tidemark.Tool{search.Tool, search.WideTool, task.Tool, pager.ReleaseTool, pager.FaultTool, episodic.Tool} {
		if !json.Valid(tool.InputSchema) {
			t.Errorf("schema of %s: %s", tool.Name, tool.InputSchema)
		}
	}
}
