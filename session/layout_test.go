package session_test

import (
	_ "embed"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host/hosttest"
	"github.com/tidemark-ai/tidemark/session"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// The tables as they were made when each of them had a rowid, and an index for its key beside it.
//
//go:embed testdata/rowid-layout.sql
var rowidLayout string

// rowidDB is an empty database of that layout.
func rowidDB(t testing.TB) tidemark.DB {
	t.Helper()
	db := hosttest.DB(t)
	var stmts []tidemark.Stmt
	for sql := range strings.SplitSeq(strings.TrimSuffix(rowidLayout, ";\n"), ";\n") {
		stmts = append(stmts, tidemark.Stmt{SQL: sql})
	}
	if err := db.Tx(t.Context(), stmts); err != nil {
		t.Fatal(err)
	}
	return db
}

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

// A database keeps the layout that it was made with, so both have to do the same.
func TestLayouts(t *testing.T) {
	const columns = `SELECT m.name || '.' || c.name || ' ' || c.type || ' ' || c.pk || ' ' || coalesce(c.dflt_value, '')
		FROM sqlite_master m JOIN pragma_table_info(m.name) c
		WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%' AND m.name NOT LIKE '\_cf%' ESCAPE '\' ORDER BY 1 LIMIT 1000`
	const rows = `SELECT 'head ' || messages || ' ' || compactions || ' ' || resets FROM heads
		UNION ALL SELECT 'run ' || state || ' ' || count(*) FROM runs GROUP BY state
		UNION ALL SELECT 'input ' || state || ' ' || count(*) FROM inputs GROUP BY state
		UNION ALL SELECT 'reset ' || step || ' ' || messages FROM resets
		UNION ALL SELECT 'plan ' || state || ' ' || count(*) FROM plans GROUP BY state
		UNION ALL SELECT 'part ' || count(*) FROM parts
		UNION ALL SELECT 'prompt ' || count(*) FROM prompts
		UNION ALL SELECT 'entry ' || kind || ' ' || count(*) FROM entries GROUP BY kind LIMIT 1000`
	var want [3]string
	for _, row := range []struct {
		name string
		db   func(testing.TB) tidemark.DB
	}{
		{"made now", hosttest.DB},
		{"made with rowids", rowidDB},
	} {
		t.Run(row.name, func(t *testing.T) {
			h := &harness{t: t, db: row.db(t), blobs: tidemarktest.NewBlobs(), model: &model{}, agent: &fakeAgent{},
				rt: hosttest.Runtime(t), set: small, key: "agent:main:main"}
			h.open()
			h.fill(2)
			if got := h.resetNow(); got != "" {
				t.Fatal(got)
			}
			h.stop()
			h.open()
			h.say("And a new day.")
			info, err := h.Info(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if info.Resets != 1 || info.Previous == "" {
				t.Errorf("resets %d, session before %q, want 1 and a name", info.Resets, info.Previous)
			}
			got := [3]string{strings.Join(column(t, h.db, columns), "\n"), strings.Join(column(t, h.db, rows), "\n"), strings.Join(h.originals(), "\n")}
			if !strings.Contains(got[1], "plan done") || !strings.Contains(got[1], "part ") {
				t.Errorf("nothing was compacted:\n%s", got[1])
			}
			if want[0] == "" {
				want = got
			}
			for i, what := range []string{"columns", "rows", "messages"} {
				if got[i] != want[i] {
					t.Errorf("%s differ from a database that is made now:\n%s\nwant\n%s", what, got[i], want[i])
				}
			}
		})
	}
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
