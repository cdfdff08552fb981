package session

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// States of a run.
const (
	stateCalling = "calling" // the model is to be called, or being called
	stateTools   = "tools"   // tool calls are registered and to be run
	stateDone    = "done"
	stateFailed  = "failed"
)

// maxAttempts bounds how often one call of a model is begun, over crashes and cut streams.
const maxAttempts = 3

// run is a turn in work. Each of its writes is fenced: it commits only while the run still has
// this owner, state and log.
type run struct {
	ID       string
	Log      string
	State    string
	Attempt  int
	Round    int
	Started  time.Time
	took     []string                   // inputs that it took up in this life
	origins  []tidemark.Origin          // of these, for those who wait for its answer
	typing   func(to []tidemark.Origin) // shows them that it answers
	partial  string                     // what the model said before an abort
	begun    bool                       // something of an answer to its newest call came
	asked    compaction.Wishes          // what it asked for in the newest reply, beside what readers see
	untidy   string                     // what of that was not done, for its next call
	over     string                     // what its next call is told of a budget
	counted  bool                       // the provider was asked for the size of its view
	scale    scale                      // and said so much
	refits   int                        // how often a refusal for its size was answered
	trial    trial                      // the window that is tried since
	mends    int                        // how often what the model API refuses was looked for
	passed   int                        // and how often it was taken when it was made again
	declined tidemark.EntryID           // the overlay that took out what was left, since a model declined
	command  *queued                    // what it carries out, nil for messages
	unmet    bool                       // it amends a message that had not come
	unended  error                      // why its end could not be written: it is to be taken up again
	owner    string                     // who works on it: new with each take-over, so the last one wins
	mark     string                     // that a person stopped it, as its row says; see stop.go
	release  func()                     // gives back what its view was let in with, nil when it was not asked
}

// running is what works in this life.
type running struct {
	mu       sync.Mutex // guards the following fields, and those that say so; never held over a wait
	outage   outage
	cancel   context.CancelCauseFunc
	active   string          // id of the run in work
	mine     map[string]bool // runs that this life has begun or taken up and not let go of
	reported time.Time       // when the agent's directory was told last
}

// activeRun returns the run that works in this life, empty for none.
func (s *Session) activeRun() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.active
}

// kick starts a run if inputs wait and none is in work. It returns at once. One that works in this
// life looks for more when it ends, so ten thousand inputs behind it cost no attempt each.
func (s *Session) kick() {
	if s.activeRun() != "" {
		return
	}
	s.Runtime.Go(func() {
		for s.life.Err() == nil {
			r, err := s.begin(s.life)
			if errors.Is(err, tidemark.ErrConflict) {
				return // nothing waits, or a run is in work and will see what waits
			}
			if err != nil {
				s.failed("start run", nil, err)
				s.retryLater(err)
				return
			}
			if s.work(r) != workDone {
				return
			}
		}
	})
}

// begin makes the row of a run. The head may move between our look at it and the insert, by a reset
// that ends meanwhile; a run of the old log would write where nobody looks, so it is not begun, and
// whoever moved the head looks for what waits.
func (s *Session) begin(ctx context.Context) (*run, error) {
	rows, err := s.DB.Query(ctx, `SELECT 1 FROM inputs WHERE key = ? AND state = 'new' LIMIT 1`, string(s.Key))
	if err != nil {
		return nil, fmt.Errorf("begin run: %w", err)
	}
	if len(rows) == 0 { // as at the end of most turns: no need to ask for the write lock
		return nil, tidemark.ErrConflict
	}
	now := s.Runtime.Now()
	h, err := s.head(ctx)
	if err != nil {
		return nil, err
	}
	r := s.newRun(h.Log)
	s.claim(r.ID)
	err = s.DB.Tx(ctx, []tidemark.Stmt{{
		SQL: `INSERT INTO runs(id, key, log, owner, state, started, updated) SELECT ?, key, log, ?, 'calling', ?, ?
			FROM heads WHERE key = ? AND log = ? AND NOT EXISTS (SELECT 1 FROM runs WHERE key = ? AND state IN ('calling', 'tools'))
			AND EXISTS (SELECT 1 FROM inputs WHERE key = ? AND state = 'new')`,
		Args: []any{r.ID, r.owner, now.UnixMilli(), now.UnixMilli(), string(s.Key), h.Log, string(s.Key), string(s.Key)}, Want: 1,
	}, s.dueStmt(dueRun, now.Add(heartbeat), "")})
	if err != nil {
		s.release(r.ID)
		return nil, fmt.Errorf("begin run: %w", err)
	}
	s.setAlarm(ctx)
	return r, nil
}

