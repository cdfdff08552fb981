package search

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync/atomic"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/memory"
	"github.com/tidemark-ai/tidemark/recall"
	"github.com/tidemark-ai/tidemark/room"
)

// skipTables are there from the first turn that might be skipped: without recall.reconcile there are none.
var skipTables = room.Tables{Space: "session_skip", Own: true, Steps: []string{
	// Turns whose words wait for the end of the turn (open), and what was decided then: kept or skipped.
	`CREATE TABLE skips(key TEXT NOT NULL, run TEXT NOT NULL, log TEXT NOT NULL, state TEXT NOT NULL, first INTEGER NOT NULL, at INTEGER NOT NULL,
		ids TEXT NOT NULL DEFAULT '[]', bytes INTEGER NOT NULL DEFAULT 0, indexed INTEGER NOT NULL DEFAULT 0, PRIMARY KEY(key, run)) WITHOUT ROWID`,
	// How much recall looks through, up to an entry, and how many messages it does not.
	`CREATE TABLE working(key TEXT PRIMARY KEY, upto INTEGER NOT NULL DEFAULT 0, events INTEGER NOT NULL DEFAULT 0, bytes INTEGER NOT NULL DEFAULT 0, skipped INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID`,
	`CREATE INDEX skips_first ON skips(key, first)`, // which turn a message is of
}}

// States of a row of skips.
const (
	skipOpen    = "open"
	skipKept    = "kept"
	skipSkipped = "skipped"
)

// Bounds of what is decided on.
const (
	maxSkipped = 1000 // messages of a turn; one with more is kept
	workedPage = 500  // messages that are counted at a time
)

// Skips is the part of the room that says which turns are left out unless all is wanted.
type Skips struct {
	ports
	index *Index
	held  atomic.Pointer[string] // the run whose words wait
}

var (
	_ room.Tabler  = (*Skips)(nil)
	_ room.Skipper = (*Skips)(nil)
	_ room.Leaver  = (*Skips)(nil)
)

// Tables implements room.Tabler.
func (s *Skips) Tables() room.Tables { return skipTables }

// Left is the data of a skip event: a turn that recall leaves out unless it is asked for all.
type Left struct {
	Entries []tidemark.EntryID `json:"entries"`
	Bytes   int64              `json:"bytes"`
	Events  int                `json:"heldEvents"` // what recall looks through without it
	Held    int64              `json:"heldBytes"`
}

// HoldStmts implements room.Skipper: a turn may be skipped where there is a gate, and more is held than it lets pass.
func (s *Skips) HoldStmts(ctx context.Context, run, log string) ([]tidemark.Stmt, error) {
	g := s.Gate()
	if g == nil {
		return nil, nil
	}
	if err := s.Made.Open(ctx, skipTables); err != nil {
		return nil, err
	}
	held, err := s.working(ctx)
	if err != nil {
		return nil, err
	}
	if b, ok := g.(interface{ Over(memory.Held) bool }); ok && !b.Over(held) {
		return nil, nil
	}
	s.held.Store(&run)
	return []tidemark.Stmt{{SQL: `INSERT INTO skips(key, run, log, state, first, at) SELECT ?, ?, ?, ?, coalesce(max(seq), 0), ? FROM entries WHERE true ON CONFLICT(key, run) DO NOTHING`,
		Args: []any{string(s.Key), run, log, skipOpen, s.Runtime.Now().UnixMilli()}}}, nil
}

// holding reports whether words wait for the end of the turn in work.
func (s *Skips) holding() bool { return s.held.Load() != nil }

// EndWait ends the waiting of a run in memory, and not that of the next one, which may have begun; what the database
// says is settled by settle.
func (s *Skips) EndWait(run string) {
	if held := s.held.Load(); held != nil && *held == run {
		s.held.CompareAndSwap(held, nil)
	}
}

// Again goes on waiting in a run that an earlier life began.
func (s *Skips) Again(ctx context.Context, run string) error {
	s.held.Store(nil)
	rows, err := s.Made.Query(ctx, skipTables, `SELECT 1 FROM skips WHERE key = ? AND run = ? AND state = ? LIMIT 1`, string(s.Key), run, skipOpen)
	if err == nil && len(rows) > 0 {
		s.held.Store(&run)
	}
	return err
}

