package session_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/room/snapshots"
	"github.com/tidemark-ai/tidemark/room/task"
	"github.com/tidemark-ai/tidemark/session"
	"github.com/tidemark-ai/tidemark/snapshot"
)

func logged(t *testing.T, h *harness, all bool) []string {
	t.Helper()
	var out []string
	for e, err := range h.Reader.All(t.Context(), all) {
		if err != nil {
			t.Fatal(err)
		}
		m, err := e.Message()
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, string(m.Role)+": "+m.PlainText())
	}
	return out
}

// fills says so many things that fill the context.
func (h *harness) fills(from, n int) {
	for i := range n {
		h.say(filler(from + i))
	}
}

// TestBranchArchives: whichever of the two compacts when, the whole archive of each is its history, each message once.
func TestBranchArchives(t *testing.T) {
	h := newHarness(t, small)
	compact := session.Input{Kind: session.InputCompact}
	h.fills(0, 6)
	h.post(compact) // a part that the branch has, too
	h.say(filler(6))
	b, made := h.branch(snapshots.BranchOptions{Name: "b"})
	before := b.shows()
	h.fills(20, 5)
	h.post(compact) // a part over the place where the branch begins
	if got := b.shows(); got != before {
		t.Error("a compaction of the source changed the branch")
	}
	late, _ := h.branch(snapshots.BranchOptions{Snapshot: made.Snapshot.ID, Name: "late"}) // from before that part
	late.fills(80, 5)
	late.post(compact)
	source := h.shows()
	b.fills(40, 6)
	b.post(compact)
	if h.shows() != source {
		t.Error("a compaction of the branch changed the source")
	}
	b2, _ := b.branch(snapshots.BranchOptions{Name: "b2"})
	b.say(filler(50))
	b.post(compact)
	b2.fills(60, 5)
	b2.post(compact)
	for _, x := range []*harness{b2, b, late, h} {
		if len(x.events("compaction")) == 0 {
			t.Fatalf("%s was not compacted", x.key)
		}
		want := logged(t, x, false)
		logs, err := x.Reader.Logs(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		others := map[*harness]string{}
		for _, o := range []*harness{h, b, b2, late} {
			if o != x && len(logged(t, o, false)) > 0 {
				others[o] = o.shows()
			}
		}
		x.post(session.Input{Kind: session.InputReset, Text: "manual"})
		found := false
		for _, key := range x.keys("agents/main/sessions/" + logs[0]) {
			if strings.Contains(key, "-part") {
				continue
			}
			found = true
			if got := x.archived(key); !slices.Equal(got, want) {
				t.Errorf("%s: the archive has %d messages, the history %d", x.key, len(got), len(want))
			}
		}
		if !found {
			t.Errorf("%s: no archive", x.key)
		}
		for o, was := range others {
			if o.shows() != was {
				t.Errorf("a reset of %s changed %s", x.key, o.key)
			}
		}
		if rest := logged(t, x, false); len(rest) != 0 {
			t.Errorf("%s has %d messages after its reset", x.key, len(rest))
		}
		if all := logged(t, x, true); !slices.Equal(all, want) {
			t.Errorf("%s: all of it are %d messages, want %d", x.key, len(all), len(want))
		}
		x.say("anew")
		if n, err := x.Snapshot(t.Context(), snapshots.Options{}); err != nil || n.Parent != "" || n.Messages != 2 {
			t.Errorf("%s: a snapshot after its reset: %+v, %v", x.key, n, err)
		}
	}
}

// TestSnapshotPlaces: a snapshot at an earlier message is the view of then, one between a call and its result is refused
// with the nearest place, and one in a running turn ends before its calls.
func TestSnapshotPlaces(t *testing.T) {
	h := newHarness(t, small)
	h.say("first of all")
	early := h.shows()
	var during snapshot.Node
	var failed error
	h.model.set(func(n int, req tidemark.Request) (tidemark.Message, error) {
		last := req.Messages[len(req.Messages)-1]
		if !asksSummary(req) && len(last.Results()) == 0 && strings.Contains(last.PlainText(), "look") {
			return tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{tidemark.ToolUse(fmt.Sprint("c", n), "look", nil)}}, nil
		}
		return tidemark.Message{}, nil
	})
	h.agent.call = func(b tidemark.Block) tidemark.Block {
		during, failed = h.Snapshot(context.Background(), snapshots.Options{Name: "during"})
		return tidemark.ToolResult(b.ID, "seen", false)
	}
	h.say("now look")
	if failed != nil || during.Messages != 3 {
		t.Errorf("in a turn: %+v, %v", during, failed)
	}
	b, _ := h.branch(snapshots.BranchOptions{Snapshot: during.ID})
	if got := logged(t, b, false); len(got) != 3 || got[2] != "user: now look" {
		t.Errorf("its branch has %q", got)
	}
	for i := range 8 {
		h.say(filler(i))
	}
	h.post(session.Input{Kind: session.InputCompact})
	var entries []tidemark.Entry
	for e, err := range h.Reader.All(t.Context(), false) {
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, e)
	}
	then := h.snap(snapshots.Options{At: entries[1].ID})
	x, _ := h.branch(snapshots.BranchOptions{Snapshot: then.ID})
	if x.shows() != early || then.Messages != 2 {
		t.Errorf("as of then %+v:\n%s\nwant\n%s", then, x.shows(), early)
	}
	_, err := h.Snapshot(t.Context(), snapshots.Options{At: entries[3].ID}) // the call
	if err == nil || !strings.Contains(err.Error(), string(entries[2].ID)) {
		t.Errorf("between call and result: %v", err)
	}
	h.say("behind the branch")
	for e, err := range h.Reader.All(t.Context(), false) {
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, e)
	}
	if n, err := x.Snapshot(t.Context(), snapshots.Options{At: entries[len(entries)-1].ID}); !errors.Is(err, tidemark.ErrNotFound) {
		t.Errorf("in a branch, at what its base said later: %+v, %v", n, err)
	}
	if n, err := x.Snapshot(t.Context(), snapshots.Options{At: entries[1].ID}); err != nil || n.Messages != 2 {
		t.Errorf("in a branch, at what its base said before: %+v, %v", n, err)
	}
	if _, err := h.Snapshot(t.Context(), snapshots.Options{At: "01ARZ3NDEKTSV4RRFFQ69G5FAV"}); err == nil {
		t.Error("at an unknown message")
	}
	if _, err := newHarness(t, small).Snapshot(t.Context(), snapshots.Options{}); err == nil {
		t.Error("of an empty session")
	}
}

