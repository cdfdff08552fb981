//go:build !js

package native

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
)

// TestDBKeepsData closes and opens again, and Close twice is fine.
func TestDBKeepsData(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sub", "t.db")
	db := openTestDB(t, path)
	write(t, db, `CREATE TABLE k (x TEXT)`, `INSERT INTO k VALUES ('kept')`)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Errorf("second close: %v", err)
	}
	_, err := db.Query(t.Context(), `SELECT 1 LIMIT 1`)
	wantError(t, err, tidemark.ErrUnavailable, path, "closed")
	wantError(t, db.Tx(t.Context(), nil), tidemark.ErrUnavailable, path, "closed")
	rows, err := openTestDB(t, path).Query(t.Context(), `SELECT x FROM k LIMIT 1`)
	if err != nil || len(rows) != 1 || rows[0].Text(0) != "kept" {
		t.Errorf("after opening again: %v, %v", rows, err)
	}
}

// TestDBLocked: a second owner, in this process or another, learns who the first is.
func TestDBLocked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.db")
	if os.Getenv("TIDEMARK_TEST_LOCK") != "" {
		_, err := OpenDB(os.Getenv("TIDEMARK_TEST_LOCK"))
		fmt.Printf("child: %v\n", err)
		return
	}
	db := openTestDB(t, path)
	_, err := OpenDB(path)
	var held *LockedError
	if !errors.As(err, &held) || held.Path != path || held.PID != os.Getpid() {
		t.Errorf("got %#v, want a LockedError of %s by %d", err, path, os.Getpid())
	}
	wantError(t, err, tidemark.ErrBusy, path, fmt.Sprint(os.Getpid()))

	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestDBLocked$", "-test.v")
	child.Env = append(os.Environ(), "TIDEMARK_TEST_LOCK="+path)
	out, err := child.CombinedOutput()
	if want := fmt.Sprintf("child: database %s is in use by process %d", path, os.Getpid()); err != nil || !strings.Contains(string(out), want) {
		t.Errorf("child said %s (%v), want %q", out, err, want)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	openTestDB(t, path) // free again
}

// TestDBKilled: an owner that was killed leaves its lock file and no lock, and what it committed.
func TestDBKilled(t *testing.T) {
	if path := os.Getenv("TIDEMARK_TEST_KILL"); path != "" {
		db, err := OpenDB(path)
		if err != nil {
			t.Fatal(err)
		}
		write(t, db, `CREATE TABLE k (x INTEGER)`)
		for i := 0; ; i++ {
			if err := db.Tx(context.Background(), []tidemark.Stmt{{SQL: `INSERT INTO k VALUES (?)`, Args: []any{i}}}); err != nil {
				t.Fatal(err)
			}
			fmt.Println("committed", i)
		}
	}
	path := filepath.Join(t.TempDir(), "t.db")
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestDBKilled$")
	child.Env = append(os.Environ(), "TIDEMARK_TEST_KILL="+path)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	var acknowledged int
	for acknowledged < 20 {
		if _, err := fmt.Fscanf(out, "committed %d\n", &acknowledged); err != nil {
			t.Fatal(err)
		}
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait() // says that it was killed
	rows, err := openTestDB(t, path).Query(t.Context(), `SELECT count(*), max(x) FROM k LIMIT 1`)
	if err != nil || rows[0].Int(0) <= int64(acknowledged) || rows[0].Int(0) != rows[0].Int(1)+1 {
		t.Errorf("count and highest are %v (%v), acknowledged were 0 to %d", rows, err, acknowledged)
	}
}

// TestDBDamaged: a file that is none of ours is named, with a way out, and is not changed.
func TestDBDamaged(t *testing.T) {
	good := filepath.Join(t.TempDir(), "good.db")
	db := openTestDB(t, good)
	write(t, db, `CREATE TABLE k (x TEXT)`)
	for range 50 {
		write(t, db, `INSERT INTO k VALUES (hex(randomblob(2000)))`)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name string
		file []byte
	}{
		{"text", bytes.Repeat([]byte("this is a letter, not a database\n"), 200)},
		{"header overwritten", append(bytes.Repeat([]byte{0xff}, 100), whole[100:]...)},
		{"first page overwritten", append(append(append([]byte{}, whole[:100]...), bytes.Repeat([]byte{0xff}, 3996)...), whole[4096:]...)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "bad.db")
			if err := os.WriteFile(path, tc.file, 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := OpenDB(path)
			wantError(t, err, tidemark.ErrUnavailable, path, "backup", ".recover")
			if after, err := os.ReadFile(path); err != nil || !bytes.Equal(after, tc.file) {
				t.Errorf("opening changed the file (%v)", err)
			}
		})
	}
	t.Run("in the middle", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "bad.db")
		if err := os.WriteFile(path, append(append([]byte{}, whole[:8192]...), bytes.Repeat([]byte{0xee}, len(whole)-8192)...), 0o600); err != nil {
			t.Fatal(err)
		}
		db := openTestDB(t, path)
		wantError(t, db.Check(t.Context()), tidemark.ErrUnavailable, path, ".recover")
		_, err := db.Query(t.Context(), `SELECT max(length(x)), sum(x) FROM k LIMIT 1`)
		wantError(t, err, tidemark.ErrUnavailable, path, ".recover")
	})
	if err := openTestDB(t, good).Check(t.Context()); err != nil {
		t.Errorf("check of the good one: %v", err)
	}
}