// DecideStmts decides on a turn that ends with a reply, once and as a whole, in the transaction that ends it.
func (s *Skips) DecideStmts(ctx context.Context, run, log string, reply tidemark.Entry) ([]tidemark.Stmt, error) {
	if !s.holding() {
		return nil, nil
	}
	turn, err := s.turnOf(ctx, run)
	if err != nil {
		return nil, err
	}
	held, err := s.working(ctx)
	if err != nil {
		return nil, err
	}
	x := Left{Events: held.Events, Held: held.Bytes}
	turn = append(turn, memory.Event{ID: reply.ID, Importance: recall.AgentMessage.Importance(), Bytes: weighed(int64(len(reply.Payload)), int64(reply.Tokens))})
	for _, e := range turn {
		x.Entries, x.Bytes = append(x.Entries, e.ID), x.Bytes+e.Bytes
	}
	state := skipKept
	if g := s.Gate(); g != nil && len(turn) <= maxSkipped && g.DecideHot(turn, held) == memory.None {
		state = skipSkipped
	}
	stmts := []tidemark.Stmt{{SQL: `UPDATE skips SET state = ?, ids = ?, bytes = ?, at = ? WHERE key = ? AND run = ? AND state = ?`,
		Args: []any{state, room.JSON(x.Entries), x.Bytes, s.Runtime.Now().UnixMilli(), string(s.Key), run, skipOpen}, Want: 1}}
	if state == skipKept {
		return stmts, nil
	}
	event := tidemark.Event{Type: "skip", Text: fmt.Sprintf("%d messages of this turn are left out of recall, which looks through %d: they stand in the log, and `recall --all` finds them", len(turn), held.Events),
		Data: []byte(room.JSON(x))}
	// What is skipped is counted once as such, and never as what is looked through.
	return append(stmts, s.Event(log, event), tidemark.Stmt{
		SQL: `INSERT INTO working(key, upto, skipped) SELECT ?, max(seq), ? FROM entries WHERE log = ?
			ON CONFLICT(key) DO UPDATE SET upto = excluded.upto, skipped = skipped + excluded.skipped`,
		Args: []any{string(s.Key), len(turn), log}}), nil
}

// weighed is the size of a message, also when its large parts stand elsewhere: then it is estimated.
func weighed(stored, tokens int64) int64 { return max(stored, tokens*10/3) }

// turnOf returns the messages that a run has logged, as a gate sees them.
func (s *Skips) turnOf(ctx context.Context, run string) (memory.Turn, error) {
	rows, err := s.DB.Query(ctx, `SELECT e.id, e.role, e.origin, e.skel, length(e.payload), e.tokens, instr(e.payload, '"is_error":true'), CASE WHEN e.role = 'user' AND e.tokens < 100 THEN e.payload ELSE '' END
		FROM skips k JOIN entries e ON e.log = k.log AND e.seq > k.first AND e.kind = 'message' WHERE k.key = ? AND k.run = ? ORDER BY e.seq LIMIT ?`, string(s.Key), run, maxSkipped+1)
	if err != nil {
		return nil, fmt.Errorf("read the turn: %w", err)
	}
	turn := make(memory.Turn, len(rows))
	ids := make([]tidemark.EntryID, len(rows))
	for i, row := range rows {
		var o tidemark.Origin
		if err := json.Unmarshal(row.Bytes(2), &o); err != nil {
			return nil, fmt.Errorf("read the turn: %w", err)
		}
		ids[i] = tidemark.EntryID(row.Text(0))
		e := memory.Event{ID: ids[i], Bytes: weighed(row.Int(4), row.Int(5)), Protected: row.Int(6) > 0}
		switch o.From {
		case tidemark.FromTool, tidemark.FromRecall:
			e.Importance = recall.ToolResult.Importance()
		case tidemark.FromPerson:
			e.Importance = recall.UserMessage.Importance()
			m, err := tidemark.Entry{Payload: row.Bytes(7)}.Message()
			e.Protected = e.Protected || err != nil || memory.Wants(o, m)
		default:
			e.Importance = recall.AgentMessage.Importance() // also of calls, and of what the system writes
		}
		turn[i] = e
	}
	marks, err := s.MarksOf(ctx, ids)
	if err != nil {
		return nil, err
	}
	for i, id := range ids {
		if m := marks[id]; m.Pinned {
			turn[i].Protected = true
		} else if m.Importance > 0 {
			turn[i].Importance = m.Importance
		}
	}
	return turn, nil
}

