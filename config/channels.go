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

func channelKeys() []Key {
	keys := sharedKeys("whatsapp", func(c *Config) *Channel { return &c.Channels.WhatsApp })
	keys = append(keys, Key{
		Name: "channels.whatsapp.phoneNumberId", Type: Text,
		Doc: "Id of the number of ours that is answered: digits that are not the number, as API Setup shows them. When it is not set: every number of the app.",
		at:  func(c *Config, _ string) any { return &c.Channels.WhatsApp.PhoneNumberID },
	}, Key{
		Name: "channels.whatsapp.apiVersion", Type: Text,
		Doc: "Version of the Graph API, such as v25.0. When it is not set: the one that was tried with this program.",
		at:  func(c *Config, _ string) any { return &c.Channels.WhatsApp.APIVersion },
	})
	keys = append(keys, sharedKeys("telegram", func(c *Config) *Channel { return &c.Channels.Telegram })...)
	return append(keys, Key{
		Name: "channels.telegram.username", Type: Text,
		Doc: "Name of the bot without @, by which groups mention it. When it is not set: any bot that is mentioned there.",
		at:  func(c *Config, _ string) any { return &c.Channels.Telegram.Username },
	})
}

// sharedKeys are those of every platform.
func sharedKeys(name string, at func(*Config) *Channel) []Key {
	prefix := "channels." + name + "."
	return []Key{
		{Name: prefix + "enabled", Type: Switch, Default: "true", at: func(c *Config, _ string) any { return &at(c).Enabled },
			Doc: "Take webhooks and send answers, when the channel's secrets are set."},
		{Name: prefix + "access", Type: Choice, Default: `"pairing"`, Values: "owner pairing allow open", at: func(c *Config, _ string) any { return &at(c).Access },
			Doc: "Who may talk beside the owner: nobody (owner), whom the owner lets in by a code (pairing) or whom the list beside names (allow), everyone (open)."},
		{Name: prefix + "allow", Type: Names, Default: `[]`, at: func(c *Config, _ string) any { return &at(c).Allow },
			Doc: "Who may talk without a code: phone numbers in any form, or ids of the platform. Without effect when access is owner."},
		{Name: prefix + "groups", Type: Choice, Default: `"off"`, Values: "off mention", at: func(c *Config, _ string) any { return &at(c).Groups },
			Doc: "Whether groups are answered: never, or when someone who may talk mentions us."},
		{Name: prefix + "agent", Type: Name, Default: `"main"`, at: func(c *Config, _ string) any { return &at(c).Agent },
			Doc: "The agent that people reach; name it in agents.list unless it is main. People and codes are its own."},
		{Name: prefix + "baseUrl", Type: URL, at: func(c *Config, _ string) any { return &at(c).BaseURL },
			Doc: "Endpoint other than the platform's own: a proxy, or a stand-in for tests."},
	}
}

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
