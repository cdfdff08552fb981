package worker

import (
	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/proxy"
)

// passed counts a request by what is done with it. With asked it was to be treated: it may be passed on as if it was not.
func (m *Metrics) passed(treatment string, asked bool) {
	m.Add(namePassed, 1, "treatment", treatment)
	if asked {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.asked++
	}
}

// untouched counts a request that went on as it came, and keeps why the newest did.
func (m *Metrics) untouched(kind, why string) {
	m.Add(nameUntouched, 1, "reason", kind)
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
	out := &Untouched{Requests: m.asked, Untouched: int(m.Sum(nameUntouched)), Why: m.because}
	if out.Untouched == 0 {
		return nil
	}
	return out
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
	if e := r.Episodes; e != nil {
		if e.Whole > 0 {
			h.m.Add(nameFinished, float64(e.Whole), "how", "whole")
		}
		if e.Part > 0 {
			h.m.Add(nameFinished, float64(e.Part), "how", "part")
		}
		if e.Short > 0 {
			h.m.Add(nameOver, 1)
		}
	}
	h.m.usage(r.Call.Usage)
	return h.Home.Called(name, log, title, messages, r)
}
