package search

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/recall"
	"github.com/tidemark-ai/tidemark/room"
)

// lookDeep adds the messages that have terms of a query deep in a long text to the candidates.
func (f *finding) lookDeep(ctx context.Context, terms []string) error {
	const most = 16 // terms that are looked for
	since, until := f.w.span()
	terms = terms[:min(len(terms), most)]
	homes, skipped := room.Homes(f.line)
	match := recall.Match(homes, terms...)
	if f.w.All {
		match = `(` + match + `) OR (` + recall.Match(skipped, terms...) + `)`
	}
	found, err := f.s.pieces.with(ctx, f.line, match, since, until)
	if err != nil || len(found) == 0 {
		return err
	}
	f.deep = found
	for _, seq := range slices.Sorted(maps.Keys(found)) {
		if !slices.Contains(f.seqs, seq) {
			f.seqs = append(f.seqs, seq)
		}
	}
	// What only a piece has is rarer than all that the messages have.
	fresh := slices.DeleteFunc(slices.Clone(terms), func(t string) bool { return slices.Contains(f.rare, t) })
	f.rare = append(fresh, f.rare...)
	holds := f.stats.Holds
	f.stats.Holds = func(t string) int {
		if n := holds(t); n > 0 || !slices.Contains(fresh, t) {
			return n
		}
		return 1
	}
	return nil
}

// tellDamaged tells which messages have a piece that cannot be read.
func (f *finding) tellDamaged(out *Recalled) {
	var ids []tidemark.EntryID
	for _, d := range f.index.Docs() {
		if f.known[f.docs[d.ID]].lost {
			ids = append(ids, tidemark.EntryID(d.ID))
		}
	}
	if len(ids) > 0 {
		out.Filtered = append(out.Filtered, Filtered{Reason: filteredDamaged, Count: len(ids), IDs: ids})
	}
}

// placeOf returns where a snippet of a long text begins in all of it.
func (r read) placeOf(snippet string) int {
	at := strings.Index(r.text, strings.Trim(snippet, "…"))
	if at < 0 || r.at+len(r.text) < pieceBytes/2 {
		return r.at
	}
	return r.at + at
}
