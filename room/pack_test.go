package room

import (
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
)

// TestPackShares: the card has a small share of a budget, its constraints all that is pushed. Without a budget it is as long as
// by default.
func TestPackShares(t *testing.T) {
	for budget, want := range map[tidemark.Tokens][2]tidemark.Tokens{4096: {122, 2048}, 100: {3, 50}, 33: {0, 16}, 1: {0, 0}, 0: {122, 2048}, -1: {122, 2048}} {
		if rest, all := PackShares(budget); rest != want[0] || all != want[1] {
			t.Errorf("of %d: %d and %d", budget, rest, all)
		}
	}
}

// TestNote: a note ends with the time of its zone.
func TestNote(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_000).In(time.FixedZone("CET", 3600))
	const is = "[It is Tuesday, 2023-11-14 23:13 CET.]"
	for pack, want := range map[string]string{"": is, "a pack": "a pack\n\n" + is} {
		if got := Note(pack, now); got != want {
			t.Errorf("with %q: %q", pack, got)
		}
	}
}
