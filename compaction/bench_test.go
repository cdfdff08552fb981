package compaction_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// work is the log of an agent: a person asks, tools are called and answer, n messages in all.
func work(n int) (entries []compaction.Visible, payloads [][]byte) { return workOf(n, 30) }

// workOf is work with results of some words.
func workOf(n, size int) (entries []compaction.Visible, payloads [][]byte) {
	rng := rand.New(rand.NewPCG(5, 5))
	words := func(k int) string {
		var b strings.Builder
		for range k {
			fmt.Fprintf(&b, "tide%d turns/at_%x.go ", rng.IntN(300), rng.Uint32()%4096)
		}
		return b.String()
	}
	for i := range n {
		call := fmt.Sprintf("toolu_%06d", i/2)
		m := tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{tidemark.Text(words(5)), tidemark.ToolUse(call, "read", []byte(`{"path":"tide.go"}`))}}
		switch {
		case i%20 == 0:
			m = tidemark.NewText(tidemark.User, words(10))
		case i%20 == 19:
			m = tidemark.NewText(tidemark.Assistant, words(10))
		case i%2 == 0:
			m = tidemark.Message{Role: tidemark.User, Content: []tidemark.Block{tidemark.ToolResult(fmt.Sprintf("toolu_%06d", (i-1)/2), words(size), false)}}
		}
		id := tidemark.EntryID(fmt.Sprintf("e%06d", i))
		entries = append(entries, compaction.Visible{Message: m, Skeleton: tidemark.Skeleton{ID: id, Seq: int64(i + 1), Kind: tidemark.KindMessage, Role: m.Role,
			Tokens: tidemark.Estimate(m), Blocks: len(m.Content), Calls: m.Calls(), Results: m.Results()}})
		payloads = append(payloads, m.AppendJSON(nil))
	}
	return entries, payloads
}

// BenchmarkPlan assembles and plans 10,000 messages, none of them compacted before: the worst that a
// log can ask for. Its baseline is decoding the same payloads once.
func BenchmarkPlan(b *testing.B) {
	const n = 10_000
	entries, payloads := work(n)
	size := int64(0)
	for _, p := range payloads {
		size += int64(len(p))
	}
	part := int64(0)
	for _, p := range payloads[:n/10] {
		part += int64(len(p))
	}
	run := func(name string, f func() error) {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(size)
			if name == "index" {
				b.SetBytes(part)
			}
			b.ReportAllocs()
			for b.Loop() {
				if err := f(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	run("decode", func() error {
		for _, p := range payloads {
			var m tidemark.Message
			if err := json.Unmarshal(p, &m); err != nil {
				return err
			}
		}
		return nil
	})
	run("assemble", func() error {
		_, err := compaction.Assemble(entries, nil)
		return err
	})
	v, err := compaction.Assemble(entries, nil)
	if err != nil {
		b.Fatal(err)
	}
	budget := compaction.Budget{Window: 200_000, Reserve: compaction.DefaultReserve, Keep: compaction.DefaultKeep}
	strategies := []compaction.Strategy{compaction.Summary{}}
	run("plan", func() error {
		act, err := compaction.Plan(strategies, v, budget, false)
		if err == nil && act.Summarize < 0 {
			return fmt.Errorf("the plan has %d edits and no summary", len(act.Edits))
		}
		return err
	})
	run("messages", func() error {
		return tidemark.Check(v.Messages())
	})
	run("index", func() error { // the mechanical part of the summary of a thousand
		if d := compaction.Gather(compaction.Digest{}, v.Items[:n/10]); d.Messages != n/10 {
			return fmt.Errorf("gathered %d", d.Messages)
		}
		return nil
	})
	shown, visible := tidied(entries)
	run("assemble of 9,900 under stubs", func() error {
		_, err := compaction.Assemble(visible, shown)
		return err
	})
}

// tidied replaces the first block of each entry but the last hundred.
func tidied(entries []compaction.Visible) ([]compaction.Replacement, []compaction.Visible) {
	var shown []compaction.Replacement
	out := append([]compaction.Visible(nil), entries...)
	for i, e := range out[:len(out)-100] {
		stub := tidemark.Text("[A tool result was here.]")
		if r := e.Results; len(r) > 0 {
			stub = tidemark.ToolResult(r[0], "[paged out]", false)
		}
		shown = append(shown, compaction.Replacement{Placed: compaction.Placed{Overlay: "o", Row: 1 << 20, N: i, From: e.Seq, To: e.Seq, Block: 1},
			Edit: tidemark.Edit{From: e.ID, Block: 1, Blocks: []tidemark.Block{stub}}})
	}
	return shown, out
}
