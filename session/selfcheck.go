package session

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

// Bounds of a self-check. It is made before the next call of the model, so it costs a few queries and reads
// little whatever the compaction was.
const (
	checkEntries = 8         // that are read, spread evenly over what left the view
	checkBytes   = 512 << 10 // of large blocks of one entry; beyond it they are only looked for
	checkTokens  = 2000      // messages whose tokens are added up
)

// Checked is what the self-check behind a compaction found.
type Checked struct {
	Overlay    tidemark.EntryID `json:"overlay"`
	Checks     int              `json:"checks"`
	Repaired   int              `json:"repaired,omitempty"` // rows of the index that were missing, or of other words
	Violations []string         `json:"violations,omitempty"`
}

// fails notes a violation.
func (c *Checked) fails(format string, args ...any) {
	c.Violations = append(c.Violations, fmt.Sprintf(format, args...))
}

// checked looks at what a compaction did: entries that left the view can be read and found, markers cover
// exactly their spans, the view can be sent. When something is not so the overlay is lifted, an event says
// why, and the view without it is returned. A check that cannot be made is no violation, and when one was
// found the plan has no overlay any more.
func (s *Session) checked(ctx context.Context, r *run, p *plan, v View) (View, error) {
	if p.overlay == "" {
		return v, nil
	}
	c := Checked{Overlay: p.overlay}
	if err := s.selfCheck(ctx, p, v, &c); err != nil {
		if ctx.Err() != nil || errors.Is(err, tidemark.ErrDead) {
			return v, err
		}
		s.Logger.Warn("self-check of a compaction", "session", s.Key, "overlay", p.overlay, "err", err)
	}
	if s.Observe != nil {
		s.Observe(Notice{Type: NoticeChecked, Run: r.ID, Checked: &c})
	}
	if len(c.Violations) == 0 {
		return v, nil
	}
	err := s.liftUnsound(ctx, r, p, c)
	p.overlay = "" // nothing is to be learned from an act that is no more
	if err != nil {
		return v, fmt.Errorf("lift overlay %s: %w", c.Overlay, err)
	}
	return s.view(ctx, v.Log)
}

func (s *Session) selfCheck(ctx context.Context, p *plan, v View, c *Checked) error {
	c.Checks++
	if err := tidemark.Check(v.Messages()); err != nil {
		c.fails("the view cannot be sent: %s", err)
	}
	placed, err := s.place(ctx, []host.Mark{{ID: p.overlay, Seq: 1 << 53, Overlay: tidemark.Overlay{Edits: p.edits}}})
	if err != nil {
		return err
	}
	for _, e := range placed {
		if err := s.checkMarker(ctx, p, e, c); err != nil {
			return err
		}
	}
	seqs, err := s.evictedSample(ctx, p.Log, placed)
	if err != nil {
		return err
	}
	entries, err := s.log.Payloads(ctx, seqs)
	if err != nil {
		return err
	}
	if len(entries) < len(seqs) {
		c.fails("%d of %d entries that left the view are not in the log", len(seqs)-len(entries), len(seqs))
	}
	for _, e := range entries {
		if err := s.checkEntry(ctx, e, c); err != nil {
			return err
		}
	}
	return nil
}

// checkMarker holds what a marker says against the span that it stands for.
func (s *Session) checkMarker(ctx context.Context, p *plan, e compaction.Placed, c *Checked) error {
	m, ok := compaction.MarkerOf(p.edits[e.N])
	if !ok {
		return nil
	}
	c.Checks++
	n, tokens, err := s.log.Count(ctx, p.Log, host.Range{From: e.From, To: e.To}, checkTokens)
	if err != nil {
		return err
	}
	n -= len(e.Keep)
	if m.Count != n {
		c.fails("a marker says that it stands for %d messages and hides %d", m.Count, n)
	}
	if tokens > 0 && (m.Tokens <= 0 || m.Tokens > tokens) {
		c.fails("a marker says that it stands for %d tokens, its span has %d", m.Tokens, tokens)
	}
	return nil
}

