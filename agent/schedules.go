package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/schedule"
)

// Bounds of schedules.
const (
	MaxSchedules     = 200 // of an agent
	MaxScheduleRuns  = 200 // that are kept of each
	DefaultRunning   = 4   // runs of an agent at once
	DefaultCatchUp   = 24 * time.Hour
	maxPrompt        = 8 << 10 // bytes of what is asked
	maxScheduleName  = 100
	maxScheduleTools = 50
)

// States of a schedule.
const (
	ScheduleOn     = "on"
	SchedulePaused = "paused"
	ScheduleDone   = "done" // it was for one time
)

// Sessions of a schedule that are no key.
const (
	SessionOwn   = "own"   // one of its own, which goes on from run to run
	SessionFresh = "fresh" // a new one for each run; what a heartbeat has
	SessionMain  = "main"  // the owner's
)

// ToOwner is the address of a schedule whose answers go where the owner wrote from last.
const ToOwner = "owner"

// Schedule is work that an agent does by itself, at times.
type Schedule struct {
	ID   string `json:"id"`
	Name string `json:"name,omitempty"`
	schedule.Spec
	Prompt  string `json:"prompt,omitempty"` // what is asked; a heartbeat asks what HEARTBEAT.md says
	Session string `json:"session"`          // own, fresh, main or a key of the agent
	To      string `json:"to,omitempty"`     // owner, or platform:peer; empty: the answer stays in the log
	CatchUp string `json:"catchUp,omitempty"`

	// What a run may use, where it has a session of its own.
	Model  string          `json:"model,omitempty"`
	Budget tidemark.Tokens `json:"budget,omitempty"` // tokens of one run
	Rounds int             `json:"maxRounds,omitempty"`
	Tools  []string        `json:"tools,omitempty"` // globs

	State   string       `json:"state"`            // on, paused, done
	Reason  string       `json:"reason,omitempty"` // why it is paused
	Fails   int          `json:"failures,omitempty"`
	Created time.Time    `json:"created"`
	Next    time.Time    `json:"next,omitzero"` // zero: none comes by itself
	Coming  []time.Time  `json:"coming,omitempty"`
	Last    *ScheduleRun `json:"last,omitempty"`

	n    int64
	plan schedule.Plan
}

// scheduleTables have schedules and their runs.
var scheduleTables = []string{
	// next is 0 for none. maker names the tool call that made one. notice is what the owner is to be told still.
	`CREATE TABLE agent_schedules(n INTEGER PRIMARY KEY AUTOINCREMENT, agent TEXT NOT NULL, state TEXT NOT NULL, next INTEGER NOT NULL,
		fails INTEGER NOT NULL DEFAULT 0, reason TEXT NOT NULL DEFAULT '', notice TEXT NOT NULL DEFAULT '', created INTEGER NOT NULL,
		maker TEXT NOT NULL DEFAULT '', body TEXT NOT NULL)`,
	`CREATE TABLE agent_schedule_runs(agent TEXT NOT NULL, schedule INTEGER NOT NULL, due INTEGER NOT NULL, state TEXT NOT NULL, reason TEXT NOT NULL DEFAULT '',
		again INTEGER NOT NULL DEFAULT 0, tries INTEGER NOT NULL DEFAULT 0, times INTEGER NOT NULL DEFAULT 1, missed INTEGER NOT NULL DEFAULT 0,
		started INTEGER NOT NULL DEFAULT 0, finished INTEGER NOT NULL DEFAULT 0, said TEXT NOT NULL DEFAULT '', errand TEXT NOT NULL DEFAULT '',
		ran TEXT NOT NULL DEFAULT '{}', PRIMARY KEY(agent, schedule, due)) WITHOUT ROWID`,
	`CREATE INDEX agent_schedule_runs_open ON agent_schedule_runs(agent, schedule) WHERE state IN ('begun', 'running')`,
}

