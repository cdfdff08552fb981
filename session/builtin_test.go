package session_test

import (
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/approval"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/room/task"
	"github.com/tidemark-ai/tidemark/session"
)

// TestOwnToolsNeedNoRule: the default of the rules is for tools of others. Ours run by it whether the core or a room has
// them, and whether they are offered or only named in the view.
func TestOwnToolsNeedNoRule(t *testing.T) {
	for _, list := range [][]compaction.Strategy{{&compaction.Paging{}, &compaction.Episodes{}}, {compaction.Summary{}}} {
		h := unopened(t, session.Settings{})
		h.taskState, h.strategies, h.approvals.Policy.Default = task.On, list, approval.Deny
		h.tools = &box{tools: []tidemark.Tool{tool("files__read", true)}}
		var of []tidemark.Block
		for _, name := range []string{"recall", "task_state", "memory_release", "memory_fault", "delimiter", "look", "files__read"} {
			of = append(of, tidemark.ToolUse(name, name, []byte(`{}`)))
		}
		h.model.set(calls(of...))
		h.open()
		got := h.say("go")
		for _, b := range of {
			_, result, ok := strings.Cut(got, b.ID+"true ")
			if !ok {
				_, result, ok = strings.Cut(got, b.ID+"false ")
			}
			if refused := strings.HasPrefix(result, "not run:"); !ok || refused != (b.Name == "files__read") {
				t.Errorf("%s: %.80q", b.Name, result)
			}
		}
	}
}
