package paging

import (
	"testing"

	"github.com/tidemark-ai/tidemark"
)

// TestChoose: from which page on a batch goes: one far in front of the others waits for company, unless they are too many to look at or the
// window fills up; what is out, what the newest turn names and what a fault would cost more do not count.
func TestChoose(t *testing.T) {
	for _, row := range []struct {
		name   string
		others int // pages in the last message, each of 640 bytes more than its stub
		marks  int
		zone   Zone
		sent   int
		front  bool // the batch goes from the page in the first message on
		counts int  // pages that it is of
	}{
		{"two and one in front", 2, 10, Normal, 3, false, 2},
		{"where the window fills up", 2, 10, Involuntary, 3, true, 3},
		{"in advisory", 2, 10, Advisory, 3, false, 2},
		{"as many as are looked at", maxChoice - 1 - 3, 10, Normal, 3, false, maxChoice - 1 - 3},
		{"one more", maxChoice - 3, 10, Normal, 3, true, maxChoice - 3 + 1},
		{"nothing was sent yet", 2, 0, Normal, 0, true, 3},
		{"all behind the front is new", 2, 10, Normal, 1, true, 3},
	} {
		p := bare(t, Options{})
		p.messages, p.out, p.marks, p.now.Zone = make([]Message, 3), sums(nil).push(1000).push(900_000).push(200_000), make([]mark, row.marks), row.zone
		p.costs.said, p.costs.names = &said{words: map[string]bool{}}, []string{"named.go"}
		c := &p.costs
		page := func(message, at int) *Page { return &Page{Message: message, at: at, Size: 700, wire: 700, short: 60} }
		named, dear, out := page(2, 5), page(2, 6), page(2, 7)
		named.Read, named.Call.Path = true, "/named.go"
		named.key = &key{file: &file{}}
		dear.Read, dear.Call.Path, dear.key = true, "/dear.go", &key{file: &file{}, live: []*Page{dear}}
		out.stub = true
		c.ready = []*Page{named, dear, out}
		for i := range row.others {
			c.ready = append(c.ready, page(2, 1000-i))
		}
		front, back := page(0, 0), c.ready[len(c.ready)-1]
		c.ready, c.first = append(c.ready, front), front
		c.saved = 640 * (row.others + 1)
		hold, lose := p.prices()
		first, saved := p.choose(row.sent, hold, lose)
		want := back
		if row.front {
			want = front
		}
		if first != want || saved != 640*row.counts {
			t.Errorf("%s: from message %d on, %d bytes, want %d pages from message %d on", row.name, first.Message, saved, row.counts, want.Message)
		}
	}
	p := bare(t, Options{})
	if first, saved := p.choose(0, 0.1, 1.15); first != nil || saved != 0 {
		t.Errorf("of nothing %d bytes are chosen", saved)
	}
}

// TestCompany: with a batch goes what comes of age some day and stands behind its first page, as long as it was sent before, and is of half
// the age; while faults are rare.
func TestCompany(t *testing.T) {
	for _, row := range []struct {
		name                 string
		gone, missed, faults int
		sent, want           int // pages of 840 bytes more than their stub
	}{
		{"nothing went yet", 0, 0, 0, 9, 0}, {"none of ten was read again", 10, 0, 0, 9, 3}, {"one of ten was", 10, 1, 0, 9, 0}, {"one since", 10, 0, 1, 9, 0}, {"one of eleven", 11, 1, 0, 9, 3},
		{"a message less was sent", 10, 0, 0, 5, 2}, {"three less", 10, 0, 0, 4, 1}, {"nothing was sent", 10, 0, 0, 0, 0},
	} {
		p := bare(t, Options{Tau: 4})
		p.messages, p.marks, p.clock = make([]Message, 9), make([]mark, 10), 20
		for range p.messages {
			p.out = p.out.push(100_000)
		}
		p.costs.said, p.costs.names = &said{words: map[string]bool{}}, []string{"named.go"}
		c := &p.costs
		c.gone, c.missed, c.faults = row.gone, row.missed, row.faults
		page := func(message, age int) *Page {
			g := &Page{Message: message, at: len(p.pages), Size: 900, wire: 900, short: 60, tick: 20 - age}
			p.pages = append(p.pages, g)
			return g
		}
		page(1, 12)
		first := page(2, 11)
		first.ripe = true
		page(3, 10)
		page(3, 10).key = &key{file: &file{}, pinned: []*Page{{}}}
		page(3, 10).key = &key{file: &file{}, armed: &Page{}}
		page(3, 10).Size = 499
		page(3, 10).Err = true
		page(3, 10).anchored = true
		named, dear := page(3, 9), page(3, 9)
		named.Read, named.Call.Path, named.key = true, "/named.go", &key{file: &file{}}
		dear.Read, dear.Call.Path, dear.key = true, "/dear.go", &key{file: &file{}, live: []*Page{dear}}
		page(4, 3)
		page(5, 2)
		page(6, 1) // too young, and what is behind it is not looked at
		page(7, 5)
		hold, _ := p.prices()
		if got := p.company(first, row.sent, hold); got != 840*row.want {
			t.Errorf("%s: %d bytes, want %d pages", row.name, got, row.want)
		}
	}
}

