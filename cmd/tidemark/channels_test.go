package main

import (
	"bytes"
	"context"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark/cmd/cli"
	"github.com/tidemark-ai/tidemark/internal/graph"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// TestChannelsTold: the greeting, the doctor and a server's /healthz say the same of the channels: what is on, and
// what is wrong with it.
func TestChannelsTold(t *testing.T) {
	const line = "WhatsApp (pairing, agent nope), Telegram off (channels.telegram.enabled is false)"
	home := t.TempDir()
	environ := []string{
		"TIDEMARK_HOME=" + home, "TIDEMARK_MODEL_PROVIDER=offline", "WHATSAPP_TOKEN=t", "WHATSAPP_APP_SECRET=s", "WHATSAPP_VERIFY_TOKEN=v",
		"TELEGRAM_TOKEN=4400:AAh", "TELEGRAM_WEBHOOK_SECRET=s", "TIDEMARK_CHANNELS_TELEGRAM_ENABLED=false",
		"TIDEMARK_CHANNELS_WHATSAPP_AGENT=nope", "TIDEMARK_CHANNELS_WHATSAPP_PHONENUMBERID=+49 151",
	}
	server := startServer(t, home, environ)
	for _, row := range []struct {
		name, want string
		args       []string
	}{
		{"doctor", "ok    channels   " + line, []string{"doctor"}},
		{"doctor of the server", "ok    channels   " + line, []string{"doctor", "--server", server}},
		{"greeting", "  channels " + line, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			var out bytes.Buffer
			m := &cli.Main{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &out, Environ: slices.Clone(environ)}
			m.Out, m.Err = &cli.Output{W: &out}, &cli.Output{W: &out}
			if row.args != nil {
				if code := m.Run(t.Context(), commands(), row.args); code != cli.ExitFailed {
					t.Errorf("exit %d", code)
				}
			} else {
				cfg, document, err := m.Load(t.Context(), home)
				if err != nil {
					t.Fatal(err)
				}
				greet(m, server, cfg.Resolve(), home, document, cfg)
			}
			for _, want := range []string{row.want, `agents.list has no such agent`, `is "+49 151", which is no id`, "TIDEMARK_CHANNELS_WHATSAPP_PHONENUMBERID", "list it, or correct the name"} {
				if !strings.Contains(out.String(), want) {
					t.Errorf("lacks %q:\n%s", want, out.String())
				}
			}
		})
	}
}

// TestPairingElsewhere: a stranger's code waits with the agent that the channel leads to; it is listed and entered
// without naming that agent.
func TestPairingElsewhere(t *testing.T) {
	api, err := graph.New(graph.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer api.Close()
	home := t.TempDir()
	environ := []string{
		"TIDEMARK_HOME=" + home, "TIDEMARK_MODEL_PROVIDER=offline", "WHATSAPP_TOKEN=" + graph.DefaultToken, "WHATSAPP_APP_SECRET=" + graph.DefaultAppSecret,
		"WHATSAPP_VERIFY_TOKEN=" + graph.DefaultVerifyToken, "TIDEMARK_CHANNELS_WHATSAPP_BASEURL=" + api.URL, "TIDEMARK_CHANNELS_WHATSAPP_AGENT=nope",
	}
	api.SetWebhook(startServer(t, home, environ) + "/webhooks/whatsapp")
	ctx, cancel := context.WithTimeout(t.Context(), tidemarktest.Patience)
	defer cancel()
	ada := graph.Person{Number: "4915123456789", Name: "Ada"}
	api.Say(ada, api.Text(ada, "hello"))
	if err := api.Await(ctx, 1); err != nil {
		t.Fatal(err)
	}
	code := regexp.MustCompile(`[A-Z2-9]{4}-[A-Z2-9]{4}`).FindString(api.Sent()[0].Text)
	for _, row := range []struct{ args, want string }{
		{"pairing ls", "with agent nope:\n"},
		{"pairing ls", code},
		{"pairing ls --json", strings.ReplaceAll(code, "-", "")},
		{"owner link " + strings.ToLower(code), "whatsapp 4915123456789"},
		{"owner ls", "4915123456789"},
		{"pairing ls", "owner"},
		{"owner unlink whatsapp +4915123456789", "is a stranger"},
		{"pairing block telegram 123456789", "is blocked"},
		{"pairing ls --agent main", "123456789"},
	} {
		var out bytes.Buffer
		m := &cli.Main{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &out, Environ: environ}
		if got := m.Run(t.Context(), commands(), strings.Fields(row.args)); got != cli.ExitOK || !strings.Contains(out.String(), row.want) {
			t.Errorf("%s: exit %d, lacks %q:\n%s", row.args, got, row.want, out.String())
		}
	}
	var out bytes.Buffer
	m := &cli.Main{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &out, Environ: environ}
	if m.Run(t.Context(), commands(), []string{"pairing", "ls", "--agent", "main"}); strings.Contains(out.String(), "4915123456789") {
		t.Errorf("the agent that is named has another's people:\n%s", out.String())
	}
}
