package session

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/memory"
	"github.com/tidemark-ai/tidemark/recall"
	"github.com/tidemark-ai/tidemark/room"
)

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

// skipping is what a session knows of its turn in work. Its zero value is ready.
type skipping struct {
	held atomic.Pointer[string] // the run whose words wait
}

// Skipped is the data of a skip event: a turn that recall leaves out unless it is asked for all.
type Skipped struct {
	Entries []tidemark.EntryID `json:"entries"`
	Bytes   int64              `json:"bytes"`
	Events  int                `json:"heldEvents"` // what recall looks through without it
	Held    int64              `json:"heldBytes"`
}

// skippedHome is the word in the index that messages of skipped turns share, instead of [Session.home].
func (s *Session) skippedHome() string { return recall.SkippedHome(s.Key) }

// hold lets the words of a turn wait for its end, when it may come out that it is skipped: a gate is there and
// nobody asked for anything. It returns what stores that.
func (s *Session) hold(ctx context.Context, r *run, q []queued) ([]tidemark.Stmt, error) {
	g := s.settings().Gate
	if g == nil || r.Round > 0 || len(r.took) > 0 {
		return nil, nil
	}
	for _, in := range q {
		if !small(in) {
			return nil, nil
		}
	}
	if err := s.made.Open(ctx, skipTables); err != nil {
		return nil, err
	}
	held, err := s.working(ctx)
	if err != nil {
		return nil, err
	}
	if b, ok := g.(interface{ Over(memory.Held) bool }); ok && !b.Over(held) {
		return nil, nil
	}
	s.skip.held.Store(&r.ID)
	return []tidemark.Stmt{{SQL: `INSERT INTO skips(key, run, log, state, first, at) SELECT ?, ?, ?, ?, coalesce(max(seq), 0), ? FROM entries WHERE true ON CONFLICT(key, run) DO NOTHING`,
		Args: []any{string(s.Key), r.ID, r.Log, skipOpen, s.Runtime.Now().UnixMilli()}}}, nil
}

// small reports an input that can be read, which others see to, and asks for nothing.
func small(in queued) bool {
	var m tidemark.Message
	return json.Unmarshal(in.Payload, &m) == nil && !wants(in.Origin, m)
}

// wants reports a message in which a person wants something.
func wants(o tidemark.Origin, m tidemark.Message) bool {
	if o.From == tidemark.FromAgent {
		return true // it is a task
	}
	if o.From != "" && o.From != tidemark.FromPerson {
		return false
	}
	for _, b := range m.Content {
		if b.Type != tidemark.TypeText {
			return true // a picture, a file
		}
	}
	return !memory.Acknowledges(m.PlainText())
}

// holding reports whether words wait for the end of the turn in work.
func (s *Session) holding() bool { return s.skip.held.Load() != nil }

// letGo ends the waiting of a run in memory, and not that of the next one, which may have begun; what the database
// says is settled by settleSkips.
func (s *Session) letGo(run string) {
	if held := s.skip.held.Load(); held != nil && *held == run {
		s.skip.held.CompareAndSwap(held, nil)
	}
}

// holdAgain goes on waiting in a run that an earlier life began.
func (s *Session) holdAgain(ctx context.Context, r *run) error {
	s.skip.held.Store(nil)
	rows, err := s.made.Query(ctx, skipTables, `SELECT 1 FROM skips WHERE key = ? AND run = ? AND state = ? LIMIT 1`, string(s.Key), r.ID, skipOpen)
	if err == nil && len(rows) > 0 {
		s.skip.held.Store(&r.ID)
	}
	return err
}

