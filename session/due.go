package session

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/archive"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/reset"
	"github.com/tidemark-ai/tidemark/room"
)

// Kinds of what may be due. A key has one of each.
const (
	dueRun     = "run"      // look after the run in work
	dueReset   = "reset"    // the policy's next reset
	dueOutbox  = "outbox"   // tell the agent again
	dueExtract = "extract:" // before a session id: memories of one that was reset without them
	dueEvicted = "evicted:" // before an overlay: what it took out of the view unread
	dueAgain   = "again"    // a summary that an extract stands in for
)

// coreKinds and coreReports are the kinds of due work and of outbox rows that no room may have.
var (
	coreKinds   = []string{dueRun, dueReset, dueOutbox, dueExtract, dueEvicted, dueAgain}
	coreReports = []string{outFacts, outArchive}
)

func (s *Session) dueStmt(kind string, at time.Time, data string) tidemark.Stmt {
	return tidemark.Stmt{
		SQL:  `INSERT INTO due(key, kind, at, data) VALUES(?, ?, ?, ?) ON CONFLICT(key, kind) DO UPDATE SET at = excluded.at, data = excluded.data`,
		Args: []any{string(s.Key), kind, at.UnixMilli(), data},
	}
}

func (s *Session) undueStmt(kind string) tidemark.Stmt {
	return tidemark.Stmt{SQL: `DELETE FROM due WHERE key = ? AND kind = ?`, Args: []any{string(s.Key), kind}}
}

// waitStmt makes an input, or an import, due to be looked after even if this life ends at once.
func (s *Session) waitStmt(now time.Time) tidemark.Stmt {
	return tidemark.Stmt{SQL: `INSERT INTO due(key, kind, at, data) VALUES(?, ?, ?, '') ON CONFLICT(key, kind) DO NOTHING`,
		Args: []any{string(s.Key), dueRun, now.Add(heartbeat).UnixMilli()}}
}

// restStmt ends looking after a run, unless an input waits for the next.
func (s *Session) restStmt() tidemark.Stmt {
	return tidemark.Stmt{SQL: `DELETE FROM due WHERE key = ? AND kind = ? AND NOT EXISTS (SELECT 1 FROM inputs WHERE key = ? AND state = 'new')`,
		Args: []any{string(s.Key), dueRun, string(s.Key)}}
}

// endStmts end a run, behind what ends its inputs, and make what it has for the agent due after a while, in
// case this life ends before that is told.
func (s *Session) endStmts(after time.Duration) []tidemark.Stmt {
	return append(s.rooms.EndStmts(), s.restStmt(), s.dueStmt(dueOutbox, s.Runtime.Now().Add(after), ""))
}

// Due returns the keys of a database that have something due, and when: what a host must wake. The zero time
// is at once.
func Due(ctx context.Context, db tidemark.DB, now time.Time) (map[tidemark.Key]time.Time, error) {
	const most = 10_000
	out := map[tidemark.Key]time.Time{}
	rows, err := db.Query(ctx, `SELECT key, min(at), max(kind = ? AND (data = ? OR at > ?)) FROM due GROUP BY key ORDER BY min(at) LIMIT ?`, room.DueOutbound, room.DueUnset, now.Add(room.FarPause).UnixMilli(), most)
	if err != nil {
		return nil, fmt.Errorf("read what is due: %w", err)
	}
	for _, r := range rows {
		if at := time.UnixMilli(r.Int(1)); r.Int(2) == 0 {
			out[tidemark.Key(r.Text(0))] = at
		} else { // messages wait for a channel, which may be there now, or by a clock that was set back since
			out[tidemark.Key(r.Text(0))] = time.Time{}
		}
	}
	// An input whose process died before its run began has nothing due yet, and nobody works on a run
	// of an earlier process: neither waits for the heartbeat.
	rows, err = db.Query(ctx, `SELECT key FROM inputs WHERE state = 'new' UNION SELECT key FROM runs WHERE state IN ('calling', 'tools') LIMIT ?`, most)
	if err != nil {
		return nil, fmt.Errorf("read waiting inputs and runs: %w", err)
	}
	for _, r := range rows {
		out[tidemark.Key(r.Text(0))] = time.Time{}
	}
	return out, nil
}

// NextDue returns when the earliest thing in a database is due, the zero time for never.
func NextDue(ctx context.Context, db tidemark.DB) (time.Time, error) {
	rows, err := db.Query(ctx, `SELECT min(at) FROM due LIMIT 1`)
	if err != nil {
		return time.Time{}, fmt.Errorf("read what is due: %w", err)
	}
	if rows[0].Null(0) {
		return time.Time{}, nil
	}
	return time.UnixMilli(rows[0].Int(0)), nil
}

// setAlarm asks the host to wake the session when the next thing is due.
func (s *Session) setAlarm(ctx context.Context) {
	if s.Alarm == nil || ctx.Err() != nil {
		return
	}
	rows, err := s.DB.Query(ctx, `SELECT min(at) FROM due WHERE key = ? LIMIT 1`, string(s.Key))
	if err == nil && !rows[0].Null(0) {
		err = s.Alarm(ctx, time.UnixMilli(rows[0].Int(0)))
	}
	if err != nil {
		s.warn("set alarm", err)
	}
}

