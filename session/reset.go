package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/reset"
	"github.com/tidemark-ai/tidemark/summary"
)

// Steps of a reset, each keyed by the old log, so that one which was cut off is done again from
// its step.
const (
	stepArchive = "archive"
	stepExtract = "extract"
	stepMove    = "move"
)

// resetting is a reset in work, as it stands on disk.
type resetting struct {
	Old      string
	New      string
	Step     string
	Reason   string
	At       time.Time
	Archive  string
	Messages int
	facts    []tidemark.Extraction
	usage    tidemark.Usage
	owed     bool // the memories could not be extracted
	early    int  // memories of what had left the view, which the agent is told already
}

// Reset is the data of a reset event.
type Reset struct {
	Reason        string          `json:"reason"`
	Old           string          `json:"oldSessionId"`
	New           string          `json:"newSessionId"`
	Messages      int             `json:"archivedMessages"`
	Archive       string          `json:"archivedTo,omitempty"`
	TokensCleared tidemark.Tokens `json:"tokensCleared"`
	Memories      int             `json:"memories"`
	MemoriesOwed  bool            `json:"memoriesOwed,omitempty"` // extracted later
	Usage         tidemark.Usage  `json:"usage"`                  // of the calls for the memories
}

// resetNow carries out /reset. A reset that an alarm asked for is done only if it is still due.
func (s *Session) resetNow(ctx context.Context, r *run, reason string) error {
	if reason == reasonAlarm {
		h, err := s.head(ctx)
		if err != nil {
			return err
		}
		due, why := reset.Due(s.settings().Reset, h.People, s.Runtime.Now())
		if !due || h.Messages == 0 {
			return nil
		}
		return s.reset(ctx, r, why)
	}
	err := s.reset(ctx, r, cmp.Or(reason, "manual"))
	if errors.Is(err, errNotArchived) {
		// Who asked is told that the session stays as it is: it must not vanish with the next input.
		drop := tidemark.Stmt{SQL: `DELETE FROM resets WHERE old = ? AND step = ?`, Args: []any{r.Log, stepArchive}}
		return errors.Join(err, s.step(ctx, r, stateCalling, drop))
	}
	return err
}

// reasonAlarm marks a reset that the policy's alarm asked for.
const reasonAlarm = "alarm"

// resetIfDue resets before an input begins a turn, if the policy says so. The input waits in the
// queue meanwhile and begins the new session.
func (s *Session) resetIfDue(ctx context.Context, r *run, q queued) error {
	h, err := s.head(ctx)
	if err != nil {
		return err
	}
	open, err := s.openReset(ctx, h.Log)
	if err != nil {
		return err
	}
	due, reason := reset.Due(s.settings().Reset, h.People, q.At)
	if open != nil {
		due, reason = true, open.Reason
	}
	if !due || h.Messages == 0 {
		return nil
	}
	r.origins = []tidemark.Origin{q.Origin} // they see why their conversation begins anew
	err = s.reset(ctx, r, reason)
	r.origins = nil // the input is not taken up yet
	if errors.Is(err, errNotArchived) {
		// The person is answered in the old session; the reset is begun again with the next input.
		s.warn("reset put off", err)
		if open != nil {
			return nil // said before
		}
		return s.stepEvent(ctx, r, tidemark.Event{Type: "error", Text: "The reset that was due is put off: the archive cannot be written now."})
	}
	return err
}

// errNotArchived says that a reset did not begin to change anything.
var errNotArchived = errors.New("the session stays as it is, because its archive could not be written")

// resetByAlarm queues the reset that is due, unless the session is empty.
func (s *Session) resetByAlarm(ctx context.Context) error {
	h, err := s.head(ctx)
	if err != nil {
		return err
	}
	now := s.Runtime.Now()
	if due, _ := reset.Due(s.settings().Reset, h.People, now); due && h.Messages > 0 {
		// The next try is planned before this one begins, since its end plans anew. A try of its own
		// is an input of its own; one too many finds nothing due.
		if err := s.DB.Tx(ctx, []tidemark.Stmt{s.dueStmt(dueReset, now.Add(resetRetry), "")}); err != nil {
			return fmt.Errorf("plan reset: %w", err)
		}
		_, err = s.Post(ctx, Input{ID: fmt.Sprintf("reset:%s:%d", h.Log, now.UnixMilli()), Kind: InputReset, Text: reasonAlarm})
		return err
	}
	s.nextReset(ctx)
	return nil
}

