package session

import (
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/room/search"
	"github.com/tidemark-ai/tidemark/room/task"
)

// TestToolBudget: the session's own tools and the system text that is ours have what agent.TestTools leaves of
// the 1,500 tokens of all built-in tools, and 1,000 tokens.
func TestToolBudget(t *testing.T) {
	raw, err := json.Marshal([]tidemark.Tool{search.WideTool, task.Tool, releaseTool, faultTool, delimiterTool})
	if err != nil {
		t.Fatal(err)
	}
	if n := tidemark.EstimateText(string(raw)); n > 1_145 {
		t.Errorf("the schemas take %d tokens", n)
	} else {
		t.Logf("the schemas take %d tokens, the system text %d", n, tidemark.EstimateText(defaultSystem))
	}
	for _, tool := range []tidemark.Tool{search.Tool, search.WideTool, task.Tool, releaseTool, faultTool, delimiterTool} {
		if !json.Valid(tool.InputSchema) {
			t.Errorf("schema of %s: %s", tool.Name, tool.InputSchema)
		}
	}
}

// TestDelegateTokens: what delegation adds to each prompt is small, in the parent and in the child.
func TestDelegateTokens(t *testing.T) {
	tool, _ := bare(t).delegateTool()
	raw, err := json.Marshal(tool)
	if err != nil || !json.Valid(tool.InputSchema) {
		t.Fatal(err, string(tool.InputSchema))
	}
	if n := tidemark.EstimateText(string(raw)); n >= 150 {
		t.Errorf("the tool takes %d tokens", n)
	} else {
		t.Logf("the tool takes %d tokens, its schema %d", n, tidemark.EstimateText(string(tool.InputSchema)))
	}
	if n := tidemark.EstimateText(childSystem); n >= 80 {
		t.Errorf("the system text of a child takes %d tokens", n)
	} else {
		t.Logf("the system text of a child takes %d tokens", n)
	}
}
