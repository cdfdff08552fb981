package setup_test

import (
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark/config"
	"github.com/tidemark-ai/tidemark/setup"
)

// TestChannelGaps: a channel that is set up by half is told, by the names of what is missing.
func TestChannelGaps(t *testing.T) {
	for _, row := range []struct {
		name, environ, want string
	}{
		{"nothing is set", "", ""},
		{"all of WhatsApp", "WHATSAPP_TOKEN=t WHATSAPP_APP_SECRET=s WHATSAPP_VERIFY_TOKEN=v", ""},
		{"no app secret", "WHATSAPP_TOKEN=t WHATSAPP_VERIFY_TOKEN=v", "WHATSAPP_APP_SECRET"},
		{"only a token", "WHATSAPP_TOKEN=t", "WHATSAPP_APP_SECRET WHATSAPP_VERIFY_TOKEN"},
		{"switched off", "WHATSAPP_TOKEN=t TIDEMARK_CHANNELS_WHATSAPP_ENABLED=false", ""},
		{"all of Telegram", "TELEGRAM_TOKEN=4400:AAh-x_1 TELEGRAM_WEBHOOK_SECRET=s", ""},
		{"a name for a token", "TELEGRAM_TOKEN=my_bot TELEGRAM_WEBHOOK_SECRET=s", "TELEGRAM_TOKEN"},
		{"half a token", "TELEGRAM_TOKEN=4400: TELEGRAM_WEBHOOK_SECRET=s", "TELEGRAM_TOKEN"},
		{"no webhook secret", "TELEGRAM_TOKEN=4400:AAh", "TELEGRAM_WEBHOOK_SECRET"},
	} {
		t.Run(row.name, func(t *testing.T) {
			c, err := config.Load("config.json", nil, strings.Fields(row.environ))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, g := range setup.ChannelGaps(c) {
				got = append(got, g.Setting)
				if g.Message == "" || strings.Contains(g.Message, "AAh") {
					t.Errorf("%s: %q", g.Setting, g.Message)
				}
			}
			if strings.Join(got, " ") != row.want {
				t.Errorf("told %q, want %q", got, row.want)
			}
		})
	}
}
