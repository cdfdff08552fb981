package session

import (
	"context"
	"fmt"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/memory"
)

// sittingTables remember how far the agent was told of sittings. They are there where memory.digest is on.
var sittingTables = [][]string{{
	`CREATE TABLE episodes(key TEXT PRIMARY KEY, upto INTEGER NOT NULL) WITHOUT ROWID`,
}}

// sittingSpace is the name of the tables' version.
const sittingSpace = "session_episodes"

const (
	maxSitting  = 2000 // messages; a longer one is told in parts
	sittingPage = 200
	sittingText = 1000 // bytes of a message that topics are taken from
)

// chronicler is an agent that keeps sittings.
type chronicler interface {
	Sittings(ctx context.Context, sittings []memory.Sitting) error
}

// tellSitting hands a sitting to an agent that keeps them; another one is told nothing.
func (s *Session) tellSitting(ctx context.Context, raw []byte) error {
	var e memory.Sitting
	if err := decode(raw, &e); err != nil {
		return err
	}
	a, ok := s.Agent.(chronicler)
	if !ok {
		return nil
	}
	return a.Sittings(ctx, []memory.Sitting{e})
}

// sittingStmts look for sittings when the conversation has been silent for as long as ends one: that costs a row
// a turn, and nobody reads a log for it again.
func (s *Session) sittingStmts() []tidemark.Stmt {
	if !s.settings().Sittings {
		return nil
	}
	return []tidemark.Stmt{s.dueStmt(dueSitting, s.Runtime.Now().Add(memory.SittingGap), "")}
}

// endSittings tells at once what a reset or an import has ended. What fails is due still.
func (s *Session) endSittings(ctx context.Context) {
	if s.settings().Sittings {
		if err := s.closeSittings(ctx); err != nil {
			s.warn("tell sittings", err)
		}
	}
}

// closeSittings puts the sittings that are over into the outbox, and remembers the last message of them.
func (s *Session) closeSittings(ctx context.Context) error {
	if !s.settings().Sittings {
		return s.DB.Tx(ctx, []tidemark.Stmt{s.undueStmt(dueSitting)}) // it was switched off
	}
	if err := host.Migrate(ctx, s.DB, sittingSpace, sittingTables); err != nil {
		return err
	}
	rows, err := s.DB.Query(ctx, `SELECT upto FROM episodes WHERE key = ? LIMIT 1`, string(s.Key))
	if err != nil {
		return fmt.Errorf("read sittings: %w", err)
	}
	upto := int64(0)
	if len(rows) > 0 {
		upto = rows[0].Int(0)
	}
	moments, err := s.moments(ctx, upto)
	if err != nil {
		return err
	}
	h, err := s.head(ctx)
	if err != nil {
		return err
	}
	now := s.Runtime.Now()
	over := now
	if n := len(moments); n >= maxSitting || n > 0 && moments[n-1].Log != h.Log { // a reset ends one
		over = moments[len(moments)-1].At.Add(memory.SittingGap)
	}
	found := memory.Sittings(s.Key, moments, over)
	stmts := []tidemark.Stmt{s.undueStmt(dueSitting)}
	if n := len(moments); n > 0 && (len(found) == 0 || found[len(found)-1].Upto < moments[n-1].Seq) || n >= maxSitting {
		stmts[0] = s.dueStmt(dueSitting, now.Add(memory.SittingGap), "")
		if n >= maxSitting {
			stmts[0] = s.dueStmt(dueSitting, now, "")
		}
	}
	for _, e := range found {
		stmts = append(stmts, s.outboxStmt("episode:"+string(s.Key)+":"+string(e.First), outSitting, e))
	}
	if len(found) > 0 {
		stmts = append(stmts, s.dueStmt(dueOutbox, now.Add(outboxRetry), ""), tidemark.Stmt{
			SQL:  `INSERT INTO episodes(key, upto) VALUES(?, ?) ON CONFLICT(key) DO UPDATE SET upto = excluded.upto WHERE episodes.upto = ?`,
			Args: []any{string(s.Key), found[len(found)-1].Upto, upto}, Want: 1})
	}
	if err := s.DB.Tx(ctx, stmts); err != nil {
		return fmt.Errorf("store sittings: %w", err)
	}
	if len(found) > 0 {
		s.report(ctx)
	}
	return nil
}

// moments returns the messages behind a position, with what persons and the model said in them.
func (s *Session) moments(ctx context.Context, upto int64) ([]memory.Moment, error) {
	var out []memory.Moment
	for len(out) < maxSitting {
		rows, err := s.DB.Query(ctx, `SELECT seq, id, log, at, CASE WHEN instr(origin, '"from":"person"') + instr(origin, '"from":"model"') > 0 AND length(payload) < 65536 THEN payload ELSE '' END
			FROM entries WHERE log IN (SELECT id FROM logs WHERE key = ?) AND kind = 'message' AND seq > ? ORDER BY seq LIMIT ?`, string(s.Key), upto, sittingPage)
		if err != nil {
			return nil, fmt.Errorf("read sittings: %w", err)
		}
		ids := make([]tidemark.EntryID, len(rows))
		for i, r := range rows {
			upto, ids[i] = r.Int(0), tidemark.EntryID(r.Text(1))
			m := memory.Moment{ID: ids[i], Seq: upto, Log: r.Text(2), At: time.UnixMilli(r.Int(3))}
			if raw := r.Bytes(4); len(raw) > 0 {
				var msg tidemark.Message
				if err := json.Unmarshal(raw, &msg); err != nil {
					return nil, fmt.Errorf("read entry %s: %w", m.ID, err)
				}
				m.Text, m.Role = clip(tidemark.StripReminders(msg.PlainText()), sittingText), msg.Role
			}
			out = append(out, m)
		}
		marks, err := s.marksOf(ctx, ids)
		if err != nil {
			return nil, err
		}
		for i := range ids {
			m := &out[len(out)-len(ids)+i]
			m.Task = marks[m.ID].Task
		}
		if len(rows) < sittingPage {
			break
		}
		if err := s.Runtime.Sleep(ctx, paceRest); err != nil {
			return nil, err
		}
	}
	return out, nil
}
