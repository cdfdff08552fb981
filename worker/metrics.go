package worker

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/session"
)

// Metrics counts what happens, for /metrics. All sessions share one: natively of the
// process, on Workers of the isolate. Its methods may be called at once.
type Metrics struct {
	now func() time.Time

	mu       sync.Mutex // guards the following; never held over a wait
	counts   map[sample]float64
	working  int // runs in work
	turns    histogram
	overhead histogram

	stalled *Probe // the session that said last that it cannot go on, nil for none
	why     string
	until   time.Time // that is believed
	asked   int       // proxied requests that were to be treated
	because string    // why the newest request was passed on untouched
	refused writes    // of the last database that refused one
}

// sample is one line of the text: a family and its labels as written.
type sample struct{ name, labels string }

// family describes one metric. The text is the exposition format of Prometheus
// (https://prometheus.io/docs/instrumenting/exposition_formats/).
type family struct{ name, kind, help string }

// Names of the metrics that are counted in more than one place.
const (
	namePrefix  = "tidemark_"
	nameRequest = namePrefix + "http_requests_total"
	nameErrors  = namePrefix + "errors_total"
	nameTurns   = namePrefix + "turns_total"
	nameInputs  = namePrefix + "inputs_total"
	nameEvents  = namePrefix + "events_total"
	nameTokens  = namePrefix + "tokens_total"
	nameCalls   = namePrefix + "model_calls_total"
	nameModel   = namePrefix + "model_seconds_total"
	nameCompact = namePrefix + "compactions_total"
	nameShort   = namePrefix + "compactions_short_total"
	nameLeft    = namePrefix + "episodes_left_total"
	nameUnmet   = namePrefix + "episodes_short_total"
	nameResets  = namePrefix + "resets_total"
	nameRecalls = namePrefix + "recalls_total"
	nameVectors = namePrefix + "vectors_total"
	nameChecks  = namePrefix + "selfcheck_checks_total"
	nameUnsound = namePrefix + "selfcheck_violations_total"
	nameRepairs = namePrefix + "selfcheck_repairs_total"
	nameArrive  = namePrefix + "channel_arrivals_total"
	nameSends   = namePrefix + "channel_sends_total"
)

// families lists what is counted, in the order of the text.
var families = []family{
	{nameRequest, "counter", "HTTP requests by route and status."},
	{nameErrors, "counter", "Failures by type: of requests, and of model calls by class."},
	{nameInputs, "counter", "Inputs that turns took up."},
	{nameTurns, "counter", "Turns by how they ended."},
	{nameCompact, "counter", "Compactions."},
	{nameShort, "counter", "Compactions that left the view over its limit, or had nothing to take from it."},
	{nameLeft, "counter", "Episodes that left the view, whole or in part."},
	{nameUnmet, "counter", "Times that an operator was told that the budget of episodes cannot be met, or is missed by much more than before."},
	{nameResets, "counter", "Resets."},
	{nameRecalls, "counter", "Recalls by who asked (model, person, pack; wide is the model over many conversations) and how far the answer is to be trusted."},
	{nameVectors, "counter", "Texts that an endpoint for vectors was asked for, by how that went: made or failed."},
	{nameChecks, "counter", "Checks that were made behind compactions: entries read and found, markers counted, views that can be sent."},
	{nameUnsound, "counter", "Checks behind compactions that failed; the compaction was taken back."},
	{nameRepairs, "counter", "Rows of the index of words that such a check found missing and wrote again."},
	{nameEvents, "counter", "Logged events by type."},
	{nameTokens, "counter", "Tokens of model calls by kind, summaries included."},
	{nameCalls, "counter", "Model calls by outcome."},
	{nameModel, "counter", "Seconds within model calls."},
	{nameArrive, "counter", "What came over channels by what became of it: done, again, given_up, unreadable."},
	{nameSends, "counter", "What was sent over channels: sent, or the class of the failure; halted needs the owner."},
}

// NewMetrics returns counters that stand at zero. They may serve many doors.
func NewMetrics(now func() time.Time) *Metrics {
	return &Metrics{now: now, counts: map[sample]float64{}}
}

func (m *Metrics) add(name string, n float64, labels ...string) {
	var b strings.Builder
	for i := 0; i+1 < len(labels); i += 2 {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `%s="%s"`, labels[i], escapeLabel(labels[i+1]))
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.counts[sample{name, b.String()}] += n
}

// escapeLabel writes a label's value as the format wants it.
func escapeLabel(s string) string {
	return strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s)
}

func (m *Metrics) request(route string, status int) {
	m.add(nameRequest, 1, "route", route, "status", strconv.Itoa(status))
}

