package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host"
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
func (p *planner) wakeSchedules(ctx context.Context) (time.Time, error) {
	if p.cfg.NoSchedules || p.cfg.Resting != nil && p.cfg.Resting() {
		return time.Time{}, nil
	}
	p.soon.Store(0)
	now := p.now()
	if err := p.backInTime(ctx, now); err != nil {
		return time.Time{}, err
	}
	if err := p.goOn(ctx, now); err != nil {
		return time.Time{}, err
	}
	rows, err := p.cfg.DB.Query(ctx, `SELECT `+scheduleColumns+` FROM agent_schedules WHERE agent = ? AND next > 0 AND next <= ? AND state = 'on' ORDER BY next LIMIT ?`,
		p.cfg.Name, now.UnixMilli(), duePage)
	if err != nil {
		return time.Time{}, fmt.Errorf("read what is due: %w", err)
	}
	for _, r := range rows { // one that cannot be read keeps none that is due before it
		s, err := p.scan(r)
		if err == nil {
			err = p.due(ctx, s, now)
		}
		if err != nil {
			return time.Time{}, fmt.Errorf("schedule %s: %w", scheduleID(r.Int(0)), err)
		}
	}
	p.tellOwner(ctx)
	return p.nextSchedule(ctx)
}

// nextSchedule is when schedules want a Wake. Where as many run as may, the next is begun when one ends.
func (p *planner) nextSchedule(ctx context.Context) (time.Time, error) {
	r, err := host.First(ctx, p.cfg.DB, "plan schedules", `SELECT
		(SELECT min(again) FROM agent_schedule_runs WHERE agent = ? AND state IN ('begun', 'running')),
		(SELECT min(next) FROM agent_schedules WHERE agent = ? AND next > 0 AND state = 'on'
			AND (next > ? OR (SELECT count(*) FROM agent_schedule_runs WHERE agent = ? AND state IN ('begun', 'running')) < ?)),
		(SELECT count(*) FROM agent_schedules WHERE agent = ? AND notice <> '') LIMIT 1`,
		p.cfg.Name, p.cfg.Name, p.now().UnixMilli(), p.cfg.Name, p.cfg.MaxRunning, p.cfg.Name)
	if err != nil {
		return time.Time{}, err
	}
	var next time.Time
	for i := range 2 {
		if !r.Null(i) {
			next = earliest(next, time.UnixMilli(r.Int(i)))
		}
	}
	if r.Int(2) > 0 {
		next = earliest(next, p.now().Add(retryHandOver))
	}
	return p.Soonest(next), nil
}

// earliest is the earlier of two times; zero stands for never.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// rouse asks for a Wake at a time, whatever else is asked for.
func (p *planner) rouse(at time.Time) {
	ms := at.UnixMilli()
	for {
		soon := p.soon.Load()
		if soon != 0 && soon <= ms || p.soon.CompareAndSwap(soon, ms) {
			break
		}
	}
	next := earliest(at, p.files.next(context.Background()))
	if sweep, err := p.sweepAt(context.Background()); err == nil {
		next = earliest(next, sweep)
	}
	p.schedule(next)
}

// backInTime plans again what lies further ahead than it can: by a clock that was set back. It is looked for once a
// life, and whenever the clock goes back.
func (p *planner) backInTime(ctx context.Context, now time.Time) error {
	seen := p.seen.Swap(now.UnixMilli())
	if seen != 0 && now.UnixMilli() >= seen {
		return nil
	}
	ahead, err := host.Read(ctx, p.cfg.DB, "read schedules", p.scan, `SELECT `+scheduleColumns+` FROM agent_schedules WHERE agent = ? AND state = 'on' AND next > ? LIMIT ?`,
		p.cfg.Name, now.Add(farAhead).UnixMilli(), MaxSchedules)
	if err != nil {
		return err
	}
	for _, s := range ahead {
		if next, ok := s.plan.Next(now); ok && s.Next.Sub(next) > farAhead {
			stmt := tidemark.Stmt{SQL: `UPDATE agent_schedules SET next = ? WHERE agent = ? AND n = ? AND next = ?`, Args: []any{next.UnixMilli(), p.cfg.Name, s.n, s.Next.UnixMilli()}}
			if err := p.cfg.DB.Tx(ctx, []tidemark.Stmt{stmt}); err != nil {
				return fmt.Errorf("plan schedule %s again: %w", s.ID, err)
			}
		}
	}
	return nil
}

