package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/history"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/summary"
)

// A compaction that asks no model has read nothing, so what persons said in it is read for memories behind the
// turn: a row for each overlay says of which log, and how far it was read.

// extractDeadline bounds how long a reset, and the person behind it, waits for memories; what is
// not there by then is owed.
const extractDeadline = 3 * time.Minute

// evictedStmt makes what an overlay took out of the view due to be read.
func (s *Session) evictedStmt(log string, overlay tidemark.EntryID) tidemark.Stmt {
	return s.dueStmt(dueEvicted+string(overlay), s.Runtime.Now(), log+" 0")
}

// evictedDue reads a chunk, unless a turn is in work: it comes first. When the model cannot be reached, all rows
// wait; any other failure is of one.
func (s *Session) evictedDue(ctx context.Context, kind, data string) error {
	now := s.Runtime.Now()
	busy, err := s.Busy(ctx)
	if err != nil {
		return err
	}
	if busy != "" {
		return s.putOff(ctx, kind, now.Add(heartbeat))
	}
	limited, stop := s.Runtime.WithTimeout(ctx, extractDeadline)
	_, err = s.readEvicted(limited, kind, data)
	stop()
	if errors.Is(err, tidemark.ErrConflict) || ctx.Err() != nil {
		err = nil // somebody else has read it, or will
	}
	if err == nil {
		return nil
	}
	s.Logger.Warn("memories of what left the view", "session", s.Key, "overlay", kind, "err", err)
	like := kind
	if summary.Passing(err) {
		like = dueEvicted + "%"
	}
	return s.putOff(ctx, like, now.Add(cooldowns[len(cooldowns)-1]))
}

func (s *Session) putOff(ctx context.Context, like string, at time.Time) error {
	return s.DB.Tx(ctx, []tidemark.Stmt{{SQL: `UPDATE due SET at = ? WHERE key = ? AND kind LIKE ?`, Args: []any{at.UnixMilli(), string(s.Key), like}}})
}

// readAllEvicted reads what is due of it, for a reset.
func (s *Session) readAllEvicted(ctx context.Context) (*summary.Draft, error) {
	all := &summary.Draft{}
	for {
		rows, err := s.DB.Query(ctx, `SELECT kind, data FROM due WHERE key = ? AND kind LIKE ? ORDER BY kind LIMIT 1`, string(s.Key), dueEvicted+"%")
		if err != nil || len(rows) == 0 {
			return all, err
		}
		p, err := s.readEvicted(ctx, rows[0].Text(0), rows[0].Text(1))
		if err != nil && !errors.Is(err, tidemark.ErrConflict) {
			return all, err
		}
		all.Facts, all.Usage = append(all.Facts, p.Facts...), all.Usage.Add(p.Usage)
	}
}

// readEvicted asks for the memories of one chunk, and keeps them in the transaction that says how far it was read.
func (s *Session) readEvicted(ctx context.Context, kind, data string) (*summary.Draft, error) {
	log, seq, _ := strings.Cut(data, " ")
	done, _ := strconv.Atoi(seq)
	overlay := kind[len(dueEvicted):]
	p := &summary.Draft{ID: overlay, Log: log, OnlyMemories: true, Chunk: done}
	next := tidemark.Stmt{SQL: `DELETE FROM due WHERE key = ? AND kind = ? AND data = ?`, Args: []any{string(s.Key), kind, data}, Want: 1}
	if s.settings().NoMemories {
		return p, s.DB.Tx(ctx, []tidemark.Stmt{next})
	}
	v, items, err := s.evicted(ctx, log, tidemark.EntryID(overlay), int64(done))
	if err != nil {
		return p, err
	}
	chunks := compaction.Chunks(items, s.chunkSize())
	for len(chunks) > 0 && !slices.ContainsFunc(chunks[0], ofPerson) {
		chunks = chunks[1:] // only what persons said is a memory
	}
	stmts := []tidemark.Stmt{next}
	if len(chunks) > 0 {
		p.Known = s.known(v)
		err := s.writer.Condense(ctx, p, chunks[0])
		if err != nil && ctx.Err() != nil {
			if s.life.Err() != nil || len(p.Facts)+len(p.Refused) == 0 {
				return p, err
			}
			ctx = s.life // it took too long, and would again: what was read of it is kept
		}
		if summary.Passing(err) && len(p.Facts)+len(p.Refused) == 0 {
			return p, errors.Join(err, s.DB.Tx(ctx, []tidemark.Stmt{s.addUsage(p.Usage)}))
		}
		if err != nil { // what no model can read is passed over; it stays in the archive
			s.Logger.Warn("memories of a chunk", "session", s.Key, "overlay", overlay, "err", err)
		}
		if len(chunks) > 1 {
			last := strconv.FormatInt(chunks[0][len(chunks[0])-1].Last, 10)
			stmts[0].SQL = `UPDATE due SET data = ? WHERE key = ? AND kind = ? AND data = ?`
			stmts[0].Args = append([]any{log + " " + last}, next.Args...)
		}
		stmts = append(stmts, s.addUsage(p.Usage), s.dueStmt(dueOutbox, s.Runtime.Now(), ""))
	}
	for _, f := range p.Facts {
		stmts = append(stmts, s.outboxStmt("facts:"+f.ID, outFacts, f))
	}
	if err := s.DB.Tx(ctx, stmts); err != nil {
		return p, fmt.Errorf("store memories: %w", err)
	}
	return p, nil
}

