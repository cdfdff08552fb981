package session_test

import (
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host/hosttest"
	"github.com/tidemark-ai/tidemark/session"
)

// column gives the first column of what a query finds.
func column(t *testing.T, db tidemark.DB, sql string) []string {
	t.Helper()
	rows, err := db.Query(t.Context(), sql)
	if err != nil {
		t.Fatal(err)
	}
	out := make([]string, len(rows))
	for i, r := range rows {
		out[i] = r.Text(0)
	}
	return out
}

// Each table and index takes a page, and a live object holds it in memory.
func TestSmallSchema(t *testing.T) {
	const most = 32
	db := hosttest.DB(t)
	if _, err := session.Migrate(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	got := column(t, db, `SELECT name FROM sqlite_master WHERE rootpage > 0 AND name NOT LIKE '\_cf%' ESCAPE '\' ORDER BY name LIMIT 200`)
	if len(got) > most {
		t.Errorf("%d tables and indexes, at most %d:\n%s", len(got), most, strings.Join(got, "\n"))
	}
}