// Wake does what is due. It may be called at any time and twice.
func (s *Session) Wake(ctx context.Context) error {
	now := s.Runtime.Now()
	far := now.Add(room.FarPause).UnixMilli()
	rows, err := s.DB.Query(ctx, `SELECT kind, data FROM due WHERE key = ? AND (at <= ? OR kind = ? AND at > ?) ORDER BY kind LIKE ?, kind = ? LIMIT 20`, string(s.Key), now.UnixMilli(), room.DueOutbound, far, dueEvicted+"%", room.DueVectors)
	if err != nil {
		return fmt.Errorf("wake %s: %w", s.Key, err)
	}
	for _, r := range rows {
		kind := r.Text(0)
		if head, _, ok := strings.Cut(kind, ":"); ok {
			kind = head + ":"
		}
		switch kind {
		case dueRun:
			err = s.lookAfter(ctx)
		case dueReset:
			err = s.resetByAlarm(ctx)
		case dueOutbox:
			s.report(ctx)
		case dueExtract:
			err = s.extractLater(ctx, r.Text(1))
		case dueEvicted:
			err = s.evictedDue(ctx, r.Text(0), r.Text(1))
		case dueAgain:
			err = s.queueAgain(ctx, r.Text(1))
		default:
			var ok bool
			if ok, err = s.rooms.Wake(ctx, kind); !ok { // what is of none is not due any more
				err = s.DB.Tx(ctx, []tidemark.Stmt{s.undueStmt(kind)})
			}
		}
		if err != nil {
			s.Logger.Warn("wake", "session", s.Key, "kind", r.Text(0), "err", err)
			err = s.DB.Tx(ctx, []tidemark.Stmt{{SQL: `UPDATE due SET at = ? WHERE key = ? AND kind = ? AND (at <= ? OR at > ?)`,
				Args: []any{now.Add(wakeRetry).UnixMilli(), string(s.Key), r.Text(0), now.UnixMilli(), far}}})
		}
		if err != nil {
			return fmt.Errorf("wake %s: put off %s: %w", s.Key, r.Text(0), err)
		}
		if kind == dueEvicted { // these are the last, and one a wake is enough: each asks a model
			break
		}
	}
	if tries, _ := s.retries(); tries == 0 {
		s.kick()
	}
	s.setAlarm(ctx)
	return nil
}

// wakeRetry is how long something that is due and failed is left alone: an alarm in the past would
// ring again at once.
const wakeRetry = time.Minute

// lookAfter resumes a run that no one works on, begins one for inputs that nobody took up, and looks
// again later.
func (s *Session) lookAfter(ctx context.Context) error {
	active := s.activeRun()
	busy, err := s.Busy(ctx)
	if err != nil {
		return err
	}
	next := s.Runtime.Now().Add(heartbeat)
	tries, until := s.retries()
	if until.After(next) {
		next = until
	}
	stmts := []tidemark.Stmt{s.dueStmt(dueRun, next, "")}
	if busy == "" {
		stmts = append(stmts, s.restStmt())
	}
	if err := s.DB.Tx(ctx, stmts); err != nil {
		return err
	}
	if tries == 0 && (busy == "" || busy != active) {
		return s.resume(ctx)
	}
	return nil
}

// resetRetry is the pause before a reset that could not be made is tried again.
const resetRetry = 5 * time.Minute

// nextReset keeps the alarm of the reset policy.
func (s *Session) nextReset(ctx context.Context) {
	h, err := s.head(ctx)
	if err != nil {
		return
	}
	now := s.Runtime.Now()
	stmt := s.undueStmt(dueReset)
	if at := reset.Alarm(s.settings().Reset, string(s.Key), h.People, now); !at.IsZero() && h.Messages > 0 {
		stmt = s.dueResetStmt(at, now)
	}
	if err := s.DB.Tx(ctx, []tidemark.Stmt{stmt}); err != nil {
		s.warn("plan reset", err)
	}
}

// dueResetStmt plans a reset. One that is overdue keeps the time of its next try, which resetByAlarm has
// set if it was tried: it fails no more often than that.
func (s *Session) dueResetStmt(at, now time.Time) tidemark.Stmt {
	stmt := s.dueStmt(dueReset, at, "")
	stmt.SQL += ` WHERE excluded.at > ? OR at NOT BETWEEN ? AND ?`
	stmt.Args = append(stmt.Args, now.UnixMilli(), now.UnixMilli(), now.Add(resetRetry).UnixMilli())
	return stmt
}

// outboxStmt keeps something for the agent until it has it.
func (s *Session) outboxStmt(id, kind string, payload any) tidemark.Stmt {
	return tidemark.Stmt{SQL: `INSERT INTO outbox(id, key, kind, payload, at) VALUES(?, ?, ?, ?, ?) ON CONFLICT(id) DO NOTHING`,
		Args: []any{id, string(s.Key), kind, mustJSON(payload), s.Runtime.Now().UnixMilli()}}
}

