package session_test

import (
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/paging"
	"github.com/tidemark-ai/tidemark/session"
)

// TestPagingTurnedOn: what paging puts out of a history that it finds, as behind an import, counts as what left, so
// that the faults never are more.
func TestPagingTurnedOn(t *testing.T) {
	d := newDesk(t, session.Settings{Window: 16_000, Reserve: 1500, Keep: 1500}, &compaction.Paging{Tau: 400})
	d.reads(0, 14)
	d.again(&compaction.Paging{})
	d.say("hello")
	record := func() paging.Account {
		t.Helper()
		calls, err := d.Anatomies(t.Context(), 0, 1)
		if err != nil || len(calls) == 0 || calls[0].Paging == nil {
			t.Fatalf("%+v, %v", calls, err)
		}
		return *calls[0].Paging
	}
	first, out := record(), stubs(d.request(-1))
	if len(out) == 0 || first.Evicted != len(out) || first.Totals.Evicted != len(out) {
		t.Fatalf("%d are out, the record says %+v", len(out), first)
	}
	for _, stub := range out {
		d.say("recall " + handleIn(t, stub))
	}
	if sum := record().Totals; sum.Faults == 0 || sum.Faults > sum.Evicted {
		t.Errorf("%+v: want faults of what left", sum)
	}
	for _, e := range d.events("paging") {
		if before, after, ok := strings.Cut(e, " → "); !ok || !shrinks(before, after) {
			t.Errorf("event %q says that it grew", e)
		}
	}
}

// shrinks compares the last number of one text with the first of another.
func shrinks(before, after string) bool {
	a := before[strings.LastIndexByte(before, ' ')+1:]
	b, _, _ := strings.Cut(after, " ")
	return len(b) < len(a) || len(b) == len(a) && b < a
}

// TestPagingLeavesTheRest: an act of paging has no part in how long a summariser that failed is left alone.
func TestPagingLeavesTheRest(t *testing.T) {
	d := newDesk(t, session.Settings{Window: 20_000, Reserve: 4000, Keep: 1500}, &compaction.Paging{})
	d.stop()
	d.strategies = []compaction.Strategy{&compaction.Paging{}, compaction.Pointer{}}
	d.open()
	d.say("hello")
	until := d.rt.Now().Add(14 * time.Minute).UnixMilli()
	d.exec(`UPDATE heads SET cooldown = ?, failures = 3 WHERE key = ?`, until, string(d.key))
	for range 3 {
		d.say("note " + strings.Repeat("word ", 3300))
	}
	d.reads(0, 8)
	if len(d.events("paging")) == 0 {
		t.Fatal("nothing was paged out")
	}
	if got := d.number(`SELECT cooldown FROM heads WHERE key = 'agent:main:main'`); got != until {
		t.Errorf("the rest ends %d s later than it did", (got-until)/1000)
	}
}

// TestRecallOfNoBlock: a handle that names nothing is told as that, and is no search.
func TestRecallOfNoBlock(t *testing.T) {
	d := newDesk(t, paged, &compaction.Paging{})
	d.reads(0, 10)
	id, _, _ := strings.Cut(handleIn(t, stubs(d.request(-1))["call_001"]), "#")
	for handle, want := range map[string]string{id + "#99": "it has 1 blocks, counted from 0", "nope#0": "not found", "../x#1": "not found"} {
		d.say("recall " + handle)
		last := d.request(-1)
		got := last.Messages[len(last.Messages)-1].Content[0]
		if !got.IsError || !strings.Contains(got.Content[0].Text, want) || strings.Contains(got.Content[0].Text, "query") {
			t.Errorf("%s: %s", handle, got.Content[0].Text)
		}
	}
	if got := d.request(-1).Messages; tidemark.Check(got) != nil {
		t.Error("the request cannot be sent")
	}
}

// TestReleaseSaysWhatItDoes: what the tool calls known leaves, and nothing else does.
func TestReleaseSaysWhatItDoes(t *testing.T) {
	d := newDesk(t, session.Settings{Window: 18_000, Reserve: 1500, Keep: 1500}, &compaction.Paging{Tau: 400})
	d.reads(0, 9)
	_, list, _ := strings.Cut(d.request(-1).Note, "Largest, by handle:\n- ")
	handle, _, ok := strings.Cut(list, " ")
	if !ok {
		t.Fatalf("note %q", d.request(-1).Note)
	}
	var typed string
	v, err := d.View(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, it := range v.Items {
		if it.Source == tidemark.FromPerson {
			typed = string(it.ID)
		}
	}
	answers := func(args string) []tidemark.Block {
		d.say("release " + args)
		last := d.request(-1)
		return last.Messages[len(last.Messages)-1].Content
	}
	for _, b := range answers("call_001,call_002," + typed) { // calls have no handle here, and what a person typed stays
		if !b.IsError || !strings.Contains(b.Content[0].Text, "Not known here") {
			t.Errorf("%s", b.Content[0].Text)
		}
	}
	d.reads(20, 1)
	if out := stubs(d.request(-1)); len(out) != 0 {
		t.Errorf("out after what was not known: %q", out)
	}
	if got := answers(handle)[0]; got.IsError || !strings.Contains(got.Content[0].Text, "Released") {
		t.Errorf("%s", got.Content[0].Text)
	}
	d.reads(30, 1)
	if out := stubs(d.request(-1)); len(out) != 1 {
		t.Errorf("out after the release: %q", out)
	}
}
