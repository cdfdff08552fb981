package telegram

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/channel"
	"github.com/tidemark-ai/tidemark/channel/wire"
	"github.com/tidemark-ai/tidemark/internal/json"
)

const secretHeader = "X-Telegram-Bot-Api-Secret-Token"

// Handshake implements [channel.Webhook]: Telegram tries no address before it uses it.
func (c *client) Handshake(url.Values) (string, error) {
	return "", fmt.Errorf("webhook handshake: Telegram has none: %w", tidemark.ErrNotFound)
}

// Signed implements [channel.Webhook]: what Telegram sends of the secret is all of it.
func (c *client) Signed(h http.Header) error { return c.Verify(h, nil) }

// Verify holds the secret that was given with the webhook against the one that came.
func (c *client) Verify(h http.Header, _ []byte) error {
	switch {
	case c.Secret == "":
		return fmt.Errorf("webhook secret: none is configured: %w", tidemark.ErrUnauthorized)
	case !wire.Same(c.Secret, h.Get(secretHeader)):
		return fmt.Errorf("webhook secret: not ours: %w", tidemark.ErrUnauthorized)
	}
	return nil
}

// wireUpdate is an update. Telegram posts one at a time; kinds that are not asked for, and those that
// are not known, come to nothing.
//
// https://core.telegram.org/bots/api#update
type wireUpdate struct {
	ID      int64        `json:"update_id"`
	Message *wireMessage `json:"message"`
	Edited  *wireMessage `json:"edited_message"`
	Post    *wireMessage `json:"channel_post"`
}

// Decode implements [channel.Webhook].
func (c *client) Decode(body []byte) ([]channel.Arrival, error) {
	var probe struct {
		ID *int64 `json:"update_id"`
	}
	if json.Unmarshal(body, &probe) != nil || probe.ID == nil {
		return nil, fmt.Errorf("decode an update: it has no update_id: %w", tidemark.ErrInvalid)
	}
	var u wireUpdate
	switch readable := json.Unmarshal(body, &u) == nil; {
	case !readable:
		return odd("update that cannot be read"), nil
	case u.Edited != nil: // what was answered cannot be unsaid, and edits come by the dozen
		return odd("edited message"), nil
	case u.Post != nil:
		return odd("channel post"), nil
	case u.Message == nil:
		return odd("update of another kind"), nil
	}
	return c.message(u.ID, u.Message), nil
}

func odd(what string) []channel.Arrival { return []channel.Arrival{{Odd: what}} }

// message turns a message into what arrived.
func (c *client) message(update int64, m *wireMessage) []channel.Arrival {
	switch {
	case m.MigrateTo != 0: // the group itself says so; its new self says it again, with MigrateFrom
		return c.alias(m.Chat.ID, m.MigrateTo)
	case m.MigrateFrom != 0:
		return c.alias(m.MigrateFrom, m.Chat.ID)
	case m.Chat.ID == 0 || m.ID == 0:
		return odd("message without an address")
	case m.Chat.Type == "channel" || m.Automatic:
		return odd("channel post")
	case m.From == nil || m.Sender != nil: // an anonymous administrator, or a channel that speaks in a group
		return odd("message without a person")
	case m.From.Bot:
		return odd("message of a bot")
	}
	text, media, kind := content(m)
	if kind == "" {
		return odd("message of a type that is not acted on")
	}
	at := place{chat: m.Chat.ID}
	if m.Topic {
		at.thread = m.Thread
	}
	in := &channel.Incoming{
		ID:      Name + ":" + c.account() + ":" + strconv.FormatInt(update, 10),
		Message: messageID(m.Chat.ID, m.ID),
		From:    []string{strconv.FormatInt(m.From.ID, 10)}, // names may change hands: they are none
		Name:    strings.TrimSpace(m.From.First + " " + m.From.Last),
		Reply:   tidemark.Address{Platform: Name, Account: c.account(), Peer: at.String()},
		At:      time.Unix(m.Date, 0).UTC(),
		Kind:    kind,
		Media:   media,
	}
	if m.Reply != nil && !m.Reply.Created { // in a topic, what answers nothing "answers" its begin
		in.Quoted = messageID(m.Chat.ID, m.Reply.ID)
	}
	if m.Chat.Type != "private" {
		in.Group, in.Reply.Group = at.String(), true
		in.Mentioned = c.mentioned(m)
	}
	in.Text = about(m, c.addressed(text))
	return []channel.Arrival{{Message: in}}
}

func (c *client) alias(from, to int64) []channel.Arrival {
	return []channel.Arrival{{Alias: &channel.Alias{
		Platform: Name, Account: c.account(), Old: strconv.FormatInt(from, 10), New: strconv.FormatInt(to, 10), Group: true,
	}}}
}

// mentioned reports whether a message in a group is meant for us: it answers us, names us, or is a
// command with our name.
func (c *client) mentioned(m *wireMessage) bool {
	if r := m.Reply; r != nil && !r.Created && r.From != nil && strconv.FormatInt(r.From.ID, 10) == c.account() {
		return true
	}
	text, entities := m.Text, m.Entities
	if text == "" {
		text, entities = m.Caption, m.CaptionEntities
	}
	wide := utf16.Encode([]rune(text)) // offsets count UTF-16 units
	for _, e := range entities {
		if e.User != nil && strconv.FormatInt(e.User.ID, 10) == c.account() {
			return true
		}
		if e.Offset < 0 || e.Length < 0 || e.Offset > len(wide) || e.Length > len(wide)-e.Offset {
			continue
		}
		word := string(utf16.Decode(wide[e.Offset : e.Offset+e.Length]))
		_, name, ok := strings.Cut(word, "@")
		if ok && (e.Type == "mention" || e.Type == "bot_command") && c.isUs(name) {
			return true
		}
	}
	return false
}

// isUs reports whether a user name is ours. All names of bots end in "bot".
func (c *client) isUs(name string) bool {
	if c.Username == "" {
		return len(name) > 3 && strings.EqualFold(name[len(name)-3:], "bot")
	}
	return strings.EqualFold(name, c.Username)
}

// addressed takes our name off the begin of a text, "@name /status" or "/status@name": what is left
// is what was said.
func (c *client) addressed(text string) string {
	first, rest := strings.TrimSpace(text), ""
	if end := strings.IndexFunc(first, unicode.IsSpace); end >= 0 {
		first, rest = first[:end], first[end:]
	}
	word, name, ok := strings.Cut(first, "@")
	switch {
	case !ok || !c.isUs(strings.TrimRight(name, ",:")):
		return text
	case strings.HasPrefix(word, "/"):
		return word + rest
	case word == "" && strings.TrimSpace(rest) != "":
		return strings.TrimSpace(rest)
	}
	return text
}

// about marks what another has written. A forwarded message begins with a word, so that it is
// nobody's command.
func about(m *wireMessage, text string) string {
	if len(m.Forward) > 0 || m.ForwardDate != 0 {
		return strings.TrimSpace("[Forwarded] " + text)
	}
	return text
}