// newRun returns a run that is about to begin on a log.
func (s *Session) newRun(log string) *run {
	now := s.Runtime.Now()
	return &run{ID: tidemark.NewID(now), Log: log, State: stateCalling, Started: now, owner: s.owner()}
}

// claim reports whether the caller is the one in this life to work on a run.
func (s *Session) claim(run string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mine[run] {
		return false
	}
	s.mine[run] = true
	return true
}

func (s *Session) release(run string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.mine, run)
}

// heartbeat is how long a run may be silent before a wake looks after it.
const heartbeat = time.Minute

// worked says how a run ended for the queue behind it.
type worked int

const (
	workDone    worked = iota // look for more
	workStalled               // it took nothing up, so the same would happen again at once: it is tried again later
	workStopped               // a person stopped it before it took anything up: what waits is answered with the next input
)

// work carries a run through and records how it ended. A panic ends the turn visibly, and goes on
// to the runtime, which counts it.
func (s *Session) work(r *run) worked {
	ctx, cancel := context.WithCancelCause(s.life)
	s.mu.Lock()
	s.cancel, s.active = cancel, r.ID
	s.mu.Unlock()
	defer func() {
		if p := recover(); p != nil {
			s.fail(r, fmt.Errorf("the turn failed inside the server: %w", errPanic))
			s.ended(r, cancel)
			s.kick() // this goroutine does not look for more
			panic(p)
		}
	}()
	limited, stop := s.Runtime.WithTimeout(ctx, s.settings().TurnTimeout)
	defer stop()
	defer r.releaseView()
	s.hub.send(Notice{Type: NoticeStart, Run: r.ID})
	r.typing = s.rooms.Teller().Typing(limited)
	r.typing(r.origins) // of a run that was taken over
	defer s.rooms.Skipper().Ended(s.life, r.ID)
	err := r.halted()
	if err == nil {
		err = s.rooms.Skipper().Again(limited, r.ID)
	}
	if err == nil {
		err = s.turn(limited, r)
	}
	if errors.Is(err, errParked) {
		s.ended(r, cancel)
		s.parked(r)
		return workDone
	}
	if err != nil {
		err = s.why(r, cause(limited, err))
		s.fail(r, err)
	}
	s.ended(r, cancel)
	s.rooms.Teller().Dispatch()
	s.report(s.life)
	s.setAlarm(s.life)
	switch {
	case err == nil || len(r.took) > 0:
		if r.unended == nil {
			s.recovered(r.Log)
		}
		return workDone
	case errors.Is(err, tidemark.ErrAborted):
		s.recovered(r.Log)
		return workStopped
	}
	if r.unended == nil {
		s.retryLater(err)
	}
	return workStalled
}

// errPanic stands for what a person need not read.
var errPanic = errors.New("internal error")

// ended lets go of a run. The next one may have begun already, so only what is r's is cleared.
func (s *Session) ended(r *run, cancel context.CancelCauseFunc) {
	s.mu.Lock()
	if s.active == r.ID {
		s.cancel, s.active = nil, ""
	}
	delete(s.mine, r.ID)
	s.mu.Unlock()
	cancel(nil)
	if r.unended != nil {
		s.retryLater(r.unended)
	}
}

// cause returns why ctx ended if it did, since "context canceled" tells no one anything.
func cause(ctx context.Context, err error) error {
	if c := context.Cause(ctx); c != nil && !errors.Is(err, tidemark.ErrConflict) {
		return c
	}
	return err
}

// fence is the first statement of each write of a run: it moves the run on, or undoes the whole
// transaction when another life or a reset took it over, or a person stopped it.
func (s *Session) fence(r *run, state string) tidemark.Stmt {
	return tidemark.Stmt{
		SQL:  `UPDATE runs SET state = ?, updated = ?, round = ?, attempt = ? WHERE id = ? AND owner = ? AND state = ? AND log = ? AND error = ?`,
		Args: []any{state, s.Runtime.Now().UnixMilli(), r.Round, r.Attempt, r.ID, r.owner, r.State, r.Log, r.mark}, Want: 1,
	}
}

