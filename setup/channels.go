package setup

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/channel"
	"github.com/tidemark-ai/tidemark/channel/telegram"
	"github.com/tidemark-ai/tidemark/channel/whatsapp"
	"github.com/tidemark-ai/tidemark/config"
	"github.com/tidemark-ai/tidemark/room/outbound"
	"github.com/tidemark-ai/tidemark/session"
)

// Channels wires the platforms whose secrets are set, by name.
func Channels(c *config.Config, rt tidemark.Runtime, network http.RoundTripper) map[string]channel.Channel {
	out, on := map[string]channel.Channel{}, map[string]bool{}
	for _, p := range platforms(c) {
		on[p.key] = p.on()
	}
	if w, s := c.Channels.WhatsApp, c.Secrets; on[whatsapp.Name] {
		out[whatsapp.Name] = channel.Channel{Rules: rules(c, w), Platform: whatsapp.New(whatsapp.Config{
			Token: s.WhatsAppToken.Reveal(), AppSecret: s.WhatsAppSecret.Reveal(), VerifyToken: s.WhatsAppVerify.Reveal(),
			Version: w.APIVersion, BaseURL: w.BaseURL, Transport: network, Runtime: rt})}
	}
	if t, s := c.Channels.Telegram, c.Secrets; on[telegram.Name] {
		out[telegram.Name] = channel.Channel{Rules: rules(c, t), Platform: telegram.New(telegram.Config{
			Token: s.TelegramToken.Reveal(), Secret: s.TelegramSecret.Reveal(), Username: t.Username, BaseURL: t.BaseURL, Transport: network, Runtime: rt})}
	}
	return out
}

// rules are what a configuration says of a channel.
func rules(c *config.Config, ch config.Channel) channel.Rules {
	return channel.Rules{Agent: ch.Agent, Account: ch.PhoneNumberID, Access: channel.Access(ch.Access), Allow: ch.Allow,
		Groups: ch.Groups == config.GroupsMention, DMScope: c.Session.DMScope}
}

// Courier carries what sessions send over whichever platform it is for, nil without any. count notes what
// became of each: sent, or the class of the failure.
func Courier(channels map[string]channel.Channel, count func(channel, outcome string)) tidemark.Courier {
	if len(channels) == 0 {
		return nil
	}
	return &couriers{channels, count}
}

// couriers are platforms by name.
type couriers struct {
	by    map[string]channel.Channel
	count func(channel, outcome string)
}

// Parts implements [tidemark.Courier].
func (c *couriers) Parts(to tidemark.Address, markdown string) []string {
	if ch, ok := c.by[to.Platform]; ok {
		return ch.Parts(to, markdown)
	}
	return nil
}

// Send implements [tidemark.Courier].
func (c *couriers) Send(ctx context.Context, m tidemark.Outgoing) (string, error) {
	if ch, ok := c.by[m.To.Platform]; ok {
		id, err := ch.Send(ctx, m)
		outcome, failed := "sent", (*tidemark.SendError)(nil)
		if errors.As(err, &failed) {
			outcome = string(failed.Class)
		} else if err != nil {
			outcome = string(tidemark.SendUnknown)
		}
		c.count(m.To.Platform, outcome)
		return id, err
	}
	return "", &tidemark.SendError{Class: tidemark.SendHalted, Text: "the channel is not set up"}
}

// Working implements [tidemark.Courier].
func (c *couriers) Working(ctx context.Context, to tidemark.Address, message string) error {
	if ch, ok := c.by[to.Platform]; ok {
		return ch.Working(ctx, to, message)
	}
	return fmt.Errorf("channel %s is not set up: %w", to.Platform, tidemark.ErrNotFound)
}

// Post hands a session what a person wrote over a channel. Who gave a command what it does not take is told
// so, as at other doors.
func Post(ctx context.Context, s *session.Session, in channel.Input) error {
	out := session.Input{Message: in.Message}
	if in.Edits+in.Revokes != "" {
		out = session.Amend(session.Amendment{Edits: in.Edits, Revokes: in.Revokes, Text: in.Message.PlainText()})
	}
	if in.Command != "" {
		line := "/" + in.Command
		if in.Text != "" {
			line += " " + in.Text
		}
		var err error
		if out, err = session.Command(line); err == nil {
			err = out.Validate()
		}
		if err != nil && in.Origin.To != nil {
			text := err.Error()
			if kind := tidemark.Sentinel(err); kind != nil {
				text = strings.TrimSuffix(text, ": "+kind.Error())
			}
			return say(ctx, "command/"+in.ID, in.Origin.To, text+". /help lists the commands.")(s)
		}
		if err != nil {
			return err
		}
	}
	out.ID, out.Origin, out.Quoted = in.ID, in.Origin, in.Quoted
	_, err := s.Post(ctx, out)
	if errors.Is(err, tidemark.ErrConflict) { // it is there, and a file could be had then and not now
		return nil
	}
	return err
}

// Here are the sessions that live in this process: each is opened by its key.
type Here func(ctx context.Context, key tidemark.Key, create bool) (*session.Session, error)

var _ channel.Sessions = Here(nil)

// Post implements [channel.Sessions].
func (h Here) Post(ctx context.Context, key tidemark.Key, in channel.Input) error {
	return h.tell(ctx, key, true, func(s *session.Session) error { return Post(ctx, s, in) })
}

// Delivered implements [channel.Sessions]. A session that is gone has nothing to hear.
func (h Here) Delivered(ctx context.Context, key tidemark.Key, d tidemark.Delivery) error {
	s, err := h(ctx, key, false)
	if errors.Is(err, tidemark.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return within(func(r *outbound.Room) error { return r.Delivered(ctx, d) })(s)
}

// Say implements [channel.Sessions].
func (h Here) Say(ctx context.Context, key tidemark.Key, id string, to tidemark.Address, text string) error {
	return h.tell(ctx, key, true, say(ctx, id, &to, text))
}

// say has a session send a line that is no part of the conversation, once for an id.
func say(ctx context.Context, id string, to *tidemark.Address, text string) func(*session.Session) error {
	return within(func(r *outbound.Room) error { return r.Say(ctx, id, to, text, nil) })
}