// Arrived counts what became of something that came over a channel.
func (m *Metrics) Arrived(channel, outcome string) {
	m.add(nameArrive, 1, "channel", channel, "outcome", outcome)
}

// Sent counts what became of something that was sent over a channel.
func (m *Metrics) Sent(channel, outcome string) {
	m.add(nameSends, 1, "channel", channel, "outcome", outcome)
}

func (m *Metrics) failure(kind string) { m.add(nameErrors, 1, "type", kind) }

// Probe observes one session: its notices, and its model calls, so that what a turn takes beside
// them can be told. Whoever opens a session sets session.Config.Observe to [Probe.Observe] and wraps
// its providers with [Probe.Provider].
type Probe struct {
	m *Metrics

	mu    sync.Mutex // guards the following; a session has one run at a time
	run   string
	began time.Time
	model time.Duration // within model calls of the run
	took  int           // inputs of the run that were counted
}

// Probe returns an observer for one session.
func (m *Metrics) Probe() *Probe { return &Probe{m: m} }

// Observe counts a notice.
func (p *Probe) Observe(n session.Notice) {
	switch n.Type {
	case session.NoticeStart:
		p.begin(n.Run)
	case session.NoticeTaken:
		p.taken(len(n.Inputs))
	case session.NoticeEvent:
		if n.Event == nil {
			return
		}
		p.m.add(nameEvents, 1, "type", n.Event.Type)
		p.weigh(n.Event)
		switch {
		case n.Event.Type == "compaction" && len(n.Event.Data) > 0: // without data nothing was to be gained
			p.m.add(nameCompact, 1)
		case n.Event.Type == "reset":
			p.m.add(nameResets, 1)
		}
	case session.NoticeRecalled:
		p.m.add(nameRecalls, 1, "by", n.Text, "verdict", string(n.Verdict))
	case session.NoticeStalled:
		p.stall(n)
	case session.NoticeVectors:
		p.m.add(nameVectors, float64(n.Count), "result", n.Text)
	case session.NoticeChecked:
		p.checked(n.Checked)
	case session.NoticeDone:
		p.taken(len(n.Inputs))
		p.end(n.Run, "done")
	case session.NoticeError:
		p.end(n.Run, failureOf(n.Err()).kind)
	}
}

// weigh counts what an event tells of a view that stays over the limit, since the rest of it is pinned or too new, and of
// episodes.
func (p *Probe) weigh(e *tidemark.Event) {
	var c struct {
		Short    tidemark.Tokens      `json:"shortTokens"`
		Episodes session.EpisodesLeft `json:"episodes"`
	}
	if len(e.Data) == 0 || json.Unmarshal(e.Data, &c) != nil {
		return
	}
	count := func(n int, name string, labels ...string) {
		if n > 0 {
			p.m.add(name, float64(n), labels...)
		}
	}
	count(min(int(c.Short), 1), nameShort)
	count(c.Episodes.Whole, nameLeft, "how", "whole")
	count(c.Episodes.Part, nameLeft, "how", "part")
	if e.Type == "notice" {
		count(min(int(c.Episodes.Short), 1), nameUnmet)
	}
}

// checked counts what the self-check behind a compaction found.
func (p *Probe) checked(c *session.Checked) {
	p.m.add(nameChecks, float64(c.Checks))
	p.m.add(nameUnsound, float64(len(c.Violations)))
	p.m.add(nameRepairs, float64(c.Repaired))
}

func (p *Probe) begin(run string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.run == "" {
		p.m.work(1)
	}
	p.run, p.began, p.model, p.took = run, p.m.now(), 0, 0
}

// taken counts the inputs that a run took since the last notice; each lists all of them.
func (p *Probe) taken(all int) {
	p.mu.Lock()
	fresh := all - p.took
	p.took = max(p.took, all)
	p.mu.Unlock()
	if fresh > 0 {
		p.m.add(nameInputs, float64(fresh))
	}
}

