package provider

import (
	"math"
	"testing"

	"github.com/tidemark-ai/tidemark"
)

// TestBilled: figures that cannot be true are estimates, which every compaction can rest on.
func TestBilled(t *testing.T) {
	req := tidemark.Request{System: "be brief", Messages: []tidemark.Message{tidemark.NewText(tidemark.User, "hello there")}}
	said := tidemark.NewText(tidemark.Assistant, "hello")
	for name, row := range map[string]struct {
		usage    tidemark.Usage
		believed bool
	}{
		"as ever":                {tidemark.Usage{Input: 10, Output: 2}, true},
		"all from the cache":     {tidemark.Usage{CacheRead: 10, Output: 2}, true},
		"nothing said":           {tidemark.Usage{Input: 10}, true},
		"nothing at all":         {tidemark.Usage{}, false},
		"nothing sent":           {tidemark.Usage{Output: 2}, false},
		"less than nothing":      {tidemark.Usage{Input: -1, CacheRead: 20}, false},
		"more than any":          {tidemark.Usage{Input: math.MaxInt64, Output: math.MaxInt64}, false},
		"more than any, in sum":  {tidemark.Usage{Input: 1e18, CacheRead: 1e18, CacheCreation: 1e18}, false},
		"more than any was said": {tidemark.Usage{Input: 10, Output: 1 << 31}, false},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := complete(req, said, tidemark.Call{Reported: true, Usage: row.usage})
			if err != nil || got.Call.Reported != row.believed {
				t.Fatalf("%+v, %v", got.Call, err)
			}
			want := row.usage
			if !row.believed {
				want = tidemark.Usage{Input: Estimate(req), Output: tidemark.Estimate(said)}
			}
			if got.Call.Usage != want || want.Context() <= 0 {
				t.Errorf("%+v, want %+v", got.Call.Usage, want)
			}
		})
	}
}
