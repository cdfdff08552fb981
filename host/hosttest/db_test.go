package hosttest_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/tidemark-ai/tidemark"
)

// testDB checks that the databases which open gives obey the contract of [tidemark.DB]. Each call of open must give an
// empty database.
func testDB(t *testing.T, open func(t *testing.T) tidemark.DB) {
	for name, test := range map[string]func(*testing.T, tidemark.DB){
		"Values":        dbValues,
		"Text":          dbText,
		"Blobs":         dbBlobs,
		"NumbersAsReal": dbReal,
		"BadArguments":  dbBadArgs,
		"PageBound":     dbPage,
		"Changes":       dbChanges,
		"TxAtomic":      dbAtomic,
		"TxWant":        dbWant,
		"TxStatements":  dbStatements,
		"Uniqueness":    dbUnique,
		"Cancelled":     dbCancelled,
		"Counter":       dbCounter,
		"Transfers":     dbTransfers,
		"FullText":      dbFTS,
	} {
		t.Run(name, func(t *testing.T) { test(t, open(t)) })
	}
}

// dbValues: what goes in comes out, and the methods of Row read it.
func dbValues(t *testing.T, db tidemark.DB) {
	mustTx(t, db, `CREATE TABLE v (id INTEGER PRIMARY KEY, i INTEGER, r REAL, s TEXT, b BLOB)`)
	for id, tc := range []struct {
		name string
		i    any
		r    any
		s    any
		b    any
		want tidemark.Row
	}{
		{"nothing", nil, nil, nil, nil, tidemark.Row{nil, nil, nil, nil}},
		{"nil bytes are NULL", 0, 0.0, "", []byte(nil), tidemark.Row{int64(0), 0.0, "", nil}},
		{"empty", 0, 0.0, "", []byte{}, tidemark.Row{int64(0), 0.0, "", []byte{}}},
		{"true", true, 0.5, "a", []byte{0}, tidemark.Row{int64(1), 0.5, "a", []byte{0}}},
		{"false", false, -0.5, "a", []byte{0}, tidemark.Row{int64(0), -0.5, "a", []byte{0}}},
		{"int", 7, 7, "7", []byte("7"), tidemark.Row{int64(7), 7.0, "7", []byte("7")}},
		{"largest", int64(1) << 53, 1.5e300, "x", []byte{255}, tidemark.Row{int64(1) << 53, 1.5e300, "x", []byte{255}}},
		{"smallest", -int64(1) << 53, -1.5e300, "x", []byte{255}, tidemark.Row{-int64(1) << 53, -1.5e300, "x", []byte{255}}},
		{"milliseconds", int64(1_800_000_000_123), 1e-9, "x", []byte{1}, tidemark.Row{int64(1_800_000_000_123), 1e-9, "x", []byte{1}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			mustTx(t, db, `INSERT INTO v VALUES (?, ?, ?, ?, ?)`, id, tc.i, tc.r, tc.s, tc.b)
			row := one(t, db, `SELECT i, r, s, b, typeof(i) IN ('integer', 'null') FROM v WHERE id = ? LIMIT 1`, id)
			if row.Int(4) != 1 {
				t.Errorf("a number in an INTEGER column is stored as something else")
			}
			same := row.Int(0) == tc.want.Int(0) && row.Float(1) == tc.want.Float(1) &&
				row.Text(2) == tc.want.Text(2) && bytes.Equal(row.Bytes(3), tc.want.Bytes(3))
			for i := range tc.want {
				same = same && row.Null(i) == tc.want.Null(i)
			}
			if !same {
				t.Errorf("got %#v, want %#v", row[:4], tc.want)
			}
		})
	}
}

