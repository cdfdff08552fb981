package search

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/clip"
	"github.com/tidemark-ai/tidemark/recall"
	"github.com/tidemark-ai/tidemark/room"
)

const (
	checkTerms = 3  // of an entry, of which the rarest is looked for
	checkRare  = 64 // messages that may have a term, counted no further
)

// Check implements room.Indexer: it looks for an entry by the rarest of some of its terms. A row that is missing, or has
// other words, is written again; that is no fault, since the log has the words.
func (s *Index) Check(ctx context.Context, e tidemark.Entry, m tidemark.Message) (checks, repaired int, fault string, err error) {
	stmt, ok := s.wordsStmt(e, m)
	if !ok {
		return 0, 0, "", nil
	}
	if l, err := s.Lineage(ctx, false); err != nil || !l.Single && !l.Own[e.Log] { // the index has it for the session that said it
		return 0, 0, "", err
	}
	if unindexed, err := s.unindexed(ctx, e.Seq); unindexed || err != nil {
		return 0, 0, "", err
	}
	term, err := s.rarest(ctx, strings.Fields(room.Words(s.Stemmer, m)))
	if err != nil {
		return 1, 0, "", err
	}
	found, err := s.holds(ctx, e.Seq, term)
	if err != nil || found {
		return 1, 0, "", err
	}
	if waits, err := s.skips.undecidedAt(ctx, e.Seq); waits || err != nil {
		return 1, 0, "", err
	}
	if stmt.Args[0], err = s.skips.homeOf(ctx, e.Seq); err != nil {
		return 1, 0, "", err
	}
	// Nobody can say which words a row has, to take it out: an index without content finds it by these, too.
	stmt.SQL = `INSERT INTO words(rowid, home, terms) SELECT seq, ?, ? FROM entries WHERE id = ?`
	if err := s.DB.Tx(ctx, []tidemark.Stmt{stmt}); err != nil {
		return 1, 0, "", err
	}
	if found, err = s.holds(ctx, e.Seq, term); err != nil {
		return 1, 0, "", err
	}
	if found {
		s.Logger.Warn("a row of the index of words was not right and is written again", "session", s.Key, "entry", e.ID)
		return 1, 1, "", nil
	}
	return 1, 0, fmt.Sprintf("entry %s is not found by its word %q", e.ID, clip.Line(term, 40)), nil
}

// unindexed reports whether an entry is of a time before the index, which the next recall makes.
func (s *Index) unindexed(ctx context.Context, seq int64) (bool, error) {
	if s.indexed.Load() {
		return false, nil
	}
	rows, err := s.DB.Query(ctx, `SELECT rowid FROM words WHERE words MATCH ? ORDER BY rowid LIMIT 1`, `home : "`+recall.Home(s.Key)+`"`)
	if err != nil {
		return false, fmt.Errorf("look into the index: %w", err)
	}
	return len(rows) == 0 || seq < rows[0].Int(0), nil
}

// rarest returns the term of an entry that fewest messages have, of a few that look rare: with a digit, long.
func (s *Index) rarest(ctx context.Context, terms []string) (string, error) {
	slices.SortStableFunc(terms, func(a, b string) int {
		digit := func(t string) int {
			if strings.ContainsFunc(t, unicode.IsDigit) {
				return 0
			}
			return 1
		}
		return cmp.Or(cmp.Compare(digit(a), digit(b)), cmp.Compare(len(b), len(a)), cmp.Compare(a, b))
	})
	terms = slices.Compact(terms)
	best, fewest := terms[0], int64(checkRare+1)
	for _, t := range terms[:min(len(terms), checkTerms)] {
		rows, err := s.DB.Query(ctx, `SELECT count(*) FROM (SELECT 1 FROM words WHERE words MATCH ? LIMIT ?) LIMIT 1`, recall.Match([]string{recall.Home(s.Key)}, t), checkRare)
		if err != nil {
			return "", fmt.Errorf("look into the index: %w", err)
		}
		if n := rows[0].Int(0); n < fewest {
			best, fewest = t, n
		}
		if fewest <= 1 {
			break
		}
	}
	return best, nil
}

// holds reports whether the index gives an entry for a term, among those of the conversation or those that
// it skipped.
func (s *Index) holds(ctx context.Context, seq int64, term string) (bool, error) {
	for _, home := range []string{recall.Home(s.Key), recall.SkippedHome(s.Key)} {
		// A number is bound as REAL, which FTS5 takes for no position, and then gives all that match.
		rows, err := s.DB.Query(ctx, `SELECT 1 FROM words WHERE words MATCH ? AND rowid = CAST(? AS INTEGER) LIMIT 1`, recall.Match([]string{home}, term), seq)
		if err != nil {
			return false, fmt.Errorf("look into the index: %w", err)
		}
		if len(rows) > 0 {
			return true, nil
		}
	}
	return false, nil
}
