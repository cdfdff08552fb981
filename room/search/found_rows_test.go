package search

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/host/hosttest"
	"github.com/tidemark-ai/tidemark/recall"
)

// TestTextsThatAreFound: an index is given what is found, and nothing that was brought back or is left out.
func TestTextsThatAreFound(t *testing.T) {
	d, _ := skipper(t)
	seqs := []int64{d.says(minutes(0), "walnut").Seq, d.logs(minutes(1), tidemark.FromRecall, tidemark.NewText(tidemark.User, "recalled")).Seq}
	seqs = append(seqs, d.says(minutes(2), "harbour").Seq)
	left := d.says(minutes(3), "skipped")
	seqs = append(seqs, left.Seq)
	d.skip("skipped", skipSkipped, left.Seq-1, left.ID)
	var got []string
	if err := d.index.Texts(t.Context(), seqs, func(e tidemark.Entry, text string) { got = append(got, fmt.Sprint(e.Seq, " ", text)) }); err != nil || !slices.Equal(got, []string{"1 walnut", "3 harbour"}) {
		t.Errorf("%q, %v", got, err)
	}
}

// TestStandingOut: what stands out by its vector counts where it was said in time and is not left out.
func TestStandingOut(t *testing.T) {
	d, beside := desks(t)
	var mine []int64
	for i := range 4 { // 1, 3, 5 and 7
		mine = append(mine, d.says(minutes(i), "walnut").Seq)
		beside.says(minutes(i), "walnut")
	}
	skipped := d.logs(minutes(4), "", tidemark.NewText(tidemark.User, "walnut"))
	d.exec(`INSERT INTO words(rowid, home, terms) VALUES(?, ?, 'walnut')`, skipped.Seq, recall.SkippedHome(d.Key))
	near := map[int64]recall.Stand{mine[0]: {Rank: 1, Z: 9}, mine[2]: {Rank: 2, Z: 5.9}, skipped.Seq: {Rank: 3, Z: 4}}
	told := "used"
	d.Near = func(_ context.Context, query string, in *host.Lineage) (map[int64]recall.Stand, string) {
		if query != "boat" || in.Key != d.Key {
			t.Errorf("asked for %q in %s", query, in.Key)
		}
		return near, told
	}
	for _, c := range []struct {
		name string
		w    Wanted
		want []int64
	}{
		{"at any time", Wanted{}, []int64{mine[0], mine[2]}}, {"all", Wanted{All: true}, []int64{mine[0], mine[2], skipped.Seq}},
		{"since", Wanted{Since: minutes(2)}, []int64{mine[2]}}, {"until", Wanted{Until: minutes(1)}, []int64{mine[0]}}, {"never", Wanted{Since: minutes(9)}, nil},
	} {
		c.w.Query = "boat"
		got, how := d.nearest(t.Context(), d.line(), c.w)
		if keys := nearestSeqs(got); !slices.Equal(keys, c.want) || how != told {
			t.Errorf("%s: %d, %q; want %d", c.name, keys, how, c.want)
		}
		for seq, st := range got {
			if st != near[seq] {
				t.Errorf("%s: message %d stands out by %+v", c.name, seq, st)
			}
		}
	}
	for z, want := range map[float64]bool{5.9: false, 6: true, 9: true} { // halfway from where it says anything
		if f := (&finding{near: map[int64]recall.Stand{1: {Z: 4}, 2: {Z: z}}}); f.likely() != want {
			t.Errorf("what stands out by %v is worth a look: %v", z, f.likely())
		}
	}
	line, warned := d.line(), ""
	d.Warn = func(what string, _ error) { warned = what }
	d.DB = unreadable{d.DB}
	if got, how := d.nearest(t.Context(), line, Wanted{Query: "boat"}); got != nil || how != "unreachable" || warned != "recall without vectors" {
		t.Errorf("of a database that fails: %v, %q, warned of %q", got, how, warned)
	}
	near = nil
	if got, how := d.nearest(t.Context(), line, Wanted{Query: "boat"}); got != nil || how != "used" {
		t.Errorf("of nothing: %v, %q", got, how)
	}
}

