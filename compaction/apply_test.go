package compaction_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
)

// someBlocks returns random edits of blocks of a view: some take a block out, some put several in its place, some are
// of one block twice.
func someBlocks(r *rand.Rand, v compaction.View) (edits []tidemark.Edit) {
	for i := range v.Items {
		it := &v.Items[i]
		for n := 1; n <= it.Blocks() && !it.Span(); n++ {
			for r.IntN(3) == 0 {
				e := tidemark.Edit{From: it.From, Block: n, Data: fmt.Appendf(nil, `{"of":%d}`, r.IntN(1000))}
				for range max(0, r.IntN(6)-2) {
					e.Blocks = append(e.Blocks, tidemark.Text(fmt.Sprintf("note %d", r.Int32())))
				}
				edits = append(edits, e)
			}
		}
	}
	r.Shuffle(len(edits), func(i, j int) { edits[i], edits[j] = edits[j], edits[i] })
	return edits
}

// TestPreviewOfBlocks: what is planned is what comes, whatever was taken out or put in by rows before, and each place
// of the content is that of the block that it says.
func TestPreviewOfBlocks(t *testing.T) {
	left, several := 0, 0
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 21))
		w := newWorld(1)
		for range 1 + r.IntN(4) {
			w.grow(r)
		}
		for range 4 {
			v, shown := w.view(t)
			edits := someBlocks(r, v)
			planned, err := compaction.Preview(v, edits, compaction.Budget{Window: 10_000})
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if err := w.act(t, shown, edits); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			now, _ := w.view(t)
			if !reflect.DeepEqual(plain(planned.Items), plain(now.Items)) {
				t.Fatalf("seed %d: planned\n%+v\nand it is\n%+v", seed, plain(planned.Items), plain(now.Items))
			}
			if err := tidemark.Check(now.Messages()); err != nil && len(now.Messages()) > 0 {
				t.Fatalf("seed %d: %v", seed, err)
			}
			left += len(v.Items) - len(now.Items)
			several += places(t, seed, w, now.Items)
		}
	}
	if left == 0 || several == 0 {
		t.Errorf("%d items left the view, %d blocks were several", left, several)
	}
}

// plain are items without what only a stored overlay gives them.
func plain(items []compaction.Item) []compaction.Item {
	out := append([]compaction.Item{}, items...)
	for i := range out {
		out[i].Overlay, out[i].Edit = "", 0
		out[i].Stubbed = slices.Clone(out[i].Stubbed)
		for n := range out[i].Stubbed {
			out[i].Stubbed[n].Row = 0
		}
	}
	return out
}

// places holds the numbers of blocks and their places in the content against one another and the log.
func places(t *testing.T, seed uint64, w *world, items []compaction.Item) (several int) {
	t.Helper()
	for i := range items {
		it := &items[i]
		entry := w.entries[slices.IndexFunc(w.entries, func(e compaction.Visible) bool { return e.ID == it.ID })]
		if it.Blocks() != entry.Blocks {
			t.Fatalf("seed %d: %s has %d blocks, want %d", seed, it.ID, it.Blocks(), entry.Blocks)
		}
		next := 0
		for n := 1; n <= entry.Blocks; n++ {
			at, many := it.Place(n)
			if at != next {
				t.Fatalf("seed %d: block %d of %s at %d, want %d: %+v", seed, n, it.ID, at, next, it.Stubbed)
			}
			for k := at; k < at+many; k++ {
				if got := it.Block(k); got != n {
					t.Fatalf("seed %d: place %d of %s is block %d, want %d: %+v", seed, k, it.ID, got, n, it.Stubbed)
				}
			}
			itself := !slices.ContainsFunc(it.Stubbed, func(s compaction.Stubbed) bool { return s.Block == n })
			if itself && !reflect.DeepEqual(it.Message.Content[at], entry.Message.Content[n-1]) {
				t.Fatalf("seed %d: block %d of %s is %+v", seed, n, it.ID, it.Message.Content[at])
			}
			if next += many; many > 1 {
				several++
			}
		}
		if next != len(it.Message.Content) {
			t.Fatalf("seed %d: %s has %d blocks in place, of %d", seed, it.ID, next, len(it.Message.Content))
		}
		if _, many := it.Place(entry.Blocks + 1); many != 0 {
			t.Fatalf("seed %d: %s has a block %d", seed, it.ID, entry.Blocks+1)
		}
	}
	return several
}

// naiveSpan is the preview of one edit of a span as it was before there were many of them.
func naiveSpan(items []compaction.Item, e tidemark.Edit) ([]compaction.Item, bool) {
	from := slices.IndexFunc(items, func(it compaction.Item) bool { return it.From == e.From })
	to := slices.IndexFunc(items, func(it compaction.Item) bool { return it.To == e.To })
	if from < 0 || to < 0 {
		return nil, false
	}
	it := compaction.Item{From: e.From, To: e.To, Seq: items[from].Seq, Last: items[to].Last, Overlay: "planned", Source: tidemark.FromSystem}
	var out []compaction.Item
	placed := false
	for _, old := range items {
		inside := old.Seq >= it.Seq && old.Last <= it.Last
		for n := 0; inside && !placed && n < len(e.Messages); n++ {
			with := it
			with.Data, with.Message, with.Tokens = e.Data, e.Messages[n], tidemark.Estimate(e.Messages[n])
			out = append(out, with)
		}
		placed = placed || inside
		if !inside || slices.Contains(e.Keep, old.From) {
			out = append(out, old)
		}
	}
	return out, true
}

