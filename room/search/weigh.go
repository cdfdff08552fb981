package search

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tidemark-ai/tidemark/recall"
	"github.com/tidemark-ai/tidemark/room"
)

// Which terms a message has does not tell which of many alike is meant: all of a series have "build" and "hash", and
// most have a 12. What stands together in a message as it does in the query, and how often it says a word, do.
const (
	runsMost  = 6      // pairs of words of a query that are looked up where they stand together
	runGap    = 2      // words that may stand between them
	oftenMost = 4      // terms that are counted among equals
	seenMost  = 50_000 // places of a term in the database that are looked at for it, the oldest first
)

// weighRuns adds what words are worth that stand together in a message as they do in the query: which of many that
// have them says it, presence does not tell. It is asked for numbers, which stand beside other words elsewhere, and
// for words that so many messages have that not all are listed.
func (s *Room) weighRuns(ctx context.Context, in among, list []posting, runs []recall.Run, w Wanted, n sizeOf, weights map[int64]float64) error {
	there, some := map[string]bool{}, len(list) > 0 && list[0].more
	for _, p := range list {
		there[p.term] = true
	}
	var queries []string
	for _, r := range runs {
		if !r.Number && !some || slices.ContainsFunc(r.Terms, func(t string) bool { return !there[t] }) {
			continue
		}
		first, last := recall.Quote(r.Terms[0]), recall.Quote(r.Terms[len(r.Terms)-1])
		queries = append(queries, `("`+strings.ReplaceAll(strings.Join(r.Terms, " "), `"`, ``)+`")`, `(NEAR(`+first+` `+last+`, `+strconv.Itoa(runGap+len(r.Terms)-2)+`))`)
		if len(queries) >= 2*runsMost {
			break
		}
	}
	if len(queries) == 0 {
		return nil
	}
	lists, err := s.listed(ctx, in, queries, w, postingMost)
	if err != nil {
		return err
	}
	for _, seqs := range lists {
		by := recall.Rarity(len(seqs), int(n.docs)) / 2 // what stands side by side is near, too, and has both halves
		for _, seq := range seqs {
			weights[seq] += by
		}
	}
	return nil
}

// candidate is a message that may answer, by the weight of the terms that it has.
type candidate struct {
	seq    int64
	weight float64
	often  float64 // among equals, how often it has them
}

// heaviest returns the messages of the most weight. Of equals of which not all are taken, those come first that have the
// terms more often, then the newest.
func (s *Room) heaviest(ctx context.Context, list []posting, weights map[int64]float64, n sizeOf, most int) ([]int64, error) {
	found := make([]candidate, 0, len(weights))
	for seq, weight := range weights {
		found = append(found, candidate{seq: seq, weight: weight})
	}
	byWeight := func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.weight, a.weight), cmp.Compare(b.often, a.often), cmp.Compare(b.seq, a.seq))
	}
	slices.SortFunc(found, byWeight)
	if len(found) > most {
		from, to := most, most
		for from > 0 && same(found[from-1].weight, found[most].weight) {
			from--
		}
		for to < len(found) && same(found[to].weight, found[most].weight) {
			to++
		}
		if from < most {
			for i := range found[from:to] {
				found[from+i].weight = found[most].weight
			}
			if err := s.often(ctx, list, found[from:to], n); err != nil {
				return nil, err
			}
			slices.SortFunc(found[from:to], byWeight)
		}
	}
	seqs := make([]int64, min(len(found), most))
	for i := range seqs {
		seqs[i] = found[i].seq
	}
	return seqs, nil
}

// same reports that two sums of the same weights are equal: their order may differ.
func same(a, b float64) bool { return a-b < 1e-9 && b-a < 1e-9 }

// often finds how often some messages have the rarest terms.
func (s *Room) often(ctx context.Context, list []posting, of []candidate, n sizeOf) error {
	at, seqs := make(map[int64]int, len(of)), make([]int64, len(of))
	for i, c := range of {
		at[c.seq], seqs[i] = i, c.seq
	}
	for _, p := range list[:min(len(list), oftenMost)] {
		rows, err := s.DB.Query(ctx, `SELECT doc, count(*) FROM (SELECT doc FROM words_seen WHERE term = ? AND col = 'terms' LIMIT ?)
			WHERE doc IN (SELECT value FROM json_each(?)) GROUP BY doc LIMIT ?`, p.term, seenMost, room.JSON(seqs), len(of))
		if err != nil {
			return fmt.Errorf("recall: how often: %w", err)
		}
		for _, r := range rows {
			const half = 1.2 // as in BM25: each further time says less
			times := float64(r.Int(1))
			of[at[r.Int(0)]].often += rarity(p, n) * times / (times + half)
		}
	}
	return nil
}
