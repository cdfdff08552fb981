package setup

import (
	"strings"

	"github.com/tidemark-ai/tidemark/config"
)

// Gap is a secret for want of which a channel that somebody began to set up does not work.
type Gap struct{ Setting, Message string }

// ChannelGaps lists them. A channel of which nothing is set, or that is switched off, has none.
func ChannelGaps(c *config.Config) []Gap {
	var out []Gap
	s := c.Secrets
	if c.Channels.WhatsApp.Enabled {
		out = append(out, unset("WhatsApp", [][2]string{
			{"WHATSAPP_TOKEN", s.WhatsAppToken.Reveal()}, {"WHATSAPP_APP_SECRET", s.WhatsAppSecret.Reveal()}, {"WHATSAPP_VERIFY_TOKEN", s.WhatsAppVerify.Reveal()}})...)
	}
	if c.Channels.Telegram.Enabled {
		out = append(out, unset("Telegram", [][2]string{{"TELEGRAM_TOKEN", s.TelegramToken.Reveal()}, {"TELEGRAM_WEBHOOK_SECRET", s.TelegramSecret.Reveal()}})...)
		if t := s.TelegramToken.Reveal(); t != "" && !botToken(t) {
			out = append(out, Gap{"TELEGRAM_TOKEN", "is no token of a bot, which is digits, a colon, and letters (1234567890:AA…); copy all of what @BotFather says"})
		}
	}
	return out
}

// unset lists the secrets without a value, if others of the channel have one.
func unset(channel string, secrets [][2]string) []Gap {
	var out []Gap
	var set []string
	for _, s := range secrets {
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
		out[i].Message = "is not set, and " + strings.Join(set, ", ") + " is: " + channel + " does not work without it"
	}
	return out
}

// botToken reports whether a text has the form of a bot's token.
func botToken(s string) bool {
	id, secret, ok := strings.Cut(s, ":")
	return ok && id != "" && secret != "" && strings.Trim(id, "0123456789") == "" &&
		strings.Trim(strings.ToLower(secret), "abcdefghijklmnopqrstuvwxyz0123456789_-") == ""
}
