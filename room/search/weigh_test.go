package search

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/tidemark-ai/tidemark/recall"
)

// wantWeights compares weights by message.
func wantWeights(t *testing.T, name string, got, want map[int64]float64) {
	t.Helper()
	for _, seq := range slices.Sorted(maps.Keys(want)) {
		if v, ok := got[seq]; !ok || !about(v, want[seq]) {
			t.Errorf("%s: message %d has %v, want %v", name, seq, v, want[seq])
		}
	}
	for _, seq := range slices.Sorted(maps.Keys(got)) {
		if _, ok := want[seq]; !ok {
			t.Errorf("%s: message %d has %v", name, seq, got[seq])
		}
	}
}

// TestWeigh: the rarest terms give the messages, up to a thousand together, others only weigh these, and those that more
// than one in twenty messages have do not count.
func TestWeigh(t *testing.T) {
	n := sizeOf{docs: 10_000, last: 10_000, alone: true}
	r := func(docs int) float64 { return recall.Rarity(docs, 10_000) }
	got, err := east().weigh(t.Context(), among{}, []posting{
		{term: "a", seqs: []int64{30, 20, 10}, docs: 3},
		{term: "b", seqs: downward(1000, 601), docs: 500},
		{term: "c", seqs: downward(2000, 1404), docs: 500},
		{term: "one too many", seqs: []int64{30, 9999}, docs: 500},
		{term: "common", seqs: []int64{20, 9999}, docs: 501},
	}, Wanted{}, n, 9)
	want := map[int64]float64{30: r(3) + r(500), 20: r(3), 10: r(3)}
	for _, seq := range slices.Concat(upward(601, 1000), upward(1404, 2000)) {
		want[seq] = r(500)
	}
	if err != nil {
		t.Fatal(err)
	}
	wantWeights(t, "of many", got, want)
	few := sizeOf{docs: 1000, last: 1000, alone: true}
	got, err = east().weigh(t.Context(), among{}, []posting{{term: "a", seqs: []int64{1}, docs: 200}, {term: "b", seqs: []int64{1, 2}, docs: 201}}, Wanted{}, few, 9)
	if err != nil {
		t.Fatal(err)
	}
	wantWeights(t, "of few", got, map[int64]float64{1: recall.Rarity(200, 1000)})
	got, err = east().weigh(t.Context(), among{}, []posting{{term: "b", seqs: []int64{2}, docs: 201}}, Wanted{}, few, 9)
	if err != nil {
		t.Fatal(err)
	}
	wantWeights(t, "of a common term alone", got, map[int64]float64{2: recall.Rarity(201, 1000)})
}

// TestWeighMore: of four terms with more messages than are listed the index is asked which of the rare ones have them.
func TestWeighMore(t *testing.T) {
	d, _ := desks(t)
	d.indexed(map[int64]string{5: "rare m1 m2 m3 m4 m5", 7: "m1 m2", 9: "rare m1"})
	n := sizeOf{docs: 20_000, last: 20_000, alone: true}
	list := []posting{{term: "rare", seqs: []int64{9, 5}, docs: 2}}
	for i := 1; i <= 5; i++ {
		list = append(list, posting{term: fmt.Sprint("m", i), more: true, docs: float64(700 + i)})
	}
	got, err := d.weigh(t.Context(), d.among(d.line(), Wanted{}, n), list, Wanted{}, n, 9)
	if err != nil {
		t.Fatal(err)
	}
	r := func(docs int) float64 { return recall.Rarity(docs, 20_000) }
	wantWeights(t, "with more", got, map[int64]float64{9: r(2) + r(701), 5: r(2) + r(701) + r(702) + r(703) + r(704)})
}

// TestWeighCommon: where no term is rare, the newest messages of each of four count, those that have all of them, and where
// these are few those that have two.
func TestWeighCommon(t *testing.T) {
	d, _ := desks(t)
	d.indexed(map[int64]string{3: "xx yy zz", 5: "xx yy", 6: "yy zz", 7: "xx zz", 9: "xx", 12: "xx yy zz uu", 13: "vv xx"})
	n := sizeOf{docs: 1000, last: 1000, alone: true}
	list := []posting{{term: "xx", seqs: []int64{100}, docs: 300}, {term: "yy", seqs: []int64{90, 100}, docs: 400}, {term: "zz", seqs: []int64{80}, docs: 500}, {term: "uu", seqs: []int64{75}, docs: 550}, {term: "vv", seqs: []int64{70}, docs: 600}}
	r := func(docs int) float64 { return recall.Rarity(docs, 1000) }
	x, y, z, u := r(300), r(400), r(500), r(550)
	for _, c := range []struct {
		name  string
		terms int
		most  int
		want  map[int64]float64
	}{
		{"one", 1, 9, map[int64]float64{100: x}},
		{"two", 2, 9, map[int64]float64{100: x + y, 90: y, 3: x + y, 5: x + y, 12: x + y}},
		{"three", 3, 9, map[int64]float64{100: x + y, 90: y, 80: z, 3: x + y + z, 5: x + y, 6: y + z, 7: x + z, 12: x + y + z}},
		{"three, which enough have", 3, 2, map[int64]float64{100: x + y, 90: y, 80: z, 3: x + y + z, 12: x + y + z}},
		{"three, which one too few has", 3, 3, map[int64]float64{100: x + y, 90: y, 80: z, 3: x + y + z, 5: x + y, 6: y + z, 7: x + z, 12: x + y + z}},
		{"four and one more", 5, 9, map[int64]float64{100: x + y, 90: y, 80: z, 75: u, 3: x + y + z, 5: x + y, 6: y + z, 7: x + z, 12: x + y + z + u}},
	} {
		got, err := d.weighCommon(t.Context(), d.among(d.line(), Wanted{}, n), list[:c.terms], Wanted{}, n, c.most)
		if err != nil {
			t.Fatal(err)
		}
		wantWeights(t, c.name, got, c.want)
	}
}

