package whatsapp

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/channel"
	"github.com/tidemark-ai/tidemark/channel/markup"
	"github.com/tidemark-ai/tidemark/channel/wire"
	"github.com/tidemark-ai/tidemark/internal/json"
)

const (
	maxAnswer     = 64 << 10
	maxRef        = 512 // of biz_opaque_callback_data
	maxRetryAfter = time.Hour
)

// wireSend is a request to the messages edge
// (https://developers.facebook.com/docs/whatsapp/cloud-api/reference/messages).
type wireSend struct {
	Product   string       `json:"messaging_product"`
	Kind      string       `json:"recipient_type,omitempty"`
	To        string       `json:"to,omitempty"`
	Recipient string       `json:"recipient,omitempty"`
	Type      string       `json:"type,omitempty"`
	Context   *wireContext `json:"context,omitempty"`
	Text      *wireText    `json:"text,omitempty"`
	Ref       string       `json:"biz_opaque_callback_data,omitempty"`

	Status  string      `json:"status,omitempty"`
	Message string      `json:"message_id,omitempty"`
	Typing  *wireTyping `json:"typing_indicator,omitempty"`
}

type (
	wireContext struct {
		Message string `json:"message_id"`
	}
	wireText struct {
		Preview bool   `json:"preview_url"`
		Body    string `json:"body"`
	}
	wireTyping struct {
		Type string `json:"type"`
	}
)

// Parts implements [tidemark.Courier]: WhatsApp's own markup, 4,096 characters a message.
func (c *client) Parts(_ tidemark.Address, markdown string) []string {
	parts := markup.WhatsAppParts(markdown)
	if len(parts) == 0 && strings.TrimSpace(markdown) != "" { // markup around nothing: an answer is not dropped for that
		return markup.Split(strings.ToValidUTF8(markdown, "\uFFFD"), markup.Limit)
	}
	return parts
}

// Send implements [tidemark.Courier].
func (c *client) Send(ctx context.Context, m tidemark.Outgoing) (string, error) {
	w := wireSend{Product: Name, Kind: "individual", Type: "text", Text: &wireText{Body: m.Text}, Ref: m.Ref}
	switch {
	case m.To.Group:
		w.Kind, w.To = "group", m.To.Peer
	case channel.BusinessID(m.To.Peer):
		w.Recipient = m.To.Peer
	default:
		w.To = phone(m.To.Peer)
	}
	if m.Quote != "" {
		w.Context = &wireContext{m.Quote}
	}
	if len(w.Ref) > maxRef {
		w.Ref = "" // the API would refuse the message; its status still names it by id
	}
	body, err := c.post(ctx, sendTimeout, m.To.Account, w)
	if err != nil {
		return "", err
	}
	var sent struct {
		Messages []struct {
			ID string `json:"id"`
		} `json:"messages"`
	}
	if json.Unmarshal(body, &sent) != nil || len(sent.Messages) == 0 || sent.Messages[0].ID == "" {
		return "", &tidemark.SendError{Class: tidemark.SendUnknown, Text: "an answer that cannot be read"}
	}
	return sent.Messages[0].ID, nil
}

// Working implements [tidemark.Courier]: two blue ticks and the three dots, which Meta ends after
// 25 s or with the answer. Groups have neither.
func (c *client) Working(ctx context.Context, to tidemark.Address, message string) error {
	if to.Group || message == "" {
		return nil
	}
	_, err := c.post(ctx, showTimeout, to.Account, wireSend{Product: Name, Status: "read", Message: message, Typing: &wireTyping{"text"}})
	return err
}

// post tries once. Its error is a *tidemark.SendError.
func (c *client) post(ctx context.Context, within time.Duration, account string, w wireSend) ([]byte, error) {
	if c.base == nil || c.Transport == nil || c.Token == "" {
		return nil, &tidemark.SendError{Class: tidemark.SendHalted, Text: "WhatsApp is not configured: it needs a token, a base URL and a transport"}
	}
	payload, err := json.Marshal(w)
	if err != nil {
		return nil, &tidemark.SendError{Class: tidemark.SendFailed, Text: err.Error()}
	}
	ctx, cancel := wire.Within(ctx, c.Runtime, within)
	defer cancel()
	resp, begun, err := wire.Post(ctx, c.Transport, c.graph(account, "messages"), http.Header{"Authorization": {"Bearer " + c.Token}}, payload)
	switch {
	case errors.Is(err, wire.ErrAddress):
		return nil, &tidemark.SendError{Class: tidemark.SendHalted, Text: "the base URL is not a URL"}
	case err != nil:
		return nil, c.fault(ctx, err, begun)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	return c.answer(ctx, resp, body, err)
}

// answer sorts what came back.
func (c *client) answer(ctx context.Context, resp *http.Response, body []byte, cut error) ([]byte, error) {
	if e, ok := readAnswerError(body); ok {
		s := e.sendError(resp.StatusCode, c.Token)
		s.RetryAfter = max(s.RetryAfter, retryAfter(resp.Header))
		return nil, s
	}
	status := resp.StatusCode
	s := &tidemark.SendError{Text: "status " + strconv.Itoa(status) + " without an error that can be read", RetryAfter: retryAfter(resp.Header)}
	switch {
	case cut != nil && status < 300:
		return nil, c.fault(ctx, cut, true)
	case status >= 200 && status < 300:
		return body, nil
	case status == http.StatusTooManyRequests:
		s.Class = tidemark.SendAgain
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		s.Class = tidemark.SendHalted
	case status >= 500 || status == http.StatusRequestTimeout:
		s.Class = tidemark.SendUnknown // of a proxy, perhaps: what is behind it may have taken the message
	default:
		s.Class = tidemark.SendFailed
	}
	return nil, s
}

// fault sorts a failure without an answer. On a Worker every one is unknown: see [wire.Post].
func (c *client) fault(ctx context.Context, err error, begun bool) *tidemark.SendError {
	s := &tidemark.SendError{Class: tidemark.SendAgain, Text: redact(wire.Lost(ctx, err), c.Token)}
	if begun {
		s.Class = tidemark.SendUnknown
	}
	return s
}

// retryAfter reads a pause in seconds.
func retryAfter(h http.Header) time.Duration {
	n, err := strconv.Atoi(strings.TrimSpace(h.Get("Retry-After")))
	if err != nil || n <= 0 {
		return 0
	}
	return min(time.Duration(min(n, 1<<20))*time.Second, maxRetryAfter)
}