// TestLater: whether a request more of waiting costs more than those of the cycle on the mean: 20 by what may go, and 1,000 bytes that a request
// brings less the 420 that come of age, six requests long.
func TestLater(t *testing.T) {
	for _, row := range []struct {
		name           string
		tau, acted     int
		behind, regret float64
		want           bool
	}{
		{"as much", 4, 4, 3000, 600, true}, {"more is behind", 4, 4, 3001, 600, false}, {"more was spent", 4, 4, 3000, 601, false}, {"a longer cycle", 4, 3, 3600, 600, true}, {"a shorter one", 4, 5, 3000, 600, false},
		{"all comes of age at once", -1, 4, 0, 0, false}, {"with the next request", 1, 4, 0, 0, false},
	} {
		p := bare(t, Options{Tau: row.tau})
		p.in, p.marks, p.costs.acted, p.costs.regret = []int{5, 11_000}, make([]mark, 10), row.acted, row.regret
		p.pages = []*Page{{Size: 9000, wire: 9000, short: 60}, {Size: 900, wire: 900, short: 60}, {Size: 900, wire: 900, short: 60, Err: true}, {Size: 900, wire: 900, short: 60}}
		p.head = 1
		if got := p.later(20, 1, row.behind); got != row.want {
			t.Errorf("%s: %v", row.name, got)
		}
	}
	p := bare(t, Options{})
	p.in, p.marks, p.wholly = []int{11_000}, make([]mark, 10), inline{data: 11_000, images: 3}
	if p.later(0, 1, 14_545) || !p.later(0, 1, 14_544) { // three images of 5,333 in eleven requests, ten requests long
		t.Error("an image does not count as it weighs")
	}
}

// TestComesOfAge has a row for what is none that comes of age some day.
func TestComesOfAge(t *testing.T) {
	for _, row := range []struct {
		name string
		g    Page
		want bool
	}{
		{"a result", Page{Size: 500, wire: 500, short: 60}, true}, {"a byte too small", Page{Size: 499, wire: 500, short: 60}, false},
		{"an input", Page{Part: Input, Size: 500, wire: 500, short: 60}, false}, {"an image", Page{Part: Image, Size: 500, wire: 500, short: 60}, false},
		{"an error", Page{Size: 500, wire: 500, short: 60, Err: true}, false}, {"one that may go", Page{Size: 500, wire: 500, short: 60, ripe: true}, false},
		{"one that is out", Page{Size: 500, wire: 500, short: 60, stub: true}, false}, {"one that is held", Page{Size: 500, wire: 500, short: 60, anchored: true}, false},
		{"its stub is as long", Page{Size: 500, wire: 500, short: 500}, false}, {"its stub is a byte shorter", Page{Size: 500, wire: 500, short: 499}, true},
		{"its stub is measured", Page{Size: 500, wire: 41}, false}, {"and is a byte shorter", Page{Size: 500, wire: 42}, true},
	} {
		if got := bare(t, Options{Window: tidemark.Tokens(9)}).comes(&row.g); got != row.want {
			t.Errorf("%s: %v", row.name, got)
		}
	}
}