// Kinds of outbox rows.
const (
	outFacts   = "facts"   // a tidemark.Extraction
	outArchive = "archive" // an archive.Info
)

// report tells the agent what it does not know yet: extractions, archives, the directory row. What
// fails stays in the outbox and is tried again by alarm.
func (s *Session) report(ctx context.Context) {
	s.nextReset(ctx)
	rows, err := s.DB.Query(ctx, `SELECT id, kind, payload FROM outbox WHERE key = ? ORDER BY at, id LIMIT ?`, string(s.Key), outboxPage)
	if err != nil {
		s.warn("read outbox", err)
		return
	}
	if at := s.nextReport(); len(rows) == 0 && at.After(s.Runtime.Now()) {
		if err := s.DB.Tx(ctx, []tidemark.Stmt{s.dueStmt(dueOutbox, at, "")}); err != nil {
			s.warn("put off report", err)
		}
		s.setAlarm(ctx)
		return
	}
	told, failed := s.tell(ctx, rows)
	next := tidemark.Stmt{SQL: `DELETE FROM due WHERE key = ? AND kind = ? AND NOT EXISTS (SELECT 1 FROM outbox WHERE key = ?)`,
		Args: []any{string(s.Key), dueOutbox, string(s.Key)}}
	switch {
	case failed:
		next = s.dueStmt(dueOutbox, s.Runtime.Now().Add(outboxRetry), "")
	case len(rows) == outboxPage: // there may be more
		next = s.dueStmt(dueOutbox, s.Runtime.Now(), "")
	}
	if err := s.DB.Tx(ctx, append(append(told, next), s.rooms.ToldStmts()...)); err != nil {
		s.warn("clear outbox", err)
		return
	}
	s.rooms.Told(ctx)
}

// tellSoon tells the agent behind what the caller waits for.
func (s *Session) tellSoon() {
	s.Runtime.Go(func() {
		s.report(s.life)
		s.setAlarm(s.life)
	})
}

// tell hands rows of the outbox and the directory row to the agent, and returns what clears those that it
// has. One that it refuses stays and holds nothing up; when it cannot be reached the rest waits, too.
func (s *Session) tell(ctx context.Context, rows []tidemark.Row) (told []tidemark.Stmt, failed bool) {
	var infos []archive.Info
	var indexed []tidemark.Stmt
	for _, r := range rows {
		done := tidemark.Stmt{SQL: `DELETE FROM outbox WHERE id = ?`, Args: []any{r.Text(0)}}
		info, err := s.tellFacts(ctx, r)
		switch {
		case err != nil:
			s.Logger.Warn("tell agent", "session", s.Key, "item", r.Text(0), "err", err)
			if failed = true; !refused(err) {
				return told, failed
			}
		case info != nil:
			infos, indexed = append(infos, *info), append(indexed, done)
		default:
			told = append(told, done)
		}
	}
	info, err := s.Info(ctx)
	if err != nil {
		return told, failed
	}
	if err := s.Agent.Report(ctx, info, infos); err != nil {
		s.warn("report to agent", err)
		return told, true
	}
	s.hasReported()
	return append(told, indexed...), failed
}

// tellFacts hands a row to the agent; what is in an archive is returned, and told with the directory row.
func (s *Session) tellFacts(ctx context.Context, r tidemark.Row) (*archive.Info, error) {
	kind := r.Text(1)
	if kind == outArchive {
		i := &archive.Info{}
		return i, decode(r.Bytes(2), i)
	}
	switch kind {
	case outFacts:
		var x tidemark.Extraction
		if err := decode(r.Bytes(2), &x); err != nil {
			return nil, err
		}
		return nil, s.Agent.Remember(ctx, x)
	}
	return nil, s.rooms.Report(ctx, kind, r.Bytes(2))
}

// decode reads what an outbox holds; what cannot be read is refused.
func decode(raw []byte, v any) error {
	if err := json.Unmarshal(raw, v); err != nil {
		return fmt.Errorf("decode: %w: %w", err, tidemark.ErrInvalid)
	}
	return nil
}

// refused reports whether an error is of one item, and the next one may be taken.
func refused(err error) bool {
	return errors.Is(err, tidemark.ErrInvalid) || errors.Is(err, tidemark.ErrForbidden) || errors.Is(err, tidemark.ErrTooLarge)
}

// outboxPage is how many items the agent is told at a time.
const outboxPage = 200

// outboxRetry is how long the agent is left alone after it failed.
const outboxRetry = time.Minute

// nextReport is when the directory may be told again. A clock that was set back holds nothing up.
func (s *Session) nextReport() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reported.After(s.Runtime.Now()) {
		s.reported = time.Time{}
	}
	if s.reported.IsZero() {
		return time.Time{}
	}
	return s.reported.Add(s.Settings.ReportEvery)
}

func (s *Session) hasReported() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reported = s.Runtime.Now()
}
