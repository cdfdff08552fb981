package episodes

import (
	"context"
	"errors"
	"fmt"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/episodes"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/room"
)

// The episodes of a log are derived from its messages and kept, so that nobody reads a long log for them again: a row
// for each, and up to where the log is in them. What was not saved is derived once more, so saving is never waited for
// by what it belongs to.

// Bounds of what is read and written at a time.
const (
	savedPage  = 500   // rows
	savedSoon  = 64    // messages after which it is saved whatever they were
	savedLate  = 2_000 // and those of a long log that is read for the first time
	savedBytes = 256 << 10
)

// graph is the graph of a log, with what is stored of it. One at a time has it.
type graph struct {
	*episodes.Graph
	log   string
	saved int64 // up to where the log is in the tables, 0 when it is not there
	fresh int   // messages that were added since
	stale bool  // what is stored is another's by now
}

// withGraph calls f with the graph of a log and all that the log has. It is f's until that returns; who asks at the same
// time has a graph of its own.
func (s *Room) withGraph(ctx context.Context, log string, f func(*episodes.Graph) error) error {
	m, err := s.takeGraph(ctx, log)
	if err == nil {
		err = s.followLog(ctx, m)
	}
	if err != nil {
		return fmt.Errorf("episodes: %w", err)
	}
	err = f(m.Graph)
	if !m.stale {
		s.kept.CompareAndSwap(nil, m)
	}
	return err
}

// takeGraph returns the graph of a log as far as it is known. It is the caller's, who gives it back to kept.
func (s *Room) takeGraph(ctx context.Context, log string) (*graph, error) {
	if m := s.kept.Swap(nil); m != nil && m.log == log {
		return m, nil
	}
	return s.loadGraph(ctx, log)
}

// loadGraph returns what is stored of the graph of a log, or of the nearest base of a branch up to where that begins.
func (s *Room) loadGraph(ctx context.Context, log string) (*graph, error) {
	e := s.strategy()
	if e == nil {
		e = &compaction.Episodes{}
	}
	m := &graph{log: log, Graph: e.NewGraph()}
	there, err := s.Made.Has(ctx, tables)
	if !there || err != nil {
		return m, err
	}
	for at, end := log, host.LogEnd; at != ""; {
		upto, rows, err := s.savedEpisodes(ctx, at)
		if err != nil {
			return nil, err
		}
		if upto > 0 {
			m.Graph = e.LoadGraph(rows, upto)
			if at == log {
				m.saved = upto
			} else {
				m.Graph = m.Until(end)
			}
			break
		}
		i, err := s.Log.Info(ctx, at)
		if err != nil {
			return nil, err
		}
		at, end = i.BaseLog, min(end, i.BaseSeq)
	}
	return m, nil
}

// savedEpisodes reads the rows of a log; upto is 0 where there are none. Each page says up to where the log is in them, so
// that rows of two saves are never taken for one.
func (s *Room) savedEpisodes(ctx context.Context, log string) (upto int64, out []episodes.Episode, err error) {
	var yields host.Yielder
	for {
		rows, err := s.DB.Query(ctx, `SELECT l.upto, coalesce(m.record, '') FROM marked_logs l LEFT JOIN marked m ON m.log = l.log AND m.n > ? WHERE l.log = ? ORDER BY m.n LIMIT ?`,
			len(out), log, savedPage)
		if err != nil || len(rows) == 0 || rows[0].Int(0) == 0 {
			return 0, nil, err
		}
		if len(out) > 0 && rows[0].Int(0) != upto { // somebody saved meanwhile
			out = nil
			continue
		}
		upto = rows[0].Int(0)
		for _, r := range rows {
			if len(r.Bytes(1)) == 0 { // there is none
				break
			}
			var e episodes.Episode
			err := json.Unmarshal(r.Bytes(1), &e)
			if err == nil && e.N != len(out)+1 {
				err = fmt.Errorf("it is number %d: %w", e.N, tidemark.ErrInvalid)
			}
			if err != nil {
				s.Warn("saved episodes are read out of the log again", fmt.Errorf("read episode %d of %s: %w", len(out)+1, log, err))
				s.dropEpisodes(ctx, log, upto)
				return 0, nil, nil
			}
			out = append(out, e)
			if err := yields.Did(ctx, s.Runtime, len(r.Bytes(1))); err != nil {
				return 0, nil, err
			}
		}
		if len(rows) < savedPage {
			return upto, out, nil
		}
	}
}