// TestDBUnwritable: paths where no database can be.
func TestDBUnwritable(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, path := range map[string]string{
		"a folder":     dir,
		"below a file": filepath.Join(file, "t.db"),
		"no such root": "/proc/self/tidemark/t.db",
	} {
		t.Run(name, func(t *testing.T) {
			db, err := OpenDB(path)
			wantError(t, err, tidemark.ErrUnavailable, path)
			if err == nil {
				db.Close()
			}
		})
	}
}

// TestDBFull: SQLite's own answer to a full disk undoes the transaction and names the file; when
// there is room again, the same handle goes on.
func TestDBFull(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.db")
	db := openTestDB(t, path)
	write(t, db, `CREATE TABLE k (x BLOB)`, `INSERT INTO k VALUES (zeroblob(10))`, `PRAGMA max_page_count = 20`)
	err := db.Tx(t.Context(), []tidemark.Stmt{{SQL: `INSERT INTO k VALUES (zeroblob(10))`}, {SQL: `INSERT INTO k VALUES (zeroblob(1000000))`}})
	wantError(t, err, tidemark.ErrUnavailable, path, "disk is full")
	write(t, db, `PRAGMA max_page_count = 100000`, `INSERT INTO k VALUES (zeroblob(1000000))`)
	rows, err := db.Query(t.Context(), `SELECT count(*) FROM k LIMIT 1`)
	if err != nil || rows[0].Int(0) != 2 {
		t.Errorf("rows %v, %v, want the first and the last", rows, err)
	}
}

// TestDBReadOnly: a file that must not be written says so; reading goes on.
func TestDBReadOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.db")
	db := openTestDB(t, path)
	write(t, db, `CREATE TABLE k (x)`, `PRAGMA query_only = 1`)
	err := db.Tx(t.Context(), []tidemark.Stmt{{SQL: `INSERT INTO k VALUES (1)`}})
	wantError(t, err, tidemark.ErrUnavailable, path, "writable")
	if _, err := db.Query(t.Context(), `SELECT x FROM k LIMIT 1`); err != nil {
		t.Error(err)
	}
}

// TestQueryCannotWrite: the cursor of a query never changes data, in a file or in memory.
func TestQueryCannotWrite(t *testing.T) {
	for _, path := range []string{":memory:", filepath.Join(t.TempDir(), "t.db")} {
		db := openTestDB(t, path)
		write(t, db, `CREATE TABLE k (x)`)
		_, err := db.Query(t.Context(), `INSERT INTO k VALUES (1) RETURNING x`)
		wantError(t, err, tidemark.ErrInvalid, "Tx")
		write(t, db, `INSERT INTO k VALUES (2)`)
		rows, err := db.Query(t.Context(), `SELECT x FROM k LIMIT 5`)
		if err != nil || len(rows) != 1 || rows[0].Int(0) != 2 {
			t.Errorf("%s: got %v, %v", path, rows, err)
		}
	}
}

// TestNumbersAreReal: an expression over a bare argument computes as in a Durable Object.
func TestNumbersAreReal(t *testing.T) {
	rows, err := openTestDB(t, ":memory:").Query(t.Context(), `SELECT typeof(?), ? / 2, typeof(?) LIMIT 1`, 1, int64(7), true)
	if err != nil {
		t.Fatal(err)
	}
	if r := rows[0]; r.Text(0) != "real" || r.Float(1) != 3.5 || r.Text(2) != "real" {
		t.Errorf("got %v, want real, 3.5, real", r)
	}
}

// TestManyStatements: more shapes of a statement than the cache holds.
func TestManyStatements(t *testing.T) {
	db := openTestDB(t, ":memory:")
	for i := range 3 * maxStmts {
		rows, err := db.Query(t.Context(), fmt.Sprintf(`SELECT %d LIMIT 1`, i))
		if err != nil || rows[0].Int(0) != int64(i) {
			t.Fatalf("statement %d: %v, %v", i, rows, err)
		}
	}
}

func write(t testing.TB, db tidemark.DB, sql ...string) {
	t.Helper()
	for _, s := range sql {
		if err := db.Tx(t.Context(), []tidemark.Stmt{{SQL: s}}); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

// wantError checks the kind of an error and that it tells a person these words.
func wantError(t testing.TB, err, kind error, words ...string) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Errorf("got %v, want %v", err, kind)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q does not mention %q", err, w)
		}
	}
}
