package agent

import (
	"context"
	"fmt"
	"hash/fnv"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/archive"
	"github.com/tidemark-ai/tidemark/host"
)

const (
	sweepMarker = "sweep"          // the row of agent_writes for the nightly sweep
	sweepHour   = 3                // of the agent's zone, before the hour of daily resets
	sweepSpread = 45 * time.Minute // agents do not all come at once
	sweepAgain  = time.Hour        // after one that failed, or left something
)

// sweepBounds keep one sweep within what a Worker may ask of its bucket in one event.
var sweepBounds = archive.Bounds{Objects: 100_000, Added: 400}

// nextSweep is the first time after now that an agent sweeps at.
func nextSweep(name string, now time.Time, zone *time.Location) time.Time {
	h := fnv.New32a()
	h.Write([]byte(name))
	spread := time.Duration(h.Sum32()) * time.Millisecond % sweepSpread
	y, m, d := now.In(zone).Date()
	for ; ; d++ {
		if at := time.Date(y, m, d, sweepHour, 0, 0, 0, zone).Add(spread); at.After(now) {
			return at
		}
	}
}

// sweep does once a night what nobody waits for: it holds the index of archives against the bucket,
// forgets what was written long ago, and consolidates memory, if that is on.
func (a *Agent) sweep(ctx context.Context) error {
	now := a.now()
	at, err := a.sweepAt(ctx)
	if err != nil {
		return err
	}
	next := nextSweep(a.cfg.Name, now, a.cfg.Zone)
	if !at.IsZero() && at.After(now) && !at.After(next) {
		return nil
	}
	if at.IsZero() || at.After(now) { // the first night is to come, or the clock was set back
		return a.planSweep(ctx, next)
	}
	old := now.Add(-keepDone).UnixMilli()
	if err := a.cfg.DB.Tx(ctx, []tidemark.Stmt{{SQL: `DELETE FROM agent_sections WHERE agent = ? AND done > 0 AND done < ?`, Args: []any{a.cfg.Name, old}}}); err != nil {
		return err
	}
	s, err := a.Mend(ctx, sweepBounds)
	if err != nil {
		a.cfg.Logger.Warn("nightly sweep", "agent", a.cfg.Name, "err", err)
	} else {
		a.cfg.Logger.Info("nightly sweep", "agent", a.cfg.Name, "indexed", len(s.Added))
	}
	c, failed := a.Consolidate(ctx)
	if failed != nil {
		a.cfg.Logger.Warn("nightly consolidation", "agent", a.cfg.Name, "err", failed)
	} else if c.Note == "" {
		a.cfg.Logger.Info("nightly consolidation", "agent", a.cfg.Name, "decided", c.Decided, "written", len(c.Written), "suggested", len(c.Suggested))
	}
	if err != nil || failed != nil || len(s.Added) >= sweepBounds.Added { // there may be more
		next = now.Add(sweepAgain)
	}
	return a.planSweep(ctx, next)
}

func (a *Agent) planSweep(ctx context.Context, at time.Time) error {
	return a.cfg.DB.Tx(ctx, []tidemark.Stmt{{
		SQL:  `INSERT INTO agent_writes(agent, path, next) VALUES(?, ?, ?) ON CONFLICT(agent, path) DO UPDATE SET next = excluded.next`,
		Args: []any{a.cfg.Name, sweepMarker, at.UnixMilli()},
	}})
}

// Wake carries out what is due: sections of memory files, lines of the archive index, the nightly
// sweep, schedules. It returns when it wants to be called again. It is called at the start of a host and by its
// alarm; calling it too often does no harm.
func (a *Agent) Wake(ctx context.Context) (next time.Time, err error) {
	paths, err := host.Read(ctx, a.cfg.DB, "wake agent "+a.cfg.Name, host.Text, `SELECT DISTINCT path FROM agent_sections WHERE agent = ? AND done = 0 LIMIT ?`, a.cfg.Name, wakePaths)
	if err != nil {
		return time.Time{}, err
	}
	for _, path := range paths {
		a.guarded(ctx, path, func() error { return a.flush(ctx, path) })
	}
	if err := a.indexPending(ctx); err != nil {
		return time.Time{}, fmt.Errorf("wake agent %s: %w", a.cfg.Name, err)
	}
	if err := a.sweep(ctx); err != nil {
		return time.Time{}, fmt.Errorf("wake agent %s: %w", a.cfg.Name, err)
	}
	planned, err := a.wakeSchedules(ctx)
	if err != nil { // it must not keep the rest, nor be kept by it
		a.cfg.Logger.Warn("wake schedules", "agent", a.cfg.Name, "err", err)
		planned = a.now().Add(retryHandOver)
	}
	next = earliest(a.next(ctx), planned)
	if at, err := a.sweepAt(ctx); err == nil {
		next = earliest(next, at)
	}
	return a.Soonest(next), ctx.Err()
}
