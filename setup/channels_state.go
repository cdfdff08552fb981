package setup

import (
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/channel"
	"github.com/tidemark-ai/tidemark/channel/telegram"
	"github.com/tidemark-ai/tidemark/channel/whatsapp"
	"github.com/tidemark-ai/tidemark/config"
)

// ChannelState is how a channel is set up.
type ChannelState struct {
	Channel string // as in the names of its keys
	On      bool
	Access  string // who may talk
	Agent   string // that people reach
	Text    string // all of it for people: "WhatsApp (pairing, agent main)"
}

// platform is a channel as it is configured.
type platform struct {
	key, name string
	config.Channel
	secrets [][2]string // what is to be set, with its value
	needed  int         // so many of them make it work
}

// prefix begins the names of its keys.
func (p platform) prefix() string { return "channels." + p.key + "." }

// on reports whether it works at all.
func (p platform) on() bool {
	return p.Enabled && !slices.ContainsFunc(p.secrets[:p.needed], func(s [2]string) bool { return s[1] == "" })
}

// platforms lists all that there are.
func platforms(c *config.Config) []platform {
	s := c.Secrets
	return []platform{
		{whatsapp.Name, "WhatsApp", c.Channels.WhatsApp, [][2]string{{"WHATSAPP_TOKEN", s.WhatsAppToken.Reveal()},
			{"WHATSAPP_APP_SECRET", s.WhatsAppSecret.Reveal()}, {"WHATSAPP_VERIFY_TOKEN", s.WhatsAppVerify.Reveal()}}, 2},
		{telegram.Name, "Telegram", c.Channels.Telegram, [][2]string{{"TELEGRAM_TOKEN", s.TelegramToken.Reveal()},
			{"TELEGRAM_WEBHOOK_SECRET", s.TelegramSecret.Reveal()}}, 2},
	}
}

// ChannelStates says of each channel whether it is on, who may talk there and with which agent.
func ChannelStates(c *config.Config) []ChannelState {
	var out []ChannelState
	for _, p := range platforms(c) {
		st := ChannelState{Channel: p.key, On: p.on(), Access: p.Access, Agent: p.Agent}
		missing := unset(p)
		switch {
		case st.On:
			st.Text = p.name + " (" + p.Access + ", agent " + p.Agent + ")"
		case !p.Enabled && p.begun():
			st.Text = p.name + " off (" + p.prefix() + "enabled is false)"
		case p.Enabled && len(missing) > 0:
			st.Text = p.name + " off (" + missing[0].Setting + " is not set)"
		default:
			st.Text = p.name + " off"
		}
		out = append(out, st)
	}
	return out
}

// ChannelLine is all channels in one line for people.
func ChannelLine(c *config.Config) string {
	var out []string
	for _, st := range ChannelStates(c) {
		out = append(out, st.Text)
	}
	return strings.Join(out, ", ")
}

// begun reports whether any of the secrets is set.
func (p platform) begun() bool {
	return slices.ContainsFunc(p.secrets, func(s [2]string) bool { return s[1] != "" })
}

// Gap is a setting for which a channel that somebody set up does not work, or hardly as it was meant.
type Gap struct {
	Setting string
	Message string
	Fix     string // empty when the fix is to set a secret, which each host has its own way for
	Odd     bool   // it is obeyed
}

// ChannelGaps lists them. A channel that is switched off has none.
func ChannelGaps(c *config.Config) []Gap {
	var out []Gap
	for _, p := range platforms(c) {
		if p.Enabled {
			out = append(append(append(out, unset(p)...), misshapen(p)...), mistaken(c, p)...)
		}
	}
	return out
}

// unset lists the secrets without a value, if others of the channel have one.
func unset(p platform) []Gap {
	var out []Gap
	var set []string
	for _, s := range p.secrets {
		if s[1] != "" {
			set = append(set, s[0])
			continue
		}
		out = append(out, Gap{Setting: s[0]})
	}
	if len(set) == 0 {
		return nil
	}
	for i := range out {
		is := " is: "
		if len(set) > 1 {
			is = " are: "
		}
		out[i].Message = "is not set, and " + strings.Join(set, " and ") + is + p.name + " does not work without it"
	}
	return out
}

