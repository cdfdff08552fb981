package search

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/recall"
	"github.com/tidemark-ai/tidemark/room"
)

// Wide is an agent that looks into its other conversations. It knows by digests, which sessions tell it,
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

// dueDigest is due while the agent does not know which words are new.
const dueDigest = "digest"

// Digests is the part of the room that tells the agent which words the conversation has. What a life keeps is of the part
// that is open: the agent holds the truth, and what is lost here is made again from the log, from where the agent says.
type Digests struct {
	ports
	skips *Skips

	mu   sync.Mutex // guards the following; never held over a wait
	busy bool       // somebody works with open, next and last
	told time.Time

	open recall.DigestBuilder
	next int64 // where the open part begins; 0: the agent was not asked yet
	last int64 // how far it goes
}

var (
	_ room.Waker    = (*Digests)(nil)
	_ room.Informer = (*Digests)(nil)
)

// Wakes implements room.Waker.
func (s *Digests) Wakes() string { return dueDigest }

// begin takes the work on the part that is open, unless somebody has it.
func (s *Digests) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy {
		return false
	}
	s.busy = true
	return true
}

// end lets go of it.
func (s *Digests) end(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy, s.told = false, now
}

// after is when the next report may be made; a clock that was set back holds nothing up.
func (s *Digests) after(now time.Time) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at := s.told.Add(digestEvery); !s.told.IsZero() && !s.told.After(now) && at.After(now) {
		return at
	}
	return now
}

// soon has the agent told of the words of the conversation, where it was told of none in this life: they were logged
// before there were digests, perhaps.
func (s *Digests) soon(ctx context.Context) {
	if _, ok := wideOf(s.Agent); !ok || !s.silent() {
		return
	}
	soon := tidemark.Stmt{SQL: `INSERT INTO due(key, kind, at, data) VALUES(?, ?, ?, '') ON CONFLICT(key, kind) DO NOTHING`,
		Args: []any{string(s.Key), dueDigest, s.Runtime.Now().Add(digestRest).UnixMilli()}}
	if err := s.DB.Tx(ctx, []tidemark.Stmt{soon}); err != nil {
		s.Warn("plan digests", err)
	}
	s.Alarm(ctx)
}

// silent reports whether this life has told nothing.
func (s *Digests) silent() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.told.IsZero() && !s.busy
}

// ToldStmts make new messages due to be told of, in the transaction that ends a report to the agent.
func (s *Digests) ToldStmts() []tidemark.Stmt {
	if _, ok := wideOf(s.Agent); !ok {
		return nil
	}
	return []tidemark.Stmt{s.Due(dueDigest, s.after(s.Runtime.Now()), "")}
}

// Told tells of new messages what is due, or has the host wake the session when it is.
func (s *Digests) Told(ctx context.Context) {
	if _, ok := wideOf(s.Agent); !ok {
		return
	}
	if s.after(s.Runtime.Now()).After(s.Runtime.Now()) {
		s.Alarm(ctx)
		return
	}
	if err := s.Wake(ctx); err != nil {
		s.Warn("tell digests", err)
		if err := s.DB.Tx(ctx, []tidemark.Stmt{s.Due(dueDigest, s.Runtime.Now().Add(digestEvery), "")}); err != nil {
			s.Warn("put off digests", err)
		}
		s.Alarm(ctx)
	}
}

// Wake brings the agent's digests of the conversation up to date, or some way of a long one.
func (s *Digests) Wake(ctx context.Context) error {
	now := s.Runtime.Now()
	done := tidemark.Stmt{SQL: `DELETE FROM due WHERE key = ? AND kind = ? AND at <= ?`, Args: []any{string(s.Key), dueDigest, now.UnixMilli()}}
	to, ok := wideOf(s.Agent)
	if !ok {
		return s.DB.Tx(ctx, []tidemark.Stmt{done})
	}
	if !s.begin() { // who has it sees what is new, or a later wake does
		return s.DB.Tx(ctx, []tidemark.Stmt{s.Due(dueDigest, now.Add(digestEvery), "")})
	}
	defer s.end(now)
	whole, err := s.tellDigests(ctx, to, now)
	if err != nil {
		s.next = 0 // what the agent has is for it to say
		return err
	}
	if !whole {
		done = s.Due(dueDigest, now.Add(digestEvery), "")
	}
	if err := s.DB.Tx(ctx, []tidemark.Stmt{done}); err != nil {
		return err
	}
	if !whole {
		s.Alarm(ctx)
	}
	return nil
}

