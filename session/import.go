package session

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/blocks"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/room"
)

// Imported is a message of another program's log.
type Imported struct {
	Message tidemark.Message
	At      time.Time
	Call    *tidemark.Call // what it cost there; never an anchor for our token count
	Peer    string         // who wrote it, where several people talk; empty otherwise
}

// ImportResult says what an import did.
type ImportResult struct {
	Messages      int             `json:"messages"` // of the session after it
	Entries       int             `json:"entries"`  // messages, overlays and events
	Compactions   int             `json:"compactions"`
	ArchivedParts int             `json:"archivedParts"`
	ContextTokens tidemark.Tokens `json:"contextTokens"`
	Window        tidemark.Tokens `json:"window"`
	Limit         tidemark.Tokens `json:"limit"`
	Skipped       int             `json:"skipped,omitempty"` // were there from an import that was cut off
}

// importBytes is how much an import writes in one transaction.
const importBytes = 512 << 10

// Import replays the messages of another log through the session as if they were said here:
// before each reply the view is compacted if it is over the limit. It runs under the fence of a
// run of its own, so nothing else writes meanwhile. An import that was cut off goes on behind the
// messages that are there, if those are the same.
func (s *Session) Import(ctx context.Context, in iter.Seq2[Imported, error], progress func(done int)) (ImportResult, error) {
	r, err := s.beginImport(ctx)
	if err != nil {
		return ImportResult{}, err
	}
	defer s.kick() // what was said meanwhile waits
	defer s.release(r.ID)
	im := importer{s: s, r: r, progress: progress}
	err = im.load(ctx)
	if err == nil {
		err = im.all(ctx, in)
	}
	if err != nil {
		return ImportResult{}, errors.Join(err, s.step(s.life, r, stateFailed, s.endStmts(outboxRetry)...))
	}
	if err := s.step(ctx, r, stateDone, s.endStmts(outboxRetry)...); err != nil {
		return ImportResult{}, fmt.Errorf("end import: %w", err)
	}
	s.closeRooms(ctx)
	s.report(ctx)
	return s.importResult(ctx, r, im.skipped)
}

// beginImport takes the session's one run.
func (s *Session) beginImport(ctx context.Context) (*run, error) {
	h, err := s.head(ctx)
	if err != nil {
		return nil, err
	}
	now := s.Runtime.Now()
	r := s.newRun(h.Log)
	s.claim(r.ID)
	err = s.DB.Tx(ctx, []tidemark.Stmt{{
		SQL: `INSERT INTO runs(id, key, log, owner, state, started, updated) SELECT ?, key, log, ?, 'calling', ?, ?
			FROM heads WHERE key = ? AND log = ? AND NOT EXISTS (SELECT 1 FROM runs WHERE key = ? AND state IN ('calling', 'tools'))`,
		Args: []any{r.ID, r.owner, now.UnixMilli(), now.UnixMilli(), string(s.Key), h.Log, string(s.Key)}, Want: 1,
	}, s.dueStmt(dueRun, now.Add(heartbeat), "")})
	if err == nil {
		s.setAlarm(ctx)
	} else {
		s.release(r.ID)
	}
	if errors.Is(err, tidemark.ErrConflict) {
		return nil, fmt.Errorf("import into %s: a turn is in work; try again when it has ended: %w", s.Key, tidemark.ErrBusy)
	}
	return r, err
}

// lend has work write into the session with its run.
func (s *Session) lend(ctx context.Context, work func(room.Held) error) error {
	r, err := s.beginImport(ctx)
	if err != nil {
		return err
	}
	defer s.kick()
	defer s.release(r.ID)
	if err := work(held{s, r}); err != nil {
		return errors.Join(err, s.step(s.life, r, stateFailed, s.endStmts(outboxRetry)...))
	}
	return nil
}

// importer is an import in work.
type importer struct {
	s        *Session
	r        *run
	progress func(int)

	there   []tidemark.Hash // chain of the messages that were there before
	chain   tidemark.Hash
	done    int
	skipped int

	stmts []tidemark.Stmt // not yet written
	count int
	bytes int

	size   tidemark.Tokens // of the view, with what is not yet written
	limit  tidemark.Tokens
	yields host.Yielder
}

// load reads the chain that is there and the size of the view.
func (m *importer) load(ctx context.Context) error {
	var err error
	if m.there, err = m.s.log.Chains(ctx, m.r.Log); err != nil {
		return err
	}
	m.limit = m.s.Budget().Limit()
	return m.measure(ctx)
}

func (m *importer) measure(ctx context.Context) error {
	defer m.r.releaseView()
	v, err := m.s.light(ctx, m.r)
	m.size = v.Size
	return err
}

