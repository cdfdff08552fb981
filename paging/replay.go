package paging

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// What a byte of a request costs, in input tokens of the list price: read from the cache, or written
// to it (https://docs.anthropic.com/en/docs/build-with-claude/prompt-caching#pricing).
const (
	CachedPrice  = 0.1
	WrittenPrice = 1.25
)

// Totals are what a policy did to all sessions of a replay.
type Totals struct {
	Policy    string  `json:"policy"`
	Sessions  int     `json:"sessions"`
	Requests  int     `json:"requests"`
	Evictions int     `json:"evictions"` // of pages
	GC        int     `json:"gc"`        // of garbage
	Inputs    int     `json:"inputs"`    // of calls
	Images    int     `json:"images"`    // and inline documents
	Faults    int     `json:"faults"`
	Pins      int     `json:"pins"`
	Cost      float64 `json:"cost"`          // bytes, those of the prefix that is as before at 0.1, others at 1.25
	Baseline  float64 `json:"baseline_cost"` // the same with nothing substituted
	Ratio     float64 `json:"ratio"`         // Cost by Baseline
	FaultRate float64 `json:"fault_rate"`    // Faults by Evictions
	BytesIn   int64   `json:"bytes_in"`      // of all requests
	BytesOut  int64   `json:"bytes_out"`
	Tau       int     `json:"tau"` // the highest that was asked for: thrashing raises it

	Zones *ZoneCounts `json:"zones,omitempty"` // with a window only

	// Of cost-optimal only: sessions whose cost is the least, and others, of which it is one that none is below.
	Exact   int `json:"exact,omitempty"`
	Relaxed int `json:"relaxed,omitempty"`
}

// add takes a request into account.
func (t *Totals) add(d *Decision) {
	t.Requests++
	t.Evictions += len(d.Evict)
	t.GC += len(d.GC)
	t.Inputs += len(d.Input)
	t.Images += len(d.Image)
	t.Pins += len(d.Pin)
	for _, f := range d.Fault {
		if !f.Again {
			t.Faults++
		}
	}
	t.Cost += Cost(d.Out, d.Same)
	t.Baseline += Cost(d.In, d.SameIn)
	t.BytesIn += int64(d.In)
	t.BytesOut += int64(d.Out)
	t.shares()
}

func (t *Totals) shares() {
	if t.Baseline > 0 {
		t.Ratio = t.Cost / t.Baseline
	}
	if t.Evictions > 0 {
		t.FaultRate = float64(t.Faults) / float64(t.Evictions)
	}
}

// Add takes in what a further session came to; the policy is that session's.
func (t *Totals) Add(one Totals) {
	t.Policy, t.Tau = one.Policy, max(t.Tau, one.Tau)
	t.Sessions, t.Requests, t.Exact, t.Relaxed = t.Sessions+one.Sessions, t.Requests+one.Requests, t.Exact+one.Exact, t.Relaxed+one.Relaxed
	t.Evictions, t.GC, t.Inputs, t.Images = t.Evictions+one.Evictions, t.GC+one.GC, t.Inputs+one.Inputs, t.Images+one.Images
	t.Faults, t.Pins, t.Cost, t.Baseline = t.Faults+one.Faults, t.Pins+one.Pins, t.Cost+one.Cost, t.Baseline+one.Baseline
	t.BytesIn, t.BytesOut = t.BytesIn+one.BytesIn, t.BytesOut+one.BytesOut
	if z := one.Zones; z != nil {
		all := ZoneCounts{}
		if t.Zones != nil {
			all = *t.Zones
		}
		t.Zones = &ZoneCounts{all.Normal + z.Normal, all.Advisory + z.Advisory, all.Involuntary + z.Involuntary, all.Aggressive + z.Aggressive}
	}
	t.shares()
}

// Cost is what a request of so many bytes costs, of which the first same ones stand in the cache.
func Cost(bytes, same int) float64 {
	return CachedPrice*float64(same) + WrittenPrice*float64(bytes-same)
}

// Replay runs sessions through a policy and adds up. Decisions, when Keep is set, are kept as JSON.
type Replay struct {
	Options Options // Fixed is added to what the session says of it
	Totals  Totals
	Keep    bool
	Each    func(*Decision) // told each decision, which is the pager's own; may be nil
	Check   func() error    // asked before each step; an error ends the session with it; may be nil
	Line    []byte          // decisions of the session before, one line without its end
	Cost    float64         // of the session before
	Exact   bool            // Cost is the least that there is, as cost-optimal finds for small sessions

	out outside
}

