package reflection

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
)

func TestReflect(t *testing.T) {
	const limit = 100_000
	for _, tc := range []struct {
		name string
		e    Evidence
		want Tuning
	}{
		{"nothing", Evidence{}, Tuning{}},
		{"too few recalls", Evidence{Recalls: 4, Misses: 4}, Tuning{}},
		{"as it should be", Evidence{Recalls: 10, Misses: 3}, Tuning{}},
		{"many misses", Evidence{Recalls: 10, Misses: 4}, Tuning{Tail: 15, Large: 640, Headroom: 15_000, Severity: "moderate"}},
		{"most missed", Evidence{Recalls: 10, Misses: 7}, Tuning{Tail: 20, Large: 1280, Headroom: 10_000, Severity: "high"}},
		{"evicted too early", Evidence{Recalls: 10, Misses: 1, Early: 4}, Tuning{Tail: 15, Severity: "moderate"}},
		{"found each time", Evidence{Recalls: 20}, Tuning{Tail: 7, Large: 240, Headroom: 25_000}},
		{"too much at once", Evidence{Tokens: 40_001}, Tuning{Headroom: 15_000, Severity: "moderate"}},
		{"too many at once", Evidence{Events: 101}, Tuning{Headroom: 15_000, Severity: "moderate"}},
		{"found, but too much at once", Evidence{Recalls: 30, Events: 500}, Tuning{Tail: 7, Large: 240, Headroom: 15_000, Severity: "moderate"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := tune(tc.e, limit)
			if (got.Why == "") != (tc.want == Tuning{}) {
				t.Errorf("why %q", got.Why)
			}
			if got.Why = ""; got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}

// TestReflectBounds: whatever the evidence, what is set is within its bounds, and the same again.
func TestReflectBounds(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 9))
	for range 20_000 {
		limit := tidemark.Tokens(rng.IntN(1_000_000) + 100)
		e := Evidence{Recalls: rng.IntN(60), Events: rng.IntN(300), Tokens: tidemark.Tokens(rng.IntN(100_000))}
		e.Misses = rng.IntN(e.Recalls + 1)
		e.Early = rng.IntN(e.Recalls - e.Misses + 1)
		got := tune(e, limit)
		if got != tune(e, limit) {
			t.Fatalf("%+v: not the same again", e)
		}
		if got.Tail != 0 && (got.Tail < 5 || got.Tail > 20) || got.Large != 0 && (got.Large < 240 || got.Large > 1280) ||
			got.Headroom != 0 && (got.Headroom < limit/10 || got.Headroom > limit/3) {
			t.Fatalf("%+v at limit %d: %+v", e, limit, got)
		}
	}
}

// TestTuneAtBounds: what is decided at each threshold, and one beside it.
func TestTuneAtBounds(t *testing.T) {
	const limit = 1000
	for _, tc := range []struct {
		name string
		e    Evidence
		want Tuning
	}{
		{"three of five missed", Evidence{Recalls: 5, Misses: 3}, Tuning{Tail: 15, Large: 640, Headroom: 150, Severity: "moderate", Why: "recall missed 3 of 5 times"}},
		{"four of five", Evidence{Recalls: 5, Misses: 4}, Tuning{Tail: 20, Large: 1280, Headroom: 100, Severity: "high", Why: "recall missed 4 of 5 times"}},
		{"three of ten missed", Evidence{Recalls: 10, Misses: 3, Early: 3}, Tuning{}},
		{"and four of ten early", Evidence{Recalls: 10, Misses: 3, Early: 4}, Tuning{Tail: 15, Severity: "moderate", Why: "4 of 10 finds had been evicted within the hour"}},
		{"four early, of too few", Evidence{Recalls: 4, Early: 4}, Tuning{}},
		{"one of twenty missed", Evidence{Recalls: 20, Misses: 1}, Tuning{Tail: 7, Large: 240, Headroom: 250, Why: "recall missed 1 of 20 times"}},
		{"two of twenty", Evidence{Recalls: 20, Misses: 2}, Tuning{}},
		{"none of nineteen", Evidence{Recalls: 19}, Tuning{}},
		{"as much at once as may be", Evidence{Tokens: 40_000, Events: 100}, Tuning{}},
		{"a token more", Evidence{Tokens: 40_001}, Tuning{Headroom: 150, Severity: "moderate", Why: "the last compaction evicted 0 messages with 40001 tokens at once"}},
		{"a message more", Evidence{Events: 101}, Tuning{Headroom: 150, Severity: "moderate", Why: "the last compaction evicted 101 messages with 0 tokens at once"}},
		{"too much at once, and many missed", Evidence{Recalls: 10, Misses: 5, Events: 101}, Tuning{Tail: 15, Large: 640, Headroom: 150, Severity: "moderate", Why: "recall missed 5 of 10 times"}},
		{"too much at once, and most missed", Evidence{Recalls: 10, Misses: 9, Events: 101}, Tuning{Tail: 20, Large: 1280, Headroom: 100, Severity: "high", Why: "recall missed 9 of 10 times"}},
		{"too much at once, and all found", Evidence{Recalls: 20, Events: 101, Tokens: 7}, Tuning{Tail: 7, Large: 240, Headroom: 150, Severity: "moderate", Why: "recall missed 0 of 20 times; the last compaction evicted 101 messages with 7 tokens at once"}},
	} {
		if got := tune(tc.e, limit); got != tc.want {
			t.Errorf("%s: %+v, want %+v", tc.name, got, tc.want)
		}
	}
}

// TestTuningWithin: what is set is held to its bounds, and what is not set stays so.
func TestTuningWithin(t *testing.T) {
	const limit = 3000
	for _, tc := range []struct{ set, want Tuning }{
		{Tuning{}, Tuning{}}, {Tuning{Tail: 1, Large: 1, Headroom: 1}, Tuning{Tail: 5, Large: 240, Headroom: 300}}, {Tuning{Tail: 99, Large: 9999, Headroom: 9999}, Tuning{Tail: 20, Large: 1280, Headroom: 1000}},
		{Tuning{Tail: 6, Large: 241, Headroom: 301}, Tuning{Tail: 6, Large: 241, Headroom: 301}},
	} {
		if got := tc.set.within(limit); got != tc.want {
			t.Errorf("%+v is %+v, want %+v", tc.set, got, tc.want)
		}
	}
}

// TestTunedStrategies: each thing that is set is set for pointers, and nothing else is.
func TestTunedStrategies(t *testing.T) {
	was := compaction.Pointer{Tail: 3, Headroom: 4, Large: 5}
	for _, tc := range []struct {
		set  Tuning
		want compaction.Pointer
	}{
		{Tuning{Severity: "high", Why: "x"}, was}, {Tuning{Tail: 9}, compaction.Pointer{Tail: 9, Headroom: 4, Large: 5}}, {Tuning{Headroom: 9}, compaction.Pointer{Tail: 3, Headroom: 9, Large: 5}}, {Tuning{Large: 9}, compaction.Pointer{Tail: 3, Headroom: 4, Large: 9}},
	} {
		list := []compaction.Strategy{was, compaction.Summary{}, was}
		got := tc.set.strategies(list)
		if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", []compaction.Strategy{tc.want, compaction.Summary{}, tc.want}) || fmt.Sprintf("%+v", list[0]) != fmt.Sprintf("%+v", was) {
			t.Errorf("%+v: %+v", tc.set, got)
		}
	}
}

