package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/clip"
	"github.com/tidemark-ai/tidemark/schedule"
)

const (
	duePage     = 50             // schedules in one Wake
	maxMissed   = 10_000         // times that are counted
	farAhead    = 24 * time.Hour // further ahead than a schedule's own next time: a clock was set back
	pauseAfter  = 10             // failures in a row
	maxRest     = 6 * time.Hour  // after a failure
	maxBeatFile = 16 << 10       // bytes of HEARTBEAT.md that are read
)

// HeartbeatFile says what a heartbeat is to look after.
const HeartbeatFile = "HEARTBEAT.md"

// heartbeatOK is what a model answers when nothing needs attention.
const heartbeatOK = "HEARTBEAT_OK"

// wakeSchedules begins what is due, goes on with what an earlier life left, and returns when it wants to be called
// again; zero for never.
func (a *planner) wakeSchedules(ctx context.Context) (time.Time, error) {
	if a.cfg.NoSchedules || a.cfg.Resting != nil && a.cfg.Resting() {
		return time.Time{}, nil
	}
	a.soon.Store(0)
	now := a.now()
	if err := a.backInTime(ctx, now); err != nil {
		return time.Time{}, err
	}
	if err := a.goOn(ctx, now); err != nil {
		return time.Time{}, err
	}
	rows, err := a.cfg.DB.Query(ctx, `SELECT `+scheduleColumns+` FROM agent_schedules WHERE agent = ? AND next > 0 AND next <= ? AND state = 'on' ORDER BY next LIMIT ?`,
		a.cfg.Name, now.UnixMilli(), duePage)
	if err != nil {
		return time.Time{}, fmt.Errorf("read what is due: %w", err)
	}
	for _, r := range rows {
		s, err := a.scan(r)
		if err == nil {
			err = a.due(ctx, s, now)
		}
		if err != nil {
			return time.Time{}, fmt.Errorf("schedule %s: %w", scheduleID(r.Int(0)), err)
		}
	}
	a.tellOwner(ctx)
	return a.nextSchedule(ctx)
}

// nextSchedule is when schedules want a Wake. Where as many run as may, the next is begun when one ends.
func (a *planner) nextSchedule(ctx context.Context) (time.Time, error) {
	rows, err := a.cfg.DB.Query(ctx, `SELECT
		(SELECT min(again) FROM agent_schedule_runs WHERE agent = ? AND state IN ('begun', 'running')),
		(SELECT min(next) FROM agent_schedules WHERE agent = ? AND next > 0 AND state = 'on'
			AND (next > ? OR (SELECT count(*) FROM agent_schedule_runs WHERE agent = ? AND state IN ('begun', 'running')) < ?)),
		(SELECT count(*) FROM agent_schedules WHERE agent = ? AND notice <> '') LIMIT 1`,
		a.cfg.Name, a.cfg.Name, a.now().UnixMilli(), a.cfg.Name, a.cfg.MaxRunning, a.cfg.Name)
	if err != nil {
		return time.Time{}, fmt.Errorf("plan schedules: %w", err)
	}
	var next time.Time
	for i := range 2 {
		if r := rows[0]; !r.Null(i) {
			next = earliest(next, time.UnixMilli(r.Int(i)))
		}
	}
	if rows[0].Int(2) > 0 {
		next = earliest(next, a.now().Add(retryHandOver))
	}
	return a.Soonest(next), nil
}

// earliest is the earlier of two times; zero stands for never.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// rouse asks for a Wake at a time, whatever else is asked for.
func (a *planner) rouse(at time.Time) {
	ms := at.UnixMilli()
	for {
		soon := a.soon.Load()
		if soon != 0 && soon <= ms || a.soon.CompareAndSwap(soon, ms) {
			break
		}
	}
	next := earliest(at, a.files.next(context.Background()))
	if sweep, err := a.sweepAt(context.Background()); err == nil {
		next = earliest(next, sweep)
	}
	a.schedule(next)
}

