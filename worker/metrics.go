package worker

import (
	"context"
	"fmt"
	"iter"
	"strconv"
	"sync"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/metric"
	"github.com/tidemark-ai/tidemark/session"
)

// Metrics counts what happens, for /metrics. All sessions share one: natively of the
// process, on Workers of the isolate. Its methods may be called at once.
type Metrics struct {
	now func() time.Time
	*metric.Registry

	mu      sync.Mutex // guards the following; never held over a wait
	stalled *Probe     // the session that said last that it cannot go on, nil for none
	why     string
	until   time.Time // that is believed
	asked   int       // proxied requests that were to be treated
	because string    // why the newest request was passed on untouched
	refused writes    // of the last database that refused one
}

// Names of the metrics.
const (
	namePrefix    = "tidemark_"
	nameRequest   = namePrefix + "http_requests_total"
	nameErrors    = namePrefix + "errors_total"
	nameTurns     = namePrefix + "turns_total"
	nameSeconds   = namePrefix + "turn_seconds"
	nameWorking   = namePrefix + "sessions_working"
	nameEvents    = namePrefix + "events_total"
	nameTokens    = namePrefix + "tokens_total"
	nameCalls     = namePrefix + "model_calls_total"
	nameCompact   = namePrefix + "compactions_total"
	nameShort     = namePrefix + "compactions_short_total"
	nameUnmet     = namePrefix + "episodes_short_total"
	nameVectors   = namePrefix + "vectors_total"
	nameRoom      = namePrefix + "room_total"
	nameChecks    = namePrefix + "selfcheck_checks_total"
	nameUnsound   = namePrefix + "selfcheck_violations_total"
	nameArrive    = namePrefix + "channel_arrivals_total"
	nameSends     = namePrefix + "channel_sends_total"
	namePassed    = namePrefix + "proxy_requests_total"
	nameUntouched = namePrefix + "proxy_untouched_total"
	nameFinished  = namePrefix + "proxy_episodes_total"
	nameOver      = namePrefix + "proxy_over_budget_total"
	nameStalled   = namePrefix + "stalled"
	nameBuild     = namePrefix + "build_info"
)

// NewMetrics returns counters that stand at zero. They may serve many doors.
func NewMetrics(now func() time.Time) *Metrics {
	m := &Metrics{now: now, Registry: metric.New(
		metric.Counter(nameRequest, "HTTP requests by route and status."),
		metric.Counter(nameErrors, "Failures by type: of requests, and of model calls by class."),
		metric.Counter(nameTurns, "Turns by how they ended."),
		metric.Histogram(nameSeconds, "Seconds of turns, from their begin to their end."),
		metric.Gauge(nameWorking, "Sessions with a turn in work."),
		metric.Counter(nameCompact, "Compactions."),
		metric.Counter(nameShort, "Compactions that left the view over its limit, or had nothing to take from it."),
		metric.Counter(nameUnmet, "Times that an operator was told that the budget of episodes cannot be met, or is missed by much more than before."),
		metric.Counter(nameVectors, "Texts that an endpoint for vectors was asked for, by how that went: made or failed."),
		metric.Counter(nameRoom, "What the rooms of sessions count, by kind and how it went."),
		metric.Counter(nameChecks, "Checks that were made behind compactions: entries read and found, markers counted, views that can be sent."),
		metric.Counter(nameUnsound, "Checks behind compactions that failed; the compaction was taken back."),
		metric.Counter(nameEvents, "Logged events by type."),
		metric.Counter(nameTokens, "Tokens of model calls by kind, summaries included."),
		metric.Counter(nameCalls, "Model calls by outcome."),
		metric.Counter(nameArrive, "What came over channels by what became of it: done, again, given_up, unreadable."),
		metric.Counter(nameSends, "What was sent over channels: sent, or the class of the failure; halted needs the owner."),
		metric.Counter(namePassed, "Requests that were passed on for clients that keep their history, by treatment."),
		metric.Counter(nameUntouched, "Requests that went on as they came though they were to be treated, by reason: unreadable, too_large, store, refused, other."),
		metric.Counter(nameFinished, "Episodes that left such requests, by how much of them: whole, part."),
		metric.Counter(nameOver, "Requests over the budget of episodes of which nothing more could leave."),
		metric.Gauge(nameStalled, "1 while a session waits because its storage fails or is damaged, or writes are refused."),
		metric.Gauge(nameBuild, "The version, as a label."),
	)}
	m.Set(nameWorking, 0)
	return m
}

func (m *Metrics) request(route string, status int) {
	m.Add(nameRequest, 1, "route", route, "status", strconv.Itoa(status))
}

// Arrived counts what became of something that came over a channel.
func (m *Metrics) Arrived(channel, outcome string) {
	m.Add(nameArrive, 1, "channel", channel, "outcome", outcome)
}

// Sent counts what became of something that was sent over a channel.
func (m *Metrics) Sent(channel, outcome string) {
	m.Add(nameSends, 1, "channel", channel, "outcome", outcome)
}

func (m *Metrics) failure(kind string) { m.Add(nameErrors, 1, "type", kind) }

// Probe observes one session: its notices and its model calls. Whoever opens a session sets session.Config.Observe
// to [Probe.Observe] and wraps its providers with [Probe.Provider].
type Probe struct {
	m *Metrics

	mu    sync.Mutex // guards the following; a session has one run at a time
	run   string
	began time.Time
}

// Probe returns an observer for one session.
func (m *Metrics) Probe() *Probe { return &Probe{m: m} }

