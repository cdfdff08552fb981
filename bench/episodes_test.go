package bench

import (
	"fmt"
	"reflect"
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

// TestSimulateRefused: bounds hold in the package, too.
func TestSimulateRefused(t *testing.T) {
	for _, f := range []func() error{
		func() error { _, err := Simulate("none", 0, 1, 75, nil); return err },
		func() error { _, err := Simulate("pairs", 1, 1, 75, nil); return err },
	} {
		if err := f(); err == nil || !strings.Contains(fmt.Sprint(err), "want") {
			t.Errorf("error %v", err)
		}
	}
}
