//go:build !js

package e2e

import (
	"path/filepath"
	"testing"

	"github.com/tidemark-ai/tidemark/bench"
	"github.com/tidemark-ai/tidemark/host/native"
)

// TestNeedles: what compactions to pointers took out of the context is found again over HTTP, by the binary
// and in workerd alike (`tidemark-bench needles --server`).
func TestNeedles(t *testing.T) {
	t.Parallel()
	for _, name := range chosen(t) {
		if name != "native" && name != "workerd" { // the others are the same code again
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(name, filepath.Join(t.TempDir(), "disk"), []string{"TIDEMARK_COMPACTION_STRATEGIES=pointer", "TIDEMARK_MODEL_PROVIDER=offline"})
			t.Cleanup(func() { report(t, s.close()) })
			if err := s.run(); err != nil {
				t.Fatal(err)
			}
			n := bench.Needles{Needles: 3, Events: 20, Cycles: 5, Budget: 4000, Headroom: 200, Tail: 3}
			got, err := bench.Server{Base: s.base(), Token: token, Key: "needles", Via: native.Transport(), Said: 1}.Run(t.Context(), n)
			if err != nil {
				t.Fatal(err)
			}
			if got.Recall != 1 || got.Cycles < n.Cycles || got.Markers == nil || *got.Markers > *got.Most {
				t.Errorf("%+v", got)
			}
			for kind, share := range got.ByKind {
				if share < 0.98 {
					t.Errorf("%s: %.2f", kind, share)
				}
			}
		})
	}
}
