package episodes_test

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/episodes"
)

func TestParseBudget(t *testing.T) {
	for s, want := range map[string]episodes.Budget{
		"80000":     {Tokens: 80_000},
		"80k":       {Tokens: 80_000},
		"80K":       {Tokens: 80_000},
		"1000":      {Tokens: 1_000},
		"1k":        {Tokens: 1_000},
		"12345":     {Tokens: 12_345},
		"100000k":   {Tokens: 100_000_000},
		"100000000": {Tokens: 100_000_000},
		"50%":       {Percent: 50},
		"1%":        {Percent: 1},
		"100%":      {Percent: 100},
	} {
		if b, err := episodes.ParseBudget(s); err != nil || b != want {
			t.Errorf("%q: %+v, %v, want %+v", s, b, err, want)
		}
	}
}

// TestBudgetMistakes: what is no budget is never taken for another one. A parser that cuts at the comma made 80 tokens of
// 80,000, and everything left the context.
func TestBudgetMistakes(t *testing.T) {
	const plain = "write tokens in digits 0 to 9 as 80000 or 80k, or 50% of the window"
	for s, fix := range map[string]string{
		"":                            "it is empty: write tokens as 80000 or 80k",
		"80,000":                      "write 80000 or 80k",
		"80.000":                      "write 80000 or 80k",
		"1,234,567":                   "write 1234567",
		"80 000":                      "no spaces: write 80000 or 80k",
		"80k tokens":                  "no spaces: write 80000 or 80k",
		" 80k ":                       "no spaces: write 80000 or 80k",
		"50 %":                        "no spaces: " + plain,
		"50%\n":                       "no spaces: write 50%",
		"80,00":                       plain,
		"80,000k":                     plain,
		"80.5k":                       plain,
		"-1":                          plain,
		"+80k":                        plain,
		"1e5":                         plain,
		"0x10000":                     plain,
		"k":                           plain,
		"%":                           plain,
		"80kk":                        plain,
		"50%%":                        plain,
		"80M":                         plain,
		"８００００":                       plain,
		"٨٠٠٠٠":                       plain,
		"80000\x00":                   plain,
		"080000":                      "zeros in front",
		"050%":                        "zeros in front",
		"0":                           "write 1000 or more",
		"0k":                          "write 1000 or more",
		"80":                          "80 tokens are too few: write 1000 or more; 80k is thousands",
		"999":                         "999 tokens are too few",
		"0%":                          "write 1% to 100% of the window",
		"101%":                        "write 1% to 100% of the window",
		"18446744073709551666%":       "write 1% to 100% of the window",
		"100000001":                   "100000k is the most",
		"100001k":                     "100000k is the most",
		"18446744073709631616":        "100000k is the most", // 80000 in 64 bits
		strings.Repeat("80k ", 10000): plain,
	} {
		b, err := episodes.ParseBudget(s)
		var mistake *episodes.BudgetError
		if b != (episodes.Budget{}) || !errors.As(err, &mistake) || !errors.Is(err, tidemark.ErrInvalid) || !strings.Contains(mistake.Fix, fix) || len(err.Error()) > 300 {
			t.Errorf("%.40q: %+v, %v, want … %s", s, b, err, fix)
		}
	}
}

func TestBudgetOf(t *testing.T) {
	for _, row := range []struct {
		name         string
		budget       episodes.Budget
		window, want tidemark.Tokens
	}{
		{"tokens", episodes.Budget{Tokens: 80_000}, 200_000, 80_000},
		{"tokens above the window", episodes.Budget{Tokens: 80_000}, 32_000, 32_000},
		{"no window known", episodes.Budget{Tokens: 300_000}, 0, 300_000},
		{"percent", episodes.Budget{Percent: 50}, 200_001, 100_000},
		{"all of it", episodes.Budget{Percent: 100}, 131_072, 131_072},
		{"percent of a small window", episodes.Budget{Percent: 1}, 4_000, 1_000},
		{"a window below the smallest budget", episodes.Budget{Percent: 1}, 600, 600},
		{"percent, no window known", episodes.Budget{Percent: 10}, 0, 20_000},
		{"percent of the largest window", episodes.Budget{Percent: 100}, 1<<63 - 1, 1<<63 - 1},
		{"zero value", episodes.Budget{}, 200_000, 80_000},
		{"zero value in a small window", episodes.Budget{}, 50_000, 50_000},
	} {
		if got := row.budget.Of(row.window); got != row.want {
			t.Errorf("%s: %d, want %d", row.name, got, row.want)
		}
	}
	if s := (episodes.Budget{}).String(); s != "80k" {
		t.Errorf("the zero value is %s", s)
	}
}

var budgetForm = regexp.MustCompile(`^([0-9]+[kK]?|[0-9]+%)$`)

// FuzzParseBudget: what is accepted has one of the forms, is written and read again as the same, and stays between its
// bounds in any window.
func FuzzParseBudget(f *testing.F) {
	for _, s := range []string{"80000", "80k", "80K", "50%", "80,000", "80 000", "80k tokens", "1e5", "", " 80k ", "100001k", "８０k"} {
		f.Add(s, int64(200_000))
	}
	f.Fuzz(func(t *testing.T, s string, window int64) {
		b, err := episodes.ParseBudget(s)
		if err != nil {
			if b != (episodes.Budget{}) {
				t.Fatalf("%q: %+v with %v", s, b, err)
			}
			return
		}
		if !budgetForm.MatchString(s) {
			t.Fatalf("%q is accepted", s)
		}
		if again, err := episodes.ParseBudget(b.String()); err != nil || again != b {
			t.Fatalf("%q: %+v, written %s and read %+v, %v", s, b, b, again, err)
		}
		w := tidemark.Tokens(window)
		if n := b.Of(w); n <= 0 || w > 0 && n > w || n < min(episodes.MinBudget, max(w, 1)) {
			t.Fatalf("%q: %d of a window of %d", s, n, w)
		}
	})
}
