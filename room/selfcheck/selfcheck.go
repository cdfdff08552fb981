// Package selfcheck is the room that looks at what a compaction did, before the next call of the model: entries that left the
// view can be read and found, markers cover exactly their spans, the view can be sent. The session lifts an act that is not
// sound. Begin with Check.
package selfcheck

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/blocks"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/internal/clip"
	"github.com/tidemark-ai/tidemark/room"
)

// Bounds of a self-check. It costs a few queries and reads little whatever the compaction was.
const (
	checkEntries = 8         // that are read, spread evenly over what left the view
	checkBytes   = 512 << 10 // of large blocks of one entry; beyond it they are only looked for
	checkTokens  = 2000      // messages whose tokens are added up
	maxFailure   = 200       // bytes of why an entry cannot be read
	keepLifted   = 100       // acts of a conversation
	liftedRest   = 15 * time.Minute
)

// tables hold what was lifted. A conversation with nothing to tell has none.
var tables = room.Tables{Space: "selfcheck", Steps: []string{
	`CREATE TABLE unsound(n INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL, overlay TEXT NOT NULL, at INTEGER NOT NULL, act TEXT NOT NULL, text TEXT NOT NULL)`,
}}

// Room checks the compactions of one conversation.
type Room struct {
	room.Self
	room.Checks
	log *host.Log
}

// Make makes the room.
func Make(p room.Ports) any { return &Room{p.Self, p.Checks, p.Log} }

var (
	_ room.Tabler  = (*Room)(nil)
	_ room.Checker = (*Room)(nil)
)

// Tables implements room.Tabler.
func (*Room) Tables() room.Tables { return tables }

// Check implements room.Checker.
func (s *Room) Check(ctx context.Context, a room.Acted) (room.Checked, error) {
	c := room.Checked{Overlay: a.Overlay}
	return c, s.check(ctx, a, &c)
}

func (s *Room) check(ctx context.Context, a room.Acted, c *room.Checked) error {
	c.Checks++
	if err := tidemark.Check(a.Messages); err != nil {
		c.Fails("the view cannot be sent: %s", err)
	}
	placed, err := s.Places(ctx, a.Edits)
	if err != nil {
		return err
	}
	for _, e := range placed {
		if err := s.checkMarker(ctx, a, e, c); err != nil {
			return err
		}
	}
	seqs, err := s.evictedSample(ctx, a.Log, placed)
	if err != nil {
		return err
	}
	entries, err := s.log.Payloads(ctx, seqs)
	if err != nil {
		return err
	}
	if len(entries) < len(seqs) {
		c.Fails("%d of %d entries that left the view are not in the log", len(seqs)-len(entries), len(seqs))
	}
	for _, e := range entries {
		if err := s.checkEntry(ctx, e, c); err != nil {
			return err
		}
	}
	return nil
}

// checkMarker holds what a marker says against the span that it stands for.
func (s *Room) checkMarker(ctx context.Context, a room.Acted, e compaction.Placed, c *room.Checked) error {
	m, ok := compaction.MarkerOf(a.Edits[e.N])
	if !ok {
		return nil
	}
	c.Checks++
	n, tokens, err := s.log.Count(ctx, a.Log, host.Range{From: e.From, To: e.To}, checkTokens)
	if err != nil {
		return err
	}
	n -= len(e.Keep)
	if m.Count != n {
		c.Fails("a marker says that it stands for %d messages and hides %d", m.Count, n)
	}
	if tokens > 0 && (m.Tokens <= 0 || m.Tokens > tokens) {
		c.Fails("a marker says that it stands for %d tokens, its span has %d", m.Tokens, tokens)
	}
	return nil
}

// evictedSample returns positions of entries that an act took out of the view, whole or a block of them.
func (s *Room) evictedSample(ctx context.Context, log string, placed []compaction.Placed) ([]int64, error) {
	var spans []compaction.Placed
	var blocks []int64
	for _, e := range placed {
		switch {
		case e.Block > 0:
			blocks = append(blocks, e.From)
		case !e.Insert:
			spans = append(spans, e)
		}
	}
	slices.Sort(blocks)
	blocks = slices.Compact(blocks)
	share := checkEntries
	if len(blocks) > 0 && len(spans) > 0 {
		share /= 2
	}
	var out []int64
	for i := range min(share, len(blocks)) {
		out = append(out, blocks[i*(len(blocks)-1)/max(min(share, len(blocks))-1, 1)])
	}
	for i, e := range spans {
		n := share / len(spans)
		if i == 0 {
			n = share - n*(len(spans)-1)
		}
		seqs, err := s.log.Spread(ctx, log, host.Range{From: e.From, To: e.To}, max(n, 0))
		if err != nil {
			return nil, err
		}
		out = append(out, seqs...)
	}
	slices.Sort(out)
	out = slices.Compact(out)
	return out[:min(len(out), checkEntries)], nil
}

