package worker

import (
	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/proxy"
)

// Names of what is counted of requests that are passed on.
const (
	namePassed    = namePrefix + "proxy_requests_total"
	nameCarried   = namePrefix + "proxy_bytes_total"
	nameEvicted   = namePrefix + "proxy_evictions_total"
	nameFaults    = namePrefix + "proxy_faults_total"
	namePhantom   = namePrefix + "proxy_phantom_calls_total"
	nameUntouched = namePrefix + "proxy_untouched_total"
	nameFinished  = namePrefix + "proxy_episodes_total"
	nameOver      = namePrefix + "proxy_over_budget_total"
)

// proxyFamilies describes them.
var proxyFamilies = []family{
	{namePassed, "counter", "Requests that were passed on for clients that keep their history, by treatment."},
	{nameCarried, "counter", "Bytes of their bodies: as they came, and as they were sent."},
	{nameEvicted, "counter", "What left such requests, by kind: read, other, input, image."},
	{nameFaults, "counter", "Reads of what had been evicted from such requests."},
	{namePhantom, "counter", "Calls of our own tools that were answered here."},
	{nameUntouched, "counter", "Requests that went on as they came though they were to be treated, by reason: unreadable, too_large, store, refused, other."},
	{nameFinished, "counter", "Episodes that left such requests, by how much of them: whole, part."},
	{nameOver, "counter", "Requests over the budget of episodes of which nothing more could leave."},
}

func (m *Metrics) carried(how string, n int) { m.add(nameCarried, float64(n), "how", how) }

// passed counts a request by what is done with it. With asked it was to be treated: it may be passed on as if it was not.
func (m *Metrics) passed(treatment string, asked bool) {
	m.add(namePassed, 1, "treatment", treatment)
	if asked {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.asked++
	}
}

// untouched counts a request that went on as it came, and keeps why the newest did.
func (m *Metrics) untouched(kind, why string) {
	m.add(nameUntouched, 1, "reason", kind)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.because = why
}

// Untouched is what /healthz says of requests that were to be treated since the start.
type Untouched struct {
	Requests  int    `json:"requests"`
	Untouched int    `json:"untouched"`
	Why       string `json:"why"` // of the latest
}

// proxied is nil where all requests that were to be treated were.
func (m *Metrics) proxied() *Untouched {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := Untouched{Requests: m.asked, Why: m.because}
	for s, n := range m.counts {
		if s.name == nameUntouched {
			out.Untouched += int(n)
		}
	}
	if out.Untouched == 0 {
		return nil
	}
	return &out
}

// Home returns inner with what is done in the conversations of clients counted.
func (m *Metrics) Home(inner proxy.Home) proxy.Home { return &countedHome{inner, m} }

var _ proxy.Teller = (*countedHome)(nil)

type countedHome struct {
	proxy.Home
	m *Metrics
}

// Told implements proxy.Teller, where inner does.
func (h *countedHome) Told(e tidemark.Event) {
	if t, ok := h.Home.(proxy.Teller); ok {
		t.Told(e)
	}
}

// Called implements proxy.Home: it is told of every call.
func (h *countedHome) Called(name, log, title string, messages int, r proxy.Record) []tidemark.Stmt {
	for kind, n := range map[string]int{"read": r.Evicted, "other": r.Collected, "input": r.Inputs, "image": r.Images} {
		h.count(nameEvicted, n, "kind", kind)
	}
	h.count(nameFaults, len(r.Faults))
	h.count(namePhantom, r.Phantom)
	if e := r.Episodes; e != nil {
		h.count(nameFinished, e.Whole, "how", "whole")
		h.count(nameFinished, e.Part, "how", "part")
		if e.Short > 0 {
			h.count(nameOver, 1)
		}
	}
	h.m.usage(r.Call.Usage)
	return h.Home.Called(name, log, title, messages, r)
}

func (h *countedHome) count(name string, n int, labels ...string) {
	if n > 0 {
		h.m.add(name, float64(n), labels...)
	}
}