// decideStmts decides on a turn that ends with a reply, once and as a whole, in the transaction that ends it.
func (s *Session) decideStmts(ctx context.Context, r *run, reply tidemark.Entry) ([]tidemark.Stmt, error) {
	if !s.holding() {
		return nil, nil
	}
	turn, err := s.turnOf(ctx, r)
	if err != nil {
		return nil, err
	}
	held, err := s.working(ctx)
	if err != nil {
		return nil, err
	}
	x := Skipped{Events: held.Events, Held: held.Bytes}
	turn = append(turn, memory.Event{ID: reply.ID, Importance: recall.AgentMessage.Importance(), Bytes: weighed(int64(len(reply.Payload)), int64(reply.Tokens))})
	for _, e := range turn {
		x.Entries, x.Bytes = append(x.Entries, e.ID), x.Bytes+e.Bytes
	}
	state := skipKept
	if g := s.settings().Gate; g != nil && len(turn) <= maxSkipped && g.DecideHot(turn, held) == memory.None {
		state = skipSkipped
	}
	stmts := []tidemark.Stmt{{SQL: `UPDATE skips SET state = ?, ids = ?, bytes = ?, at = ? WHERE key = ? AND run = ? AND state = ?`,
		Args: []any{state, mustJSON(x.Entries), x.Bytes, s.Runtime.Now().UnixMilli(), string(s.Key), r.ID, skipOpen}, Want: 1}}
	if state == skipKept {
		return stmts, nil
	}
	event := tidemark.Event{Type: "skip", Text: fmt.Sprintf("%d messages of this turn are left out of recall, which looks through %d: they stand in the log, and `recall --all` finds them", len(turn), held.Events),
		Data: []byte(mustJSON(x))}
	// What is skipped is counted once as such, and never as what is looked through.
	return append(stmts, s.eventStmt(r.Log, event), tidemark.Stmt{
		SQL: `INSERT INTO working(key, upto, skipped) SELECT ?, max(seq), ? FROM entries WHERE log = ?
			ON CONFLICT(key) DO UPDATE SET upto = excluded.upto, skipped = skipped + excluded.skipped`,
		Args: []any{string(s.Key), len(turn), r.Log}}), nil
}

// weighed is the size of a message, also when its large parts stand elsewhere: then it is estimated.
func weighed(stored, tokens int64) int64 { return max(stored, tokens*10/3) }

// turnOf returns the messages that a run has logged, as a gate sees them.
func (s *Session) turnOf(ctx context.Context, r *run) (memory.Turn, error) {
	rows, err := s.DB.Query(ctx, `SELECT e.id, e.role, e.origin, e.skel, length(e.payload), e.tokens, instr(e.payload, '"is_error":true'), CASE WHEN e.role = 'user' AND e.tokens < 100 THEN e.payload ELSE '' END
		FROM skips k JOIN entries e ON e.log = k.log AND e.seq > k.first AND e.kind = 'message' WHERE k.key = ? AND k.run = ? ORDER BY e.seq LIMIT ?`, string(s.Key), r.ID, maxSkipped+1)
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
			e.Protected = e.Protected || err != nil || wants(o, m)
		default:
			e.Importance = recall.AgentMessage.Importance() // also of calls, and of what the system writes
		}
		turn[i] = e
	}
	marks, err := s.marksOf(ctx, ids)
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
func (s *Session) working(ctx context.Context) (memory.Held, error) {
	var h memory.Held
	upto := int64(0)
	rows, err := s.DB.Query(ctx, `SELECT upto, events, bytes FROM working WHERE key = ? LIMIT 1`, string(s.Key))
	if err != nil {
		return h, fmt.Errorf("count what recall holds: %w", err)
	}
	if len(rows) > 0 {
		upto, h = rows[0].Int(0), memory.Held{Events: int(rows[0].Int(1)), Bytes: rows[0].Int(2)}
	}
	most, err := s.decided(ctx)
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
		b, ok := s.settings().Gate.(memory.BySize)
		if len(rows) < workedPage || ok && b.Over(h) {
			break
		}
		if err := s.Runtime.Sleep(ctx, room.PaceRest); err != nil {
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

// decided is the position up to which no message waits for its turn to be kept or skipped.
func (s *Session) decided(ctx context.Context) (int64, error) {
	rows, err := s.made.Query(ctx, skipTables, `SELECT coalesce(min(first), ?) FROM skips WHERE key = ? AND state = ? LIMIT 1`, int64(1)<<53, string(s.Key), skipOpen)
	if err != nil {
		return 0, fmt.Errorf("look for turns that wait: %w", err)
	}
	if len(rows) == 0 {
		return 1 << 53, nil
	}
	return rows[0].Int(0), nil
}

// skippedCount is how many messages recall leaves out.
func (s *Session) skippedCount(ctx context.Context) (int, error) {
	rows, err := s.made.Query(ctx, skipTables, `SELECT skipped FROM working WHERE key = ? LIMIT 1`, string(s.Key))
	if err != nil || len(rows) == 0 {
		return 0, err
	}
	return int(rows[0].Int(0)), nil
}
