package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/internal/clip"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// States of a run.
const (
	RunBegun   = "begun"   // about to be handed to its session
	RunRunning = "running" // its session has it
	RunOK      = "ok"
	RunFailed  = "failed"
	RunSkipped = "skipped" // nothing was to be done, see Reason
	RunMissed  = "missed"  // nothing ran at the time, and then it was too late
)

const (
	handOverTime  = 30 * time.Second // for a session to take a run
	handOverTries = 3                // beside the first
	retryHandOver = time.Minute      // before the first of these; doubled each time
	lostAfter     = 6 * time.Hour    // without word of its end, a run is given up
	maxReason     = 300
)

// ScheduleRun is one time of a schedule.
type ScheduleRun struct {
	Due       time.Time        `json:"due"`
	State     string           `json:"state"` // begun, running, ok, failed, skipped, missed
	Reason    string           `json:"reason,omitempty"`
	Times     int              `json:"times,omitempty"`  // so often in a row, where nothing ran
	Missed    int              `json:"missed,omitempty"` // times before it that this one stands for
	Started   time.Time        `json:"started,omitzero"`
	Finished  time.Time        `json:"finished,omitzero"`
	Session   tidemark.Key     `json:"session,omitempty"`
	Entry     tidemark.EntryID `json:"entry,omitempty"` // of the answer, in the log of the session
	Text      string           `json:"text,omitempty"`  // the first 4 KiB of it
	Delivered bool             `json:"delivered,omitempty"`
	Usage     tidemark.Usage   `json:"usage,omitzero"`
}

// begun is a run that is about to begin.
type begun struct {
	schedule Schedule
	due      int64
	missed   int
}

// handed is what a row keeps of a run until its session has it.
type handed struct {
	Key    tidemark.Key    `json:"key"`
	To     string          `json:"to,omitempty"`
	Errand tidemark.Errand `json:"errand"`
}

const runColumns = `due, state, reason, times, missed, started, finished, ran`

// ScheduleRuns lists the newest runs of a schedule, the newest first.
func (p *planner) ScheduleRuns(ctx context.Context, id string, limit int) ([]ScheduleRun, error) {
	s, err := p.Schedule(ctx, id)
	if err != nil {
		return nil, err
	}
	return p.runs(ctx, s.n, min(limit, MaxScheduleRuns))
}

func (p *planner) runs(ctx context.Context, n int64, limit int) ([]ScheduleRun, error) {
	return host.Read(ctx, p.cfg.DB, "list runs of schedule "+scheduleID(n), p.scanRun, `SELECT `+runColumns+` FROM agent_schedule_runs WHERE agent = ? AND schedule = ? ORDER BY due DESC LIMIT ?`, p.cfg.Name, n, limit)
}

func (p *planner) scanRun(r tidemark.Row) (run ScheduleRun, err error) {
	err = json.Unmarshal(r.Bytes(7), &run)
	run.Due, run.State, run.Reason, run.Missed = p.at(r.Int(0)), r.Text(1), r.Text(2), int(r.Int(4))
	if run.Times = 0; r.Int(3) > 1 {
		run.Times = int(r.Int(3))
	}
	run.Started, run.Finished = p.at(r.Int(5)), p.at(r.Int(6))
	return run, err
}

// at is a stored time, in the agent's zone.
func (p *planner) at(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).In(p.cfg.Zone)
}

// RunSchedule begins a run now, beside those that come by themselves.
//
// # Errors
//
// ErrBusy while one of the schedule's is at work, or as many of the agent as may.
func (p *planner) RunSchedule(ctx context.Context, id string) (ScheduleRun, error) {
	s, err := p.Schedule(ctx, id)
	if err != nil {
		return ScheduleRun{}, err
	}
	if p.cfg.NoSchedules {
		return ScheduleRun{}, fmt.Errorf("schedules are off here (schedules.enabled): %w", tidemark.ErrForbidden)
	}
	now := p.now()
	if s.plan.Beats() && s.Prompt == "" { // whatever the hour is
		text, err := p.beatFile(ctx)
		if err != nil {
			return ScheduleRun{}, err
		}
		if text == "" {
			return ScheduleRun{}, fmt.Errorf("run schedule %s: agents/%s/%s is not there, or asks for nothing: %w", id, p.cfg.Name, HeartbeatFile, tidemark.ErrInvalid)
		}
	}
	p.rouse(now.Add(retryHandOver)) // a life that ends here has left an alarm
	err = p.begin(ctx, begun{schedule: s, due: now.UnixMilli()}, now)
	if errors.Is(err, tidemark.ErrConflict) {
		return ScheduleRun{}, fmt.Errorf("run schedule %s: it is at work, or %d others are, the most at once: %w", id, p.cfg.MaxRunning, tidemark.ErrBusy)
	}
	if err != nil {
		return ScheduleRun{}, fmt.Errorf("run schedule %s: %w", id, err)
	}
	runs, err := p.runs(ctx, s.n, 1)
	if err != nil || len(runs) == 0 {
		return ScheduleRun{}, errors.Join(err, tidemark.ErrNotFound)
	}
	return runs[0], nil
}