// backInTime plans again what lies further ahead than it can: by a clock that was set back. It is looked for once a
// life, and whenever the clock goes back.
func (a *planner) backInTime(ctx context.Context, now time.Time) error {
	seen := a.seen.Swap(now.UnixMilli())
	if seen != 0 && now.UnixMilli() >= seen {
		return nil
	}
	rows, err := a.cfg.DB.Query(ctx, `SELECT `+scheduleColumns+` FROM agent_schedules WHERE agent = ? AND state = 'on' AND next > ? LIMIT ?`,
		a.cfg.Name, now.Add(farAhead).UnixMilli(), MaxSchedules)
	if err != nil {
		return fmt.Errorf("read schedules: %w", err)
	}
	for _, r := range rows {
		s, err := a.scan(r)
		if err != nil {
			return err
		}
		if next, ok := s.plan.Next(now); ok && s.Next.Sub(next) > farAhead {
			stmt := tidemark.Stmt{SQL: `UPDATE agent_schedules SET next = ? WHERE agent = ? AND n = ? AND next = ?`, Args: []any{next.UnixMilli(), a.cfg.Name, s.n, s.Next.UnixMilli()}}
			if err := a.cfg.DB.Tx(ctx, []tidemark.Stmt{stmt}); err != nil {
				return fmt.Errorf("plan schedule %s again: %w", s.ID, err)
			}
		}
	}
	return nil
}

// due does what is to be done about a schedule that is due: it begins a run, or says why there is none, and moves it
// on to its next time. Of what was missed the last is done.
func (a *planner) due(ctx context.Context, s Schedule, now time.Time) error {
	last, missed := s.lastDue(now)
	run := begun{schedule: s, due: last.UnixMilli(), missed: missed}
	rows, err := a.cfg.DB.Query(ctx, `SELECT 1 FROM agent_schedule_runs WHERE agent = ? AND schedule = ? AND due = ? LIMIT 1`, a.cfg.Name, s.n, run.due)
	if err != nil {
		return err
	}
	if len(rows) > 0 { // it was done, before the clock was set back
		return a.moved(a.cfg.DB.Tx(ctx, []tidemark.Stmt{a.moveStmt(s, now)}))
	}
	if now.Sub(last) > s.catchUp() {
		return a.pass(ctx, run, now, RunMissed, "nothing ran at the time, and it is too late now (catchUp)")
	}
	rows, err = a.cfg.DB.Query(ctx, `SELECT schedule FROM agent_schedule_runs WHERE agent = ? AND state IN ('begun', 'running') LIMIT 1000`, a.cfg.Name)
	if err != nil {
		return err
	}
	for _, r := range rows {
		if r.Int(0) == s.n {
			return a.pass(ctx, run, now, RunSkipped, "the run before was still at work")
		}
	}
	if len(rows) >= a.cfg.MaxRunning {
		return nil // it waits for one to end
	}
	if s.plan.Beats() {
		if why, err := a.calm(ctx, s, now); why != "" || err != nil {
			if err != nil {
				return a.pass(ctx, run, now, RunSkipped, "it could not be begun: "+clip.To(err.Error(), maxReason))
			}
			return a.pass(ctx, run, now, RunSkipped, why)
		}
	}
	return a.moved(a.begin(ctx, run, now, a.moveStmt(s, now)))
}

// lastDue is the last time up to now that a schedule was due, and how many it missed before; of very many, not all are
// counted.
func (s Schedule) lastDue(now time.Time) (last time.Time, missed int) {
	last = s.Next
	t, ok := s.plan.Next(last)
	for ; ok && !t.After(now); t, ok = s.plan.Next(t) {
		if last, missed = t, missed+1; missed == maxMissed {
			break
		}
	}
	if !ok || t.After(now) {
		return last, missed
	}
	for t, ok = s.plan.Next(now.Add(-min(s.catchUp(), maxMissed*schedule.MinEvery))); ok && !t.After(now); t, ok = s.plan.Next(t) {
		last = t
	}
	return last, missed
}