// check reads a schedule as it was written, and fills in what it leaves open.
func (p *planner) check(ctx context.Context, s *Schedule, now time.Time) (err error) {
	if p.cfg.NoSchedules {
		return fmt.Errorf("schedules are off here (schedules.enabled): %w", tidemark.ErrForbidden)
	}
	if s.plan, err = s.Spec.Parse(now, p.cfg.Zone); err != nil {
		return err
	}
	s.Spec = s.plan.Spec()
	s.Name, s.Prompt, s.To = strings.TrimSpace(s.Name), strings.TrimSpace(s.Prompt), strings.TrimSpace(s.To)
	if s.CatchUp != "" {
		if _, err = schedule.Period("catchUp", s.CatchUp); err != nil {
			return err
		}
	}
	own, err := p.place(s)
	switch {
	case err != nil:
		return err
	case s.Prompt == "" && !s.plan.Beats():
		return fmt.Errorf("prompt: a schedule needs what is to be done; a heartbeat does what HEARTBEAT.md says: %w", tidemark.ErrInvalid)
	case len(s.Prompt) > maxPrompt:
		return fmt.Errorf("prompt: %d bytes, at most %d: %w", len(s.Prompt), maxPrompt, tidemark.ErrTooLarge)
	case len(s.Name) > maxScheduleName:
		return fmt.Errorf("name: %d bytes, at most %d: %w", len(s.Name), maxScheduleName, tidemark.ErrInvalid)
	case s.Budget < 0 || s.Rounds < 0:
		return fmt.Errorf("budget and maxRounds: want 0 (as configured) or more: %w", tidemark.ErrInvalid)
	case len(s.Tools) > maxScheduleTools || len(strings.Join(s.Tools, " ")) > maxPrompt || len(s.Model) > maxScheduleName:
		return fmt.Errorf("tools and model: at most %d globs, and %d bytes of a model's name: %w", maxScheduleTools, maxScheduleName, tidemark.ErrInvalid)
	case !own && (s.Model != "" || s.Budget > 0 || s.Rounds > 0 || len(s.Tools) > 0):
		return fmt.Errorf("model, budget, maxRounds and tools go with a session of the schedule's own (session: own or fresh): they would change %s for others: %w", s.Session, tidemark.ErrInvalid)
	}
	return p.checkTo(ctx, s.To)
}

// place reads in which session a schedule runs, and reports one of its own.
func (p *planner) place(s *Schedule) (own bool, err error) {
	switch s.Session = strings.ToLower(strings.TrimSpace(s.Session)); s.Session {
	case "":
		s.Session = SessionOwn
		if s.plan.Beats() {
			s.Session = SessionFresh
		}
		return true, nil
	case SessionOwn, SessionFresh:
		return true, nil
	case SessionMain:
		return false, nil
	}
	key, err := tidemark.ParseKey(s.Session)
	if err == nil && (key.Agent() != p.cfg.Name || key.Channel() == "proxy") {
		err = tidemark.ErrInvalid
	}
	if err != nil {
		return false, fmt.Errorf("session %.120q: want own, fresh, main or the key of a session of agent %s: %w", s.Session, p.cfg.Name, tidemark.ErrInvalid)
	}
	s.Session = string(key)
	return false, nil
}

// checkTo holds that answers go to the owner, or to whom the owner has let in.
func (p *planner) checkTo(ctx context.Context, to string) error {
	if to == "" || to == ToOwner {
		return nil
	}
	if p.cfg.Address == nil {
		return fmt.Errorf("to %.80q: no channel is set up here; want owner, or leave it out: %w", to, tidemark.ErrInvalid)
	}
	if _, err := p.cfg.Address(ctx, to); err != nil {
		return fmt.Errorf("to %.80q: %w", to, err)
	}
	return nil
}

// AddSchedule makes a schedule, and returns it with its id and the next times.
//
// # Errors
//
// ErrInvalid, which names the field; ErrTooLarge for one too many.
func (p *planner) AddSchedule(ctx context.Context, s Schedule) (Schedule, error) {
	return p.add(ctx, s, "")
}

