package paging

import (
	"strings"
	"testing"
)

// says are so many turns of the user.
func says(n int) string { return strings.Repeat("; say", n) }

// namedTurns are so many turns of the user that name a file.
func namedTurns(n int, file string) string { return strings.Repeat("; say look at "+file+" again", n) }

// TestCostRules has a row for what thrashing, faded pins and the newest turn of the user do to batches. tau is 1.
func TestCostRules(t *testing.T) {
	three := "read /a v + read /b v + read /c v"
	two := "read /a v + read /b v"
	thrash := "begin; " + three + says(9) + "; " + three
	out := "2: evict t1; 2: evict t2; 2: evict t3; 11: fault t4 of t1; 11: fault t5 of t2; 11: fault t6 of t3; "
	kept := "12: pin t4; 12: pin t5; 12: pin t6; "
	for _, row := range []struct{ name, policy, lines, want string }{
		{"three faults of three raise tau, and fresh pins stay", "cost", thrash + "; bash x; bash y; bash z" + says(7),
			out + kept + "15: tau 2; 15: gc t7; 15: gc t8; 15: gc t9"},
		{"a cut that takes a thrash back lowers it", "cost", thrash + "; bash x; bash y; bash z" + says(7) + "; keep 23 say",
			out + kept + "15: tau 2; 15: gc t7; 15: gc t8; 15: gc t9; 22: tau 1; 22: pin t4; 22: pin t5; 22: pin t6"},
		{"a batch that nobody reads again lowers it", "cost", thrash + "; bash x; bash y; bash z" + says(7) + "; read /d v; read /e v; read /f v" + says(12) + "; read /g v; read /h v; read /i v" + says(12),
			out + kept + "15: tau 2; 15: gc t7; 15: gc t8; 15: gc t9; 25: evict t10; 25: evict t11; 25: evict t12; " +
				"40: tau 1; 40: unpin t4; 40: unpin t5; 40: unpin t6; 40: evict t13; 40: evict t14; 40: evict t15"},
		{"two faults are no thrash", "cost", "begin; " + two + says(9) + "; " + two + "; bash x; bash y; bash z" + says(9),
			"2: evict t1; 2: evict t2; 11: fault t3 of t1; 11: fault t4 of t2; 12: pin t3; 12: pin t4; 15: gc t5; 15: gc t6; 15: gc t7"},
		{"pins fade", "cost", thrash + "; bash x; bash y" + says(10) + "; bash z; bash w" + says(14) + "; bash u; bash v" + says(14),
			out + kept + "14: tau 2; 14: gc t7; 14: gc t8; 26: gc t9; 26: gc t10; 42: unpin t4; 42: unpin t5; 42: unpin t6; 42: gc t11; 42: gc t12"},
		{"pins of fifo do not", "fifo", thrash + "; bash x; bash y" + says(20),
			"2: evict t1; 2: evict t2; 2: evict t3; " + out[len("2: evict t1; 2: evict t2; 2: evict t3; "):] + kept + "13: gc t7; 14: gc t8"},
		{"what the newest turn names stays", "cost", "begin; read /aa v + read /bb v" + namedTurns(14, "/aa"), "2: evict t2"},
		{"until another one does", "cost", "begin; read /aa v + read /bb v" + namedTurns(3, "/aa") + namedTurns(12, "/bb"), "2: evict t2; 5: evict t1"},
		{"what is small and far in front waits", "cost", "begin; bash x; " + strings.Repeat("read /a v + read /b v + read /c v fail; ", 3) + "say" + says(2),
			"3: evict t2; 3: evict t3; 3: gc t4; 4: evict t5; 4: evict t6; 4: gc t7; 5: evict t8; 5: evict t9"},
		{"and with lru", "lru", "begin; read /aa v + read /bb v" + namedTurns(3, "/aa") + says(2), "2: evict t2; 5: evict t1"},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := run(t, Options{Policy: row.policy, Tau: 1}, strings.Split(row.lines, "; ")); got != row.want {
				t.Errorf("got  %s\nwant %s", got, row.want)
			}
		})
	}
}

