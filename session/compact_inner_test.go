package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/archive"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/summary"
)

// TestCannotCompact: a compaction that did not happen ends a turn only where the call cannot be made without it, or where
// somebody waits for it.
func TestCannotCompact(t *testing.T) {
	r := newRig(t, Settings{})
	modes := []fitMode{fitAuto, fitForced, fitManual, fitAgain}
	for _, lost := range []error{tidemark.ErrConflict, tidemark.ErrDead, context.Canceled, tidemark.ErrAborted} {
		for _, mode := range modes {
			if got := r.cannot(View{}, mode, fmt.Errorf("step: %w", lost)); !errors.Is(got, lost) || errors.Is(got, tidemark.ErrOverflow) {
				t.Errorf("%s, %v: %v", mode, lost, got)
			}
		}
	}
	for _, failed := range []error{errFaulty, tidemark.ErrNoGain} {
		for _, mode := range modes {
			got, ends := r.cannot(View{}, mode, failed), mode == fitForced || mode == fitManual
			if errors.Is(got, failed) != ends || errors.Is(got, tidemark.ErrOverflow) != (mode == fitForced) || !ends && got != nil {
				t.Errorf("%s, %v: %v", mode, failed, got)
			}
		}
	}
}

// TestWhereSpansEnd: a plan takes out what stands up to the end of its last span, whatever it replaces of single blocks.
func TestWhereSpansEnd(t *testing.T) {
	items := []compaction.Item{{To: "a", Last: 1}, {To: "b", Last: 2}, {To: "b", Last: 3}, {To: "c", Last: 5}, {To: "d", Last: 4}}
	for _, row := range []struct {
		name  string
		edits []tidemark.Edit
		want  int64
	}{
		{"none", nil, 0},
		{"a span that stands for several", []tidemark.Edit{{To: "b"}}, 3},
		{"two spans", []tidemark.Edit{{To: "c"}, {To: "a"}}, 5},
		{"whatever stands behind it", []tidemark.Edit{{To: "d"}}, 4},
		{"a block", []tidemark.Edit{{From: "c", To: "c", Block: 1}}, 0},
		{"a span and a block", []tidemark.Edit{{From: "c", To: "c", Block: 1}, {To: "a"}}, 1},
		{"what is not in view", []tidemark.Edit{{To: "z"}}, 0},
	} {
		if got := lastOf(items, row.edits); got != row.want {
			t.Errorf("%s: %d, want %d", row.name, got, row.want)
		}
	}
}

// TestTooLargeIsSaid: that nothing can leave is explained by the newest message where that alone takes more than may be sent.
func TestTooLargeIsSaid(t *testing.T) {
	r := newRig(t, Settings{Window: 8000, Reserve: 4000, Keep: 1000})
	v := spoken(saidBy(tidemark.FromPerson, "a paste"))
	v.Items[0].Tokens = r.Budget().Room()
	for _, row := range []struct {
		more tidemark.Tokens
		err  error
		said bool
	}{{0, tidemark.ErrNoGain, false}, {1, tidemark.ErrNoGain, true}, {1, errFaulty, false}} {
		v.Items[0].Tokens = r.Budget().Room() + row.more
		got, large := r.tooLarge(v, row.err), tooLargeError{}
		if said := errors.As(got, &large); said != row.said || !errors.Is(got, row.err) || said && large != (tooLargeError{7001, 4000}) {
			t.Errorf("%d more, %v: %v", row.more, row.err, got)
		}
	}
	if got := (tooLargeError{7001, 4000}).Error(); got != "the newest message alone takes about 7001 tokens, and 4000 may be sent" {
		t.Error(got)
	}
}

// underEdit is a view of which an edit covers some: with words that were inserted, a summary, what stays, and spans.
func underEdit() (View, tidemark.Edit) {
	summary := tidemark.NewText(tidemark.User, compaction.SummaryMarker+" of more")
	v := spoken(
		compaction.Item{ID: "x", From: "x", To: "x", Seq: 1, Last: 1},
		compaction.Item{ID: "o0", From: "a", Overlay: "o0", Seq: 2, Last: 2},
		compaction.Item{ID: "a", From: "a", To: "a", Seq: 2, Last: 2},
		compaction.Item{ID: "o1", From: "s1", To: "s2", Overlay: "o1", Edit: 1, Seq: 3, Last: 5, Message: summary},
		compaction.Item{ID: "k", From: "k", To: "k", Seq: 6, Last: 6},
		compaction.Item{ID: "o3", From: "m1", To: "m2", Overlay: "o3", Seq: 7, Last: 8},
		compaction.Item{ID: "o4", From: "b1", To: "z", Overlay: "o4", Seq: 9, Last: 10},
		compaction.Item{ID: "o4", From: "b1", To: "z", Overlay: "o4", Seq: 9, Last: 10},
		compaction.Item{ID: "y", From: "y", To: "y", Seq: 11, Last: 11},
	)
	for _, x := range []struct {
		overlay tidemark.EntryID
		n       int
		text    string
	}{{"o1", 0, "another edit"}, {"o1", 1, "the right one"}, {"o2", 1, "another overlay"}, {"o3", 0, "no summary"}} {
		v.Shown = append(v.Shown, compaction.Replacement{Placed: compaction.Placed{Overlay: x.overlay, N: x.n}, Edit: tidemark.Edit{Data: []byte(mustJSON(compaction.Digest{Text: x.text}))}})
	}
	v.Shown = append(v.Shown, compaction.Replacement{Placed: compaction.Placed{Overlay: "o1", N: 1}}) // says nothing
	return v, tidemark.Edit{From: "a", To: "z", Keep: []tidemark.EntryID{"k"}}
}