// someSpans returns random edits of spans of a view; most rows of them are disjoint.
func someSpans(r *rand.Rand, v compaction.View) (edits []tidemark.Edit) {
	for i := 0; i < len(v.Items); i++ {
		if r.IntN(3) > 0 {
			continue
		}
		last := min(i+r.IntN(4), len(v.Items)-1)
		e := tidemark.Edit{From: v.Items[i].From, To: v.Items[last].To}
		for n := i; n <= last; n++ {
			if it := &v.Items[n]; r.IntN(4) == 0 && !it.Span() {
				e.Keep = append(e.Keep, it.From)
			}
		}
		for range r.IntN(3) {
			e.Messages = append(e.Messages, text(fmt.Sprintf("marker %d", r.Int32()))...)
		}
		edits = append(edits, e)
		if r.IntN(12) > 0 {
			i = last
		}
	}
	if r.IntN(30) == 0 {
		edits = append(edits, tidemark.Edit{From: "e9999", To: "e9999"})
	}
	r.Shuffle(len(edits), func(i, j int) { edits[i], edits[j] = edits[j], edits[i] })
	return edits
}

// overlap reports edits of which two reach over one position.
func overlap(items []compaction.Item, edits []tidemark.Edit) bool {
	var reach [][2]int64
	for _, e := range edits {
		from := slices.IndexFunc(items, func(it compaction.Item) bool { return it.From == e.From })
		to := slices.IndexFunc(items, func(it compaction.Item) bool { return it.To == e.To })
		if from < 0 || to < 0 {
			continue
		}
		at := [2]int64{items[from].Seq, items[to].Last}
		if slices.ContainsFunc(reach, func(o [2]int64) bool { return o[0] <= at[1] && at[0] <= o[1] }) || at[1] < at[0] {
			return true
		}
		reach = append(reach, at)
	}
	return false
}

// TestSpansAtOnce: many spans at once are previewed as one after the other, and those that overlap are refused, as no row
// may have them; rows are laid over spans that nest and have holes.
func TestSpansAtOnce(t *testing.T) {
	refused, taken, missing := 0, 0, 0
	for seed := range uint64(600) {
		r := rand.New(rand.NewPCG(seed, 22))
		w := newWorld(1)
		for range 1 + r.IntN(6) {
			w.grow(r)
		}
		for range 5 {
			v, shown := w.view(t)
			edits := someSpans(r, v)
			want, ok := v.Items, true
			for n := 0; ok && n < len(edits); n++ {
				want, ok = naiveSpan(want, edits[n])
			}
			got, err := compaction.Preview(v, edits, compaction.Budget{Window: 10_000})
			clash := overlap(v.Items, edits)
			if (ok && !clash) != (err == nil) || err == nil && len(want)+len(got.Items) > 0 && !reflect.DeepEqual(got.Items, want) {
				t.Fatalf("seed %d: %v, %+v\nwant %v, %+v", seed, err, got.Items, ok, want)
			}
			if !ok {
				missing++
				continue
			}
			for range r.IntN(4) { // of entries that are shown, hidden or kept, with insertions too
				e := tidemark.Edit{From: w.entries[r.IntN(len(w.entries))].ID, Block: r.IntN(2)}
				edits = append(edits, e)
			}
			now := make([]compaction.Placed, len(shown))
			for i := range shown {
				now[i] = shown[i].Placed
			}
			row := w.placed(t, []compaction.Row{{ID: "planned", Seq: w.seq + 1, Overlay: tidemark.Overlay{Edits: edits}}})
			after := compaction.CheckOverlay(now, row)
			if after == nil && clash {
				t.Fatalf("seed %d: taken: %+v over %+v", seed, row, now)
			}
			if after != nil {
				refused++
				continue
			}
			taken++
			if err := w.act(t, shown, edits); err != nil {
				t.Fatal(err)
			}
		}
	}
	if refused < 100 || taken < 100 || missing == 0 {
		t.Errorf("%d rows refused, %d taken, %d of unknown entries", refused, taken, missing)
	}
	t.Logf("%d rows refused, %d taken, %d of unknown entries", refused, taken, missing)
}

// BenchmarkSpansAtOnce is one row of 2,000 spans over 10,000 messages of which as many were replaced before.
func BenchmarkSpansAtOnce(b *testing.B) {
	var v compaction.View
	var row, shown []compaction.Placed
	var edits []tidemark.Edit
	for n := range int64(10_000) {
		id := tidemark.EntryID(fmt.Sprintf("e%06d", n))
		v.Items = append(v.Items, compaction.Item{ID: id, From: id, To: id, Seq: n, Last: n, Message: text("m")[0], Tokens: 1})
		switch n % 5 {
		case 0:
			edits = append(edits, tidemark.Edit{From: id, To: id, Messages: text("s")})
			row = append(row, compaction.Placed{Row: 1 << 40, N: len(row), From: n, To: n})
		case 1:
			shown = append(shown, compaction.Placed{Row: 1 << 30, N: len(shown), From: n, To: n})
		}
	}
	b.Run("preview", func(b *testing.B) {
		for b.Loop() {
			if _, err := compaction.Preview(v, edits, compaction.Budget{Window: 1000}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("check", func(b *testing.B) {
		for b.Loop() {
			if err := compaction.CheckOverlay(shown, row); err != nil {
				b.Fatal(err)
			}
		}
	})
}
