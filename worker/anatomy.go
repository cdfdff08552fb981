package worker

import (
	"fmt"
	"net/http"
	"strconv"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/clip"
	"github.com/tidemark-ai/tidemark/room/anatomy"
	"github.com/tidemark-ai/tidemark/room/reflection"
	"github.com/tidemark-ai/tidemark/session"
)

// getAnatomy lists the records of model calls.
func getAnatomy(c *request) (any, error) {
	s, before, limit, err := c.page()
	if err != nil {
		return nil, err
	}
	records, err := roomOf[*anatomy.Room](s, "records of calls")
	if err != nil {
		return nil, err
	}
	page, err := records.All(c.r.Context(), before, limit)
	if err != nil {
		return nil, err
	}
	var tuned reflection.Tuning // zero without that room
	if r, ok := session.Room[*reflection.Room](s); ok {
		if tuned, err = r.Tuned(c.r.Context()); err != nil {
			return nil, err
		}
	}
	out := struct {
		Calls  []anatomy.Record   `json:"calls"`
		Next   int64              `json:"next,omitempty"`
		Tuning *reflection.Tuning `json:"tuning,omitempty"` // what reflection set
	}{Calls: listed(page)}
	if tuned != (reflection.Tuning{}) {
		out.Tuning = &tuned
	}
	if len(page) == limit {
		out.Next = page[limit-1].N
	}
	return out, nil
}

// getPrompt builds the request of a call again, as it was sent.
func getPrompt(c *request) (any, error) {
	n, err := strconv.ParseInt(c.r.PathValue("n"), 10, 64)
	if err != nil || n < 1 {
		return nil, fmt.Errorf("anatomy/%s: want the n of a call: %w", clip.To(c.r.PathValue("n"), 40), tidemark.ErrInvalid)
	}
	s, err := c.shown()
	if err != nil {
		return nil, err
	}
	records, err := roomOf[*anatomy.Room](s, "records of calls")
	if err != nil {
		return nil, err
	}
	return nil, records.Prompt(c.r.Context(), n, func(p anatomy.Prompt) error { // may be large: it is written as it is made
		c.w.Header().Set("Content-Type", codeJSON)
		c.w.WriteHeader(http.StatusOK)
		if _, err := fmt.Fprintf(c.w, `{"n":%d,"sha256":"%s","rebuilt":"%s","same":%t,"request":`, n, p.Record.SHA256, p.SHA256, p.Same()); err != nil {
			return err
		}
		if err := anatomy.WriteRequest(c.w, p.Request); err != nil {
			return err
		}
		_, err := fmt.Fprintln(c.w, "}")
		return err
	})
}
