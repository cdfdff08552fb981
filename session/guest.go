package session

import (
	"context"
	"errors"
	"fmt"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host"
)

// Guest gives a conversation whose client keeps the history itself its place among the others: a log and branches
// of it, a row in the list, records of calls. It has no turns, no queue and no fence; package proxy says what is
// written. Its statements are for a transaction of the caller.
type Guest struct{ s *Session }

// Guest returns the session as the home of a client's conversation.
func (s *Session) Guest() Guest { return Guest{s} }

// Branch returns the log of a branch, "" for the root. One that is not there begins behind a position of its base.
func (g Guest) Branch(ctx context.Context, name, base string, seq int64) (log string, err error) {
	key := g.Branched(name)
	for range 2 {
		rows, err := g.s.DB.Query(ctx, `SELECT log FROM heads WHERE key = ? LIMIT 1`, string(key))
		if err != nil {
			return "", fmt.Errorf("read session %s: %w", key, err)
		}
		if len(rows) > 0 {
			return rows[0].Text(0), nil
		}
		now := g.s.Runtime.Now()
		id := tidemark.NewID(now)
		err = g.s.DB.Tx(ctx, append(g.s.logStmts(host.Info{ID: id, Key: key, BaseLog: base, BaseSeq: seq, Created: now}, ""),
			tidemark.Stmt{SQL: `INSERT INTO heads(key, log, created, active) VALUES(?, ?, ?, ?)`, Args: []any{string(key), id, now.UnixMilli(), now.UnixMilli()}, Want: 1}))
		if err == nil {
			return id, nil
		}
		if !errors.Is(err, tidemark.ErrConflict) {
			return "", fmt.Errorf("make branch %s: %w", key, err)
		}
	}
	return "", fmt.Errorf("make branch %s: %w", key, tidemark.ErrConflict)
}

// Branched is the key of a branch, of the root for "".
func (g Guest) Branched(name string) tidemark.Key {
	if name == "" {
		return g.s.Key.Root()
	}
	return g.s.Key.Root() + tidemark.Key("#"+name)
}

// Append returns what stores a message at the end of a log, behind a link of its chain; large blocks are put aside
// before. It fills the entry's payload, chain and tokens.
func (g Guest) Append(ctx context.Context, log string, e *tidemark.Entry, m tidemark.Message, prev tidemark.Hash) ([]tidemark.Stmt, error) {
	e.Tokens = tidemark.Estimate(m)
	return g.s.entryStmts(ctx, log, e, m, prev)
}

// guestPage is how many messages are read at a time: each may have tidemark.MaxRow bytes, most have a hundredth.
const guestPage = 32

// Messages gives entries of any branch as they were stored, in no order. Those that are not there, or of another
// conversation, are left out.
func (g Guest) Messages(ctx context.Context, ids []tidemark.EntryID, each func(tidemark.EntryID, tidemark.Message)) error {
	found, err := g.s.log.Seqs(ctx, ids)
	if err != nil {
		return err
	}
	seqs := make([]int64, 0, len(found))
	for _, id := range ids {
		if seq, ok := found[id]; ok {
			seqs = append(seqs, seq)
			delete(found, id) // of two with one id one is read
		}
	}
	ours := map[string]bool{} // by log
	for len(seqs) > 0 {
		n := min(len(seqs), guestPage)
		entries, err := g.s.log.Said(ctx, seqs[:n])
		if err != nil {
			return err
		}
		for _, e := range entries {
			mine, known := ours[e.Log]
			if !known {
				info, err := g.s.log.Info(ctx, e.Log)
				if err != nil {
					return err
				}
				mine = info.Key.Root() == g.s.Key.Root()
				ours[e.Log] = mine
			}
			if !mine || e.Kind != tidemark.KindMessage {
				continue
			}
			m, err := g.s.blocks.Message(ctx, e)
			if err != nil {
				return err
			}
			each(e.ID, m)
		}
		seqs = seqs[n:]
	}
	return nil
}

// Called returns what notes a call of a branch: its cost, how large its context was behind it, how many messages it brought,
// and a title where there is none. The agent, whose directory lists the conversation, is owed a report of it.
func (g Guest) Called(name, title string, messages int, u tidemark.Usage, context tidemark.Tokens) []tidemark.Stmt {
	key := string(g.Branched(name))
	stmts := []tidemark.Stmt{{SQL: `UPDATE heads SET active = ?, people = ?, messages = messages + ?, context = ?, title = CASE title WHEN '' THEN ? ELSE title END WHERE key = ?`,
		Args: []any{g.s.Runtime.Now().UnixMilli(), g.s.Runtime.Now().UnixMilli(), messages, int64(context), title, key}, Want: 1}}
	add := g.s.addUsage(u)
	add.Args[len(add.Args)-1] = key
	return append(stmts, add, g.s.dueStmt(dueOutbox, g.s.Runtime.Now(), ""))
}

// Log is the log that the conversation stands in.
func (g Guest) Log() *host.Log { return g.s.log }

// Told tells those who follow the conversation that something was added to it, and behind that the agent.
func (g Guest) Told(e tidemark.Event) {
	g.s.hub.send(Notice{Type: NoticeEvent, Event: &e})
	g.s.tellSoon()
}
