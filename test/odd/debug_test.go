package odd

import (
	"fmt"
	"os"

	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/setup"
)

func (x *talk) debug() {
	if os.Getenv("ODD_TALK") != x.name {
		return
	}
	v, err := x.s.View(x.w.t.Context())
	b := x.s.Budget()
	fmt.Printf("DEBUG view size %d fixed %d est %d err %v budget %+v limit %d room %d\n", v.Size, v.Fixed, v.View.Tokens(), err, b, b.Limit(), b.Room())
	for i, it := range v.Items {
		fmt.Printf("  %d %s %s seq %d-%d %s tok %d stubs %d span %v lead %v pinned %v: %.70q\n", i, it.ID, it.Source, it.Seq, it.Last, it.Message.Role, it.Tokens, it.Stubs, it.Span(), it.Lead(), it.Pinned, string(it.Message.AppendJSON(nil)))
	}
	for _, force := range []bool{false, true} {
		act, err := compaction.Plan(setup.Strategies(x.config), v.View, b, force)
		fmt.Printf("DEBUG plan force %v by %v edits %d short %d err %v\n", force, act.By, len(act.Edits), act.Short, err)
		for _, e := range act.Edits {
			fmt.Printf("   %s-%s keep %d block %d\n", e.From, e.To, len(e.Keep), e.Block)
		}
	}
}
