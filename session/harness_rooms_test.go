package session_test

import (
	"context"
	"io"
	"iter"
	"slices"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/recall"
	"github.com/tidemark-ai/tidemark/room"
	"github.com/tidemark-ai/tidemark/room/anatomy"
	"github.com/tidemark-ai/tidemark/room/approvals"
	"github.com/tidemark-ai/tidemark/room/delegation"
	episodic "github.com/tidemark-ai/tidemark/room/episodes"
	"github.com/tidemark-ai/tidemark/room/errand"
	"github.com/tidemark-ai/tidemark/room/occasion"
	"github.com/tidemark-ai/tidemark/room/outbound"
	"github.com/tidemark-ai/tidemark/room/pack"
	"github.com/tidemark-ai/tidemark/room/pager"
	"github.com/tidemark-ai/tidemark/room/reflection"
	"github.com/tidemark-ai/tidemark/room/replay"
	"github.com/tidemark-ai/tidemark/room/search"
	"github.com/tidemark-ai/tidemark/room/selfcheck"
	"github.com/tidemark-ai/tidemark/room/sittings"
	"github.com/tidemark-ai/tidemark/room/snapshots"
	"github.com/tidemark-ai/tidemark/room/spool"
	"github.com/tidemark-ai/tidemark/room/task"
	"github.com/tidemark-ai/tidemark/room/toolset"
	"github.com/tidemark-ai/tidemark/room/vectors"
	"github.com/tidemark-ai/tidemark/session"
	"github.com/tidemark-ai/tidemark/snapshot"
)

// rooms makes the rooms of the session.
func (h *harness) rooms() []room.Maker {
	out := append(slices.Concat(finding, snapshots.Makers()), anatomy.Make, selfcheck.Make, outbound.Make(h.courier), occasion.Make(h.courier != nil), task.Make(h.taskState), pack.Make, spool.Make, toolset.Make, pager.Make, approvals.Make(h.approvals), episodic.Make, delegation.Make(h.delegation), errand.Make)
	if h.embedder != nil {
		out = append(out, vectors.Make(h.embedder))
	}
	if h.reflection {
		out = append(out, reflection.Make)
	}
	if h.sittings {
		out = append(out, sittings.Make)
	}
	return out
}

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
	return roomOf[*search.Room](t, s)
}

// Import replays a log.
func (h *harness) Import(ctx context.Context, in iter.Seq2[replay.Message, error], progress func(int)) (replay.Result, error) {
	return roomOf[*replay.Room](h.t, h.Session).Import(ctx, in, progress)
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

// Outbound, Delivered, Say and Correspondent are of the room that sends.
func (h *harness) Outbound(ctx context.Context, limit int) ([]outbound.Message, error) {
	return h.sends().Messages(ctx, limit)
}

// Delivered brings a status.
func (h *harness) Delivered(ctx context.Context, d tidemark.Delivery) error {
	return h.sends().Delivered(ctx, d)
}

// Say sends a line.
func (h *harness) Say(ctx context.Context, id string, to tidemark.Address, text string) error {
	return h.sends().Say(ctx, id, &to, text, nil)
}

// Correspondent is who wrote last.
func (h *harness) Correspondent(ctx context.Context) (tidemark.Origin, error) {
	return h.sends().Correspondent(ctx)
}

func (h *harness) sends() *outbound.Room {
	r, ok := session.Room[*outbound.Room](h.Session)
	if !ok {
		h.t.Fatal("no room that sends")
	}
	return r
}

// Merge and Compare are of the room of snapshots.
func (h *harness) Merge(ctx context.Context, o snapshots.MergeOptions) (snapshots.Merged, error) {
	return roomOf[*snapshots.Merges](h.t, h.Session).Merge(ctx, o)
}

func (h *harness) Compare(ctx context.Context, a, b string) (snapshots.Comparison, error) {
	return roomOf[*snapshots.Merges](h.t, h.Session).Compare(ctx, a, b)
}

// Snapshot, Branch and what follows are of the rooms of snapshots, too.
func (h *harness) Snapshot(ctx context.Context, o snapshots.Options) (snapshot.Node, error) {
	return h.places().Take(ctx, o)
}

func (h *harness) Branch(ctx context.Context, o snapshots.BranchOptions) (snapshots.Branch, error) {
	return h.places().Branch(ctx, o)
}

// Trim is the primitive: a snapshot of the session as it is now, and a trimmed branch of it.
func (h *harness) Trim(ctx context.Context, o snapshots.BranchOptions) (snapshots.Branch, error) {
	o.Trim = true
	return h.Branch(ctx, o)
}

func (h *harness) Snapshots(ctx context.Context, cursor string, limit int, newest bool) ([]snapshot.Node, string, error) {
	return h.places().List(ctx, cursor, limit, newest)
}

func (h *harness) SnapshotNode(ctx context.Context, id string) (snapshot.Node, error) {
	return h.places().Node(ctx, id)
}

func (h *harness) RemoveSnapshot(ctx context.Context, id string) (snapshot.Node, error) {
	return h.places().Remove(ctx, id)
}

func (h *harness) ExportSnapshot(ctx context.Context, id string, w io.Writer) error {
	return h.carry().Export(ctx, id, w)
}

func (h *harness) ImportSnapshot(ctx context.Context, id string, r io.Reader) (snapshots.Carried, error) {
	return h.carry().Import(ctx, id, r)
}

func (h *harness) places() *snapshots.Room { return roomOf[*snapshots.Room](h.t, h.Session) }

func (h *harness) carry() *snapshots.Carry { return roomOf[*snapshots.Carry](h.t, h.Session) }

func roomOf[T any](t testing.TB, s *session.Session) T {
	t.Helper()
	r, ok := session.Room[T](s)
	if !ok {
		t.Fatalf("the session has no %T", r)
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

// Anatomies and Prompt are of the room that keeps records of calls.
func (h *harness) Anatomies(ctx context.Context, before int64, limit int) ([]anatomy.Record, error) {
	return h.records().All(ctx, before, limit)
}

func (h *harness) Prompt(ctx context.Context, n int64, use func(anatomy.Prompt) error) error {
	return h.records().Prompt(ctx, n, use)
}

func (h *harness) records() *anatomy.Room {
	r, ok := session.Room[*anatomy.Room](h.Session)
	if !ok {
		h.t.Fatal("no room for records")
	}
	return r
}
