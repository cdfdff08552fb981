package logs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/cost"
	"github.com/tidemark-ai/tidemark/transcript"
	"github.com/tidemark-ai/tidemark/trim"
)

// maxChanges bounds how many changes are kept to find the first that the model sees. Those before it are of copies and
// reports of usage.
const maxChanges = 1 << 16

// Options direct a measuring.
type Options struct {
	Prices cost.Prices
	Model  cost.Model // at which price, and at which hit rate the paper's model reckons
	Trim   trim.Options
	Now    time.Time // for how long ago the last call was; zero is the end of the log
	// Given says that the hit rate of Model was asked for: then the live model reckons with it too, and not with the
	// session's own.
	Given bool
	// Context is the size of the context where it is known and no call of the log reports it: of a branch, from the
	// session that it was made from. 0 is not known.
	Context tidemark.Tokens
}

// Report is what trimming a log costs and saves.
type Report struct {
	Model   string  `json:"model"`
	HitRate float64 `json:"hit_rate"`
	Session string  `json:"session,omitempty"`
	Title   string  `json:"title,omitempty"`
	CWD     string  `json:"cwd,omitempty"`

	Paper       cost.Trim         `json:"paper"` // by papers/cmv §4.1, over its estimate of the context
	Live        Live              `json:"live"`
	Verdict     Verdicts          `json:"verdict"`
	Projections []cost.Projection `json:"projections"`
	Branch      Branch            `json:"branch"`

	Bytes       int64        `json:"bytes"`
	LiveBytes   int64        `json:"live_bytes"`
	Messages    Counts       `json:"messages"`     // of the live part
	AllMessages Counts       `json:"all_messages"` // of the log
	Composition Composition  `json:"composition"`
	After       Composition  `json:"composition_after"`
	Compactions []Compaction `json:"compactions"`
	Built       Built        `json:"built"`
	First       time.Time    `json:"first,omitzero"`
	Last        time.Time    `json:"last,omitzero"`
	Trim        trim.Metrics `json:"trim"`
	side        int64        // lines of side chains
}

// Verdicts are what the break-evens of both models mean.
type Verdicts struct {
	Paper cost.Verdict `json:"paper"`
	Live  cost.Verdict `json:"live"`
}

// Live is what a trim costs and saves by what is known of the session: the tokens that really go, what stays in the
// cache, how much of a turn was read from it, and how long it lives.
type Live struct {
	cost.LiveTrim
	Measured bool            `json:"measured"`               // Pre is what the last call reported and what came since
	Lineage  bool            `json:"from_lineage,omitempty"` // Pre is [Options.Context]
	Known    bool            `json:"hit_rate_measured"`
	Given    bool            `json:"hit_rate_given,omitempty"` // somebody asked for it
	Write    float64         `json:"cache_write"`              // dollars for a million tokens that are written to the session's cache
	Prefix   tidemark.Tokens `json:"prefix"`                   // system prompt and tools, which no trim changes
	TTL      int64           `json:"ttl_seconds"`
	Pause    int64           `json:"pause_seconds"` // since the last call
	// Warm is what it would be with the last call just made, when it is not.
	Warm *cost.LiveTrim `json:"warm,omitempty"`
}

// Branch is what beginning with the context that is there costs, beside what making it cost. It is written to the cache
// that the session writes to.
type Branch struct {
	cost.Branch
	Write   float64     `json:"cache_write"` // the price of that, for a million tokens
	TTL     int64       `json:"ttl_seconds"` // how long that cache lives
	Trimmed cost.Branch `json:"trimmed"`
	Rebuild float64     `json:"rebuild"` // dollars of the calls that made it, as the log reports them
}

// Measure reads the first size bytes of a log, trims it without keeping what comes of that, and says what it would
// cost and save.
func Measure(ctx context.Context, in io.ReaderAt, size int64, o Options) (Report, error) {
	if err := o.Model.Check(); err != nil {
		return Report{}, err
	}
	var ch changes
	m, after, err := trimmed(ctx, in, size, &ch, o)
	if err != nil {
		return Report{}, err
	}
	rd := reader{prices: o.Prices, fallback: o.Model.Price, changes: ch.at, more: ch.more, context: o.Context}
	c, err := rd.read(ctx, io.NewSectionReader(in, 0, size))
	if err != nil {
		return Report{}, err
	}
	return report(c, after, m, o), nil
}

// changes notes where trimming begins to change the log. What it cuts off in front of the last compaction lies before
// what is looked for, and is passed over there.
type changes struct {
	at   []int64
	more bool // than maxChanges
}