// tellDigests makes the digests of what the agent does not know and tells it; whole says that nothing is left.
func (s *Digests) tellDigests(ctx context.Context, to Wide, now time.Time) (whole bool, err error) {
	head, err := s.lastMessage(ctx)
	if err != nil {
		return false, fmt.Errorf("make digests: %w", err)
	}
	report := recall.DigestReport{Key: s.Key, Head: head}
	if s.next == 0 {
		if s.next, err = to.Digests(ctx, report); err != nil {
			return false, err
		}
		s.open, s.last = recall.DigestBuilder{}, s.next-1
	}
	before := s.last
	if report.Parts, err = s.digestParts(ctx, head); err != nil {
		return false, fmt.Errorf("make digests: %w", err)
	}
	if whole = s.last >= head; whole {
		report.At = now
	}
	if s.last >= s.next {
		report.Parts = append(report.Parts, recall.DigestPart{First: s.next, Last: s.last, Digest: s.open.Build().Encode()})
	}
	if s.last == before {
		return whole, nil
	}
	next, err := to.Digests(ctx, report)
	if err == nil && next != s.next { // it has lost some, or another life told it more
		s.next, whole = 0, false
	}
	return whole, err
}

// lastMessage is the position of the conversation's last message, 0 without any.
func (s *Digests) lastMessage(ctx context.Context) (int64, error) {
	l, err := s.Lineage(ctx, true)
	if err != nil {
		return 0, err
	}
	rows, err := s.DB.Query(ctx, `SELECT coalesce(max((SELECT max(seq) FROM entries WHERE log = l.id AND kind = 'message')), 0) FROM logs l WHERE l.key BETWEEN ? AND ? LIMIT 1`, l.Ends...)
	if err != nil || len(rows) == 0 {
		return 0, err
	}
	return rows[0].Int(0), nil
}

// digestParts reads on from where the open part ends and returns the parts that are closed by that.
func (s *Digests) digestParts(ctx context.Context, head int64) ([]recall.DigestPart, error) {
	l, err := s.Lineage(ctx, true)
	if err != nil {
		return nil, err
	}
	var parts []recall.DigestPart
	var yields host.Yielder
	for read := 0; s.last < head && read < digestMessages && len(parts) < digestParts; {
		rows, err := s.DB.Query(ctx, `SELECT e.seq FROM logs l CROSS JOIN entries e WHERE l.key BETWEEN ? AND ? AND e.log = l.id AND e.kind = 'message' AND e.seq > ? ORDER BY e.seq LIMIT ?`,
			append(slices.Clone(l.Ends), s.last, digestPage)...)
		if err != nil || len(rows) == 0 {
			return parts, err
		}
		seqs := make([]int64, len(rows))
		for i, r := range rows {
			seqs[i] = r.Int(0)
		}
		entries, err := s.Log.Payloads(ctx, seqs)
		if err != nil {
			return parts, err
		}
		skipped, err := s.skips.Skipped(ctx, seqs[0], seqs[len(seqs)-1])
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
			if read++; s.open.Full() {
				parts = append(parts, recall.DigestPart{First: s.next, Last: s.last, Closed: true, Digest: s.open.Build().Encode()})
				s.open, s.next = recall.DigestBuilder{}, s.last+1
			}
			if err := yields.Did(ctx, s.Runtime, len(e.Payload)); err != nil {
				return parts, err
			}
		}
	}
	return parts, nil
}

// digest takes a message into the open part, by the words that it is found by. A skipped one is not found.
func (s *Digests) digest(ctx context.Context, e tidemark.Entry, skipped bool) error {
	if e.Origin.Findable() && !skipped {
		m, done, err := s.Words(ctx, e)
		if err != nil {
			return fmt.Errorf("entry %s: %w", e.ID, err)
		}
		defer done()
		s.open.Add(strings.Fields(room.Words(s.Stemmer, m)), e.At)
	}
	s.last = e.Seq
	return nil
}
