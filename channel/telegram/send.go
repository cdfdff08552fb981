package telegram

import (
	"context"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/channel/markup"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// The typing indicator of Telegram ends after 5 s; a Courier's is to last some 20.
//
// https://core.telegram.org/bots/api#sendchataction
const (
	typingEvery = 4500 * time.Millisecond
	typingTimes = 4
)

// wireSend is a request to sendMessage or sendChatAction.
//
// https://core.telegram.org/bots/api#sendmessage
type wireSend struct {
	Chat    int64         `json:"chat_id"`
	Thread  int64         `json:"message_thread_id,omitempty"`
	Action  string        `json:"action,omitempty"`
	Text    string        `json:"text,omitempty"`
	Parse   string        `json:"parse_mode,omitempty"`
	Preview *wirePreview  `json:"link_preview_options,omitempty"`
	Reply   *wireReplying `json:"reply_parameters,omitempty"`
}

type wirePreview struct {
	Disabled bool `json:"is_disabled"`
}

type wireReplying struct {
	Message int64 `json:"message_id"`
	Anyway  bool  `json:"allow_sending_without_reply"`
}

// Parts implements [tidemark.Courier]: Telegram's HTML, 4,096 units of text a message.
func (c *client) Parts(_ tidemark.Address, markdown string) []string {
	parts := markup.TelegramParts(markdown)
	if len(parts) > 0 || strings.TrimSpace(markdown) == "" {
		return parts
	}
	parts = markup.Split(markdown, markup.Limit) // markup around nothing: an answer is not dropped for that
	for i, p := range parts {
		parts[i] = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(p)
	}
	return parts
}

// Send implements [tidemark.Courier]. Two refusals it acts on itself, for they say that nothing was
// sent and what would be: markup that Telegram does not parse goes as plain text, and a group that has
// become another is written to there.
func (c *client) Send(ctx context.Context, m tidemark.Outgoing) (string, error) {
	at, ok := parsePlace(m.To.Peer)
	if !ok {
		return "", &tidemark.SendError{Class: tidemark.SendFailed, Text: "no id of a chat: " + m.To.Peer}
	}
	w := wireSend{Chat: at.chat, Thread: at.thread, Text: m.Text, Parse: "HTML", Preview: &wirePreview{true}}
	if n := numberIn(at.chat, m.Quote); n != 0 {
		w.Reply = &wireReplying{n, true}
	}
	var result json.RawMessage
	var err *refusal
	for range 3 { // each of the two at most once
		if result, err = c.call(ctx, sendTimeout, "sendMessage", w); err == nil {
			return sentID(result)
		}
		switch {
		case err.migrate != 0 && w.Chat == at.chat:
			w.Chat, w.Reply = err.migrate, nil
		case w.Parse != "" && err.unparsed():
			w.Parse, w.Text = "", markup.Plain(m.Text)
		default:
			return "", err.sendError()
		}
	}
	return "", err.sendError()
}

func sentID(result json.RawMessage) (string, error) {
	var sent struct {
		ID   int64    `json:"message_id"`
		Chat wireChat `json:"chat"`
	}
	if json.Unmarshal(result, &sent) != nil || sent.ID == 0 {
		return "", &tidemark.SendError{Class: tidemark.SendUnknown, Text: "an answer that cannot be read"}
	}
	return messageID(sent.Chat.ID, sent.ID), nil
}

// Working implements [tidemark.Courier]: "typing", said again until some 20 s are over or ctx ends.
// Read marks are not for bots.
func (c *client) Working(ctx context.Context, to tidemark.Address, _ string) error {
	at, ok := parsePlace(to.Peer)
	if !ok {
		return &tidemark.SendError{Class: tidemark.SendFailed, Text: "no id of a chat: " + to.Peer}
	}
	for i := range typingTimes {
		if rested := i == 0 || c.Runtime != nil && c.Runtime.Sleep(ctx, typingEvery) == nil; !rested { // it is over
			return nil
		}
		if _, err := c.call(ctx, showTimeout, "sendChatAction", wireSend{Chat: at.chat, Thread: at.thread, Action: "typing"}); err != nil {
			return err.sendError()
		}
	}
	return nil
}

// unparsed reports whether a message was refused for its markup. The API has no code for it.
func (r *refusal) unparsed() bool {
	return r.code == 400 && strings.Contains(strings.ToLower(r.text), "can't parse entities")
}

// sendError sorts a refusal by what may be done about it.
//
// https://core.telegram.org/api/errors
func (r *refusal) sendError() *tidemark.SendError {
	s := &tidemark.SendError{Class: tidemark.SendFailed, Code: r.code, Text: r.text, RetryAfter: r.after}
	switch {
	case !r.answered && !r.begun:
		s.Class = tidemark.SendAgain
	case !r.answered || r.code >= 500: // after an error of its own it may have sent, and never tells
		s.Class = tidemark.SendUnknown
	case r.code == 429:
		s.Class = tidemark.SendAgain
	case r.code == 401 || r.code == 404 || r.code == 0: // a token that is not, or no longer, one
		s.Class = tidemark.SendHalted
	case r.code == 403 && strings.Contains(r.text, "can't initiate conversation"):
		s.Class = tidemark.SendClosed
	}
	return s
}