// TestCoveredByAnEdit: a summary is made of what its span covers, but of no former summary, whose digest is given apart, of
// nothing that stays and of nothing that was inserted.
func TestCoveredByAnEdit(t *testing.T) {
	r := newRig(t, Settings{})
	v, edit := underEdit()
	items, prev := r.covered(v, edit)
	var got []tidemark.EntryID
	for _, it := range items {
		got = append(got, it.ID)
	}
	if !slices.Equal(got, []tidemark.EntryID{"a", "o3", "o4", "o4"}) || prev.Text != "the right one" {
		t.Errorf("%q, upon %q", got, prev.Text)
	}
	if items, prev := r.covered(v, tidemark.Edit{From: "y", To: "y"}); len(items) != 1 || items[0].ID != "y" || prev.Text != "" {
		t.Errorf("%+v, upon %q", items, prev.Text)
	}
	for _, row := range []struct {
		edits []tidemark.Edit
		want  int
	}{{nil, 0}, {[]tidemark.Edit{edit}, 1}, {[]tidemark.Edit{{From: "y", To: "y"}, {From: "a", Block: 1}, edit}, 2}} {
		if n := r.leaving(v, row.edits); n != row.want {
			t.Errorf("%d messages leave by %+v, want %d", n, row.edits, row.want)
		}
	}
}

// partRows are the parts of all logs.
const partRows = `SELECT log, first, last, key, json_extract(CASE info WHEN '' THEN '{}' ELSE info END, '$.messageCount') FROM parts ORDER BY log, first LIMIT 99`

// archived are the texts of an archive.
func (r *rig) archived(key string) string {
	r.t.Helper()
	var out []string
	for l, err := range archive.Read(r.t.Context(), r.bucket, key) {
		if err != nil {
			r.t.Fatal(err)
		}
		out = append(out, l.Message.PlainText())
	}
	return strings.Join(out, " ")
}

// TestPartsFollow: what leaves the view is archived once, each part behind the one before, under a name of its own though the
// clock stands still; one that was begun is finished first, and one without messages is none. The parts of others stay.
func TestPartsFollow(t *testing.T) {
	r, ctx := newRig(t, Settings{}), t.Context()
	log := r.current()
	r.exec(`INSERT INTO parts(log, first, last, key, info) VALUES('0-aunt', 1, 9, 'theirs', ''), ('zoe', 7, 9, 'hers', '')`)
	say := func(text string) int64 { return r.person(text).Seq }
	put := func(last int64, want int64, messages int, at time.Time) archive.Info {
		t.Helper()
		i, err := r.parts.Put(ctx, log, last)
		if err != nil || i.Part != want || i.Messages != messages || !i.At.Equal(at) || i.Key != archive.PartKey("main", log, at) || i.SessionKey != r.Key || i.Session != log || i.Agent != "main" {
			t.Errorf("%+v, %v, want part %d of %d at %s", i, err, want, messages, at)
		}
		return i
	}
	noon := r.clock.Now()
	say("one")
	second, _, fourth := say("two"), say("three"), say("four")
	a := put(second, 1, 2, noon)
	for last := range second + 1 { // it stands in a part already
		if i, err := r.parts.Put(ctx, log, last); err != nil || i.Key != a.Key {
			t.Errorf("again to %d: %+v, %v", last, i, err)
		}
	}
	b := put(fourth, 2, 2, noon.Add(time.Millisecond))
	r.clock.passes(time.Hour)
	fifth := say("five")
	c := put(fifth, 3, 1, noon.Add(time.Hour))
	if got := []string{r.archived(a.Key), r.archived(b.Key), r.archived(c.Key)}; !slices.Equal(got, []string{"one two", "three four", "five"}) {
		t.Errorf("the archives have %q", got)
	}
	r.reads(fmt.Sprint("archive:", a.Key, " archive; archive:", b.Key, " archive; archive:", c.Key, " archive"), `SELECT id, kind FROM outbox ORDER BY id LIMIT 9`)

	sixth := say("six")
	at := noon.Add(2 * time.Hour)
	begun := archive.PartKey("main", log, at)
	r.exec(`INSERT INTO parts(log, first, last, key, info) VALUES(?, ?, ?, ?, '')`, log, fifth+1, sixth+5, begun)
	put(sixth, 4, 1, at)
	parts := fmt.Sprint("0-aunt 1 9 theirs ; ", log, " 1 ", second, " ", a.Key, " 2; ", log, " ", second+1, " ", fourth, " ", b.Key, " 2; ", log, " ", fifth, " ", fifth, " ", c.Key, " 1; ",
		log, " ", sixth, " ", sixth, " ", begun, " 1; zoe 7 9 hers ")
	r.reads(parts, partRows)
	r.runs(r.eventStmt(log, tidemark.Event{Type: "notice"}))
	if i, err := r.parts.Put(ctx, log, sixth+1); err != nil || i.Key != "" {
		t.Errorf("of no messages: %+v, %v", i, err)
	}
	r.reads(parts, partRows)
}