// recount has markers stand for all that their spans hide: also for what left before and has nothing in the view any more
// that a plan could count, such as the runs of an episode behind the one that has its line.
func (s *Session) recount(ctx context.Context, log string, edits []tidemark.Edit) error {
	if !slices.ContainsFunc(edits, func(e tidemark.Edit) bool { _, ok := compaction.MarkerOf(e); return ok }) {
		return nil
	}
	d, ok := Room[room.Divider](s)
	if !ok {
		return nil
	}
	if ever, err := d.Ever(ctx); !ever || err != nil {
		return err
	}
	placed, err := s.place(ctx, []host.Mark{{ID: "planned", Seq: 1 << 53, Overlay: tidemark.Overlay{Edits: edits}}})
	if err != nil {
		return err
	}
	for _, e := range placed {
		m, ok := compaction.MarkerOf(edits[e.N])
		if !ok {
			continue
		}
		n, _, err := s.log.Count(ctx, log, host.Range{From: e.From, To: e.To}, 0)
		if err != nil {
			return err
		}
		if n -= len(e.Keep); n > m.Count {
			m.Count = n
			edits[e.N] = m.Put(edits[e.N])
		}
	}
	return nil
}

// evictedSample returns positions of entries that an act took out of the view, whole or a block of them.
func (s *Session) evictedSample(ctx context.Context, log string, placed []compaction.Placed) ([]int64, error) {
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
func (s *Session) checkEntry(ctx context.Context, e tidemark.Entry, c *Checked) error {
	c.Checks++
	stored, err := e.Message()
	if err != nil {
		c.fails("entry %s cannot be read: %s", e.ID, clip.Line(err.Error(), maxFailure))
		return nil
	}
	if _, bytes := blocks.Large(stored); bytes > checkBytes {
		return s.checkLarge(ctx, e, stored, c)
	}
	m, err := s.blocks.Message(ctx, e)
	if err == nil {
		err = s.allThere(ctx, e, m)
	}
	if err == nil {
		_, err = s.ReadEntry(ctx, e.ID, 0)
	}
	if err != nil {
		return c.unread(e, err)
	}
	r, ok := Room[room.Indexer](s)
	if !ok {
		return nil
	}
	checks, repaired, fault, err := r.Check(ctx, e, m)
	c.Checks, c.Repaired = c.Checks+checks, c.Repaired+repaired
	if fault != "" {
		c.fails("%s", fault)
	}
	return err
}

// unread notes an entry that is lost. A storage that does not answer tells nothing of what it holds: that is
// returned, and what it holds is still there when it answers again.
func (c *Checked) unread(e tidemark.Entry, err error) error {
	if !errors.Is(err, tidemark.ErrNotFound) && !errors.Is(err, blocks.ErrDamaged) {
		return fmt.Errorf("check entry %s: %w", e.ID, err)
	}
	c.fails("entry %s cannot be read: %s", e.ID, clip.Line(err.Error(), maxFailure))
	return nil
}

// checkLarge looks whether the large blocks of an entry are in the bucket, without reading them.
func (s *Session) checkLarge(ctx context.Context, e tidemark.Entry, stored tidemark.Message, c *Checked) error {
	for _, b := range stored.Content {
		ref, ok := blocks.Reference(b)
		if !ok || ref.InRow() {
			continue
		}
		o, body, err := s.Blobs.Get(ctx, s.blocks.Name(ref.SHA256))
		if err == nil {
			err = body.Close()
		}
		if err == nil && o.Size != int64(ref.Bytes) {
			err = fmt.Errorf("block %s has %d bytes of %d: %w", ref.SHA256, o.Size, ref.Bytes, blocks.ErrDamaged)
		}
		if err != nil {
			if err := c.unread(e, err); err != nil {
				return err
			}
		}
	}
	return nil
}

// allThere reports a block of a message that is a reference still: what it names is gone, unless somebody
// said a block that looks like one, which the chain of the log tells.
func (s *Session) allThere(ctx context.Context, e tidemark.Entry, m tidemark.Message) error {
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

// liftUnsound takes back an act that its check found unsound, as [Session.Undo] does, says so in the log,
// and keeps the act from being repeated at once.
func (s *Session) liftUnsound(ctx context.Context, r *run, p *plan, c Checked) error {
	if err := s.made.Open(ctx, unsoundTables); err != nil {
		return err
	}
	o := tidemark.Overlay{By: []string{"session"}, Lifts: []tidemark.EntryID{p.overlay}, Reason: "selfcheck"}
	_, stmts, err := s.overlayStmts(p.Log, tidemark.FromSystem, o)
	if err != nil {
		return err
	}
	text := "The compaction was taken back: what it evicted could not be had again in full. " + strings.Join(c.Violations, "; ") + ". Everything is in view as before."
	event := tidemark.Event{Type: "selfcheck", Text: text, Data: []byte(mustJSON(c))}
	stmts = append(stmts, s.eventStmt(p.Log, event),
		tidemark.Stmt{SQL: `INSERT INTO unsound(key, overlay, at, act, text) VALUES(?, ?, ?, ?, ?)`, Args: []any{string(s.Key), string(p.overlay), s.Runtime.Now().UnixMilli(), actHash(p.edits), strings.Join(c.Violations, "; ")}},
		tidemark.Stmt{SQL: `DELETE FROM unsound WHERE key = ? AND n <= (SELECT n FROM unsound WHERE key = ? ORDER BY n DESC LIMIT 1 OFFSET ?)`, Args: []any{string(s.Key), string(s.Key), keepUnsound}},
		tidemark.Stmt{SQL: `UPDATE heads SET prompt = '', context = ?, cooldown = ? WHERE key = ?`, Args: []any{int64(p.Size), s.Runtime.Now().Add(cooldowns[0]).UnixMilli(), string(s.Key)}, Want: 1})
	if r.State == stateDone { // a command is over with its compaction; no other run may have begun
		idle := tidemark.Stmt{SQL: `UPDATE heads SET active = active WHERE key = ? AND NOT EXISTS (SELECT 1 FROM runs WHERE key = ? AND state IN ('calling', 'tools'))`,
			Args: []any{string(s.Key), string(s.Key)}, Want: 1}
		err = s.DB.Tx(ctx, append(stmts, idle))
	} else {
		err = s.step(ctx, r, stateCalling, stmts...)
	}
	if err != nil {
		return err
	}
	s.Logger.Error("a compaction was taken back by its self-check", "session", s.Key, "overlay", p.overlay, "why", strings.Join(c.Violations, "; "))
	s.hub.send(Notice{Type: NoticeEvent, Run: r.ID, Event: &event})
	return nil
}

const (
	keepUnsound = 100 // of a conversation
	unsoundRest = 15 * time.Minute
)

// actHash names an act by what it evicts.
func actHash(edits []tidemark.Edit) string {
	var b strings.Builder
	for _, e := range edits {
		fmt.Fprintf(&b, "%s %s %d\n", e.From, e.To, e.Block)
	}
	return string(tidemark.HashOf([]byte(b.String())))[:16]
}

// wasUnsound refuses an act that a self-check has just taken back: it would be again.
func (s *Session) wasUnsound(ctx context.Context, act compaction.Act) error {
	rows, err := s.made.Query(ctx, unsoundTables, `SELECT text FROM unsound WHERE key = ? AND act = ? AND at > ? ORDER BY n DESC LIMIT 1`,
		string(s.Key), actHash(act.Edits), s.Runtime.Now().Add(-unsoundRest).UnixMilli())
	if err != nil || len(rows) == 0 {
		return err
	}
	return fmt.Errorf("the same compaction was taken back by its self-check (%s): %w", rows[0].Text(0), tidemark.ErrNoGain)
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
