package search

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/host/hosttest"
	"github.com/tidemark-ai/tidemark/recall"
)

// upward are numbers from one to another.
func upward(from, to int64) (out []int64) {
	for n := from; n <= to; n++ {
		out = append(out, n)
	}
	return out
}

// downward are numbers from one down to another.
func downward(from, to int64) []int64 {
	out := upward(to, from)
	slices.Reverse(out)
	return out
}

// about reports that two figures are the same but for rounding.
func about(a, b float64) bool { return math.Abs(a-b) < 1e-9 }

// TestAmong: a conversation that has its database for itself, or is at least half of it, does without its word of home;
// a branch asks for the homes of what it continues.
func TestAmong(t *testing.T) {
	s := east()
	single := &host.Lineage{Key: s.Key, Single: true}
	branch := &host.Lineage{Key: s.Key, Keys: []string{"agent:main:main", "agent:main:base"}}
	home, skipped := recall.Home(s.Key), recall.SkippedHome(s.Key)
	both := recall.MatchHome([]string{home, recall.Home("agent:main:base")})
	for _, c := range []struct {
		name  string
		line  *host.Lineage
		size  sizeOf
		all   bool
		most  bool
		match string
	}{
		{"alone", single, sizeOf{docs: 10, last: 10, alone: true}, false, false, `terms : x NOT home : "` + skipped + `"`},
		{"alone, all", single, sizeOf{docs: 10, last: 10, alone: true}, true, false, `terms : x`},
		{"half", single, sizeOf{docs: 5, last: 10}, false, true, `terms : x NOT home : "` + skipped + `"`},
		{"half, all", single, sizeOf{docs: 5, last: 10}, true, true, `terms : x`},
		{"less than half", single, sizeOf{docs: 5, last: 11}, false, false, `home : "` + home + `" AND terms : x`},
		{"less than half, all", single, sizeOf{docs: 5, last: 11}, true, false, `home : ("` + home + `" OR "` + skipped + `") AND terms : x`},
		{"a branch", branch, sizeOf{docs: 10, last: 10}, false, false, both + ` AND terms : x`},
	} {
		in := s.among(c.line, Wanted{All: c.all}, c.size)
		if got := in.match("x"); got != c.match || in.most != c.most || in.alone != c.size.alone || in.all != c.all || in.line != c.line {
			t.Errorf("%s: most %v, %s\nwant %s", c.name, in.most, got, c.match)
		}
	}
	if sql, args := within(&host.Lineage{Single: true, Ends: []any{"a", "b"}}, "e"); sql != `e.log IN (SELECT id FROM logs WHERE key BETWEEN ? AND ?)` || !slices.Equal(args, []any{"a", "b"}) {
		t.Errorf("within %s of %v", sql, args)
	}
	if sql, args := within(&host.Lineage{Logs: "{}"}, "e"); sql != `e.log IN (SELECT key FROM json_each(?)) AND `+branch.Before("e") || !slices.Equal(args, []any{"{}", "{}"}) {
		t.Errorf("within %s of %v", sql, args)
	}
}

// TestPostings: each term with its messages, newest first, and about how many more there are, the rarest first.
func TestPostings(t *testing.T) {
	d, _ := desks(t)
	rows := map[int64]string{}
	for i := int64(1); i <= 1000; i++ {
		text := "every"
		if i%2 == 1 {
			text += " odd"
		}
		if i%3 > 0 {
			text += " twothirds"
		}
		if i <= 600 {
			text += " sixhundred"
		}
		if i <= 599 {
			text += " fewer"
		}
		rows[i] = text
	}
	rows[10], rows[20] = rows[10]+" rare", rows[20]+" rare"
	d.indexed(rows)
	n := sizeOf{docs: 900, last: 1000, alone: true}
	got, err := d.postings(t.Context(), d.among(d.line(), Wanted{}, n), []string{"every", "rare", "zebra", "odd", "twothirds", "sixhundred", "fewer"}, Wanted{}, n)
	if err != nil {
		t.Fatal(err)
	}
	var twothirds []int64
	for i := int64(1000); len(twothirds) < 600; i-- {
		if i%3 > 0 {
			twothirds = append(twothirds, i)
		}
	}
	var odd []int64
	for i := int64(999); i > 0; i -= 2 {
		odd = append(odd, i)
	}
	want := []posting{
		{"rare", []int64{20, 10}, false, 2},
		{"odd", odd, false, 500},
		{"fewer", downward(599, 1), false, 599},
		{"sixhundred", downward(600, 1), true, 600 * 1000.0 / 999},
		{"twothirds", twothirds, true, 600 * 1000.0 / 899}, // the oldest that is listed is 101
		{"every", downward(1000, 401), true, 900},          // no more than there are
	}
	if len(got) != len(want) {
		t.Fatalf("%d terms, want %d", len(got), len(want))
	}
	for i, p := range got {
		w := want[i]
		if p.term != w.term || !slices.Equal(p.seqs, w.seqs) || p.more != w.more || !about(p.docs, w.docs) {
			t.Errorf("%s: %d messages, more %v, about %v; want %s: %d, %v, %v", p.term, len(p.seqs), p.more, p.docs, w.term, len(w.seqs), w.more, w.docs)
		}
	}
}

