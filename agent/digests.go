package agent

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
)

// digestTables have what sessions tell of their digests. first and last are positions in the database of the session; at
// is when its digests reached its last message, 0 while they do not.
var digestTables = []string{
	`CREATE TABLE agent_digests(agent TEXT NOT NULL, key TEXT NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL, closed INTEGER NOT NULL,
		at INTEGER NOT NULL, digest BLOB NOT NULL, PRIMARY KEY(agent, key, first)) WITHOUT ROWID`,
}

// Bounds of digests.
const (
	maxParts    = 32 // of a conversation, beside the open one: the oldest two become one
	maxReported = 16 // parts in one report
)

// Digests takes the digests that a session tells, and returns the position from which on it wants the next:
// behind the last part that is closed. Parts that do not follow on are left out, so whatever is told twice,
// out of order or after something was lost, ends up right: the session goes on from that position. Without
// parts it only asks.
func (find *finder) Digests(ctx context.Context, r recall.DigestReport) (next int64, err error) {
	if r.Key.Agent() != find.cfg.Name {
		return 0, fmt.Errorf("digests of %.80q for agent %s: %w", string(r.Key), find.cfg.Name, tidemark.ErrForbidden)
	}
	if len(r.Parts) > maxReported {
		return 0, fmt.Errorf("digests of %s: %d parts, at most %d: %w", r.Key, len(r.Parts), maxReported, tidemark.ErrTooLarge)
	}
	have, err := find.parts(ctx, r.Key)
	if err != nil {
		return 0, fmt.Errorf("digests of %s: %w", r.Key, err)
	}
	next = closedTo(have) + 1
	var stmts []tidemark.Stmt
	if next > r.Head+1 { // the conversation is not the one that was told of
		have, next = nil, 1
		stmts = append(stmts, tidemark.Stmt{SQL: `DELETE FROM agent_digests WHERE agent = ? AND key = ?`, Args: []any{find.cfg.Name, string(r.Key)}})
	}
	for i, p := range r.Parts {
		if p.First != next || p.Last < p.First {
			break
		}
		if _, err := recall.DecodeDigest(p.Digest); err != nil {
			return 0, fmt.Errorf("digests of %s: part %d of %d bytes: %w", r.Key, i, len(p.Digest), tidemark.ErrInvalid)
		}
		stmts = append(stmts, find.partStmt(r.Key, p, atOf(r.At, i == len(r.Parts)-1)))
		if !p.Closed {
			break
		}
		next = p.Last + 1
		have = append(have, part{first: p.First, last: p.Last, closed: true, digest: p.Digest})
	}
	fewer, err := find.mergeStmts(r.Key, have)
	if err != nil {
		return 0, err
	}
	if stmts = append(stmts, fewer...); len(stmts) > 0 {
		err := find.cfg.DB.Tx(ctx, stmts)
		find.shelf.drop(r.Key) // also when it failed: it may have been written
		if err != nil {
			return 0, fmt.Errorf("digests of %s: %w", r.Key, err)
		}
	}
	return next, nil
}

// atOf is what the last part of a report says of when the digests were whole.
func atOf(at time.Time, last bool) int64 {
	if at.IsZero() || !last {
		return 0
	}
	return at.UnixMilli()
}

// part is a row of the table.
type part struct {
	first, last int64
	closed      bool
	at          int64
	digest      []byte
}

// parts reads those of a conversation, oldest first.
func (find *finder) parts(ctx context.Context, key tidemark.Key) ([]part, error) {
	return host.Read(ctx, find.cfg.DB, "read parts", func(r tidemark.Row) (part, error) {
		return part{r.Int(0), r.Int(1), r.Int(2) != 0, r.Int(3), r.Bytes(4)}, nil
	}, `SELECT first, last, closed, at, digest FROM agent_digests WHERE agent = ? AND key = ? ORDER BY first LIMIT ?`,
		find.cfg.Name, string(key), maxParts+maxReported)
}

// closedTo is the last position of closed parts, 0 without any.
func closedTo(have []part) int64 {
	last := int64(0)
	for _, p := range have {
		if p.closed {
			last = max(last, p.last)
		}
	}
	return last
}

