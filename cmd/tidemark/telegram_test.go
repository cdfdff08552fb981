package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// TestTelegram runs the commands against a fake Bot API.
func TestTelegram(t *testing.T) {
	api := tidemarktest.NewBotAPI(t)
	environ := []string{
		"TIDEMARK_HOME=" + t.TempDir(), "TIDEMARK_CHANNELS_TELEGRAM_BASEURL=" + api.URL,
		"TELEGRAM_TOKEN=" + api.Token, "TELEGRAM_WEBHOOK_SECRET=s-1",
	}
	for _, tt := range []struct {
		name, args string
		environ    []string
		code       int
		want       []string // of what is printed
	}{
		{"no token", "status", environ[:2], exitFailed, []string{"TELEGRAM_TOKEN is not set", "@BotFather"}},
		{"no secret", "connect --url https://a.example", environ[:3], exitFailed, []string{"TELEGRAM_WEBHOOK_SECRET is not set", "such as "}},
		{"no address", "connect", environ, exitUsage, []string{"--url is missing"}},
		{"another's token", "status", append(environ[:2:2], "TELEGRAM_TOKEN=5:x"), exitFailed, []string{"Unauthorized", "/token"}},
		{"not connected", "status", environ, exitOK, []string{"@tidemark_test_bot (4400)", "run `tidemark telegram connect`"}},
		{"no HTTPS", "connect --url http://a.example", environ, exitFailed, []string{"HTTPS URL must be provided", "443"}},
		{"connect", "connect --url https://a.example/", environ, exitOK, []string{"https://a.example/webhooks/telegram\n", "privacy mode is on"}},
		{"connect with the path", "connect --url https://a.example/webhooks/telegram", environ, exitOK, []string{" https://a.example/webhooks/telegram\n"}},
		{"as JSON", "status --json", environ, exitOK, []string{`"url": "https://a.example/webhooks/telegram"`}},
		{"disconnect", "disconnect", environ, exitOK, []string{"disconnected"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out bytes.Buffer
			m := &Main{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &out, Environ: tt.environ}
			if code := m.Run(t.Context(), append([]string{"telegram"}, strings.Fields(tt.args)...)); code != tt.code {
				t.Errorf("exit %d, want %d", code, tt.code)
			}
			for _, want := range tt.want {
				if !strings.Contains(out.String(), want) {
					t.Errorf("%q is not in\n%s", want, out.String())
				}
			}
			if strings.Contains(out.String(), "AAtest") {
				t.Errorf("the token is in\n%s", out.String())
			}
		})
	}
}