// step commits statements under the fence and moves the run to a state.
func (s *Session) step(ctx context.Context, r *run, state string, stmts ...tidemark.Stmt) error {
	if err := s.DB.Tx(ctx, append([]tidemark.Stmt{s.fence(r, state)}, stmts...)); err != nil {
		return err
	}
	r.State = state
	return nil
}

// last is step for the last write of what a run does beside answering, a compaction or a reset. When
// a command asked for it the same transaction ends the command and the run: a kill right behind it
// must not make the next life do it again.
func (s *Session) last(ctx context.Context, r *run, stmts ...tidemark.Stmt) error {
	if r.command == nil {
		return s.step(ctx, r, stateCalling, stmts...)
	}
	// Nobody resumes a run that is done, and a command has much for the agent, so that is due by itself.
	return s.step(ctx, r, stateDone, append(append(stmts, commandDone(r, *r.command)), s.endStmts(0)...)...)
}

// doneStmt marks the inputs of a run as answered.
func doneStmt(r *run) tidemark.Stmt {
	return tidemark.Stmt{SQL: `UPDATE inputs SET state = 'done' WHERE run = ? AND state = 'taken'`, Args: []any{r.ID}} // inputs_run
}

// fail ends a run visibly: the row, an event in the log, a notice. Calls without a result get one,
// so that the history stays whole. When the host drops the object, the run is left as it is: the
// next life takes it up.
func (s *Session) fail(r *run, why error) {
	if s.life.Err() != nil || errors.Is(why, tidemark.ErrDead) {
		return
	}
	ctx := s.life
	s.Logger.Warn("run failed", "session", s.Key, "run", r.ID, "err", why)
	if r.halted() != nil { // who stopped it may have taken up for it what it was about to
		var err error
		if r.took, r.origins, err = s.inputsOf(ctx, r.ID); err != nil {
			s.failed("find what was stopped", r, err)
			r.unended = err
			return
		}
	}
	var stmts []tidemark.Stmt
	if r.State == stateTools {
		more, err := s.closeCalls(ctx, r, why)
		if err != nil {
			s.failed("close calls", r, err)
			r.unended = err
			return
		}
		stmts = append(stmts, more...)
	}
	if r.partial != "" && r.State == stateCalling {
		more, err := s.partialStmts(ctx, r)
		if err != nil {
			s.failed("keep partial answer", r, err)
		}
		stmts = append(stmts, more...)
	}
	kind := "error"
	if errors.Is(why, tidemark.ErrAborted) {
		kind = "abort"
	}
	if len(r.took) > 0 { // else it is tried again, and the log need not say so each time
		stmts = append(stmts, s.eventStmt(r.Log, tidemark.Event{Type: kind, Text: Explain(why)}))
		lines, err := s.rooms.Teller().Lines(ctx, r.Log, r.origins, Explain(why), told(why)...)
		if err != nil {
			s.failed("tell of a failure", nil, err)
		}
		stmts = append(stmts, lines...)
	}
	stmts = append(stmts, s.rooms.OutcomeStmts(ctx, r.turn(), tidemark.Outcome{Error: Explain(why)})...)
	stmts = append(append(stmts, s.endStmts(outboxRetry)...), doneStmt(r), tidemark.Stmt{SQL: `UPDATE runs SET error = ? WHERE id = ?`, Args: []any{Explain(why), r.ID}})
	err := s.step(ctx, r, stateFailed, stmts...)
	if errors.Is(err, tidemark.ErrConflict) {
		if r.mark == "" {
			if err = s.why(r, err); r.mark != "" { // it was stopped a moment ago
				s.fail(r, err)
			}
		}
		return // another life has the run and answers it
	}
	if err != nil {
		// It has not ended: it goes on at the state it had, when the storage is back.
		s.failed("record failure", r, err)
		s.hub.send(Notice{Type: NoticeRestart, Run: r.ID, Text: Explain(why)})
		r.unended = err
		return
	}
	s.hub.send(Notice{Type: NoticeError, Run: r.ID, Inputs: r.took, Text: Explain(why), err: why})
}