// Run replays one session.
func (r *Replay) Run(s Session) error {
	p, least, err := r.pager(s)
	if err != nil {
		return err
	}
	before := r.Totals.Cost
	r.out.only(0)
	if r.Keep {
		r.Line = json.AppendString(append(r.Line[:0], `{"session":`...), s.ID)
		r.Line = append(r.Line, `,"requests":[`...)
	}
	for n, st := range s.Steps {
		if r.Check != nil {
			if err := r.Check(); err != nil {
				return err
			}
		}
		d, err := p.Step(st)
		if err != nil {
			return fmt.Errorf("steps[%d]: %w", n, err)
		}
		p.Reported(st.Usage)
		r.Totals.add(&d)
		if r.Each != nil {
			r.Each(&d)
		}
		if r.Options.Window > 0 {
			r.Totals.zoned(d.Zone)
		}
		r.Totals.Tau = max(r.Totals.Tau, p.Tau())
		if r.Keep {
			if n > 0 {
				r.Line = append(r.Line, ',')
			}
			r.request(n, &d, p.Stubs())
		}
	}
	if r.Keep {
		r.Line = append(r.Line, "]}"...)
	}
	r.Totals.Sessions++
	r.Cost, r.Exact = r.Totals.Cost-before, false
	if r.Options.Policy == optimal {
		r.bounded(least, before)
	}
	return nil
}

// pager makes the one that a session runs through; a bound looks at the session first.
func (r *Replay) pager(s Session) (*Pager, bound, error) {
	o := r.Options
	if o.Whole = o.Whole || s.Whole; o.Window > 0 {
		o.Fixed += tidemark.EstimateChars(s.Fixed)
		if slices.Contains(Bounds(), o.Policy) {
			return nil, bound{}, fmt.Errorf("policy %s with a window: a bound knows no zones: leave one of them out: %w", o.Policy, tidemark.ErrInvalid)
		}
	}
	switch o.Policy {
	case optimal:
		least, err := optimum(r.Options, s)
		return newOffline(r.Options, &hindsight{leave: least.plan}), least, err
	case belady:
		return newOffline(r.Options, &hindsight{reads: readsOf(s.Steps)}), bound{}, nil
	}
	p, err := New(o)
	return p, bound{}, err
}

// bounded puts the bound in the place of what the plan costs, which is the same where it is exact.
func (r *Replay) bounded(least bound, before float64) {
	r.Cost, r.Exact = least.cost, least.exact
	r.Totals.Cost = before + least.cost
	if r.Totals.Baseline > 0 {
		r.Totals.Ratio = r.Totals.Cost / r.Totals.Baseline
	}
	if least.exact {
		r.Totals.Exact++
	} else {
		r.Totals.Relaxed++
	}
}

// request writes the decisions of one request.
func (r *Replay) request(n int, d *Decision, stubs []*Page) {
	r.out.only(d.Kept)
	r.out.add(stubs[d.Kept:])
	r.Line = r.out.decision(r.Line, n, d, r.Options.Window > 0)
}

// AppendDecision appends the newest decision as an object of JSON: the same bytes that a replay with Keep has of
// request n of the same history. It is for a live request; it looks at all that is out.
func (h *history) AppendDecision(b []byte, n int, d *Decision) []byte {
	var o outside
	o.add(h.stubs)
	return o.decision(b, n, d, h.window > 0)
}

// decision writes what was decided with request n, when what is out is known.
func (o *outside) decision(b []byte, n int, d *Decision, zones bool) []byte {
	b = strconv.AppendInt(append(b, `{"n":`...), int64(n), 10)
	b = appendNames(append(b, `,"evict":`...), d.Evict)
	b = appendNames(append(b, `,"gc":`...), d.GC)
	b = append(b, `,"stub":[`...)
	b = append(append(b, o.names(Result)...), `],"fault":[`...)
	for i, f := range d.Fault {
		if i > 0 {
			b = append(b, ',')
		}
		b = json.AppendString(append(b, `{"id":`...), f.ID)
		b = json.AppendString(append(b, `,"of":`...), f.Of.ID)
		b = json.AppendString(append(b, `,"path":`...), f.Of.Call.Path)
		b = append(b, '}')
	}
	b = appendNames(append(b, `],"pin":`...), d.Pin)
	b = appendNames(append(b, `,"unpin":`...), d.Unpin)
	b = strconv.AppendInt(append(b, `,"bytes":[`...), int64(d.In), 10)
	b = strconv.AppendInt(append(b, ','), int64(d.Out), 10)
	b = append(b, ']')
	b = o.further(b, d)
	if d.Tau != 0 {
		b = strconv.AppendInt(append(b, `,"tau":`...), int64(d.Tau), 10)
	}
	if zones {
		b = append(append(append(b, `,"zone":"`...), d.Zone.String()...), '"')
		b = strconv.AppendInt(append(b, `,"size":`...), int64(d.Size), 10)
	}
	return append(b, '}')
}
