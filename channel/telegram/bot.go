package telegram

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// Bot is who a token belongs to, and where its updates go.
type Bot struct {
	ID      int64  `json:"id"`
	Name    string `json:"username"`
	Groups  bool   `json:"can_join_groups"`
	Reads   bool   `json:"can_read_all_group_messages"` // privacy mode is off
	Webhook Hook   `json:"webhook"`
}

// Hook is what Telegram knows of the webhook.
type Hook struct {
	URL     string   `json:"url"` // empty for none
	Pending int      `json:"pending_update_count"`
	Error   string   `json:"last_error_message,omitempty"`
	At      int64    `json:"last_error_date,omitempty"` // of the error, in seconds of the epoch
	Allowed []string `json:"allowed_updates,omitempty"`
}

// setupTimeout is for each call that a person waits for.
const setupTimeout = 20 * time.Second

// updates are those that we read. Telegram keeps the list until another is given.
var updates = [...]string{"message", "edited_message", "channel_post"}

// menu is what the button beside the text field offers.
var menu = [...]struct{ name, text string }{
	{tidemark.CommandNew, "Begin anew; what was said is archived"},
	{tidemark.CommandCompact, "Make the conversation smaller"},
	{tidemark.CommandStatus, "How full the context is"},
	{tidemark.CommandStop, "Stop the answer"},
	{tidemark.CommandModel, "Show or change the model"},
	{tidemark.CommandSnapshot, "Name this place, to come back to"},
	{tidemark.CommandBranch, "Go on from here in a session of its own"},
	{tidemark.CommandMemory, "Show what is remembered"},
	{tidemark.CommandHelp, "What can be said here"},
}

// Connect has updates posted to an address, with the secret, and the menu of commands shown. It may
// be repeated.
//
// # Errors
//
// ErrInvalid (no secret, an address that Telegram does not take), ErrUnauthorized (the token is none),
// ErrUnavailable.
//
// https://core.telegram.org/bots/api#setwebhook
func Connect(ctx context.Context, cfg Config, address string) (Bot, error) {
	c := newClient(cfg)
	if err := CheckSecret(cfg.Secret); err != nil {
		return Bot{}, err
	}
	if u, err := url.Parse(address); err != nil || u.Host == "" || u.User != nil {
		return Bot{}, fmt.Errorf("connect %s: no web address: %w", address, tidemark.ErrInvalid)
	}
	if err := c.do(ctx, "setWebhook", map[string]any{"url": address, "secret_token": cfg.Secret, "allowed_updates": updates}, nil); err != nil {
		return Bot{}, err
	}
	var commands []map[string]string
	for _, e := range menu {
		commands = append(commands, map[string]string{"command": e.name, "description": e.text})
	}
	if err := c.do(ctx, "setMyCommands", map[string]any{"commands": commands}, nil); err != nil {
		return Bot{}, err
	}
	return Status(ctx, cfg)
}

// CheckSecret holds a webhook secret against what Telegram takes; ErrInvalid says what that is.
func CheckSecret(secret string) error {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
	switch {
	case secret == "":
		return fmt.Errorf("webhook secret: none is set: %w", tidemark.ErrInvalid)
	case len(secret) > 256 || strings.Trim(secret, letters) != "":
		return fmt.Errorf("webhook secret: it may hold up to 256 of A-Z, a-z, 0-9, _ and -: %w", tidemark.ErrInvalid)
	}
	return nil
}

// Status asks who the bot is and what became of its updates. Its errors are those of [Connect].
func Status(ctx context.Context, cfg Config) (Bot, error) {
	c := newClient(cfg)
	var b Bot
	if err := c.do(ctx, "getMe", struct{}{}, &b); err != nil {
		return b, err
	}
	return b, c.do(ctx, "getWebhookInfo", struct{}{}, &b.Webhook)
}

// Disconnect has no more updates posted. Those of the next 24 hours wait for another [Connect].
func Disconnect(ctx context.Context, cfg Config) error {
	return newClient(cfg).do(ctx, "deleteWebhook", struct{}{}, nil)
}

// do calls a method and reads its result into out.
func (c *client) do(ctx context.Context, method string, args, out any) error {
	result, refused := c.call(ctx, setupTimeout, method, args)
	if refused != nil {
		class := tidemark.ErrUnavailable
		switch refused.code {
		case 400:
			class = tidemark.ErrInvalid
		case 0, 401, 404:
			if refused.answered {
				class = tidemark.ErrUnauthorized
			}
		}
		return fmt.Errorf("%s: %w: %w", method, refused, class)
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(result, out); err != nil {
		return fmt.Errorf("%s: an answer that cannot be read: %w: %w", method, err, tidemark.ErrUnavailable)
	}
	return nil
}
