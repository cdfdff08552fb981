package bench

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/episodes"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// hand draws what an agent and its tools say. The same seed makes the same.
type hand struct {
	rng   *rand.Rand
	calls int // so far: ids are used once
}

func newHand(seed, stream uint64) *hand {
	return &hand{rng: rand.New(rand.NewPCG(seed, stream))} //nolint:gosec // made to be repeated
}

// between draws a number from low to high.
func (g *hand) between(low, high int) int { return low + g.rng.IntN(high-low+1) }

// words are the words of made results.
var words = strings.Fields("tide harbour gauge level chart buoy anchor mast keel rope sail deck pilot quay lock swell current depth signal lamp ledger berth crane hull")

// charsToken is how many characters of text a token is estimated at, in tenths: 3 tokens for 10.
const charsToken = 3

// text draws lines of some tokens, as the estimate has them.
func (g *hand) text(tokens int) string {
	var b strings.Builder
	most := tokens * 10 / charsToken
	b.Grow(most + 64)
	for line := 1; b.Len() < most; line++ {
		fmt.Fprintf(&b, "src/part%d/%s_%d.go:%d: ", g.rng.IntN(9), words[g.rng.IntN(len(words))], g.rng.IntN(99), line)
		for range 6 {
			b.WriteString(words[g.rng.IntN(len(words))])
			b.WriteByte(' ')
		}
		b.WriteByte(';')
		b.WriteByte(' ')
	}
	return b.String()[:most]
}

// deed is a call of a tool with its result.
type toolDeed struct {
	name   string
	input  json.RawMessage
	result string
}

func (g *hand) path() string {
	return fmt.Sprintf("src/part%d/%s_%d.go", g.rng.IntN(9), words[g.rng.IntN(len(words))], g.rng.IntN(99))
}

func (g *hand) grep(tokens int) toolDeed {
	return toolDeed{"grep", fmt.Appendf(nil, `{"pattern":"%s","path":"src"}`, words[g.rng.IntN(len(words))]), g.text(tokens)}
}

func (g *hand) list(tokens int) toolDeed {
	return toolDeed{"glob", fmt.Appendf(nil, `{"pattern":"src/part%d/*.go"}`, g.rng.IntN(9)), g.text(tokens)}
}

func (g *hand) read(tokens int) toolDeed {
	return toolDeed{"read", fmt.Appendf(nil, `{"file_path":"%s"}`, g.path()), g.text(tokens)}
}

func (g *hand) bash(tokens int) toolDeed {
	return toolDeed{"bash", fmt.Appendf(nil, `{"command":"go test ./part%d"}`, g.rng.IntN(9)), g.text(tokens)}
}

func (g *hand) edit(tokens int) toolDeed {
	return toolDeed{"edit", fmt.Appendf(nil, `{"file_path":"%s","old_string":"%s","new_string":"%s"}`, g.path(), g.text(tokens/2), g.text(tokens/2)), "The file was edited."}
}

func (g *hand) fetch(tokens int) toolDeed {
	return toolDeed{"mcp__harbour__berths", fmt.Appendf(nil, `{"quay":%d}`, g.rng.IntN(40)), g.text(tokens)}
}

// mark is a call of the delimiter with what it is told.
func mark(input string) toolDeed {
	return toolDeed{episodes.ToolName, json.RawMessage(input), "Done."}
}

func startOf(name string, kind episodes.Type, on ...string) toolDeed {
	if kind == episodes.Exploration {
		return mark(fmt.Sprintf(`{"action":"start","name":%q,"type":"expl"}`, name))
	}
	list, err := json.Marshal(append([]string{}, on...))
	if err != nil { // they are plain names
		list = []byte("[]")
	}
	return mark(fmt.Sprintf(`{"action":"start","name":%q,"type":"act","dependencies":%s}`, name, list))
}

func endOf(description string) toolDeed {
	if description == "" {
		return mark(`{"action":"end"}`)
	}
	return mark(fmt.Sprintf(`{"action":"end","description":%q}`, description))
}

// turn is a reply with some calls, and their results.
func (g *hand) turn(think, say int, deeds ...toolDeed) (reply, results tidemark.Message) {
	reply.Role, results.Role = tidemark.Assistant, tidemark.User
	if think > 0 {
		reply.Content = append(reply.Content, tidemark.Block{Type: tidemark.TypeThinking, Text: g.text(think), Signature: fmt.Sprintf("sig%016x", g.rng.Uint64())})
	}
	if say > 0 {
		reply.Content = append(reply.Content, tidemark.Text(g.text(say)))
	}
	for _, d := range deeds {
		g.calls++
		id := fmt.Sprintf("toolu_%08d", g.calls)
		reply.Content = append(reply.Content, tidemark.ToolUse(id, d.name, d.input))
		results.Content = append(results.Content, tidemark.ToolResult(id, d.result, false))
	}
	return reply, results
}

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

// among draws a number between bounds.
func (g *hand) among(bounds [2]int) int { return g.between(bounds[0], bounds[1]) }
