//go:build !js

package native

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
)

// BenchmarkDBInsert is the cost of an acknowledged input. synchronous=FULL is what OpenDB sets;
// NORMAL shows what the fsync costs, and would lose the last transactions with the power. On a
// virtual disk with a fast fsync, one row took 54 µs against 16, a hundred 459 µs against 391; on a
// disk that waits for its medium expect the time of its fsync, a few ms, a transaction.
func BenchmarkDBInsert(b *testing.B) {
	for _, sync := range []string{"FULL", "NORMAL"} {
		for _, rows := range []int{1, 10, 100} {
			b.Run(fmt.Sprintf("sync=%s/rows=%d", sync, rows), func(b *testing.B) {
				db := openTestDB(b, filepath.Join(b.TempDir(), "b.db"))
				c := <-db.writer
				if _, err := c.exec("PRAGMA synchronous="+sync, nil); err != nil {
					b.Fatal(err)
				}
				db.writer <- c
				write(b, db, `CREATE TABLE e (seq INTEGER PRIMARY KEY, id TEXT, payload TEXT)`)
				payload := strings.Repeat("x", 400)
				seq := 0
				for b.Loop() {
					stmts := make([]tidemark.Stmt, rows)
					for i := range stmts {
						seq++
						stmts[i] = tidemark.Stmt{SQL: `INSERT INTO e VALUES (?, ?, ?)`, Args: []any{seq, "01ARZ3NDEKTSV4RRFFQ69G5FAV", payload}, Want: 1}
					}
					if err := db.Tx(b.Context(), stmts); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkDBScan reads a page of a log, as Assemble does.
func BenchmarkDBScan(b *testing.B) {
	db := openTestDB(b, filepath.Join(b.TempDir(), "b.db"))
	write(b, db, `CREATE TABLE e (seq INTEGER PRIMARY KEY, id TEXT, payload TEXT)`,
		`WITH RECURSIVE c (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 10000)
		 INSERT INTO e SELECT i, 'id', hex(zeroblob(200)) FROM c`)
	for _, n := range []int{1, 100, 5000} {
		b.Run(fmt.Sprintf("rows=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				rows, err := db.Query(b.Context(), `SELECT seq, id, payload FROM e WHERE seq > ? ORDER BY seq LIMIT ?`, 100, n)
				if err != nil || len(rows) != n {
					b.Fatal(len(rows), err)
				}
			}
		})
	}
}

// BenchmarkDirPut is dominated by its five fsyncs: body, sidecar, and the folders of both.
func BenchmarkDirPut(b *testing.B) {
	for _, size := range []int{1 << 10, 64 << 10, 4 << 20} {
		b.Run(fmt.Sprintf("size=%d", size), func(b *testing.B) {
			d := openTestDir(b, b.TempDir())
			content := make([]byte, size)
			b.SetBytes(int64(size))
			for b.Loop() {
				if _, err := d.Put(b.Context(), "agents/main/memory/2026-11-21.md", bytes.NewReader(content), int64(size), tidemark.PutOptions{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkDirGet opens, finds the sidecar and reads.
func BenchmarkDirGet(b *testing.B) {
	for _, size := range []int{1 << 10, 64 << 10, 4 << 20} {
		b.Run(fmt.Sprintf("size=%d", size), func(b *testing.B) {
			d := openTestDir(b, b.TempDir())
			if _, err := d.Put(b.Context(), "a/b/c", bytes.NewReader(make([]byte, size)), int64(size), tidemark.PutOptions{}); err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(size))
			for b.Loop() {
				_, body, err := d.Get(b.Context(), "a/b/c")
				if err != nil {
					b.Fatal(err)
				}
				if n, err := io.Copy(io.Discard, body); err != nil || n != int64(size) {
					b.Fatal(n, err)
				}
				body.Close()
			}
		})
	}
}

// BenchmarkDirList reads the first page of a folder of 5,000 objects, and one from its middle.
func BenchmarkDirList(b *testing.B) {
	root := b.TempDir()
	d := openTestDir(b, root)
	for i := range 5000 {
		file := filepath.Join(root, "sessions", fmt.Sprintf("%05d.jsonl.gz", i))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			b.Fatal(err)
		}
	}
	for _, cursor := range []string{"", "sessions/02500.jsonl.gz"} {
		b.Run("after="+cursor, func(b *testing.B) {
			for b.Loop() {
				if page, _, err := d.List(b.Context(), "sessions/", cursor, 100); err != nil || len(page) != 100 {
					b.Fatal(len(page), err)
				}
			}
		})
	}
}
