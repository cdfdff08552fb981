package graph

import (
	"io"
	"net/http"

	"github.com/tidemark-ai/tidemark/internal/json"
)

// Said is what a program asks the fake to post (POST /fake/say).
type Said struct {
	Person
	Type    string          `json:"type"`    // empty for text
	Text    string          `json:"text"`    // of a text, or the caption
	Payload json.RawMessage `json:"payload"` // of other types, under the API's field names
	Data    []byte          `json:"data"`    // of media, in base64
	Mime    string          `json:"mime"`
	Quote   string          `json:"quote"`
	Group   string          `json:"group"`
}

// control adds the doors by which programs in other languages hold the strings. They are no part of
// the Graph API.
func (s *Server) control(mux *http.ServeMux) {
	mux.HandleFunc("POST /fake/say", func(w http.ResponseWriter, r *http.Request) {
		var in Said
		if !read(w, r, &in) {
			return
		}
		m := s.said(in)
		s.Say(in.Person, m)
		answer(w, http.StatusOK, map[string]any{"id": m.ID()})
	})
	mux.HandleFunc("POST /fake/fail", func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			To     string  `json:"to"`
			Faults []Fault `json:"faults"`
		}
		if read(w, r, &in) {
			s.Fail(in.To, in.Faults...)
			answer(w, http.StatusOK, map[string]any{})
		}
	})
	mux.HandleFunc("POST /fake/webhook", func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			URL string `json:"url"`
		}
		if !read(w, r, &in) {
			return
		}
		s.SetWebhook(in.URL)
		if err := s.Handshake(r.Context()); err != nil {
			answer(w, http.StatusBadRequest, map[string]any{"error": err.Error()})
			return
		}
		answer(w, http.StatusOK, map[string]any{})
	})
	mux.HandleFunc("POST /fake/expire", func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			To string `json:"to"`
		}
		if read(w, r, &in) {
			s.Expire(in.To)
			answer(w, http.StatusOK, map[string]any{})
		}
	})
	mux.HandleFunc("GET /fake/state", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, map[string]any{"sent": s.Sent(), "reads": s.Reads(), "posts": s.Posts()})
	})
}

// said makes the message that a program asks for.
func (s *Server) said(in Said) Message {
	var m Message
	switch {
	case in.Type == "" || in.Type == "text":
		m = s.Text(in.Person, in.Text)
	case in.Data != nil:
		m = s.File(in.Person, in.Type, in.Data, in.Mime, in.Text)
	default:
		m = s.Message(in.Person, in.Type, in.Payload)
	}
	if in.Quote != "" {
		m.Quote(s.cfg.Number, in.Quote)
	}
	if in.Group != "" {
		m.In(in.Group)
	}
	return m
}

func read(w http.ResponseWriter, r *http.Request, v any) bool {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxUpload))
	if err == nil {
		err = json.Unmarshal(body, v)
	}
	if err != nil {
		answer(w, http.StatusBadRequest, map[string]any{"error": err.Error()})
	}
	return err == nil
}
