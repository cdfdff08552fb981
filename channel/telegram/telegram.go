// Package telegram is the Telegram Bot API as a [channel.Platform]: it verifies and decodes updates,
// sends answers as HTML, and opens files by the two steps that the API asks for. It does not decide
// when a message is sent again (the session's ledger does), and it has no buttons, inline queries,
// polls or long polling. Begin with [New]; the protocol is https://core.telegram.org/bots/api.
//
// Telegram differs from WhatsApp in three ways. Its ids of messages count within a chat, so ours carry
// the chat ("-1001:5"). It says nothing of a message once it was sent, so a send whose fate is not known
// stays unknown. And a group may change its id, which is an alias, and for a message on its way an
// address. The token is part of every address, so it must appear in no error.
package telegram

import (
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/channel"
	"github.com/tidemark-ai/tidemark/channel/wire"
)

// Name is that of the channel.
const Name = "telegram"

// DefaultBaseURL is that of a [Config].
const DefaultBaseURL = "https://api.telegram.org"

const (
	sendTimeout  = 30 * time.Second // Telegram answers within seconds or not at all
	showTimeout  = 10 * time.Second // for the typing indicator, which is of no consequence
	mediaTimeout = 2 * time.Minute  // for the whole of 20 MB
)

// Config is what a bot consists of. Without a Token nothing is sent, without a Secret every update is
// refused.
type Config struct {
	Token    string // as BotFather gave it: the bot's id, a colon, its key
	Secret   string // comes with every update in a header: 1 to 256 of A-Z a-z 0-9 _ -
	Username string // of the bot, without @; empty: in a group every name of a bot means us
	BaseURL  string // empty for DefaultBaseURL

	Transport http.RoundTripper
	Runtime   tidemark.Runtime // for deadlines and the typing indicator; nil for neither
}

// client speaks for one bot. It holds no state, so its methods may be called at once.
type client struct {
	Config
	base *url.URL // nil when BaseURL is not one: then nothing can be sent
}

var (
	_ channel.Webhook  = (*client)(nil)
	_ tidemark.Courier = (*client)(nil)
	_ channel.Library  = (*client)(nil)
)

// New gives the platform of a configuration.
func New(cfg Config) channel.Platform {
	c := newClient(cfg)
	return channel.Platform{Webhook: c, Courier: c, Library: c}
}

func newClient(cfg Config) *client {
	if cfg.BaseURL == "" {
		cfg.BaseURL = DefaultBaseURL
	}
	cfg.Username = strings.TrimPrefix(cfg.Username, "@")
	return &client{Config: cfg, base: wire.Base(cfg.BaseURL)}
}

// Name implements [channel.Webhook].
func (c *client) Name() string { return Name }

// account is the bot's id, which its token begins with.
func (c *client) account() string {
	id, _, ok := strings.Cut(c.Token, ":")
	if !ok || strings.Trim(id, "0123456789") != "" {
		return ""
	}
	return id
}
