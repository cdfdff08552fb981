package main

import (
	"cmp"
	"context"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/tidemark-ai/tidemark"
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
func (m *Main) costOfSession(ctx context.Context, cmd *cobra.Command, c *costing) error {
	changed := cmd.Flags().Changed
	if c.report != "" || c.prices != "" {
		return usagef("--session: --report and --prices are for logs of Claude Code")
	}
	q := url.Values{}
	if changed("model") {
		q.Set("model", c.model)
	}
	if changed("hit-rate") {
		q.Set("hitRate", c.hitRate)
	}
	if c.threshold > 0 {
		q.Set("threshold", strconv.Itoa(c.threshold))
	}
	return m.with(ctx, func(cl *client) error {
		var raw json.RawMessage
		if err := cl.get(ctx, sessionPath(c.session, "/cost")+"?"+q.Encode(), &raw); err != nil {
			return err
		}
		if m.json {
			return m.printJSON(raw)
		}
		var told toldCost
		if err := json.Unmarshal(raw, &told); err != nil {
			return err
		}
		m.printToldCost(c.session, told)
		return nil
	})
}

// turnsTold writes a break-even as it comes over the wire, where never is null.
func turnsTold(n *cost.Turns) string {
	if n == nil {
		return "never"
	}
	return turnsOf(*n)
}

func (m *Main) printToldCost(key string, t toldCost) {
	const cells = 30
	window := windowOf(max(t.Context, t.Trim.Before))
	m.out.printf("%s: the next call is sent %s\n", safe(key), count(t.Context))
	m.out.printf("  before  %s %5s\n", m.paint(yellow, bar(float64(t.Trim.Before)/float64(window), cells)), count(t.Trim.Before))
	m.out.printf("  after   %s %5s  %s less on a trimmed branch\n", m.paint(green, bar(float64(t.Trim.After)/float64(window), cells)), count(t.Trim.After), inPercent(t.Trim.Reduction/100))
	if t.Price == nil || t.Next == nil {
		m.out.printf("no dollars are told: %s\n", safe(cmp.Or(t.Why, "no price for "+t.Model)))
		if len(t.Models) > 0 {
			m.out.printf("  what to do: reckon at the prices of another: tidemark cost --session %s --model %s\n", shellWord(key), safe(t.Models[0]))
		}
		return
	}
	basis := "assumed"
	if t.Measured {
		basis = "measured"
	}
	m.out.printf("at the prices of %s: $%g cache write (%s), $%g cache read for a million tokens (%s, %s)\n\n", safe(t.Price.Name), t.Price.Write, longAgo(cost.ShortTTL), t.Price.Read, safe(t.Price.Date), safe(t.Price.Source))
	table(m.out, [][]string{
		{"MODEL", "PAPER", "LIVE"},
		{"penalty, once", dollars(t.Trim.Penalty), dollars(t.Trim.Live.Penalty)},
		{"savings a turn", dollars(t.Trim.Savings), dollars(t.Trim.Live.Savings)},
		{"break-even", turnsTold(t.Trim.BreakEven), turnsTold(t.Trim.Live.BreakEven)},
	})
	m.out.printf("\nnext turn: %s from the cache, %s without it, %s at a hit rate of %s (%s)\n", dollars(t.Next.Cached), dollars(t.Next.Uncached), dollars(t.Next.Likely), inPercent(t.HitRate), basis)
	if t.Trim.Live.Cold && t.Trim.Live.BreakEven != nil {
		m.out.line("The cache is cold: a trimmed branch costs nothing extra now.")
	}
	if t.Spent.Dollars != nil {
		m.out.printf("spent so far: %s, as if all calls had gone to this model\n", dollars(*t.Spent.Dollars))
	}
}
