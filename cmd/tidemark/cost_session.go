package main

import (
	"cmp"
	"context"
	"net/url"
	"strconv"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/cmd/cli"
	"github.com/tidemark-ai/tidemark/cost"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// toldCost is what the server tells of a session's cost (docs/http.md).
type toldCost struct {
	Context tidemark.Tokens `json:"contextTokens"`
	Model   string          `json:"model"`
	Models  []string        `json:"models"`
	Why     string          `json:"why"`
	Price   *struct {
		Name   string `json:"name"`
		Date   string `json:"date"`
		Source string `json:"source"`

		Write float64 `json:"cache_write"`
		Read  float64 `json:"cache_read"`
	} `json:"price"`
	HitRate  float64 `json:"hitRate"`
	Measured bool    `json:"measured"`
	Next     *struct {
		Cached   float64 `json:"cached"`
		Uncached float64 `json:"uncached"`
		Likely   float64 `json:"likely"`
	} `json:"next"`
	Spent struct {
		Dollars *float64 `json:"dollars"`
	} `json:"spent"`
	Trim struct {
		Before    tidemark.Tokens `json:"before"`
		After     tidemark.Tokens `json:"after"`
		Reduction float64         `json:"reduction"`
		Penalty   float64         `json:"penalty"`
		Savings   float64         `json:"savings"`
		BreakEven *cost.Turns     `json:"break_even"`
		Verdict   cost.Verdict    `json:"verdict"`
		Live      struct {
			Penalty   float64     `json:"penalty"`
			Savings   float64     `json:"savings"`
			BreakEven *cost.Turns `json:"break_even"`
			Cold      bool        `json:"cold"`
		} `json:"live"`
	} `json:"trim"`
}

// costOfSession asks what the context of a session of Tidemark costs.
func costOfSession(ctx context.Context, m *cli.Main, c *cli.Costing) error {
	changed := m.Changed
	if c.Prices != "" {
		return cli.Usagef("--session: --prices is for logs of Claude Code")
	}
	q := url.Values{}
	if changed("model") {
		q.Set("model", c.Model)
	}
	if changed("hit-rate") {
		q.Set("hitRate", c.HitRate)
	}
	if c.Threshold > 0 {
		q.Set("threshold", strconv.Itoa(c.Threshold))
	}
	return with(ctx, m, func(cl *client) error {
		var raw json.RawMessage
		if err := cl.Get(ctx, cli.SessionPath(c.Session, "/cost")+"?"+q.Encode(), &raw); err != nil {
			return err
		}
		if m.JSON {
			return m.PrintJSON(raw)
		}
		var told toldCost
		if err := json.Unmarshal(raw, &told); err != nil {
			return err
		}
		printToldCost(m, c.Session, told)
		return nil
	})
}

// turnsTold writes a break-even as it comes over the wire, where never is null.
func turnsTold(n *cost.Turns) string {
	if n == nil {
		return "never"
	}
	return cli.TurnsOf(*n)
}

func printToldCost(m *cli.Main, key string, t toldCost) {
	const cells = 30
	window := windowOf(max(t.Context, t.Trim.Before))
	m.Out.Printf("%s: the next call is sent %s\n", cli.Safe(key), cli.Count(t.Context))
	m.Out.Printf("  before  %s %5s\n", paint(m, yellow, bar(float64(t.Trim.Before)/float64(window), cells)), cli.Count(t.Trim.Before))
	m.Out.Printf("  after   %s %5s  %s less on a trimmed branch\n", paint(m, green, bar(float64(t.Trim.After)/float64(window), cells)), cli.Count(t.Trim.After), cli.InPercent(t.Trim.Reduction/100))
	if t.Price == nil || t.Next == nil {
		m.Out.Printf("no dollars are told: %s\n", cli.Safe(cmp.Or(t.Why, "no price for "+t.Model)))
		if len(t.Models) > 0 {
			m.Out.Printf("  what to do: reckon at the prices of another: tidemark cost --session %s --model %s\n", shellWord(key), cli.Safe(t.Models[0]))
		}
		return
	}
	basis := "assumed"
	if t.Measured {
		basis = "measured"
	}
	m.Out.Printf("at the prices of %s: $%g cache write (%s), $%g cache read for a million tokens (%s, %s)\n\n", cli.Safe(t.Price.Name), t.Price.Write, cli.LongAgo(cost.ShortTTL), t.Price.Read, cli.Safe(t.Price.Date), cli.Safe(t.Price.Source))
	cli.PrintTable(m.Out, [][]string{
		{"MODEL", "PAPER", "LIVE"},
		{"penalty, once", cli.Dollars(t.Trim.Penalty), cli.Dollars(t.Trim.Live.Penalty)},
		{"savings a turn", cli.Dollars(t.Trim.Savings), cli.Dollars(t.Trim.Live.Savings)},
		{"break-even", turnsTold(t.Trim.BreakEven), turnsTold(t.Trim.Live.BreakEven)},
	})
	m.Out.Printf("\nnext turn: %s from the cache, %s without it, %s at a hit rate of %s (%s)\n", cli.Dollars(t.Next.Cached), cli.Dollars(t.Next.Uncached), cli.Dollars(t.Next.Likely), cli.InPercent(t.HitRate), basis)
	if t.Trim.Live.Cold && t.Trim.Live.BreakEven != nil {
		m.Out.Line("The cache is cold: a trimmed branch costs nothing extra now.")
	}
	if t.Spent.Dollars != nil {
		m.Out.Printf("spent so far: %s, as if all calls had gone to this model\n", cli.Dollars(*t.Spent.Dollars))
	}
}
