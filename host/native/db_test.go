//go:build !js

package native

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

func openTestDB(t testing.TB, path string) *DB {
	t.Helper()
	db, err := OpenDB(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// TestDBPrivate: a database and its log hold conversations, so nobody else may read them.
func TestDBPrivate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.db")
	write(t, openTestDB(t, path), `CREATE TABLE k (x INTEGER)`)
	for _, suffix := range []string{"", "-wal", "-shm", ".lock"} {
		info, err := os.Stat(path + suffix)
		if err != nil {
			t.Fatal(err)
		}
		if perm := info.Mode().Perm(); perm != filePerm && runtime.GOOS != "windows" {
			t.Errorf("t.db%s has mode %o, want %o", suffix, perm, filePerm)
		}
	}
}

func TestDB(t *testing.T) {
	for name, path := range map[string]func(t *testing.T) string{
		"file":   func(t *testing.T) string { return filepath.Join(t.TempDir(), "odd name %20?#", "t.db") },
		"memory": func(*testing.T) string { return ":memory:" },
	} {
		t.Run(name, func(t *testing.T) {
			tidemarktest.TestDB(t, func(t *testing.T) tidemark.DB { return openTestDB(t, path(t)) })
		})
	}
}
