package compaction_test

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/episodes"
	"github.com/tidemark-ai/tidemark/paging"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// annotated is a world in which an agent marks its episodes.
type annotated struct {
	world
	g    *episodes.Graph
	h    *tidemarktest.Marked
	wild bool
	pins map[tidemark.EntryID]bool
	left map[int]bool // episodes that were gone when it was last looked
}

func newAnnotated(r *rand.Rand, wild bool) *annotated {
	w := &annotated{g: (&compaction.Episodes{}).NewGraph(), wild: wild, pins: map[tidemark.EntryID]bool{}, left: map[int]bool{}}
	pinning := r.IntN(2) == 0
	w.h = &tidemarktest.Marked{Rand: r, Wild: wild, Words: 10 + r.IntN(60), Add: func(m tidemark.Message) {
		id := w.add(m)
		w.g.Add(episodes.Message{ID: id, Seq: w.seq, Tokens: tidemark.Estimate(m), Content: m})
		if pinning && r.IntN(40) == 0 {
			w.pins[id] = true
		}
	}, Answer: func() map[string]tidemark.Block {
		out := map[string]tidemark.Block{}
		for id, a := range w.g.Answer() {
			out[id] = a.Result(id)
		}
		return out
	}}
	return w
}

// now is the view with its graph, and what is replaced in it.
func (w *annotated) now(t testing.TB) (compaction.View, []compaction.Replacement) {
	v, shown := w.view(t)
	v.Graph = w.g
	return v, shown
}

// lift takes the newest overlay back.
func (w *annotated) lift() {
	w.seq++
	w.rows = append(w.rows, compaction.Row{ID: tidemark.EntryID(fmt.Sprintf("o%04d", w.seq)), Seq: w.seq,
		Overlay: tidemark.Overlay{Lifts: []tidemark.EntryID{w.rows[len(w.rows)-1].ID}}})
}

