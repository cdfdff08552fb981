package history

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/room"
)

// TestEntriesPages: the entries of a session and what was done to it are read in pages, the newest first, without those of
// others; nothing stands before the first, and a branch has what was done to what it continues before it began.
func TestEntriesPages(t *testing.T) {
	r := newRig(t)
	first := r.person("one").Seq                                             // 1
	r.opened("agent:main:aunt", host.Info{ID: "aunt"}).person("of the aunt") // 2
	r.acts(tidemark.KindEvent, tidemark.Event{Type: "notice"})               // 3
	r.person("two")                                                          // 4
	r.acts(tidemark.KindOverlay, tidemark.Overlay{By: []string{"x"}})        // 5
	r.acts(tidemark.KindEvent, tidemark.Event{Type: "notice"})               // 6
	if first != 1 {
		t.Fatalf("the first stands at %d", first)
	}
	for _, row := range []struct {
		before  int64
		limit   int
		entries string
		acts    string
	}{
		{0, 9, "6 5 4 3 1", "6 5 3"}, {-1, 9, "6 5 4 3 1", "6 5 3"}, {0, 2, "6 5", "6 5"}, {6, 9, "5 4 3 1", "5 3"}, {5, 9, "4 3 1", "3"}, {5, 1, "4", "3"},
		{3, 9, "1", ""}, {2, 9, "1", ""}, {1, 9, "", ""},
	} {
		entries, err := r.Entries(t.Context(), row.before, row.limit)
		acts, bad := r.Acts(t.Context(), row.before, row.limit)
		if err != nil || bad != nil || seqs(entries) != row.entries || seqs(acts) != row.acts {
			t.Errorf("%d before %d: %q, acts %q, %v, %v", row.limit, row.before, seqs(entries), seqs(acts), err, bad)
		}
	}
	if acts, err := r.Acts(t.Context(), 5, 0); err != nil || len(acts) != 0 {
		t.Errorf("none are wanted, and %q come, %v", seqs(acts), err)
	}
	// A branch begins at the overlay, and has an act of its own.
	side := r.opened("agent:main:main#side", host.Info{ID: "side", BaseLog: "main", BaseSeq: 5})
	side.acts(tidemark.KindEvent, tidemark.Event{Type: "notice"}) // 7
	for _, row := range []struct {
		before int64
		limit  int
		acts   string
	}{{0, 9, "7 5 3"}, {0, 1, "7"}, {0, 2, "7 5"}, {7, 9, "5 3"}, {5, 9, "3"}, {3, 9, ""}} {
		if acts, err := side.Acts(t.Context(), row.before, row.limit); err != nil || seqs(acts) != row.acts {
			t.Errorf("of the branch %d before %d: %q, %v", row.limit, row.before, seqs(acts), err)
		}
	}
}