// misshapen lists the secrets that cannot be what they are set for. None of them is told.
func misshapen(p platform) []Gap {
	var out []Gap
	for _, s := range p.secrets {
		wrong := ""
		switch name, value := s[0], s[1]; {
		case value == "":
		case name == "TELEGRAM_TOKEN" && !botToken(value):
			wrong = "is no token of a bot, which is digits, a colon, and letters (1234567890:AA…); copy all of what @BotFather says"
		case name == "TELEGRAM_WEBHOOK_SECRET":
			if err := telegram.CheckSecret(value); err != nil {
				wrong = "is none that Telegram takes: 1 to 256 of A-Z, a-z, 0-9, _ and -"
			}
		case name == "WHATSAPP_VERIFY_TOKEN" && value != strings.TrimSpace(value):
			wrong = "begins or ends with white space, and Meta's page leaves that away"
		case p.key == whatsapp.Name && name != "WHATSAPP_VERIFY_TOKEN" && strings.ContainsFunc(value, unicode.IsSpace):
			wrong = "has white space in it, and Meta's have none; copy it again"
		}
		if wrong != "" {
			out = append(out, Gap{Setting: s[0], Message: wrong})
		}
	}
	return out
}

// mistaken lists the keys that cannot be meant as they are.
func mistaken(c *config.Config, p platform) []Gap {
	var out []Gap
	add := func(key, message, fix string, odd bool) {
		key = p.prefix() + key
		if where := c.Origin[key]; where != "" {
			fix += " (" + where + ")"
		}
		out = append(out, Gap{Setting: key, Message: message, Fix: fix, Odd: odd})
	}
	if id := p.PhoneNumberID; strings.Trim(id, digits) != "" {
		add("phoneNumberId", "is "+quote(id)+", which is no id: every message would be taken for one to another number",
			"set it to the digits that Meta's API Setup shows as Phone number ID, which are not the number", false)
	}
	if v := p.APIVersion; v != "" && !versionLike(v) {
		add("apiVersion", "is "+quote(v)+", which Meta has no API of", "write it as v25.0", false)
	}
	for _, name := range p.Allow {
		short := strings.Trim(name, digits) == "" // of no real person, and it would match
		if _, err := channel.Named(p.key, name); err != nil && !short {
			add("allow", strings.TrimSuffix(err.Error(), ": "+tidemark.ErrInvalid.Error()), "correct the list, or take it out", false)
		}
	}
	if p.Access == string(channel.AccessAllow) && len(p.Allow) == 0 {
		add("access", `is "allow", and `+p.prefix()+"allow is empty: nobody may talk but the owner", `fill the list, or set "owner" or "pairing"`, true)
	}
	if a := p.Agent; a != mainAgent && !slices.ContainsFunc(c.Agents, func(l config.Agent) bool { return l.ID == a }) {
		add("agent", "is "+quote(a)+", and agents.list has no such agent: it is made, with the general settings, and people and codes are its own",
			"list it, or correct the name", true)
	}
	return out
}

// mainAgent is the one that needs no entry in agents.list.
const mainAgent = "main"

const digits = "0123456789"

// quote shows what was set; it is no secret.
func quote(s string) string {
	const most = 60
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return strconv.Quote(s)
}

// versionLike reports whether a text has the form of a version of Meta's API.
func versionLike(s string) bool {
	major, minor, ok := strings.Cut(strings.TrimPrefix(s, "v"), ".")
	return ok && s[0] == 'v' && major != "" && minor != "" && strings.Trim(major+minor, digits) == ""
}

// botToken reports whether a text has the form of a bot's token.
func botToken(s string) bool {
	id, secret, ok := strings.Cut(s, ":")
	return ok && id != "" && secret != "" && strings.Trim(id, digits) == "" &&
		strings.Trim(strings.ToLower(secret), "abcdefghijklmnopqrstuvwxyz0123456789_-") == ""
}
