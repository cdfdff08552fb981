package snapshots

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/snapshot"
)

// TestAnswer: who may take a snapshot by a word, and who a branch; what they read of it.
func TestAnswer(t *testing.T) {
	const own, guests = mine, tidemark.Key("agent:main:fake:dm:ann")
	for _, tc := range []struct {
		name  string
		key   tidemark.Key
		word  string
		owner bool
		want  string // "": not theirs
	}{
		{"a snapshot of the owner's", own, "snapshot", true, "Snapshot: way, with 2 messages (snap-"},
		{"by another there", own, "snapshot", false, ""},
		{"a snapshot of a guest's", guests, "snapshot", false, "Snapshot: way, with 2 messages (snap-"},
		{"by the owner there", guests, "snapshot", true, "Snapshot: way, with 2 messages (snap-"},
		{"a branch of the owner's", own, "branch", true, "Branch: agent:main:main#way, from 2 messages; it is open under that key"},
		{"a branch by another there", own, "branch", false, ""},
		{"a branch of a guest's", guests, "branch", false, ""},
		{"a branch by the owner there", guests, "branch", true, ""},
	} {
		r := newRig(t).on(tc.key)
		r.talks("one", "two")
		got, err := r.room.Answer(t.Context(), asked(tc.word, "way", tc.owner, ""))
		if tc.want == "" && !errors.Is(err, tidemark.ErrForbidden) || tc.want != "" && (err != nil || !strings.HasPrefix(got, tc.want)) {
			t.Errorf("%s: %q, %v, want %q", tc.name, got, err, tc.want)
		}
		if tc.word == "branch" && tc.want != "" && r.trimmed == "" {
			t.Errorf("%s: it is not trimmed", tc.name)
		}
	}
}

// TestAnswerTwice: a command that is carried out again, as after a crash, takes what it took, and nothing more.
func TestAnswerTwice(t *testing.T) {
	r := newRig(t)
	r.talks("one", "two")
	for _, word := range []string{"snapshot", "branch"} {
		first, err := r.room.Answer(t.Context(), asked(word, "way", true, word))
		if err != nil {
			t.Fatal(err)
		}
		r.talks("three", "four")
		r.exec(`INSERT INTO branches(log, key, snapshot, created, node) SELECT '0' || key || snapshot, 'agent:main:aunt#x', snapshot, 1, '{"session":"agent:main:aunt#x"}' FROM branches LIMIT 1`)
		r.exec(`INSERT INTO branches(log, key, snapshot, created, node) SELECT '1' || key || snapshot, ?, snapshot, 2, '' FROM branches WHERE key = ?`, string(mine)+"#a", string(mine)+"#way")
		r.exec(`INSERT INTO branches(log, key, snapshot, created, node) SELECT '2' || key || snapshot, ?, 'another', 3, '{"session":"agent:main:main#b"}' FROM branches WHERE key = ?`, string(mine)+"#b", string(mine)+"#way")
		if again, err := r.room.Answer(t.Context(), asked(word, "way", true, word)); err != nil || again != first {
			t.Errorf("%s: %q, %v, and %q before", word, again, err, first)
		}
		if other, err := r.room.Answer(t.Context(), asked(word, "other", true, "")); err != nil || other == first {
			t.Errorf("another %s: %q, %v", word, other, err)
		}
	}
	if got := r.lines(`SELECT count(*) FROM snapshots LIMIT 1`); got != "4" {
		t.Errorf("%s snapshots, want one of each command", got)
	}
	if got := r.lines(`SELECT key FROM heads WHERE key LIKE 'agent:main:main#%' ORDER BY key LIMIT 9`); got != "agent:main:main#other\nagent:main:main#way" {
		t.Errorf("branches %q", got)
	}
}

// TestAnswerMade: what a person can mend is an answer, and all else a failure.
func TestAnswerMade(t *testing.T) {
	for err, told := range map[error]bool{tidemark.ErrInvalid: true, tidemark.ErrConflict: true, tidemark.ErrTooLarge: true, tidemark.ErrBusy: true, tidemark.ErrNotFound: false, errDown: false} {
		err = fmt.Errorf("why: %w", err)
		got, failed := notMade("Nothing", err)
		if told && (failed != nil || got != "Nothing: "+err.Error()) || !told && (got != "" || !errors.Is(failed, err)) {
			t.Errorf("%v: %q, %v", err, got, failed)
		}
	}
	r := newRig(t)
	for word, want := range map[string]string{"snapshot": "No snapshot was taken: ", "branch": "No branch was made: "} {
		if got, err := r.room.Answer(t.Context(), asked(word, "", true, "")); err != nil || !strings.HasPrefix(got, want) || !strings.Contains(got, "nothing was said yet") {
			t.Errorf("%s of nothing: %q, %v", word, got, err)
		}
	}
	if got := r.room.Answers(); len(got) != 2 || got[0] != "snapshot" || got[1] != "branch" {
		t.Errorf("it answers %q", got)
	}
}

// TestAnswerBound: a guest takes no more than so many, the owner does.
func TestAnswerBound(t *testing.T) {
	r := newRig(t).on("agent:main:fake:dm:ann")
	r.talks("one", "two")
	n := r.take(Options{})
	r.exec(`WITH RECURSIVE i(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM i WHERE n < ?) INSERT INTO snapshots(id, root, log, seq, created, node) SELECT 'snap-' || n, root, log, seq, created, node FROM i, snapshots WHERE snapshots.id = ?`, GuestNodes-2, n.ID)
	for i, want := range []string{"Snapshot: ", "No snapshot was taken: "} {
		if got, err := r.room.Answer(t.Context(), asked("snapshot", "", false, "")); err != nil || !strings.HasPrefix(got, want) {
			t.Errorf("the guest's %d: %q, %v", i, got, err)
		}
	}
	if got, err := r.room.Answer(t.Context(), asked("snapshot", "", true, "")); err != nil || !strings.HasPrefix(got, "Snapshot: ") {
		t.Errorf("the owner's: %q, %v", got, err)
	}
}