// add makes a schedule; the same maker twice makes one.
func (p *planner) add(ctx context.Context, s Schedule, maker string) (Schedule, error) {
	now := p.now()
	if err := p.check(ctx, &s, now); err != nil {
		return Schedule{}, fmt.Errorf("add schedule: %w", err)
	}
	next, ok := s.plan.Next(now)
	if !ok { // a time that has passed: within catchUp it is done late
		if next = s.plan.At(); now.Sub(next) > s.catchUp() {
			return Schedule{}, fmt.Errorf("add schedule: at %s has passed, by more than catchUp; want a time to come: %w", s.At, tidemark.ErrInvalid)
		}
	}
	if maker != "" {
		if n, err := p.madeBy(ctx, maker); err != nil || n > 0 {
			if err != nil {
				return Schedule{}, err
			}
			return p.Schedule(ctx, scheduleID(n))
		}
	}
	maker = cmp.Or(maker, tidemark.NewID(now))
	old := now.Add(-keepDone).UnixMilli()
	err := p.cfg.DB.Tx(ctx, []tidemark.Stmt{{ // reminders that are over long since
		SQL:  `DELETE FROM agent_schedule_runs WHERE agent = ? AND schedule IN (SELECT n FROM agent_schedules WHERE agent = ? AND state = 'done' AND created < ? AND n NOT IN (SELECT schedule FROM agent_schedule_runs WHERE agent = ? AND state IN ('begun', 'running')))`,
		Args: []any{p.cfg.Name, p.cfg.Name, old, p.cfg.Name},
	}, {
		SQL:  `DELETE FROM agent_schedules WHERE agent = ? AND state = 'done' AND created < ? AND n NOT IN (SELECT schedule FROM agent_schedule_runs WHERE agent = ? AND state IN ('begun', 'running'))`,
		Args: []any{p.cfg.Name, old, p.cfg.Name},
	}, {
		SQL: `INSERT INTO agent_schedules(agent, state, next, created, maker, body) SELECT ?, 'on', ?, ?, ?, ?
			WHERE (SELECT count(*) FROM agent_schedules WHERE agent = ? AND state <> 'done') < ?`,
		Args: []any{p.cfg.Name, next.UnixMilli(), now.UnixMilli(), maker, s.stored(), p.cfg.Name, MaxSchedules}, Want: 1,
	}})
	if errors.Is(err, tidemark.ErrConflict) {
		return Schedule{}, fmt.Errorf("add schedule: there are %d, the most; remove one first: %w", MaxSchedules, tidemark.ErrTooLarge)
	}
	if err != nil {
		return Schedule{}, fmt.Errorf("add schedule: %w", err)
	}
	p.rouse(next)
	n, err := p.madeBy(ctx, maker)
	if err != nil || n == 0 {
		return Schedule{}, errors.Join(err, fmt.Errorf("add schedule: %w", tidemark.ErrNotFound))
	}
	return p.Schedule(ctx, scheduleID(n))
}

// madeBy is the number of the schedule that somebody made, 0 for none.
func (p *planner) madeBy(ctx context.Context, maker string) (int64, error) {
	return host.Number(ctx, p.cfg.DB, "add schedule", `SELECT n FROM agent_schedules WHERE agent = ? AND maker = ? LIMIT 1`, p.cfg.Name, maker)
}

// catchUp is how late a run may be.
func (s Schedule) catchUp() time.Duration {
	if d, err := schedule.Period("catchUp", s.CatchUp); err == nil {
		return d
	}
	return DefaultCatchUp
}

// stored is what a row keeps of a schedule: what a person said of it.
func (s Schedule) stored() string {
	s.ID, s.State, s.Reason, s.Fails, s.Created, s.Next, s.Coming, s.Last = "", "", "", 0, time.Time{}, time.Time{}, nil, nil
	raw, err := json.Marshal(s)
	if err != nil {
		panic(fmt.Sprintf("encode schedule: %v", err)) // values of ours always encode
	}
	return string(raw)
}

func scheduleID(n int64) string { return "s" + strconv.FormatInt(n, 10) }

// scheduleNumber reads an id.
func scheduleNumber(id string) (int64, error) {
	n, err := strconv.ParseInt(strings.TrimPrefix(id, "s"), 10, 64)
	if err != nil || scheduleID(n) != id || n < 1 {
		return 0, fmt.Errorf("schedule %.40q: there is none; ids are s1, s2, …: %w", id, tidemark.ErrNotFound)
	}
	return n, nil
}

const scheduleColumns = `n, state, next, fails, reason, created, body`

// scan reads a row.
func (p *planner) scan(r tidemark.Row) (s Schedule, err error) {
	if err = json.Unmarshal(r.Bytes(6), &s); err == nil {
		s.plan, err = s.Spec.Parse(time.UnixMilli(r.Int(5)), p.cfg.Zone)
	}
	s.n, s.ID, s.State, s.Fails, s.Reason, s.Created = r.Int(0), scheduleID(r.Int(0)), r.Text(1), int(r.Int(3)), r.Text(4), time.UnixMilli(r.Int(5)).UTC()
	if at := r.Int(2); at > 0 {
		s.Next = time.UnixMilli(at).In(s.plan.Zone())
		s.Coming = []time.Time{s.Next}
		const shown = 3
		for t, ok := s.plan.Next(s.Next); ok && len(s.Coming) < shown; t, ok = s.plan.Next(t) {
			s.Coming = append(s.Coming, t)
		}
	}
	if err != nil {
		return s, fmt.Errorf("read schedule %s: %w", s.ID, err)
	}
	return s, nil
}