func (p *Probe) end(run, how string) {
	p.mu.Lock()
	known := p.run == run && run != ""
	took, model := p.m.now().Sub(p.began), p.model
	if known {
		p.run = ""
	}
	p.mu.Unlock()
	p.m.add(nameTurns, 1, "end", how)
	if !known {
		return
	}
	p.m.work(-1)
	p.m.mu.Lock()
	defer p.m.mu.Unlock()
	p.m.turns.observe(took)
	p.m.overhead.observe(max(0, took-model))
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

func (m *Metrics) work(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.working += n
}

// Provider returns inner with its calls counted.
func (p *Probe) Provider(inner tidemark.Provider) tidemark.Provider { return &counted{inner, p} }

// counted counts the calls of a provider.
type counted struct {
	inner tidemark.Provider
	p     *Probe
}

// Stream implements tidemark.Provider. The time that the reader takes between two pieces counts as
// the turn's own.
func (c *counted) Stream(ctx context.Context, req tidemark.Request) iter.Seq2[tidemark.Delta, error] {
	return func(yield func(tidemark.Delta, error) bool) {
		outcome := "stopped"
		var spent time.Duration
		since := c.p.m.now()
		for d, err := range c.inner.Stream(ctx, req) {
			spent += c.p.m.now().Sub(since)
			if err != nil {
				outcome = failureOf(err).kind
			} else if d.Reply != nil {
				outcome = "ok"
				c.p.m.usage(d.Reply.Call.Usage)
			}
			if !yield(d, err) {
				break
			}
			since = c.p.m.now()
		}
		c.p.called(outcome, spent)
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

func (p *Probe) called(outcome string, spent time.Duration) {
	p.mu.Lock()
	p.model += spent
	p.mu.Unlock()
	p.m.add(nameCalls, 1, "outcome", outcome)
	p.m.add(nameModel, spent.Seconds())
	if outcome != "ok" && outcome != "stopped" {
		p.m.failure(outcome)
	}
}

func (m *Metrics) usage(u tidemark.Usage) {
	for kind, n := range map[string]tidemark.Tokens{"input": u.Input, "output": u.Output, "cache_read": u.CacheRead, "cache_creation": u.CacheCreation} {
		m.add(nameTokens, float64(n), "kind", kind)
	}
}

// bounds of the histograms, in seconds.
var bounds = [...]float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300}

// histogram counts durations. Its zero value is empty.
type histogram struct {
	buckets [len(bounds) + 1]uint64
	sum     float64
}

func (h *histogram) observe(d time.Duration) {
	i, _ := slices.BinarySearch(bounds[:], d.Seconds())
	h.buckets[i]++
	h.sum += d.Seconds()
}

func (h *histogram) append(b *strings.Builder, name, help string) {
	fmt.Fprintf(b, "# HELP %s %s\n# TYPE %s histogram\n", name, help, name)
	total := uint64(0)
	for i, n := range h.buckets {
		total += n
		le := "+Inf"
		if i < len(bounds) {
			le = strconv.FormatFloat(bounds[i], 'g', -1, 64)
		}
		fmt.Fprintf(b, "%s_bucket{le=%q} %d\n", name, le, total)
	}
	fmt.Fprintf(b, "%s_sum %s\n%s_count %d\n", name, strconv.FormatFloat(h.sum, 'g', -1, 64), name, total)
}

// text writes all metrics.
func (m *Metrics) text(version string) string {
	stalled := 0.0
	if m.stall() != "" {
		stalled = 1
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var b strings.Builder
	byName := func(x, y sample) int {
		return strings.Compare(x.name+x.labels, y.name+y.labels)
	}
	samples := slices.SortedFunc(maps.Keys(m.counts), byName)
	for _, f := range slices.Concat(families, proxyFamilies) {
		fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %s %s\n", f.name, f.help, f.name, f.kind)
		for _, s := range samples {
			if s.name != f.name {
				continue
			}
			b.WriteString(s.name)
			if s.labels != "" {
				b.WriteString("{" + s.labels + "}")
			}
			b.WriteString(" " + strconv.FormatFloat(m.counts[s], 'g', -1, 64) + "\n")
		}
	}
	gauge := func(name, help string, v float64) {
		fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %s gauge\n%s %s\n", name, help, name, name, strconv.FormatFloat(v, 'g', -1, 64))
	}
	m.turns.append(&b, namePrefix+"turn_seconds", "Seconds of turns, from their begin to their end.")
	m.overhead.append(&b, namePrefix+"turn_overhead_seconds", "Seconds of turns less those within model calls.")
	gauge(namePrefix+"sessions_working", "Sessions with a turn in work.", float64(m.working))
	gauge(namePrefix+"stalled", "1 while a session waits because its storage fails or is damaged, or writes are refused.", stalled)
	gauge(namePrefix+"goroutines", "Goroutines of the process.", float64(runtime.NumGoroutine()))
	fmt.Fprintf(&b, "# HELP %sbuild_info The version, as a label.\n# TYPE %sbuild_info gauge\n%sbuild_info{version=\"%s\"} 1\n", namePrefix, namePrefix, namePrefix, escapeLabel(version))
	return b.String()
}

// getMetrics answers a scraper.
func (c *call) getMetrics() error {
	c.Metrics.tryWrite(c.r.Context())
	c.w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	c.w.WriteHeader(http.StatusOK)
	_, err := c.w.Write([]byte(c.Metrics.text(c.Version)))
	return err
}
