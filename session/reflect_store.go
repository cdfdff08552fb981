package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/recall"
)

// Who recalled something.
const (
	ByModel  = "model"
	ByPerson = "person"
	ByPack   = "pack" // pushed without being asked for, so a miss tells nothing
	ByWide   = "wide" // by the model over many conversations: what it misses was in nobody's view
)

// tells reports whether how a recall went tells anything of what is left in view here.
func tells(by string) bool { return by != ByPack && by != ByWide }

// Tables of reflection. A conversation without it has none.
var reflectTables = [][]string{{
	// How recalls went, the newest of them; evicted is when what was found had left the view, 0 if it had not or
	// nobody asked.
	`CREATE TABLE recalls(n INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL, at INTEGER NOT NULL, by TEXT NOT NULL, verdict TEXT NOT NULL, entry TEXT NOT NULL, evicted INTEGER NOT NULL)`,
	`CREATE INDEX recalls_key ON recalls(key, n)`,
	`CREATE TABLE tunings(key TEXT PRIMARY KEY, tuning TEXT NOT NULL) WITHOUT ROWID`,
}}

const (
	reflectSpace = "session_reflect"
	keepRecalls  = 500
	weighRecalls = 50                 // the newest that count
	weighDays    = 7 * 24 * time.Hour // and how old they may be
	earlyFault   = time.Hour
)

// reflects reports whether recalls are recorded and thresholds tuned: only a strategy that leaves pointers has any.
func (s *Session) reflects() bool {
	return s.settings().Reflection && slices.ContainsFunc(s.strategies(), func(st compaction.Strategy) bool { _, ok := st.(compaction.Pointer); return ok })
}

// NoteRecall records how a recall went. A failure to record is logged.
func (s *Session) NoteRecall(ctx context.Context, by string, found Recalled) {
	if s.Observe != nil {
		s.Observe(Notice{Type: NoticeRecalled, Text: by, Verdict: found.Verdict})
	}
	if !s.reflects() {
		return
	}
	if err := s.noteRecall(ctx, by, found); err != nil && ctx.Err() == nil && !errors.Is(err, tidemark.ErrDead) {
		s.warn("record a recall", err)
	}
}

func (s *Session) noteRecall(ctx context.Context, by string, found Recalled) error {
	if err := host.Migrate(ctx, s.DB, reflectSpace, reflectTables); err != nil {
		return err
	}
	entry, evicted := tidemark.EntryID(""), int64(0)
	if found.Verdict != recall.Nothing && len(found.Results) > 0 {
		entry = found.Results[0].ID
	}
	if entry != "" && tells(by) { // to find out reads all overlays, and what is pushed is each turn
		at, err := s.evictedAt(ctx, entry)
		if err != nil {
			return err
		}
		if !at.IsZero() {
			evicted = at.UnixMilli()
		}
	}
	return s.DB.Tx(ctx, []tidemark.Stmt{
		{SQL: `INSERT INTO recalls(key, at, by, verdict, entry, evicted) VALUES(?, ?, ?, ?, ?, ?)`,
			Args: []any{string(s.Key), s.Runtime.Now().UnixMilli(), by, string(found.Verdict), string(entry), evicted}, Want: 1},
		{SQL: `DELETE FROM recalls WHERE key = ? AND n <= (SELECT n FROM recalls WHERE key = ? ORDER BY n DESC LIMIT 1 OFFSET ?)`,
			Args: []any{string(s.Key), string(s.Key), keepRecalls}},
	})
}