// working returns how much recall looks through in this conversation. It counts on from where it was, and no
// further than a budget needs: what is over it stays so.
func (s *Skips) working(ctx context.Context) (memory.Held, error) {
	var h memory.Held
	upto := int64(0)
	rows, err := s.DB.Query(ctx, `SELECT upto, events, bytes FROM working WHERE key = ? LIMIT 1`, string(s.Key))
	if err != nil {
		return h, fmt.Errorf("count what recall holds: %w", err)
	}
	if len(rows) > 0 {
		upto, h = rows[0].Int(0), memory.Held{Events: int(rows[0].Int(1)), Bytes: rows[0].Int(2)}
	}
	most, err := s.Settled(ctx)
	if err != nil {
		return h, fmt.Errorf("count what recall holds: %w", err)
	}
	was := upto
	for {
		rows, err := s.DB.Query(ctx, `SELECT seq, length(payload), tokens FROM entries WHERE log IN (SELECT id FROM logs WHERE key = ?) AND kind = 'message' AND seq > ? AND seq <= ? ORDER BY seq LIMIT ?`,
			string(s.Key), upto, most, workedPage)
		if err != nil {
			return h, fmt.Errorf("count what recall holds: %w", err)
		}
		for _, r := range rows {
			upto, h.Events, h.Bytes = r.Int(0), h.Events+1, h.Bytes+weighed(r.Int(1), r.Int(2))
		}
		b, ok := s.Gate().(memory.BySize)
		if len(rows) < workedPage || ok && b.Over(h) {
			break
		}
		if err := s.Runtime.Sleep(ctx, host.YieldRest); err != nil {
			return h, err
		}
	}
	if upto == was {
		return h, nil
	}
	err = s.DB.Tx(ctx, []tidemark.Stmt{{SQL: `INSERT INTO working(key, upto, events, bytes) VALUES(?, ?, ?, ?) ON CONFLICT(key) DO UPDATE SET upto = excluded.upto, events = excluded.events, bytes = excluded.bytes
		WHERE working.upto < excluded.upto`, Args: []any{string(s.Key), upto, h.Events, h.Bytes}}})
	return h, err
}

// Settled is the position up to which no message waits for its turn to be kept or skipped.
func (s *Skips) Settled(ctx context.Context) (int64, error) {
	rows, err := s.Made.Query(ctx, skipTables, `SELECT coalesce(min(first), ?) FROM skips WHERE key = ? AND state = ? LIMIT 1`, int64(1)<<53, string(s.Key), skipOpen)
	if err != nil {
		return 0, fmt.Errorf("look for turns that wait: %w", err)
	}
	if len(rows) == 0 {
		return 1 << 53, nil
	}
	return rows[0].Int(0), nil
}

// Count is how many messages recall leaves out.
func (s *Skips) Count(ctx context.Context) (int, error) {
	rows, err := s.Made.Query(ctx, skipTables, `SELECT skipped FROM working WHERE key = ? LIMIT 1`, string(s.Key))
	if err != nil || len(rows) == 0 {
		return 0, err
	}
	return int(rows[0].Int(0)), nil
}

// settle puts the words of turns that are decided on where they belong. It is behind the end of each turn
// that waited, and before each recall: what a kill left is done then, from the row that says what is open. A run
// that ended without a decision was kept.
func (s *Skips) settle(ctx context.Context) error {
	rows, err := s.Made.Query(ctx, skipTables, `SELECT run, log, state, ids, first FROM skips k WHERE key = ? AND indexed = 0
		AND (state <> ? OR NOT EXISTS (SELECT 1 FROM runs r WHERE r.id = k.run AND r.state IN ('calling', 'tools'))) ORDER BY at LIMIT 100`, string(s.Key), skipOpen)
	if err != nil {
		return fmt.Errorf("look for turns to settle: %w", err)
	}
	for _, r := range rows {
		var ids []tidemark.EntryID
		if err := json.Unmarshal(r.Bytes(3), &ids); err != nil {
			return fmt.Errorf("settle turn %s: %w", r.Text(0), err)
		}
		end := tidemark.Stmt{SQL: `DELETE FROM skips WHERE key = ? AND run = ?`, Args: []any{string(s.Key), r.Text(0)}}
		if r.Text(2) == skipSkipped {
			end.SQL = `UPDATE skips SET indexed = 1 WHERE key = ? AND run = ?`
		}
		if len(ids) == 0 {
			if ids, err = s.undecided(ctx, r.Text(1), r.Int(4)); err != nil {
				return fmt.Errorf("settle turn %s: %w", r.Text(0), err)
			}
		}
		if err := s.index.put(ctx, s.byID(ctx, ids)); err != nil {
			return fmt.Errorf("settle turn %s: %w", r.Text(0), err)
		}
		if err := s.DB.Tx(ctx, []tidemark.Stmt{end}); err != nil {
			return fmt.Errorf("settle turn %s: %w", r.Text(0), err)
		}
	}
	return nil
}