// Observe counts a notice.
func (p *Probe) Observe(n session.Notice) {
	switch n.Type {
	case session.NoticeStart:
		p.begin(n.Run)
	case session.NoticeEvent:
		if n.Event != nil {
			p.weigh(n.Event)
		}
	case session.NoticeStalled:
		p.stall(n)
	case session.NoticeRoom:
		if n.Room == session.RoomVectors {
			p.m.Add(nameVectors, float64(n.Count), "result", n.Text)
		} else {
			p.m.Add(nameRoom, float64(n.Count), "kind", n.Room, "how", n.Text)
		}
	case session.NoticeChecked:
		p.m.Add(nameChecks, float64(n.Checked.Checks))
		p.m.Add(nameUnsound, float64(len(n.Checked.Violations)))
	case session.NoticeDone:
		p.end(n.Run, "done")
	case session.NoticeError:
		p.end(n.Run, failureOf(n.Err()).kind)
	}
}

// weigh counts an event, and what it tells of a view that stays over the limit, since the rest of it is pinned or too
// new.
func (p *Probe) weigh(e *tidemark.Event) {
	p.m.Add(nameEvents, 1, "type", e.Type)
	if e.Type == "compaction" && len(e.Data) > 0 { // without data nothing was to be gained
		p.m.Add(nameCompact, 1)
	}
	var c struct {
		Short    tidemark.Tokens `json:"shortTokens"`
		Episodes struct {
			Short tidemark.Tokens `json:"shortTokens"`
		} `json:"episodes"`
	}
	if len(e.Data) == 0 || json.Unmarshal(e.Data, &c) != nil {
		return
	}
	if c.Short > 0 {
		p.m.Add(nameShort, 1)
	}
	if e.Type == "notice" && c.Episodes.Short > 0 {
		p.m.Add(nameUnmet, 1)
	}
}

func (p *Probe) begin(run string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.run == "" {
		p.m.Add(nameWorking, 1)
	}
	p.run, p.began = run, p.m.now()
}

func (p *Probe) end(run, how string) {
	p.m.Add(nameTurns, 1, "end", how)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.run == run && run != "" {
		p.run = ""
		p.m.Add(nameWorking, -1)
		p.m.Registry.Observe(nameSeconds, p.m.now().Sub(p.began).Seconds())
	}
}

// stallGrace is how long a session that cannot go on may be silent behind its next try: its object may be gone.
const stallGrace = time.Minute

func (p *Probe) stall(n session.Notice) {
	p.m.mu.Lock()
	defer p.m.mu.Unlock()
	if n.Text != "" {
		p.m.stalled, p.m.why, p.m.until = p, n.Text, p.m.now().Add(time.Duration(n.Count)*time.Second+stallGrace)
	} else if p.m.stalled == p {
		p.m.why = ""
	}
}

// stall says why conversations cannot go on, or what is written is refused, as far as this process knows, or this
// isolate; empty for none.
func (m *Metrics) stall() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.now().After(m.until) {
		m.why = ""
	}
	if m.refused.try == nil && m.now().Sub(m.refused.at) > refusedFor {
		m.refused.why = ""
	}
	switch {
	case m.why != "":
		return "conversations wait: " + m.why
	case m.refused.why != "":
		return "the last write was refused: " + m.refused.why
	}
	return ""
}

// Provider returns inner with its calls counted.
func (p *Probe) Provider(inner tidemark.Provider) tidemark.Provider { return &counted{inner, p.m} }

// counted counts the calls of a provider.
type counted struct {
	inner tidemark.Provider
	m     *Metrics
}

// Stream implements tidemark.Provider.
func (c *counted) Stream(ctx context.Context, req tidemark.Request) iter.Seq2[tidemark.Delta, error] {
	return func(yield func(tidemark.Delta, error) bool) {
		outcome := "stopped"
		for d, err := range c.inner.Stream(ctx, req) {
			if err != nil {
				outcome = failureOf(err).kind
			} else if d.Reply != nil {
				outcome = "ok"
				c.m.usage(d.Reply.Call.Usage)
			}
			if !yield(d, err) {
				break
			}
		}
		c.m.Add(nameCalls, 1, "outcome", outcome)
		if outcome != "ok" && outcome != "stopped" {
			c.m.failure(outcome)
		}
	}
}

// Count implements [tidemark.Counter], where inner does. It is no call of the model.
func (c *counted) Count(ctx context.Context, req tidemark.Request) (tidemark.Tokens, error) {
	inner, ok := c.inner.(tidemark.Counter)
	if !ok {
		return 0, fmt.Errorf("this provider does not count tokens: %w", tidemark.ErrInvalid)
	}
	return inner.Count(ctx, req)
}

func (m *Metrics) usage(u tidemark.Usage) {
	for kind, n := range map[string]tidemark.Tokens{"input": u.Input, "output": u.Output, "cache_read": u.CacheRead, "cache_creation": u.CacheCreation} {
		m.Add(nameTokens, float64(n), "kind", kind)
	}
}

// getMetrics answers a scraper.
func getMetrics(c *request) (any, error) {
	c.Metrics.tryWrite(c.r.Context())
	stalled := 0.0
	if c.Metrics.stall() != "" {
		stalled = 1
	}
	c.Metrics.Set(nameStalled, stalled)
	c.Metrics.Set(nameBuild, 1, "version", c.Version)
	c.w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, err := c.w.Write([]byte(c.Metrics.Text()))
	return nil, err
}
