package hosttest_test

import (
	"errors"
	"testing"

	"github.com/tidemark-ai/tidemark"
)

// dbChanges: the number that Want is compared with, for every kind of statement we write.
func dbChanges(t *testing.T, db tidemark.DB) {
	mustTx(t, db, `CREATE TABLE w (id INTEGER PRIMARY KEY, g TEXT, n INTEGER)`)
	mustTx(t, db, `CREATE INDEX w_g ON w (g)`)
	mustTx(t, db, `CREATE INDEX w_n ON w (n)`)
	for _, tc := range []struct {
		name, sql string
		want      int
	}{
		{"insert counts rows, not index entries", `INSERT INTO w VALUES (1, 'a', 1), (2, 'a', 2), (3, 'b', 3)`, 3},
		{"insert or ignore that does", `INSERT OR IGNORE INTO w VALUES (4, 'b', 4)`, 1},
		{"insert or replace", `INSERT OR REPLACE INTO w VALUES (4, 'c', 4)`, 1},
		{"upsert that updates", `INSERT INTO w VALUES (4, 'c', 4) ON CONFLICT (id) DO UPDATE SET n = n + 1`, 1},
		{"update to the same value", `UPDATE w SET g = 'a' WHERE g = 'a'`, 2},
		{"insert from select", `INSERT INTO w SELECT id + 10, g, n FROM w`, 4},
		{"insert returning", `INSERT INTO w VALUES (20, 'z', 0), (21, 'z', 0) RETURNING id`, 2},
		{"delete some", `DELETE FROM w WHERE g = 'z'`, 2},
		{"delete all", `DELETE FROM w`, 8},
	} {
		t.Run(tc.name, func(t *testing.T) {
			before := one(t, db, `SELECT count(*), coalesce(sum(n), 0) FROM w LIMIT 1`)
			err := db.Tx(t.Context(), []tidemark.Stmt{{SQL: tc.sql, Want: tc.want + 1}})
			if !errors.Is(err, tidemark.ErrConflict) {
				t.Errorf("Want one more: %v, want ErrConflict", err)
			}
			after := one(t, db, `SELECT count(*), coalesce(sum(n), 0) FROM w LIMIT 1`)
			if before.Int(0) != after.Int(0) || before.Int(1) != after.Int(1) {
				t.Errorf("a conflict changed %v to %v", before, after)
			}
			if err := db.Tx(t.Context(), []tidemark.Stmt{{SQL: tc.sql, Want: tc.want}}); err != nil {
				t.Errorf("Want %d: %v", tc.want, err)
			}
		})
	}
}

// dbAtomic: whatever fails, and wherever, nothing of the transaction is seen.
func dbAtomic(t *testing.T, db tidemark.DB) {
	mustTx(t, db, `CREATE TABLE a (id INTEGER PRIMARY KEY, s TEXT NOT NULL)`)
	mustTx(t, db, `INSERT INTO a VALUES (1, 'first')`)
	ok := tidemark.Stmt{SQL: `INSERT INTO a VALUES (?, 'x')`, Args: []any{50}}
	for _, tc := range []struct {
		name string
		bad  tidemark.Stmt
	}{
		{"syntax", tidemark.Stmt{SQL: `INSRT INTO a`}},
		{"missing table", tidemark.Stmt{SQL: `INSERT INTO nowhere VALUES (1)`}},
		{"key exists", tidemark.Stmt{SQL: `INSERT INTO a VALUES (1, 'again')`}},
		{"not null", tidemark.Stmt{SQL: `INSERT INTO a VALUES (2, NULL)`}},
		{"second row of a statement", tidemark.Stmt{SQL: `INSERT INTO a VALUES (60, 'y'), (1, 'again')`}},
		{"too few arguments", tidemark.Stmt{SQL: `INSERT INTO a VALUES (?, ?)`, Args: []any{70}}},
		{"fence", tidemark.Stmt{SQL: `UPDATE a SET s = 'z' WHERE id = 999`, Want: 1}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for at, stmts := range [][]tidemark.Stmt{{tc.bad, ok}, {ok, tc.bad}, {ok, tc.bad, {SQL: `DELETE FROM a`}}} {
				if err := db.Tx(t.Context(), stmts); err == nil {
					t.Errorf("order %d: no error", at)
				}
				row := one(t, db, `SELECT count(*), max(s) FROM a LIMIT 1`)
				if row.Int(0) != 1 || row.Text(1) != "first" {
					t.Fatalf("order %d: left %v", at, row)
				}
			}
		})
	}
	mustTx(t, db, ok.SQL, ok.Args...) // and the database is still in order
	mustTx(t, db, `CREATE TABLE b (x)`)
	if err := db.Tx(t.Context(), []tidemark.Stmt{{SQL: `DROP TABLE b`}, {SQL: `CREATE TABLE c (x)`}, {SQL: `broken`}}); err == nil {
		t.Error("a broken migration is no error")
	}
	if n := one(t, db, `SELECT count(*) FROM sqlite_master WHERE name IN ('b', 'c') LIMIT 1`).Int(0); n != 1 {
		t.Errorf("a broken migration left %d of its tables, want the one before it", n)
	}
}

