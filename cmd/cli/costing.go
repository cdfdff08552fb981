package cli

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/cost"
	costlogs "github.com/tidemark-ai/tidemark/cost/logs"
	"github.com/tidemark-ai/tidemark/trim"
)

// Costing is the command of that name.
type Costing struct {
	Model, HitRate, Prices string
	Tokens                 int64
	Reduction              string
	Threshold              int
	Claude, Session        string
	AllProjects            bool

	O     costlogs.Options
	Given *float64 // --reduction
}

// Options reads the flags.
func (c *Costing) Options(changed func(string) bool) error {
	h, err := strconv.ParseFloat(c.HitRate, 64)
	if err != nil || !(h >= 0 && h <= 1) {
		return Usagef("--hit-rate %s: want a share from 0 to 1, such as 0.9", c.HitRate)
	}
	if changed("threshold") && c.Threshold <= 0 {
		return Usagef("--threshold %d: want a number of characters, such as %d", c.Threshold, trim.DefaultThreshold)
	}
	if changed("tokens") && c.Tokens <= 0 {
		return Usagef("--tokens %d: want the size of a context, such as 84000", c.Tokens)
	}
	if c.Reduction != "" {
		p, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(c.Reduction), "%"), 64)
		if err != nil || !(p >= 0 && p <= 100) {
			return Usagef("--reduction %s: want percent, from 0 to 100, such as 39", c.Reduction)
		}
		c.Given = &p
	}
	c.O = costlogs.Options{Prices: cost.DefaultPrices(), Trim: trim.Options{Threshold: c.Threshold}, Now: time.Now(), Given: changed("hit-rate")}
	if c.Prices != "" {
		if c.O.Prices, err = readPrices(c.Prices); err != nil {
			return Advise(fmt.Errorf("--prices: %w", err), "give a table as docs/cost.md shows one: date, source and models")
		}
	}
	price, err := c.O.Prices.Find(c.Model)
	if err != nil {
		return Usagef("--model %s: no price for it; known are %s, and the ids of such models; --prices FILE gives others", c.Model, strings.Join(c.O.Prices.Names(), ", "))
	}
	c.O.Model = cost.Model{Price: price, HitRate: h}
	return c.O.Model.Check()
}

// readPrices reads a table of prices.
func readPrices(file string) (cost.Prices, error) {
	const most = 1 << 20
	if err := NoPipe(file); err != nil {
		return cost.Prices{}, err
	}
	raw, err := ReadUpTo(file, most+1)
	if err == nil && len(raw) > most {
		err = fmt.Errorf("read %s: more than %s: %w", file, Size(most), tidemark.ErrTooLarge)
	}
	if err != nil {
		return cost.Prices{}, err
	}
	return cost.ParsePrices(raw)
}

// MeasureFile measures the log that a file holds now; what is appended meanwhile is left out.
func MeasureFile(ctx context.Context, path string, o costlogs.Options) (costlogs.Report, error) {
	f, size, err := OpenLog(path)
	if err != nil {
		return costlogs.Report{}, err
	}
	defer func() { _ = f.Close() }()
	r, err := costlogs.Measure(ctx, f, size, o)
	if err != nil {
		return r, fmt.Errorf("%s: %w", path, err)
	}
	if r.AllMessages.Messages() == 0 {
		return r, Advise(fmt.Errorf("no message stands in %s: %w", path, tidemark.ErrInvalid), "give a session log of Claude Code; a subagent's own is none")
	}
	return r, nil
}

// OpenLog opens a log, and refuses what is none.
func OpenLog(path string) (*os.File, int64, error) {
	if err := NoPipe(path); err != nil {
		return nil, 0, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = Advise(fmt.Errorf("%s is no file: %w", path, tidemark.ErrInvalid), "give a log (.jsonl)")
	}
	head := make([]byte, len(Packed))
	if n, _ := f.ReadAt(head, 0); err == nil && string(head[:n]) == Packed {
		err = fmt.Errorf("%s is packed (gzip), unpack it first: %w", path, tidemark.ErrInvalid)
	}
	if err != nil {
		_ = f.Close()
		return nil, 0, err
	}
	return f, info.Size(), nil
}