// moved forgives that another Wake was first.
func (a *planner) moved(err error) error {
	if errors.Is(err, tidemark.ErrConflict) {
		return nil
	}
	return err
}

// moveStmt moves a schedule on to its next time, if nobody else has.
func (a *planner) moveStmt(s Schedule, now time.Time) tidemark.Stmt {
	at := int64(0)
	if next, ok := s.plan.Next(now); ok {
		at = next.UnixMilli()
	}
	return tidemark.Stmt{SQL: `UPDATE agent_schedules SET next = ? WHERE agent = ? AND n = ? AND next = ? AND state = 'on'`,
		Args: []any{at, a.cfg.Name, s.n, s.Next.UnixMilli()}, Want: 1}
}

// pass moves a schedule on without a run, and says why. The same again is the same row, counted.
func (a *planner) pass(ctx context.Context, run begun, now time.Time, state, why string) error {
	s := run.schedule
	stmts := []tidemark.Stmt{a.moveStmt(s, now)}
	rows, err := a.cfg.DB.Query(ctx, `SELECT due, state, reason FROM agent_schedule_runs WHERE agent = ? AND schedule = ? ORDER BY due DESC LIMIT 1`, a.cfg.Name, s.n)
	if err != nil {
		return err
	}
	if len(rows) > 0 && rows[0].Text(1) == state && rows[0].Text(2) == why {
		stmts = append(stmts, tidemark.Stmt{SQL: `UPDATE agent_schedule_runs SET times = times + 1, missed = missed + ?, finished = ? WHERE agent = ? AND schedule = ? AND due = ?`,
			Args: []any{run.missed, now.UnixMilli(), a.cfg.Name, s.n, rows[0].Int(0)}})
	} else {
		stmts = append(stmts, tidemark.Stmt{SQL: `INSERT INTO agent_schedule_runs(agent, schedule, due, state, reason, missed, finished) VALUES(?, ?, ?, ?, ?, ?, ?)`,
			Args: []any{a.cfg.Name, s.n, run.due, state, why, run.missed, now.UnixMilli()}}, a.pruneStmt(s.n))
	}
	if s.plan.Once() {
		stmts = append(stmts, tidemark.Stmt{SQL: `UPDATE agent_schedules SET state = 'done' WHERE agent = ? AND n = ?`, Args: []any{a.cfg.Name, s.n}})
	}
	return a.moved(a.cfg.DB.Tx(ctx, stmts))
}

// pruneStmt forgets runs beyond those that are kept.
func (a *planner) pruneStmt(n int64) tidemark.Stmt {
	return tidemark.Stmt{SQL: `DELETE FROM agent_schedule_runs WHERE agent = ? AND schedule = ? AND state NOT IN ('begun', 'running') AND due <=
		(SELECT due FROM agent_schedule_runs WHERE agent = ? AND schedule = ? ORDER BY due DESC LIMIT 1 OFFSET ?)`,
		Args: []any{a.cfg.Name, n, a.cfg.Name, n, MaxScheduleRuns}}
}

// calm is why a heartbeat does nothing now; empty when it has something to do.
func (a *planner) calm(ctx context.Context, s Schedule, now time.Time) (why string, err error) {
	if !s.plan.Active(now) {
		return "outside of active hours", nil
	}
	if s.Prompt == "" {
		text, err := a.beatFile(ctx)
		if err != nil {
			return "", err
		}
		if text == "" {
			return HeartbeatFile + " is not there, or asks for nothing", nil
		}
	}
	v, ok := a.cfg.Sessions.(Voices)
	if !ok || s.Session == SessionFresh {
		return "", nil
	}
	limited, cancel := a.cfg.Runtime.WithTimeout(ctx, handOverTime)
	defer cancel()
	busy, err := v.Occupied(limited, a.sessionOf(s, 0))
	if busy {
		why = "the session was at work"
	}
	return why, err
}