// Schedules lists all of an agent, the oldest first, each with its newest run.
func (p *planner) Schedules(ctx context.Context) ([]Schedule, error) {
	return host.Read(ctx, p.cfg.DB, "list schedules", p.withLast(ctx), `SELECT `+scheduleColumns+` FROM agent_schedules WHERE agent = ? ORDER BY n LIMIT ?`, p.cfg.Name, MaxSchedules)
}

// withLast reads a row, and the newest run of its schedule.
func (p *planner) withLast(ctx context.Context) func(tidemark.Row) (Schedule, error) {
	return func(r tidemark.Row) (Schedule, error) {
		s, err := p.scan(r)
		if err != nil {
			return s, err
		}
		runs, err := p.runs(ctx, s.n, 1)
		if len(runs) > 0 {
			s.Last = &runs[0]
		}
		return s, err
	}
}

// Schedule returns one; ErrNotFound when there is none of that id.
func (p *planner) Schedule(ctx context.Context, id string) (Schedule, error) {
	n, err := scheduleNumber(id)
	if err != nil {
		return Schedule{}, err
	}
	return host.One(ctx, p.cfg.DB, "read schedule "+id, "schedule "+id, p.withLast(ctx), `SELECT `+scheduleColumns+` FROM agent_schedules WHERE agent = ? AND n = ? LIMIT 1`, p.cfg.Name, n)
}

// ChangeSchedule gives a schedule what change makes of it: its fields, and whether it is on or paused. One that is on
// again begins with the next time from now, and with no failures.
func (p *planner) ChangeSchedule(ctx context.Context, id string, change func(*Schedule) error) (Schedule, error) {
	old, err := p.Schedule(ctx, id)
	if err != nil {
		return Schedule{}, err
	}
	s := old
	if err := change(&s); err != nil {
		return Schedule{}, err
	}
	now := p.now()
	if err := p.check(ctx, &s, now); err != nil {
		return Schedule{}, fmt.Errorf("change schedule %s: %w", id, err)
	}
	next, coming := s.plan.Next(now)
	if s.Spec == old.Spec && s.State == old.State { // when it is due stays, also what is due already
		next, coming = old.Next, true
	}
	switch {
	case s.State != ScheduleOn && s.State != SchedulePaused && s.State != old.State:
		return Schedule{}, fmt.Errorf("state %.20q: want on or paused: %w", s.State, tidemark.ErrInvalid)
	case s.State == ScheduleDone && s.Spec != old.Spec: // a new time for it
		s.State = ScheduleOn
	}
	if s.State == ScheduleOn && !coming {
		return Schedule{}, fmt.Errorf("change schedule %s: at %s has passed; give it a time to come: %w", id, s.At, tidemark.ErrInvalid)
	}
	at := int64(0)
	if s.State == ScheduleOn && !next.IsZero() {
		at = next.UnixMilli()
	}
	reason, fails := s.Reason, s.Fails
	if s.State != old.State {
		reason, fails = "", 0
	}
	err = p.cfg.DB.Tx(ctx, []tidemark.Stmt{{SQL: `UPDATE agent_schedules SET state = ?, next = ?, fails = ?, reason = ?, body = ? WHERE agent = ? AND n = ?`,
		Args: []any{s.State, at, fails, reason, s.stored(), p.cfg.Name, s.n}, Want: 1}})
	if errors.Is(err, tidemark.ErrConflict) {
		err = tidemark.ErrNotFound // removed meanwhile
	}
	if err != nil {
		return Schedule{}, fmt.Errorf("change schedule %s: %w", id, err)
	}
	if at > 0 {
		p.rouse(next)
	}
	return p.Schedule(ctx, id)
}

// RemoveSchedule forgets a schedule and its runs. One that is in work goes on, and nobody hears of its end.
func (p *planner) RemoveSchedule(ctx context.Context, id string) error {
	s, err := p.Schedule(ctx, id)
	if err != nil {
		return err
	}
	err = p.cfg.DB.Tx(ctx, []tidemark.Stmt{
		{SQL: `DELETE FROM agent_schedules WHERE agent = ? AND n = ?`, Args: []any{p.cfg.Name, s.n}},
		{SQL: `DELETE FROM agent_schedule_runs WHERE agent = ? AND schedule = ?`, Args: []any{p.cfg.Name, s.n}},
	})
	if err != nil {
		return fmt.Errorf("remove schedule %s: %w", id, err)
	}
	return nil
}
