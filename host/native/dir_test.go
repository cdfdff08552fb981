//go:build !js

package native

import (
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

func openTestDir(t testing.TB, root string) *Dir {
	t.Helper()
	d, err := NewDir(root)
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

func TestDir(t *testing.T) {
	tidemarktest.TestBlobs(t, func(t *testing.T) tidemark.Blobs { return openTestDir(t, t.TempDir()) })
}