// TestNearInARecall: what stands out makes a find that is weak of one that no word finds, but not what the turn itself says.
func TestNearInARecall(t *testing.T) {
	d := deskOf(t, hosttest.DB(t), "agent:main:main", silent{})
	for i, text := range []string{"the walnut boat", "a green vessel", "where is it?"} {
		d.says(minutes(i), text)
	}
	near := map[int64]recall.Stand{}
	d.Near = func(context.Context, string, *host.Lineage) (map[int64]recall.Stand, string) { return near, "used" }
	for _, c := range []struct {
		name   string
		near   int64
		before int64
		want   recall.Verdict
	}{{"another message", 2, 3, recall.Weak}, {"the turn itself", 3, 3, recall.Nothing}, {"before the turn", 3, 4, recall.Weak}, {"of nobody's turn", 3, 0, recall.Weak}, {"nothing", 0, 0, recall.Nothing}} {
		if near = map[int64]recall.Stand{c.near: {Rank: 1, Z: 9}}; c.near == 0 {
			near = nil
		}
		got, err := d.Recall(t.Context(), Wanted{Query: "zeppelin", before: c.before})
		if err != nil || got.Verdict != c.want || got.Vectors != "used" || (len(got.Results) > 0) != (c.want == recall.Weak) {
			t.Errorf("%s: %s, %q, %+v, %v; want %s", c.name, got.Verdict, got.Vectors, got.Results, err, c.want)
		}
	}
	if d.lately.Load() == nil {
		t.Error("what was read of a short conversation is not kept")
	}
}

// TestBudgetTooSmall: where the one text that was found does not fit, the answer says to raise the budget.
func TestBudgetTooSmall(t *testing.T) {
	d := deskOf(t, hosttest.DB(t), "agent:main:main", silent{})
	e := d.says(minutes(0), "the walnut boat lies in the harbour")
	got, err := d.Recall(t.Context(), Wanted{Query: "walnut boat", Budget: 1})
	if err != nil || len(got.Results) != 0 || got.Hint != "the shortest text that was found does not fit into a budget of 1 tokens: raise it" || len(got.Filtered) != 1 || got.Filtered[0].Reason != filteredBudget || !slices.Equal(got.Filtered[0].IDs, []tidemark.EntryID{e.ID}) {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err = d.Recall(t.Context(), Wanted{Query: "walnut boat", Budget: 100}); err != nil || len(got.Results) != 1 || got.Hint != "" || len(got.Filtered) != 0 {
		t.Errorf("with more: %+v, %v", got, err)
	}
}

// unreadable is a database that can neither be read nor written.
type unreadable struct{ tidemark.DB }

func (unreadable) Query(context.Context, string, ...any) ([]tidemark.Row, error) {
	return nil, errors.New("the disk is gone")
}

func (unreadable) Tx(context.Context, []tidemark.Stmt) error { return errors.New("the disk is full") }

// TestSearchBounds: a search gives as many messages as are wanted, at least one and at most a hundred, by the first terms of
// what is asked, with what stands in them.
func TestSearchBounds(t *testing.T) {
	d := deskOf(t, hosttest.DB(t), "agent:main:main", silent{})
	if _, err := d.Search(t.Context(), "the of", 5); !errors.Is(err, tidemark.ErrInvalid) {
		t.Error(err)
	}
	for i := range 110 {
		d.says(minutes(i), fmt.Sprintf("acorn a%d", 100+i))
	}
	for limit, want := range map[int]int{-1: 1, 0: 1, 1: 1, 7: 7, 100: 100, 101: 100} {
		if got, err := d.Search(t.Context(), "acorn", limit); err != nil || len(got) != want {
			t.Errorf("%d wanted: %d, %v", limit, len(got), err)
		}
	}
	e := d.logs(minutes(200), tidemark.FromTool, gave(false, "c1"))
	d.exec(`INSERT INTO words(rowid, home, terms) VALUES(?, ?, 'walnut')`, e.Seq, recall.Home(d.Key))
	got, err := d.Search(t.Context(), "walnut", 5)
	if err != nil || len(got) != 1 || !got[0].At.Equal(minutes(200)) || got[0].Entry != e.ID || got[0].Session != d.log || got[0].Role != tidemark.User || got[0].From != tidemark.FromTool || got[0].Text != "it says so" {
		t.Errorf("%+v, %v", got, err)
	}
	var absent []string
	for i := range 32 {
		absent = append(absent, fmt.Sprintf("zq%c%czq", 'a'+i/26, 'a'+i%26))
	}
	for n, want := range map[int]int{31: 1, 32: 0} {
		if got, err := d.Search(t.Context(), strings.Join(absent[:n], " ")+" walnut", 5); err != nil || len(got) != want {
			t.Errorf("behind %d terms: %d, %v", n, len(got), err)
		}
	}
	// What only stands deep in a long text comes behind what is found by its beginning.
	deep := d.says(minutes(300), long("pebble"))
	shallow := d.says(minutes(301), "pebble3")
	got, err = d.Search(t.Context(), "pebble3", 5)
	if err != nil || len(got) != 2 || got[0].Entry != shallow.ID || got[1].Entry != deep.ID || !strings.Contains(got[1].Text, "pebble3 filler") {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err = d.Search(t.Context(), "pebble3", 1); err != nil || len(got) != 1 || got[0].Entry != shallow.ID {
		t.Errorf("one wanted: %+v, %v", got, err)
	}
}