// TestEntryIsOurs: an entry is read by the conversation and its branches, whole, and by nobody else but who continues it.
func TestEntryIsOurs(t *testing.T) {
	r := newRig(t)
	aunt, side := r.opened("agent:main:aunt", host.Info{ID: "aunt"}), r.opened("agent:main:main#side", host.Info{ID: "side"})
	large := strings.Repeat("a large text ", 30_000)
	e := r.person(large)
	if got, err := r.Entry(t.Context(), e.ID); err != nil || string(got.Payload) != string(tidemark.NewText(tidemark.User, large).AppendJSON(nil)) || len(e.Payload) > 1000 {
		t.Errorf("%d bytes of %d, %v", len(got.Payload), len(e.Payload), err)
	}
	odd := tidemark.Event{Type: "notice", Text: "tidemark_blob"}
	r.acts(tidemark.KindEvent, odd)
	acts, err := r.Acts(t.Context(), 0, 1)
	if err != nil || len(acts) != 1 {
		t.Fatal(acts, err)
	}
	if got, err := r.Entry(t.Context(), acts[0].ID); err != nil || string(got.Payload) != room.JSON(odd) {
		t.Errorf("an event: %s, %v", got.Payload, err)
	}
	branched := side.person("of a branch")
	if got, err := r.Entry(t.Context(), branched.ID); err != nil || got.ID != branched.ID {
		t.Errorf("that of a branch: %v, %v", got, err)
	}
	before := aunt.person("of the aunt")
	behind := aunt.person("of the aunt, later")
	for _, id := range []tidemark.EntryID{before.ID, behind.ID, "nothing"} {
		if got, err := r.Entry(t.Context(), id); !errors.Is(err, tidemark.ErrNotFound) || got.Payload != nil {
			t.Errorf("%s: %+v, %v", id, got, err)
		}
		if _, err := r.Message(t.Context(), id); !errors.Is(err, tidemark.ErrNotFound) {
			t.Errorf("the message %s: %v", id, err)
		}
	}
	if _, err := r.Message(t.Context(), acts[0].ID); !errors.Is(err, tidemark.ErrNotFound) {
		t.Errorf("an event as a message: %v", err)
	}
	r.begins(host.Info{ID: "goes on", BaseLog: before.Log, BaseSeq: before.Seq})
	r.Lineage.Forget()
	if got, err := r.Entry(t.Context(), before.ID); err != nil || got.ID != before.ID {
		t.Errorf("what it continues: %+v, %v", got, err)
	}
	if _, err := r.Entry(t.Context(), behind.ID); !errors.Is(err, tidemark.ErrNotFound) {
		t.Errorf("what came there behind its beginning: %v", err)
	}
}

// TestHistoryOfResets: the history is that of the present session, or of all before it, and whoever breaks off is given no more.
func TestHistoryOfResets(t *testing.T) {
	r := newRig(t)
	r.person("one")
	r.person("two")
	r.begins(host.Info{ID: "new", Previous: "main"})
	r.person("three")
	if got, err := r.Logs(t.Context()); err != nil || !slices.Equal(got, []string{"new", "main"}) {
		t.Errorf("logs %q, %v", got, err)
	}
	for _, row := range []struct {
		all  bool
		most int
		want string
	}{{false, 9, "three"}, {true, 9, "one two three"}, {true, 1, "one"}, {true, 3, "one two three"}} {
		var got []string
		for e, err := range r.All(t.Context(), row.all) {
			if err != nil {
				t.Fatal(err)
			}
			m, err := e.Message()
			if err != nil {
				t.Fatal(err)
			}
			if got = append(got, m.PlainText()); len(got) == row.most {
				break
			}
		}
		if g := strings.Join(got, " "); g != row.want {
			t.Errorf("all %v, %d: %q, want %q", row.all, row.most, g, row.want)
		}
	}
	for _, refused := range []string{"current", "tokens, skel", "call, hash"} {
		r.db.text = refused
		failed := 0
		for e, err := range r.All(t.Context(), true) {
			if failed++; !errors.Is(err, errFaulty) || e.ID != "" {
				t.Errorf("without %q: %+v, %v", refused, e, err)
			}
		}
		if failed != 1 {
			t.Errorf("without %q it fails %d times", refused, failed)
		}
	}
}

// TestManyActs: however many acts are read at once, the newest come first.
func TestManyActs(t *testing.T) {
	r := newRig(t)
	var want []string
	for range 20 {
		r.acts(tidemark.KindEvent, tidemark.Event{Type: "notice"})
		want = append([]string{fmt.Sprint(len(want) + 1)}, want...)
	}
	if acts, err := r.Acts(t.Context(), 0, 100); err != nil || seqs(acts) != strings.Join(want, " ") {
		t.Errorf("%q, %v", seqs(acts), err)
	}
}

// TestHistoryBrokenOff: who waits no more for a long history is told so.
func TestHistoryBrokenOff(t *testing.T) {
	r := newRig(t)
	for range 2 {
		r.person(strings.Repeat("a large text ", 30_000))
	}
	gone := errors.New("nobody waits")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	var got []string
	for e, err := range r.All(ctx, false) {
		got = append(got, fmt.Sprint(e.Seq, " ", err))
		cancel(gone)
	}
	if !slices.Equal(got, []string{"1 <nil>", "0 nobody waits"}) {
		t.Errorf("%q", got)
	}
}