// TestListed: which messages a term has, by whose they are, when they were said and how far a branch sees, with a neighbour
// that says the same between them.
func TestListed(t *testing.T) {
	d, beside := desks(t)
	var mine []int64
	for i := range 6 { // 1, 3, 5 … are ours
		mine = append(mine, d.says(minutes(i), fmt.Sprintf("walnut harbour n%d", i)).Seq)
		beside.says(minutes(i), fmt.Sprintf("walnut harbour n%d", i))
	}
	if !slices.Equal(mine, []int64{1, 3, 5, 7, 9, 11}) {
		t.Fatalf("positions %d", mine)
	}
	skipped := d.logs(minutes(9), "", tidemark.NewText(tidemark.User, "walnut")) // 13
	d.exec(`INSERT INTO words(rowid, home, terms) VALUES(?, ?, 'walnut')`, skipped.Seq, recall.SkippedHome(d.Key))
	at := func(from, to int) Wanted { return Wanted{Since: minutes(from), Until: minutes(to)} }
	whole := at(1, 3)
	whole.rows = &rows{3, 8, true}
	some := at(1, 3)
	some.rows = &rows{1, 8, false}
	outside := func(w Wanted) Wanted {
		w.outside = true
		return w
	}
	before := Wanted{before: 7}
	for _, c := range []struct {
		name   string
		line   *host.Lineage
		size   sizeOf
		wanted Wanted
		most   int
		want   []int64
	}{
		{"by home", d.line(), sizeOf{docs: 6, last: 13}, Wanted{}, 9, []int64{11, 9, 7, 5, 3, 1}},
		{"by whose log it is", d.line(), sizeOf{docs: 7, last: 13}, Wanted{}, 9, []int64{11, 9, 7, 5, 3, 1}},
		{"all", d.line(), sizeOf{docs: 6, last: 13}, Wanted{All: true}, 9, []int64{13, 11, 9, 7, 5, 3, 1}},
		{"all, by whose log it is", d.line(), sizeOf{docs: 7, last: 13}, Wanted{All: true}, 9, []int64{13, 11, 9, 7, 5, 3, 1}},
		{"some", d.line(), sizeOf{docs: 6, last: 13}, Wanted{}, 2, []int64{11, 9}},
		{"before a turn", d.line(), sizeOf{docs: 6, last: 13}, before, 9, []int64{5, 3, 1}},
		{"before the first", d.line(), sizeOf{docs: 6, last: 13}, Wanted{before: 1}, 9, nil},
		{"of a time, by position", d.line(), sizeOf{docs: 6, last: 13}, whole, 9, []int64{7, 5, 3}},
		{"of a time, by position, by whose log it is", d.line(), sizeOf{docs: 7, last: 13}, whole, 9, []int64{7, 5, 3}},
		{"of a time, by time", d.line(), sizeOf{docs: 6, last: 13}, some, 9, []int64{7, 5, 3}},
		{"of a time, by time, by whose log it is", d.line(), sizeOf{docs: 7, last: 13}, some, 9, []int64{7, 5, 3}},
		{"of a time whose positions nobody knows", d.line(), sizeOf{docs: 6, last: 13}, at(1, 3), 9, []int64{7, 5, 3}},
		{"of another time, by position", d.line(), sizeOf{docs: 6, last: 13}, outside(whole), 9, []int64{11, 9, 1}},
		{"of another time, some", d.line(), sizeOf{docs: 6, last: 13}, outside(whole), 2, []int64{11, 9}},
		{"of another time, by time", d.line(), sizeOf{docs: 6, last: 13}, outside(some), 9, []int64{11, 9, 1}},
		{"of a branch", d.upTo(7), sizeOf{docs: 6, last: 13}, Wanted{}, 9, []int64{7, 5, 3, 1}},
		{"of a branch and a time", d.upTo(7), sizeOf{docs: 6, last: 13}, Wanted{Since: minutes(2)}, 9, []int64{7, 5}},
	} {
		in := d.among(c.line, c.wanted, c.size)
		got, err := d.listed(t.Context(), in, []string{"walnut", "zebra", `("walnut" AND "n2")`}, c.wanted, c.most)
		if err != nil || len(got) != 3 || !slices.Equal(got[0], c.want) || len(got[1]) != 0 {
			t.Errorf("%s: %d, %v; want %d", c.name, got, err, c.want)
			continue
		}
		if third := slices.Contains(c.want, 5); slices.Equal(got[2], []int64{5}) != (third || c.most == 2 && !c.wanted.outside) {
			t.Errorf("%s: an expression gives %d", c.name, got[2])
		}
	}
}