// TestBranchKeepsTask: the card and the pins of the source are the branch's from the snapshot on, and each has its own.
func TestBranchKeepsTask(t *testing.T) {
	h := newHarness(t, session.Settings{})
	h.say("the port is 80")
	entries, err := h.Reader.Entries(t.Context(), 0, 10)
	if err != nil {
		t.Fatal(err)
	}
	owner := tidemark.Origin{From: tidemark.FromPerson, Owner: true}
	change := func(x *harness, text string, pin ...tidemark.EntryID) {
		t.Helper()
		if _, err := x.ChangeTask(t.Context(), task.Change{Add: []task.Added{{Kind: task.Constraint, Text: text}}, Pin: pin}, owner); err != nil {
			t.Fatal(err)
		}
	}
	card := func(x *harness) string {
		t.Helper()
		v, err := x.Task(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("%+v", v)
	}
	change(h, "ask me first", entries[0].ID)
	n := h.snap(snapshots.Options{})
	change(h, "later in the source")
	b, _ := h.branch(snapshots.BranchOptions{Snapshot: n.ID})
	change(b, "only in the branch")
	for x, words := range map[*harness][3]bool{h: {true, true, false}, b: {true, false, true}} {
		for i, w := range []string{"ask me first", "later in the source", "only in the branch"} {
			if strings.Contains(card(x), w) != words[i] {
				t.Errorf("%s: %q: want %v in %s", x.key, w, words[i], card(x))
			}
		}
	}
	if !strings.Contains(card(b), string(entries[0].ID)) {
		t.Errorf("the pin is not in the branch: %s", card(b))
	}
}

// TestBranchEpisodes: the episodes of what a branch continues are its own, up to where it began.
func TestBranchEpisodes(t *testing.T) {
	d := newScribe(t, session.Settings{Window: 40_000}, 20_000)
	d.work("expl one", "look 200", "end of one")
	b, _ := d.harness.branch(snapshots.BranchOptions{Name: "b"})
	found, err := b.divided().Overview(t.Context())
	own := episodesOf(t, d.Session)
	if err != nil || len(own.Episodes) == 0 || asJSON(t, found.Episodes) != asJSON(t, own.Episodes) {
		t.Errorf("%+v, want %+v, %v", found, own, err)
	}
}

// telling is an agent that keeps the tree.
type telling struct {
	*fakeAgent
	hold  chan struct{} // if set, it answers when that is closed
	nodes map[string]bool
}

func (a *telling) Snapshots(_ context.Context, nodes []snapshot.Node) error {
	if a.hold != nil {
		<-a.hold
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, n := range nodes {
		a.nodes[n.ID] = true
	}
	return a.fail
}

func (a *telling) heard(id string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.nodes[id]
}

// TestTreeIsTold: the agent has heard of each snapshot and each branch when its maker has it, however seldom the directory
// is told; one that does not answer holds nobody up, and hears of them later.
func TestTreeIsTold(t *testing.T) {
	for _, slow := range []bool{false, true} {
		h, c := newTimed(t, session.Settings{ReportEvery: time.Hour}, noon)
		h.say("hello")
		h.idle()
		h.stop()
		told := &telling{fakeAgent: h.agent, nodes: map[string]bool{}}
		if slow {
			told.hold = make(chan struct{})
		} else { // it answers before the time is up
			c.waits = 2 * time.Second
		}
		s, err := session.Open(t.Context(), session.Config{Key: h.key, DB: h.db, Blobs: h.blobs, Provider: h.model, Agent: told, Runtime: h.rt,
			Settings: session.Settings{Model: "test", ReportEvery: time.Hour}, Strategies: []compaction.Strategy{compaction.Summary{}}, Rooms: h.rooms()})
		if err != nil {
			t.Fatal(err)
		}
		r := roomOf[*snapshots.Room](t, s)
		n, err := r.Take(t.Context(), snapshots.Options{})
		if err != nil || told.heard(n.ID) == slow {
			t.Errorf("slow %v: told of the snapshot: %v, %v", slow, told.heard(n.ID), err)
		}
		b, err := r.Branch(t.Context(), snapshots.BranchOptions{Name: "b"})
		if err != nil || told.heard(b.Snapshot.ID) == slow || told.heard(string(b.Key)) == slow {
			t.Errorf("slow %v: told of the branch: %v, %v", slow, told.heard(string(b.Key)), err)
		}
		if slow {
			close(told.hold)
		}
		h.idle()
		for _, id := range []string{n.ID, b.Snapshot.ID, string(b.Key)} {
			if !told.heard(id) {
				t.Errorf("slow %v: never told of %s", slow, id)
			}
		}
		if left := h.count(`SELECT count(*) FROM outbox WHERE key LIKE ? LIMIT 1`, string(h.key)+"%"); left != 0 {
			t.Errorf("slow %v: %d items left", slow, left)
		}
	}
}