// TestPartOfAnotherLife: a part that another life finishes at the same moment stays as that one has it.
func TestPartOfAnotherLife(t *testing.T) {
	r := newRig(t, Settings{})
	log, last := r.current(), r.person("one").Seq
	r.bucket.Fail = func(op, _ string) error {
		if op == "put" {
			r.exec(`UPDATE parts SET info = '{"messageCount":7}' WHERE log = ?`, log)
		}
		return nil
	}
	if _, err := r.parts.Put(t.Context(), log, last); !errors.Is(err, tidemark.ErrConflict) || !strings.Contains(err.Error(), "record part") {
		t.Errorf("%v", err)
	}
	r.reads("7", `SELECT json_extract(info, '$.messageCount') FROM parts LIMIT 9`)
	r.reads("0", `SELECT count(*) FROM outbox LIMIT 1`)
	for _, refused := range []string{"AND info = '' LIMIT", "info <> ''", "INSERT INTO parts"} {
		r.faulty.refuses(refused)
		if i, err := r.parts.Put(t.Context(), log, last+1); !errors.Is(err, errFaulty) || i.Key != "" {
			t.Errorf("without %q: %+v, %v", refused, i, err)
		}
	}
}

// TestDroppedPlan: a plan that is not carried out is dropped with what it cost, by who has the run; there may be none.
func TestDroppedPlan(t *testing.T) {
	r := newRig(t, Settings{})
	x := r.working(stateCalling)
	if err := r.dropPlan(t.Context(), x, nil); err != nil {
		t.Error(err)
	}
	p := &plan{Draft: summary.Draft{ID: "p", Log: x.Log, Usage: tidemark.Usage{Input: 5, Output: 2}}, Act: compaction.Act{Summarize: -1}}
	q := &plan{Draft: summary.Draft{ID: "q", Log: "log"}, Act: p.Act}
	r.runs(p.insertStmt(r.Key), q.insertStmt("agent:main:aunt"))
	if err := r.dropPlan(t.Context(), &run{ID: x.ID, Log: x.Log, State: stateCalling, owner: "another"}, p); !errors.Is(err, tidemark.ErrConflict) || !strings.Contains(err.Error(), "drop plan p") {
		t.Errorf("by who has not the run: %v", err)
	}
	if err := r.dropPlan(t.Context(), x, p); err != nil {
		t.Error(err)
	}
	r.reads("p dropped; q open", `SELECT id, state FROM plans ORDER BY id LIMIT 9`)
	r.reads("7", `SELECT spent FROM runs WHERE key = ? LIMIT 1`, string(r.Key))
	r.reads("5 2", `SELECT json_extract(usage, '$.input_tokens'), json_extract(usage, '$.output_tokens') FROM heads WHERE key = ? LIMIT 1`, string(r.Key))
}

// TestPlanGoesOn: a plan that was put off is the one of now while nothing came since, and what came since makes another, which
// goes on behind the chunks that are paid.
func TestPlanGoesOn(t *testing.T) {
	r := newRig(t, Settings{Window: 6000, Reserve: 1500, Keep: 1200})
	talk := func() View {
		t.Helper()
		r.person("We decided on oak for the door." + strings.Repeat(" and on more of it", 100))
		r.model("ok")
		v, err := r.View(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	v := talk()
	for range 8 {
		v = talk()
	}
	x, list := r.working(stateCalling), []compaction.Strategy{compaction.Summary{}}
	plan := func(v View, old *plan) *plan {
		t.Helper()
		p, err := r.plan(t.Context(), x, v, fitAuto, "", list, old)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	first := plan(v, nil)
	if first.Reason != "threshold" || first.Size != v.Size || first.ChunkSize != 1500 || first.Tier != tierFull || first.Last == 0 || first.At != r.clock.Now() || first.Chunk != 0 {
		t.Errorf("%+v", first)
	}
	first.Chunk, first.Rolling, first.Owed, first.Why = 1, "so far", true, "why"
	if same := plan(v, first); same != first {
		t.Errorf("made anew: %+v", same)
	}
	next := plan(talk(), first)
	if next == first || next.Chunk != 1 || next.Rolling != "so far" || !next.Owed || next.Why != "why" || next.Last <= first.Last {
		t.Errorf("%+v", next)
	}
	r.reads("dropped 0; open 1", `SELECT state, chunk FROM plans ORDER BY state LIMIT 9`)
}
