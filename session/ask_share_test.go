package session

import (
	"testing"

	"github.com/tidemark-ai/tidemark"
)

// TestShare: /status and the page's meter give one figure, of the limit and not of the window, rounded alike.
func TestShare(t *testing.T) {
	for _, row := range []struct {
		name        string
		size, limit tidemark.Tokens
		want        string
	}{
		{"nothing", 0, 180_000, "0 %"},
		{"a little", 1_799, 180_000, "under 1 %"},
		{"one", 1_800, 180_000, "1 %"},
		{"of the limit, where the window had 4", 9_326, 190_000, "5 %"},
		{"a half more", 2_700, 180_000, "2 %"},
		{"the limit", 180_000, 180_000, "100 %"},
		{"over it", 181_800, 180_000, "101 %"},
		{"no limit", 0, 0, "0 %"},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := share(row.size, row.limit); got != row.want {
				t.Errorf("share(%d, %d) = %s, want %s", row.size, row.limit, got, row.want)
			}
		})
	}
}
