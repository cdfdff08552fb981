package agent

import (
	"context"
	"fmt"
	"hash/fnv"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/archive"
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

// sweepAt is when the next sweep is planned, zero for not yet.
func (a *Agent) sweepAt(ctx context.Context) (time.Time, error) {
	rows, err := a.cfg.DB.Query(ctx, `SELECT next FROM agent_writes WHERE agent = ? AND path = ? LIMIT 1`, a.cfg.Name, sweepMarker)
	if err != nil {
		return time.Time{}, fmt.Errorf("read plan of the sweep: %w", err)
	}
	if len(rows) == 0 {
		return time.Time{}, nil
	}
	return time.UnixMilli(rows[0].Int(0)), nil
}
