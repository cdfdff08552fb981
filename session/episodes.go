package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/blocks"
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
	markedPage  = 500   // rows
	markedSoon  = 64    // messages after which it is saved whatever they were
	markedLate  = 2_000 // and those of a long log that is read for the first time
	markedBytes = 256 << 10
)

// dividing is what this life knows of episodes.
type dividing struct {
	divided   atomic.Pointer[marked] // their graph, nil while somebody has it
	uncounted atomic.Int64           // when a provider that did not count is asked again, in milliseconds
	shortfall atomic.Pointer[toldOf] // what the operator was told of a budget that is not met
}

// marked is the graph of a log, with what is stored of it. One at a time has it.
type marked struct {
	log   string
	graph *episodes.Graph
	kept  int64 // up to where the log is in the tables, 0 when it is not there
	fresh int   // messages that were added since
	stale bool  // what is stored is another's by now
}

// episodic returns the strategy episodes, nil when it is not active.
func (s *Session) episodic() *compaction.Episodes {
	for _, x := range s.strategies() {
		if e, ok := x.(*compaction.Episodes); ok {
			return e
		}
	}
	return nil
}

// withGraph calls f with the graph of a log and all that the log has. It is f's until that returns; who asks at the same
// time has a graph of its own.
func (s *Session) withGraph(ctx context.Context, log string, f func(*episodes.Graph) error) error {
	m := s.divided.Swap(nil)
	var err error
	if m == nil || m.log != log {
		if m, err = s.loadGraph(ctx, log); err != nil {
			return fmt.Errorf("episodes: %w", err)
		}
	}
	if err := s.followLog(ctx, m); err != nil {
		return fmt.Errorf("episodes: %w", err)
	}
	err = f(m.graph)
	if !m.stale {
		s.divided.CompareAndSwap(nil, m)
	}
	return err
}

// loadGraph returns what is stored of the graph of a log, or of the nearest base of a branch up to where that begins.
func (s *Session) loadGraph(ctx context.Context, log string) (*marked, error) {
	e := s.episodic()
	if e == nil {
		e = &compaction.Episodes{}
	}
	m := &marked{log: log, graph: e.NewGraph()}
	there, err := s.made.Has(ctx, markedTables)
	if !there || err != nil {
		return m, err
	}
	for at, end := log, room.LogEnd; at != ""; {
		upto, rows, err := s.savedEpisodes(ctx, at)
		if err != nil {
			return nil, err
		}
		if upto > 0 {
			m.graph = e.LoadGraph(rows, upto)
			if at == log {
				m.kept = upto
			} else {
				m.graph = m.graph.Until(end)
			}
			break
		}
		i, err := s.log.Info(ctx, at)
		if err != nil {
			return nil, err
		}
		at, end = i.BaseLog, min(end, i.BaseSeq)
	}
	return m, nil
}

// savedEpisodes reads the rows of a log; upto is 0 where there are none. Each page says up to where the log is in them, so
// that rows of two saves are never taken for one.
func (s *Session) savedEpisodes(ctx context.Context, log string) (upto int64, out []episodes.Episode, err error) {
	var pace room.Pace
	for {
		rows, err := s.DB.Query(ctx, `SELECT l.upto, coalesce(m.record, '') FROM marked_logs l LEFT JOIN marked m ON m.log = l.log AND m.n > ? WHERE l.log = ? ORDER BY m.n LIMIT ?`,
			len(out), log, markedPage)
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
				err = fmt.Errorf("it is number %d: %w", e.N, blocks.ErrDamaged)
			}
			if err != nil {
				s.warn("saved episodes are read out of the log again", fmt.Errorf("read episode %d of %s: %w", len(out)+1, log, err))
				s.dropEpisodes(ctx, log, upto)
				return 0, nil, nil
			}
			out = append(out, e)
			if err := pace.Did(ctx, s.Runtime, len(r.Bytes(1))); err != nil {
				return 0, nil, err
			}
		}
		if len(rows) < markedPage {
			return upto, out, nil
		}
	}
}

// dropEpisodes takes out what is stored of a log, unless another life has stored more. As long as it is there nothing can
// be saved, which costs no more than reading the log again.
func (s *Session) dropEpisodes(ctx context.Context, log string, upto int64) {
	err := s.DB.Tx(ctx, []tidemark.Stmt{
		{SQL: `UPDATE marked_logs SET upto = 0 WHERE log = ? AND upto = ?`, Args: []any{log, upto}, Want: 1},
		{SQL: `DELETE FROM marked WHERE log = ?`, Args: []any{log}},
	})
	if err != nil && ctx.Err() == nil {
		s.warn("drop saved episodes", err)
	}
}