// begin makes the row of a run, in one transaction with what moves its schedule on, and hands it to its session.
// ErrConflict: somebody else did, or as many run as may.
func (p *planner) begin(ctx context.Context, run begun, now time.Time, move ...tidemark.Stmt) error {
	s := run.schedule
	e, err := p.errandOf(ctx, s, run.due)
	if err != nil {
		return err
	}
	h := handed{Key: p.sessionOf(s, run.due), To: s.To, Errand: e}
	raw, err := json.Marshal(h)
	if err != nil {
		return fmt.Errorf("keep errand: %w", err)
	}
	ran, err := json.Marshal(ScheduleRun{Session: h.Key})
	if err != nil {
		return fmt.Errorf("keep run: %w", err)
	}
	insert := tidemark.Stmt{SQL: `INSERT INTO agent_schedule_runs(agent, schedule, due, state, again, missed, started, errand, ran) SELECT ?, ?, ?, 'begun', ?, ?, ?, ?, ?
		WHERE (SELECT count(*) FROM agent_schedule_runs WHERE agent = ? AND state IN ('begun', 'running')) < ?
		AND NOT EXISTS (SELECT 1 FROM agent_schedule_runs WHERE agent = ? AND schedule = ? AND state IN ('begun', 'running'))
		AND NOT EXISTS (SELECT 1 FROM agent_schedule_runs WHERE agent = ? AND schedule = ? AND due = ?)`,
		Args: []any{p.cfg.Name, s.n, run.due, now.UnixMilli(), run.missed, now.UnixMilli(), string(raw), string(ran), p.cfg.Name, p.cfg.MaxRunning,
			p.cfg.Name, s.n, p.cfg.Name, s.n, run.due}, Want: 1}
	if err := p.cfg.DB.Tx(ctx, append(move, insert, p.pruneStmt(s.n))); err != nil {
		return err
	}
	return p.handOver(ctx, s.n, run.due, 0, h)
}

