package graph

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/tidemark-ai/tidemark/internal/json"
)

// Post is one webhook.
type Post struct {
	Body  string `json:"body"`
	Tries int    `json:"tries"`
	Acked bool   `json:"acked"`
	Last  string `json:"last"` // what came of the last try: a status, or an error
}

// Person is somebody with a phone. One of Number and UserID is enough.
type Person struct {
	Number string `json:"number,omitempty"` // digits
	UserID string `json:"userId,omitempty"`
	Name   string `json:"name,omitempty"`
}

// Message is one that a person wrote, under the API's field names.
type Message map[string]any

// Quote makes it the answer to a message.
func (m Message) Quote(from, id string) Message {
	m["context"] = map[string]any{"from": from, "id": id}
	return m
}

// In makes it one of a group.
func (m Message) In(group string) Message {
	m["group_id"] = group
	return m
}

// ID is that of the message.
func (m Message) ID() string { return fmt.Sprint(m["id"]) }

// Message makes one of a type; payload stands under the type's name.
func (s *Server) Message(p Person, kind string, payload any) Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := Message{"id": s.newID(), "timestamp": strconv.FormatInt(s.cfg.Now().Unix(), 10), "type": kind, kind: payload}
	if p.Number != "" {
		m["from"] = p.Number
	}
	if p.UserID != "" {
		m["from_user_id"] = p.UserID
	}
	return m
}

// Text makes a message of words.
func (s *Server) Text(p Person, body string) Message {
	return s.Message(p, "text", map[string]any{"body": body})
}

// File makes a message of a medium: kind is image, audio, video, document or sticker.
func (s *Server) File(p Person, kind string, data []byte, mime, caption string) Message {
	id := s.AddMedia(data, mime)
	sum := sha256.Sum256(data)
	payload := map[string]any{"id": id, "mime_type": mime, "sha256": base64.StdEncoding.EncodeToString(sum[:])}
	if caption != "" {
		payload["caption"] = caption
	}
	switch kind {
	case "audio":
		payload["voice"] = true
	case "document":
		payload["filename"] = "file"
	}
	return s.Message(p, kind, payload)
}

// Value is the value object of a change that holds messages of one person.
func (s *Server) Value(p Person, messages ...Message) map[string]any {
	contact := map[string]any{"profile": map[string]any{"name": p.Name}}
	if p.Number != "" {
		contact["wa_id"] = p.Number
	}
	if p.UserID != "" {
		contact["user_id"] = p.UserID
	}
	v := s.value()
	v["contacts"], v["messages"] = []any{contact}, messages
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.UserID != "" && p.Number != "" {
		s.numbers[p.UserID] = p.Number
	}
	for _, m := range messages {
		s.known[m.ID()] = true
		s.wrote[s.number(cmp.Or(p.Number, p.UserID))] = s.cfg.Now()
		if group, in := m["group_id"].(string); in {
			s.wrote[group] = s.cfg.Now() // whoever writes there opens it
		}
	}
	return v
}

func (s *Server) value() map[string]any {
	return map[string]any{"messaging_product": "whatsapp", "metadata": map[string]any{"display_phone_number": s.cfg.Number, "phone_number_id": s.cfg.Account}}
}

// Envelope makes the body of a webhook: each value is a change of the field.
func (s *Server) Envelope(field string, values ...map[string]any) []byte {
	changes := make([]any, len(values))
	for i, v := range values {
		changes[i] = map[string]any{"field": field, "value": v}
	}
	body, err := json.Marshal(map[string]any{"object": "whatsapp_business_account", "entry": []any{map[string]any{"id": "102290129340398", "changes": changes}}})
	if err != nil {
		panic(err) // of values that a program wrote
	}
	return escape(body)
}

// Say posts messages of a person in one webhook.
func (s *Server) Say(p Person, messages ...Message) *Post {
	return s.Post(s.Envelope("messages", s.Value(p, messages...)))
}

// Post signs a body and posts it until it is acknowledged or the gaps are used up.
func (s *Server) Post(body []byte) *Post {
	p := s.queue(body)[0]
	s.start(func() { s.deliver(p) })
	return p
}

// queue notes posts that are to be delivered.
func (s *Server) queue(bodies ...[]byte) []*Post {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []*Post
	for _, b := range bodies {
		out = append(out, &Post{Body: string(b)})
	}
	s.posts = append(s.posts, out...)
	s.pending += len(out)
	return out
}

// start runs f on its own, unless the server has ended. It ends soon after Close.
func (s *Server) start(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil {
		return
	}
	s.work.Add(1)
	go func() {
		defer s.work.Done()
		f()
	}()
}

// deliver tries a post until it is acknowledged.
func (s *Server) deliver(p *Post) {
	for n := 0; ; n++ {
		status, err := s.try([]byte(p.Body))
		s.mu.Lock()
		p.Tries++
		p.Acked = err == nil && status == http.StatusOK
		p.Last = strconv.Itoa(status)
		if err != nil {
			p.Last = err.Error()
		}
		over := p.Acked || n >= len(s.cfg.Gaps)
		if over {
			s.pending--
		}
		s.wake()
		s.mu.Unlock()
		if over || !s.pause(s.cfg.Gaps[n]) {
			return
		}
	}
}

