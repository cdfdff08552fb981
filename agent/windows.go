package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host"
)

// Bounds of what is kept of windows.
const (
	maxWindows     = 200 // models
	maxWindowsTold = 8
	maxModelName   = 600 // bytes, its endpoint included
	maxWindow      = tidemark.Tokens(100_000_000)
)

// Windows stores what a conversation learned of the windows of models and returns what is known of all of them: what one
// found out, none has to find out again. Agents of one database share it.
func (d *directory) Windows(ctx context.Context, learned []tidemark.Window) ([]tidemark.Window, error) {
	if len(learned) > maxWindowsTold {
		return nil, fmt.Errorf("%d windows, at most %d: %w", len(learned), maxWindowsTold, tidemark.ErrInvalid)
	}
	now := d.now()
	known, err := Windows(ctx, d.cfg.DB, now)
	if err != nil {
		return nil, err
	}
	at := map[string]int{}
	for i, w := range known {
		at[w.Model] = i
	}
	var stmts []tidemark.Stmt
	for _, w := range learned {
		if w.Model == "" || len(w.Model) > maxModelName || w.Tokens < 0 || w.Tokens > maxWindow {
			return nil, fmt.Errorf("window of %.80q, %d tokens: %w", w.Model, w.Tokens, tidemark.ErrInvalid)
		}
		i, ok := at[w.Model]
		if !ok {
			i = len(known)
			at[w.Model], known = i, append(known, tidemark.Window{})
		}
		was := known[i]
		if !w.Over(was, now) {
			continue
		}
		known[i] = w
		stmts = append(stmts, tidemark.Stmt{SQL: `INSERT INTO agent_windows(model, tokens, learned_from, until) VALUES(?, ?, ?, ?)
			ON CONFLICT(model) DO UPDATE SET tokens = excluded.tokens, learned_from = excluded.learned_from, until = excluded.until
			WHERE agent_windows.until <= ? OR (agent_windows.tokens, agent_windows.learned_from, agent_windows.until) = (?, ?, ?)`,
			Args: []any{w.Model, int64(w.Tokens), string(w.From), w.Until.UnixMilli(), now.UnixMilli(), int64(was.Tokens), string(was.From), was.Until.UnixMilli()}, Want: 1})
	}
	if len(stmts) == 0 {
		return known, nil
	}
	stmts = append(stmts, tidemark.Stmt{SQL: `DELETE FROM agent_windows WHERE until <= ? OR model NOT IN (SELECT model FROM agent_windows ORDER BY until DESC LIMIT ?)`,
		Args: []any{now.UnixMilli(), maxWindows}})
	err = d.cfg.DB.Tx(ctx, stmts)
	if errors.Is(err, tidemark.ErrConflict) { // another conversation told something meanwhile
		return d.Windows(ctx, learned)
	}
	if err != nil {
		return nil, fmt.Errorf("store windows: %w", err)
	}
	return known, nil
}

// Windows returns what the agents of a database keep of windows.
func Windows(ctx context.Context, db tidemark.DB, now time.Time) ([]tidemark.Window, error) {
	return host.Read(ctx, db, "read windows", func(r tidemark.Row) (tidemark.Window, error) {
		return tidemark.Window{Model: r.Text(0), Tokens: tidemark.Tokens(r.Int(1)), From: tidemark.WindowFrom(r.Text(2)), Until: host.UTC(r.Int(3))}, nil
	}, `SELECT model, tokens, learned_from, until FROM agent_windows WHERE until > ? ORDER BY until DESC LIMIT ?`, now.UnixMilli(), maxWindows)
}