// openReset returns the reset that is in work for a log, or nil.
func (s *Session) openReset(ctx context.Context, log string) (*resetting, error) {
	rows, err := s.DB.Query(ctx, `SELECT old, new, step, reason, at, archive, messages FROM resets WHERE old = ? AND step <> 'done' LIMIT 1`, log)
	if err != nil {
		return nil, fmt.Errorf("read reset: %w", err)
	}
	if len(rows) == 0 {
		return nil, nil
	}
	r := rows[0]
	return &resetting{Old: r.Text(0), New: r.Text(1), Step: r.Text(2), Reason: r.Text(3), At: time.UnixMilli(r.Int(4)), Archive: r.Text(5), Messages: int(r.Int(6))}, nil
}

// reset archives durably, extracts memories, then moves the head to a new log. If the archive
// cannot be written, nothing is reset. A failed extraction delays nothing: it is owed, and made
// from the log later.
func (s *Session) reset(ctx context.Context, r *run, reason string) error {
	x, err := s.openReset(ctx, r.Log)
	if err != nil {
		return err
	}
	if x == nil {
		now := s.Runtime.Now()
		x = &resetting{Old: r.Log, New: tidemark.NewID(now), Step: stepArchive, Reason: reason, At: now}
		insert := tidemark.Stmt{SQL: `INSERT INTO resets(old, key, new, step, reason, at) VALUES(?, ?, ?, ?, ?, ?)`,
			Args: []any{x.Old, string(s.Key), x.New, x.Step, x.Reason, now.UnixMilli()}, Want: 1}
		if err := s.step(ctx, r, stateCalling, insert); err != nil {
			return fmt.Errorf("begin reset: %w", err)
		}
	}
	if x.Step == stepArchive {
		if err := s.archiveWhole(ctx, r, x); err != nil {
			if ctx.Err() != nil || errors.Is(err, tidemark.ErrConflict) || errors.Is(err, tidemark.ErrDead) {
				return err
			}
			return fmt.Errorf("reset: %w: %w", errNotArchived, err)
		}
	}
	if x.Step == stepExtract {
		if err := s.extract(ctx, r, x); err != nil {
			return err
		}
	}
	return s.move(ctx, r, x)
}

// archiveWhole writes the whole session: its parts and its tail.
func (s *Session) archiveWhole(ctx context.Context, r *run, x *resetting) error {
	h, err := s.head(ctx)
	if err != nil {
		return err
	}
	info, err := s.parts.Whole(ctx, x.Old, x.At, h.Usage)
	if err != nil {
		return err
	}
	x.Archive, x.Messages = info.Key, info.Messages
	stmts := []tidemark.Stmt{{SQL: `UPDATE resets SET step = ?, archive = ?, messages = ? WHERE old = ? AND step = ?`,
		Args: []any{stepExtract, x.Archive, x.Messages, x.Old, stepArchive}, Want: 1}}
	if info.Key != "" {
		stmts = append(stmts, s.parts.Tell(info))
	}
	if err := s.step(ctx, r, stateCalling, stmts...); err != nil {
		return err
	}
	x.Step = stepExtract
	return nil
}

