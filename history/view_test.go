package history

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
)

// shownOf is a view in words: of each item its text.
func shownOf(v compaction.View) string {
	var out []string
	for _, it := range v.Items {
		out = append(out, it.Message.PlainText())
	}
	return strings.Join(out, "|")
}

// TestViewAsOf: a view is what the overlays of its time leave visible of the messages of its time: now, and at each position of
// the past. What no edit shows costs no payload.
func TestViewAsOf(t *testing.T) {
	r := newRig(t)
	var said []tidemark.Entry
	for _, text := range []string{"one", "two", "three"} { // 1 to 3
		said = append(said, r.person(text))
	}
	summary := tidemark.Edit{From: said[0].ID, To: said[1].ID, Messages: []tidemark.Message{tidemark.NewText(tidemark.User, "of two")}}
	first := r.acts(tidemark.KindOverlay, tidemark.Overlay{By: []string{"x"}, Edits: []tidemark.Edit{summary, {From: said[2].ID, Block: 1, Blocks: []tidemark.Block{tidemark.Text("3")}}}}) // 4
	r.person("four")                                                                                                                                                                        // 5
	r.acts(tidemark.KindOverlay, tidemark.Overlay{Lifts: []tidemark.EntryID{first.ID}})                                                                                                     // 6
	for until, want := range map[int64]string{1: "one", 3: "one|two|three", 4: "of two|3", 5: "of two|3|four", 6: "one|two|three|four"} {
		if err := r.AsOf(t.Context(), "main", until, func(v compaction.View) error {
			if got := shownOf(v); got != want || v.Back != nil {
				t.Errorf("at %d: %q, want %q, %v came back", until, got, want, v.Back)
			}
			return nil
		}); err != nil {
			t.Errorf("at %d: %v", until, err)
		}
	}
	each := said[0].Tokens
	for until, want := range map[int64]tidemark.Tokens{0: 0, 2: 2 * each, 3: 3 * each, 4: each, 5: 2 * each, 6: 4 * each} {
		if got, err := r.Estimate(t.Context(), "main", until); got != want || err != nil {
			t.Errorf("at %d it is estimated to have %d tokens, want %d, %v", until, got, want, err)
		}
	}
	now, err := r.Standing(t.Context(), "main")
	if err != nil {
		t.Fatal(err)
	}
	v, err := r.View(t.Context(), "main", now, nil)
	if err != nil || shownOf(v.View) != "one|two|three|four" || len(v.Entries) != 4 || len(v.Shown) != 0 || !slices.Equal(v.Back[said[2].ID], []int{1}) {
		t.Errorf("now %q, %d entries, %d replacements, brought back %v, %v", shownOf(v.View), len(v.Entries), len(v.Shown), v.Back, err)
	}
	then, err := r.EditsAt(t.Context(), "main", 4)
	if err != nil {
		t.Fatal(err)
	}
	if kept, err := r.Kept(t.Context(), "main", then); err != nil || len(kept) != 1 || kept[0].Seq != 3 {
		t.Errorf("the database has %+v of it, %v", kept, err)
	}
}

// TestEditsThatShow: edits that the view could not show whole beside those that stand are refused.
func TestEditsThatShow(t *testing.T) {
	r := newRig(t)
	var e []tidemark.Entry
	for i := range 6 {
		e = append(e, r.person(fmt.Sprint("message ", i)))
	}
	r.acts(tidemark.KindOverlay, tidemark.Overlay{By: []string{"x"}, Edits: []tidemark.Edit{{From: e[1].ID, To: e[3].ID}}})
	now, err := r.Standing(t.Context(), "main")
	if err != nil {
		t.Fatal(err)
	}
	v, err := r.View(t.Context(), "main", now, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		from, to int
		err      error
	}{{0, 4, nil}, {4, 5, nil}, {2, 4, tidemark.ErrInvalid}} {
		if err := r.Fits(t.Context(), v.Shown, []tidemark.Edit{{From: e[row.from].ID, To: e[row.to].ID}}); !errors.Is(err, row.err) || row.err == nil && err != nil {
			t.Errorf("%d to %d: %v", row.from, row.to, err)
		}
	}
	if err := r.Fits(t.Context(), v.Shown, []tidemark.Edit{{From: "nothing", To: e[5].ID}}); !errors.Is(err, tidemark.ErrNotFound) {
		t.Errorf("of what is not there: %v", err)
	}
}

// TestHeavyViews: what is large of a view is asked for before it is read, and the room for it given back; more than a view may
// weigh is refused, and so is what nobody lets in.
func TestHeavyViews(t *testing.T) {
	r := newRig(t)
	held, asked := int64(0), int64(0)
	r.Admit = func(n int64) (func(), bool) {
		held, asked = held+n, n
		return func() { held -= n }, true
	}
	large := strings.Repeat("boathouse ", 150_000)
	e := r.person(large)
	during := int64(0)
	err := r.AsOf(t.Context(), "main", e.Seq, func(v compaction.View) error {
		if during = held; shownOf(v) != large {
			t.Errorf("%d bytes are shown", len(shownOf(v)))
		}
		return errFaulty
	})
	if !errors.Is(err, errFaulty) || during < int64(len(large)) || held != 0 {
		t.Errorf("%v, %d held, %d at the end", err, during, held)
	}
	now, err := r.Standing(t.Context(), "main")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		most int64
		err  error
	}{{asked, nil}, {asked - 1, ErrHeavy}} {
		r.most = c.most
		_, err := r.View(t.Context(), "main", now, nil)
		if kept, bad := r.Kept(t.Context(), "main", now); !errors.Is(err, c.err) || !errors.Is(bad, c.err) || len(kept) != 1 || len(kept[0].Message.Content) != 1 {
			t.Errorf("%d bytes, at most %d: %v, %v, %d kept", asked, c.most, err, bad, len(kept))
		}
	}
	r.most = asked
	if _, err := r.View(t.Context(), "main", now, func(int64) error { return errFaulty }); !errors.Is(err, errFaulty) {
		t.Errorf("who is not let in: %v", err)
	}
	r.Blocks.Blobs = failingGet{r.Blocks.Blobs}
	if _, err := r.View(t.Context(), "main", now, nil); !errors.Is(err, errFaulty) {
		t.Errorf("the bucket fails: %v", err)
	}
}
