package channel

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/internal/clip"
)

// Bounds of what is unpacked at once.
const (
	maxUnpack      = 32
	maxUnpackBytes = 256 << 10
	maxShort       = 8 << 10 // a body that is read with its name
)

// unpack turns the oldest bodies that wait into arrivals, in one transaction; found is false when none
// waits.
func (g *Ingress) unpack(ctx context.Context) (found bool, err error) {
	rows, err := g.DB.Query(ctx, `SELECT platform, hash, length(bytes), CASE WHEN length(bytes) <= ? THEN bytes END, at FROM channel_bodies WHERE piece = 0 AND `+isDue+` ORDER BY n LIMIT ?`,
		append(append([]any{maxShort}, g.dueArgs()...), maxUnpack)...)
	if err != nil || len(rows) == 0 {
		return false, err
	}
	var stmts []tidemark.Stmt
	size := int64(0)
	for i, r := range rows {
		if size += r.Int(2); i > 0 && size > maxUnpackBytes {
			break
		}
		body := r.Bytes(3)
		if r.Null(3) {
			if body, err = g.whole(ctx, r.Text(0), r.Text(1)); err != nil {
				return false, err
			}
		}
		stmts = append(stmts, g.unpackOne(r.Text(0), r.Text(1), body, time.UnixMilli(r.Int(4)))...)
	}
	if err := g.commit(ctx, int(size), stmts...); err != nil {
		return false, fmt.Errorf("unpack webhooks: %w", err)
	}
	return true, nil
}

// whole reads the pieces of a body.
func (g *Ingress) whole(ctx context.Context, platform, hash string) ([]byte, error) {
	pieces, err := host.Read(ctx, g.DB, "read webhook", func(r tidemark.Row) ([]byte, error) { return r.Bytes(0), nil }, `SELECT bytes FROM channel_bodies WHERE platform = ? AND hash = ? ORDER BY piece LIMIT 9`, platform, hash)
	return bytes.Join(pieces, nil), err
}

// unpackOne gives the statements that put arrivals in the place of a body, or put it off: it was acknowledged,
// and a channel may come back.
func (g *Ingress) unpackOne(platform, hash string, body []byte, at time.Time) []tidemark.Stmt {
	now := g.Runtime.Now()
	arrivals, err := g.decode(platform, body)
	if age := now.Sub(at); errors.Is(err, errUnset) && age < keepUnset {
		due := now.Add(min(lastPause, max(firstPause, age)))
		g.Count(platform, "again")
		g.Logger.Warn("a webhook waits", "channel", platform, "since", at.UTC(), "err", clip.To(err.Error(), maxError))
		g.schedule(due)
		return []tidemark.Stmt{{SQL: `UPDATE channel_bodies SET due = ?, at = min(at, ?), error = ? WHERE platform = ? AND hash = ?`,
			Args: []any{due.UnixMilli(), now.UnixMilli(), clip.To(err.Error(), maxError), platform, hash}}}
	}
	if err != nil {
		g.Count(platform, "unreadable")
		g.Logger.Error("a webhook cannot be read", "channel", platform, "hash", hash, "bytes", len(body), "err", err)
		return []tidemark.Stmt{
			{SQL: `DELETE FROM channel_bodies WHERE due < 0 AND ended < ?`, Args: []any{now.Add(-keepDead).UnixMilli()}},
			{SQL: `UPDATE channel_bodies SET due = -1, ended = ?, error = ? WHERE platform = ? AND hash = ?`, Args: []any{now.UnixMilli(), clip.To(err.Error(), maxError), platform, hash}},
		}
	}
	stmts := make([]tidemark.Stmt, 0, len(arrivals)+1)
	for _, a := range arrivals {
		if a.Odd != "" {
			g.Logger.Info("not acted on", "channel", platform, "kind", clip.To(a.Odd, maxError))
			continue
		}
		stmts = append(stmts, g.arrivalStmt(platform, a))
	}
	return append(stmts, tidemark.Stmt{SQL: `DELETE FROM channel_bodies WHERE platform = ? AND hash = ?`, Args: []any{platform, hash}})
}

// decode lists what a body holds.
func (g *Ingress) decode(platform string, body []byte) (out []Arrival, err error) {
	c, ok := g.Channels[platform]
	if !ok {
		return nil, fmt.Errorf("%w: %w", errUnset, tidemark.ErrInvalid)
	}
	defer func() { // a body must not end the work of all others
		if p := recover(); p != nil {
			err = fmt.Errorf("decode: panic: %v: %w", p, tidemark.ErrInvalid)
		}
	}()
	if out, err = c.Decode(body); err != nil {
		return nil, err
	}
	// The platform's clock counts in seconds and its ids have no order, so the order of two messages
	// of one second is that of the body.
	slices.SortStableFunc(out, func(a, b Arrival) int { return cmp.Compare(a.order(), b.order()) })
	return out, nil
}

// order is the platform's time of a message; what is none has no part in the order.
func (a Arrival) order() int64 {
	if a.Message == nil {
		return 0
	}
	return a.Message.At.UnixMilli()
}
