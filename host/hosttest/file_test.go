//go:build !js

package hosttest_test

import (
	"path/filepath"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host/native"
)

// TestDBFile is TestDB on a file, which only a native host has.
func TestDBFile(t *testing.T) {
	testDB(t, func(t *testing.T) tidemark.DB {
		db, err := native.OpenDB(filepath.Join(t.TempDir(), "odd name %20?#", "t.db"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := db.Close(); err != nil {
				t.Error(err)
			}
		})
		return db
	})
}
