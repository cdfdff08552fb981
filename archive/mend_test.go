package archive_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/archive"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// TestMend: an index that lost archives names them again, once, and what is no archive is told.
func TestMend(t *testing.T) {
	const n = 6
	stray := archive.Folder("main") + "notes.gz"
	for _, tc := range []struct {
		name    string
		lose    func(infos []archive.Info) []string // objects to delete
		bounds  archive.Bounds
		added   int
		partial bool
		gone    string
	}{
		{"nothing lost", func([]archive.Info) []string { return nil }, archive.Bounds{}, 0, false, ""},
		{"every month lost", func(infos []archive.Info) []string {
			var keys []string
			for _, i := range infos {
				keys = append(keys, archive.IndexKey("main", i.At))
			}
			return keys
		}, archive.Bounds{}, n, false, ""},
		{"an archive lost", func(infos []archive.Info) []string { return []string{infos[0].Key} }, archive.Bounds{}, 0, false, ""},
		{"every month lost, and an archive meanwhile", func(infos []archive.Info) []string {
			var keys []string
			for _, i := range infos {
				keys = append(keys, archive.IndexKey("main", i.At))
			}
			return keys
		}, archive.Bounds{}, n - 1, false, archive.PartKey("main", "01S1", noon.AddDate(0, 0, -7))},
		{"more lost than are added at once", func(infos []archive.Info) []string {
			var keys []string
			for _, i := range infos {
				keys = append(keys, archive.IndexKey("main", i.At))
			}
			return keys
		}, archive.Bounds{Added: 1}, 1, true, ""},
		{"as many objects as are compared", func(infos []archive.Info) []string { return []string{archive.IndexKey("main", infos[0].At)} }, archive.Bounds{Objects: n + 2}, 3, false, ""},
		{"more objects than are compared", func(infos []archive.Info) []string { return []string{archive.IndexKey("main", infos[0].At)} }, archive.Bounds{Objects: 3}, 0, true, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := tidemarktest.NewBlobs()
			infos := fill(t, b, n)
			if _, err := b.Put(t.Context(), stray, strings.NewReader("x"), 1, tidemark.PutOptions{}); err != nil {
				t.Fatal(err)
			}
			for _, key := range tc.lose(infos) {
				if err := b.Delete(t.Context(), key); err != nil {
					t.Fatal(err)
				}
			}
			b.Fail = func(op, key string) error { // deleted while it is looked at
				if key == tc.gone && op == "get" {
					return tidemark.ErrNotFound
				}
				return nil
			}
			s, err := archive.Mend(t.Context(), b, "main", tc.bounds)
			b.Fail = nil
			if err != nil || len(s.Added) != tc.added || s.Partial != tc.partial {
				t.Fatalf("%+v, %v", s, err)
			}
			want := []string{stray}
			if tc.partial && tc.bounds.Objects > 0 {
				want = nil
			}
			if !slices.Equal(s.Stray, want) {
				t.Errorf("stray %v", s.Stray)
			}
			if listed := listAll(t, b, archive.ListOptions{}); tc.added == n && (keys(listed) != keys(infos) || listed[0] != infos[0]) {
				t.Errorf("listed\n%s\nwant\n%s", keys(listed), keys(infos))
			}
			if again, err := archive.Mend(t.Context(), b, "main", archive.Bounds{}); err != nil || !tc.partial && tc.gone == "" && len(again.Added) != 0 {
				t.Errorf("again %+v, %v", again, err)
			}
		})
	}
}