// evictedAt returns when an entry of the present session left the view, the zero time if it is there.
func (s *Session) evictedAt(ctx context.Context, id tidemark.EntryID) (time.Time, error) {
	h, err := s.head(ctx)
	if err != nil {
		return time.Time{}, err
	}
	seqs, err := s.log.Seqs(ctx, []tidemark.EntryID{id})
	if err != nil {
		return time.Time{}, err
	}
	marks, err := s.overlays(ctx, h.Log, 0)
	if err != nil {
		return time.Time{}, err
	}
	placed, err := s.place(ctx, marks)
	if err != nil {
		return time.Time{}, err
	}
	row := int64(0)
	for _, p := range placed { // the first that took it away
		if seq := seqs[id]; !p.Insert && seq >= p.From && seq <= p.To && !slices.Contains(p.Keep, seq) && (row == 0 || p.Row < row) {
			row = p.Row
		}
	}
	if row == 0 {
		return time.Time{}, nil
	}
	rows, err := s.DB.Query(ctx, `SELECT at FROM entries WHERE seq = ? LIMIT 1`, row)
	if err != nil || len(rows) == 0 {
		return time.Time{}, err
	}
	return time.UnixMilli(rows[0].Int(0)), nil
}

// evidence sums up the newest recalls.
func (s *Session) evidence(ctx context.Context) (Evidence, error) {
	rows, err := s.DB.Query(ctx, `SELECT verdict, evicted, at FROM recalls WHERE key = ? AND by NOT IN (?, ?) AND at > ? ORDER BY n DESC LIMIT ?`,
		string(s.Key), ByPack, ByWide, s.Runtime.Now().Add(-weighDays).UnixMilli(), weighRecalls)
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
func (s *Session) Tuned(ctx context.Context) (Tuning, error) {
	var t Tuning
	if !s.reflects() {
		return t, nil
	}
	if err := host.Migrate(ctx, s.DB, reflectSpace, reflectTables); err != nil {
		return t, err
	}
	rows, err := s.DB.Query(ctx, `SELECT tuning FROM tunings WHERE key = ? LIMIT 1`, string(s.Key))
	if err != nil || len(rows) == 0 {
		return t, err
	}
	if err := json.Unmarshal(rows[0].Bytes(0), &t); err != nil {
		return t, fmt.Errorf("read tuning of %s: %w", s.Key, err)
	}
	return t.within(s.budget().Limit()), nil
}

// Reflected is the data of a reflection event.
type Reflected struct {
	Before   Tuning   `json:"before"`
	After    Tuning   `json:"after"`
	Evidence Evidence `json:"evidence"`
}

// reflect looks behind a compaction at how recall goes, and tunes what the next one does. A change is an
// event of the log; a failure is logged, and nothing is tuned.
func (s *Session) reflect(ctx context.Context, p *plan) {
	if !s.reflects() || p.overlay == "" {
		return
	}
	if err := s.retune(ctx, p); err != nil && ctx.Err() == nil && !errors.Is(err, tidemark.ErrDead) {
		s.warn("reflect on a compaction", err)
	}
}

func (s *Session) retune(ctx context.Context, p *plan) error {
	before, err := s.Tuned(ctx)
	if err != nil {
		return err
	}
	e, err := s.evidence(ctx)
	if err != nil {
		return err
	}
	for _, edit := range p.edits {
		if m, ok := compaction.MarkerOf(edit); ok && m.Cycles == 1 { // one that took in others says more than this act did
			e.Events, e.Tokens = e.Events+m.Count, e.Tokens+m.Tokens
		}
	}
	limit := s.budget().Limit()
	after := tune(e, limit)
	if after.same(before) {
		return nil
	}
	event := tidemark.Event{Type: "reflection", Text: after.line(before, limit), Data: []byte(mustJSON(Reflected{before, after, e}))}
	stmts, err := s.eventStmts(p.Log, event)
	if err != nil {
		return err
	}
	stmts = append(stmts, tidemark.Stmt{SQL: `INSERT INTO tunings(key, tuning) VALUES(?, ?) ON CONFLICT(key) DO UPDATE SET tuning = excluded.tuning`,
		Args: []any{string(s.Key), mustJSON(after)}, Want: 1})
	if err := s.DB.Tx(ctx, stmts); err != nil {
		return err
	}
	s.hub.send(Notice{Type: NoticeEvent, Event: &event})
	return nil
}
