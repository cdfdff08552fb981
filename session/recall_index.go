package session

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/recall"
	"github.com/tidemark-ai/tidemark/room"
)

// matchHome is the query for messages under a word of the home column with terms, joined by an operator.
func matchHome(home, op string, terms ...string) string {
	quoted := make([]string, len(terms))
	for i, t := range terms {
		quoted[i] = quoteTerm(t)
	}
	return `home : "` + home + `" AND terms : (` + strings.Join(quoted, op) + `)`
}

// matchHomes is the query for messages under any of some words of the home column with any of some terms.
func matchHomes(homes []string, terms ...string) string {
	if len(homes) == 1 {
		return matchHome(homes[0], " OR ", terms...)
	}
	quoted := make([]string, len(terms))
	for i, t := range terms {
		quoted[i] = quoteTerm(t)
	}
	return anyHome(homes) + ` AND terms : (` + strings.Join(quoted, " OR ") + `)`
}

// anyHome is the part of a query that messages stand under one of some homes.
func anyHome(homes []string) string {
	if len(homes) == 1 {
		return `home : ` + quoteTerm(homes[0])
	}
	quoted := make([]string, len(homes))
	for i, h := range homes {
		quoted[i] = quoteTerm(h)
	}
	return `home : (` + strings.Join(quoted, " OR ") + `)`
}

func quoteTerm(t string) string { return recall.Quote(t) }

// home is the word in the index that all messages of the conversation share: natively sessions share one.
func (s *Session) home() string { return homeOfKey(s.Key) }

func homeOfKey(key tidemark.Key) string { return "h" + string(tidemark.HashOf([]byte(key)))[:16] }

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

// among says which messages of the index are looked at. To hold a word's messages against all of a conversation
// takes longer than to list them, so one that has its database for itself does without, and one that is most of it
// asks of each message whose it is, until it has enough of its own.
type among struct {
	line             *lineage
	found, skipped   []string // words of the home column
	alone, most, all bool
}

func (s *Session) among(l *lineage, w Wanted, n sizeOf) among {
	a := among{line: l, alone: n.alone, most: !n.alone && l.single && 2*n.docs >= n.last, all: w.All}
	a.found, a.skipped = l.homes(s)
	return a
}

// match is the expression of FTS5 for an expression over terms.
func (a among) match(terms string) string {
	switch {
	case (a.alone || a.most) && a.all:
		return `terms : ` + terms
	case a.alone || a.most:
		return `terms : ` + terms + ` NOT ` + anyHome(a.skipped)
	case a.all:
		return anyHome(slices.Concat(a.found, a.skipped)) + ` AND terms : ` + terms
	}
	return anyHome(a.found) + ` AND terms : ` + terms
}
