package session

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/recall"
	"github.com/tidemark-ai/tidemark/room"
)

// Wide is an [Agent] that looks into its other conversations. It knows by digests, which sessions tell it,
// whom to ask.
type Wide interface {
	// Digests takes what a session tells of itself, and returns the position from which on it wants more. The
	// same may be told twice; without parts it only answers.
	Digests(ctx context.Context, r recall.DigestReport) (next int64, err error)
	// Recall searches the conversations that a scope may read, but ask.Own.
	Recall(ctx context.Context, scope tidemark.Scope, ask recall.Ask) (recall.Answer, error)
}

// Bounds of digests.
const (
	digestEvery    = time.Minute // the shortest time between two reports
	digestParts    = 8           // in one report
	digestMessages = 4000        // read for one
	digestPage     = 20          // read at a time
	digestRest     = time.Second // behind an answer of a conversation that has told nothing yet
)

// digests is what a life keeps of the part that is open. The agent holds the truth: what is lost here is made
// again from the log, from where the agent says.
type digests struct {
	mu   sync.Mutex // guards the following; never held over a wait
	busy bool       // somebody works with open, next and last
	told time.Time

	open recall.DigestBuilder
	next int64 // where the open part begins; 0: the agent was not asked yet
	last int64 // how far it goes
}

// begin takes the work on the part that is open, unless somebody has it.
func (d *digests) begin() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.busy {
		return false
	}
	d.busy = true
	return true
}

// end lets go of it.
func (d *digests) end(now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.busy, d.told = false, now
}

// after is when the next report may be made; a clock that was set back holds nothing up.
func (d *digests) after(now time.Time) time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	if at := d.told.Add(digestEvery); !d.told.IsZero() && !d.told.After(now) && at.After(now) {
		return at
	}
	return now
}

// digestSoon has the agent told of the words of the conversation, where it was told of none in this life: they were logged
// before there were digests, perhaps.
func (s *Session) digestSoon(ctx context.Context) {
	if _, ok := s.wide(); !ok || !s.digested.silent() {
		return
	}
	soon := tidemark.Stmt{SQL: `INSERT INTO due(key, kind, at, data) VALUES(?, ?, ?, '') ON CONFLICT(key, kind) DO NOTHING`,
		Args: []any{string(s.Key), dueDigest, s.Runtime.Now().Add(digestRest).UnixMilli()}}
	if err := s.DB.Tx(ctx, []tidemark.Stmt{soon}); err != nil {
		s.warn("plan digests", err)
	}
	s.setAlarm(ctx)
}

// silent reports whether this life has told nothing.
func (d *digests) silent() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.told.IsZero() && !d.busy
}

// wide returns the agent, if it looks into other conversations.
func (s *Session) wide() (Wide, bool) {
	w, ok := s.Agent.(Wide)
	return w, ok
}

// digestStmts make new messages due to be told of, in the transaction that ends a report to the agent.
func (s *Session) digestStmts() []tidemark.Stmt {
	if _, ok := s.wide(); !ok {
		return nil
	}
	return []tidemark.Stmt{s.dueStmt(dueDigest, s.digested.after(s.Runtime.Now()), "")}
}

// digestNow tells of new messages what is due, or has the host wake the session when it is.
func (s *Session) digestNow(ctx context.Context) {
	if _, ok := s.wide(); !ok {
		return
	}
	if s.digested.after(s.Runtime.Now()).After(s.Runtime.Now()) {
		s.setAlarm(ctx)
		return
	}
	if err := s.digestDue(ctx); err != nil {
		s.warn("tell digests", err)
		if err := s.DB.Tx(ctx, []tidemark.Stmt{s.dueStmt(dueDigest, s.Runtime.Now().Add(digestEvery), "")}); err != nil {
			s.warn("put off digests", err)
		}
		s.setAlarm(ctx)
	}
}

// digestDue brings the agent's digests of the conversation up to date, or some way of a long one.
func (s *Session) digestDue(ctx context.Context) error {
	now := s.Runtime.Now()
	done := tidemark.Stmt{SQL: `DELETE FROM due WHERE key = ? AND kind = ? AND at <= ?`, Args: []any{string(s.Key), dueDigest, now.UnixMilli()}}
	to, ok := s.wide()
	if !ok {
		return s.DB.Tx(ctx, []tidemark.Stmt{done})
	}
	if !s.digested.begin() { // who has it sees what is new, or a later wake does
		return s.DB.Tx(ctx, []tidemark.Stmt{s.dueStmt(dueDigest, now.Add(digestEvery), "")})
	}
	defer s.digested.end(now)
	whole, err := s.tellDigests(ctx, to, now)
	if err != nil {
		s.digested.next = 0 // what the agent has is for it to say
		return err
	}
	if !whole {
		done = s.dueStmt(dueDigest, now.Add(digestEvery), "")
	}
	if err := s.DB.Tx(ctx, []tidemark.Stmt{done}); err != nil {
		return err
	}
	if !whole {
		s.setAlarm(ctx)
	}
	return nil
}