// dbText: any text survives. Bytes that are not UTF-8 may come back replaced by U+FFFD, since a
// host may hold text as UTF-16, but nothing around them is lost; real bytes go into a BLOB.
func dbText(t *testing.T, db tidemark.DB) {
	mustTx(t, db, `CREATE TABLE x (id INTEGER PRIMARY KEY, s TEXT)`)
	for id, tc := range []struct{ name, text string }{
		{"NUL inside", "a\x00b"},
		{"NUL only", "\x00"},
		{"NUL at the end", "a\x00"},
		{"line ends", "a\r\nb\rc\n"},
		{"beyond the first plane", "😀 𝒳 \U0010FFFF"},
		{"combining", "é é 한글 עברית"},
		{"byte order mark", "\ufeffa"},
		{"replacement itself", "a\ufffdb"},
		{"quotes", `'"` + "`;--?$1"},
		{"broken byte", "a\xffb"},
		{"broken sequence", "a\xe2\x82b"},
		{"surrogate half", "a\xed\xa0\x80b"},
		{"long", strings.Repeat("0123456789abcdef", 1_800_000/16)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			mustTx(t, db, `INSERT INTO x VALUES (?, ?)`, id, tc.text)
			got := one(t, db, `SELECT s FROM x WHERE id = ? LIMIT 1`, id).Text(0)
			if g, w := collapse(got), collapse(tc.text); g != w {
				t.Errorf("got %.80q (%d bytes), want %.80q (%d bytes)", g, len(g), w, len(w))
			}
		})
	}
}

// collapse writes each run of broken bytes or replacements as one replacement.
func collapse(s string) string {
	s = strings.ToValidUTF8(s, "\ufffd")
	for strings.Contains(s, "\ufffd\ufffd") {
		s = strings.ReplaceAll(s, "\ufffd\ufffd", "\ufffd")
	}
	return s
}

// dbBlobs: every byte value survives, and so does the largest blob.
func dbBlobs(t *testing.T, db tidemark.DB) {
	mustTx(t, db, `CREATE TABLE b (id INTEGER PRIMARY KEY, b BLOB)`)
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	for id, b := range [][]byte{all, {0}, bytes.Repeat(all, 1_800_000/256)} {
		mustTx(t, db, `INSERT INTO b VALUES (?, ?)`, id, b)
		row := one(t, db, `SELECT b, length(b), typeof(b) FROM b WHERE id = ? LIMIT 1`, id)
		if !bytes.Equal(row.Bytes(0), b) || row.Int(1) != int64(len(b)) || row.Text(2) != "blob" {
			t.Errorf("blob %d: %d bytes came back as %d of type %s", id, len(b), len(row.Bytes(0)), row.Text(2))
		}
	}
}

