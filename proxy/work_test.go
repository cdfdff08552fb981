package proxy

import (
	"crypto/sha256"
	"slices"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/episodes"
	"github.com/tidemark-ai/tidemark/proxy/body"
)

// alone is a request of one message.
func alone(t *testing.T, raw string) (*Exchange, *node, body.Item) {
	t.Helper()
	it, err := body.NewItem([]byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	n := &node{role: it.Role, form: formOf(it), sum: sha256.Sum256(it.Raw)}
	return &Exchange{path: []*node{n}, sums: [][sha256.Size]byte{n.sum}, req: &body.Request{Items: []body.Item{it}}}, n, it
}

// TestWorkOfUnreadable: a block that cannot be read is neither a call nor a result to a graph, but a text without words, and what
// stands beside it is what it is.
func TestWorkOfUnreadable(t *testing.T) {
	_, n, it := alone(t, `{"role":"user","content":[{"type":"tool_result","tool_use_id":7,"content":"x"},{"type":"tool_result","tool_use_id":"t","content":"x"}]}`)
	beside := tidemark.ToolResult("t", "x", false)
	w := workOf(n, it)
	if len(w.blocks) != 2 || w.blocks[0].Type != tidemark.TypeText || w.blocks[1].ToolUseID != "t" || w.tokens != sizeOf(tidemark.Text(""))+sizeOf(beside) {
		t.Errorf("%+v of %d tokens", w.blocks, w.tokens)
	}
}

// TestBlocksTellLines: a block in whose place the line of an episode stands tells the ledger which, so that the episode gets no
// second one; one that left without a word, or with other words, tells of none.
func TestBlocksTellLines(t *testing.T) {
	x, _, _ := alone(t, `{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"},{"type":"text","text":"c"},{"type":"text","text":"d"}]}`)
	l := &left{blocks: map[int]map[place]leftBlock{0: {{N: 0}: {Text: "[Evicted a]", Told: 3}, {N: 1}: {}, {N: 2}: {Text: "words"}}}}
	it := episodes.Item{Message: &tidemark.Message{Role: tidemark.User}}
	x.blocks(&row{}, &it, 0, l)
	if !slices.Equal(it.Told, []int{3}) || !slices.Equal(it.Numbers, []int{-1, -1, 3}) || it.Message.PlainText() == "" {
		t.Errorf("told %v, numbers %v of %+v", it.Told, it.Numbers, it.Message)
	}
}
