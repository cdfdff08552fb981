package session_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/room/snapshots"
	"github.com/tidemark-ai/tidemark/session"
)

// TestMerge: the outcome of a branch is a note at the end of its source, once, and what came there since is another.
func TestMerge(t *testing.T) {
	h := newHarness(t, session.Settings{})
	h.say("what shall we do?")
	n := h.snap(snapshots.Options{Name: "plan"})
	b, made := h.branch(snapshots.BranchOptions{Snapshot: n.ID, Name: "redis way"})
	if _, err := h.Merge(t.Context(), snapshots.MergeOptions{From: made.Key}); !errors.Is(err, tidemark.ErrInvalid) {
		t.Errorf("nothing was said: %v", err)
	}
	reply := b.say("try it")
	facts := len(h.agent.remembered())
	m, err := h.Merge(t.Context(), snapshots.MergeOptions{From: made.Key})
	if err != nil {
		t.Fatal(err)
	}
	want := `[Outcome of branch "redis way" (from snapshot "plan", 2 messages): ` + reply + `]`
	if m.Text != want || m.Again || !strings.Contains(h.shows(), reply) {
		t.Errorf("note %+v, want %s", m, want)
	}
	again, err := h.Merge(t.Context(), snapshots.MergeOptions{From: made.Key})
	if err != nil || !again.Again || again.Entry != m.Entry {
		t.Errorf("again: %+v, %v", again, err)
	}
	e, err := h.Reader.Entry(t.Context(), m.Entry)
	if err != nil || e.Origin.From != tidemark.FromSystem || e.Origin.Channel != "branch" || e.Origin.Input != "" {
		t.Errorf("origin %+v, %v", e.Origin, err)
	}
	if got := h.count(`SELECT count(*) FROM runs WHERE key = ? AND state IN ('calling', 'tools') LIMIT 1`, string(h.key)); got != 0 || len(h.agent.remembered()) != facts {
		t.Error("a note began a turn or made a memory")
	}
	b.say("and more")
	if next, err := h.Merge(t.Context(), snapshots.MergeOptions{From: made.Key}); err != nil || next.Again || next.Entry == m.Entry {
		t.Errorf("next: %+v, %v", next, err)
	}
	if own, err := h.Merge(t.Context(), snapshots.MergeOptions{From: made.Key, Note: "own words"}); err != nil || !strings.Contains(own.Text, "own words") {
		t.Errorf("own: %+v, %v", own, err)
	}
	h.say("go on")
	h.sent()
	for _, tc := range []struct {
		from tidemark.Key
		err  error
	}{{h.key, tidemark.ErrInvalid}, {"agent:main:local:dm:x#b", tidemark.ErrInvalid}, {h.key + "#none", tidemark.ErrNotFound}, {"", tidemark.ErrInvalid}} {
		if _, err := h.Merge(t.Context(), snapshots.MergeOptions{From: tc.from}); !errors.Is(err, tc.err) {
			t.Errorf("%q: %v", tc.from, err)
		}
	}
}

// TestCompare: where two branches part, and what each has for itself.
func TestCompare(t *testing.T) {
	h := newHarness(t, session.Settings{})
	h.say("one")
	h.say("two")
	n := h.snap(snapshots.Options{Name: "both"})
	a, x := h.branch(snapshots.BranchOptions{Snapshot: n.ID, Name: "a"})
	b, y := h.branch(snapshots.BranchOptions{Snapshot: n.ID, Name: "b"})
	h.model.set(func(_ int, req tidemark.Request) (tidemark.Message, error) {
		last := req.Messages[len(req.Messages)-1]
		if len(last.Results()) == 0 && strings.Contains(last.PlainText(), "look") {
			return tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{tidemark.ToolUse("t1", "look", []byte(`{"path":"/src/x.go"}`))}}, nil
		}
		return tidemark.NewText(tidemark.Assistant, "came to "+last.PlainText()), nil
	})
	a.say("look at it")
	b.say("think of it")
	b.say("think again")
	c, err := a.Compare(t.Context(), string(x.Key), string(y.Key))
	if err != nil {
		t.Fatal(err)
	}
	if c.Common.Messages != 4 || c.Common.Snapshot != n.ID || c.Common.Entry == "" {
		t.Errorf("common %+v", c.Common)
	}
	if c.A.Since != 4 || c.B.Since != 4 || c.A.Messages != 8 || len(c.A.Tools) != 1 || c.A.Tools[0].Name != "look" || len(c.A.Files) != 1 || c.A.Files[0] != "/src/x.go" {
		t.Errorf("a %+v", c.A)
	}
	if p := c.A.Previews; len(p) != 4 || p[1].Text != "[calls look]" || p[2].From != tidemark.FromTool || p[2].Text == "" || strings.Contains(p[2].Text, "[result]") {
		t.Errorf("what a tool answered is not told as such: %+v", p)
	}
	if c.B.Outcome != "came to think again" || len(c.B.Previews) != 4 || c.B.Previews[0].Text != "think of it" || len(c.B.Tools) != 0 {
		t.Errorf("b %+v", c.B)
	}
	if c, err = h.Compare(t.Context(), n.ID, string(y.Key)); err != nil || c.A.Since != 0 || c.B.Since != 4 || c.A.Node == nil || c.A.Node.ID != n.ID {
		t.Errorf("snapshot: %+v, %v", c, err)
	}
	if c, err = h.Compare(t.Context(), string(h.key), string(h.key)); err != nil || c.A.Since != 0 || c.Common.Messages != 4 {
		t.Errorf("itself: %+v, %v", c, err)
	}
	if _, err := h.Compare(t.Context(), string(h.key), "agent:main:local:dm:other"); !errors.Is(err, tidemark.ErrInvalid) {
		t.Error(err)
	}
	if _, err := h.Compare(t.Context(), string(h.key), "snap-unknown"); err == nil {
		t.Error("an unknown snapshot is compared")
	}
}
