package snapshots

import (
	"slices"
	"testing"

	"github.com/tidemark-ai/tidemark"
)

// TestCuts: a history ends nowhere between a call and its result. A call that nothing answered holds nobody up once its
// turn is over.
func TestCuts(t *testing.T) {
	said := tidemark.Skeleton{}
	calls := func(ids ...string) tidemark.Skeleton { return tidemark.Skeleton{Calls: ids} }
	results := func(ids ...string) tidemark.Skeleton { return tidemark.Skeleton{Results: ids} }
	for _, tc := range []struct {
		name string
		list []tidemark.Skeleton
		open bool
		want []bool // behind so many messages
	}{
		{"nothing", nil, false, []bool{false}},
		{"talk", []tidemark.Skeleton{said, said}, true, []bool{false, true, true}},
		{"a call and its result", []tidemark.Skeleton{said, calls("a"), results("a"), said}, true, []bool{false, true, false, true, true}},
		{"two calls, answered one by one", []tidemark.Skeleton{calls("a", "b"), results("a"), results("b")}, true, []bool{false, false, false, true}},
		{"a call in work", []tidemark.Skeleton{said, calls("a")}, true, []bool{false, true, false}},
		{"a call that never was answered", []tidemark.Skeleton{said, calls("a"), said}, false, []bool{false, true, true, true}},
		{"one of two was", []tidemark.Skeleton{calls("a", "b"), results("b"), said}, false, []bool{false, false, true, true}},
		{"a result of an earlier call", []tidemark.Skeleton{results("z"), said}, true, []bool{false, true, true}},
	} {
		if got := cuts(tc.list, tc.open); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %v, want %v", tc.name, got, tc.want)
		}
	}
}
