//go:build !js

package native

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
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
