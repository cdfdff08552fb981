package graph

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tidemark-ai/tidemark/internal/json"
)

const (
	maxText = 4096 // characters
	maxRef  = 512
)

// Sent is a message that was taken for delivery.
type Sent struct {
	ID    string          `json:"id"`
	To    string          `json:"to"` // as it was addressed: number, user id or group
	Group bool            `json:"group,omitempty"`
	Type  string          `json:"type"`
	Text  string          `json:"text,omitempty"`
	Quote string          `json:"quote,omitempty"`
	Ref   string          `json:"ref,omitempty"` // biz_opaque_callback_data
	At    time.Time       `json:"at"`
	Body  json.RawMessage `json:"body"`
}

// Read is a message that was marked as read.
type Read struct {
	ID     string `json:"id"`
	Typing bool   `json:"typing"` // and a typing indicator was asked for
}

// send is a request to the messages edge, as far as it is read.
type send struct {
	Product   string `json:"messaging_product"`
	Kind      string `json:"recipient_type"`
	To        string `json:"to"`
	Recipient string `json:"recipient"`
	Type      string `json:"type"`
	Context   struct {
		Message string `json:"message_id"`
	} `json:"context"`
	Text *struct {
		Body string `json:"body"`
	} `json:"text"`
	Ref     string `json:"biz_opaque_callback_data"`
	Status  string `json:"status"`
	Message string `json:"message_id"`
	Typing  *struct {
		Type string `json:"type"`
	} `json:"typing_indicator"`
}

// pair is the allowance of one person: a bucket that a message takes one from.
type pair struct {
	left float64
	at   time.Time
}

func (s *Server) messages(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxRequest))
	var m send
	if err != nil || json.Unmarshal(body, &m) != nil {
		refuse(w, Fault{Code: 100, Text: "The body is not JSON"})
		return
	}
	if m.Status != "" {
		s.markRead(w, m)
		return
	}
	if bad, ok := s.check(m, body); !ok {
		refuse(w, bad)
		return
	}
	to := cmp.Or(m.To, m.Recipient)
	f, faulty := s.fault(to)
	switch {
	case !faulty && !s.allow(to):
		refuse(w, Fault{Code: 131056})
		return
	case faulty && f.Mode == Refuse:
		refuse(w, f)
		return
	case faulty && (f.Mode == Slow || f.Mode == Dropped || f.Mode == BadGateway):
		s.spoil(w, r, f)
		return
	}
	sent := s.take(m, to, body)
	s.see(Event{Kind: "message", To: to, ID: sent.ID, Text: sent.Text, Quote: sent.Quote})
	late := Fault{}
	if f.Mode == Late {
		late = f
	} else if s.closed(to, m) {
		late = Fault{Code: 131047, Text: "Message failed to send because more than 24 hours have passed since the customer last replied to this number."}
	}
	s.report(sent, late)
	if faulty && f.Mode != Late {
		s.spoil(w, r, f)
		return
	}
	contact := map[string]any{"input": to}
	if m.To != "" {
		contact["wa_id"] = to
	} else {
		contact["user_id"] = to
	}
	answer(w, http.StatusOK, map[string]any{
		"messaging_product": "whatsapp", "contacts": []any{contact},
		"messages": []any{map[string]any{"id": sent.ID, "message_status": "accepted"}},
	})
}

// check refuses what the API refuses.
func (s *Server) check(m send, body []byte) (Fault, bool) {
	bad := func(code int, format string, args ...any) (Fault, bool) {
		return Fault{Code: code, Text: fmt.Sprintf(format, args...)}, false
	}
	var raw map[string]json.RawMessage
	if json.Unmarshal(body, &raw) != nil {
		return bad(100, "The body is not an object")
	}
	kinds := []string{"audio", "contacts", "document", "image", "interactive", "location", "reaction", "sticker", "template", "text", "video"}
	kind := cmp.Or(m.Type, "text")
	switch {
	case m.Product != "whatsapp":
		return bad(100, "The parameter messaging_product is required.")
	case m.To == "" && m.Recipient == "":
		return bad(131008, "One of to and recipient is required.")
	case m.Kind == "group" && m.To == "":
		return bad(131008, "A group is addressed by to.")
	case m.Kind != "" && m.Kind != "individual" && m.Kind != "group":
		return bad(100, "Param recipient_type must be one of {individual, group}.")
	case m.Kind != "group" && m.To != "" && !digits(m.To):
		return bad(131009, "Phone number is not valid: %q", m.To)
	case m.To == "" && !scoped(m.Recipient):
		return bad(131009, "User id is not valid: %q", m.Recipient)
	case m.To == s.cfg.Number:
		return bad(131021, "The recipient is the sender.")
	case !slices.Contains(kinds, kind):
		return bad(131051, "Message type %q is not supported.", kind)
	case raw[kind] == nil:
		return bad(131008, "The parameter %s is required.", kind)
	case kind == "text" && (m.Text == nil || m.Text.Body == ""):
		return bad(100, "The parameter text['body'] is required.")
	case kind == "text" && utf8.RuneCountInString(m.Text.Body) > maxText:
		return bad(100, "Param text['body'] must be at most %d characters long.", maxText)
	case len(m.Ref) > maxRef:
		return bad(100, "Param biz_opaque_callback_data must be at most %d characters long.", maxRef)
	case raw["context"] != nil && !strings.HasPrefix(m.Context.Message, "wamid."):
		return bad(131009, "The context's message_id is not valid.")
	}
	return Fault{}, true
}

