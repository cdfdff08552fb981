package worker

import (
	"context"
	"errors"
	"time"

	"github.com/tidemark-ai/tidemark"
)

// writes is what is known of a database that refused one.
type writes struct {
	why   string // empty when none is known that refuses
	by    tidemark.DB
	try   func(context.Context) error // a small write; nil where none can be tried
	at    time.Time                   // of the last that was refused
	tried time.Time                   // when one was last tried
}

const (
	// tryEvery is how often a database that refused a write is tried, by who asks how it is.
	tryEvery = 5 * time.Second
	// refusedFor is how long one that cannot be tried from here is believed to refuse.
	refusedFor = time.Minute
)

// DB returns a database whose writes are heard: while the last one was refused, no input is taken there. Of several that
// refuse, the last is known. try writes a little into it, from any request, so it is for hosts where that may be.
func (m *Metrics) DB(db tidemark.DB, try func(context.Context, tidemark.DB) error) tidemark.DB {
	return &heard{db, m, try}
}

type heard struct {
	tidemark.DB
	m   *Metrics
	try func(context.Context, tidemark.DB) error
}

// Tx implements [tidemark.DB].
func (h *heard) Tx(ctx context.Context, stmts []tidemark.Stmt) error {
	err := h.DB.Tx(ctx, stmts)
	switch {
	case errors.Is(err, tidemark.ErrUnavailable):
		h.m.refuse(err, h.DB, func(ctx context.Context) error { return h.try(ctx, h) })
	case err == nil: // another error is of a statement, not of the disk
		h.m.took(h.DB)
	}
	return err
}

// Refused hears of a write that was refused by a database in which none can be tried from elsewhere: it is believed for a
// minute. So it is on Workers, where each database is one object's, and of one that could not be opened.
func (m *Metrics) Refused(err error) { m.refuse(err, nil, nil) }

func (m *Metrics) refuse(err error, by tidemark.DB, try func(context.Context) error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.refused = writes{why: err.Error(), by: by, try: try, at: m.now(), tried: m.refused.tried}
}

func (m *Metrics) took(by tidemark.DB) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.refused.by == by {
		m.refused.why = ""
	}
}

// tryWrite tries a small write in the database that refused one, so that health recovers by itself where nobody
// writes.
func (m *Metrics) tryWrite(ctx context.Context) {
	m.mu.Lock()
	try := m.refused.try
	if m.refused.why == "" || m.now().Sub(m.refused.tried) < tryEvery {
		try = nil
	}
	if try != nil {
		m.refused.tried = m.now()
	}
	m.mu.Unlock()
	if try != nil {
		_ = try(ctx) // how it went is heard
	}
}
