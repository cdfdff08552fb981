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
		{"only a token", "WHATSAPP_TOKEN=t", "WHATSAPP_APP_SECRET, WHATSAPP_VERIFY_TOKEN"},
		{"switched off", "WHATSAPP_TOKEN=t TIDEMARK_CHANNELS_WHATSAPP_ENABLED=false", ""},
		{"all of Telegram", "TELEGRAM_TOKEN=4400:AAh-x_1 TELEGRAM_WEBHOOK_SECRET=s", ""},
		{"a name for a token", "TELEGRAM_TOKEN=my_bot TELEGRAM_WEBHOOK_SECRET=s", "TELEGRAM_TOKEN"},
		{"half a token", "TELEGRAM_TOKEN=4400: TELEGRAM_WEBHOOK_SECRET=s", "TELEGRAM_TOKEN"},
		{"no webhook secret", "TELEGRAM_TOKEN=4400:AAh", "TELEGRAM_WEBHOOK_SECRET"},
		{"a token with a space", "WHATSAPP_TOKEN=EAA G WHATSAPP_APP_SECRET=s WHATSAPP_VERIFY_TOKEN=v", "WHATSAPP_TOKEN"},
		{"a webhook secret with a space", "TELEGRAM_TOKEN=4400:AAh TELEGRAM_WEBHOOK_SECRET=a b", "TELEGRAM_WEBHOOK_SECRET"},
		{"an id", "TIDEMARK_CHANNELS_WHATSAPP_PHONENUMBERID=4400", ""},
		{"a number for an id", "TIDEMARK_CHANNELS_WHATSAPP_PHONENUMBERID=+49 151", "channels.whatsapp.phoneNumberId"},
		{"a number for an id, switched off", "TIDEMARK_CHANNELS_WHATSAPP_PHONENUMBERID=+49 TIDEMARK_CHANNELS_WHATSAPP_ENABLED=false", ""},
		{"a version", "TIDEMARK_CHANNELS_WHATSAPP_APIVERSION=v25.0", ""},
		{"no version", "TIDEMARK_CHANNELS_WHATSAPP_APIVERSION=25", "channels.whatsapp.apiVersion"},
		{"half a version", "TIDEMARK_CHANNELS_WHATSAPP_APIVERSION=v25.", "channels.whatsapp.apiVersion"},
		{"a list without names", "TIDEMARK_CHANNELS_WHATSAPP_ACCESS=allow", "channels.whatsapp.access (odd)"},
		{"a list", "TIDEMARK_CHANNELS_WHATSAPP_ACCESS=allow TIDEMARK_CHANNELS_WHATSAPP_ALLOW=+4915123456789,US.134", ""},
		{"a list of no numbers", "TIDEMARK_CHANNELS_WHATSAPP_ALLOW=abc", "channels.whatsapp.allow"},
		{"a list of names of Telegram", "TIDEMARK_CHANNELS_TELEGRAM_ALLOW=77,@ada", "channels.telegram.allow"},
		{"an agent that is not listed", "TIDEMARK_CHANNELS_TELEGRAM_AGENT=nope", "channels.telegram.agent (odd)"},
	} {
		t.Run(row.name, func(t *testing.T) {
			c, err := config.Load("config.json", nil, strings.Split(row.environ, " ")) // a space that does not divide is another
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, g := range setup.ChannelGaps(c) {
				setting := g.Setting
				if g.Odd {
					setting += " (odd)"
				}
				got = append(got, setting)
				if g.Fix == "" && strings.HasPrefix(g.Setting, "channels.") {
					t.Errorf("%s: no fix", g.Setting)
				}
				if g.Message == "" || strings.Contains(g.Message, "AAh") || strings.Contains(g.Message, "EAA") {
					t.Errorf("%s: %q", g.Setting, g.Message)
				}
			}
			if strings.Join(got, ", ") != row.want {
				t.Errorf("told %q, want %q", got, row.want)
			}
		})
	}
}

// TestChannelGapWords: one secret is set, two are.
func TestChannelGapWords(t *testing.T) {
	for _, row := range []struct{ environ, want string }{
		{"WHATSAPP_TOKEN=t WHATSAPP_APP_SECRET=s", "is not set, and WHATSAPP_TOKEN and WHATSAPP_APP_SECRET are: WhatsApp does not work without it"},
		{"TELEGRAM_TOKEN=4400:AAh", "is not set, and TELEGRAM_TOKEN is: Telegram does not work without it"},
	} {
		c, err := config.Load("config.json", nil, strings.Fields(row.environ))
		if err != nil {
			t.Fatal(err)
		}
		if gaps := setup.ChannelGaps(c); len(gaps) != 1 || gaps[0].Message != row.want {
			t.Errorf("%s: %+v, want %q", row.environ, gaps, row.want)
		}
	}
}

// TestListedAgent: an agent that is listed, or is named by nobody else, is what was meant; a mistake says where it stands.
func TestListedAgent(t *testing.T) {
	const listed = `{"channels":{"whatsapp":{"agent":"work"}},"agents":{"list":[{"id":"work"}]}}`
	if gaps := setup.ChannelGaps(set(t, listed)); len(gaps) != 0 {
		t.Errorf("%+v", gaps)
	}
	gaps := setup.ChannelGaps(set(t, "{\n  \"channels\":{\"whatsapp\":{\"agent\":\"nope\"}}}"))
	if len(gaps) != 1 || !strings.Contains(gaps[0].Fix, "test.jsonc:2:") || !strings.Contains(gaps[0].Message, `"nope"`) {
		t.Errorf("%+v", gaps)
	}
}

// TestChannelLine: what is on, for whom and to whom, and why something is not; what it calls on is what is wired.
func TestChannelLine(t *testing.T) {
	const all = "WHATSAPP_TOKEN=t WHATSAPP_APP_SECRET=s WHATSAPP_VERIFY_TOKEN=v "
	for _, row := range []struct{ environ, want string }{
		{"", "WhatsApp off, Telegram off"},
		{all, "WhatsApp (pairing, agent main), Telegram off"},
		{all + "TIDEMARK_CHANNELS_WHATSAPP_ENABLED=false", "WhatsApp off (channels.whatsapp.enabled is false), Telegram off"},
		{"TIDEMARK_CHANNELS_WHATSAPP_ENABLED=false", "WhatsApp off, Telegram off"},
		{"WHATSAPP_TOKEN=t", "WhatsApp off (WHATSAPP_APP_SECRET is not set), Telegram off"},
		{all + "TELEGRAM_TOKEN=4400:A TELEGRAM_WEBHOOK_SECRET=s TIDEMARK_CHANNELS_TELEGRAM_ACCESS=open TIDEMARK_CHANNELS_TELEGRAM_AGENT=work",
			"WhatsApp (pairing, agent main), Telegram (open, agent work)"},
	} {
		c := set(t, "", strings.Fields(row.environ)...)
		if got := setup.ChannelLine(c); got != row.want {
			t.Errorf("%s: %q, want %q", row.environ, got, row.want)
		}
		wired := setup.Channels(c, nil, nil)
		for _, st := range setup.ChannelStates(c) {
			if _, is := wired[st.Channel]; is != st.On {
				t.Errorf("%s: %s is on %v, and wired %v", row.environ, st.Channel, st.On, is)
			}
		}
	}
}
