package session_test

import (
	"context"
	"fmt"
	"iter"
	"math"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/cost"
	"github.com/tidemark-ai/tidemark/room/snapshots"
	"github.com/tidemark-ai/tidemark/session"
)

// caching is a provider with a prompt cache: of a request it reads what an earlier one had up to the end of a message,
// and writes the rest. It works for a while on what begins with "work", and answers all else at once.
type caching struct {
	mu   sync.Mutex
	seen map[tidemark.Hash]bool // beginnings of requests
}

func (c *caching) Stream(_ context.Context, req tidemark.Request) iter.Seq2[tidemark.Delta, error] {
	return func(yield func(tidemark.Delta, error) bool) {
		m := c.reply(req)
		stop := "end_turn"
		if len(m.Calls()) > 0 {
			stop = "tool_use"
		}
		yield(tidemark.Delta{Reply: &tidemark.Reply{Message: m, Call: tidemark.Call{Model: req.Model, Stop: stop, Usage: c.bill(req, m), Reported: true}}}, nil)
	}
}

// bill counts a request by the one estimator.
func (c *caching) bill(req tidemark.Request, reply tidemark.Message) tidemark.Usage {
	c.mu.Lock()
	defer c.mu.Unlock()
	parts := []string{req.System, fmt.Sprint(req.Tools)}
	sizes := []tidemark.Tokens{tidemark.EstimateText(parts[0]), tidemark.EstimateText(parts[1])}
	for _, m := range req.Messages {
		parts, sizes = append(parts, string(m.AppendJSON(nil))), append(sizes, tidemark.Estimate(m))
	}
	u := tidemark.Usage{Input: tidemark.EstimateText(req.Note), Output: tidemark.Estimate(reply)}
	var known tidemark.Hash
	cold := false
	for i, p := range parts {
		known = tidemark.HashOf([]byte(string(known) + p))
		if cold = cold || !c.seen[known]; cold {
			u.CacheCreation += sizes[i]
		} else {
			u.CacheRead += sizes[i]
		}
		c.seen[known] = true
	}
	return u
}

// reply makes four rounds of calls for what is worked on.
func (c *caching) reply(req tidemark.Request) tidemark.Message {
	const rounds = 4
	did := 0
	for n := len(req.Messages) - 1; n >= 0; n-- {
		m := req.Messages[n]
		if m.Role == tidemark.User && len(m.Results()) == 0 {
			if task, ok := strings.CutPrefix(m.PlainText(), "work "); ok && did < rounds {
				id, path := fmt.Sprintf("call_%s_%d", task, did), fmt.Sprintf("/src/%s/%d.go", task, did)
				call := tidemark.ToolUse(id, "read_file", fmt.Appendf(nil, `{"path":%q}`, path))
				if did == rounds-1 {
					call = tidemark.ToolUse(id, "Write", fmt.Appendf(nil, `{"file_path":%q,"content":%q}`, path, strings.Repeat("new line of "+path+"\n", 80)))
				}
				return tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{tidemark.Text("I look at " + path), call}}
			}
			break
		}
		if len(m.Calls()) > 0 {
			did++
		}
	}
	return tidemark.NewText(tidemark.Assistant, strings.Repeat("So it is with the tides. ", 8))
}

// spent is what calls cost without what they answered, oldest first, with the sum of their usage.
func (h *harness) spent(calls int, p cost.Price) (dollars []float64, sum tidemark.Usage) {
	h.t.Helper()
	records, err := h.Anatomies(h.t.Context(), 0, calls)
	if err != nil || len(records) != calls {
		h.t.Fatalf("%d records: %v", len(records), err)
	}
	dollars = make([]float64, calls)
	for i, r := range records {
		r.Usage.Output = 0
		dollars[calls-1-i], sum = p.Usage(r.Usage), sum.Add(r.Usage)
	}
	return dollars, sum
}

// TestTrimPays plays 200 messages of an agent at work against a prompt cache, goes on in the session and in a trimmed
// branch of it, and holds that what was spent, by the records of both, is what the models of package cost say: what a
// turn costs before and behind the trim, what the first turn costs, and from which turn on the trim has paid.
func TestTrimPays(t *testing.T) {
	if runtime.GOOS == "js" {
		t.Skip("what it costs is the same there, and playing it takes ten times as long")
	}
	const turns, later = 20, 12
	h := newHarness(t, session.Settings{Window: 200_000})
	h.provider = &caching{seen: map[tidemark.Hash]bool{}}
	h.agent.call = func(c tidemark.Block) tidemark.Block {
		if c.Name == "Write" {
			return tidemark.ToolResult(c.ID, "written", false)
		}
		return tidemark.ToolResult(c.ID, strings.Repeat("line of "+c.ID+": the tide comes and goes\n", 60), false)
	}
	h.stop()
	h.open()
	for n := range turns {
		if got := h.say(fmt.Sprintf("work %d", n)); strings.HasPrefix(got, "error") {
			t.Fatal(got)
		}
	}
	if n := len(h.originals()); n != 200 {
		t.Fatalf("%d messages", n)
	}
	would, err := h.TrimEstimate(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	lean, b := h.branch(snapshots.BranchOptions{Name: "lean", Trim: true})
	for n := range later {
		h.say(fmt.Sprintf("question %d", n))
		lean.say(fmt.Sprintf("question %d", n))
	}
	lean.sent()
	price, err := cost.DefaultPrices().Find("opus")
	if err != nil {
		t.Fatal(err)
	}
	whole, used := h.spent(later, price)
	trimmed, usedLean := lean.spent(later, price)
	rate, _ := cost.HitRate(used)
	m := cost.Model{Price: price, HitRate: rate}
	live := m.Live(cost.Change{Pre: would.Before, Post: would.After, Same: would.Prefix})
	t.Logf("%d messages: %d tokens, trimmed %d (%.0f %%), of which %d stay cached; a turn %.4f $ and %.4f $, the first %.4f $; break-even in turn %s, %s by the paper",
		200, b.Trim.Before, b.Trim.After, live.Reduction, b.Trim.Prefix, mean(whole), mean(trimmed[1:]), trimmed[0], live.BreakEven, m.Paper(would.Before, would.After).BreakEven)
	near := func(what string, got, want, within float64) {
		t.Helper()
		if math.Abs(got-want) > within*want {
			t.Errorf("%s: %.5f, by the model %.5f", what, got, want)
		}
	}
	near("a turn of the session", mean(whole), m.Turn(used.Input+used.CacheCreation+used.CacheRead)/later, 0.02)
	near("its context", float64(used.CacheRead+used.CacheCreation+used.Input)/later, float64(would.Before), 0.05)
	near("the context of the branch", float64(usedLean.CacheRead+usedLean.CacheCreation+usedLean.Input)/later, float64(would.After), 0.1)
	near("the first turn of the branch", trimmed[0], live.First, 0.05)
	if mean(trimmed[1:]) > mean(whole)*(1-live.Reduction/100)*1.5 {
		t.Errorf("a turn costs %.5f, and %.5f before a trim by %.0f %%", mean(trimmed[1:]), mean(whole), live.Reduction)
	}
	paid := cost.Never
	var with, without float64
	for n := range later {
		with, without = with+trimmed[n], without+whole[n]
		if with <= without && paid == cost.Never {
			paid = cost.Turns(n + 1)
		}
	}
	if paid < live.BreakEven-1 || paid > live.BreakEven+1 {
		t.Errorf("paid in turn %s, by the model in turn %s", paid, live.BreakEven)
	}
}

func mean(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	return sum / float64(len(v))
}
