package search

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/recall"
	"github.com/tidemark-ai/tidemark/room"
)

// Found is a message that a search found.
type Found struct {
	Entry   tidemark.EntryID `json:"id"`
	Session string           `json:"sessionId"`
	At      time.Time        `json:"at"`
	Role    tidemark.Role    `json:"role"`
	From    string           `json:"from"`
	Text    string           `json:"text"` // around the words that were found
}

// Search finds messages of the conversation by words, sessions before a reset included, best
// first.
func (s *Room) Search(ctx context.Context, query string, limit int) ([]Found, error) {
	terms := s.Stemmer.Terms(query)
	if len(terms) == 0 {
		return nil, fmt.Errorf("search: the query has no words: %w", tidemark.ErrInvalid)
	}
	if _, err := s.index.ready(ctx, true); err != nil {
		return nil, err
	}
	const maxTerms = 32
	terms = terms[:min(len(terms), maxTerms)]
	limit = min(max(limit, 1), 100)
	l, err := s.Lineage(ctx, false)
	if err != nil {
		return nil, fmt.Errorf("search: %w", err)
	}
	homes, _ := room.Homes(l)
	match := recall.Match(homes, terms...)
	in, args := within(l, "e")
	rows, err := s.DB.Query(ctx, `SELECT e.seq FROM words JOIN entries e ON e.seq = words.rowid
		WHERE words MATCH ? AND `+in+` ORDER BY bm25(words, 0.0, 1.0) LIMIT ?`, append(append([]any{match}, args...), limit)...)
	if err != nil {
		return nil, fmt.Errorf("search: %w", err)
	}
	deep, err := s.pieces.with(ctx, l, match, 0, 1<<53)
	if err != nil {
		return nil, err
	}
	seqs := slices.Sorted(maps.Keys(deep)) // what only a long text has stands behind the others
	for i := len(rows) - 1; i >= 0; i-- {
		seqs = slices.Insert(slices.DeleteFunc(seqs, func(seq int64) bool { return seq == rows[i].Int(0) }), 0, rows[i].Int(0))
	}
	var out []Found
	for _, seq := range seqs[:min(len(seqs), limit)] {
		entries, err := s.Log.Payloads(ctx, []int64{seq})
		if err != nil {
			return nil, err
		}
		err = s.pieces.texts(ctx, entries, deep, func(e tidemark.Entry, role tidemark.Role, p piece) {
			out = append(out, Found{Entry: e.ID, Session: e.Log, At: e.At, Role: role, From: e.Origin.From, Text: snippet(p.text, terms, 300)})
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}
