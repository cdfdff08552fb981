package session_test

import (
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/room/snapshots"
	"github.com/tidemark-ai/tidemark/session"
)

// newest is the last message of a session.
func (h *harness) newest() tidemark.EntryID {
	h.t.Helper()
	var id tidemark.EntryID
	for e, err := range h.Reader.All(h.t.Context(), false) {
		if err != nil {
			h.t.Fatal(err)
		}
		id = e.ID
	}
	return id
}

// reads has the model of a session open a message by its id.
func (h *harness) reads(id tidemark.EntryID) string {
	h.t.Helper()
	var out strings.Builder
	for _, b := range h.recalled(`{"entry":"` + string(id) + `"}`) {
		for _, c := range b.Content {
			out.WriteString(c.Text)
		}
	}
	return out.String()
}

// TestLineageByID: a branch opens by id what it continues, and not what its base, or a base's base, said since.
func TestLineageByID(t *testing.T) {
	h := newHarness(t, session.Settings{})
	h.model.set(func(_ int, req tidemark.Request) (tidemark.Message, error) {
		return tidemark.NewText(tidemark.Assistant, "I say "+req.Messages[len(req.Messages)-1].PlainText()), nil
	})
	h.say("firstword")
	before := h.newest()
	mid, _ := h.branch(snapshots.BranchOptions{Of: snapshots.Options{Name: "a"}, Name: "mid"})
	mid.say("midword")
	midBefore := mid.newest()
	leaf, _ := mid.branch(snapshots.BranchOptions{Of: snapshots.Options{Name: "b"}, Name: "leaf"})
	h.say("latebase")
	mid.say("latemid")
	since, midSince := h.newest(), mid.newest()
	leaf.say("leafword")
	own := leaf.newest()
	for _, tc := range []struct {
		name string
		h    *harness
		id   tidemark.EntryID
		word string
		may  bool
	}{
		{"the base's base before", leaf, before, "firstword", true},
		{"the base before", leaf, midBefore, "midword", true},
		{"its own", leaf, own, "leafword", true},
		{"the base's base since", leaf, since, "latebase", false},
		{"the base since", leaf, midSince, "latemid", false},
		{"the middle: the base since", mid, since, "latebase", false},
		{"the middle: its branch", mid, own, "leafword", false},
		{"the root: a branch", h, midBefore, "midword", false},
	} {
		if got := tc.h.reads(tc.id); strings.Contains(got, tc.word) != tc.may {
			t.Errorf("%s: reads %q", tc.name, got)
		}
	}
}