// TestTuningLine: what people read of a change, with the defaults where nothing is set.
func TestTuningLine(t *testing.T) {
	const limit = 1000
	set := Tuning{Tail: 9, Large: 300, Headroom: 77, Why: "why"}
	base := fmt.Sprintf("the newest %d turns stay, results over %d tokens become pointers, a compaction frees 200 tokens", compaction.DefaultTail, compaction.DefaultLarge)
	const own = "the newest 9 turns stay, results over 300 tokens become pointers, a compaction frees 77 tokens"
	for _, tc := range []struct {
		now, before Tuning
		want        string
	}{
		{set, Tuning{}, "Reflection: why. From now on " + own + "; before: " + base + ". It goes back by itself when recall goes otherwise, and at once with recall.reflection off."},
		{Tuning{}, set, "Reflection: what was tuned is taken back, for lack of a reason: " + base + "."},
	} {
		if got := tc.now.line(tc.before, limit); got != tc.want {
			t.Errorf("%q, want %q", got, tc.want)
		}
	}
	for _, other := range []Tuning{{Tail: 8, Large: 300, Headroom: 77}, {Tail: 9, Large: 301, Headroom: 77}, {Tail: 9, Large: 300, Headroom: 78}} {
		if set.same(other) {
			t.Errorf("%+v sets the same as %+v", other, set)
		}
	}
	if !set.same(Tuning{Tail: 9, Large: 300, Headroom: 77, Severity: "high"}) {
		t.Error("why it is set tells it apart")
	}
}