// tellDigests makes the digests of what the agent does not know and tells it; whole says that nothing is left.
func (s *Session) tellDigests(ctx context.Context, to Wide, now time.Time) (whole bool, err error) {
	d := &s.digested
	head, err := s.lastMessage(ctx)
	if err != nil {
		return false, fmt.Errorf("make digests: %w", err)
	}
	report := recall.DigestReport{Key: s.Key, Head: head}
	if d.next == 0 {
		if d.next, err = to.Digests(ctx, report); err != nil {
			return false, err
		}
		d.open, d.last = recall.DigestBuilder{}, d.next-1
	}
	before := d.last
	if report.Parts, err = s.digestParts(ctx, head); err != nil {
		return false, fmt.Errorf("make digests: %w", err)
	}
	if whole = d.last >= head; whole {
		report.At = now
	}
	if d.last >= d.next {
		report.Parts = append(report.Parts, recall.DigestPart{First: d.next, Last: d.last, Digest: d.open.Build().Encode()})
	}
	if d.last == before {
		return whole, nil
	}
	next, err := to.Digests(ctx, report)
	if err == nil && next != d.next { // it has lost some, or another life told it more
		d.next, whole = 0, false
	}
	return whole, err
}

// lastMessage is the position of the conversation's last message, 0 without any.
func (s *Session) lastMessage(ctx context.Context) (int64, error) {
	rows, err := s.DB.Query(ctx, `SELECT coalesce(max((SELECT max(seq) FROM entries WHERE log = l.id AND kind = 'message')), 0) FROM logs l WHERE l.key BETWEEN ? AND ? LIMIT 1`, s.ends()...)
	if err != nil || len(rows) == 0 {
		return 0, err
	}
	return rows[0].Int(0), nil
}

// digestParts reads on from where the open part ends and returns the parts that are closed by that.
func (s *Session) digestParts(ctx context.Context, head int64) ([]recall.DigestPart, error) {
	d := &s.digested
	var parts []recall.DigestPart
	var pace room.Pace
	for read := 0; d.last < head && read < digestMessages && len(parts) < digestParts; {
		rows, err := s.DB.Query(ctx, `SELECT e.seq FROM logs l CROSS JOIN entries e WHERE l.key BETWEEN ? AND ? AND e.log = l.id AND e.kind = 'message' AND e.seq > ? ORDER BY e.seq LIMIT ?`,
			append(s.ends(), d.last, digestPage)...)
		if err != nil || len(rows) == 0 {
			return parts, err
		}
		seqs := make([]int64, len(rows))
		for i, r := range rows {
			seqs[i] = r.Int(0)
		}
		entries, err := s.log.Payloads(ctx, seqs)
		if err != nil {
			return parts, err
		}
		skipped, err := s.skippedIn(ctx, seqs[0], seqs[len(seqs)-1])
		if err != nil {
			return parts, err
		}
		for _, e := range entries {
			if len(parts) == digestParts {
				return parts, nil
			}
			if err := s.digest(ctx, e, skipped[e.Seq]); err != nil {
				return parts, err
			}
			if read++; d.open.Full() {
				parts = append(parts, recall.DigestPart{First: d.next, Last: d.last, Closed: true, Digest: d.open.Build().Encode()})
				d.open, d.next = recall.DigestBuilder{}, d.last+1
			}
			if err := pace.Did(ctx, s.Runtime, len(e.Payload)); err != nil {
				return parts, err
			}
		}
	}
	return parts, nil
}

// digest takes a message into the open part, by the words that it is found by. A skipped one is not found.
func (s *Session) digest(ctx context.Context, e tidemark.Entry, skipped bool) error {
	if e.Origin.Findable() && !skipped {
		m, done, err := s.wordy(ctx, e)
		if err != nil {
			return fmt.Errorf("entry %s: %w", e.ID, err)
		}
		defer done()
		s.digested.open.Add(strings.Fields(room.Words(s.Stemmer, m)), e.At)
	}
	s.digested.last = e.Seq
	return nil
}