// checkEntry reads an entry as recall does, and looks for it by a rare word of its own.
func (s *Room) checkEntry(ctx context.Context, e tidemark.Entry, c *room.Checked) error {
	c.Checks++
	stored, err := e.Message()
	if err != nil {
		c.Fails("entry %s cannot be read: %s", e.ID, clip.Line(err.Error(), maxFailure))
		return nil
	}
	if _, bytes := blocks.Large(stored); bytes > checkBytes {
		return s.checkLarge(ctx, e, stored, c)
	}
	m, err := s.Message(ctx, e)
	if err == nil {
		err = s.allThere(ctx, e, m)
	}
	if err == nil {
		err = s.Reads(ctx, e.ID)
	}
	if err != nil {
		return unread(c, e, err)
	}
	checks, repaired, fault, err := s.Indexed(ctx, e, m)
	c.Checks, c.Repaired = c.Checks+checks, c.Repaired+repaired
	if fault != "" {
		c.Fails("%s", fault)
	}
	return err
}

// unread notes an entry that is lost. A storage that does not answer tells nothing of what it holds: that is
// returned, and what it holds is still there when it answers again.
func unread(c *room.Checked, e tidemark.Entry, err error) error {
	if !errors.Is(err, tidemark.ErrNotFound) && !errors.Is(err, blocks.ErrDamaged) {
		return fmt.Errorf("check entry %s: %w", e.ID, err)
	}
	c.Fails("entry %s cannot be read: %s", e.ID, clip.Line(err.Error(), maxFailure))
	return nil
}

// checkLarge looks whether the large blocks of an entry are in the bucket, without reading them.
func (s *Room) checkLarge(ctx context.Context, e tidemark.Entry, stored tidemark.Message, c *room.Checked) error {
	for _, b := range stored.Content {
		ref, ok := blocks.Reference(b)
		if !ok || ref.InRow() {
			continue
		}
		size, err := s.InBucket(ctx, ref.SHA256)
		if err == nil && size != int64(ref.Bytes) {
			err = fmt.Errorf("block %s has %d bytes of %d: %w", ref.SHA256, size, ref.Bytes, blocks.ErrDamaged)
		}
		if err != nil {
			if err := unread(c, e, err); err != nil {
				return err
			}
		}
	}
	return nil
}

// allThere reports a block of a message that is a reference still: what it names is gone, unless somebody
// said a block that looks like one, which the chain of the log tells.
func (s *Room) allThere(ctx context.Context, e tidemark.Entry, m tidemark.Message) error {
	left, _ := blocks.Large(m)
	if len(left) == 0 {
		return nil
	}
	var prev tidemark.Hash
	if e.Seq > 1 { // 0 is the end
		var err error
		if prev, err = s.log.ChainAt(ctx, e.Log, e.Seq-1); err != nil {
			return err
		}
	}
	if tidemark.Chain(prev, m) == e.Chain {
		return nil
	}
	return fmt.Errorf("block %d of it is gone: %w", left[0]+1, tidemark.ErrNotFound)
}

// LiftedStmts implements room.Checker.
func (s *Room) LiftedStmts(ctx context.Context, a room.Acted, c room.Checked) ([]tidemark.Stmt, error) {
	if err := s.Made.Open(ctx, tables); err != nil {
		return nil, err
	}
	return []tidemark.Stmt{
		{SQL: `INSERT INTO unsound(key, overlay, at, act, text) VALUES(?, ?, ?, ?, ?)`, Args: []any{string(s.Key), string(a.Overlay), s.Runtime.Now().UnixMilli(), actHash(a.Edits), strings.Join(c.Violations, "; ")}},
		{SQL: `DELETE FROM unsound WHERE key = ? AND n <= (SELECT n FROM unsound WHERE key = ? ORDER BY n DESC LIMIT 1 OFFSET ?)`, Args: []any{string(s.Key), string(s.Key), keepLifted}},
	}, nil
}

// actHash names an act by what it evicts.
func actHash(edits []tidemark.Edit) string {
	var b strings.Builder
	for _, e := range edits {
		fmt.Fprintf(&b, "%s %s %d\n", e.From, e.To, e.Block)
	}
	return string(tidemark.HashOf([]byte(b.String())))[:16]
}

// Lifted implements room.Checker.
func (s *Room) Lifted(ctx context.Context, edits []tidemark.Edit) (string, error) {
	rows, err := s.Made.Query(ctx, tables, `SELECT text FROM unsound WHERE key = ? AND act = ? AND at > ? ORDER BY n DESC LIMIT 1`,
		string(s.Key), actHash(edits), s.Runtime.Now().Add(-liftedRest).UnixMilli())
	if err != nil || len(rows) == 0 {
		return "", err
	}
	return rows[0].Text(0), nil
}

// Unsound is a compaction that its self-check took back.
type Unsound struct {
	Key     tidemark.Key     `json:"key"`
	Overlay tidemark.EntryID `json:"overlay"`
	At      time.Time        `json:"at"`
	Text    string           `json:"text"`
}

// Unsounds returns the compactions of a database that were taken back, the newest first.
func Unsounds(ctx context.Context, db tidemark.DB, limit int) ([]Unsound, error) {
	rows, err := db.Query(ctx, `SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'unsound' LIMIT 1`)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	rows, err = db.Query(ctx, `SELECT key, overlay, at, text FROM unsound ORDER BY n DESC LIMIT ?`, limit)
	if err != nil {
		return nil, fmt.Errorf("read self-checks: %w", err)
	}
	out := make([]Unsound, len(rows))
	for i, r := range rows {
		out[i] = Unsound{Key: tidemark.Key(r.Text(0)), Overlay: tidemark.EntryID(r.Text(1)), At: time.UnixMilli(r.Int(2)), Text: r.Text(3)}
	}
	return out, nil
}
