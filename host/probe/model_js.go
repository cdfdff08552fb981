package main

import (
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/provider"
)

// line is one delta of a reply, as the test reads it.
type line struct {
	tidemark.Delta
	Error *tidemark.APIError `json:"error,omitempty"`
	Cause string             `json:"cause,omitempty"`
}

// model makes one call through the binding named by ai, or of the endpoint base by fetch, with the
// request's body as messages, and sends each delta on a line. first and idle are deadlines in
// milliseconds.
func (p *probe) model(w http.ResponseWriter, r *http.Request) error {
	raw, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err != nil {
		return err
	}
	var req tidemark.Request
	if err := json.Unmarshal(raw, &req.Messages); err != nil {
		return err
	}
	if r.FormValue("tool") != "" {
		req.Tools = []tidemark.Tool{{Name: r.FormValue("tool")}}
	}
	first, idle := time.Duration(number(r, "first"))*time.Millisecond, time.Duration(number(r, "idle"))*time.Millisecond
	var m tidemark.Provider
	if base := r.FormValue("base"); base != "" {
		m = &provider.OpenAI{Model: r.FormValue("model"), BaseURL: base, Transport: p.o.Transport(), Runtime: p.o, FirstByte: first, Idle: idle}
	} else {
		ai := provider.NewWorkersAI(r.FormValue("model"), p.o.Transport().AI(r.FormValue("ai")), p.o)
		ai.FirstByte, ai.Idle = first, idle
		m = ai
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	for d, err := range m.Stream(r.Context(), req) {
		out := line{Delta: d}
		if err != nil && !errors.As(err, &out.Error) {
			out.Cause = err.Error()
		}
		raw, err := json.Marshal(out)
		if err != nil {
			return err
		}
		if _, err := w.Write(append(raw, '\n')); err != nil {
			return p.note(p.o.Context(), "cut")
		}
		if err := http.NewResponseController(w).Flush(); err != nil {
			return p.note(p.o.Context(), "cut")
		}
	}
	return nil
}
