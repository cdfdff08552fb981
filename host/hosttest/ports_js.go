package hosttest

import (
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host/cloudflare"
)

// DB is an empty database of its own for each call.
func DB(t testing.TB) tidemark.DB { return open(t).DB() }

// Blobs is an empty bucket of its own for each call.
func Blobs(t testing.TB) tidemark.Blobs { return open(t).Blobs("BUCKET") }

// Runtime waits in real time and runs goroutines.
func Runtime(t testing.TB) tidemark.Runtime { return open(t) }

// open gives a fresh object of the test runner.
func open(t testing.TB) *cloudflare.Obj {
	t.Helper()
	o, err := cloudflare.Open(nil, "Test", t.Name())
	if err != nil {
		t.Fatalf("run js/wasm tests with -exec build/exec-wasm.sh: %v", err)
	}
	return o
}