// dbWant: the fence as callers use it.
func dbWant(t *testing.T, db tidemark.DB) {
	mustTx(t, db, `CREATE TABLE r (id INTEGER PRIMARY KEY, epoch INTEGER, s TEXT)`)
	mustTx(t, db, `INSERT INTO r VALUES (1, 1, 'a'), (2, 1, 'b')`)
	for _, tc := range []struct {
		name     string
		stmt     tidemark.Stmt
		conflict bool
	}{
		{"holds", tidemark.Stmt{SQL: `UPDATE r SET s = 'c' WHERE id = 1 AND epoch = ?`, Args: []any{1}, Want: 1}, false},
		{"finds no row", tidemark.Stmt{SQL: `UPDATE r SET s = 'd' WHERE id = 1 AND epoch = ?`, Args: []any{2}, Want: 1}, true},
		{"finds too many", tidemark.Stmt{SQL: `UPDATE r SET s = 'e'`, Want: 1}, true},
		{"asks for nothing, changes nothing", tidemark.Stmt{SQL: `UPDATE r SET s = 'f' WHERE id = 9`}, false},
		{"ignored insert", tidemark.Stmt{SQL: `INSERT OR IGNORE INTO r VALUES (1, 9, 'g')`, Want: 1}, true},
		{"upsert that does nothing", tidemark.Stmt{SQL: `INSERT INTO r VALUES (1, 9, 'h') ON CONFLICT DO NOTHING`, Want: 1}, true},
		{"deletes nothing", tidemark.Stmt{SQL: `DELETE FROM r WHERE id = 9`, Want: 1}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := db.Tx(t.Context(), []tidemark.Stmt{{SQL: `UPDATE r SET epoch = epoch WHERE id = 2`, Want: 1}, tc.stmt})
			if errors.Is(err, tidemark.ErrConflict) != tc.conflict || (err == nil) == tc.conflict {
				t.Errorf("got %v, want a conflict: %t", err, tc.conflict)
			}
		})
	}
	if row := one(t, db, `SELECT s, count(*) FROM r WHERE id = 1 LIMIT 1`); row.Text(0) != "c" {
		t.Errorf("the row reads %q, want what the only holding fence wrote", row.Text(0))
	}
}

