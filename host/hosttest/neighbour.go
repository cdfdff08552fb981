package hosttest

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tidemark-ai/tidemark"
)

// Neighbour is what somebody else has in a database: played once in a process, then put into the database of each test,
// whose rows of it must be the same at its end. It may be used by many tests at once.
type Neighbour struct {
	// Play makes its rows in an empty database.
	Play func(t testing.TB, db tidemark.DB)
	// Names are texts that stand in its rows and in none of those of a test.
	Names []string

	once  sync.Once // guards the making of the following
	stmts []tidemark.Stmt
	rows  map[string][]string // by table
}

// Beside puts the neighbour into an empty database, and compares its rows when the test ends.
func (n *Neighbour) Beside(t testing.TB, db tidemark.DB) {
	t.Helper()
	n.once.Do(func() {
		r := &recorder{DB: DB(t)}
		n.Play(t, r)
		n.rows = rowsOf(t, r)
		n.stmts = r.short(t, n.rows)
		delete(n.rows, "schema_versions") // they are nobody's
	})
	if err := db.Tx(context.Background(), n.stmts); err != nil {
		t.Fatalf("a neighbour: %v", err)
	}
	t.Cleanup(func() { n.compare(t, db) })
}

// compare fails the test when a row of the neighbour is gone, or is not what it was, or when it has one more.
func (n *Neighbour) compare(t testing.TB, db tidemark.DB) {
	t.Helper()
	now := rowsOf(t, db)
	for table, rows := range n.rows {
		for _, r := range rows {
			if _, there := slices.BinarySearch(now[table], r); !there {
				t.Errorf("a row of %s that is somebody else's is gone or changed:\n%s", table, r)
			}
		}
	}
	for table, rows := range now {
		for _, r := range rows {
			if _, there := slices.BinarySearch(n.rows[table], r); !there && slices.ContainsFunc(n.Names, func(name string) bool { return strings.Contains(r, name) }) {
				t.Errorf("a row of %s was added to somebody else's:\n%s", table, r)
			}
		}
	}
}

// ordinary are the tables that are neither SQLite's own, nor a host's, nor of full text search.
const ordinary = `name NOT LIKE 'sqlite\_%' ESCAPE '\' AND name NOT LIKE '\_cf%' ESCAPE '\'
	AND NOT EXISTS (SELECT 1 FROM sqlite_master v WHERE v.sql LIKE 'CREATE VIRTUAL%' AND (m.name = v.name OR m.name LIKE replace(v.name, '_', '\_') || '\_%' ESCAPE '\'))`

// rowsOf gives all rows by table, as SQL writes them, sorted.
func rowsOf(t testing.TB, db tidemark.DB) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	for _, table := range query(t, db, `SELECT name, (SELECT group_concat('quote("' || name || '")', ' || '', '' || ') FROM pragma_table_info(m.name)) FROM sqlite_master m WHERE type = 'table' AND `+ordinary+` LIMIT 200`) {
		name := table.Text(0)
		for _, r := range query(t, db, `SELECT `+table.Text(1)+` FROM "`+name+`" ORDER BY 1 LIMIT 20000`) {
			out[name] = append(out[name], r.Text(0))
		}
	}
	return out
}

func query(t testing.TB, db tidemark.DB, sql string, args ...any) []tidemark.Row {
	t.Helper()
	rows, err := db.Query(context.Background(), sql, args...)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return rows
}

// recorder keeps what is written through it.
type recorder struct {
	tidemark.DB
	mu    sync.Mutex // guards stmts
	stmts []tidemark.Stmt
}

func (r *recorder) Tx(ctx context.Context, stmts []tidemark.Stmt) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	err := r.DB.Tx(ctx, stmts)
	if err == nil {
		r.stmts = append(r.stmts, stmts...)
	}
	return err
}

// short makes the same database of fewer statements than made it: a test does not pay for its history. What went into full text
// search goes there as it did, since it cannot be read back.
func (r *recorder) short(t testing.TB, rows map[string][]string) []tidemark.Stmt {
	t.Helper()
	var out []tidemark.Stmt
	for _, o := range query(t, r, `SELECT sql FROM sqlite_master m WHERE sql IS NOT NULL AND (sql LIKE 'CREATE VIRTUAL%' OR `+ordinary+`) ORDER BY rowid LIMIT 1000`) {
		out = append(out, tidemark.Stmt{SQL: o.Text(0)})
	}
	for table, all := range rows {
		out = append(out, tidemark.Stmt{SQL: `INSERT INTO "` + table + `" VALUES(` + strings.Join(all, "), (") + `)`})
	}
	for _, s := range query(t, r, `SELECT quote(name) || ', ' || seq FROM sqlite_sequence LIMIT 100`) {
		out = append(out, tidemark.Stmt{SQL: `INSERT OR REPLACE INTO sqlite_sequence(rowid, name, seq) SELECT (SELECT rowid FROM sqlite_sequence WHERE name = v.n), v.n, v.s FROM (SELECT ` + strings.Replace(s.Text(0), ", ", " n, ", 1) + ` s) v`})
	}
	for _, v := range query(t, r, `SELECT name FROM sqlite_master WHERE sql LIKE 'CREATE VIRTUAL%' LIMIT 100`) {
		for _, s := range r.stmts {
			if strings.HasPrefix(s.SQL, "INSERT INTO "+v.Text(0)+"(") {
				out = append(out, s)
			}
		}
	}
	return out
}