// dropEpisodes takes out what is stored of a log, unless another life has stored more. As long as it is there nothing can
// be saved, which costs no more than reading the log again.
func (s *Room) dropEpisodes(ctx context.Context, log string, upto int64) {
	err := s.DB.Tx(ctx, []tidemark.Stmt{
		{SQL: `UPDATE marked_logs SET upto = 0 WHERE log = ? AND upto = ?`, Args: []any{log, upto}, Want: 1},
		{SQL: `DELETE FROM marked WHERE log = ?`, Args: []any{log}},
	})
	if err != nil && ctx.Err() == nil {
		s.Warn("drop saved episodes", err)
	}
}

// followLog adds what the log has behind the graph. Large blocks stay references: which tool they are of and whether it
// failed stands beside them.
func (s *Room) followLog(ctx context.Context, m *graph) error {
	skeletons, err := s.Log.Skeletons(ctx, m.log, host.Range{From: m.Upto() + 1, To: host.LogEnd})
	if err != nil || len(skeletons) == 0 {
		return err
	}
	n, open := len(m.Episodes()), m.Active()
	var yields host.Yielder
	for at := 0; at < len(skeletons); {
		seqs := host.PageOf(skeletons[at:])
		entries, err := s.Log.Payloads(ctx, seqs)
		if err != nil {
			return err
		}
		for i, e := range entries {
			msg, err := e.Message()
			if err != nil {
				return fmt.Errorf("read entry %s: %w", e.ID, err)
			}
			m.Add(episodes.Message{ID: e.ID, Seq: e.Seq, Tokens: skeletons[at+i].Tokens, Content: msg})
			if err := yields.Did(ctx, s.Runtime, len(e.Payload)); err != nil {
				return err
			}
		}
		at += len(seqs)
		if m.fresh += len(seqs); m.fresh >= savedLate {
			s.saveGraph(ctx, m)
		}
	}
	if m.fresh >= savedSoon || len(m.Episodes()) != n || m.Active() != open {
		s.saveGraph(ctx, m)
	}
	return nil
}

// saveGraph stores what changed, where the strategy is in force. That another life has stored more, or that nothing can
// be written, costs reading it once more.
func (s *Room) saveGraph(ctx context.Context, m *graph) {
	if s.strategy() == nil || m.stale {
		return
	}
	if err := s.storeGraph(ctx, m); err != nil {
		m.stale = true
		if ctx.Err() == nil && !errors.Is(err, tidemark.ErrConflict) && !errors.Is(err, tidemark.ErrDead) {
			s.Warn("save episodes", err)
		}
	}
}

func (s *Room) storeGraph(ctx context.Context, m *graph) error {
	if err := s.Made.Open(ctx, tables); err != nil {
		return err
	}
	changed, upto := m.Save()
	m.fresh = 0
	if upto == m.saved {
		return nil
	}
	if m.saved == 0 { // also what a branch has of its base
		changed = changed[:0]
		for _, e := range m.Episodes() {
			changed = append(changed, *e)
		}
	}
	stmts := []tidemark.Stmt{{SQL: `INSERT INTO marked_logs(log, upto) VALUES(?, ?) ON CONFLICT(log) DO UPDATE SET upto = excluded.upto WHERE marked_logs.upto = ?`,
		Args: []any{m.log, upto, m.saved}, Want: 1}}
	for len(changed) > 0 {
		list, n := []byte("["), 0
		for n < len(changed) && len(list) < savedBytes {
			if n > 0 {
				list = append(list, ',')
			}
			list, n = append(list, room.JSON(changed[n])...), n+1
		}
		stmts = append(stmts, tidemark.Stmt{SQL: `INSERT INTO marked(log, n, record) SELECT ?, json_extract(value, '$.n'), value FROM json_each(?) WHERE true
			ON CONFLICT(log, n) DO UPDATE SET record = excluded.record`, Args: []any{m.log, string(append(list, ']'))}})
		changed = changed[n:]
	}
	if err := s.DB.Tx(ctx, stmts); err != nil {
		return err
	}
	m.saved = upto
	return nil
}
