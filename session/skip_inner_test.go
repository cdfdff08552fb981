package session

import (
	"fmt"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/room/search"
)

// TestUnskippedAll: of however many turns that were skipped no fact is drawn, and none of their messages is told.
func TestUnskippedAll(t *testing.T) {
	s := bare(t)
	if err := s.made.Open(t.Context(), (&search.Skips{}).Tables()); err != nil {
		t.Fatal(err)
	}
	const turns = 1200
	var items []compaction.Item
	var stmts []tidemark.Stmt
	want := 0
	for n := range turns {
		var ids []tidemark.EntryID
		for i := range 2 {
			id := s.logged(t, tidemark.FromPerson, fmt.Sprintf("word%d of %d", i, n))
			ids = append(ids, id)
			items = append(items, compaction.Item{ID: id, From: id, To: id})
		}
		if n%7 == 0 { // kept
			want += 2
			continue
		}
		stmts = append(stmts, tidemark.Stmt{SQL: `INSERT INTO skips(key, run, log, state, first, at, ids) VALUES(?, ?, '', ?, (SELECT seq - 1 FROM entries WHERE id = ?), ?, ?)`,
			Args: []any{string(s.Key), fmt.Sprintf("%06d", n), "skipped", string(ids[0]), n, mustJSON(ids)}})
	}
	for len(stmts) > 0 {
		some := stmts[:min(len(stmts), 500)]
		if err := s.DB.Tx(t.Context(), some); err != nil {
			t.Fatal(err)
		}
		stmts = stmts[len(some):]
	}
	skipped := 0
	for i := range items {
		seqs, err := s.log.Seqs(t.Context(), []tidemark.EntryID{items[i].ID})
		if err != nil {
			t.Fatal(err)
		}
		items[i].Seq, items[i].Last = seqs[items[i].ID], seqs[items[i].ID]
	}
	if got := s.unskipped(t.Context(), items); len(got) != want {
		t.Errorf("%d items are left, want %d", len(got), want)
	}
	all, err := s.rooms.Leaver().Skipped(t.Context(), items[0].Seq, items[len(items)-1].Seq)
	if err != nil {
		t.Fatal(err)
	}
	for i, it := range items {
		one, err := s.rooms.Leaver().Skipped(t.Context(), it.Seq, it.Seq)
		if err != nil || one[it.Seq] != (i/2%7 != 0) || all[it.Seq] != one[it.Seq] {
			t.Fatalf("message %d: skipped %v, %v among all, %v", i, one, all[it.Seq], err)
		}
		if all[it.Seq] {
			skipped++
		}
	}
	if skipped != 2*turns-want || len(all) != skipped {
		t.Errorf("%d of %d", skipped, len(all))
	}
}
