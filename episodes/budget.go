package episodes

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/tidemark-ai/tidemark"
)

// Budget is the size above which episodes leave: so many tokens, or a part of the window. Its zero value is
// DefaultBudget.
type Budget struct {
	Tokens  tidemark.Tokens
	Percent int // of the window, 1 to 100; it goes before Tokens
}

// Bounds of a budget.
const (
	DefaultBudget tidemark.Tokens = 80_000 // papers/cwl §5
	MinBudget     tidemark.Tokens = 1_000
	MaxBudget     tidemark.Tokens = 100_000_000
)

const (
	thousand = 1_000
	whole    = 100 // percent
)

// Of is the budget in a window: never above the window, and of a percentage no less than MinBudget where the window has that.
// A window of 0 is one that nobody knows; a percentage of it is of a usual one.
func (b Budget) Of(window tidemark.Tokens) tidemark.Tokens {
	const usual = 200_000
	known := window > 0
	if !known {
		window = usual
	}
	n := b.Tokens
	switch {
	case b.Percent > 0: // parted, so that no window overflows
		n = max(window/whole*tidemark.Tokens(b.Percent)+window%whole*tidemark.Tokens(b.Percent)/whole, MinBudget)
	case n <= 0:
		n = DefaultBudget
	}
	if known || b.Percent > 0 {
		n = min(n, window)
	}
	return n
}

// String is the budget as ParseBudget reads it.
func (b Budget) String() string {
	n := b.Tokens
	switch {
	case b.Percent > 0:
		return strconv.Itoa(b.Percent) + "%"
	case n <= 0:
		n = DefaultBudget
	}
	if n%thousand == 0 {
		return strconv.FormatInt(int64(n/thousand), 10) + "k"
	}
	return strconv.FormatInt(int64(n), 10)
}

// BudgetError is a text that is no budget. It is tidemark.ErrInvalid.
type BudgetError struct {
	Text string
	Fix  string // what to write in its place
}

// Error gives the text and the fix.
func (e *BudgetError) Error() string { return fmt.Sprintf("budget %.40q: %s", e.Text, e.Fix) }

// Unwrap makes it bad input.
func (e *BudgetError) Unwrap() error { return tidemark.ErrInvalid }

// ParseBudget reads 80000, 80k or 80K (thousands), or 50% of the window. It guesses nothing: a number that is cut at a comma
// is how 80,000 once became 80.
//
// # Errors
//
// A *BudgetError for everything else, tokens below MinBudget or above MaxBudget and percentages over 100 among it.
func ParseBudget(s string) (Budget, error) {
	b, fix := readBudget(s)
	if fix != "" {
		return Budget{}, &BudgetError{Text: s, Fix: fix}
	}
	return b, nil
}

// readBudget returns a budget, or what to write in place of its text.
func readBudget(s string) (b Budget, fix string) {
	const longest = 9 // digits of MaxBudget
	digits := strings.TrimRight(s, "kK%")
	unit := s[len(digits):]
	switch {
	case s == "":
		return b, "it is empty: write tokens as 80000 or 80k, or 50% of the window"
	case !decimal(digits) || len(unit) > 1:
		return b, meant(s)
	case digits[0] == '0' && len(digits) > 1:
		return b, "write it without zeros in front"
	case unit == "%" && (len(digits) > len("100") || number(digits) < 1 || number(digits) > whole):
		return b, "write 1% to 100% of the window"
	case unit == "%":
		return Budget{Percent: int(number(digits))}, ""
	case len(digits) > longest:
		return b, tooLarge()
	}
	n := number(digits)
	if unit != "" {
		n *= thousand
	}
	switch {
	case n > MaxBudget:
		return b, tooLarge()
	case n < MinBudget && n > 0:
		return b, fmt.Sprintf("%d tokens are too few: write %d or more; %dk is thousands", n, MinBudget, n)
	case n < MinBudget:
		return b, fmt.Sprintf("write %d or more", MinBudget)
	}
	return Budget{Tokens: n}, ""
}

func tooLarge() string {
	return Budget{Tokens: MaxBudget}.String() + " is the most, and no window is larger: write less"
}

// meant says how to write what is no budget: as it was probably meant, where its digits are parted by threes, or spaces or the
// word tokens stand around it.
func meant(s string) string {
	const (
		fix   = "write tokens in digits 0 to 9 as 80000 or 80k, or 50% of the window"
		short = 40 // bytes of what may have been meant as a number
	)
	if len(s) > short {
		return fix
	}
	t := strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(s), "tokens"))
	parts := strings.FieldsFunc(t, func(r rune) bool { return strings.ContainsRune(", _.'", r) })
	grouped := len(parts) > 1
	for i, p := range parts {
		grouped = grouped && decimal(p) && (len(p) == 3 || i == 0 && len(p) < 3)
	}
	if grouped {
		t = strings.Join(parts, "")
	}
	out := fix
	if t != s {
		if b, other := readBudget(t); other == "" {
			out = "write " + b.ways()
		}
	}
	if strings.ContainsAny(s, " \t\r\n") {
		out = "no spaces: " + out
	}
	return out
}

// ways are the forms of a budget.
func (b Budget) ways() string {
	if short := b.String(); b.Percent == 0 && strings.HasSuffix(short, "k") {
		return strconv.FormatInt(int64(b.Tokens), 10) + " or " + short
	}
	return b.String()
}

// decimal reports ASCII digits and nothing else.
func decimal(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// number is the value of a few digits.
func number(digits string) (n tidemark.Tokens) {
	for i := range len(digits) {
		n = n*10 + tidemark.Tokens(digits[i]-'0')
	}
	return n
}
