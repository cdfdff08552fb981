// Package whatsapp is the WhatsApp Business Cloud API as a [channel.Platform]: it verifies and decodes
// what Meta posts, sends answers as text, and opens media by the two steps that the Graph API asks for.
// It does not decide when a message is sent again (the session's ledger does), and it has no templates,
// buttons or lists. Begin with [New]; the protocol is
// https://developers.facebook.com/docs/whatsapp/cloud-api.
//
// Every message type and every error code that the API documents has one row in one table. A send whose
// fate is not known is never called anything else.
package whatsapp

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
const Name = "whatsapp"

// Defaults of a [Config].
const (
	DefaultVersion = "v25.0"
	DefaultBaseURL = "https://graph.facebook.com"
)

const (
	sendTimeout  = 30 * time.Second // Meta answers within seconds or not at all
	showTimeout  = 10 * time.Second // for the typing indicator, which is of no consequence
	mediaTimeout = 2 * time.Minute  // for the whole of 100 MB
)

// Config is what an account at Meta consists of. Without a Token nothing is sent, without an
// AppSecret every webhook is refused, without a VerifyToken every handshake.
type Config struct {
	Token       string // of a system user, with whatsapp_business_messaging
	AppSecret   string // signs webhooks
	VerifyToken string // any words that the owner made up for the handshake
	Version     string // of the Graph API; empty for DefaultVersion
	BaseURL     string // empty for DefaultBaseURL

	Transport http.RoundTripper
	Runtime   tidemark.Runtime // for deadlines; nil for none
}

// client speaks for one configuration. It holds no state, so its methods may be called at once.
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
	if cfg.Version == "" {
		cfg.Version = DefaultVersion
	}
	if cfg.BaseURL == "" {
		cfg.BaseURL = DefaultBaseURL
	}
	c := &client{Config: cfg, base: wire.Base(cfg.BaseURL)}
	return channel.Platform{Webhook: c, Courier: c, Library: c}
}

// Name implements [channel.Webhook].
func (c *client) Name() string { return Name }

// graph returns the address of a node of the Graph API.
func (c *client) graph(path ...string) string {
	parts := append([]string{c.base.String(), url.PathEscape(c.Version)}, path...)
	for i := 2; i < len(parts); i++ {
		parts[i] = url.PathEscape(parts[i])
	}
	return strings.Join(parts, "/")
}