// markRead takes a read mark, with or without a typing indicator, of a message that we have posted.
func (s *Server) markRead(w http.ResponseWriter, m send) {
	s.mu.Lock()
	known := s.known[m.Message]
	if known && m.Status == "read" && m.Product == "whatsapp" {
		s.reads = append(s.reads, Read{ID: m.Message, Typing: m.Typing != nil})
		s.wake()
	}
	s.mu.Unlock()
	switch {
	case m.Product != "whatsapp" || m.Status != "read" || m.Typing != nil && m.Typing.Type != "text":
		refuse(w, Fault{Code: 100, Text: "Want messaging_product whatsapp, status read and typing_indicator text."})
	case !known:
		refuse(w, Fault{Code: 131009, Text: "The message_id is not one of a message to this number."})
	default:
		s.see(Event{Kind: "read", ID: m.Message})
		if m.Typing != nil {
			s.see(Event{Kind: "typing", ID: m.Message})
		}
		answer(w, http.StatusOK, map[string]any{"success": true})
	}
}

// allow takes one message from the allowance of a pair.
func (s *Server) allow(to string) bool {
	if s.cfg.Burst < 0 {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.cfg.Now()
	p := s.pairs[to]
	if p == nil {
		p = &pair{left: float64(s.cfg.Burst), at: now}
		s.pairs[to] = p
	}
	p.left = min(p.left+float64(now.Sub(p.at))/float64(pairGap), float64(s.cfg.Burst))
	p.at = now
	if p.left < 1 {
		return false
	}
	p.left--
	return true
}

// take makes a message a sent one.
func (s *Server) take(m send, to string, body []byte) Sent {
	s.mu.Lock()
	defer s.mu.Unlock()
	sent := Sent{ID: s.newID(), To: to, Group: m.Kind == "group", Type: cmp.Or(m.Type, "text"), Quote: m.Context.Message, Ref: m.Ref, At: s.cfg.Now(), Body: body}
	if m.Text != nil {
		sent.Text = m.Text.Body
	}
	s.sent = append(s.sent, sent)
	s.wake()
	return sent
}

// closed reports whether the 24 hours of a person are over. Templates may be sent always.
func (s *Server) closed(to string, m send) bool {
	if !s.cfg.Window || m.Type == "template" {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cfg.Now().Sub(s.wrote[s.number(to)]) >= window
}

// Expire makes a person one who has not written for 24 hours.
func (s *Server) Expire(to string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.wrote, s.number(to))
}

// number is how a person is kept: by number where it is known. The caller holds mu.
func (s *Server) number(name string) string {
	return cmp.Or(s.numbers[name], name)
}

// Sent lists the messages that were taken, in order.
func (s *Server) Sent() []Sent {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.sent)
}

// Reads lists the read marks, in order.
func (s *Server) Reads() []Read {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.reads)
}

// Await waits until n messages were taken.
func (s *Server) Await(ctx context.Context, n int) error {
	return s.until(ctx, func() bool { return len(s.sent) >= n })
}

// newID makes the id of a message. The caller holds mu.
func (s *Server) newID() string {
	s.n++
	return "wamid." + base64.StdEncoding.EncodeToString(fmt.Appendf(nil, "\x1c\x18%s-%06d", s.cfg.Account, s.n))
}

func digits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

func scoped(s string) bool {
	country, rest, ok := strings.Cut(s, ".")
	rest = strings.TrimPrefix(rest, "ENT.")
	return ok && len(country) == 2 && strings.ToUpper(country) == country && rest != "" && !strings.ContainsAny(rest, ". +-")
}
