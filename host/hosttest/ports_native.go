//go:build !js

package hosttest

import (
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host/native"
)

// DB is an empty database of its own for each call.
func DB(t testing.TB) tidemark.DB {
	t.Helper()
	db, err := native.OpenDB(":memory:")
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

// Blobs is an empty folder of its own for each call.
func Blobs(t testing.TB) tidemark.Blobs {
	t.Helper()
	d, err := native.NewDir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// Runtime waits in real time and runs goroutines.
func Runtime(testing.TB) tidemark.Runtime { return native.NewRuntime(nil) }