// Cut implements trim.Sink.
func (c *changes) Cut(cut trim.Cut) error {
	if c.more = c.more || len(c.at) == maxChanges; !c.more {
		c.at = append(c.at, cut.From)
	}
	return nil
}

// trimmed trims a log and reads what comes of it on the way.
func trimmed(ctx context.Context, in io.ReaderAt, size int64, cuts trim.Sink, o Options) (trim.Metrics, Contents, error) {
	pr, pw := io.Pipe()
	var m trim.Metrics
	failed := make(chan error, 1)
	go func() { // ends with the trim, which ends when its output is closed
		var err error
		m, err = trim.Trim(ctx, in, size, pw, cuts, o.Trim)
		_ = pw.CloseWithError(err)
		failed <- err
	}()
	c, err := Read(ctx, pr, o.Prices, o.Model.Price)
	_ = pr.CloseWithError(err)
	if trimErr := <-failed; trimErr != nil && !errors.Is(trimErr, err) {
		return m, c, fmt.Errorf("trim log: %w", trimErr)
	}
	return m, c, err
}

// report puts together what two readings found.
func report(c, after Contents, m trim.Metrics, o Options) Report {
	r := Report{Model: o.Model.Price.Model, HitRate: o.Model.HitRate, Session: c.Session, Title: c.Title, CWD: c.CWD,
		Bytes: c.Bytes, LiveBytes: c.LiveBytes, Messages: c.Live, AllMessages: c.All,
		Composition: c.Composition, After: after.Composition, Compactions: c.Compactions,
		Built: c.Built, First: c.First, Last: c.Last, Trim: m, side: c.Side}
	if r.Compactions == nil {
		r.Compactions = []Compaction{}
	}
	post := byBytes(c.Estimate, after.LiveBytes, c.LiveBytes)
	r.Paper = o.Model.Paper(c.Estimate, post)
	r.Projections = o.Model.Project(c.Estimate, post)
	r.Live = live(c, after, o)
	r.Verdict = Verdicts{r.Paper.BreakEven.Verdict(), r.Live.BreakEven.Verdict()}
	r.Branch = BranchOf(o.Model, c.Built.TTL, r.Live.Pre, r.Live.Post)
	r.Branch.Rebuild = c.Built.Dollars
	return r
}

// BranchOf is the cost of beginning with a context, and with what a trim leaves of it, in a cache that lives that long;
// nothing is known of what making it cost.
func BranchOf(m cost.Model, ttl time.Duration, pre, post tidemark.Tokens) Branch {
	m = m.Writing(ttl)
	return Branch{Branch: m.Branch(pre), Write: m.Price.CacheWrite, TTL: int64(ttl / time.Second), Trimmed: m.Branch(post)}
}

// byBytes is the size of a context behind a trim by the share of the bytes that is left, as papers/cmv §4.2 reckons:
// what stands before the messages stays.
func byBytes(estimate tidemark.Tokens, after, before int64) tidemark.Tokens {
	if before <= 0 || after >= before {
		return estimate
	}
	messages := max(0, estimate-transcript.TypicalPrefix)
	return estimate - messages + scale(messages, after, before)
}

// scale is n times a share, rounded.
func scale(n tidemark.Tokens, share, of int64) tidemark.Tokens {
	if of <= 0 {
		return n
	}
	return tidemark.Tokens(float64(n)*float64(share)/float64(of) + 0.5)
}

// live is the truer cost: messages are scaled so that the estimate of all is what was measured.
func live(c, after Contents, o Options) Live {
	messages := c.Context - c.Prefix
	ch := cost.Change{Pre: c.Context, TTL: c.Built.TTL,
		Post: c.Prefix + scale(messages, int64(after.Weight), int64(c.Weight)),
		Same: c.Prefix + scale(messages, int64(c.Same), int64(c.Weight))}
	if c.Same >= c.Weight && after.Weight == c.Weight {
		ch.Same = ch.Pre
	}
	if !o.Now.IsZero() && !c.Last.IsZero() {
		ch.Pause = max(0, o.Now.Sub(c.Last))
	}
	m, known := o.Model, c.Built.HitRate != nil && !o.Given
	if known {
		m.HitRate = *c.Built.HitRate
	}
	l := Live{LiveTrim: m.Live(ch), Measured: c.Measured, Lineage: o.Context > 0 && !c.Measured, Known: known, Given: o.Given, Prefix: c.Prefix,
		Write: m.Writing(ch.TTL).Price.CacheWrite,
		TTL:   int64(ch.TTL / time.Second), Pause: int64(ch.Pause / time.Second)}
	if l.Cold {
		ch.Pause = 0
		warm := m.Live(ch)
		l.Warm = &warm
	}
	return l
}