func (find *finder) partStmt(key tidemark.Key, p recall.DigestPart, at int64) tidemark.Stmt {
	return tidemark.Stmt{SQL: `INSERT INTO agent_digests(agent, key, first, last, closed, at, digest) VALUES(?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT(agent, key, first) DO UPDATE SET last = excluded.last, closed = excluded.closed, at = excluded.at, digest = excluded.digest`,
		Args: []any{find.cfg.Name, string(key), p.First, p.Last, p.Closed, at, p.Digest}}
}

// mergeStmts makes one part of two until there are not too many: of neighbours those whose sum is the
// smallest, so that all grow alike.
func (find *finder) mergeStmts(key tidemark.Key, have []part) ([]tidemark.Stmt, error) {
	var closed []part
	var size []int
	for _, p := range have {
		if p.closed {
			d, err := recall.DecodeDigest(p.digest)
			if err != nil {
				return nil, fmt.Errorf("digests of %s: %w", key, err)
			}
			closed, size = append(closed, p), append(size, d.Terms)
		}
	}
	var stmts []tidemark.Stmt
	for len(closed) > maxParts {
		at := 0
		for i := range len(closed) - 1 {
			if size[i]+size[i+1] < size[at]+size[at+1] {
				at = i
			}
		}
		x, err := recall.DecodeDigest(closed[at].digest)
		if err != nil {
			return nil, err
		}
		y, err := recall.DecodeDigest(closed[at+1].digest)
		if err != nil {
			return nil, err
		}
		gone := closed[at+1]
		closed[at].last, closed[at].at, closed[at].digest = gone.last, gone.at, recall.Merge(x, y).Encode()
		size[at] += size[at+1]
		closed, size = append(closed[:at+1], closed[at+2:]...), append(size[:at+1], size[at+2:]...)
		stmts = append(stmts,
			tidemark.Stmt{SQL: `DELETE FROM agent_digests WHERE agent = ? AND key = ? AND first = ?`, Args: []any{find.cfg.Name, string(key), gone.first}},
			find.partStmt(key, recall.DigestPart{First: closed[at].first, Last: closed[at].last, Closed: true, Digest: closed[at].digest}, gone.at))
	}
	return stmts, nil
}

// candidate is a conversation that may hold what is looked for.
type candidate struct {
	key     tidemark.Key
	updated int64  // as the directory knows
	known   bool   // there are digests
	at      int64  // when they were whole
	held    uint64 // terms that they may hold, see recall.Digest.MayHold
	score   float64
}

// Bounds of the conversations that are held against a query.
const (
	maxCandidates = 1000
	candidatePage = 50
	digestRows    = 100 // read at a time: at most 1.7 MB, mostly under 0.4
)

// candidates lists the conversations that a scope may read, last active first, with what their digests say.
// Beyond maxCandidates there is no looking: how many those are is told to the owner, since nobody else may know.
func (find *finder) candidates(ctx context.Context, scope tidemark.Scope, ask recall.Ask, terms []string) (out []candidate, beyond int, err error) {
	like := "%"
	switch {
	case !scope.Owner:
		like = "%:" + scope.Key.Peer() + "%" // mayFind decides
	case ask.Scope == recall.ScopePeer:
		like = "%:" + ask.Peer[strings.LastIndexByte(ask.Peer, ':')+1:] + "%"
	}
	all, err := host.Read(ctx, find.cfg.DB, "list sessions", func(r tidemark.Row) (candidate, error) {
		return candidate{key: tidemark.Key(r.Text(0)), updated: r.Int(1)}, nil
	},
		`SELECT key, updated FROM agent_sessions WHERE agent = ? AND key LIKE ? ORDER BY updated DESC, key LIMIT ?`, find.cfg.Name, like, maxCandidates)
	if err != nil {
		return nil, 0, err
	}
	if len(all) == maxCandidates && scope.Owner {
		n, err := host.Number(ctx, find.cfg.DB, "count sessions", `SELECT count(*) FROM agent_sessions WHERE agent = ? AND key LIKE ? LIMIT 1`, find.cfg.Name, like)
		if err != nil {
			return nil, 0, err
		}
		beyond = int(n) - maxCandidates
	}
	for _, c := range all {
		if c.key != ask.Own && mayFind(scope, c.key) && (ask.Scope != recall.ScopePeer || withPeer(c.key, ask.Peer)) {
			out = append(out, c)
		}
	}
	for at := 0; at < len(out); at += candidatePage {
		if err := find.weigh(ctx, out[at:min(at+candidatePage, len(out))], ask, terms); err != nil {
			return nil, 0, err
		}
	}
	return out, beyond, nil
}