// dbStatements: none is fine, many are, and a transaction is not opened by hand.
func dbStatements(t *testing.T, db tidemark.DB) {
	if err := db.Tx(t.Context(), nil); err != nil {
		t.Errorf("no statements: %v", err)
	}
	mustTx(t, db, `CREATE TABLE s (x INTEGER)`)
	many := make([]tidemark.Stmt, 1000)
	for i := range many {
		many[i] = tidemark.Stmt{SQL: `INSERT INTO s VALUES (?)`, Args: []any{i}, Want: 1}
	}
	if err := db.Tx(t.Context(), many); err != nil {
		t.Fatal(err)
	}
	if row := one(t, db, `SELECT count(*), sum(x) FROM s LIMIT 1`); row.Int(0) != 1000 || row.Int(1) != 499_500 {
		t.Errorf("count and sum are %v", row)
	}
	for _, sql := range []string{`BEGIN`, `COMMIT`, `ROLLBACK`, `SAVEPOINT a`} {
		if err := db.Tx(t.Context(), []tidemark.Stmt{{SQL: `DELETE FROM s`}, {SQL: sql}}); err == nil {
			t.Errorf("%s within a transaction is no error", sql)
		}
	}
	if n := one(t, db, `SELECT count(*) FROM s LIMIT 1`).Int(0); n != 1000 {
		t.Errorf("%d rows are left", n)
	}
}

// dbUnique: a key that exists is ErrConflict, as for a compare-and-swap, another broken rule is not.
func dbUnique(t *testing.T, db tidemark.DB) {
	mustTx(t, db, `CREATE TABLE u (id TEXT PRIMARY KEY, e TEXT UNIQUE, n INTEGER CHECK (n > 0)) WITHOUT ROWID`)
	mustTx(t, db, `INSERT INTO u VALUES ('a', 'x', 1)`)
	for _, tc := range []struct {
		name, sql string
		conflict  bool
	}{
		{"primary key", `INSERT INTO u VALUES ('a', 'y', 1)`, true},
		{"unique column", `INSERT INTO u VALUES ('b', 'x', 1)`, true},
		{"check", `INSERT INTO u VALUES ('b', 'y', 0)`, false},
		{"not null", `INSERT INTO u VALUES (NULL, 'y', 1)`, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := db.Tx(t.Context(), []tidemark.Stmt{{SQL: tc.sql}})
			if err == nil || errors.Is(err, tidemark.ErrConflict) != tc.conflict {
				t.Errorf("got %v, want a conflict: %t", err, tc.conflict)
			}
		})
	}
}

// dbFTS: full-text search is there, ranked, and part of the transaction.
func dbFTS(t *testing.T, db tidemark.DB) {
	mustTx(t, db, `CREATE VIRTUAL TABLE f USING fts5 (body, tokenize = 'unicode61')`)
	for i, s := range []string{"the tide comes in", "a mark on the wall", "tide tide tide", "Ebbe und Flut, größer"} {
		mustTx(t, db, `INSERT INTO f (rowid, body) VALUES (?, ?)`, i+1, s)
	}
	for _, tc := range []struct {
		name, match, order string
		want               []int64
	}{
		{"ranked", "tide", "bm25(f)", []int64{3, 1}},
		{"both", "tide comes", "bm25(f)", []int64{1}},
		{"either", "wall OR flut", "rowid", []int64{2, 4}},
		{"phrase", `"on the"`, "bm25(f)", []int64{2}},
		{"accents and case", "GRÖßER", "bm25(f)", []int64{4}},
		{"nothing", "absent", "bm25(f)", nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			rows, err := db.Query(t.Context(), `SELECT rowid FROM f WHERE f MATCH ? ORDER BY `+tc.order+` LIMIT 10`, tc.match)
			if err != nil || len(rows) != len(tc.want) {
				t.Fatalf("got %v, %v, want %v", rows, err, tc.want)
			}
			for i, w := range tc.want {
				if rows[i].Int(0) != w {
					t.Errorf("place %d: row %d, want %d", i, rows[i].Int(0), w)
				}
			}
		})
	}
	err := db.Tx(t.Context(), []tidemark.Stmt{{SQL: `DELETE FROM f WHERE rowid = 1`}, {SQL: `broken`}})
	if n := one(t, db, `SELECT count(*) FROM f WHERE f MATCH 'tide' LIMIT 1`).Int(0); err == nil || n != 2 {
		t.Errorf("an undone delete left %d of 2 matches (%v)", n, err)
	}
}
