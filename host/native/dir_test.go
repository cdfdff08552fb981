//go:build !js

package native

import (
	"testing"
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
