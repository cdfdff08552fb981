package bench

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/episodes"
)

// TestEpisodeHistory: the history that a pass is measured on has what a real one is made of.
func TestEpisodeHistory(t *testing.T) {
	const n = 100
	v, err := EpisodeHistory(n, 3)
	if err != nil {
		t.Fatal(err)
	}
	if err := tidemark.Check(v.Messages()); err != nil {
		t.Fatal(err)
	}
	if err := v.Graph.Check(); err != nil {
		t.Fatal(err)
	}
	if got := len(v.Items); got < 11*n || got > 13*n {
		t.Errorf("%d messages", got)
	}
	count := map[episodes.Type]int{}
	for _, e := range v.Graph.Episodes() {
		count[e.Type]++
	}
	if count[episodes.Exploration] != n/2 || count[episodes.Action] != n/2 {
		t.Errorf("episodes %v", count)
	}
	var persons, thoughts, several int
	for _, m := range v.Messages() {
		if m.Role == tidemark.User && len(m.Results()) == 0 {
			persons++
		}
		if m.Content[0].Type == tidemark.TypeThinking {
			thoughts++
		}
		if len(m.Calls()) > 1 {
			several++
		}
	}
	if persons < n/10 || thoughts < n/2 || several < n {
		t.Errorf("%d messages of a person, %d thoughts, %d messages with several calls", persons, thoughts, several)
	}
	if w, _ := EpisodeHistory(n, 3); !reflect.DeepEqual(v.Items, w.Items) {
		t.Error("the same seed made another history")
	}
	if w, _ := EpisodeHistory(n, 4); reflect.DeepEqual(v.Items, w.Items) {
		t.Error("another seed made the same history")
	}
}

// TestMeter: a cache has of a request what it shares with the one before, block by block.
func TestMeter(t *testing.T) {
	item := func(texts ...string) compaction.Item {
		m := tidemark.Message{Role: tidemark.User}
		for _, s := range texts {
			m.Content = append(m.Content, tidemark.Text(s))
		}
		return compaction.Item{Message: m, Tokens: tidemark.Estimate(m)}
	}
	a, b, c := item("one"), item("two", "three"), item("four")
	changed := item("two", "other")
	shared := a.Tokens + tidemark.EstimateBlock(b.Message.Content[0])
	for _, r := range []struct {
		name   string
		views  [][]compaction.Item
		hits   tidemark.Tokens
		breaks int
	}{
		{"the first", [][]compaction.Item{{a, b}}, 0, 0},
		{"the same", [][]compaction.Item{{a, b}, {a, b}}, 10 + a.Tokens + b.Tokens, 0},
		{"one more", [][]compaction.Item{{a, b}, {a, b, c}}, 10 + a.Tokens + b.Tokens, 0},
		{"one less", [][]compaction.Item{{a, b}, {a}}, 10 + a.Tokens, 1},
		{"another at the front", [][]compaction.Item{{a, b}, {c, a, b}}, 10, 1},
		{"another block", [][]compaction.Item{{a, b, c}, {a, changed, c}}, 10 + shared, 1},
		{"and back", [][]compaction.Item{{a, b}, {a, changed}, {a, b}}, 20 + 2*shared, 2},
	} {
		var m meter
		var sum tidemark.Tokens
		for _, items := range r.views {
			v := compaction.View{Items: items, Fixed: 10}
			v.Size = v.Fixed + v.Tokens()
			sum += v.Size
			m.call(v)
		}
		if want := .1*float64(r.hits) + 1.25*float64(sum-r.hits); m.hits != r.hits || m.breaks != r.breaks || m.tokens != sum || m.cost() != want {
			t.Errorf("%s: %d hits and %d breaks of %d at %v, want %d, %d of %d at %v", r.name, m.hits, m.breaks, m.tokens, m.cost(), r.hits, r.breaks, sum, want)
		}
	}
}

// TestEpisodesBars holds the figures of the reference's session of 60 pairs: it measured a share of hits of 96.0 % and a
// third of the cost for a low-water mark of three quarters.
func TestEpisodesBars(t *testing.T) {
	s, err := Simulate("pairs", 0, 1, episodes.DefaultLowWater, nil)
	if err != nil {
		t.Fatal(err)
	}
	if s.Turns != 841 || s.MaxActive > s.Budget || s.HitShare < .96 || s.CostRatio > .35 || s.Failures != 0 || s.PeakHeap > 64<<20 {
		t.Errorf("%+v", s)
	}
	if again, _ := Simulate("pairs", 3, 1, episodes.DefaultLowWater, nil); again.Turns != 3*14+1 {
		t.Errorf("%d calls of three pairs", again.Turns)
	}
}

// TestNeeds: an agent that does not find what it needs explores again, the very same, or reads it back.
func TestNeeds(t *testing.T) {
	for _, reads := range []bool{false, true} {
		on := &blind{reading: reads}
		w := worker{shape: shape{tasks: 6, explores: [2]int{3, 5}, acts: [2]int{4, 6}, needs: 1}, seed: 5, on: on}
		if err := w.run(nil); err != nil {
			t.Fatal(err)
		}
		if want := map[bool][2]int{false: {5, 0}, true: {0, 5}}[reads]; w.again != want[0] || w.recalled != want[1] {
			t.Errorf("%d explored again and %d read back, want %v", w.again, w.recalled, want)
		}
		if on.recalled != w.recalled {
			t.Errorf("%d calls of recall, want %d", on.recalled, w.recalled)
		}
		if err := on.h.graph.Check(); err != nil {
			t.Error(err)
		}
		again := 0
		for _, e := range on.h.graph.Episodes() {
			if e.Type == episodes.Exploration && strings.Contains(e.Name, " again, ") {
				again++
				first, _, _ := strings.Cut(e.Name, " again, ")
				if f := on.h.graph.Find(first); f == nil || f.Description != e.Description || f.Calls != e.Calls {
					t.Errorf("%s is not as %v", e, f)
				}
			}
		}
		if again != w.again {
			t.Errorf("%d explorations made again, want %d", again, w.again)
		}
	}
}

// blind is a stage on which nothing is ever found.
type blind struct {
	h        *history
	reading  bool
	recalled int
}

func (b *blind) say(text string) error {
	if b.h == nil {
		b.h = newHistory(0)
	}
	b.h.add(tidemark.NewText(tidemark.User, text), tidemark.FromPerson)
	return nil
}

func (b *blind) call(reply tidemark.Message, results *tidemark.Message) error {
	if slices.ContainsFunc(reply.Content, func(c tidemark.Block) bool { return c.Name == "recall" }) {
		b.recalled++
	}
	b.h.add(reply, tidemark.FromModel)
	if results != nil {
		b.h.add(*results, tidemark.FromTool)
	}
	return nil
}

func (b *blind) finds(string) (bool, error) { return false, nil }
func (b *blind) recalls() bool              { return b.reading }

// TestBudgetsRefused: bounds hold in the package, too.
func TestBudgetsRefused(t *testing.T) {
	if _, err := (Budgets{}).Run(); err == nil {
		t.Error("no budget is taken")
	}
	for _, f := range []func() error{
		func() error { _, err := Simulate("none", 0, 1, 75, nil); return err },
		func() error { _, err := Simulate("pairs", 1, 1, 75, nil); return err },
	} {
		if err := f(); err == nil || !strings.Contains(fmt.Sprint(err), "want") {
			t.Errorf("error %v", err)
		}
	}
}
