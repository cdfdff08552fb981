package session_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/room/search"
	"github.com/tidemark-ai/tidemark/room/snapshots"
	"github.com/tidemark-ai/tidemark/session"
	"github.com/tidemark-ai/tidemark/snapshot"
)

// on opens another session of the same database, as the host does for a key.
func (h *harness) on(key tidemark.Key) *harness {
	h.t.Helper()
	o := *h
	o.key, o.Session = key, nil
	o.open()
	return &o
}

func (h *harness) snap(o snapshots.Options) snapshot.Node {
	h.t.Helper()
	n, err := h.Snapshot(h.t.Context(), o)
	if err != nil {
		h.t.Fatal(err)
	}
	return n
}

// nodes lists all snapshots and branches, through pages of a few.
func (h *harness) nodes() ([]snapshot.Node, error) {
	h.t.Helper()
	var all []snapshot.Node
	for cursor := ""; ; {
		page, next, err := h.Snapshots(h.t.Context(), cursor, 7, false)
		if all = append(all, page...); err != nil || next == "" {
			return all, err
		}
		if cursor = next; len(page) != 7 {
			h.t.Fatalf("a page of %d that is not the last", len(page))
		}
	}
}

// branch makes a branch and opens it.
func (h *harness) branch(o snapshots.BranchOptions) (*harness, snapshots.Branch) {
	h.t.Helper()
	b, err := h.Branch(h.t.Context(), o)
	if err != nil {
		h.t.Fatal(err)
	}
	return h.on(b.Key), b
}

// shows is the view as text, one message a line.
func (h *harness) shows() string {
	h.t.Helper()
	var b strings.Builder
	for _, m := range h.sent() {
		b.Write(m.AppendJSON(nil))
		b.WriteByte('\n')
	}
	return b.String()
}

// TestBranchSharesAndParts: a branch shows what its source showed, copies nothing, and neither sees the other from
// then on.
func TestBranchSharesAndParts(t *testing.T) {
	h := newHarness(t, session.Settings{})
	for i := range 4 {
		h.say(fmt.Sprintf("question %d about zebra%d", i, i))
	}
	before := h.shows()
	rows := h.count(`SELECT count(*) FROM entries LIMIT 1`)
	n := h.snap(snapshots.Options{Name: "Four questions", Tags: []string{"a"}})
	if n.Messages != 8 || n.Hash == "" || n.Session != string(h.key) || n.Tokens == 0 || n.Parent != "" {
		t.Errorf("node %+v", n)
	}
	left, b := h.branch(snapshots.BranchOptions{Snapshot: n.ID})
	right, c := h.branch(snapshots.BranchOptions{Snapshot: n.ID})
	if b.Key != h.key+"#four-questions" || c.Key != h.key+"#four-questions-2" || b.Node.Parent != n.ID {
		t.Errorf("keys %s and %s, parent %s", b.Key, c.Key, b.Node.Parent)
	}
	if got := h.count(`SELECT count(*) FROM entries LIMIT 1`); got != rows {
		t.Errorf("%d entries, %d before", got, rows)
	}
	for _, x := range []*harness{left, right} {
		if got := x.shows(); got != before {
			t.Errorf("a branch shows\n%s\nits source\n%s", got, before)
		}
	}
	left.say("the leftword lives here")
	right.say("the rightword lives here")
	h.say("the sourceword lives here")
	for _, tc := range []struct {
		h    *harness
		word string
	}{{left, "leftword"}, {right, "rightword"}, {h, "sourceword"}} {
		for _, word := range []string{"leftword", "rightword", "sourceword"} {
			own := word == tc.word
			if got := strings.Contains(tc.h.shows(), word); got != own {
				t.Errorf("%s: the view has %s: %v", tc.h.key, word, got)
			}
			found, err := tc.h.Recall(t.Context(), search.Wanted{Query: word})
			if err != nil {
				t.Fatal(err)
			}
			said := slices.ContainsFunc(found.Results, func(r search.Recollection) bool { return strings.Contains(r.Text, word) })
			if said != own {
				t.Errorf("%s: recall finds %s: %v", tc.h.key, word, said)
			}
			for _, r := range found.Results {
				for _, id := range r.Neighbours {
					e, err := tc.h.Reader.Entry(t.Context(), id)
					if err != nil {
						t.Fatal(err)
					}
					if !own && strings.Contains(string(e.Payload), word) {
						t.Errorf("%s: a neighbour has %s", tc.h.key, word)
					}
				}
			}
			hits, err := tc.h.Search(t.Context(), word, 10)
			if err != nil || len(hits) > 0 != own {
				t.Errorf("%s: search finds %s: %v, %v", tc.h.key, word, hits, err)
			}
			if got := strings.Contains(strings.Join(tc.h.originals(), "\n"), word); got != own {
				t.Errorf("%s: the log has %s: %v", tc.h.key, word, got)
			}
		}
		found, err := tc.h.Recall(t.Context(), search.Wanted{Query: "zebra2"})
		if err != nil || len(found.Results) == 0 || !strings.Contains(found.Results[0].Text, "zebra2") {
			t.Errorf("%s: what all have is not found: %+v, %v", tc.h.key, found.Results, err)
		}
	}
}