// lawful checks what is true of each view that episodes left, whatever they took out.
func (w *annotated) lawful(t *testing.T, seed uint64, v compaction.View, shown []compaction.Replacement) {
	t.Helper()
	sent := v.Messages()
	if len(sent) > 0 {
		if err := tidemark.Check(sent); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
	items := map[tidemark.EntryID]*compaction.Item{}
	for i := range v.Items {
		if it := &v.Items[i]; !it.Span() {
			if items[it.ID] != nil {
				t.Fatalf("seed %d: %s stands twice", seed, it.ID)
			}
			items[it.ID] = it
		}
	}
	for _, e := range w.entries {
		it, m := items[e.ID], e.Message
		if it == nil {
			w.covered(t, seed, e.Seq, m, shown)
		}
		for n := range m.Content {
			w.block(t, seed, e, m, n, it)
		}
	}
	if w.wild {
		return
	}
	for i, m := range sent {
		for _, b := range m.Content {
			if text := b.Text + b.Signature; strings.HasPrefix(text, "[result of an earlier call]") || strings.HasPrefix(text, "[tool_") ||
				b.Type == tidemark.TypeToolResult && len(b.Content) > 0 && strings.HasPrefix(b.Content[0].Text, "[No result was recorded") && i < len(sent)-1 {
				t.Fatalf("seed %d: message %d had to be repaired: %s", seed, i, b.AppendJSON(nil))
			}
		}
	}
}

// covered holds that what is not in the view is under one span.
func (w *annotated) covered(t *testing.T, seed uint64, seq int64, m tidemark.Message, shown []compaction.Replacement) {
	t.Helper()
	n := 0
	for _, r := range shown {
		if r.Block == 0 && r.From <= seq && seq <= r.To {
			n++
		}
	}
	if n != 1 && len(m.Content) > 0 {
		t.Fatalf("seed %d: entry %d is not in the view and under %d spans", seed, seq, n)
	}
}

// block holds that a block which may not leave stands: what somebody said, the prologue, what is of an open episode.
func (w *annotated) block(t *testing.T, seed uint64, e compaction.Visible, m tidemark.Message, n int, it *compaction.Item) {
	t.Helper()
	b := &m.Content[n]
	why := ""
	switch owner := w.g.Owner(episodes.Place{Seq: e.Seq, Block: n}); {
	case m.Role == tidemark.User && b.Type != tidemark.TypeToolResult:
		why = "somebody said it"
	case m.Role == tidemark.Assistant && owner == nil:
		why = "it is of the prologue"
	case m.Role == tidemark.Assistant && owner.Open:
		why = "it is of an open episode"
	}
	if why == "" {
		return
	}
	if it == nil {
		t.Fatalf("seed %d: block %d of %s left, and %s: %s", seed, n, e.ID, why, b.AppendJSON(nil))
	}
	at, many := it.Place(n + 1)
	if many != 1 || !reflect.DeepEqual(it.Message.Content[at], *b) {
		t.Fatalf("seed %d: block %d of %s is not what it was, and %s: %s", seed, n, e.ID, why, b.AppendJSON(nil))
	}
}

// told holds what is true of the episodes themselves: none left before what builds on it, and what was learned stands in the
// view, or is counted in the line of the oldest.
func (w *annotated) told(t *testing.T, seed uint64, v compaction.View, shown []compaction.Replacement) {
	t.Helper()
	states := (&compaction.Episodes{}).States(v)
	text := ""
	for _, m := range v.Messages() {
		text += m.PlainText() + "\n"
	}
	lines := map[int]int{}
	folded := map[int]bool{}
	for _, r := range shown {
		if l := compaction.LineOf(r.Edit); l != nil {
			for _, n := range slices.Concat(l.Lines, l.Folded) {
				lines[n]++
			}
			for _, n := range l.Folded {
				folded[n] = true
			}
		}
	}
	pinned := map[int]bool{} // episodes of which something is pinned
	for i := range v.Items {
		for n := range v.Items[i].Message.Content {
			if e := w.g.Owner(episodes.Place{Seq: v.Items[i].Seq, Block: n}); e != nil && !v.Items[i].Span() {
				pinned[e.N] = true
			}
		}
	}
	gone := map[string]bool{}
	for _, s := range states {
		gone[s.Episode.Name] = s.Gone
	}
	for _, s := range states {
		e := s.Episode
		if lines[e.N] > 1 {
			t.Fatalf("seed %d: %v has %d lines", seed, e, lines[e.N])
		}
		was := w.left[e.N]
		if w.left[e.N] = s.Gone; !s.Gone || pinned[e.N] {
			continue
		}
		if e.Type == episodes.Exploration && !folded[e.N] && !strings.Contains(text, strings.Join(strings.Fields(e.Description), " ")) {
			t.Fatalf("seed %d: %v left, and what it found out with it", seed, e)
		}
		if e.Type == episodes.Action && !folded[e.N] && !strings.Contains(text, fmt.Sprintf("action %q", e.Name)) {
			t.Fatalf("seed %d: %v left, and no line says so", seed, e)
		}
		for _, d := range states {
			if slices.Contains(d.Episode.Dependencies, e.Name) && !d.Gone && !was {
				t.Fatalf("seed %d: %v left, and %v is there that builds on it", seed, e, d.Episode)
			}
		}
	}
}

// TestEpisodesOfRandomHistories holds the laws of the strategy over random histories.
func TestEpisodesOfRandomHistories(t *testing.T) {
	acts := 0
	for seed := range uint64(histories()) {
		acts += episodesHistory(t, seed, 25, seed%2 == 0)
	}
	if acts < histories() {
		t.Errorf("%d acts in %d histories", acts, histories())
	}
}

// FuzzEpisodes looks for a history that breaks a law of the strategy.
func FuzzEpisodes(f *testing.F) {
	f.Add(uint64(1), uint8(20), true)
	f.Add(uint64(2), uint8(40), false)
	f.Fuzz(func(t *testing.T, seed uint64, steps uint8, wild bool) { episodesHistory(t, seed, int(steps%60), wild) })
}

func episodesHistory(t *testing.T, seed uint64, steps int, wild bool) (acts int) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 11))
	w := newAnnotated(r, wild)
	window := compaction.Budget{Window: 200_000}
	s := compaction.Episodes{Budget: episodes.Budget{Tokens: tidemark.Tokens(300 + r.IntN(40*steps*6))}, LowWater: 40 + r.IntN(51)}
	limit := s.Limit(window)
	counted := tidemark.Tokens(100 + r.IntN(3)*30) // percent of the estimate that the provider counts
	for range steps {
		w.h.Step()
		v, shown := w.now(t)
		w.lawful(t, seed, v, shown)
		v.Fixed = 100
		v.Size = v.Fixed + v.Size*counted/100
		v = compaction.Hold(v, w.pins, window)
		fresh := compaction.Episodes{Budget: s.Budget, LowWater: s.LowWater}
		edits := s.Plan(v, window)
		if again := fresh.Plan(v, window); !reflect.DeepEqual(again, edits) {
			t.Fatalf("seed %d: planned with what was kept\n%s\nand anew\n%s", seed, show(edits), show(again))
		}
		if len(edits) == 0 {
			continue
		}
		if v.Size <= limit {
			t.Fatalf("seed %d: a plan for %d tokens of %d", seed, v.Size, limit)
		}
		acts++
		planned, err := compaction.Preview(v, edits, window)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if err := w.act(t, shown, edits); err != nil {
			t.Fatalf("seed %d: the plan's own row is refused: %v", seed, err)
		}
		after, shown := w.now(t)
		w.lawful(t, seed, after, shown)
		if len(w.pins) == 0 {
			w.told(t, seed, after, shown)
		}
		if got, want := outline(after.Items), outline(planned.Items); got != want {
			t.Fatalf("seed %d: assembled\n%s\npreviewed\n%s", seed, got, want)
		}
		if planned.Size >= v.Size {
			t.Fatalf("seed %d: %d tokens before, %d after", seed, v.Size, planned.Size)
		}
		after.Fixed, after.Size = v.Fixed, planned.Size
		after = compaction.Hold(after, w.pins, window)
		again := s.Plan(after, window) // lines may fold, and what was too small for one of its own leave with others
		if more, err := compaction.Preview(after, again, window); err != nil || len(w.pins) == 0 && !mixed(v) && after.Size-more.Size > limit/4+200 {
			t.Fatalf("seed %d: %d tokens, planned down to %d of %d, and at once %d (%v)\n%s", seed, v.Size, planned.Size, limit, more.Size, err, show(again))
		}
		if r.IntN(8) == 0 {
			w.lift()
			back, shown := w.now(t)
			w.lawful(t, seed, back, shown)
			if back.Tokens() != v.Tokens() {
				t.Fatalf("seed %d: undo gives %d tokens, before there were %d", seed, back.Tokens(), v.Tokens())
			}
		}
	}
	return acts
}

