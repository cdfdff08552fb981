package session

import (
	"context"
	"fmt"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// runner is an [Agent] that has schedules.
type runner interface {
	// Ran takes up what came of a run; the same twice is one.
	Ran(ctx context.Context, ran tidemark.Ran) error
}

// audience are those who read an answer. The run of a schedule is answered by its last words, where those are for
// people at all.
func audience(from []tidemark.Origin, m tidemark.Message, final bool) []tidemark.Origin {
	var out []tidemark.Origin
	for _, o := range from {
		if o.Occasion != nil {
			if !final || !o.Occasion.Delivers(m.PlainText()) {
				continue
			}
			o.Occasion = nil
		}
		out = append(out, o)
	}
	return out
}

// ranStmts keep for the agent what came of the schedules that a run was for, in the transaction that ends it.
func (s *Session) ranStmts(ctx context.Context, r *run, out tidemark.Outcome) []tidemark.Stmt {
	var stmts []tidemark.Stmt
	for _, o := range r.origins {
		if o.Occasion == nil {
			continue
		}
		if len(stmts) == 0 {
			out.Usage = s.turnUsage(ctx, r)
		}
		ran := tidemark.Ran{Schedule: o.Occasion.Schedule, Due: o.Occasion.Due, Session: s.Key, At: s.Runtime.Now(), Outcome: out}
		if out.Text != "" {
			ran.Said = tidemark.SaidHash(out.Text)
			ran.Delivered = o.To != nil && s.Courier != nil && o.Occasion.Delivers(out.Text)
		}
		if len(out.Text) > tidemark.MaxRanText {
			ran.Outcome.Text = strings.ToValidUTF8(out.Text[:tidemark.MaxRanText], "") + "…"
		}
		stmts = append(stmts, s.outboxStmt(fmt.Sprintf("ran:%s/%s/%d", s.Key, ran.Schedule, ran.Due), outRan, ran))
	}
	return stmts
}

// tellRan hands one to the agent.
func (s *Session) tellRan(ctx context.Context, raw []byte) error {
	var ran tidemark.Ran
	if err := decode(raw, &ran); err != nil {
		return err
	}
	to, ok := s.Agent.(runner)
	if !ok {
		return nil
	}
	return to.Ran(ctx, ran)
}

// callsRead is how many of the newest calls are read for what a turn has spent.
const callsRead = 1000

// turnUsage is what the calls of a turn cost, as far as the newest records tell. An account that cannot be read is worth
// no failure.
func (s *Session) turnUsage(ctx context.Context, r *run) (sum tidemark.Usage) {
	rows, err := s.DB.Query(ctx, `SELECT json_extract(record, '$.usage') FROM (SELECT record FROM anatomy WHERE key = ? ORDER BY n DESC LIMIT ?)
		WHERE json_extract(record, '$.run') = ? LIMIT ?`, string(s.Key), callsRead, r.ID, callsRead)
	if err != nil {
		s.warn("read what a turn has spent", err)
		return sum
	}
	for _, row := range rows {
		var u tidemark.Usage
		if err := json.Unmarshal(row.Bytes(0), &u); err != nil {
			s.warn("read what a turn has spent", err)
			return sum
		}
		sum = sum.Add(u)
	}
	return sum
}

// originsRead is how many of the newest inputs are looked through for one of a person.
const originsRead = 2000

// Correspondent is where the person who talks here over a channel wrote from last; in the main session, the owner.
//
// # Errors
//
// ErrNotFound when nobody did lately.
func (s *Session) Correspondent(ctx context.Context) (tidemark.Origin, error) {
	if s.writesOut() { // else nobody ever did
		rows, err := s.DB.Query(ctx, `SELECT origin FROM (SELECT n, origin FROM inputs WHERE key = ? ORDER BY n DESC LIMIT ?)
			WHERE json_extract(origin, '$.to') IS NOT NULL AND json_extract(origin, '$.occasion') IS NULL
			AND (json_extract(origin, '$.owner') OR NOT ?) ORDER BY n DESC LIMIT 1`, string(s.Key), originsRead, s.Key.Main())
		if err != nil {
			return tidemark.Origin{}, fmt.Errorf("read who wrote: %w", err)
		}
		if len(rows) > 0 {
			var o tidemark.Origin
			err := json.Unmarshal(rows[0].Bytes(0), &o)
			return o, err
		}
	}
	return tidemark.Origin{}, fmt.Errorf("nobody wrote to %s over a channel: %w", s.Key, tidemark.ErrNotFound)
}

// Occupied reports whether a turn is in work, or an input waits for one.
func (s *Session) Occupied(ctx context.Context) (bool, error) {
	rows, err := s.DB.Query(ctx, `SELECT 1 FROM inputs WHERE key = ? AND state IN ('new', 'taken') LIMIT 1`, string(s.Key))
	if err != nil {
		return false, fmt.Errorf("look for what is in work: %w", err)
	}
	busy, err := s.Busy(ctx)
	return len(rows) > 0 || busy != "", err
}