// TestOrientation stands first, also when what follows it is compacted twice, and is gone when it is undone.
func TestOrientation(t *testing.T) {
	h := newHarness(t, small)
	for i := range 3 {
		h.say(filler(i))
	}
	n := h.snap(snapshots.Options{Name: "base"})
	b, made := h.branch(snapshots.BranchOptions{Snapshot: n.ID, Name: "way", Orientation: "You are in the branch of ways."})
	first := func(x *harness) string { return x.sent()[0].Content[0].Text }
	if first(b) != "You are in the branch of ways." {
		t.Errorf("first: %q", first(b))
	}
	for i := 0; i < 60 && len(b.events("compaction")) < 3; i++ {
		b.say(filler(10 + i))
	}
	if len(b.events("compaction")) < 2 {
		t.Fatalf("%d compactions", len(b.events("compaction")))
	}
	if first(b) != "You are in the branch of ways." || strings.Count(b.shows(), "branch of ways") != 1 {
		t.Errorf("after compactions: %q\n%s", first(b), b.shows())
	}
	c, _ := b.branch(snapshots.BranchOptions{Orientation: "And here deeper."})
	if got := c.sent()[0]; got.Content[0].Text != "And here deeper." || got.Content[1].Text != "You are in the branch of ways." {
		t.Errorf("deeper: %v", got)
	}
	entries, err := b.Reader.Acts(t.Context(), 0, 1000)
	if err != nil {
		t.Fatal(err)
	}
	lead := entries[len(entries)-1]
	for _, e := range entries {
		if strings.Contains(string(e.Payload), `"by":["`+compaction.OrientationName+`"]`) {
			lead = e
		}
	}
	if changed, err := b.Undo(t.Context(), lead.ID); err != nil || !changed || first(b) == "You are in the branch of ways." {
		t.Errorf("undone: %v, %v, %q", changed, err, first(b))
	}
	if first(c) != "And here deeper." || !strings.Contains(c.shows(), "branch of ways") {
		t.Error("an undo reached a branch that was made before")
	}
	if made.Node.Messages != 6 {
		t.Errorf("messages %d", made.Node.Messages)
	}
}

// TestBranchNames: a name that is taken is refused, one that is not asked for is made free.
func TestBranchNames(t *testing.T) {
	h := newHarness(t, session.Settings{})
	h.say("hello")
	n := h.snap(snapshots.Options{Name: "数据库"})
	for _, tc := range []struct {
		name string
		want tidemark.Key
		err  error
	}{
		{"Redis Caching", "agent:main:main#redis-caching", nil},
		{"redis caching", "", tidemark.ErrConflict},
		{"", "agent:main:main#branch", nil},
		{"数据", "agent:main:main#branch-2", nil},
		{"a/b", "", tidemark.ErrInvalid},
		{strings.Repeat("x", 101), "", tidemark.ErrInvalid},
	} {
		b, err := h.Branch(t.Context(), snapshots.BranchOptions{Snapshot: n.ID, Name: tc.name})
		if b.Key != tc.want || !errors.Is(err, tc.err) {
			t.Errorf("%q: %s, %v", tc.name, b.Key, err)
		}
	}
	long := h.snap(snapshots.Options{Name: strings.Repeat("x", snapshot.MaxName)})
	for range 3 {
		if b, err := h.Branch(t.Context(), snapshots.BranchOptions{Snapshot: long.ID}); err != nil || b.Node.Check() != nil {
			t.Errorf("of a long name: %v, %v", err, b.Node.Check())
		}
	}
	if _, err := h.Branch(t.Context(), snapshots.BranchOptions{Snapshot: "snap-none"}); !errors.Is(err, tidemark.ErrNotFound) {
		t.Error(err)
	}
	if _, err := h.Branch(t.Context(), snapshots.BranchOptions{Threshold: -1}); !errors.Is(err, tidemark.ErrInvalid) {
		t.Error(err)
	}
}