// TestWeighRuns: words that stand side by side in a question count where they do in a message, and half where two words stand
// between them: of numbers always, of other words where these have more messages than are listed.
func TestWeighRuns(t *testing.T) {
	d, _ := desks(t)
	d.indexed(map[int64]string{5: "build 12 ok", 6: "build then 12", 7: "build x1 y1 12", 8: "build x1 y1 z1 12", 9: "12 build",
		10: "aa bb cc", 11: "aa q1 q2 q3 cc", 12: "aa q1 q2 q3 q4 cc", 13: "dd ee"})
	n := sizeOf{docs: 1000, last: 1000, alone: true}
	half := func(lists ...int) (sum float64) {
		for _, docs := range lists {
			sum += recall.Rarity(docs, 1000) / 2
		}
		return sum
	}
	number := recall.Run{Terms: []string{"build", "12"}, Number: true}
	six := map[int64]float64{5: 6 * half(1, 4), 6: 6 * half(4), 7: 6 * half(4), 9: 6 * half(4)}
	for _, c := range []struct {
		name string
		more bool
		runs []recall.Run
		want map[int64]float64
	}{
		{"none", true, nil, nil},
		{"a number", false, []recall.Run{number}, map[int64]float64{5: half(1, 4), 6: half(4), 7: half(4), 9: half(4)}},
		{"three words", false, []recall.Run{{Terms: []string{"aa", "bb", "cc"}, Number: true}}, map[int64]float64{10: half(1, 2), 11: half(2)}},
		{"words", false, []recall.Run{{Terms: []string{"dd", "ee"}}}, nil},
		{"words of which there are more", true, []recall.Run{{Terms: []string{"dd", "ee"}}}, map[int64]float64{13: half(1, 1)}},
		{"a word that is not there", true, []recall.Run{{Terms: []string{"build", "zz"}, Number: true}}, nil},
		{"as many as are looked up", false, slices.Repeat([]recall.Run{number}, 6), six},
		{"one more", false, slices.Repeat([]recall.Run{number}, 7), six},
	} {
		list := []posting{{term: "build", more: c.more}}
		for _, term := range []string{"12", "aa", "bb", "cc", "dd", "ee"} {
			list = append(list, posting{term: term})
		}
		got := map[int64]float64{}
		if err := d.weighRuns(t.Context(), d.among(d.line(), Wanted{}, n), list, c.runs, Wanted{}, n, got); err != nil {
			t.Fatal(err)
		}
		wantWeights(t, c.name, got, c.want)
	}
	if err := d.weighRuns(t.Context(), among{}, nil, []recall.Run{number}, Wanted{}, n, nil); err != nil {
		t.Error(err)
	}
}

// TestHeaviest: the heaviest come first, of equals the newest; where not all equals are taken, those that say the words most
// often are.
func TestHeaviest(t *testing.T) {
	d, _ := desks(t)
	d.indexed(map[int64]string{2: "quokka quokka quokka", 4: "other t5 t5"})
	d.exec(`INSERT INTO words(rowid, home, terms) VALUES(3, 'quokka', 'quokka')`) // a name of a home is no word that was said
	n := sizeOf{docs: 10, last: 10}
	list := []posting{{term: "quokka", docs: 2}, {term: "other", docs: 3}, {term: "t3", docs: 4}, {term: "t4", docs: 4}, {term: "t5", docs: 1}}
	of := []candidate{{seq: 2}, {seq: 3}, {seq: 4}, {seq: 5}}
	if err := d.often(t.Context(), list, of, n); err != nil {
		t.Fatal(err)
	}
	for i, want := range []float64{recall.Rarity(2, 10) * 3 / 4.2, recall.Rarity(2, 10) / 2.2, recall.Rarity(3, 10) / 2.2, 0} {
		if !about(of[i].often, want) {
			t.Errorf("message %d says it %v, want %v", of[i].seq, of[i].often, want)
		}
	}
	weights := map[int64]float64{1: 3, 2: 2, 3: 2, 4: 2, 5: 1}
	for most, want := range map[int][]int64{1: {1}, 2: {1, 2}, 3: {1, 2, 3}, 4: {1, 4, 3, 2}, 5: {1, 4, 3, 2, 5}, 9: {1, 4, 3, 2, 5}} {
		if got, err := d.heaviest(t.Context(), list[:1], weights, n, most); err != nil || !slices.Equal(got, want) {
			t.Errorf("of %d: %d, %v; want %d", most, got, err, want)
		}
	}
	third, sum := 0.3, 0.1
	sum += 0.2 // a little more than 0.3, by the order of its parts
	if got, err := d.heaviest(t.Context(), list[:1], map[int64]float64{1: sum, 2: third}, n, 1); err != nil || !slices.Equal(got, []int64{2}) {
		t.Errorf("of equals: %d, %v", got, err)
	}
	if same(1e-9, 0) || same(0, 1e-9) || !same(1, 1) {
		t.Error("what is apart is the same")
	}
}