// partialStmts appends what the model said before it was stopped: the person has read it.
func (s *Session) partialStmts(ctx context.Context, r *run) ([]tidemark.Stmt, error) {
	chain, err := s.log.Chain(ctx, r.Log)
	if err != nil {
		return nil, err
	}
	now := s.Runtime.Now()
	m := tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{tidemark.Text(r.partial)}}
	e := tidemark.Entry{ID: tidemark.EntryID(tidemark.NewID(now)), Kind: tidemark.KindMessage, At: now, Tokens: tidemark.Estimate(m),
		Call: &tidemark.Call{Model: s.settings().Model, Stop: "aborted"}, Origin: tidemark.Origin{From: tidemark.FromModel}}
	stmts, err := s.entryStmts(ctx, r.Log, &e, m, chain)
	return append(stmts, s.countStmt()), err
}

// Busy reports the run in work, empty for none.
func (s *Session) Busy(ctx context.Context) (string, error) {
	rows, err := s.DB.Query(ctx, `SELECT id FROM runs WHERE key = ? AND state IN ('calling', 'tools') LIMIT 1`, string(s.Key))
	if err != nil || len(rows) == 0 {
		return "", err
	}
	return rows[0].Text(0), nil
}

// resume takes up a run that no one works on, because an earlier life left it or its end could not
// be written, and starts one for inputs that wait.
func (s *Session) resume(ctx context.Context) error {
	id, err := s.Busy(ctx)
	if err != nil {
		return fmt.Errorf("find run: %w", err)
	}
	if id == "" {
		s.kick()
		return nil
	}
	if !s.claim(id) {
		return nil // it works in this life
	}
	r, err := s.takeOver(ctx, id)
	if err != nil {
		s.release(id)
		if errors.Is(err, tidemark.ErrConflict) {
			return nil // it has ended meanwhile, or a later life has it
		}
		return fmt.Errorf("take over run %s: %w", id, err)
	}
	s.Logger.Info("resume run", "session", s.Key, "run", r.ID, "state", r.State, "round", r.Round)
	s.Runtime.Go(func() {
		s.hub.send(Notice{Type: NoticeRestart, Run: r.ID})
		if s.work(r) != workStalled {
			s.kick()
		}
	})
	return nil
}

// takeOver makes this life the owner of a run and reads where it stands.
func (s *Session) takeOver(ctx context.Context, id string) (*run, error) {
	rows, err := s.DB.Query(ctx, `SELECT log, state, attempt, round, started, owner, error FROM runs WHERE id = ? LIMIT 1`, id)
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 || rows[0].Text(1) != stateCalling && rows[0].Text(1) != stateTools {
		return nil, tidemark.ErrConflict
	}
	row := rows[0]
	r := &run{ID: id, Log: row.Text(0), State: row.Text(1), Attempt: int(row.Int(2)), Round: int(row.Int(3)), Started: time.UnixMilli(row.Int(4)),
		owner: s.owner(), mark: row.Text(6)}
	err = s.DB.Tx(ctx, []tidemark.Stmt{{SQL: `UPDATE runs SET owner = ? WHERE id = ? AND owner = ? AND owner < ? AND state = ?`,
		Args: []any{r.owner, r.ID, row.Text(5), s.ownerBound(), r.State}, Want: 1}})
	if err != nil {
		return nil, err
	}
	reply, err := s.lastReply(ctx, r.Log)
	if err != nil {
		return nil, err
	}
	s.hub.told(reply)
	r.took, r.origins, err = s.inputsOf(ctx, r.ID)
	return r, err
}

func (s *Session) inputsOf(ctx context.Context, run string) ([]string, []tidemark.Origin, error) {
	rows, err := s.DB.Query(ctx, `SELECT id, origin FROM inputs WHERE run = ? ORDER BY n LIMIT 1000`, run)
	if err != nil {
		return nil, nil, fmt.Errorf("read inputs of run %s: %w", run, err)
	}
	out, origins := make([]string, len(rows)), make([]tidemark.Origin, 0, len(rows))
	for i, r := range rows {
		out[i] = r.Text(0)
		var o tidemark.Origin
		if err := json.Unmarshal(r.Bytes(1), &o); err != nil {
			return nil, nil, fmt.Errorf("read input %s: %w", out[i], err)
		}
		if !o.Quiet { // what asks for nothing has nobody's rights
			origins = append(origins, o)
		}
	}
	return out, origins, nil
}
