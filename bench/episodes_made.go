package bench

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/tidemark-ai/tidemark"
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

// among draws a number between bounds.
func (g *hand) among(bounds [2]int) int { return g.between(bounds[0], bounds[1]) }
