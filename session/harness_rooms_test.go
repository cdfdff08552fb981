package session_test

import (
	"context"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/recall"
	"github.com/tidemark-ai/tidemark/room/approvals"
	"github.com/tidemark-ai/tidemark/room/search"
	"github.com/tidemark-ai/tidemark/room/snapshots"
	"github.com/tidemark-ai/tidemark/room/task"
	"github.com/tidemark-ai/tidemark/session"
)

// Task is what the conversation works on.
func (h *harness) Task(ctx context.Context) (task.View, error) { return h.card().View(ctx) }

// ChangeTask changes it.
func (h *harness) ChangeTask(ctx context.Context, ch task.Change, o tidemark.Origin) (task.View, error) {
	return h.card().Change(ctx, ch, o)
}

// Recall, Search and Answer are of the room that finds.
func (h *harness) Recall(ctx context.Context, w search.Wanted) (search.Recalled, error) {
	return findIn(h.t, h.Session).Recall(ctx, w)
}

func (h *harness) Search(ctx context.Context, query string, limit int) ([]search.Found, error) {
	return findIn(h.t, h.Session).Search(ctx, query, limit)
}

func (h *harness) Answer(ctx context.Context, ask recall.Ask) (recall.Answer, error) {
	return findIn(h.t, h.Session).Answer(ctx, ask)
}

// NoteRecall tells how a recall went.
func (h *harness) NoteRecall(ctx context.Context, by string, found search.Recalled) {
	findIn(h.t, h.Session).Note(ctx, by, found)
}

func findIn(t testing.TB, s *session.Session) *search.Room {
	t.Helper()
	r, ok := session.Room[*search.Room](s)
	if !ok {
		t.Fatal("the session has no room that finds")
	}
	return r
}

// Approvals, Decide and Relay are of the room that asks the owner.
func (h *harness) Approvals(ctx context.Context) ([]tidemark.Question, error) {
	return h.asks().Waiting(ctx)
}

// Decide decides.
func (h *harness) Decide(ctx context.Context, d tidemark.Decision) error {
	return h.asks().Decide(ctx, d)
}

// Relay asks for another conversation.
func (h *harness) Relay(ctx context.Context, q tidemark.Question) error {
	return h.asks().Relay(ctx, q)
}

func (h *harness) asks() *approvals.Room {
	r, ok := session.Room[*approvals.Room](h.Session)
	if !ok {
		h.t.Fatal("no room of approvals")
	}
	return r
}

// Merge and Compare are of the room of snapshots.
func (h *harness) Merge(ctx context.Context, o snapshots.MergeOptions) (snapshots.Merged, error) {
	return h.branches().Merge(ctx, o)
}

func (h *harness) Compare(ctx context.Context, a, b string) (snapshots.Comparison, error) {
	return h.branches().Compare(ctx, a, b)
}

func (h *harness) branches() *snapshots.Room { return branchesOf(h.t, h.Session) }

func branchesOf(t *testing.T, s *session.Session) *snapshots.Room {
	t.Helper()
	r, ok := session.Room[*snapshots.Room](s)
	if !ok {
		t.Fatal("the session has no room for its snapshots")
	}
	return r
}

func (h *harness) card() *task.Room {
	r, ok := session.Room[*task.Room](h.Session)
	if !ok {
		h.t.Fatal("the session has no room for its task")
	}
	return r
}

// skipped returns the messages of the newest turns that recall leaves out, the newest first.
func (h *harness) skipped(limit int) (turns [][]tidemark.EntryID) {
	h.t.Helper()
	rows, err := h.db.Query(h.t.Context(), `SELECT ids FROM skips WHERE key = ? AND state = 'skipped' ORDER BY at DESC, run DESC LIMIT ?`, string(h.key), limit)
	if err != nil {
		h.t.Fatal(err)
	}
	for _, r := range rows {
		var ids []tidemark.EntryID
		if err := json.Unmarshal(r.Bytes(0), &ids); err != nil {
			h.t.Fatal(err)
		}
		turns = append(turns, ids)
	}
	return turns
}