// goOn takes up runs that an earlier life left, and those that a session did not take; one of which nothing was
// heard for long is given up.
func (p *planner) goOn(ctx context.Context, now time.Time) error {
	rows, err := p.cfg.DB.Query(ctx, `SELECT schedule, due, state, tries, errand FROM agent_schedule_runs WHERE agent = ? AND state IN ('begun', 'running')
		AND (again <= ? OR again > ?) LIMIT ?`, p.cfg.Name, now.UnixMilli(), now.Add(2*lostAfter).UnixMilli(), duePage)
	if err != nil {
		return fmt.Errorf("read runs: %w", err)
	}
	for _, r := range rows {
		var h handed
		switch {
		case r.Text(2) == RunRunning:
			err = p.finish(ctx, r.Int(0), r.Int(1), RunFailed, fmt.Sprintf("nothing was heard of it for %s", lostAfter), tidemark.Ran{})
		case json.Unmarshal(r.Bytes(4), &h) != nil:
			err = p.finish(ctx, r.Int(0), r.Int(1), RunFailed, "its errand cannot be read", tidemark.Ran{})
		default:
			err = p.handOver(ctx, r.Int(0), r.Int(1), int(r.Int(3)), h)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// handOver gives a run to its session. What fails for reasons that pass is tried again later.
func (p *planner) handOver(ctx context.Context, n, due int64, tries int, h handed) error {
	limited, cancel := p.cfg.Runtime.WithTimeout(ctx, handOverTime)
	defer cancel()
	err := p.addressed(limited, &h)
	if err == nil {
		if err = fmt.Errorf("no session can be given work here: %w", tidemark.ErrForbidden); p.cfg.Sessions != nil {
			err = p.cfg.Sessions.Start(limited, h.Key, h.Errand)
		}
	}
	now := p.now()
	switch {
	case err == nil:
		return p.cfg.DB.Tx(ctx, []tidemark.Stmt{{SQL: `UPDATE agent_schedule_runs SET state = 'running', again = ?, errand = '' WHERE agent = ? AND schedule = ? AND due = ? AND state = 'begun'`,
			Args: []any{now.Add(lostAfter).UnixMilli(), p.cfg.Name, n, due}}})
	case ctx.Err() != nil:
		return ctx.Err() // this life ends; the next takes it up
	case tries < handOverTries && !lasting(err):
		p.cfg.Logger.Warn("hand over a scheduled run later", "agent", p.cfg.Name, "schedule", scheduleID(n), "err", err)
		at := now.Add(retryHandOver << tries)
		return p.cfg.DB.Tx(ctx, []tidemark.Stmt{{SQL: `UPDATE agent_schedule_runs SET tries = tries + 1, again = ?, reason = ? WHERE agent = ? AND schedule = ? AND due = ? AND state = 'begun'`,
			Args: []any{at.UnixMilli(), clip.To(err.Error(), maxReason), p.cfg.Name, n, due}}})
	}
	return p.finish(ctx, n, due, RunFailed, "it could not be begun: "+clip.To(err.Error(), maxReason), tidemark.Ran{})
}

// lasting reports an error that the same try would have again.
func lasting(err error) bool {
	return errors.Is(err, tidemark.ErrInvalid) || errors.Is(err, tidemark.ErrForbidden) || errors.Is(err, tidemark.ErrTooLarge) || errors.Is(err, tidemark.ErrNotFound)
}

// addressed finds where the answer of a run goes. An owner who never wrote over a channel reads it in the session.
func (p *planner) addressed(ctx context.Context, h *handed) error {
	o, err := tidemark.Origin{}, error(nil)
	switch {
	case h.To == ToOwner:
		o, err = p.ownerAt(ctx)
	case h.To != "" && p.cfg.Address != nil:
		o, err = p.cfg.Address(ctx, h.To)
	}
	h.Errand.Origin.To, h.Errand.Origin.Peer = o.To, o.Peer
	return err
}

// ownerAt is where the owner wrote from last over a channel, if that is still the owner; else there is no To.
func (p *planner) ownerAt(ctx context.Context) (tidemark.Origin, error) {
	if p.cfg.Sessions == nil {
		return tidemark.Origin{}, nil
	}
	o, err := p.cfg.Sessions.Correspondent(ctx, p.mainKey())
	if errors.Is(err, tidemark.ErrNotFound) {
		return tidemark.Origin{}, nil
	}
	if err != nil || o.To == nil || p.cfg.Address == nil {
		return o, err
	}
	now, err := p.cfg.Address(ctx, o.To.Platform+":"+o.To.Peer)
	switch {
	case errors.Is(err, tidemark.ErrForbidden) || err == nil && !now.Owner:
		return tidemark.Origin{}, nil // a number that was the owner's
	case err != nil && !errors.Is(err, tidemark.ErrInvalid): // which says that its channel is off: the ledger keeps it
		return tidemark.Origin{}, err
	}
	return o, nil
}

// Ran takes up what came of a run. The same twice is one; one of a schedule that is gone is nobody's.
func (p *planner) Ran(ctx context.Context, ran tidemark.Ran) error {
	n, err := scheduleNumber(ran.Schedule)
	if err != nil || ran.Session.Agent() != p.cfg.Name {
		return fmt.Errorf("report run of schedule %.40q by %.120q to agent %s: %w", ran.Schedule, ran.Session, p.cfg.Name, tidemark.ErrInvalid)
	}
	state, reason := RunOK, ""
	if ran.Outcome.Error != "" {
		state, reason = RunFailed, clip.To(ran.Outcome.Error, maxReason)
	}
	if err := p.finish(ctx, n, ran.Due, state, reason, ran); err != nil {
		return err
	}
	next, err := p.nextSchedule(ctx)
	if err == nil && !next.IsZero() {
		p.rouse(next) // one that waited for this one to end
	}
	return err
}

// finish ends a run, once, with what that means for its schedule.
func (p *planner) finish(ctx context.Context, n, due int64, state, reason string, ran tidemark.Ran) error {
	s, err := p.Schedule(ctx, scheduleID(n))
	if errors.Is(err, tidemark.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	key := ran.Session
	if key == "" {
		key = p.sessionOf(s, due)
	}
	o := ran.Outcome
	raw, err := json.Marshal(ScheduleRun{Session: key, Entry: o.Entry, Text: o.Text, Delivered: ran.Delivered, Usage: o.Usage})
	if err != nil {
		return fmt.Errorf("keep run: %w", err)
	}
	said := ""
	if ran.Delivered {
		said = ran.Said
	}
	now := p.now()
	stmts := []tidemark.Stmt{{SQL: `UPDATE agent_schedule_runs SET state = ?, reason = ?, finished = ?, said = ?, errand = '', ran = ?
		WHERE agent = ? AND schedule = ? AND due = ? AND state IN ('begun', 'running')`,
		Args: []any{state, reason, now.UnixMilli(), said, string(raw), p.cfg.Name, n, due}, Want: 1}}
	return p.moved(p.cfg.DB.Tx(ctx, append(stmts, p.endStmt(s, state, reason, now))))
}

// endStmt is what the end of a run means for its schedule: one for one time is done; failures in a row put the next
// time off, and in the end pause it, of which the owner is told.
func (p *planner) endStmt(s Schedule, state, reason string, now time.Time) tidemark.Stmt {
	args := []any{p.cfg.Name, s.n}
	called := s.ID
	if s.Name != "" {
		called += " (" + s.Name + ")"
	}
	fails := s.Fails + 1
	switch failed := state == RunFailed; {
	case s.plan.Once() && failed:
		return tidemark.Stmt{SQL: `UPDATE agent_schedules SET state = 'done', fails = 1, notice = ? WHERE agent = ? AND n = ? AND next = 0`,
			Args: append([]any{"Schedule " + called + " failed: " + reason}, args...)}
	case s.plan.Once():
		return tidemark.Stmt{SQL: `UPDATE agent_schedules SET state = 'done', fails = 0 WHERE agent = ? AND n = ? AND next = 0`, Args: args}
	case !failed:
		return tidemark.Stmt{SQL: `UPDATE agent_schedules SET fails = 0 WHERE agent = ? AND n = ? AND fails > 0`, Args: args}
	case fails >= pauseAfter && s.State == ScheduleOn:
		why := fmt.Sprintf("%d failures in a row, the last: %s", fails, reason)
		return tidemark.Stmt{SQL: `UPDATE agent_schedules SET state = 'paused', next = 0, fails = ?, reason = ?, notice = ? WHERE agent = ? AND n = ?`,
			Args: append([]any{fails, why, "Schedule " + called + " is paused: " + why + " (`tidemark schedule resume " + s.ID + "`)"}, args...)}
	}
	rest := min(time.Minute<<min(fails, 10), maxRest)
	return tidemark.Stmt{SQL: `UPDATE agent_schedules SET fails = fails + 1, next = CASE WHEN next > 0 THEN max(next, ?) ELSE 0 END WHERE agent = ? AND n = ?`,
		Args: append([]any{now.Add(rest).UnixMilli()}, args...)}
}

// tellOwner sends what the owner is to be told of schedules, once each. An owner who has no channel finds it where
// schedules are listed.
func (p *planner) tellOwner(ctx context.Context) {
	rows, err := p.cfg.DB.Query(ctx, `SELECT n, notice FROM agent_schedules WHERE agent = ? AND notice <> '' LIMIT ?`, p.cfg.Name, MaxSchedules)
	for _, r := range rows {
		if p.cfg.Sessions != nil {
			err = p.tellOne(ctx, r.Int(0), r.Text(1))
		}
		if err == nil {
			err = p.cfg.DB.Tx(ctx, []tidemark.Stmt{{SQL: `UPDATE agent_schedules SET notice = '' WHERE agent = ? AND n = ? AND notice = ?`, Args: []any{p.cfg.Name, r.Int(0), r.Text(1)}}})
		}
		if err != nil {
			break
		}
	}
	if err != nil {
		p.cfg.Logger.Warn("tell the owner of a schedule", "agent", p.cfg.Name, "err", err)
	}
}

func (p *planner) tellOne(ctx context.Context, n int64, text string) error {
	limited, cancel := p.cfg.Runtime.WithTimeout(ctx, handOverTime)
	defer cancel()
	o, err := p.ownerAt(limited)
	if err != nil || o.To == nil {
		return err
	}
	last, err := host.Number(ctx, p.cfg.DB, "find run", `SELECT max(due) FROM agent_schedule_runs WHERE agent = ? AND schedule = ? LIMIT 1`, p.cfg.Name, n)
	if err != nil {
		return err
	}
	return p.cfg.Sessions.Say(limited, p.mainKey(), fmt.Sprintf("schedule/%s/%d", scheduleID(n), last), *o.To, text)
}
