package search

import (
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/host/hosttest"
	"github.com/tidemark-ai/tidemark/room"
)

// TestRowsOf: times are turned into positions, which say whether all between them was said then.
func TestRowsOf(t *testing.T) {
	const n = 120
	day := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name  string
		at    func(i int) time.Time
		whole bool
	}{
		{"in order", func(i int) time.Time { return day.Add(time.Duration(i) * time.Minute) }, true},
		{"out of order", func(i int) time.Time { return day.Add(time.Duration(i*7%n) * time.Minute) }, false},
	} {
		db := hosttest.DB(t)
		log, err := host.OpenLog(t.Context(), db)
		if err != nil {
			t.Fatal(err)
		}
		if err := db.Tx(t.Context(), []tidemark.Stmt{log.CreateStmt(host.Info{ID: "l", Key: "agent:main:main", Created: day})}); err != nil {
			t.Fatal(err)
		}
		for i := range n {
			e := tidemark.Entry{ID: tidemark.EntryID(tidemark.NewID(c.at(i))), Kind: tidemark.KindMessage, At: c.at(i), Payload: tidemark.NewText(tidemark.User, "walnut").AppendJSON(nil)}
			if err := log.Append(t.Context(), "l", e); err != nil {
				t.Fatal(err)
			}
		}
		s := &Room{ports: ports{Self: room.Self{DB: db}}}
		for _, r := range [][2]int{{10, 49}, {0, 29}, {110, 119}, {500, 600}} {
			got, err := s.rowsOf(t.Context(), Wanted{Since: day.Add(time.Duration(r[0]) * time.Minute), Until: day.Add(time.Duration(r[1]) * time.Minute)})
			want := max(0, min(r[1], n-1)-r[0]+1)
			if err != nil || got == nil || got.whole != (c.whole || want == 0) || c.whole && int(got.to-got.from)+1 != want {
				t.Errorf("%s, %d: positions %+v, %v", c.name, r, got, err)
			}
		}
		if got, err := s.rowsOf(t.Context(), Wanted{}); err != nil || got != nil {
			t.Errorf("%s: of no times %+v, %v", c.name, got, err)
		}
	}
}