// due does what is to be done about a schedule that is due: it begins a run, or says why there is none, and moves it
// on to its next time. Of what was missed the last is done.
func (p *planner) due(ctx context.Context, s Schedule, now time.Time) error {
	last, missed := s.lastDue(now)
	run := begun{schedule: s, due: last.UnixMilli(), missed: missed}
	done, err := host.Number(ctx, p.cfg.DB, "find run", `SELECT 1 FROM agent_schedule_runs WHERE agent = ? AND schedule = ? AND due = ? LIMIT 1`, p.cfg.Name, s.n, run.due)
	if err != nil {
		return err
	}
	if done > 0 { // it was done, before the clock was set back
		return p.moved(p.cfg.DB.Tx(ctx, []tidemark.Stmt{p.moveStmt(s, now)}))
	}
	if now.Sub(last) > s.catchUp() {
		return p.pass(ctx, run, now, RunMissed, "nothing ran at the time, and it is too late now (catchUp)")
	}
	running, err := host.Read(ctx, p.cfg.DB, "read runs", host.Integer, `SELECT schedule FROM agent_schedule_runs WHERE agent = ? AND state IN ('begun', 'running') LIMIT 1000`, p.cfg.Name)
	if err != nil {
		return err
	}
	if slices.Contains(running, s.n) {
		return p.pass(ctx, run, now, RunSkipped, "the run before was still at work")
	}
	if len(running) >= p.cfg.MaxRunning {
		return nil // it waits for one to end
	}
	if s.plan.Beats() {
		if why, err := p.calm(ctx, s, now); why != "" || err != nil {
			if err != nil {
				return p.pass(ctx, run, now, RunSkipped, "it could not be begun: "+clip.To(err.Error(), maxReason))
			}
			return p.pass(ctx, run, now, RunSkipped, why)
		}
	}
	return p.moved(p.begin(ctx, run, now, p.moveStmt(s, now)))
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
func (p *planner) moved(err error) error {
	if errors.Is(err, tidemark.ErrConflict) {
		return nil
	}
	return err
}

// moveStmt moves a schedule on to its next time, if nobody else has.
func (p *planner) moveStmt(s Schedule, now time.Time) tidemark.Stmt {
	at := int64(0)
	if next, ok := s.plan.Next(now); ok {
		at = next.UnixMilli()
	}
	return tidemark.Stmt{SQL: `UPDATE agent_schedules SET next = ? WHERE agent = ? AND n = ? AND next = ? AND state = 'on'`,
		Args: []any{at, p.cfg.Name, s.n, s.Next.UnixMilli()}, Want: 1}
}

// pass moves a schedule on without a run, and says why. The same again is the same row, counted.
func (p *planner) pass(ctx context.Context, run begun, now time.Time, state, why string) error {
	s := run.schedule
	stmts := []tidemark.Stmt{p.moveStmt(s, now)}
	last, err := host.First(ctx, p.cfg.DB, "read runs", `SELECT due, state, reason FROM agent_schedule_runs WHERE agent = ? AND schedule = ? ORDER BY due DESC LIMIT 1`, p.cfg.Name, s.n)
	if err != nil {
		return err
	}
	if last != nil && last.Text(1) == state && last.Text(2) == why {
		stmts = append(stmts, tidemark.Stmt{SQL: `UPDATE agent_schedule_runs SET times = times + 1, missed = missed + ?, finished = ? WHERE agent = ? AND schedule = ? AND due = ?`,
			Args: []any{run.missed, now.UnixMilli(), p.cfg.Name, s.n, last.Int(0)}})
	} else {
		stmts = append(stmts, tidemark.Stmt{SQL: `INSERT INTO agent_schedule_runs(agent, schedule, due, state, reason, missed, finished) VALUES(?, ?, ?, ?, ?, ?, ?)`,
			Args: []any{p.cfg.Name, s.n, run.due, state, why, run.missed, now.UnixMilli()}}, p.pruneStmt(s.n))
	}
	if s.plan.Once() {
		stmts = append(stmts, tidemark.Stmt{SQL: `UPDATE agent_schedules SET state = 'done' WHERE agent = ? AND n = ?`, Args: []any{p.cfg.Name, s.n}})
	}
	return p.moved(p.cfg.DB.Tx(ctx, stmts))
}

// pruneStmt forgets runs beyond those that are kept.
func (p *planner) pruneStmt(n int64) tidemark.Stmt {
	return tidemark.Stmt{SQL: `DELETE FROM agent_schedule_runs WHERE agent = ? AND schedule = ? AND state NOT IN ('begun', 'running') AND due <=
		(SELECT due FROM agent_schedule_runs WHERE agent = ? AND schedule = ? ORDER BY due DESC LIMIT 1 OFFSET ?)`,
		Args: []any{p.cfg.Name, n, p.cfg.Name, n, MaxScheduleRuns}}
}

// calm is why a heartbeat does nothing now; empty when it has something to do.
func (p *planner) calm(ctx context.Context, s Schedule, now time.Time) (why string, err error) {
	if !s.plan.Active(now) {
		return "outside of active hours", nil
	}
	if s.Prompt == "" {
		text, err := p.beatFile(ctx)
		if err != nil {
			return "", err
		}
		if text == "" {
			return HeartbeatFile + " is not there, or asks for nothing", nil
		}
	}
	if p.cfg.Sessions == nil || s.Session == SessionFresh {
		return "", nil
	}
	limited, cancel := p.cfg.Runtime.WithTimeout(ctx, handOverTime)
	defer cancel()
	busy, err := p.cfg.Sessions.Occupied(limited, p.sessionOf(s, 0))
	if busy {
		why = "the session was at work"
	}
	return why, err
}

// beatFile is what HEARTBEAT.md says; empty when that is nothing but headings.
func (p *planner) beatFile(ctx context.Context) (string, error) {
	_, body, err := p.cfg.Blobs.Get(ctx, p.blobKey(HeartbeatFile))
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
func (p *planner) sessionOf(s Schedule, due int64) tidemark.Key {
	own := "agent:" + p.cfg.Name + ":" + tidemark.ChannelSchedule + ":dm:" + s.ID
	switch s.Session {
	case SessionMain:
		return tidemark.Key("agent:" + p.cfg.Name + ":main")
	case SessionOwn:
		return tidemark.Key(own)
	case SessionFresh:
		return tidemark.Key(fmt.Sprintf("%s.%d", own, due))
	}
	return tidemark.Key(s.Session)
}

// errandOf is what a run asks.
func (p *planner) errandOf(ctx context.Context, s Schedule, due int64) (tidemark.Errand, error) {
	key := p.sessionOf(s, due)
	name := s.ID
	if s.Name != "" {
		name += " " + strconv.Quote(s.Name)
	}
	text := s.Prompt
	occasion := &tidemark.Occasion{Schedule: s.ID, Due: due}
	if s.plan.Beats() {
		if text == "" {
			file, err := p.beatFile(ctx)
			if err != nil {
				return tidemark.Errand{}, err
			}
			text = file
		}
		text = "Look after what follows. If nothing of it needs attention now, answer " + heartbeatOK + " and nothing else.\n\n" + text
		occasion.Quiet = heartbeatOK
		said, err := p.saidLately(ctx, s.n)
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
func (p *planner) saidLately(ctx context.Context, n int64) ([]string, error) {
	const most = 32
	return host.Read(ctx, p.cfg.DB, "read what was said", host.Text, `SELECT DISTINCT said FROM agent_schedule_runs WHERE agent = ? AND schedule = ? AND said <> '' AND finished > ? ORDER BY finished DESC LIMIT ?`,
		p.cfg.Name, n, p.now().Add(-24*time.Hour).UnixMilli(), most)
}
