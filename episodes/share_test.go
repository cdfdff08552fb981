package episodes_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/episodes"
)

// TestShortage: what is missed and met again in a turn, or turn after turn, is told once; again where much more is missing, and
// that it is over when a whole turn had room.
func TestShortage(t *testing.T) {
	const budget = 6_000
	for name, row := range map[string]struct{ turns, want string }{
		"met and missed in one turn": {"6500 4500 6400 4500 6001 4500", "+500"},
		"turn after turn":            {"6500 4500|6600 4500|6700 4500|5000 6100", "+500"},
		"grown by a quarter":         {"6001 7500 7501 9000 9001", "+1 +1501 +3001"},
		"over":                       {"6500 4500|4500 5000|5000 5000|6010", "+500 over +10"},
		"not before a whole turn":    {"6500 4500|4500 6001|4500|4500", "+500 over"},
		"no room to speak of":        {"6500|5701|5701|5701", "+500"},
		"just room":                  {"6500|5700|5700", "+500 over"},
		"room all along":             {"100 6000|6000|100", ""},
	} {
		var s episodes.Shortage
		var got []string
		for turn, sizes := range strings.Split(row.turns, "|") {
			for _, f := range strings.Fields(sizes) {
				var size tidemark.Tokens
				if _, err := fmt.Sscan(f, &size); err != nil {
					t.Fatal(err)
				}
				begins, over := s.See(fmt.Sprint(turn), size, budget)
				if begins {
					got = append(got, fmt.Sprintf("+%d", s.By))
				}
				if over {
					got = append(got, "over")
				}
			}
		}
		if strings.Join(got, " ") != row.want {
			t.Errorf("%s: told %q, want %q", name, got, row.want)
		}
	}
}

// TestWorth: an act is worth its cost if it reaches the budget, by more than estimates are wrong, or frees a twentieth of it.
func TestWorth(t *testing.T) {
	for _, row := range []struct {
		freed, short tidemark.Tokens
		want         bool
	}{{15, 0, false}, {16, 0, true}, {299, 1, false}, {300, 1, true}, {0, 0, false}} {
		p := episodes.Plan{Freed: row.freed, Short: row.short}
		if p.Worth(6_000) != row.want {
			t.Errorf("%+v: %t", row, !row.want)
		}
	}
	if episodes.Grown(7_000, 7_300, 6_000) || !episodes.Grown(7_000, 7_301, 6_000) {
		t.Error("what is grown by a twentieth of the budget is tried again, and less is not")
	}
}

// TestNeed: the shares of a budget are in its measure, what is to be freed in that of a ledger.
func TestNeed(t *testing.T) {
	n := episodes.NeedOf(10_000, 5_000, 8_000, 0)
	if n.Tokens != 2_000 || n.Least != 1_000 || n.Lines != 1_000 || n.Prologue != 4_000 {
		t.Errorf("%+v", n)
	}
	if n = episodes.NeedOf(10_000, 10_000, 8_000, 50); n.Tokens != 6_000 || episodes.LowMark(8_000, 100) != 8_000 {
		t.Errorf("%+v", n)
	}
}
