package session

import (
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// TestMadeFor: a plan read back is carried out only if the same would be planned now: what was pinned since, a window that
// was learned, or another reason make another act.
func TestMadeFor(t *testing.T) {
	act := func(keep ...tidemark.EntryID) compaction.Act {
		return compaction.Act{By: []string{"summary"}, Edits: []tidemark.Edit{{From: "a", To: "d", Keep: keep, Summarize: true}}}
	}
	var v View
	v.Size = 900
	stored := storedAct(act())
	var back storedAct
	if err := json.Unmarshal([]byte(mustJSON(stored)), &back); err != nil {
		t.Fatal(err)
	}
	p := &plan{Reason: string(fitAuto), Size: 900, Act: compaction.Act(back)}
	if !p.madeFor(v, act(), fitAuto, "") {
		t.Error("a plan that was read back is another one")
	}
	if p.madeFor(v, act("b"), fitAuto, "") || p.madeFor(v, act(), fitForced, "") || p.madeFor(v, act(), fitAuto, "names") || (*plan)(nil).madeFor(v, act(), fitAuto, "") {
		t.Error("a plan is carried out that is not the one of now")
	}
	v.Size++
	if p.madeFor(v, act(), fitAuto, "") {
		t.Error("a plan of another view is carried out")
	}
}