// extract asks for the memories of what no compaction has read yet.
func (s *Session) extract(ctx context.Context, r *run, x *resetting) error {
	if !s.settings().NoCompaction && !s.settings().NoMemories {
		defer r.releaseView()
		limited, stop := s.Runtime.WithTimeout(ctx, extractDeadline)
		defer stop()
		before, err := s.readAllEvicted(limited)
		x.early, x.usage = countFacts(before.Facts), before.Usage
		if err == nil {
			v, e := s.light(ctx, r) // its log is the old one still
			if e != nil {
				return e
			}
			var p *summary.Draft
			p, err = s.extraction(limited, v)
			x.facts, x.usage = p.Facts, x.usage.Add(p.Usage)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		x.owed = err != nil
		if err != nil {
			s.warn("memories of a reset are owed", err)
		}
	}
	stmts := []tidemark.Stmt{{SQL: `UPDATE resets SET step = ? WHERE old = ? AND step = ?`, Args: []any{stepMove, x.Old, stepExtract}, Want: 1}}
	for _, f := range x.facts {
		stmts = append(stmts, s.outboxStmt("facts:"+f.ID, outFacts, f))
	}
	stmts = append(stmts, s.dueStmt(dueOutbox, s.Runtime.Now().Add(outboxRetry), ""))
	if x.owed {
		stmts = append(stmts, s.dueStmt(dueExtract+x.Old, s.Runtime.Now().Add(cooldowns[0]), x.Old))
	}
	if err := s.step(ctx, r, stateCalling, stmts...); err != nil {
		return fmt.Errorf("store memories: %w", err)
	}
	x.Step = stepMove
	return nil
}

// move begins the new log: the last step, in one transaction with the run that goes on in it.
func (s *Session) move(ctx context.Context, r *run, x *resetting) error {
	h, err := s.head(ctx)
	if err != nil {
		return err
	}
	now := s.Runtime.Now()
	done := Reset{Reason: x.Reason, Old: x.Old, New: x.New, Messages: x.Messages, Archive: x.Archive, TokensCleared: h.Context,
		Memories: x.early + countFacts(x.facts), MemoriesOwed: x.owed, Usage: x.usage}
	event := tidemark.Event{Type: "reset", Text: done.line(), Data: []byte(mustJSON(done))}
	stmts := append(s.logStmts(host.Info{ID: x.New, Key: s.Key, Previous: x.Old, Created: now}, x.Old), []tidemark.Stmt{
		{SQL: `UPDATE runs SET log = ? WHERE id = ?`, Args: []any{x.New, r.ID}, Want: 1},
		{SQL: `UPDATE resets SET step = 'done' WHERE old = ? AND step = ?`, Args: []any{x.Old, stepMove}, Want: 1},
		{SQL: `UPDATE plans SET state = 'dropped' WHERE key = ? AND state = 'open'`, Args: []any{string(s.Key)}},
		{SQL: `UPDATE heads SET log = ?, active = ?, people = ?, messages = 0, context = 0, compactions = 0, resets = resets + 1, usage = '{}',
			prompt = '', cooldown = 0, failures = 0 WHERE key = ? AND log = ?`, Args: []any{x.New, now.UnixMilli(), now.UnixMilli(), string(s.Key), x.Old}, Want: 1},
		s.undueStmt(dueReset),
	}...)
	stmts = append(stmts, s.rooms.PruneStmts()...)
	lines, err := s.rooms.Teller().Lines(ctx, x.New, r.origins, done.people())
	if err != nil {
		return err
	}
	if err := s.last(ctx, r, append(append(stmts, s.eventStmt(x.New, event)), lines...)...); err != nil {
		return fmt.Errorf("move to the new session: %w", err)
	}
	r.Log = x.New
	s.lineage.Forget()
	s.hub.send(Notice{Type: NoticeEvent, Run: r.ID, Event: &event})
	s.rooms.Teller().Dispatch()
	s.rooms.Closed(ctx)
	s.report(ctx)
	return nil
}

// people is what who asked for a reset, or caused it, reads on their phone.
func (d Reset) people() string {
	return fmt.Sprintf("New conversation (%s). The %d messages of the last one are archived.", d.Reason, d.Messages)
}

// line is what people read of a reset.
func (d Reset) line() string {
	s := fmt.Sprintf("New session (%s). %d messages archived", d.Reason, d.Messages)
	if d.Archive != "" {
		s += " to " + d.Archive
	}
	if d.Memories > 0 {
		s += ", " + memories(d.Memories)
	}
	if d.MemoriesOwed {
		s += ", memories follow when the model can be reached"
	}
	return s + "."
}