// digested is what the agent remembers of the digests of a conversation, from one recall to the next.
type digested struct {
	at      int64 // when they were whole
	bytes   int
	digests []recall.Digest
}

// shelf holds digests by conversation. All that is written of them goes through [Agent.Digests], which takes the
// conversation off. Its zero value is empty.
type shelf struct {
	mu    sync.Mutex // guards the following
	of    map[tidemark.Key]*digested
	bytes int
	turn  int // of writes: what was read before one is not kept behind it
}

// maxShelf bounds what is remembered. The last active come first; of others digests are read each time.
const maxShelf = 4 << 20

// drop forgets what was told of a conversation.
func (s *shelf) drop(key tidemark.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.of[key]; t != nil {
		s.bytes -= t.bytes
	}
	delete(s.of, key)
	s.turn++
}

// weigh holds a query against the digests of some conversations.
func (find *finder) weigh(ctx context.Context, some []candidate, ask recall.Ask, terms []string) error {
	told := make([]*digested, len(some))
	var keys []any
	place := map[string]int{}
	find.shelf.mu.Lock()
	turn := find.shelf.turn
	for i, c := range some {
		if told[i] = find.shelf.of[c.key]; told[i] == nil {
			told[i] = &digested{bytes: digestBytes}
			place[string(c.key)], keys = i, append(keys, string(c.key))
		}
	}
	find.shelf.mu.Unlock()
	if len(keys) > 0 {
		if err := find.readDigests(ctx, told, place, keys); err != nil {
			return err
		}
		find.shelf.mu.Lock()
		if find.shelf.of == nil {
			find.shelf.of = map[tidemark.Key]*digested{}
		}
		for i, c := range some {
			if find.shelf.turn == turn && find.shelf.of[c.key] == nil && find.shelf.bytes+told[i].bytes <= maxShelf {
				find.shelf.of[c.key] = told[i]
				find.shelf.bytes += told[i].bytes
			}
		}
		find.shelf.mu.Unlock()
	}
	for i := range some {
		c := &some[i]
		c.known, c.at = len(told[i].digests) > 0, told[i].at
		for _, d := range told[i].digests {
			if d.Covers(ask.Since, ask.Until) {
				c.held |= d.MayHold(terms)
			}
		}
	}
	return nil
}

// digestBytes is about what a digest, or a conversation without any, takes beside the filter.
const digestBytes = 256

// readDigests reads those of some keys, each to its place.
func (find *finder) readDigests(ctx context.Context, told []*digested, place map[string]int, keys []any) error {
	for key, first := "", int64(-1); ; {
		args := append([]any{find.cfg.Name}, keys...)
		rows, err := find.cfg.DB.Query(ctx, `SELECT key, first, at, digest FROM agent_digests WHERE agent = ? AND key IN (`+host.Marks(len(keys))+`) AND (key > ? OR key = ? AND first > ?)
			ORDER BY key, first LIMIT ?`, append(args, key, key, first, digestRows)...)
		if err != nil {
			return err
		}
		for _, r := range rows {
			raw := slices.Clone(r.Bytes(3)) // not to hold the page
			d, err := recall.DecodeDigest(raw)
			if err != nil {
				return fmt.Errorf("digest of %s at %d: %w", r.Text(0), r.Int(1), err)
			}
			t := told[place[r.Text(0)]]
			t.at, t.digests, t.bytes = max(t.at, r.Int(2)), append(t.digests, d), t.bytes+digestBytes+len(raw)
		}
		if err := find.rest(ctx); err != nil { // a page may have 1.7 MB
			return err
		}
		if len(rows) < digestRows {
			return nil
		}
		key, first = rows[len(rows)-1].Text(0), rows[len(rows)-1].Int(1)
	}
}
