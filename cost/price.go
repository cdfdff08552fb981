package cost

import (
	_ "embed"
	"fmt"
	"math"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// Price is what a model's input and output cost in dollars for a million tokens.
type Price struct {
	Model          string   `json:"model"` // what people call it: "opus"
	Name           string   `json:"name"`
	Input          float64  `json:"input"`
	Output         float64  `json:"output"`
	CacheWrite     float64  `json:"cache_write"`              // of the cache that lives five minutes
	CacheWriteHour float64  `json:"cache_write_1h,omitempty"` // of the one that lives an hour; 0 is twice the input
	CacheRead      float64  `json:"cache_read"`
	IDs            []string `json:"ids,omitempty"` // how the ids of such models begin
}

// HourWrite is the price of writing to the cache that lives an hour.
func (p Price) HourWrite() float64 {
	if p.CacheWriteHour > 0 {
		return p.CacheWriteHour
	}
	return 2 * p.Input
}

// Usage is what calls with that usage cost in dollars. All that was written to the cache counts as written to the one
// that lives five minutes; see [Price.HourMore].
func (p Price) Usage(u tidemark.Usage) float64 {
	return (float64(u.Input)*p.Input + float64(u.CacheCreation)*p.CacheWrite + float64(u.CacheRead)*p.CacheRead + float64(u.Output)*p.Output) / perMillion
}

// HourMore is what writing tokens to the cache that lives an hour costs on top of what [Price.Usage] counts for them.
func (p Price) HourMore(written tidemark.Tokens) float64 {
	return float64(written) / perMillion * (p.HourWrite() - p.CacheWrite)
}

func (p Price) check() error {
	for _, f := range []struct {
		name string
		is   float64
	}{{"input", p.Input}, {"output", p.Output}, {"cache_write", p.CacheWrite}, {"cache_write_1h", p.CacheWriteHour}, {"cache_read", p.CacheRead}} {
		if !(f.is >= 0) || math.IsInf(f.is, 0) {
			return fmt.Errorf("price of %s: %q is %v, want dollars for a million tokens: %w", p.Model, f.name, f.is, tidemark.ErrInvalid)
		}
	}
	if p.CacheWrite < p.CacheRead {
		return fmt.Errorf("price of %s: \"cache_write\" %v is less than \"cache_read\" %v: %w", p.Model, p.CacheWrite, p.CacheRead, tidemark.ErrInvalid)
	}
	return nil
}

// Prices is a table of prices.
type Prices struct {
	Date   string  `json:"date"` // when they were looked up
	Source string  `json:"source"`
	Models []Price `json:"models"`
}

//go:embed prices.json
var embedded []byte

// DefaultPrices returns the table that comes with the program, read anew: it is small, and nothing is kept between two
// who ask.
func DefaultPrices() Prices {
	p, err := ParsePrices(embedded)
	if err != nil {
		panic(err) // the file is part of the program, and a test reads it
	}
	return p
}

// ParsePrices reads a table as prices.json is one. What is wrong with it is tidemark.ErrInvalid.
func ParsePrices(data []byte) (Prices, error) {
	var p Prices
	if err := json.Unmarshal(data, &p); err != nil {
		return Prices{}, fmt.Errorf("read prices: %w: %w", err, tidemark.ErrInvalid)
	}
	if p.Date == "" || p.Source == "" {
		return Prices{}, fmt.Errorf("read prices: \"date\" and \"source\" must say when and where they were found: %w", tidemark.ErrInvalid)
	}
	if len(p.Models) == 0 {
		return Prices{}, fmt.Errorf("read prices: \"models\" is empty: %w", tidemark.ErrInvalid)
	}
	seen := map[string]bool{}
	for i, m := range p.Models {
		if m.Model == "" || seen[m.Model] {
			return Prices{}, fmt.Errorf("read prices: \"model\" of entry %d is empty or there twice: %w", i+1, tidemark.ErrInvalid)
		}
		seen[m.Model] = true
		if err := m.check(); err != nil {
			return Prices{}, fmt.Errorf("read prices: %w", err)
		}
	}
	return p, nil
}

// Names lists the models of the table, in its order.
func (p Prices) Names() []string {
	names := make([]string, 0, len(p.Models))
	for _, m := range p.Models {
		names = append(names, m.Model)
	}
	return names
}

// Find returns the price of a model by what people call it ("opus") or by its id: "claude-opus-4-6-20260205",
// "anthropic/claude-opus-4.6", "us.anthropic.claude-opus-4-6-v1:0". Of several beginnings that fit, the longest counts.
// An unknown one is tidemark.ErrNotFound with the names that are known: a guessed price would look like a known one.
func (p Prices) Find(model string) (Price, error) {
	id := strings.ReplaceAll(strings.ToLower(strings.TrimSpace(model)), ".", "-")
	if i := strings.LastIndex(id, "claude-"); i > 0 {
		id = id[i:]
	}
	best, length := -1, -1
	for i, m := range p.Models {
		if id == m.Model {
			return m, nil
		}
		for _, prefix := range m.IDs {
			if begins(id, prefix) && len(prefix) > length {
				best, length = i, len(prefix)
			}
		}
	}
	if best < 0 {
		return Price{}, fmt.Errorf("no price for model %q, known are %s and the ids that belong to them: %w", model, strings.Join(p.Names(), ", "), tidemark.ErrNotFound)
	}
	return p.Models[best], nil
}

// begins reports whether an id is the prefix, or goes on behind it with something that is no further number of a
// version: a date, or words of whoever sells it.
func begins(id, prefix string) bool {
	if prefix == "" || !strings.HasPrefix(id, prefix) {
		return false
	}
	rest := id[len(prefix):]
	if rest == "" {
		return true
	}
	digits := func(s string) int { return len(s) - len(strings.TrimLeft(s, "0123456789")) }
	if n := digits(strings.TrimPrefix(rest, "-")); n == 0 || rest[0] == '-' && n > maxVersion {
		return true
	}
	return false
}

// maxVersion is how many digits a number of a version has at most; more are a date.
const maxVersion = 3
