package snapshots

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/room"
	"github.com/tidemark-ai/tidemark/snapshot"
)

// carrier is an archive that is read. Entries that this store has are not written again: the history goes on from where
// they stand, so that what an import that was cut off has written is its beginning, too. The others come into a log of
// nobody until the archive is known to be whole.
type carrier struct {
	s    *Carry
	h    room.Held
	in   *snapshot.Reader
	m    snapshot.Manifest
	more carriedMore

	places map[tidemark.EntryID][]string // snapshots that end with an entry
	found  map[string]host.Segment       // where they are here
	blobs  map[tidemark.Hash]bool        // that the archive had

	at       host.Segment  // the last entry here
	own      string        // log that is written, "" as long as all is here
	chain    tidemark.Hash // of the last message
	messages int
	entries  int64

	page []carriedEntry
	size int
}

// all reads the members of the archive.
func (im *carrier) all(ctx context.Context) error {
	for {
		m, err := im.in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		switch {
		case m.Kind == snapshot.MemberBlob:
			err = im.blob(ctx, m)
		case m.Kind == snapshot.MemberPart && m.Stream == carryStream:
			err = im.lines(ctx)
		} // what a later version adds is passed over
		if err != nil {
			return err
		}
	}
	if err := im.flush(ctx); err != nil {
		return err
	}
	return im.whole(ctx)
}

// whole holds what is here now against the manifest.
func (im *carrier) whole(ctx context.Context) error {
	switch n := im.m.Node; {
	case im.chain != n.Hash || im.messages != n.Messages:
		return fmt.Errorf("its %d messages are not the %d that its manifest tells of: it was changed: %w", im.messages, n.Messages, tidemark.ErrInvalid)
	case im.messages == 0:
		return fmt.Errorf("it has no messages: %w", tidemark.ErrInvalid)
	}
	// Where the store had some of them, nothing else may stand between.
	segments, err := im.s.snaps.Log.Segments(ctx, im.at.Log, im.at.To)
	if err != nil {
		return err
	}
	n := int64(0)
	for _, g := range segments {
		rows, err := im.s.DB.Query(ctx, `SELECT count(*) FROM entries WHERE log = ? AND seq <= ? LIMIT 1`, g.Log, g.To)
		if err != nil {
			return fmt.Errorf("count entries: %w", err)
		}
		n += rows[0].Int(0)
	}
	if n != im.entries {
		return fmt.Errorf("it has %d entries, and this store %d of the same history: the archive was changed: %w", im.entries, n, tidemark.ErrInvalid)
	}
	return nil
}

// blob stores a large block. Its hash is checked while it is read.
func (im *carrier) blob(ctx context.Context, m snapshot.Member) error {
	if most := im.s.blocks.MaxBlock; m.Size > most {
		return fmt.Errorf("%s: %d bytes, at most %d: %w", m.Name, m.Size, most, tidemark.ErrTooLarge)
	}
	if err := im.s.blocks.Import(ctx, m.Hash, m.Size, im.in); err != nil {
		return fmt.Errorf("store %s: %w", m.Name, err)
	}
	im.blobs[m.Hash] = true
	return nil
}

