package session

import (
	"slices"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/room"
	"github.com/tidemark-ai/tidemark/skill"
)

// TestSearchableCalls: a call that looks for what was said is no thing that was said, and one that says something is.
func TestSearchableCalls(t *testing.T) {
	names := []string{room.RecallTool, room.TaskTool, skill.Tool, "read"}
	for _, own := range ownTools() {
		names = append(names, own.name)
	}
	for _, name := range slices.Compact(names) {
		m := tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{tidemark.ToolUse("c", name, []byte(`{"q":"walnut"}`))}}
		if said, want := room.Searchable(m) != "", !retold(name) || name == delimiterTool.Name; said != want {
			t.Errorf("a call of %s is searchable: %v, want %v", name, said, want)
		}
	}
}
