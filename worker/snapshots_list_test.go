//go:build !js

package worker_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark/snapshot"
)

// nodesPage is a page of a list of snapshots.
type nodesPage struct {
	Nodes []snapshot.Node
	Next  string
}

// TestSnapshotLists: both lists come in pages, in either order, and what is removed is in neither.
func TestSnapshotLists(t *testing.T) {
	s := serve(t, nil)
	s.say("main", "hello")
	var want []string
	for i := range 5 {
		want = append(want, get[snapshot.Node](s, 201, "POST", "/v1/sessions/main/snapshots", fmt.Sprintf(`{"name":"n%d"}`, i)).ID)
	}
	slices.Sort(want) // of one moment
	read := func(path string) (ids []string) {
		t.Helper()
		next, last := "", ""
		for {
			p := get[nodesPage](s, 200, "GET", path+"limit=2&cursor="+next, "")
			if len(p.Nodes) > 2 {
				t.Fatalf("%s: a page of %d", path, len(p.Nodes))
			}
			for _, n := range p.Nodes {
				ids = append(ids, n.ID)
				at := fmt.Sprintf("%d %s", n.Created.UnixMilli(), n.ID)
				if newest := strings.Contains(path, "newest"); last != "" && (at < last) != newest {
					t.Errorf("%s: %s stands behind %s", path, at, last)
				}
				last = at
			}
			if next = p.Next; next == "" {
				return ids
			}
		}
	}
	paths := []string{"/v1/tree?", "/v1/sessions/main/snapshots?"}
	for _, p := range paths {
		got, back := read(p+"order=oldest&"), read(p+"order=newest&")
		if !slices.Equal(slices.Sorted(slices.Values(got)), want) {
			t.Errorf("%s: %q, want %q", p, got, want)
		}
		if slices.Reverse(back); !slices.Equal(got, back) {
			t.Errorf("%s: newest first is another list", p)
		}
		for _, bad := range []string{"limit=0", "limit=1001", "limit=x", "order=up", "cursor=x"} {
			if text := s.text(400, "GET", p+bad, ""); !strings.Contains(text, bad[:5]) {
				t.Errorf("%s%s: %s", p, bad, text)
			}
		}
	}
	for range 2 {
		if n := get[snapshot.Node](s, 200, "DELETE", "/v1/sessions/main/snapshots/"+want[2], ""); n.ID != want[2] {
			t.Errorf("removed %+v", n)
		}
	}
	for _, p := range paths {
		if got := read(p); len(got) != 4 || slices.Contains(got, want[2]) {
			t.Errorf("%s: behind its end %q", p, got)
		}
	}
	s.text(404, "GET", "/v1/snapshots/"+want[2], "")
	s.text(404, "GET", "/v1/sessions/main/snapshots/"+want[2], "")
	s.text(201, "POST", "/v1/sessions/main/branch", `{"snapshot":"`+want[0]+`","name":"b"}`)
	if text := s.text(409, "DELETE", "/v1/sessions/main/snapshots/"+want[0], ""); !strings.Contains(text, "main#b") {
		t.Errorf("it does not say what began there: %s", text)
	}
}
