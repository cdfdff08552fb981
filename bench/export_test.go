package bench

import (
	"fmt"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/episodes"
)

// EpisodeHistory makes the view of an agent's history of so many episodes, of which nothing has left, with its graph:
// explorations and actions in turns, twelve messages each, of which every sixth reply has a thought, every fourth has
// several calls, and every third exploration ends in the reply that starts its action. A person speaks before every fourth
// pair, and is answered.
func EpisodeHistory(n int, seed uint64) (compaction.View, error) {
	h := newHistory(0)
	h.pairs(n, newHand(seed, uint64(n))) //nolint:gosec // a count
	return h.view()
}

// Sizes of that history, in tokens. They are small, so that one of 19,200 messages fits a small machine; how long a pass
// takes does not hang on them, but for replies of which each block is to be counted.
const (
	madeThought = 60
	madeWords   = 15
	madeResult  = 150
)

// pairs adds explorations and actions.
func (h *history) pairs(n int, g *hand) {
	h.add(tidemark.NewText(tidemark.User, "You keep the charts of the harbour. "+g.text(2*madeWords)), tidemark.FromPerson)
	h.add(tidemark.NewText(tidemark.Assistant, "Ready. "+g.text(madeWords)), tidemark.FromModel)
	for i := 0; i < n; i++ {
		expl, act := fmt.Sprintf("chart %d", i), fmt.Sprintf("mend %d", i)
		if i%2 == 0 {
			if i%8 == 0 {
				h.add(tidemark.NewText(tidemark.User, fmt.Sprintf("Task %d. %s", i, g.text(2*madeWords))), tidemark.FromPerson)
			}
			h.turn(g, startOf(expl, episodes.Exploration))
			h.turn(g, g.grep(2*madeResult), g.list(madeResult))
			h.turn(g, g.read(2*madeResult))
			h.turn(g, g.read(madeResult), g.read(madeResult), g.bash(madeResult/2))
			if h.turn(g, g.fetch(madeResult)); i%8 != 0 {
				h.turn(g, g.bash(madeResult/2))
			}
			if end := endOf("Learned of part " + g.text(madeWords)); i%3 == 0 {
				act = fmt.Sprintf("mend %d", i+1)
				h.turn(g, end, startOf(act, episodes.Action, expl))
			} else {
				h.turn(g, end)
			}
			continue
		}
		expl = fmt.Sprintf("chart %d", i-1)
		if (i-1)%3 == 0 {
			h.turn(g, g.read(madeResult/2))
		} else {
			h.turn(g, startOf(act, episodes.Action, expl))
		}
		h.turn(g, g.edit(madeResult))
		h.turn(g, g.bash(madeResult))
		h.turn(g, g.edit(madeResult), g.edit(madeResult/2))
		h.turn(g, endOf(""))
		if i%8 == 7 {
			h.add(tidemark.NewText(tidemark.Assistant, "Done. "+g.text(madeWords)), tidemark.FromModel)
		}
	}
}

// turn adds a reply and its results; now and then it thinks first.
func (h *history) turn(g *hand, deeds ...toolDeed) {
	think := 0
	if g.rng.IntN(6) == 0 {
		think = madeThought
	}
	reply, results := g.turn(think, madeWords, deeds...)
	h.add(reply, tidemark.FromModel)
	h.add(results, tidemark.FromTool)
}

func (g *hand) fetch(tokens int) toolDeed {
	return toolDeed{"mcp__harbour__berths", fmt.Appendf(nil, `{"quay":%d}`, g.rng.IntN(40)), g.text(tokens)}
}
