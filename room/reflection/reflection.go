// Package reflection is the room that records how recalls go and, behind a compaction, sets how much leaves the view and
// how early. It is a function of what was recorded, and goes back by itself. Begin with Room and Tuning.
package reflection

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/recall"
	"github.com/tidemark-ai/tidemark/room"
)

// tells reports whether how a recall went tells anything of what is left in view here.
func tells(by string) bool { return by != room.ByPack && by != room.ByWide }

// tables of reflection. A conversation without it has none.
var tables = room.Tables{Space: "session_reflect", Steps: []string{
	// How recalls went, the newest of them; evicted is when what was found had left the view, 0 if it had not or
	// nobody asked.
	`CREATE TABLE recalls(n INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL, at INTEGER NOT NULL, by TEXT NOT NULL, verdict TEXT NOT NULL, entry TEXT NOT NULL, evicted INTEGER NOT NULL)`,
	`CREATE INDEX recalls_key ON recalls(key, n)`,
	`CREATE TABLE tunings(key TEXT PRIMARY KEY, tuning TEXT NOT NULL) WITHOUT ROWID`,
}}

const (
	keepRecalls  = 500
	weighRecalls = 50                 // the newest that count
	weighDays    = 7 * 24 * time.Hour // and how old they may be
	earlyFault   = time.Hour
)

// Room is how recalls go in one conversation.
type Room struct {
	room.Self
	room.History
	room.View
}

// Make makes the room.
func Make(p room.Ports) any { return &Room{p.Self, p.History, p.View} }

var (
	_ room.Tabler    = (*Room)(nil)
	_ room.Recaller  = (*Room)(nil)
	_ room.Compactor = (*Room)(nil)
)

// Tables implements room.Tabler.
func (s *Room) Tables() room.Tables { return tables }

// reflects reports whether recalls are recorded and thresholds tuned: only a strategy that leaves pointers has any.
func (s *Room) reflects() bool {
	return slices.ContainsFunc(s.Strategies(), func(st compaction.Strategy) bool { _, ok := st.(compaction.Pointer); return ok })
}

// Recalled records how a recall went. A failure to record is logged.
func (s *Room) Recalled(ctx context.Context, by string, v recall.Verdict, first tidemark.EntryID) {
	if !s.reflects() {
		return
	}
	if err := s.note(ctx, by, v, first); err != nil && ctx.Err() == nil && !errors.Is(err, tidemark.ErrDead) {
		s.Warn("record a recall", err)
	}
}

func (s *Room) note(ctx context.Context, by string, v recall.Verdict, first tidemark.EntryID) error {
	if err := s.Made.Open(ctx, tables); err != nil {
		return err
	}
	entry, evicted := tidemark.EntryID(""), int64(0)
	if v != recall.Nothing {
		entry = first
	}
	if entry != "" && tells(by) { // to find out reads all overlays, and what is pushed is each turn
		at, err := s.EvictedAt(ctx, entry)
		if err != nil {
			return err
		}
		if !at.IsZero() {
			evicted = at.UnixMilli()
		}
	}
	return s.DB.Tx(ctx, []tidemark.Stmt{
		{SQL: `INSERT INTO recalls(key, at, by, verdict, entry, evicted) VALUES(?, ?, ?, ?, ?, ?)`,
			Args: []any{string(s.Key), s.Runtime.Now().UnixMilli(), by, string(v), string(entry), evicted}, Want: 1},
		{SQL: `DELETE FROM recalls WHERE key = ? AND n <= (SELECT n FROM recalls WHERE key = ? ORDER BY n DESC LIMIT 1 OFFSET ?)`,
			Args: []any{string(s.Key), string(s.Key), keepRecalls}},
	})
}

// evidence sums up the newest recalls.
func (s *Room) evidence(ctx context.Context) (Evidence, error) {
	rows, err := s.DB.Query(ctx, `SELECT verdict, evicted, at FROM recalls WHERE key = ? AND by NOT IN (?, ?) AND at > ? ORDER BY n DESC LIMIT ?`,
		string(s.Key), room.ByPack, room.ByWide, s.Runtime.Now().Add(-weighDays).UnixMilli(), weighRecalls)
	if err != nil {
		return Evidence{}, fmt.Errorf("read recalls: %w", err)
	}
	var e Evidence
	for _, r := range rows {
		e.Recalls++
		if r.Text(0) != string(recall.Confident) {
			e.Misses++
		} else if at := r.Int(1); at > 0 && r.Int(2)-at < earlyFault.Milliseconds() {
			e.Early++
		}
	}
	return e, nil
}

// Tuned returns what reflection set for the conversation, the zero value for nothing.
func (s *Room) Tuned(ctx context.Context) (Tuning, error) {
	var t Tuning
	if !s.reflects() {
		return t, nil
	}
	if err := s.Made.Open(ctx, tables); err != nil {
		return t, err
	}
	rows, err := s.DB.Query(ctx, `SELECT tuning FROM tunings WHERE key = ? LIMIT 1`, string(s.Key))
	if err != nil || len(rows) == 0 {
		return t, err
	}
	if err := json.Unmarshal(rows[0].Bytes(0), &t); err != nil {
		return t, fmt.Errorf("read tuning of %s: %w", s.Key, err)
	}
	return t.within(s.Budget().Limit()), nil
}

// Reflected is the data of a reflection event.
type Reflected struct {
	Before   Tuning   `json:"before"`
	After    Tuning   `json:"after"`
	Evidence Evidence `json:"evidence"`
}

// Tune returns strategies with what reflection set.
func (s *Room) Tune(ctx context.Context, list []compaction.Strategy) ([]compaction.Strategy, error) {
	t, err := s.Tuned(ctx)
	return t.strategies(list), err
}

// Compacted looks behind a compaction at how recall goes, and tunes what the next one does. A change is an
// event of the log; a failure is logged, and nothing is tuned.
func (s *Room) Compacted(ctx context.Context, log string, edits []tidemark.Edit) {
	if !s.reflects() {
		return
	}
	if err := s.retune(ctx, log, edits); err != nil && ctx.Err() == nil && !errors.Is(err, tidemark.ErrDead) {
		s.Warn("reflect on a compaction", err)
	}
}

func (s *Room) retune(ctx context.Context, log string, edits []tidemark.Edit) error {
	before, err := s.Tuned(ctx)
	if err != nil {
		return err
	}
	e, err := s.evidence(ctx)
	if err != nil {
		return err
	}
	for _, edit := range edits {
		if m, ok := compaction.MarkerOf(edit); ok && m.Cycles == 1 { // one that took in others says more than this act did
			e.Events, e.Tokens = e.Events+m.Count, e.Tokens+m.Tokens
		}
	}
	limit := s.Budget().Limit()
	after := tune(e, limit)
	if after.same(before) {
		return nil
	}
	event := tidemark.Event{Type: "reflection", Text: after.line(before, limit), Data: []byte(room.JSON(Reflected{before, after, e}))}
	return s.Announce(ctx, log, event, tidemark.Stmt{SQL: `INSERT INTO tunings(key, tuning) VALUES(?, ?) ON CONFLICT(key) DO UPDATE SET tuning = excluded.tuning`,
		Args: []any{string(s.Key), room.JSON(after)}, Want: 1})
}
