package search

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/recall"
)

// TestLookDeep: a message whose long text has a term far behind its beginning is a candidate, and a term that only stands
// there is rarer than the others.
func TestLookDeep(t *testing.T) {
	d, beside := desks(t)
	beside.says(minutes(0), long("walnut"))
	if err := beside.pieces.readRest(t.Context(), piecesAWake); err != nil {
		t.Fatal(err)
	}
	e := d.says(minutes(1), long("walnut"))
	if err := d.pieces.readRest(t.Context(), piecesAWake); err != nil {
		t.Fatal(err)
	}
	sixteen := slices.Repeat([]string{"zebra"}, 16)
	for _, c := range []struct {
		name  string
		terms []string
		seqs  []int64
		w     Wanted
		want  []int64
		rare  []string
	}{
		{"a term of the end", []string{"walnut3", "old"}, []int64{99}, Wanted{}, []int64{99, e.Seq}, []string{"walnut3", "old"}},
		{"a candidate already", []string{"walnut3"}, []int64{e.Seq, 99}, Wanted{}, []int64{e.Seq, 99}, []string{"walnut3", "old"}},
		{"nothing", []string{"zebra"}, []int64{99}, Wanted{}, []int64{99}, []string{"old"}},
		{"the sixteenth term", append(slices.Clone(sixteen[:15]), "walnut3"), nil, Wanted{}, []int64{e.Seq}, append(slices.Clone(sixteen[:15]), "walnut3", "old")},
		{"one behind it", append(slices.Clone(sixteen), "walnut3"), nil, Wanted{}, nil, []string{"old"}},
		{"at another time", []string{"walnut3"}, nil, Wanted{Since: minutes(2)}, nil, []string{"old"}},
		{"at its time", []string{"walnut3"}, nil, Wanted{Since: minutes(1), Until: minutes(1)}, []int64{e.Seq}, []string{"walnut3", "old"}},
	} {
		f := &finding{s: d.Room, w: c.w, line: d.line(), seqs: slices.Clone(c.seqs), rare: []string{"old"}, stats: recall.Stats{Holds: func(t string) int { return map[string]int{"old": 5}[t] }}}
		if err := f.lookDeep(t.Context(), c.terms); err != nil || !slices.Equal(f.seqs, c.want) || !slices.Equal(f.rare, c.rare) {
			t.Errorf("%s: candidates %d, rare %q, %v; want %d, %q", c.name, f.seqs, f.rare, err, c.want, c.rare)
		}
		if p, ok := f.deep[e.Seq]; ok != slices.Contains(c.rare, "walnut3") || ok && !strings.Contains(p.text, "walnut3") {
			t.Errorf("%s: found deep is %.100v", c.name, f.deep)
		}
		fresh := 0
		if slices.Contains(c.rare, "walnut3") {
			fresh = 1
		}
		if f.stats.Holds("walnut3") != fresh || f.stats.Holds("old") != 5 || f.stats.Holds("acorn") != 0 {
			t.Errorf("%s: %d have the term, %d the old one, %d another", c.name, f.stats.Holds("walnut3"), f.stats.Holds("old"), f.stats.Holds("acorn"))
		}
	}
	d.exec(`DELETE FROM pieces WHERE seq = ? AND at = 0`, e.Seq) // one of a turn that was skipped, in its place
	stmts, err := d.pieces.stmt(recall.SkippedHome(d.Key), e.Seq, 0, "acorn")
	if err == nil {
		err = d.DB.Tx(t.Context(), stmts)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, all := range []bool{false, true} {
		f := &finding{s: d.Room, w: Wanted{All: all}, line: d.line(), stats: recall.Stats{Holds: func(string) int { return 0 }}}
		if err := f.lookDeep(t.Context(), []string{"acorn"}); err != nil || (len(f.seqs) == 1) != all {
			t.Errorf("all %v: candidates %d, %v", all, f.seqs, err)
		}
	}
}

// writes is a database that notes which entries go into the index, and how many at a time.
type writes struct {
	tidemark.DB
	ids [][]string
}

func (w *writes) Tx(ctx context.Context, stmts []tidemark.Stmt) error {
	var ids []string
	for _, s := range stmts {
		if strings.HasPrefix(s.SQL, "INSERT INTO words(") {
			ids = append(ids, s.Args[2].(string))
		}
	}
	w.ids = append(w.ids, ids)
	return w.DB.Tx(ctx, stmts)
}

// TestPutInPages: messages come into the index a hundred at a time, or as many as make 256 KiB, in the order of the log
// whichever way they come.
func TestPutInPages(t *testing.T) {
	for _, c := range []struct {
		name  string
		sizes []int // of the payloads
		down  bool
		want  []int
	}{
		{"a page", slices.Repeat([]int{100}, 100), false, []int{100}},
		{"one more", slices.Repeat([]int{100}, 101), false, []int{100, 1}},
		{"from the newest to the oldest", slices.Repeat([]int{100}, 101), true, []int{100, 1}},
		{"as large as a page", []int{128 << 10, 128 << 10, 100}, false, []int{3}},
		{"a byte larger", []int{128 << 10, 128<<10 + 1, 100}, false, []int{2, 1}},
	} {
		d, _ := desks(t)
		var entries []tidemark.Entry
		for i, size := range c.sizes {
			m := tidemark.NewText(tidemark.User, "")
			m = tidemark.NewText(tidemark.User, "walnut"+strings.Repeat(" ", size-len(m.AppendJSON(nil))-len("walnut")))
			entries = append(entries, d.logs(minutes(i), "", m))
		}
		w := &writes{DB: d.DB}
		d.index.DB = w
		if err := d.index.put(t.Context(), each(entries, c.down)); err != nil {
			t.Fatal(err)
		}
		if c.down {
			slices.Reverse(entries)
		}
		at, got := 0, []int(nil)
		for _, ids := range w.ids {
			var want []string
			for _, e := range entries[at : at+len(ids)] {
				want = append(want, string(e.ID))
			}
			if c.down {
				slices.Reverse(want)
			}
			if !slices.Equal(ids, want) {
				t.Errorf("%s: out of order", c.name)
			}
			at, got = at+len(ids), append(got, len(ids))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %d at a time, want %d", c.name, got, c.want)
		}
	}
	d, _ := desks(t)
	if err := d.index.put(t.Context(), func(yield func(tidemark.Entry, error) bool) {
		yield(tidemark.Entry{}, fmt.Errorf("the disk is gone: %w", tidemark.ErrUnavailable))
	}); err == nil {
		t.Error("a log that cannot be read is indexed")
	}
}

// each yields entries, from the last to the first with down.
func each(entries []tidemark.Entry, down bool) iter.Seq2[tidemark.Entry, error] {
	entries = slices.Clone(entries)
	if down {
		slices.Reverse(entries)
	}
	return func(yield func(tidemark.Entry, error) bool) {
		for _, e := range entries {
			if !yield(e, nil) {
				return
			}
		}
	}
}

// TestLoad: of a long conversation a candidate is ranked by 1,000 bytes of its text and a neighbour by 400; what becomes a
// candidate is read again. The turn that asks, and what was brought back, are not ranked.
func TestLoad(t *testing.T) {
	d, _ := desks(t)
	var seqs []int64
	for i, n := range []int{maxBeside, maxRead + 1, maxBeside + 1, maxRead} {
		seqs = append(seqs, d.says(minutes(i), strings.Repeat("x", n)).Seq)
	}
	seqs = append(seqs, d.logs(minutes(4), tidemark.FromRecall, tidemark.NewText(tidemark.User, "walnut")).Seq, d.says(minutes(5), "harbour").Seq)
	f := &finding{s: d.Room, line: d.line(), known: map[int64]read{}, size: sizeOf{docs: wholeMost + 1}}
	load := func(name string, seqs, around []int64, want string) {
		t.Helper()
		if err := f.load(t.Context(), seqs, around); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, doc := range f.index.Docs() {
			got = append(got, fmt.Sprintf("%d:%d@%d", f.docs[doc.ID], len(doc.Text), doc.Pos))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %s, want %s", name, strings.Join(got, " "), want)
		}
	}
	load("with neighbours", []int64{seqs[1]}, []int64{seqs[1]}, "1:400@0 2:1000@1 3:400@2 4:400@3")
	load("a neighbour that is found, too", []int64{seqs[1], seqs[2]}, []int64{seqs[1]}, "1:400@0 2:1000@1 3:401@2 4:400@3")
	load("the longest that is ranked whole", []int64{seqs[3]}, []int64{seqs[3]}, "2:1000@0 3:401@1 4:1000@2 6:7@4")
	f.w.before = seqs[3]
	load("before a turn", []int64{seqs[1], seqs[3]}, []int64{seqs[1]}, "1:400@0 2:1000@1 3:401@2")
}
