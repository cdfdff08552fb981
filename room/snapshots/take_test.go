package snapshots

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/room"
	"github.com/tidemark-ai/tidemark/snapshot"
)

// TestTakeWrites: a snapshot has all that is known of its place, is told of to the agent at once and behind that, and is a row.
func TestTakeWrites(t *testing.T) {
	r := newRig(t)
	agent := &told{}
	r.agent, r.kept = agent, room.State{Version: 3}
	r.open()
	said := r.talks("one", "two")
	r.clock.now = r.clock.now.Add(400 * time.Microsecond)
	n, err := r.room.Take(t.Context(), Options{Name: "a place", Description: "where we were", Tags: []string{"x"}})
	if err != nil {
		t.Fatal(err)
	}
	chain, err := r.log.Chain(t.Context(), r.current())
	if err != nil {
		t.Fatal(err)
	}
	want := snapshot.Node{ID: n.ID, Kind: "snapshot", Of: "session", Name: "a place", Session: string(mine), Description: "where we were", Tags: []string{"x"}, Created: noon.Add(2 * time.Second), Messages: 2, Tokens: 700, Hash: chain}
	if room.JSON(n) != room.JSON(want) || !strings.HasPrefix(n.ID, "snap-") || n.ID != strings.ToLower(n.ID) {
		t.Errorf("node %+v, want %+v", n, want)
	}
	if got := r.lines(`SELECT id || ' ' || root || ' ' || (log = ?) || ' ' || seq || ' ' || parent || ' ' || created || ' ' || state || ' ' || gone FROM snapshots LIMIT 9`, r.current()); got != fmt.Sprintf(`%s %s 1 %d  %d {"version":3} 0`, n.ID, mine, r.seq(said[1]), want.Created.UnixMilli()) {
		t.Errorf("row %s", got)
	}
	if len(agent.nodes) != 1 || agent.nodes[0].ID != n.ID || !slices.Equal(r.did, []string{"tell", "alarm"}) || r.past {
		t.Errorf("told of %+v, did %q, asked for a state of the past: %v", agent.nodes, r.did, r.past)
	}
	if got := r.lines(`SELECT id FROM outbox LIMIT 9`); got != "snapshot:"+n.ID+" "+string(mine)+" snapshot 0s" {
		t.Errorf("outbox %q", got)
	}
	if !slices.Equal(r.weighed, []string{fmt.Sprint(true, " ", r.seq(said[1]), " ", false)}) {
		t.Errorf("weighed %q", r.weighed)
	}
	agent.fail = errDown
	if _, err := r.room.Take(t.Context(), Options{}); err != nil || !slices.Contains(r.did, "warn tell of a snapshot: "+errDown.Error()) {
		t.Errorf("an agent that fails: %v, %q", err, r.did)
	}
}

// TestTakeNames: a snapshot without a name is called as the session is, or by the time where its agent is; its size is what the
// session knows of it, and else what it weighs.
func TestTakeNames(t *testing.T) {
	r := newRig(t)
	said := r.talks("one", "two")
	for _, tc := range []struct {
		name, title string
		context     int
		o           Options
		want        string
	}{
		{"by the time", "", 0, Options{}, "2026-03-10 13.00.02 700"},
		{"by the title", "Harbour: plans", 0, Options{}, "Harbour plans 700"},
		{"by its name", "Harbour: plans", 55, Options{Name: "own"}, "own 55"},
		{"of the past", "", 55, Options{Name: "old", At: said[0]}, "old 700"},
	} {
		r.exec(`UPDATE heads SET title = ?, context = ? WHERE key = ?`, tc.title, tc.context, string(mine))
		if n, err := r.room.Take(t.Context(), tc.o); err != nil || fmt.Sprint(n.Name, " ", n.Tokens) != tc.want || r.past != (tc.o.At != "") {
			t.Errorf("%s: %s %d, %v, want %s; a state of the past: %v", tc.name, n.Name, n.Tokens, err, tc.want, r.past)
		}
	}
}

