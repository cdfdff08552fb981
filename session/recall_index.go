package session

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/recall"
	"github.com/tidemark-ai/tidemark/room"
)

// home is the word in the index that all messages of the conversation share: natively sessions share one.
func (s *Session) home() string { return recall.Home(s.Key) }

// index puts messages into the index under their word of home, some at a time, each once. Within a transaction they
// are in order, whichever way they come, since FTS5 writes out what it holds when a row comes out of order.
func (s *Session) index(ctx context.Context, entries iter.Seq2[tidemark.Entry, error]) error {
	const most, mostBytes = 100, 256 << 10
	var stmts []tidemark.Stmt
	var pace room.Pace
	size, before, falling := 0, int64(0), false
	flush := func() error {
		if len(stmts) == 0 {
			return nil
		}
		if falling {
			slices.Reverse(stmts)
		}
		err := s.DB.Tx(ctx, stmts)
		stmts, size = nil, 0
		return err
	}
	for e, err := range entries {
		if err != nil {
			return err
		}
		falling, before = e.Seq < before, e.Seq
		more, err := s.indexStmts(ctx, e)
		if err != nil {
			return fmt.Errorf("entry %s: %w", e.ID, err)
		}
		if stmts, size = append(stmts, more...), size+len(e.Payload); len(stmts) >= most || size > mostBytes {
			if err := flush(); err != nil {
				return err
			}
		}
		if err := pace.Did(ctx, s.Runtime, len(e.Payload)); err != nil {
			return err
		}
	}
	return flush()
}

// indexStmts put one message into the index: its words, and its rest as due to be read. Large blocks are read
// when there is room for them, and those without words not at all.
func (s *Session) indexStmts(ctx context.Context, e tidemark.Entry) ([]tidemark.Stmt, error) {
	home, err := s.homeOf(ctx, e.Seq)
	if err != nil {
		return nil, err
	}
	m, done, err := s.wordy(ctx, e)
	if err != nil {
		return nil, err
	}
	defer done()
	var stmts []tidemark.Stmt
	if stmt, ok := s.wordsStmt(e, m); ok {
		stmt.Args[0] = home
		stmts = append(stmts, stmt)
	}
	rest, err := s.restStmts(ctx, e, m)
	return append(stmts, rest...), err
}

// wordsStmt puts an entry into the index, once, though two catch up side by side or a message is logged
// meanwhile; ok is false for one that is not to be found.
func (s *Session) wordsStmt(e tidemark.Entry, full tidemark.Message) (stmt tidemark.Stmt, ok bool) {
	terms := s.words(full)
	return tidemark.Stmt{SQL: `INSERT INTO words(rowid, home, terms) SELECT seq, ?, ? FROM entries e WHERE id = ? AND NOT EXISTS (SELECT 1 FROM words WHERE rowid = e.seq)`,
		Args: []any{s.home(), terms, string(e.ID)}}, terms != "" && e.Origin.Findable()
}