// TestBranchCrowd: branches without a name, or with one that no key can have, that are made at once all get a key.
func TestBranchCrowd(t *testing.T) {
	for _, name := range []string{"", "日本語"} {
		t.Run(name, func(t *testing.T) { crowd(t, name) })
	}
}

func crowd(t *testing.T, name string) {
	h := newHarness(t, session.Settings{})
	h.say("hello")
	n := h.snap(snapshots.Options{Name: "base"})
	made := make(chan string)
	const many = 24
	for range many {
		go func() {
			b, err := h.Branch(context.Background(), snapshots.BranchOptions{Snapshot: n.ID, Name: name})
			if err == nil {
				err = b.Node.Check()
			}
			if name != "" && b.Node.Name != name {
				err = errors.Join(err, fmt.Errorf("it is called %q", b.Node.Name))
			}
			made <- fmt.Sprint(b.Key, err)
		}()
	}
	var all []string
	for range many {
		all = append(all, <-made)
	}
	slices.Sort(all)
	if len(slices.Compact(slices.Clone(all))) != many || slices.ContainsFunc(all, func(s string) bool { return !strings.HasSuffix(s, "<nil>") }) {
		t.Errorf("%q", all)
	}
}

// TestDeepBranches: twenty branches of branches show all that was said on the way, and a hundred of one snapshot cost
// rows of themselves alone.
func TestDeepBranches(t *testing.T) {
	h := newHarness(t, session.Settings{})
	h.say("word0")
	at := h
	for i := 1; i <= 20; i++ {
		next, b := at.branch(snapshots.BranchOptions{Name: fmt.Sprint("level ", i)})
		if b.Snapshot.Session != string(at.key) {
			t.Fatalf("snapshot of %s, in %s", b.Snapshot.Session, at.key)
		}
		at.say(fmt.Sprint("late", i)) // not for the next
		next.say(fmt.Sprint("word", i))
		at = next
	}
	shown := at.shows()
	for i := range 21 {
		if !strings.Contains(shown, fmt.Sprint("word", i)) || strings.Contains(shown, fmt.Sprint("late", i)) {
			t.Errorf("level %d is not right in\n%s", i, shown)
		}
		found, err := at.Recall(t.Context(), search.Wanted{Query: fmt.Sprint("word", i)})
		if err != nil || len(found.Results) == 0 || !strings.Contains(found.Results[0].Text, fmt.Sprint("word", i)) {
			t.Errorf("level %d: found %+v, %v", i, found.Results, err)
		}
		if found, err = at.Recall(t.Context(), search.Wanted{Query: fmt.Sprint("late", i)}); err != nil || slices.ContainsFunc(found.Results, func(r search.Recollection) bool { return strings.Contains(r.Text, "late") }) {
			t.Errorf("level %d: what was said later is found: %+v, %v", i, found.Results, err)
		}
	}
	nodes, err := at.nodes()
	if err != nil || len(nodes) != 40 {
		t.Fatalf("%d nodes, %v", len(nodes), err)
	}
	tree := snapshot.Grow(nodes)
	deepest := 0
	for _, r := range tree.Rows {
		deepest = max(deepest, r.Depth)
	}
	if len(tree.Rows) != 40 || deepest != 20 {
		t.Errorf("%d rows, depth %d", len(tree.Rows), deepest)
	}
	rows := h.count(`SELECT count(*) FROM entries LIMIT 1`)
	n := at.snap(snapshots.Options{Name: "many"})
	for range 100 {
		if _, err := h.Branch(t.Context(), snapshots.BranchOptions{Snapshot: n.ID}); err != nil {
			t.Fatal(err)
		}
	}
	if got := h.count(`SELECT count(*) FROM entries LIMIT 1`); got != rows {
		t.Errorf("a hundred branches made %d entries", got-rows)
	}
}