// TestTakeRefuses: what no snapshot may be called or be of is refused before anything is written, and each failure is told.
func TestTakeRefuses(t *testing.T) {
	r := newRig(t)
	if _, err := r.room.Take(t.Context(), Options{}); !errors.Is(err, tidemark.ErrInvalid) || !strings.Contains(err.Error(), "nothing was said yet") {
		t.Errorf("of nothing: %v", err)
	}
	r.talks("one", "two")
	for name, o := range map[string]Options{"name": {Name: "a/b"}, "description": {Description: "\x00"}, "tags": {Tags: []string{"a b"}}} {
		if _, err := r.room.Take(t.Context(), o); !errors.Is(err, tidemark.ErrInvalid) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := r.on("agent:main:proxy:dm:x").room.Take(t.Context(), Options{}); !errors.Is(err, tidemark.ErrInvalid) {
		t.Errorf("of a client: %v", err)
	}
	if err := (Options{}).check(); err != nil {
		t.Errorf("nothing is said of it: %v", err)
	}
	if untold := r.failsAtEach("take", func(int) error { _, err := r.room.Take(t.Context(), Options{}); return err }); untold > 0 {
		t.Errorf("%d failures are not told", untold)
	}
	if got := r.lines(`SELECT count(*) FROM snapshots LIMIT 1`); got != "1" {
		t.Errorf("%s snapshots, of which one could be taken", got)
	}
	r.exec(`DELETE FROM heads`)
	if _, err := r.room.Take(t.Context(), Options{}); !errors.Is(err, tidemark.ErrNotFound) {
		t.Errorf("of a session that is not there: %v", err)
	}
}

// TestSnapshotOfPlace: which snapshot was taken first at a place of this conversation, whoever else took one there, and what a
// log goes on from.
func TestSnapshotOfPlace(t *testing.T) {
	r := newRig(t)
	said := r.talks("one", "two", "three", "four")
	early := r.take(Options{Name: "early", At: said[1]})
	gone := r.take(Options{Name: "gone"})
	first := r.take(Options{Name: "first"})
	r.take(Options{Name: "second"})
	log := r.current()
	r.exec(`INSERT INTO snapshots(id, root, log, seq, created, node) VALUES('aa-other', 'agent:main:aunt', ?, ?, 1, '{}')`, log, r.seq(said[3]))
	r.exec(`INSERT INTO snapshots(id, root, log, seq, created, node) VALUES('aa-log', ?, 'another', ?, 1, '{}')`, string(mine), r.seq(said[3]))
	if _, err := r.room.Remove(t.Context(), gone.ID); err != nil {
		t.Fatal(err)
	}
	for at, want := range map[int64]string{r.seq(said[1]): early.ID, r.seq(said[3]): first.ID, r.seq(said[0]): ""} {
		if got, err := r.room.taken(t.Context(), log, at); err != nil || got != want {
			t.Errorf("at %d: %q, %v, want %q", at, got, err, want)
		}
	}
	b, made := r.branch(BranchOptions{Snapshot: early.ID, Name: "b"})
	r.branch(BranchOptions{Snapshot: first.ID, Name: "c"})
	r.exec(`INSERT INTO branches(log, key, snapshot, archived, created) VALUES('0', 'agent:main:aunt', 'other', 77, 1), ('zz', 'agent:main:zoe', 'other', 78, 1)`)
	for log, want := range map[string]string{b.current(): early.ID, log: "", "zz": "other"} {
		if got, err := r.room.parentOf(t.Context(), log); err != nil || got != want {
			t.Errorf("%s goes on from %q, %v, want %q", log, got, err, want)
		}
	}
	for log, want := range map[string]int64{b.current(): r.seq(said[1]) - 1, log: 0, "zz": 78} {
		if got, err := r.room.BaseArchived(t.Context(), log); err != nil || got != want {
			t.Errorf("of %s %d are archived, %v, want %d", log, got, err, want)
		}
	}
	if n, err := r.room.branch(t.Context(), b.current()); err != nil || n.ID != string(made.Key) {
		t.Errorf("the branch of a log: %+v, %v", n, err)
	}
	for _, log := range []string{log, "zz", "nowhere"} {
		if _, err := r.room.branch(t.Context(), log); !errors.Is(err, tidemark.ErrNotFound) {
			t.Errorf("the branch of %s: %v", log, err)
		}
	}
	bb := b.take(Options{Name: "in a branch"})
	if bb.Parent != early.ID {
		t.Errorf("its parent is %q", bb.Parent)
	}
}

// TestDamagedSnapshot: a row that cannot be read is told as that, and not as one that is not there.
func TestDamagedSnapshot(t *testing.T) {
	for column, bad := range map[string]string{"node": `{`, "state": `[`} {
		r := newRig(t)
		r.talks("one", "two")
		n := r.take(Options{})
		r.exec(`UPDATE snapshots SET `+column+` = ? WHERE id = ?`, bad, n.ID)
		if _, err := r.room.Node(t.Context(), n.ID); err == nil || errors.Is(err, tidemark.ErrNotFound) {
			t.Errorf("%s: %v", column, err)
		}
		if _, err := r.room.Branch(t.Context(), BranchOptions{Snapshot: n.ID}); err == nil || errors.Is(err, tidemark.ErrNotFound) {
			t.Errorf("a branch of a damaged %s: %v", column, err)
		}
		if _, _, err := r.room.List(t.Context(), "", 0, false); (err == nil) != (column == "state") {
			t.Errorf("listed with a damaged %s: %v", column, err)
		}
	}
}

// TestReport: what the outbox holds reaches an agent that keeps the tree, and is nothing to another one.
func TestReport(t *testing.T) {
	r := newRig(t)
	if err := r.room.Report(t.Context(), []byte(`{"id":"a"}`)); err != nil || r.room.Reports() != "snapshot" {
		t.Errorf("of no tree: %v, kind %s", err, r.room.Reports())
	}
	if err := r.room.Report(t.Context(), []byte(`{`)); !errors.Is(err, tidemark.ErrInvalid) {
		t.Errorf("what cannot be read: %v", err)
	}
	agent := &told{fail: errDown}
	r.agent = agent
	r.open()
	if err := r.room.Report(t.Context(), []byte(`{"id":"a"}`)); !errors.Is(err, errDown) || len(agent.nodes) != 1 || agent.nodes[0].ID != "a" {
		t.Errorf("%v, told of %+v", err, agent.nodes)
	}
}

// TestListPages: a page has as many as were asked for, a hundred where nobody says, and a thousand at most.
func TestListPages(t *testing.T) {
	r := newRig(t)
	r.talks("one", "two")
	first := r.take(Options{Name: "first"})
	const all = 1200
	r.exec(`WITH RECURSIVE i(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM i WHERE n < ?)
		INSERT INTO snapshots(id, root, log, seq, created, node) SELECT printf('snap-%05d', n), root, log, seq, created + n, '{"id":"' || printf('snap-%05d', n) || '"}' FROM i, snapshots WHERE snapshots.id = ?`, all-1, first.ID)
	r.exec(`INSERT INTO snapshots(id, root, log, seq, created, node) VALUES('a', 'agent:main:aunt', 'l', 1, 1, '{"id":"a"}')`)
	for limit, want := range map[int]int{-1: 100, 0: 100, 1: 1, 999: 999, 1000: 1000, 1001: 1000, 5000: 1000} {
		page, next, err := r.room.List(t.Context(), "", limit, false)
		if err != nil || len(page) != want || next == "" || page[0].ID != first.ID {
			t.Errorf("limit %d: %d nodes, next %q, %v, want %d", limit, len(page), next, err, want)
		}
	}
	for _, newest := range []bool{false, true} {
		page, next, err := r.room.List(t.Context(), "", 1000, newest)
		if err != nil {
			t.Fatal(err)
		}
		rest, end, err := r.room.List(t.Context(), next, 200, newest)
		if err != nil || len(rest) != 200 || end != "" {
			t.Errorf("newest %v: the rest are %d, then %q, %v", newest, len(rest), end, err)
		}
		var got []string
		for _, n := range append(page, rest...) {
			got = append(got, n.ID)
		}
		if newest {
			slices.Reverse(got)
		}
		for i, id := range got {
			if want := fmt.Sprintf("snap-%05d", i); i > 0 && id != want {
				t.Fatalf("newest %v: %d is %s, want %s", newest, i, id, want)
			}
		}
	}
	for _, bad := range []string{"x", "5@1", "5@2@x", "5@00@x", "5@@x", "5x@0@x", "@0@x"} {
		if _, _, err := r.room.List(t.Context(), bad, 5, false); !errors.Is(err, tidemark.ErrInvalid) {
			t.Errorf("cursor %q: %v", bad, err)
		}
	}
}

// TestFits: how many snapshots and branches a conversation may have, all of its own and none of another's, and what a person
// who is not its owner reads of it.
func TestFits(t *testing.T) {
	r := newRig(t)
	if err := r.room.fits(t.Context(), 0, 1); err != nil {
		t.Errorf("where no table is there yet: %v", err)
	}
	r.talks("one", "two")
	n := r.take(Options{})
	r.branch(BranchOptions{Snapshot: n.ID, Name: "b"})
	if _, err := r.room.Remove(t.Context(), r.take(Options{}).ID); err != nil {
		t.Fatal(err)
	}
	r.exec(`INSERT INTO snapshots(id, root, log, seq, created, node) VALUES('a', 'agent:main:aunt', 'l', 1, 1, '{}'), ('z', 'agent:main:zoe', 'l', 1, 1, '{}')`)
	r.exec(`INSERT INTO branches(log, key, snapshot, created, node) VALUES('a', 'agent:main:aunt#b', 'a', 1, '{}'), ('z', 'agent:main:zoe#b', 'z', 1, '{}'), ('i', ?, 'z', 1, '')`, string(mine)+"#i")
	for _, tc := range []struct {
		most, made int
		says       string
	}{{3, 1, ""}, {4, 2, ""}, {2, 0, ""}, {2, 1, "this conversation has 2 snapshots and branches, and only its owner may take more"}, {3, 2, "has 2 snapshots"}} {
		err := r.room.fits(t.Context(), tc.most, tc.made)
		if tc.says == "" && err != nil || tc.says != "" && (!errors.Is(err, tidemark.ErrTooLarge) || !strings.Contains(err.Error(), tc.says)) {
			t.Errorf("%d more of at most %d: %v", tc.made, tc.most, err)
		}
	}
	if err := r.room.fits(t.Context(), MaxNodes, MaxNodes-1); !errors.Is(err, tidemark.ErrTooLarge) || !strings.Contains(err.Error(), "remove a snapshot that no branch was made of") {
		t.Errorf("of the owner: %v", err)
	}
}
