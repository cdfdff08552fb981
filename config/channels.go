package config

import "slices"

// Channel is how people reach agents over a messaging platform. It is set up when its secrets are.
type Channel struct {
	Enabled       bool
	Access        string
	Allow         []string
	Groups        string
	Agent         string
	BaseURL       string
	APIVersion    string // whatsapp
	PhoneNumberID string // whatsapp: of the number that alone is answered; empty for all
	Username      string // telegram: of the bot
}

// Channels are the platforms.
type Channels struct {
	WhatsApp Channel
	Telegram Channel
}

// Values of channels.*.access and channels.*.groups.
const (
	AccessOpen    = "open"
	AccessOwner   = "owner"
	GroupsMention = "mention"
)

// channelWarnings says what is allowed and hardly meant.
func (c *Config) channelWarnings() {
	for _, ch := range []struct {
		name string
		Channel
	}{{"whatsapp", c.Channels.WhatsApp}, {"telegram", c.Channels.Telegram}} {
		who := "everyone who writes"
		if ch.Access != AccessOpen {
			who = "everyone who is let in"
		}
		text := "channels." + ch.name + `.access is "` + ch.Access + `" and session.dmScope is "main": ` + who + ` shares the owner's own conversation and reads MEMORY.md`
		if ch.Enabled && ch.Access != AccessOwner && c.Session.DMScope == "main" && !slices.Contains(c.Warnings, text) {
			c.Warnings = append(c.Warnings, text)
		}
	}
}