// TestTauTold: the tau that thrashing raised stands in the line of its request and in the totals.
func TestTauTold(t *testing.T) {
	three := "read /a v + read /b v + read /c v"
	s := scripted(t, "begin; "+three+says(9)+"; "+three+"; bash x; bash y; bash z"+says(7))
	r := Replay{Options: Options{Tau: 1}, Keep: true}
	if err := r.Run(s); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(r.Line), `"tau":`); n != 1 || !strings.Contains(string(r.Line), `],"tau":2}`) {
		t.Errorf("tau stands in %d requests: %s", n, r.Line)
	}
	if r.Totals.Tau != 2 {
		t.Errorf("the highest tau is %d, want 2", r.Totals.Tau)
	}
	if r := replayed(t, Options{Policy: "fifo", Tau: 1}, s); r.Totals.Tau != 1 {
		t.Errorf("tau of fifo is %d, want 1", r.Totals.Tau)
	}
}

// TestFaultCost: a page stays while a fault would cost more than its going spares: a small one in a full context, of
// a session in which much is read again, when it was read lately, and while the window has room.
func TestFaultCost(t *testing.T) {
	for _, row := range []struct {
		name         string
		size         int // of the page, in bytes
		context      int
		requests     int
		age          int
		gone, missed int
		zone         Zone
		stays        bool
	}{
		{"small, much context", 600, 400_000, 20, 4, 0, 0, Normal, true},
		{"large", 20_000, 400_000, 20, 4, 0, 0, Normal, false},
		{"little context", 600, 8_000, 20, 4, 0, 0, Normal, false},
		{"a long session", 600, 400_000, 200, 4, 0, 0, Normal, false},
		{"not used for long", 600, 400_000, 20, 40, 0, 0, Normal, false},
		{"nothing was read again", 600, 400_000, 20, 4, 90, 0, Normal, false},
		{"much was read again", 6000, 400_000, 20, 4, 20, 12, Normal, true},
		{"the window fills up", 600, 400_000, 20, 4, 0, 0, Involuntary, false},
	} {
		p, err := New(Options{})
		if err != nil {
			t.Fatal(err)
		}
		f := &file{path: "/a"}
		g := &Page{Read: true, wire: row.size, short: 60}
		g.key = &key{file: f, live: []*Page{g}}
		p.messages, p.out, p.marks = make([]Message, 1), sums(nil).push(row.context), make([]mark, row.requests)
		p.clock, p.costs.gone, p.costs.missed, p.now.Zone = row.age, row.gone, row.missed, row.zone
		hold, _ := p.prices()
		if got := p.worthOf(g, hold) < 0; got != row.stays {
			t.Errorf("%s: stays is %v, it is worth %.0f", row.name, got, p.worthOf(g, hold))
		}
		if old := (&Page{Read: true, key: g.key, wire: row.size, short: 60}); p.worthOf(old, hold) < 0 {
			t.Errorf("%s: a copy that a newer one stands for stays", row.name)
		}
	}
}

// TestImagePrice: an image weighs what it counts, whatever its bytes, also in what stands behind a page.
func TestImagePrice(t *testing.T) {
	g := &Page{Part: Image, Message: 1, wire: 1_000_100, short: 60, inline: inline{data: 1_000_000, images: 1}}
	const want = 100 - 60 + 5333
	if got := g.frees(); got != want {
		t.Errorf("its going frees %d, want %d", got, want)
	}
	p, _ := New(Options{})
	p.out = sums(nil).push(500).push(1_000_100).push(700)
	p.picture(g)
	for _, row := range []struct{ from, to, want int }{{0, 3, 500 + 100 + 5333 + 700}, {1, 2, 100 + 5333}, {2, 3, 700}, {0, 1, 500}} {
		if got := p.between(row.from, row.to); got != row.want {
			t.Errorf("messages %d to %d weigh %d, want %d", row.from, row.to, got, row.want)
		}
	}
}