func (im *carrier) lines(ctx context.Context) error {
	const most, mostBytes = 64, 512 << 10 // at a time
	for line, err := range im.in.Lines(carryLine) {
		if err != nil {
			return err
		}
		var e carriedEntry
		if err := json.Unmarshal(line, &e); err != nil {
			return fmt.Errorf("entry %d: %w: %w", im.messages+len(im.page)+1, err, tidemark.ErrInvalid)
		}
		if err := e.check(); err != nil {
			return err
		}
		im.page, im.size = append(im.page, e), im.size+len(line)
		if len(im.page) >= most || im.size > mostBytes {
			if err := im.flush(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// check refuses what no log has.
func (e *carriedEntry) check() error {
	switch {
	case e.ID.Time().IsZero():
		return fmt.Errorf("entry %.40q: it is no id of an entry: %w", string(e.ID), tidemark.ErrInvalid)
	case e.Kind != tidemark.KindMessage && e.Kind != tidemark.KindOverlay && e.Kind != tidemark.KindEvent:
		return fmt.Errorf("entry %s: kind %.40q is not known: %w", e.ID, string(e.Kind), tidemark.ErrInvalid)
	case e.Kind != tidemark.KindMessage && len(e.Payload) > tidemark.MaxRow:
		return fmt.Errorf("entry %s: %d bytes, at most %d: %w", e.ID, len(e.Payload), tidemark.MaxRow, tidemark.ErrTooLarge)
	}
	return nil
}

// flush takes the entries that were gathered, in one transaction.
func (im *carrier) flush(ctx context.Context) error {
	if len(im.page) == 0 {
		return nil
	}
	there, err := im.known(ctx)
	if err != nil {
		return err
	}
	var stmts []tidemark.Stmt
	var ends []carriedEntry // whose positions are known when they are written
	for i := range im.page {
		e := im.page[i]
		k, ok := there[e.ID]
		if ok && im.own != "" && k.Log != im.own {
			return fmt.Errorf("entry %s: %w", e.ID, errAstray)
		}
		more, err := im.entry(ctx, e, k, ok)
		if err != nil {
			return fmt.Errorf("entry %s: %w", e.ID, err)
		}
		stmts = append(stmts, more...)
		if ok {
			im.at = k.Segment
			im.ends(e.ID, im.at)
		} else {
			ends = append(ends, e)
		}
	}
	if err := im.h.Write(ctx, stmts...); err != nil {
		return fmt.Errorf("write messages: %w", err)
	}
	if n := len(ends); n > 0 {
		var ids []tidemark.EntryID
		for i, e := range ends {
			if len(im.places[e.ID]) > 0 || i == n-1 {
				ids = append(ids, e.ID)
			}
		}
		seqs, err := im.s.snaps.Log.Seqs(ctx, ids)
		if err != nil {
			return err
		}
		for _, id := range ids {
			im.ends(id, host.Segment{Log: im.own, To: seqs[id]})
		}
		im.at = host.Segment{Log: im.own, To: seqs[ids[len(ids)-1]]}
	}
	im.entries += int64(len(im.page))
	im.page, im.size = nil, 0
	return im.s.Runtime.Sleep(ctx, host.YieldRest)
}

// ends notes where snapshots are that end with an entry.
func (im *carrier) ends(id tidemark.EntryID, at host.Segment) {
	for _, snap := range im.places[id] {
		im.found[snap] = at
	}
}

// entry returns what stores an entry, or what this session needs of one that is here.
func (im *carrier) entry(ctx context.Context, c carriedEntry, k known, here bool) ([]tidemark.Stmt, error) {
	var stmts []tidemark.Stmt
	e := tidemark.Entry{ID: c.ID, Kind: c.Kind, At: time.UnixMilli(c.At), Origin: c.Origin, Call: c.Call, Payload: c.Payload}
	if c.Kind == tidemark.KindMessage {
		var err error
		if stmts, err = im.message(ctx, c, &e); err != nil {
			return nil, err
		}
	}
	if here {
		same := k.chain == string(e.Chain)
		if c.Kind != tidemark.KindMessage {
			same = k.hash == string(tidemark.HashOf(e.Payload))
		}
		if !same || k.kind != string(c.Kind) || im.own == "" && k.To <= im.at.To {
			return nil, fmt.Errorf("this store has another one of that name: the archive was changed: %w", tidemark.ErrInvalid)
		}
		return stmts, nil
	}
	if im.own == "" {
		now := im.s.Runtime.Now()
		im.own = tidemark.NewID(now)
		stmts = append(stmts, im.s.snaps.Log.CreateStmt(host.Info{ID: im.own, Key: tidemark.Key(im.s.staging()), BaseLog: im.at.Log, BaseSeq: im.at.To, Created: now}), im.s.stagedStmt())
	}
	more, err := im.s.snaps.Log.AppendStmts(im.own, e)
	return append(stmts, more...), err
}

// message holds a message against the chain, and takes what is large of it out as this store does.
func (im *carrier) message(ctx context.Context, c carriedEntry, e *tidemark.Entry) ([]tidemark.Stmt, error) {
	stored, err := tidemark.Entry{Payload: c.Payload}.Message()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, tidemark.ErrInvalid)
	}
	full, err := im.s.blocks.Whole(ctx, stored, func(sum tidemark.Hash) bool { return im.blobs[sum] })
	if err != nil {
		return nil, err
	}
	if e.Chain = tidemark.Chain(im.chain, full); e.Chain != c.Chain {
		return nil, fmt.Errorf("it is not what its chain says: the archive was changed: %w", tidemark.ErrInvalid)
	}
	im.chain, im.messages = e.Chain, im.messages+1
	e.Tokens = tidemark.Estimate(full)
	kept, stmts, err := im.s.blocks.Keep(ctx, stored)
	e.Payload = kept.AppendJSON(nil)
	if err == nil && len(e.Payload) > tidemark.MaxRow {
		err = fmt.Errorf("%d bytes, at most %d: %w", len(e.Payload), tidemark.MaxRow, tidemark.ErrTooLarge)
	}
	return stmts, err
}

// move has the session go on from the snapshot: the last step, in one transaction.
func (im *carrier) move(ctx context.Context) (Carried, error) {
	s, now := im.s, im.s.Runtime.Now()
	size, err := im.viewable(ctx)
	if err != nil {
		return Carried{}, err
	}
	node := im.m.Node
	node.Session, node.Gone = string(s.Key), false
	n := room.Place{Node: node, Log: im.at.Log, Seq: im.at.To, State: im.more.Kept}
	head := tidemark.SessionInfo{Key: s.Key, ID: tidemark.NewID(now), Title: im.more.Title, CreatedAt: now, UpdatedAt: now, Messages: im.messages, ContextTokens: size}
	segments, err := s.snaps.Log.Segments(ctx, n.Log, n.Seq)
	if err != nil {
		return Carried{}, err
	}
	var logs []string
	var stmts []tidemark.Stmt
	for _, g := range segments { // an import that was cut off may have come further than this one
		logs = append(logs, g.Log)
		stmts = append(stmts, tidemark.Stmt{SQL: `DELETE FROM entries WHERE log = ? AND seq > ? AND EXISTS (SELECT 1 FROM logs WHERE id = ? AND key = ?)`,
			Args: []any{g.Log, g.To, g.Log, s.staging()}})
	}
	stmts = append(stmts, []tidemark.Stmt{
		{SQL: `UPDATE logs SET key = ? WHERE key = ? AND id IN (SELECT value FROM json_each(?))`, Args: []any{string(s.Key), s.staging(), room.JSON(logs)}},
		s.unstagedStmt(),
		s.continueStmt(head.ID, node.ID, now),
	}...)
	stmts = append(stmts, s.carriedSnapshot(n)...)
	for _, a := range im.m.Lineage {
		at, ok := im.found[a.ID]
		if !ok || a.Kind != snapshot.KindSnapshot {
			continue
		}
		a.Session, a.Gone = string(s.Key), false
		stmts = append(stmts, s.carriedSnapshot(room.Place{Node: a, Log: at.Log, Seq: at.To})...)
	}
	more, err := s.snaps.Restore(ctx, s.Key, n)
	if err != nil {
		return Carried{}, err
	}
	if err := im.h.Move(ctx, head, n, append(stmts, more...)...); err != nil {
		return Carried{}, fmt.Errorf("go on from the snapshot: %w", err)
	}
	return Carried{Node: node, Key: s.Key, Messages: im.messages}, nil
}

// continueStmt is the row of a log that goes on from a snapshot without being a branch that somebody made.
func (s *Carry) continueStmt(log, of string, now time.Time) tidemark.Stmt {
	return tidemark.Stmt{SQL: `INSERT INTO branches(log, key, snapshot, created) VALUES(?, ?, ?, ?)`, Args: []any{log, string(s.Key), of, now.UnixMilli()}, Want: 1}
}

// carriedSnapshot stores a snapshot that came with an archive, unless this store has it.
func (s *Carry) carriedSnapshot(n room.Place) []tidemark.Stmt {
	stmts := s.snaps.store(n)
	stmts[0].Want = 0
	return append(stmts, s.snaps.tellStmts(n.Node, "snapshot:"+n.ID)...)
}

// viewable computes what the session would show: edits that no view can have are no archive of ours.
func (im *carrier) viewable(ctx context.Context) (tidemark.Tokens, error) {
	size, err := im.s.snaps.Weigh(ctx, im.at.Log, im.at.To, true)
	if err != nil && ctx.Err() == nil && slices.ContainsFunc([]error{tidemark.ErrNotFound, tidemark.ErrInvalid}, func(t error) bool { return errors.Is(err, t) }) {
		err = fmt.Errorf("what it shows is no conversation: %w: %w", err, tidemark.ErrInvalid)
	}
	return size, err
}