// pause waits, and reports whether the server still runs.
func (s *Server) pause(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-s.ctx.Done():
		return false
	}
}

func (s *Server) try(body []byte) (int, error) {
	s.mu.Lock()
	to := s.webhook
	s.mu.Unlock()
	if to == "" {
		return http.StatusOK, nil
	}
	req, err := http.NewRequestWithContext(s.ctx, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "facebookexternalua")
	req.Header.Set("X-Hub-Signature-256", s.Sign(body))
	resp, err := s.client.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxRequest)) // so that the connection is used again
	return resp.StatusCode, nil
}

// Sign is the header of a body.
func (s *Server) Sign(body []byte) string {
	m := hmac.New(sha256.New, []byte(s.cfg.AppSecret))
	m.Write(body)
	return "sha256=" + hex.EncodeToString(m.Sum(nil))
}

// Handshake tries the webhook as Meta does when it is entered: by a challenge.
func (s *Server) Handshake(ctx context.Context) error {
	const challenge = "1158201444"
	s.mu.Lock()
	to := s.webhook
	s.mu.Unlock()
	q := url.Values{"hub.mode": {"subscribe"}, "hub.verify_token": {s.cfg.VerifyToken}, "hub.challenge": {challenge}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, to+"?"+q.Encode(), nil)
	if err != nil {
		return err
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxRequest))
	if err != nil || resp.StatusCode != http.StatusOK || string(body) != challenge {
		return fmt.Errorf("handshake: status %d, %q: want 200 and the challenge alone", resp.StatusCode, body)
	}
	return nil
}

// SetWebhook says where webhooks go from now on.
func (s *Server) SetWebhook(url string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.webhook = url
}

// Posts lists the webhooks so far.
func (s *Server) Posts() []Post {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]Post, len(s.posts))
	for i, p := range s.posts {
		out[i] = *p
	}
	return out
}

// Idle waits until every post was acknowledged or given up.
func (s *Server) Idle(ctx context.Context) error {
	return s.until(ctx, func() bool { return s.pending == 0 })
}

// report posts what becomes of a message: its statuses, or the one that it failed. A code of 0 is no
// failure here.
func (s *Server) report(m Sent, f Fault) {
	statuses := s.cfg.Statuses
	if f.Code != 0 {
		statuses = []string{"failed"}
	}
	var bodies [][]byte
	for _, st := range statuses {
		bodies = append(bodies, s.Envelope("messages", s.status(m, st, f)))
	}
	if s.cfg.Disorder {
		slices.Reverse(bodies)
		bodies = append(bodies, bodies...)
	}
	posts := s.queue(bodies...)
	s.start(func() {
		for _, st := range statuses {
			s.see(Event{Kind: "status", To: m.To, ID: m.ID, Status: st, Text: Codes[f.Code].Text, Code: f.Code})
		}
		for _, p := range posts {
			if s.cfg.Disorder {
				s.start(func() { s.deliver(p) })
			} else {
				s.deliver(p)
			}
		}
	})
}

// status is the value object of one status.
func (s *Server) status(m Sent, status string, f Fault) map[string]any {
	st := map[string]any{"id": m.ID, "status": status, "timestamp": strconv.FormatInt(s.cfg.Now().Unix(), 10), "recipient_id": m.To}
	if scoped(m.To) {
		s.mu.Lock()
		st["recipient_id"], st["recipient_user_id"] = s.numbers[m.To], m.To
		s.mu.Unlock()
	}
	if m.Group {
		st["recipient_type"] = "group"
	}
	if m.Ref != "" {
		st["biz_opaque_callback_data"] = m.Ref
	}
	if f.Code != 0 {
		e := errorObject(f)
		e["title"] = Codes[f.Code].Text
		st["errors"] = []any{e}
	} else {
		st["pricing"] = map[string]any{"billable": true, "pricing_model": "PMP", "category": "service", "type": "regular"}
	}
	v := s.value()
	v["statuses"] = []any{st}
	return v
}

// escape writes JSON as Meta's servers do: characters beyond ASCII as \u escapes, slashes with a
// backslash. Only the bytes themselves verify.
func escape(body []byte) []byte {
	out := make([]byte, 0, len(body)+len(body)/8)
	for len(body) > 0 {
		r, n := utf8.DecodeRune(body)
		switch {
		case r == '/':
			out = append(out, '\\', '/')
		case r < utf8.RuneSelf:
			out = append(out, byte(r))
		case r > 0xFFFF:
			hi, lo := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, hi, lo)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
		body = body[n:]
	}
	return out
}

// Acked waits until a post was acknowledged or given up, and reports which.
func (s *Server) Acked(ctx context.Context, p *Post) (bool, error) {
	err := s.until(ctx, func() bool { return p.Acked || p.Tries > len(s.cfg.Gaps) })
	s.mu.Lock()
	defer s.mu.Unlock()
	return p.Acked, err
}

// Pending is the number of posts that are still to be acknowledged.
func (s *Server) Pending() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pending
}
