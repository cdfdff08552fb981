package search

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/recall"
	"github.com/tidemark-ai/tidemark/room"
)

const (
	retrieveK = 24 // finds that are looked at for a note
	shortFind = 60 // tokens of a find that is taken for the one beside it
)

// Retrieve implements room.Retriever. It gives nothing when the find cannot be relied on: what is not asked for must not
// mislead.
func (s *Room) Retrieve(ctx context.Context, log, query string, before int64, hidden func(id tidemark.EntryID, text string, amended bool) bool) ([]string, error) {
	found, err := s.Recall(ctx, Wanted{Query: query, K: retrieveK, before: before})
	if err == nil {
		s.Note(ctx, room.ByPack, found)
	}
	if err != nil || found.Verdict != recall.Confident {
		return nil, err
	}
	logs, err := s.Segments(ctx, log)
	if err != nil {
		return nil, err
	}
	var fits []string
	for _, f := range s.worth(query, found.Results) {
		// Neither in view, nor of an earlier session, which was closed, nor taken back.
		if logs[f.Session] && !f.gone && hidden(f.ID, strings.Trim(f.Text, "…"), f.amended) {
			fits = append(fits, s.pushed(f))
		}
	}
	return fits, nil
}

// worth leaves out finds that have less than half as many words of the query as the best: they were found
// for what stands beside them. A short one beside one that is taken may be its answer.
func (s *Room) worth(query string, found []Recollection) []Recollection {
	terms := s.Stemmer.Terms(query)
	has := make([]int, len(found))
	best := 0
	for i, f := range found {
		own := s.Stemmer.Terms(f.Text)
		for _, t := range terms {
			if slices.Contains(own, t) {
				has[i]++
			}
		}
		best = max(best, has[i])
	}
	beside := map[tidemark.EntryID]bool{}
	for i, f := range found {
		if has[i] > 0 && 2*has[i] >= best {
			for _, id := range f.Neighbours {
				beside[id] = true
			}
		}
	}
	var out []Recollection
	for i, f := range found {
		if has[i] > 0 && 2*has[i] >= best || beside[f.ID] && tidemark.EstimateText(f.Text) <= shortFind {
			out = append(out, f)
		}
	}
	return out
}

// pushed is one find as the model reads it: each line of it begins with a bar, so nothing in it can end
// the quotation or pass for words of the program or of the person who asks now.
func (s *Room) pushed(f Recollection) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\nentry %s, %s, %s:", f.ID, f.At.In(s.Zone()).Format("2006-01-02 15:04"), f.From)
	for line := range strings.Lines(strings.TrimSpace(plainLines(f.Text))) {
		b.WriteString("\n| " + room.Harmless(strings.TrimRight(line, "\n")))
	}
	return b.String()
}

// plainLines makes every way to end a line the same one, and drops what else controls a terminal.
func plainLines(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r == '\r' || r == '\v' || r == '\f' || r == '\u0085' || r == '\u2028' || r == '\u2029':
			return '\n'
		case unicode.IsControl(r):
			return -1
		}
		return r
	}, strings.ReplaceAll(s, "\r\n", "\n"))
}