// dbReal: a bound number may be REAL; columns of INTEGER affinity, comparisons with them, keys and
// LIMIT work all the same.
func dbReal(t *testing.T, db tidemark.DB) {
	mustTx(t, db, `CREATE TABLE k (id INTEGER PRIMARY KEY, n INTEGER NOT NULL, s TEXT) STRICT`)
	mustTx(t, db, `CREATE INDEX k_n ON k (n)`)
	for i := range 10 {
		mustTx(t, db, `INSERT INTO k VALUES (?, ?, ?)`, i, i*10, fmt.Sprint(i))
	}
	for _, tc := range []struct {
		name, sql string
		args      []any
		want      int64
	}{
		{"by key", `SELECT n FROM k WHERE id = ? LIMIT 1`, []any{3}, 30},
		{"by index", `SELECT id FROM k WHERE n = ? LIMIT 1`, []any{40}, 4},
		{"in a list", `SELECT sum(n) FROM k WHERE id IN (?, ?, ?) LIMIT 1`, []any{1, int64(2), 3.0}, 60},
		{"between", `SELECT count(*) FROM k WHERE n > ? AND n <= ? LIMIT 1`, []any{20, 50}, 3},
		{"limit and offset", `SELECT id FROM k ORDER BY id LIMIT ? OFFSET ?`, []any{1, 5}, 5},
		{"cast divides as an integer", `SELECT CAST(? AS INTEGER) / 2 LIMIT 1`, []any{7}, 3},
		{"add to a column", `SELECT n + ? FROM k WHERE id = 2 LIMIT 1`, []any{1}, 21},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := one(t, db, tc.sql, tc.args...).Int(0); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
}

// dbBadArgs: what the strictest host refuses is refused, by Query and Tx, before anything runs.
func dbBadArgs(t *testing.T, db tidemark.DB) {
	mustTx(t, db, `CREATE TABLE a (x)`)
	full := make([]any, tidemark.MaxParams)
	list := strings.TrimSuffix(strings.Repeat("?,", tidemark.MaxParams), ",")
	for _, tc := range []struct {
		name string
		args []any
		want error
	}{
		{"101 arguments", append(append([]any{}, full...), nil), tidemark.ErrTooLarge},
		{"integer beyond 2^53", []any{int64(1)<<53 + 1}, tidemark.ErrTooLarge},
		{"integer below -2^53", []any{-int64(1)<<53 - 1}, tidemark.ErrTooLarge},
		{"largest int64", []any{int64(math.MaxInt64)}, tidemark.ErrTooLarge},
		{"text too long", []any{strings.Repeat("a", tidemark.MaxRow+1)}, tidemark.ErrTooLarge},
		{"text and blob together too long", []any{strings.Repeat("a", tidemark.MaxRow/2), make([]byte, tidemark.MaxRow/2+1)}, tidemark.ErrTooLarge},
		{"uint64", []any{uint64(1)}, tidemark.ErrInvalid},
		{"struct", []any{struct{}{}}, tidemark.ErrInvalid},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if _, err := db.Query(t.Context(), `SELECT 1 LIMIT 1`, tc.args...); !errors.Is(err, tc.want) {
				t.Errorf("Query: got %v, want %v", err, tc.want)
			}
			err := db.Tx(t.Context(), []tidemark.Stmt{{SQL: `INSERT INTO a VALUES (1)`}, {SQL: `INSERT INTO a VALUES (?)`, Args: tc.args}})
			if !errors.Is(err, tc.want) {
				t.Errorf("Tx: got %v, want %v", err, tc.want)
			}
		})
	}
	if n := one(t, db, `SELECT count(*) FROM a LIMIT 1`).Int(0); n != 0 {
		t.Errorf("a refused transaction left %d rows", n)
	}
	if row := one(t, db, `SELECT `+list+` LIMIT 1`, full...); len(row) != tidemark.MaxParams {
		t.Errorf("%d arguments gave %d columns", tidemark.MaxParams, len(row))
	}
	if _, err := db.Query(t.Context(), `SELECT nothing FROM nowhere LIMIT 1`); err == nil {
		t.Error("a query of a missing table is no error")
	}
}

// dbPage: a full page is fine, one row more is an error and not a silent cut.
func dbPage(t *testing.T, db tidemark.DB) {
	const count = `WITH RECURSIVE c (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < ?) SELECT i FROM c LIMIT ?`
	rows, err := db.Query(t.Context(), count, tidemark.MaxPageRows, tidemark.MaxPageRows)
	if err != nil || len(rows) != tidemark.MaxPageRows {
		t.Fatalf("full page: %d rows, %v", len(rows), err)
	}
	if got := rows[len(rows)-1].Int(0); got != tidemark.MaxPageRows {
		t.Errorf("last row is %d", got)
	}
	if _, err = db.Query(t.Context(), count, tidemark.MaxPageRows+1, tidemark.MaxPageRows+1); !errors.Is(err, tidemark.ErrTooLarge) {
		t.Errorf("one row too many: %v, want ErrTooLarge", err)
	}
	rows, err = db.Query(t.Context(), count+` OFFSET 10`, 10, 10)
	if err != nil || len(rows) != 0 {
		t.Errorf("no rows: got %v, %v", rows, err)
	}
}

// mustTx runs one statement.
func mustTx(t *testing.T, db tidemark.DB, sql string, args ...any) {
	t.Helper()
	if err := db.Tx(t.Context(), []tidemark.Stmt{{SQL: sql, Args: args}}); err != nil {
		t.Fatalf("%.60s: %v", sql, err)
	}
}