// TestFindTerms: the messages of a question's terms, the terms that are there by rarity, and how many have each.
func TestFindTerms(t *testing.T) {
	d, _ := desks(t)
	d.indexed(map[int64]string{1: "rare common", 2: "common", 3: "common"})
	for docs, order := range map[int64][]int64{3: {1, 3, 2}, 0: {3, 2, 1}} { // a conversation that is not counted has one message, and no word is rare in it
		want, n := max(1, int(docs)), sizeOf{docs: docs, last: 3, alone: true}
		seqs, byRarity, stats, err := d.find(t.Context(), d.line(), []string{"common", "zebra", "rare"}, nil, Wanted{}, n, 9)
		if err != nil || !slices.Equal(seqs, order) || !slices.Equal(byRarity, []string{"rare", "common"}) || stats.Docs != want || stats.Holds("rare") != 1 || stats.Holds("common") != 3 || stats.Holds("zebra") != 0 {
			t.Errorf("of %d: %d, %q, %d, %v", docs, seqs, byRarity, stats.Docs, err)
		}
	}
}

// TestExtent: how large a conversation is is counted again when its database has grown by more than a quarter of it; until
// then what came is its own where it is alone.
func TestExtent(t *testing.T) {
	d, beside := desks(t)
	alone := deskOf(t, hosttest.DB(t), "agent:main:main", silent{})
	for _, x := range []*desk{d, alone} {
		for i := range 8 {
			x.says(minutes(i), "walnut")
		}
	}
	extent := func(x *desk) sizeOf {
		t.Helper()
		n, err := x.extent(t.Context(), x.line())
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if got := extent(d); got != (sizeOf{8, 8, false}) {
		t.Errorf("of two conversations: %+v", got)
	}
	beside.says(minutes(8), "walnut")
	beside.says(minutes(9), "walnut")
	if got := extent(d); got != (sizeOf{8, 10, false}) {
		t.Errorf("behind two messages of another: %+v", got)
	}
	d.says(minutes(10), "walnut")
	d.event()
	if got := extent(d); got != (sizeOf{9, 12, false}) {
		t.Errorf("counted again: %+v", got)
	}
	if got := extent(alone); got != (sizeOf{8, 8, true}) {
		t.Errorf("alone: %+v", got)
	}
	alone.event() // about: an event counts until it is counted again
	alone.event()
	if got := extent(alone); got != (sizeOf{10, 10, true}) {
		t.Errorf("alone, not counted again: %+v", got)
	}
	alone.event()
	if got := extent(alone); got != (sizeOf{8, 11, true}) {
		t.Errorf("alone, counted again: %+v", got)
	}
}

// TestRowsOfMany: of times with more messages than are worth it no positions are looked up, nor before 1970.
func TestRowsOfMany(t *testing.T) {
	d, _ := desks(t)
	d.exec(`INSERT INTO entries(id, log, kind, at, hash, payload) WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
		SELECT ? || printf('%016d', i), ?, 'message', ?, '', '' FROM n`, timedMost, tidemark.NewID(morning)[:10], d.log, morning.UnixMilli())
	w := Wanted{Since: morning, Until: morning}
	if got, err := d.rowsOf(t.Context(), w); err != nil || got != nil {
		t.Errorf("of %d messages: %+v, %v", timedMost, got, err)
	}
	d.exec(`DELETE FROM entries WHERE seq = ?`, timedMost)
	if got, err := d.rowsOf(t.Context(), w); err != nil || got == nil || *got != (rows{1, timedMost - 1, true}) {
		t.Errorf("of one less: %+v, %v", got, err)
	}
	d.exec(`DELETE FROM entries WHERE seq = 7`)
	if got, err := d.rowsOf(t.Context(), w); err != nil || got == nil || *got != (rows{1, timedMost - 1, false}) {
		t.Errorf("with a gap: %+v, %v", got, err)
	}
	for ms, want := range map[int64]bool{-1: false, 0: true} {
		if got, err := d.rowsOf(t.Context(), Wanted{Since: time.UnixMilli(ms), Until: time.UnixMilli(ms)}); err != nil || (got != nil) != want {
			t.Errorf("%d ms behind 1970: %+v, %v", ms, got, err)
		}
	}
}

// TestNumbers: the numbers that SQLite joins.
func TestNumbers(t *testing.T) {
	for text, want := range map[string][]int64{"": {}, "7": {7}, "1,22,-3": {1, 22, -3}, "4,x,5,": {4, 5}} {
		if got := list(text); !slices.Equal(got, want) {
			t.Errorf("%q: %d", text, got)
		}
	}
}

// TestAskedTerms: as many terms as are looked up stay in their order; of more, those that name something come first.
func TestAskedTerms(t *testing.T) {
	var terms []string
	for i := range askTerms - 1 {
		terms = append(terms, "word"+string(rune('a'+i)))
	}
	terms = append(terms, "src/net/conn_17.go")
	if got := askedFirst(terms); !slices.Equal(got, terms) {
		t.Errorf("%d terms: %q", len(terms), got)
	}
	more := append(slices.Clone(terms), "last")
	if got, want := askedFirst(more), append([]string{"src/net/conn_17.go"}, terms[:askTerms-1]...); !slices.Equal(got, want) || more[0] != "worda" {
		t.Errorf("%d terms: %q, want %q", len(more), got, want)
	}
}