// beatFile is what HEARTBEAT.md says; empty when that is nothing but headings.
func (a *planner) beatFile(ctx context.Context) (string, error) {
	_, body, err := a.cfg.Blobs.Get(ctx, a.blobKey(HeartbeatFile))
	if errors.Is(err, tidemark.ErrNotFound) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read %s: %w", HeartbeatFile, err)
	}
	defer body.Close()
	raw, err := io.ReadAll(io.LimitReader(body, maxBeatFile))
	if err != nil {
		return "", fmt.Errorf("read %s: %w", HeartbeatFile, err)
	}
	text := strings.TrimSpace(strings.ToValidUTF8(string(raw), ""))
	for _, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		comment := strings.HasPrefix(line, "<!--") && strings.HasSuffix(line, "-->")
		if !comment && !strings.HasPrefix(line, "#") && strings.Trim(line, "-*_=> []\t") != "" {
			return text, nil
		}
	}
	return "", nil
}

// sessionOf is where a run goes on.
func (a *planner) sessionOf(s Schedule, due int64) tidemark.Key {
	own := "agent:" + a.cfg.Name + ":" + tidemark.ChannelSchedule + ":dm:" + s.ID
	switch s.Session {
	case SessionMain:
		return tidemark.Key("agent:" + a.cfg.Name + ":main")
	case SessionOwn:
		return tidemark.Key(own)
	case SessionFresh:
		return tidemark.Key(fmt.Sprintf("%s.%d", own, due))
	}
	return tidemark.Key(s.Session)
}

// errandOf is what a run asks.
func (a *planner) errandOf(ctx context.Context, s Schedule, due int64) (tidemark.Errand, error) {
	key := a.sessionOf(s, due)
	name := s.ID
	if s.Name != "" {
		name += " " + strconv.Quote(s.Name)
	}
	text := s.Prompt
	occasion := &tidemark.Occasion{Schedule: s.ID, Due: due}
	if s.plan.Beats() {
		if text == "" {
			file, err := a.beatFile(ctx)
			if err != nil {
				return tidemark.Errand{}, err
			}
			text = file
		}
		text = "Look after what follows. If nothing of it needs attention now, answer " + heartbeatOK + " and nothing else.\n\n" + text
		occasion.Quiet = heartbeatOK
		said, err := a.saidLately(ctx, s.n)
		if err != nil {
			return tidemark.Errand{}, err
		}
		occasion.Said = said
	}
	e := tidemark.Errand{ID: fmt.Sprintf("schedule:%s:%d", s.ID, due),
		Text:   fmt.Sprintf("[Schedule %s, due %s]\n\n%s", name, time.UnixMilli(due).In(s.plan.Zone()).Format("Mon 2006-01-02 15:04 MST"), text),
		Origin: tidemark.Origin{From: tidemark.FromSystem, Channel: tidemark.ChannelSchedule, Owner: key.Local(), Occasion: occasion}}
	if s.Session == SessionOwn || s.Session == SessionFresh {
		e.Limits = tidemark.Limits{Model: s.Model, Budget: s.Budget, Rounds: s.Rounds, Tools: s.Tools}
	}
	return e, nil
}

// saidLately names what a schedule delivered within a day, for the same not to be delivered again.
func (a *planner) saidLately(ctx context.Context, n int64) ([]string, error) {
	const most = 32
	rows, err := a.cfg.DB.Query(ctx, `SELECT DISTINCT said FROM agent_schedule_runs WHERE agent = ? AND schedule = ? AND said <> '' AND finished > ? ORDER BY finished DESC LIMIT ?`,
		a.cfg.Name, n, a.now().Add(-24*time.Hour).UnixMilli(), most)
	if err != nil {
		return nil, fmt.Errorf("read what was said: %w", err)
	}
	out := make([]string, len(rows))
	for i, r := range rows {
		out[i] = r.Text(0)
	}
	return out, nil
}