// one runs a query that must give one row.
func one(t *testing.T, db tidemark.DB, sql string, args ...any) tidemark.Row {
	t.Helper()
	rows, err := db.Query(t.Context(), sql, args...)
	if err != nil || len(rows) != 1 {
		t.Fatalf("%.60s: %d rows, %v", sql, len(rows), err)
	}
	return rows[0]
}

// dbCancelled: a context that has ended changes nothing and reads nothing.
func dbCancelled(t *testing.T, db tidemark.DB) {
	mustTx(t, db, `CREATE TABLE c (x INTEGER)`)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := db.Tx(ctx, []tidemark.Stmt{{SQL: `INSERT INTO c VALUES (1)`}}); !errors.Is(err, context.Canceled) {
		t.Errorf("Tx: %v, want context.Canceled", err)
	}
	if _, err := db.Query(ctx, `SELECT 1 LIMIT 1`); !errors.Is(err, context.Canceled) {
		t.Errorf("Query: %v, want context.Canceled", err)
	}
	if n := one(t, db, `SELECT count(*) FROM c LIMIT 1`).Int(0); n != 0 {
		t.Errorf("%d rows after a cancelled transaction", n)
	}
}

// dbCounter: compare-and-swap by Want loses no update.
func dbCounter(t *testing.T, db tidemark.DB) {
	const workers, each = 8, 25
	mustTx(t, db, `CREATE TABLE n (id INTEGER PRIMARY KEY, v INTEGER)`)
	mustTx(t, db, `INSERT INTO n VALUES (1, 0)`)
	add := func() error {
		for tries := 0; tries < 10_000; tries++ {
			rows, err := db.Query(t.Context(), `SELECT v FROM n WHERE id = 1 LIMIT 1`)
			if err != nil {
				return err
			}
			v := rows[0].Int(0)
			err = db.Tx(t.Context(), []tidemark.Stmt{{SQL: `UPDATE n SET v = ? WHERE id = 1 AND v = ?`, Args: []any{v + 1, v}, Want: 1}})
			if !errors.Is(err, tidemark.ErrConflict) {
				return err
			}
		}
		return errors.New("10,000 conflicts in a row")
	}
	inParallel(t, workers, func(int) error {
		for range each {
			if err := add(); err != nil {
				return err
			}
		}
		return nil
	})
	if v := one(t, db, `SELECT v FROM n LIMIT 1`).Int(0); v != workers*each {
		t.Errorf("counted %d, want %d", v, workers*each)
	}
}

// dbTransfers: a reader never sees half a transaction.
func dbTransfers(t *testing.T, db tidemark.DB) {
	mustTx(t, db, `CREATE TABLE m (id INTEGER PRIMARY KEY, v INTEGER)`)
	mustTx(t, db, `INSERT INTO m VALUES (0, 100), (1, 100)`)
	inParallel(t, 4, func(w int) error {
		for i := range 50 {
			if w%2 == 1 {
				rows, err := db.Query(t.Context(), `SELECT sum(v), count(*) FROM m LIMIT 1`)
				if err != nil {
					return err
				}
				if rows[0].Int(0) != 200 || rows[0].Int(1) != 2 {
					return fmt.Errorf("saw a sum of %d in %d rows", rows[0].Int(0), rows[0].Int(1))
				}
				continue
			}
			if err := db.Tx(t.Context(), []tidemark.Stmt{
				{SQL: `UPDATE m SET v = v - ? WHERE id = ?`, Args: []any{i, w / 2}, Want: 1},
				{SQL: `UPDATE m SET v = v + ? WHERE id = ?`, Args: []any{i, 1 - w/2}, Want: 1},
			}); err != nil {
				return err
			}
		}
		return nil
	})
}

// inParallel runs f n times at once and reports every error.
func inParallel(t *testing.T, n int, f func(i int) error) {
	t.Helper()
	var wg sync.WaitGroup
	errs := make([]error, n)
	for i := range n {
		wg.Go(func() { errs[i] = f(i) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
}
