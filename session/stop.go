package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// Abort stops the run in work. What the model said so far stays in the log. It holds for this life only: a
// process that dies first goes on with the run. What a person was told to be stopped is; see stop.
func (s *Session) Abort() bool { return s.abort("", tidemark.ErrAborted) || s.abortParked(s.life) }

// abort cancels a run of this life, or whichever is in work.
func (s *Session) abort(run string, why error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cancel == nil || run != "" && run != s.active {
		return false
	}
	s.cancel(why)
	return true
}

// stopped is why a run ends when a person says so over a channel.
type stopped struct{ by string } // see tidemark.Origin.Reader; empty for none

func (e *stopped) Error() string { return "stopped: " + tidemark.ErrAborted.Error() }

func (e *stopped) Unwrap() error { return tidemark.ErrAborted }

// told are those who know already why a run ended.
func told(why error) []string {
	var st *stopped
	if errors.As(why, &st) && st.by != "" {
		return []string{st.by}
	}
	return nil
}

// stopMark begins the error of a run in work that a person stopped; who it was stands behind it. No write
// of a run goes through beside a mark that it does not know, so what a person was told stays true.
const stopMark = "stop:"

// halted is why a run ends that is marked, nil for one that is not.
func (r *run) halted() error {
	by, ok := strings.CutPrefix(r.mark, stopMark)
	if !ok {
		return nil
	}
	st := &stopped{}
	var at tidemark.Address // in older marks
	if json.Unmarshal([]byte(by), &st.by) != nil && json.Unmarshal([]byte(by), &at) == nil {
		st.by = at.Reader()
	}
	return st
}

// why returns that a run was stopped, if its row says so and it did not know, and else err.
func (s *Session) why(r *run, err error) error {
	if r.mark != "" || s.life.Err() != nil {
		return err
	}
	rows, e := s.DB.Query(s.life, `SELECT error FROM runs WHERE id = ? AND owner = ? AND state IN ('calling', 'tools') LIMIT 1`, r.ID, r.owner)
	if e != nil || len(rows) == 0 {
		return err
	}
	r.mark = rows[0].Text(0)
	if st := r.halted(); st != nil {
		return st
	}
	return err
}

// inWork returns the run that a person can stop, empty for none. An import is not for them to stop.
func (s *Session) inWork(ctx context.Context) (string, error) {
	if run := s.activeRun(); run != "" {
		return run, nil
	}
	rows, err := s.DB.Query(ctx, `SELECT run FROM inputs WHERE key = ? AND state = 'taken' LIMIT 1`, string(s.Key)) // it is about to be taken up
	if err != nil || len(rows) == 0 {
		return "", err
	}
	return rows[0].Text(0), nil
}

// stop stops the run in work, at once and not behind it: stmts are those of the command, which is done
// with them. One transaction says so and marks the run, so that neither a reply which comes at the same
// moment nor a later life makes it untrue.
func (s *Session) stop(ctx context.Context, in Input, stmts []tidemark.Stmt) error {
	const races = 5 // with runs that end and begin
	for range races {
		run, err := s.inWork(ctx)
		if err != nil {
			return fmt.Errorf("find run: %w", err)
		}
		err = s.stopRun(ctx, in, run, stmts)
		if !errors.Is(err, tidemark.ErrConflict) || run == "" {
			return err
		}
		rows, err := s.DB.Query(ctx, `SELECT 1 FROM inputs WHERE key = ? AND id = ? LIMIT 1`, string(s.Key), in.ID)
		if err != nil || len(rows) > 0 {
			return errors.Join(err, tidemark.ErrConflict) // it was received before
		}
	}
	return s.stopRun(ctx, in, "", stmts)
}

func (s *Session) stopRun(ctx context.Context, in Input, run string, stmts []tidemark.Stmt) error {
	text, by := "There is nothing to stop.", ""
	if in.Origin.To != nil {
		by = in.Origin.Reader()
	}
	if !s.mayChange(in.Origin) {
		run, text = "", s.notYours()
	}
	h, err := s.head(ctx)
	if err != nil {
		return err
	}
	stmts = stmts[:len(stmts):len(stmts)]
	if run != "" {
		text = "Stopped."
		stmts = append(stmts, tidemark.Stmt{SQL: `UPDATE runs SET error = CASE error WHEN '' THEN ? ELSE error END WHERE id = ? AND state IN ('calling', 'tools')`,
			Args: []any{stopMark + mustJSON(by), run}, Want: 1},
			// A command that a run carries out stands first in the queue until it is done.
			tidemark.Stmt{SQL: `UPDATE inputs SET state = 'done', run = ? WHERE n = (SELECT min(n) FROM inputs WHERE key = ? AND state = 'new') AND kind NOT IN ('message', 'amend')
				AND NOT EXISTS (SELECT 1 FROM inputs WHERE run = ?)`, Args: []any{run, string(s.Key), run}})
		early, err := s.earlyStmts(ctx, h.Log, run)
		if err != nil {
			return err
		}
		stmts = append(stmts, early...)
	}
	return s.answerNow(ctx, in, h.Log, stmts, text, func() {
		if run != "" && !s.abort(run, &stopped{by: by}) {
			s.Runtime.Go(s.goOn) // nobody works on one that waits for a decision: it is ended by taking it up
		}
	})
}

// earlyStmts take up what a run would answer that took nothing up yet, for the run to end with: it may be at
// a reset which comes first, and no answer follows to what a person was told is stopped. That reset archives
// once more, since these stand behind what it has archived.
func (s *Session) earlyStmts(ctx context.Context, log, id string) ([]tidemark.Stmt, error) {
	rows, err := s.DB.Query(ctx, `SELECT 1 FROM inputs WHERE run = ? LIMIT 1`, id)
	if err != nil || len(rows) > 0 {
		return nil, err
	}
	q, err := s.waiting(ctx)
	if err != nil {
		return nil, err
	}
	if len(q) > 0 && q[0].Kind != InputMessage && q[0].Origin.From == "" { // of an alarm, which they know nothing of
		q = q[1:]
	}
	q, amended, err := s.late(ctx, batch(q, s.settings().Window))
	if err != nil || len(q) == 0 {
		return nil, err
	}
	if err := s.load(ctx, q); err != nil {
		return nil, err
	}
	if slices.ContainsFunc(q, func(in queued) bool { return len(in.Payload) == 0 }) {
		return nil, fmt.Errorf("stop run %s: its inputs are taken up: %w", id, tidemark.ErrConflict)
	}
	chain, err := s.log.Chain(ctx, log)
	if err != nil {
		return nil, err
	}
	taken, err := s.takeStmts(ctx, &run{ID: id, Log: log}, q, chain)
	if err != nil {
		return nil, err
	}
	return append([]tidemark.Stmt{
		{SQL: `UPDATE runs SET log = log WHERE id = ? AND log = ?`, Args: []any{id, log}, Want: 1}, // or its reset has just moved on
		{SQL: `UPDATE heads SET messages = messages + ? WHERE key = ?`, Args: []any{len(q), string(s.Key)}, Want: 1},
		{SQL: `DELETE FROM outbox WHERE id IN (SELECT 'archive:' || archive FROM resets WHERE old = ? AND step IN (?, ?))`, Args: []any{log, stepExtract, stepMove}},
		{SQL: `UPDATE resets SET step = ?, archive = '', messages = 0 WHERE old = ? AND step IN (?, ?)`, Args: []any{stepArchive, log, stepExtract, stepMove}},
	}, append(taken, matchStmts(amended)...)...), nil
}