// TestRemoveOfOne: what is removed is one snapshot of one conversation; what another made of one by the same id does not hold it,
// and is not touched.
func TestRemoveOfOne(t *testing.T) {
	r := newRig(t)
	agent := &told{}
	r.agent = agent
	r.open()
	r.talks("one", "two")
	n, held, kept := r.take(Options{Name: "goes"}), r.take(Options{Name: "held"}), r.take(Options{Name: "stays"})
	b, _ := r.branch(BranchOptions{Snapshot: held.ID, Name: "b"})
	r.exec(`INSERT INTO snapshots(id, root, log, seq, created, node) SELECT id, 'agent:main:aunt', log, seq, created, node FROM snapshots WHERE id = ?`, n.ID)
	r.exec(`INSERT INTO branches(log, key, snapshot, created, node) VALUES('x', 'agent:main:aunt', ?, 1, ''), ('y', 'agent:main:aunt#b', ?, 1, '{}'), ('z', 'agent:main:zoe#b', ?, 1, '{}')`, n.ID, n.ID, n.ID)
	r.did = nil
	got, err := b.room.Remove(t.Context(), n.ID)
	if err != nil || got.ID != n.ID || got.Gone {
		t.Fatalf("%+v, %v", got, err)
	}
	if last := agent.nodes[len(agent.nodes)-1]; last.ID != n.ID || !last.Gone || len(b.did) != 2 {
		t.Errorf("told of %+v, and did %q", last, b.did)
	}
	if got := r.lines(`SELECT id FROM outbox WHERE id LIKE 'snapshot-gone:%' AND payload LIKE '%"gone":true%' LIMIT 9`); got != "snapshot-gone:"+n.ID+" "+string(mine)+" snapshot 0s" {
		t.Errorf("outbox %q", got)
	}
	if got := r.lines(`SELECT root || ' ' || (node ->> 'name') FROM snapshots WHERE gone = 0 ORDER BY 1 LIMIT 9`); got != "agent:main:aunt goes\nagent:main:main held\nagent:main:main stays" {
		t.Errorf("there are\n%s", got)
	}
	if _, err := r.room.Remove(t.Context(), held.ID); !errors.Is(err, tidemark.ErrConflict) || !strings.Contains(err.Error(), "agent:main:main#b began at it") {
		t.Errorf("what a branch began at: %v", err)
	}
	r.exec(`INSERT INTO branches(log, key, snapshot, created) VALUES('q', ?, ?, 1)`, string(mine), kept.ID)
	if _, err := r.room.Remove(t.Context(), kept.ID); !errors.Is(err, tidemark.ErrConflict) || !strings.Contains(err.Error(), "agent:main:main began at it") {
		t.Errorf("what the session itself goes on from: %v", err)
	}
	if _, err := r.on("agent:main:proxy:dm:x").room.Remove(t.Context(), kept.ID); !errors.Is(err, tidemark.ErrInvalid) {
		t.Errorf("of a client: %v", err)
	}
	more := r.take(Options{Name: "more"})
	r.store.part, r.store.refuse = "UPDATE snapshots SET gone = 1", tidemark.ErrConflict
	if _, err := r.room.Remove(t.Context(), more.ID); !errors.Is(err, tidemark.ErrConflict) || !strings.Contains(err.Error(), "a session began at it just now") {
		t.Errorf("beside a branch: %v", err)
	}
	r.store.part = ""
	if untold := r.failsAtEach("remove", func(int) error { _, err := r.room.Remove(t.Context(), more.ID); return err }); untold > 0 {
		t.Errorf("%d failures are not told", untold)
	}
}

// TestNodes: one is asked for by its id, a branch by its key, and what another conversation has by neither.
func TestNodes(t *testing.T) {
	r := newRig(t)
	r.talks("one", "two")
	n := r.take(Options{Name: "ours"})
	r.branch(BranchOptions{Snapshot: n.ID, Name: "a"})
	_, b := r.branch(BranchOptions{Snapshot: n.ID, Name: "b"})
	r.exec(`INSERT INTO snapshots(id, root, log, seq, created, node) VALUES('theirs', 'agent:main:aunt', 'l', 1, 1, '{"id":"theirs"}')`)
	r.exec(`INSERT INTO branches(log, key, snapshot, created, node) VALUES('x', 'agent:main:aunt#b', 'theirs', 1, '{"id":"x"}'), ('y', ?, 'theirs', 1, '')`, string(mine)+"#import")
	for id, want := range map[string]string{n.ID: "ours", string(b.Key): "b"} {
		if got, err := r.room.Node(t.Context(), id); err != nil || got.Name != want {
			t.Errorf("%s: %+v, %v", id, got, err)
		}
	}
	for _, id := range []string{"theirs", "agent:main:aunt#b", string(mine), string(mine) + "#import", string(mine) + "#c", ""} {
		if got, err := r.room.Node(t.Context(), id); !errors.Is(err, tidemark.ErrNotFound) || got.ID != (snapshot.Node{}).ID {
			t.Errorf("%q: %+v, %v", id, got, err)
		}
	}
}
