package paging

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
)

// bare is a pager without a history.
func bare(t *testing.T, o Options) *Pager {
	t.Helper()
	p, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// alike reports figures that are the same but for rounding. What is no number is near to none.
func alike(a, b float64) bool { return math.Abs(a-b) <= 1e-6 }

// TestWorth: what the going of a page spares, less what a fault would cost, worked out by hand. A byte that stays costs 0.1.
func TestWorth(t *testing.T) {
	for _, row := range []struct {
		name                       string
		read, newest               bool
		zone                       Zone
		age, gone, missed, faulted int
		want                       float64
	}{
		{"garbage", false, false, Normal, 4, 0, 0, 0, 0.1 * 20 * 540},
		{"a copy that a newer one stands for", true, false, Normal, 4, 0, 0, 0, 0.1 * 20 * 540},
		{"where the window fills up", true, true, Involuntary, 4, 0, 0, 0, 0.1 * 20 * 540},
		{"in advisory", true, true, Advisory, 0, 0, 0, 0, 1080 - 0.1*(750+40_000)},
		{"fresh", true, true, Normal, 0, 0, 0, 0, 1080 - 0.1*(750+40_000)},
		{"8 rounds old", true, true, Normal, 8, 0, 0, 0, 1080 - 0.05*(750+40_000)},
		{"16 rounds old", true, true, Normal, 16, 0, 0, 0, 1080 - 0.025*(750+40_000)},
		{"16 of 20 were read again", true, true, Normal, 0, 20, 12, 4, 1080 - 17.0/30*(750+40_000)},
		{"none of 10 was", true, true, Normal, 0, 10, 0, 0, 1080 - 0.05*(750+40_000)},
	} {
		p := bare(t, Options{})
		g := &Page{Read: row.read, wire: 600, short: 60}
		g.key = &key{file: &file{}, live: []*Page{g}}
		if !row.newest {
			g.key.live = append(g.key.live, &Page{})
		}
		p.messages, p.out, p.marks = make([]Message, 1), sums(nil).push(400_000), make([]mark, 20)
		p.clock, p.costs.gone, p.costs.missed, p.costs.faults, p.now.Zone = row.age, row.gone, row.missed, row.faulted, row.zone
		hold, lose := p.prices()
		if got := p.worthOf(g, hold); !alike(got, row.want) || !alike(hold, 0.1) || !alike(lose, 1.15) {
			t.Errorf("%s: %v, want %v; prices %v and %v", row.name, got, row.want, hold, lose)
		}
	}
}

// TestMeasuredShare: what is read from the cache of what could be has a half of the weight, and what tells nothing has none.
func TestMeasuredShare(t *testing.T) {
	u := func(in, read, made tidemark.Tokens) *tidemark.Usage {
		return &tidemark.Usage{Input: in, CacheRead: read, CacheCreation: made, Output: 9}
	}
	for _, row := range []struct {
		name       string
		m          mark
		hit        float64
		hold, lose float64
	}{
		{"no report", mark{out: 1000, same: 900}, 1, 0.1, 1.15},
		{"all of it", mark{out: 1000, same: 900, usage: u(10, 900, 90)}, 1, 0.1, 1.15},
		{"more than could be", mark{out: 1000, same: 500, usage: u(0, 900, 100)}, 1, 0.1, 1.15},
		{"half of it", mark{out: 1000, same: 900, usage: u(100, 450, 450)}, 0.75, 0.325, 0.8625},
		{"nothing", mark{out: 1000, same: 900, usage: u(1000, 0, 0)}, 0.5, 0.55, 0.575},
		{"too little could be", mark{out: 1000, same: 299, usage: u(1000, 0, 0)}, 1, 0.1, 1.15},
		{"just enough could be", mark{out: 1000, same: 300, usage: u(1000, 0, 0)}, 0.5, 0.55, 0.575},
		{"a report of nothing", mark{out: 1000, same: 900, usage: u(0, 0, 0)}, 1, 0.1, 1.15},
		{"of an empty request", mark{usage: u(1000, 0, 0)}, 1, 0.1, 1.15},
	} {
		p := bare(t, Options{})
		p.measured(row.m)
		hold, lose := p.prices()
		if !alike(p.costs.hit, row.hit) || !alike(hold, row.hold) || !alike(lose, row.lose) {
			t.Errorf("%s: %v, prices %v and %v; want %v, %v and %v", row.name, p.costs.hit, hold, lose, row.hit, row.hold, row.lose)
		}
	}
}

// TestThrash: tau doubles when three faults or more are half of what went, up to eight times, and halves when there was none.
func TestThrash(t *testing.T) {
	for _, row := range []struct{ slow, faults, evicted, want int }{
		{0, 3, 6, 2}, {0, 3, 7, 0}, {0, 2, 2, 0}, {0, 4, 4, 2}, {0, 3, 0, 2}, {1, 3, 3, 2}, {2, 3, 3, 4}, {4, 9, 3, 8}, {8, 9, 3, 8},
		{8, 0, 1, 4}, {4, 0, 9, 2}, {2, 0, 1, 1}, {1, 0, 1, 1}, {0, 0, 1, 0}, {4, 0, 0, 4}, {4, 1, 9, 4}, {4, 2, 9, 4},
	} {
		p := bare(t, Options{Tau: 3})
		p.costs.slow, p.costs.faults, p.costs.evicted = row.slow, row.faults, row.evicted
		if p.thrash(); p.costs.slow != row.want || p.Tau() != 3*max(row.want, 1) {
			t.Errorf("%d faults of %d: %d times becomes %d times with tau %d, want %d", row.faults, row.evicted, row.slow, p.costs.slow, p.Tau(), row.want)
		}
	}
}

// TestFade: a pin halves every eight requests and ends when a fault would cost less than keeping its page. One of 1,000 bytes in a context of
// 10,000 is worth 1250 + 1000, and keeping it for eight requests costs 800, so it ends with the second halving.
func TestFade(t *testing.T) {
	for _, row := range []struct {
		requests, at  int
		context, wire int
		ends          bool
	}{
		{7, 0, 10_000, 1000, false}, {15, 0, 10_000, 1000, false}, {16, 0, 10_000, 1000, true}, {17, 2, 10_000, 1000, false}, {18, 2, 10_000, 1000, true},
		{7, 0, 0, 1000, false}, {8, 0, 0, 1000, true}, {23, 0, 100_000, 1000, false}, {24, 0, 100_000, 1000, false}, {32, 0, 100_000, 1000, true},
	} {
		p := bare(t, Options{})
		g := &Page{ID: "g", Size: 900, wire: row.wire, short: 60}
		k := &key{file: &file{}, pinned: []*Page{g}, pinnedAt: row.at}
		k.file.pins, g.key = []*key{k}, k
		changed := &key{file: &file{}} // its file changed since
		p.costs.pins = []*key{changed, k}
		p.messages, p.out, p.marks = make([]Message, 1), sums(nil).push(row.context), make([]mark, row.requests)
		p.fade()
		if left := slices.Contains(p.costs.pins, k); left == row.ends || slices.Contains(p.costs.pins, changed) || g.ripe != row.ends || (len(k.pinned) == 0) != row.ends || (len(p.now.Unpin) == 1) != row.ends {
			t.Errorf("%+v: pinned %v, may go %v, told %v", row, left, g.ripe, p.now.Unpin)
		}
	}
}

// TestActs: when a policy may let go what is ripe, by the zone and by what that frees of a window of 2,000 tokens.
func TestActs(t *testing.T) {
	for _, row := range []struct {
		window      tidemark.Tokens
		zone        Zone
		wire        int // 330 more than the stub are 99 tokens, 331 are 100; 163 are 49 and 164 are 50
		pays, wants bool
	}{
		{0, Normal, 9000, false, false}, {0, Normal, 0, true, true}, {2000, Normal, 9000, true, false}, {2000, Normal, 9000, false, false},
		{2000, Advisory, 9000, false, false}, {2000, Advisory, 100, true, true},
		{2000, Involuntary, 60 + 330, false, false}, {2000, Involuntary, 60 + 331, false, true}, {2000, Involuntary, 60 + 330, true, true},
		{2000, Aggressive, 60 + 163, false, false}, {2000, Aggressive, 60 + 164, false, true}, {2000, Aggressive, 60 + 163, true, true},
	} {
		p := bare(t, Options{Window: row.window})
		p.now.Zone = row.zone
		out, held := &Page{wire: 90_000, short: 60, stub: true}, &Page{wire: 90_000, short: 60, anchored: true}
		p.costs.ready = []*Page{out, {wire: row.wire, short: 60}, held}
		if got := p.acts(row.pays); got != row.wants {
			t.Errorf("%+v: %v", row, got)
		}
	}
}

// TestAges: the age that is asked for, that of what goes along with a batch, and the size down to which one goes.
func TestAges(t *testing.T) {
	for _, row := range []struct {
		tau              int
		zone             Zone
		asked, along, up int
	}{
		{4, Normal, 4, 2, 8}, {4, Involuntary, 4, 2, 8}, {4, Aggressive, 2, 1, 4}, {5, Aggressive, 2, 1, 4}, {5, Advisory, 5, 3, 10},
		{3, Aggressive, 1, 1, 2}, {2, Aggressive, 1, 1, 2}, {1, Aggressive, 1, 1, 2}, {1, Normal, 1, 1, 2}, {-1, Normal, 0, 0, 0}, {-1, Aggressive, 0, 0, 0},
	} {
		p := bare(t, Options{Tau: row.tau, Window: 1001})
		p.now.Zone = row.zone
		if p.asked() != row.asked || p.alongAge() != row.along || p.span() != row.up {
			t.Errorf("tau %d in %s: %d, along %d, %d ticks; want %d, %d, %d", row.tau, row.zone, p.asked(), p.alongAge(), p.span(), row.asked, row.along, row.up)
		}
	}
	for zones, want := range map[Zones]tidemark.Tokens{{}: (301 + 501) / 2, {10, 30, 90}: (101 + 301) / 2} {
		if got := bare(t, Options{Zones: zones, Window: 1001}).lowWater(); got != want {
			t.Errorf("%v: down to %d, want %d", zones, got, want)
		}
	}
}

// TestAlong: with a batch goes what is of half the age; near the end of the window younger ones follow, the oldest first, until what is left
// is at the low-water mark. The pages are of 8 to 0 rounds, and of 500 tokens each.
func TestAlong(t *testing.T) {
	for _, row := range []struct {
		size tidemark.Tokens // of a window of 10,000 tokens whose low-water mark is 4,000
		want string
	}{
		{1000, "t0"}, {5999, "t0"}, // tau is 16
		{6000, "t0 t1 t2 t3 t4"}, {6500, "t0 t1 t2 t3 t4"}, // which is halved: of 4 rounds
		{6501, "t0 t1 t2 t3 t4 t5"}, {7000, "t0 t1 t2 t3 t4 t5"}, {7001, "t0 t1 t2 t3 t4 t5 t6"}, {9000, "t0 t1 t2 t3 t4 t5 t6 t7"},
	} {
		p := bare(t, Options{Tau: 16, Window: 10_000})
		p.clock, p.now.Size, p.now.Zone = 8, row.size, p.zones.Of(row.size, 10_000)
		for i := range 9 {
			p.pages = append(p.pages, &Page{ID: fmt.Sprint("t", i), Size: 1724, wire: 1724, short: 60, tick: i})
		}
		p.along()
		if got := strings.Join(idsOf(p.costs.ready), " "); got != row.want {
			t.Errorf("at %d: %s, want %s", row.size, got, row.want)
		}
	}
}

func idsOf(pages []*Page) (ids []string) {
	for _, g := range pages {
		ids = append(ids, g.ID)
	}
	return ids
}

// TestLoosen: near the end of the window pins end, the oldest first, until what is left is below the mark of involuntary; those that the
// newest turn names, and what is held, do not help.
func TestLoosen(t *testing.T) {
	for _, row := range []struct {
		size tidemark.Tokens // of a window of 10,000, whose marks are 5,000 and 6,000
		zone Zone
		want string // what stays pinned
	}{
		{4999, Aggressive, "t0 t1 t2 t3"}, {5000, Aggressive, "t2 t3"}, {5239, Aggressive, "t2 t3"}, {5240, Aggressive, "t2"}, {9000, Aggressive, "t2"}, {9000, Involuntary, "t0 t1 t2 t3"},
		{5600, Aggressive, "t2"},
	} {
		p := bare(t, Options{Policy: "fifo", Window: 10_000})
		p.now.Size, p.now.Zone = row.size, row.zone
		p.costs.said, p.costs.names = &said{words: map[string]bool{}}, []string{"t2"}
		for i := range 4 {
			g := &Page{ID: fmt.Sprint("t", i), Read: true, Size: 860, wire: 860, short: 60, anchored: i == 0, Call: Call{Path: fmt.Sprint("/t", i)}} // 240 tokens
			k := &key{file: &file{}, pinned: []*Page{g}}
			k.file.pins, g.key = []*key{k}, k
			p.tight = append(p.tight, k, k)
		}
		all := slices.Clone(p.tight)
		p.loosen()
		var got []string
		for i := 0; i < len(all); i += 2 {
			for _, g := range all[i].pinned {
				got = append(got, g.ID)
			}
		}
		if text := strings.Join(got, " "); text != row.want {
			t.Errorf("%d in %s: %s stay pinned, want %s", row.size, row.zone, text, row.want)
		}
		if row.zone == Aggressive && len(p.tight) != len(got) || row.zone != Aggressive && len(p.tight) != len(all) {
			t.Errorf("%d in %s: %d pins are noted, %d are there", row.size, row.zone, len(p.tight), len(got))
		}
	}
}

// TestSums: running totals of figures that come and change are those of the plain list.
func TestSums(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var s sums
	var plain []int
	for range 300 {
		if v := rng.IntN(1000); len(plain) == 0 || rng.IntN(3) > 0 {
			s, plain = s.push(v), append(plain, v)
		} else {
			i := rng.IntN(len(plain))
			s.add(i, v-500)
			plain[i] += v - 500
		}
		sum := 0
		for n := range len(plain) + 1 {
			if got := s.upTo(n); got != sum {
				t.Fatalf("the first %d of %v come to %d, want %d", n, plain, got, sum)
			}
			if n < len(plain) {
				sum += plain[n]
			}
		}
	}
}

// TestSettle: what went by its owner's decision is none of what may go, by the bytes that each policy counts.
func TestSettle(t *testing.T) {
	for policy, saved := range map[string]int{"cost": 140 + 5333 + 240, "batch": 200 + 300} {
		p := bare(t, Options{Policy: policy})
		first, out := &Page{ID: "b", Message: 5, at: 3, wire: 300, short: 60}, &Page{ID: "x", wire: 900, short: 60, stub: true}
		p.costs.ready = []*Page{out, {ID: "a", Message: 5, at: 4, wire: 200, short: 60}, first}
		p.costs.first, p.costs.saved = out, 9999
		if policy == "cost" {
			p.costs.ready[1].inline = inline{images: 1}
		}
		if p.settle(); strings.Join(idsOf(p.costs.ready), " ") != "a b" || p.costs.saved != saved || p.costs.first != first {
			t.Errorf("%s: %q may go and save %d, want %d", policy, idsOf(p.costs.ready), p.costs.saved, saved)
		}
		p.costs.saved = 7
		if p.settle(); p.costs.saved != 7 {
			t.Errorf("%s: it is counted anew though nothing went", policy)
		}
		out, p.costs.ready = p.costs.ready[0], p.costs.ready[:1]
		out.stub = true
		if p.settle(); len(p.costs.ready) != 0 || p.costs.first != nil || p.costs.saved != 0 {
			t.Errorf("%s: of nothing %d bytes are saved", policy, p.costs.saved)
		}
	}
}