// followLog adds what the log has behind the graph. Large blocks stay references: which tool they are of and whether it
// failed stands beside them.
func (s *Session) followLog(ctx context.Context, m *marked) error {
	skeletons, err := s.log.Skeletons(ctx, m.log, host.Range{From: m.graph.Upto() + 1, To: room.LogEnd})
	if err != nil || len(skeletons) == 0 {
		return err
	}
	n, open := len(m.graph.Episodes()), m.graph.Active()
	var pace room.Pace
	for at := 0; at < len(skeletons); {
		seqs := room.PageOf(skeletons[at:])
		entries, err := s.log.Payloads(ctx, seqs)
		if err != nil {
			return err
		}
		for i, e := range entries {
			msg, err := e.Message()
			if err != nil {
				return fmt.Errorf("read entry %s: %w", e.ID, err)
			}
			m.graph.Add(episodes.Message{ID: e.ID, Seq: e.Seq, Tokens: skeletons[at+i].Tokens, Content: msg})
			if err := pace.Did(ctx, s.Runtime, len(e.Payload)); err != nil {
				return err
			}
		}
		at += len(seqs)
		if m.fresh += len(seqs); m.fresh >= markedLate {
			s.saveGraph(ctx, m)
		}
	}
	if m.fresh >= markedSoon || len(m.graph.Episodes()) != n || m.graph.Active() != open {
		s.saveGraph(ctx, m)
	}
	return nil
}

// saveGraph stores what changed, where the strategy is in force. That another life has stored more, or that nothing can
// be written, costs reading it once more.
func (s *Session) saveGraph(ctx context.Context, m *marked) {
	if s.episodic() == nil || m.stale {
		return
	}
	if err := s.storeGraph(ctx, m); err != nil {
		m.stale = true
		if ctx.Err() == nil && !errors.Is(err, tidemark.ErrConflict) && !errors.Is(err, tidemark.ErrDead) {
			s.warn("save episodes", err)
		}
	}
}

func (s *Session) storeGraph(ctx context.Context, m *marked) error {
	if err := s.made.Open(ctx, markedTables); err != nil {
		return err
	}
	changed, upto := m.graph.Save()
	m.fresh = 0
	if upto == m.kept {
		return nil
	}
	if m.kept == 0 { // also what a branch has of its base
		changed = changed[:0]
		for _, e := range m.graph.Episodes() {
			changed = append(changed, *e)
		}
	}
	stmts := []tidemark.Stmt{{SQL: `INSERT INTO marked_logs(log, upto) VALUES(?, ?) ON CONFLICT(log) DO UPDATE SET upto = excluded.upto WHERE marked_logs.upto = ?`,
		Args: []any{m.log, upto, m.kept}, Want: 1}}
	for len(changed) > 0 {
		list, n := []byte("["), 0
		for n < len(changed) && len(list) < markedBytes {
			if n > 0 {
				list = append(list, ',')
			}
			list, n = append(list, mustJSON(changed[n])...), n+1
		}
		stmts = append(stmts, tidemark.Stmt{SQL: `INSERT INTO marked(log, n, record) SELECT ?, json_extract(value, '$.n'), value FROM json_each(?) WHERE true
			ON CONFLICT(log, n) DO UPDATE SET record = excluded.record`, Args: []any{m.log, string(append(list, ']'))}})
		changed = changed[n:]
	}
	if err := s.DB.Tx(ctx, stmts); err != nil {
		return err
	}
	m.kept = upto
	return nil
}

// delimiterTool is how the agent divides its work.
var delimiterTool = tidemark.Tool{Name: episodes.ToolName, Description: episodes.Description, InputSchema: []byte(episodes.Schema), Idempotent: true}

// marks reports whether any of some calls divides the work, and somebody listens.
func (s *Session) marks(calls []call) bool {
	return s.episodic() != nil && slices.ContainsFunc(calls, func(c call) bool { return c.Block.Name == episodes.ToolName })
}

// answerMarks decides what the calls of a reply that divide its work are told: together and in their order, before any of
// them runs, since calls run side by side. A life that takes the turn up later decides the same. Who answers somebody
// that may not change the conversation may still divide its own work: nothing of what others said is of an episode.
func (s *Session) answerMarks(ctx context.Context, r *run, calls []call) error {
	return s.withGraph(ctx, r.Log, func(g *episodes.Graph) error {
		told := g.Answer()
		for i := range calls {
			if c := &calls[i]; c.Block.Name == episodes.ToolName {
				a, ok := told[c.ID]
				if !ok {
					a = episodes.Answer{Text: "The call is not in the newest reply: nothing was marked.", Refused: true}
				}
				c.told = a.Result(c.ID)
			}
		}
		return nil
	})
}

// noteMarks takes in the results of a round that divided its work. What fails is derived later.
func (s *Session) noteMarks(ctx context.Context, r *run) {
	if err := s.withGraph(ctx, r.Log, func(*episodes.Graph) error { return nil }); err != nil && ctx.Err() == nil {
		s.warn("note episodes", err)
	}
}