func (m *importer) all(ctx context.Context, in iter.Seq2[Imported, error]) error {
	for msg, err := range in {
		if err != nil {
			return errors.Join(fmt.Errorf("import message %d: %w", m.done+1, err), m.flush(ctx))
		}
		if err := m.one(ctx, msg); err != nil {
			return fmt.Errorf("import message %d: %w", m.done+1, err)
		}
		if m.progress != nil {
			m.progress(m.done)
		}
		if err := m.yields.Did(ctx, m.s.Runtime, weight(msg.Message)); err != nil {
			return fmt.Errorf("import message %d: %w", m.done, err)
		}
	}
	if m.done < len(m.there) {
		return fmt.Errorf("session %s holds %d messages, the log only %d: import it into another session: %w", m.s.Key, len(m.there), m.done, tidemark.ErrConflict)
	}
	if err := m.flush(ctx); err != nil {
		return err
	}
	if m.size > m.limit { // as before the next reply, so that what is left can be sent
		return m.fit(ctx)
	}
	return nil
}

func (m *importer) one(ctx context.Context, in Imported) error {
	chain := tidemark.Chain(m.chain, in.Message)
	if m.done < len(m.there) {
		if m.there[m.done] != chain {
			return fmt.Errorf("session %s holds another conversation: import into another session, or reset this one: %w", m.s.Key, tidemark.ErrConflict)
		}
		m.chain, m.done, m.skipped = chain, m.done+1, m.skipped+1
		return nil
	}
	if in.Message.Role == tidemark.Assistant && m.size > m.limit {
		if err := m.flush(ctx); err != nil {
			return err
		}
		if err := m.fit(ctx); err != nil {
			return err
		}
	}
	if in.At.IsZero() {
		in.At = m.s.Runtime.Now()
	}
	e := tidemark.Entry{ID: tidemark.EntryID(tidemark.NewID(in.At)), Kind: tidemark.KindMessage, At: in.At, Tokens: tidemark.Estimate(in.Message),
		Call: in.Call, Origin: tidemark.Origin{From: tidemark.SourceOf(in.Message), Channel: tidemark.ChannelImport, Peer: in.Peer}}
	stmts, err := m.s.entryStmts(ctx, m.r.Log, &e, in.Message, m.chain)
	if err != nil {
		return err
	}
	m.chain, m.done = e.Chain, m.done+1
	m.stmts = append(m.stmts, stmts...)
	m.count++
	m.bytes += max(len(e.Payload), min(weight(in.Message), blocks.SpillBytes)) // of what is compressed or in the bucket, the words are here
	m.size += e.Tokens
	if m.bytes > importBytes || m.count >= 200 {
		return m.flush(ctx)
	}
	return nil
}

// weight is the length of a message.
func weight(m tidemark.Message) int { return len(m.AppendJSON(nil)) }

// flush writes what was gathered.
func (m *importer) flush(ctx context.Context) error {
	if m.count == 0 {
		return nil
	}
	stmts := append(m.stmts, tidemark.Stmt{SQL: `UPDATE heads SET active = ?, people = ?, messages = messages + ?, context = ? WHERE key = ?`,
		Args: []any{m.s.Runtime.Now().UnixMilli(), m.s.Runtime.Now().UnixMilli(), m.count, int64(m.size), string(m.s.Key)}, Want: 1})
	if err := m.s.step(ctx, m.r, stateCalling, stmts...); err != nil {
		return fmt.Errorf("write messages: %w", err)
	}
	m.stmts, m.count, m.bytes = nil, 0, 0
	return nil
}

func (m *importer) fit(ctx context.Context) error {
	defer m.r.releaseView()
	v, err := m.s.light(ctx, m.r)
	if err != nil {
		return err
	}
	if v, err = m.s.fit(ctx, m.r, v, fitAuto); err != nil {
		return err
	}
	m.size = v.Size
	return nil
}

func (s *Session) importResult(ctx context.Context, r *run, skipped int) (ImportResult, error) {
	h, err := s.head(ctx)
	if err != nil {
		return ImportResult{}, err
	}
	v, err := s.view(ctx, r.Log)
	if err != nil {
		return ImportResult{}, err
	}
	rows, err := s.DB.Query(ctx, `SELECT (SELECT count(*) FROM entries WHERE log = ?), (SELECT count(*) FROM parts WHERE log = ?), (SELECT count(*) FROM entries WHERE log = ? AND kind = 'message') LIMIT 1`, r.Log, r.Log, r.Log)
	if err != nil {
		return ImportResult{}, fmt.Errorf("count entries: %w", err)
	}
	return ImportResult{Messages: int(rows[0].Int(2)), Entries: int(rows[0].Int(0)), Compactions: h.Compactions, ArchivedParts: int(rows[0].Int(1)),
		ContextTokens: v.Size, Window: s.settings().Window, Limit: s.Budget().Limit(), Skipped: skipped}, nil
}
