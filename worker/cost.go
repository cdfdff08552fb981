package worker

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/cost"
	"github.com/tidemark-ai/tidemark/room/anatomy"
	"github.com/tidemark-ai/tidemark/session"
)

// wireCost is what a session costs, and what a trimmed branch of it would. Dollars, at the prices of one model.
type wireCost struct {
	Session string          `json:"sessionId"`
	Context tidemark.Tokens `json:"contextTokens"` // of the next call, but for what is said with it
	Model   string          `json:"model"`         // that calls go to, or that was asked for
	Models  []string        `json:"models"`        // whose prices are known
	Price   *wirePrice      `json:"price"`         // null when that of the model is not known: then no dollars are told
	Why     string          `json:"why,omitempty"` // it is not
	HitRate float64         `json:"hitRate"`
	// Measured says that the hit rate is the session's own.
	Measured bool      `json:"measured"`
	Next     *wireNext `json:"next,omitempty"`
	Spent    wireSpent `json:"spent"`
	Trim     wireTrim  `json:"trim"`
}

type wirePrice struct {
	cost.Price
	Date   string `json:"date"`
	Source string `json:"source"`
}

// wireNext is what the next turn costs to read.
type wireNext struct {
	Cached   float64 `json:"cached"`   // all of it from the cache
	Uncached float64 `json:"uncached"` // nothing
	Likely   float64 `json:"likely"`   // at the hit rate
}

// wireSpent is what the calls of the session used since it began or was reset.
type wireSpent struct {
	Usage   tidemark.Usage `json:"usage"`
	Dollars *float64       `json:"dollars,omitempty"` // as if all had gone to the one model
}

// wireTrim is what a trimmed branch would give.
type wireTrim struct {
	compaction.TrimMetrics
	Before    tidemark.Tokens `json:"before"`
	After     tidemark.Tokens `json:"after"`
	Reduction float64         `json:"reduction"` // percent
	*costs
}

// costs are those of a trim, by the paper and by the truer model.
type costs struct {
	Penalty   float64       `json:"penalty"`
	Savings   float64       `json:"savings"`
	BreakEven cost.Turns    `json:"break_even"` // null: never
	Verdict   cost.Verdict  `json:"verdict"`
	Live      cost.LiveTrim `json:"live"`
	Branch    cost.Branch   `json:"branch"` // to begin with the trimmed context
}

// getCost tells what the context of a session costs.
func getCost(c *request) (any, error) {
	rate := hitRateOf(c) // below 0: the session's own
	threshold := c.number("threshold", 0, 1, 1<<30)
	s, err := c.shown()
	if err != nil {
		return nil, err
	}
	info, err := s.Info(c.r.Context())
	if err != nil {
		return nil, err
	}
	measured := false
	gain, err := s.TrimEstimate(c.r.Context(), int(threshold))
	if err != nil {
		return nil, err
	}
	if rate < 0 {
		rate, measured = cost.HitRate(info.Usage)
		if !measured {
			rate = cost.DefaultHitRate
		}
	}
	out := wireCost{Session: info.ID, Context: gain.Before, Models: cost.DefaultPrices().Names(), HitRate: rate, Measured: measured,
		Spent: wireSpent{Usage: info.Usage}, Trim: wireTrim{TrimMetrics: gain.TrimMetrics, Before: gain.Before, After: gain.After}}
	if gain.Before > 0 {
		out.Trim.Reduction = 100 * float64(gain.Before-gain.After) / float64(gain.Before)
	}
	if err := priceOf(c, s, &out); err != nil {
		return nil, err
	}
	return out, nil
}

// priceOf fills in what is told in dollars, where the prices of the model are known.
func priceOf(c *request, s *session.Session, out *wireCost) error {
	ctx := c.r.Context()
	records, err := roomOf[*anatomy.Room](s, "records of calls")
	if err != nil {
		return err
	}
	calls, err := records.All(ctx, 0, 1)
	if err != nil {
		return err
	}
	asked := c.r.URL.Query().Get("model")
	if out.Model = asked; asked == "" {
		if out.Model, err = costModel(c, s, calls); err != nil {
			return err
		}
	}
	table := cost.DefaultPrices()
	p, err := table.Find(out.Model)
	if errors.Is(err, tidemark.ErrNotFound) {
		if out.Why = strings.TrimSuffix(err.Error(), ": "+tidemark.ErrNotFound.Error()); asked != "" {
			return fmt.Errorf("model: %s: %w", out.Why, tidemark.ErrInvalid)
		}
		return nil
	}
	if err != nil {
		return err
	}
	m := cost.Model{Price: p, HitRate: out.HitRate}
	spent, gain := p.Usage(out.Spent.Usage), out.Trim.TrimMetrics
	change := cost.Change{Pre: gain.Before, Post: gain.After, Same: gain.Prefix}
	if len(calls) > 0 {
		change.Pause = c.Runtime.Now().Sub(time.UnixMilli(calls[0].At))
	}
	paper := m.Paper(gain.Before, gain.After)
	out.Price, out.Spent.Dollars = &wirePrice{p, table.Date, table.Source}, &spent
	out.Next = &wireNext{Cached: m.Branch(out.Context).Later, Uncached: m.Cold(out.Context), Likely: m.Turn(out.Context)}
	out.Trim.costs = &costs{Penalty: paper.Penalty, Savings: paper.Savings, BreakEven: paper.BreakEven, Verdict: paper.BreakEven.Verdict(),
		Live: m.Live(change), Branch: m.Branch(gain.After)}
	return nil
}

// costModel is the model that the next call goes to; of a client's conversation, the one that its newest went to.
func costModel(c *request, s *session.Session, calls []anatomy.Record) (string, error) {
	if s.Key.Channel() == proxyChannel && len(calls) > 0 {
		return calls[0].Model, nil
	}
	own, err := s.Override(c.r.Context())
	return cmp.Or(own.Model, s.Settings.Model), err
}

// hitRateOf reads ?hitRate, below 0 for none.
func hitRateOf(c *request) float64 {
	s := c.r.URL.Query().Get("hitRate")
	if s == "" {
		return -1
	}
	rate, err := strconv.ParseFloat(s, 64)
	if err != nil || !(rate >= 0 && rate <= 1) {
		refuse(c, "hitRate", s, "a number from 0 to 1")
	}
	return rate
}