func show(edits []tidemark.Edit) string {
	var b strings.Builder
	for _, e := range edits {
		fmt.Fprintf(&b, "%s-%s #%d %v %v %s\n", e.From, e.To, e.Block, e.Messages, e.Blocks, e.Data)
	}
	return b.String()
}

// outline is what a view shows, without what only a row that is written has.
func outline(items []compaction.Item) string {
	var b strings.Builder
	for i := range items {
		fmt.Fprintf(&b, "%d-%d %d %s\n", items[i].Seq, items[i].Last, items[i].Tokens, items[i].Message.AppendJSON(nil))
	}
	return b.String()
}

// strategies are those of a bit set, in their order.
func strategies(set int, r *rand.Rand) []compaction.Strategy {
	out := make([]compaction.Strategy, 0, 4)
	for i, s := range []compaction.Strategy{
		&compaction.Paging{Tau: 1, MinBytes: 100, Zones: paging.Zones{Advisory: 3, Involuntary: 4, Aggressive: 5}},
		&compaction.Episodes{Budget: episodes.Budget{Tokens: tidemark.Tokens(800 + r.IntN(8000))}, LowWater: 50 + r.IntN(41)},
		compaction.Pointer{Tail: 2, Large: 100},
		compaction.Summary{},
	} {
		if set&(1<<i) != 0 {
			out = append(out, s)
		}
	}
	return out
}

// TestEveryListOfStrategies holds that episodes get on with the other strategies: each view passes Check, the row of an act is
// taken, what it shows is what was planned, and it is smaller.
func TestEveryListOfStrategies(t *testing.T) {
	for set := 1; set < 16; set++ {
		t.Run(fmt.Sprintf("%04b", set), func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(histories() / 4) {
				together(t, seed, set, seed%2 == 0)
			}
		})
	}
}

