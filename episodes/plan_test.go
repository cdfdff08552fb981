package episodes_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/episodes"
)

// context is a log as the context that nothing left.
func context(log []episodes.Message) []episodes.Item {
	out := make([]episodes.Item, len(log))
	for i := range log {
		m := &log[i].Content
		out[i] = episodes.Item{Seq: log[i].Seq, Message: m, Tokens: log[i].Tokens,
			Person: m.Role == tidemark.User && !slices.ContainsFunc(m.Content, isResult)}
	}
	return out
}

// pin makes some exchanges stay.
func pin(r *rand.Rand, ctx []episodes.Item) {
	for i := range ctx {
		if ctx[i].Message.Role == tidemark.Assistant && r.IntN(20) == 0 {
			ctx[i].Stays = true
			for k := i + 1; k < len(ctx) && ctx[k].Message.Role == tidemark.User && !ctx[k].Person; k++ {
				ctx[k].Stays = true
			}
		}
	}
}

func ledger(g *episodes.Graph, ctx []episodes.Item) *episodes.Ledger {
	return episodes.NewLedger(g, ctx)
}

// gone lists the blocks that a plan takes out.
func gone(ctx []episodes.Item, p episodes.Plan) []string {
	set := map[string]bool{}
	for _, r := range p.Runs {
		for i := r.From; i <= r.To; i++ {
			for n := range ctx[i].Message.Content {
				set[fmt.Sprintf("%04d.%02d", i, n)] = true
			}
		}
	}
	for _, b := range p.Blocks {
		set[fmt.Sprintf("%04d.%02d", b.Item, b.Block)] = true
	}
	out := make([]string, 0, len(set))
	for k := range set {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// TestTwin: a plan takes the steps of Algorithm 1, in its order, and the blocks of those; it stops as soon as it has what it
// needs, and goes on as long as it has not.
func TestTwin(t *testing.T) {
	for seed := range uint64(histories()) {
		twins(t, seed, seed%3 == 0)
	}
}

// small reports the end of an episode that may take less than the line that is to stand for it.
func (s step) small() bool { return s.ends && s.kind != episodes.Action && s.size() <= 250 }

func twins(t *testing.T, seed uint64, wild bool) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 5))
	c := history(seed, 4+r.IntN(20), wild)
	c.add(tidemark.NewText(tidemark.Assistant, "done")) // what is open is answered or never will be
	ctx := context(c.log)
	if r.IntN(2) == 0 {
		pin(r, ctx)
	}
	var size tidemark.Tokens
	for i := range ctx {
		size += ctx[i].Tokens
	}
	need := episodes.Need{Tokens: tidemark.Tokens(r.Int64N(int64(size) + 1)), Prologue: tidemark.Tokens(r.IntN(2000))}
	p := ledger(c.g, ctx).Plan(need)
	w := newTwin(ctx)
	for i := range max(len(w.list), len(c.g.Episodes())) {
		if i >= len(w.list) || i >= len(c.g.Episodes()) || w.list[i].name != c.g.Episodes()[i].Name || w.list[i].open != c.g.Episodes()[i].Open {
			t.Fatalf("seed %d: episode %d of %d, in the paper of %d:\n%v", seed, i, len(c.g.Episodes()), len(w.list), draw(c.g))
		}
	}
	all := w.run(need.Prologue)

	var freed tidemark.Tokens
	var want []string
	skipped := map[int][]*block{} // what stands of episodes for which a line would be larger
	k := 0
	for i, s := range p.Steps {
		if freed >= need.Tokens {
			t.Fatalf("seed %d: %d of %d tokens are freed, and step %d follows", seed, freed, need.Tokens, i)
		}
		freed += s.Freed
		if (s.Freed == 0 || skipped[s.Episode.N-1] != nil) && (k >= len(all) || all[k].episode != s.Episode.N-1) {
			want = append(want, places(skipped[s.Episode.N-1])...) // it ended with another one, or its line cost less by now
			delete(skipped, s.Episode.N-1)
			continue
		}
		for k < len(all) && all[k].episode != s.Episode.N-1 && all[k].small() {
			skipped[all[k].episode] = all[k].blocks
			k++
		}
		for k < len(all) && all[k].level != s.Level && s.Level != episodes.Whole && all[k].size() == 0 {
			k++
		}
		if k >= len(all) || all[k].episode != s.Episode.N-1 || all[k].level != s.Level && !all[k].ends {
			next := all[min(k, len(all)-1)]
			t.Fatalf("seed %d: step %d takes %v of %d, the paper %v of %d, blocks %v:\n%+v\n%v", seed, i, s.Level, s.Episode.N, next.level, next.episode+1, places(next.blocks), p.Steps, draw(c.g))
		}
		want = append(want, places(all[k].blocks)...)
		k++
	}
	slices.Sort(want)
	if got := gone(ctx, p); !slices.Equal(got, want) {
		t.Fatalf("seed %d: %d steps, gone\n got %v\nwant %v", seed, len(p.Steps), got, want)
	}
	for k < len(all) && all[k].small() {
		k++
	}
	if freed < need.Tokens && k < len(all) {
		t.Fatalf("seed %d: %d of %d tokens are freed, and %+v could follow", seed, freed, need.Tokens, all[k])
	}
	if p.Short != 0 {
		t.Fatalf("seed %d: nothing was asked for at least, and %d tokens are missing", seed, p.Short)
	}
	told(t, seed, p)
}

func places(list []*block) (out []string) {
	for _, b := range list {
		out = append(out, fmt.Sprintf("%04d.%02d", b.item, b.at))
	}
	return out
}

// told holds that each episode that left whole has one line: of an exploration with what was learned.
func told(t *testing.T, seed uint64, p episodes.Plan) {
	t.Helper()
	text, numbers := "", map[int]int{}
	for _, r := range p.Runs {
		text += r.Text + "\n"
		for _, n := range slices.Concat(r.Lines, r.Folded) {
			numbers[n]++
		}
		if (r.Text == "") != (len(r.Lines)+len(r.Folded) == 0) {
			t.Fatalf("seed %d: a run of lines %v and %v reads %q", seed, r.Lines, r.Folded, r.Text)
		}
	}
	for _, b := range p.Blocks {
		text += b.Text + "\n"
	}
	for _, s := range p.Steps {
		e := s.Episode
		if s.Level != episodes.Whole {
			continue
		}
		if numbers[e.N] > 1 {
			t.Fatalf("seed %d: %v has %d lines", seed, e, numbers[e.N])
		}
		word := fmt.Sprintf("%s %q", map[episodes.Type]string{episodes.Exploration: "exploration", episodes.Action: "action"}[e.Type], e.Name)
		if e.Type == episodes.Unmarked {
			word = "without a mark"
		}
		if !strings.Contains(text, word) || !strings.Contains(text, strings.Join(strings.Fields(e.Description), " ")) {
			t.Fatalf("seed %d: %v left, and no line says so:\n%s", seed, e, text)
		}
	}
}

// FuzzTwin looks for a history on which a plan and the paper differ.
func FuzzTwin(f *testing.F) {
	f.Add(uint64(1), true)
	f.Add(uint64(2), false)
	f.Fuzz(func(t *testing.T, seed uint64, wild bool) { twins(t, seed, wild) })
}
