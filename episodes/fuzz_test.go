package episodes_test

import (
	"fmt"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/episodes"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// FuzzArguments: whatever arguments a model writes, the answer is short, and the graph is sound; what was refused changed nothing.
func FuzzArguments(f *testing.F) {
	for _, s := range []string{startA, endA, startB, end, `{}`, `[]`, `{"action":"start","name":"\u0000\"","type":"expl"}`, `{"action":"end","description":[]}`,
		`{"action":"start","name":"c","type":"act","dependencies":["a",null]}`, `{"action":"start","action":"end"}`} {
		f.Add([]byte(s), []byte(endA))
	}
	f.Fuzz(func(t *testing.T, one, two []byte) {
		c := newTalk()
		c.reply(startA)
		c.reply(endA)
		for _, raw := range [][]byte{one, two} {
			c.calls++
			id := fmt.Sprintf("c%d", c.calls)
			before := fmt.Sprint(marked(c.g))
			c.add(tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{{Type: tidemark.TypeToolUse, ID: id, Name: episodes.ToolName, Input: raw}}})
			a := c.g.Answer()[id]
			if a.Text == "" || len(a.Text) > 16_000 {
				t.Errorf("%s is answered with %d bytes", raw, len(a.Text))
			}
			c.add(tidemark.Message{Role: tidemark.User, Content: []tidemark.Block{a.Result(id)}})
			if err := c.g.Check(); err != nil {
				t.Errorf("%s: %v", raw, err)
			}
			if now := fmt.Sprint(marked(c.g)); (now == before) != a.Refused {
				t.Errorf("%s: refused is %v: %s\nbefore %s\nnow    %s", raw, a.Refused, a.Text, before, now)
			}
		}
	})
}

// FuzzLoad: rows that nobody here wrote, as after an import or an older version, neither stop a plan nor take what a
// person said.
func FuzzLoad(f *testing.F) {
	for seed := range uint64(4) {
		c := history(seed, 6, true)
		rows, upto := c.g.Save()
		raw, err := json.Marshal(rows)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw, upto, seed)
	}
	f.Add([]byte(`[{"n":9,"name":"a","type":"expl","open":true},{"name":"a","type":"act","dependencies":["a","a","b"],"from":{"seq":9},"to":{"seq":1}},{"type":"?"}]`), int64(-1), uint64(1))
	f.Fuzz(func(t *testing.T, raw []byte, upto int64, seed uint64) {
		var rows []episodes.Episode
		if json.Unmarshal(raw, &rows) != nil {
			return
		}
		c := history(seed%16, 6, true)
		g := episodes.Load(episodes.DefaultTools(files), rows, upto)
		for _, m := range c.log {
			g.Add(m)
		}
		_ = g.Check() // a breach is an answer
		g.Answer()
		g.Until(upto / 2).Clone().Save()
		ctx := context(c.log)
		p := ledger(g, ctx).Plan(episodes.Need{Tokens: 1 << 40, Least: 10, Lines: 100})
		for _, r := range p.Runs {
			for i := r.From; i <= r.To; i++ {
				if ctx[i].Person {
					t.Errorf("message %d left, and a person said it", i)
				}
			}
		}
		for _, b := range p.Blocks {
			if m := ctx[b.Item].Message; m.Role == tidemark.User && m.Content[b.Block].Type != tidemark.TypeToolResult {
				t.Errorf("block %d of message %d left, and somebody said it", b.Block, b.Item)
			}
		}
	})
}