// FuzzEveryListOfStrategies looks for a history on which strategies do not get on.
func FuzzEveryListOfStrategies(f *testing.F) {
	f.Add(uint64(1), uint8(3), true)
	f.Add(uint64(2), uint8(15), false)
	f.Fuzz(func(t *testing.T, seed uint64, set uint8, wild bool) { together(t, seed, 1+int(set)%15, wild) })
}

func together(t *testing.T, seed uint64, set int, wild bool) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 12))
	w := newAnnotated(r, wild)
	list := strategies(set, r)
	budget := compaction.Budget{Window: tidemark.Tokens(3000 + r.IntN(20000)), Reserve: tidemark.Tokens(r.IntN(5000)), Keep: tidemark.Tokens(r.IntN(5000))}.Fit()
	for range 25 {
		w.h.Step()
		v, shown := w.now(t)
		w.sound(t, seed, v)
		v = compaction.Hold(v, w.pins, budget)
		act, err := compaction.Plan(list, v, budget, r.IntN(10) == 0)
		if errors.Is(err, tidemark.ErrNoGain) {
			continue
		}
		if err != nil {
			t.Fatalf("seed %d: plan: %v", seed, err)
		}
		blocks := map[string]bool{}
		for _, e := range act.Edits {
			key := fmt.Sprint(e.From, e.Block)
			if e.Block > 0 && blocks[key] {
				t.Fatalf("seed %d: two edits of %v in one row are of block %d of %s", seed, act.By, e.Block, e.From)
			}
			blocks[key] = true
		}
		if err := w.act(t, shown, act.Edits); err != nil {
			t.Fatalf("seed %d: the row of %v is refused: %v", seed, act.By, err)
		}
		after, _ := w.now(t)
		w.sound(t, seed, after)
		if after.Tokens() >= v.Tokens() && !slices.Equal(act.By, []string{"paging"}) { // which counts bytes
			t.Fatalf("seed %d: %v: %d tokens before, %d after:\n%s", seed, act.By, v.Tokens(), after.Tokens(), show(act.Edits))
		}
		if r.IntN(8) == 0 {
			w.lift()
			back, _ := w.now(t)
			w.sound(t, seed, back)
			if got, want := outline(back.Items), outline(v.Items); got != want {
				t.Fatalf("seed %d: undo gives\n%s\nbefore there was\n%s", seed, got, want)
			}
		}
	}
}

// sound holds that a view can be sent, and that nothing in it stands twice.
func (w *annotated) sound(t *testing.T, seed uint64, v compaction.View) {
	t.Helper()
	if m := v.Messages(); len(m) > 0 {
		if err := tidemark.Check(m); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
	seen := map[tidemark.EntryID]bool{}
	for i := range v.Items {
		if it := &v.Items[i]; !it.Span() {
			if seen[it.ID] {
				t.Fatalf("seed %d: %s stands twice", seed, it.ID)
			}
			seen[it.ID] = true
		}
	}
}

// mixed reports a view in which somebody's words stand with results. When these leave, a turn begins with the words, and
// thinking before it may be stripped.
func mixed(v compaction.View) bool {
	return slices.ContainsFunc(v.Items, func(it compaction.Item) bool {
		results := len(it.Message.Results())
		return results > 0 && results < len(it.Message.Content)
	})
}

// soak is how many small histories the test of that name goes through; make soak-episodes sets a million.
var soak = flag.Int("soak", 800, "small annotated histories to go through")

// TestSoak holds the laws over many small histories, on all cores.
func TestSoak(t *testing.T) {
	const lanes = 8
	for lane := range lanes {
		t.Run(fmt.Sprint(lane), func(t *testing.T) {
			t.Parallel()
			acts := 0
			for seed := lane; seed < *soak; seed += lanes {
				acts += episodesHistory(t, uint64(1_000_000+seed), 3+seed%4, seed%3 > 0)
			}
			t.Logf("%d acts", acts)
			if acts == 0 {
				t.Error("no act at all")
			}
		})
	}
}