// undecided returns the messages behind a position of a log, up to the next turn that waits.
func (s *Skips) undecided(ctx context.Context, log string, first int64) ([]tidemark.EntryID, error) {
	rows, err := s.DB.Query(ctx, `SELECT id FROM entries WHERE log = ? AND kind = 'message' AND seq > ? AND seq <= coalesce((SELECT min(first) FROM skips WHERE key = ? AND first > ?), ?) ORDER BY seq LIMIT ?`,
		log, first, string(s.Key), first, int64(1)<<53, maxSkipped)
	out := make([]tidemark.EntryID, len(rows))
	for i, r := range rows {
		out[i] = tidemark.EntryID(r.Text(0))
	}
	return out, err
}

// byID yields entries that are there, in the order of their ids.
func (s *Skips) byID(ctx context.Context, ids []tidemark.EntryID) iter.Seq2[tidemark.Entry, error] {
	return func(yield func(tidemark.Entry, error) bool) {
		for _, id := range ids {
			e, err := s.Log.Entry(ctx, id)
			if !errors.Is(err, tidemark.ErrNotFound) && !yield(e, err) {
				return
			}
		}
	}
}

// Ended ends the waiting of a run that has ended. What cannot be written now is done before the next recall.
func (s *Skips) Ended(ctx context.Context, run string) {
	s.EndWait(run)
	if !s.Made.Here(skipTables) {
		return
	}
	if err := s.settle(ctx); err != nil && ctx.Err() == nil {
		s.Logger.Warn("settle what recall finds", "session", s.Key, "err", err)
	}
}

// Skipped returns which messages between two positions recall leaves out. The decisions say it, not the index:
// one that is made anew has not all of them.
func (s *Skips) Skipped(ctx context.Context, first, last int64) (map[int64]bool, error) {
	// The turn that the first message may be of began before it, and those that began behind it.
	rows, err := s.Made.Query(ctx, skipTables, `SELECT e.seq FROM skips k CROSS JOIN json_each(k.ids) j CROSS JOIN entries e ON e.id = j.value
		WHERE k.key = ? AND k.first < ? AND k.first >= coalesce((SELECT max(first) FROM skips WHERE key = ? AND first < ? AND state = ?), 0)
			AND k.state = ? AND e.seq BETWEEN ? AND ? LIMIT ?`,
		string(s.Key), last, string(s.Key), first, skipSkipped, skipSkipped, first, last, last-first+1)
	if err != nil {
		return nil, fmt.Errorf("look for skipped messages: %w", err)
	}
	out := map[int64]bool{}
	for _, r := range rows {
		out[r.Int(0)] = true
	}
	return out, nil
}

// homeOf is the word in the index that a message stands under.
func (s *Skips) homeOf(ctx context.Context, seq int64) (string, error) {
	skipped, err := s.Skipped(ctx, seq, seq)
	if skipped[seq] {
		return recall.SkippedHome(s.Key), err
	}
	return recall.Home(s.Key), err
}

// undecidedAt reports whether an entry is of a turn that is not in the index yet, since it may be skipped.
func (s *Skips) undecidedAt(ctx context.Context, seq int64) (bool, error) {
	there, err := s.Made.Has(ctx, skipTables)
	if err != nil || !there {
		return false, err
	}
	rows, err := s.DB.Query(ctx, `SELECT 1 FROM skips WHERE key = ? AND indexed = 0 AND first < ? LIMIT 1`, string(s.Key), seq)
	return len(rows) > 0, err
}