func ofPerson(it compaction.Item) bool { return it.Source == tidemark.FromPerson }

// evicted returns the messages that an overlay took out of the view under markers, behind a position, with the view
// as it was before: what left it earlier has a row of its own. Of a lifted one these are what a wider overlay of that
// time still hides, whose own row reads only what it took itself.
func (s *Session) evicted(ctx context.Context, log string, overlay tidemark.EntryID, behind int64) (v View, items []compaction.Item, err error) {
	marks, err := s.lineage.Overlays(ctx, log, 0)
	if err != nil {
		return v, nil, err
	}
	at := slices.IndexFunc(marks, func(m host.Mark) bool { return m.ID == overlay })
	if at < 0 {
		return v, nil, nil
	}
	var still compaction.Layout
	lifted := compaction.Lifted(history.Rows(marks))[overlay]
	if lifted {
		now, err := s.Reader.Edits(ctx, beforeLift(marks, overlay))
		if still = compaction.Lay(now.Placed); err != nil || len(still.Hidden) == 0 {
			return v, nil, err
		}
	}
	before, err := s.Reader.Edits(ctx, slices.Concat(marks[:at], amendments(marks[at:])))
	if err != nil {
		return v, nil, err
	}
	if v, err = s.viewOf(ctx, log, before, nil); err != nil {
		return v, nil, err
	}
	entries, err := s.log.Payloads(ctx, []int64{marks[at].Seq})
	if err != nil || len(entries) == 0 {
		return v, nil, err
	}
	var o tidemark.Overlay
	if err := json.Unmarshal(entries[0].Payload, &o); err != nil {
		return v, nil, fmt.Errorf("read overlay %s: %w", overlay, err)
	}
	for _, e := range o.Edits {
		if _, ok := compaction.MarkerOf(e); !ok && !compaction.Collapsed(e) {
			continue
		}
		under, _ := s.covered(v, e)
		for _, it := range s.unskipped(ctx, under) {
			if !it.Span() && it.Seq > behind && (!lifted || still.Gaps(it.Seq, it.Seq) == nil) {
				items = append(items, it)
			}
		}
	}
	return v, items, nil
}

// beforeLift leaves out the overlays behind the lift of one: what they took has rows of its own.
func beforeLift(marks []host.Mark, overlay tidemark.EntryID) []host.Mark {
	var lift int64
	for _, m := range marks {
		if slices.Contains(m.Overlay.Lifts, overlay) {
			lift = m.Seq
		}
	}
	var out []host.Mark
	for _, m := range marks {
		if m.Seq <= lift || len(m.Overlay.Lifts) > 0 {
			out = append(out, m)
		}
	}
	return out
}

// rereadStmts make what was ever lifted in a log due to be read: to lift a lift takes it out of the view again, and
// its row may be gone. What was read before gives facts of the same ids, which are kept once.
func (s *Session) rereadStmts(ctx context.Context, log string) ([]tidemark.Stmt, error) {
	marks, err := s.lineage.Overlays(ctx, log, 0)
	var stmts []tidemark.Stmt
	for _, m := range marks {
		for _, id := range m.Overlay.Lifts {
			stmts = append(stmts, s.evictedStmt(log, id))
		}
	}
	return stmts, err
}

// extraction asks chunk by chunk for memories of the newest part of a view. What was finished is
// returned with the error.
func (s *Session) extraction(ctx context.Context, v View) (*summary.Draft, error) {
	var items []compaction.Item
	for _, it := range s.unskipped(ctx, v.Items) {
		if !it.Span() {
			items = append(items, it)
		}
	}
	p := &summary.Draft{ID: "reset", Log: v.Log, OnlyMemories: true, Known: s.known(v)}
	for _, chunk := range compaction.Chunks(items, s.chunkSize()) {
		err := s.writer.Condense(ctx, p, chunk)
		if summary.Passing(err) || err != nil && ctx.Err() != nil {
			return p, err
		}
		if err != nil { // what no model can read is passed over; it stays in the archive
			s.Logger.Warn("memories of a chunk", "session", s.Key, "chunk", p.Chunk, "err", err)
		}
		p.Chunk++
	}
	return p, nil
}

// extractLater makes the extraction that a reset owes, from the old log.
func (s *Session) extractLater(ctx context.Context, old string) error {
	if s.settings().NoMemories {
		return s.DB.Tx(ctx, []tidemark.Stmt{s.undueStmt(dueExtract + old)})
	}
	v, err := s.view(ctx, old)
	if err != nil {
		return err
	}
	p, err := s.extraction(ctx, v)
	next := s.undueStmt(dueExtract + old)
	if err != nil {
		next = s.dueStmt(dueExtract+old, s.Runtime.Now().Add(cooldowns[len(cooldowns)-1]), old)
	}
	stmts := []tidemark.Stmt{next, s.addUsage(p.Usage)}
	for _, f := range p.Facts { // kept once, however often they are found
		stmts = append(stmts, s.outboxStmt("facts:"+f.ID, outFacts, f))
	}
	if e := s.DB.Tx(ctx, stmts); e != nil {
		return errors.Join(err, fmt.Errorf("store memories: %w", e))
	}
	s.report(ctx)
	return err
}
