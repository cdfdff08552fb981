package main

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark/cmd/cli"
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
		{"no token", "status", environ[:2], cli.ExitFailed, []string{"TELEGRAM_TOKEN is not set", "@BotFather"}},
		{"no secret", "connect --url https://a.example", environ[:3], cli.ExitFailed, []string{"TELEGRAM_WEBHOOK_SECRET is not set", "such as "}},
		{"no address", "connect", environ, cli.ExitUsage, []string{"--url is missing"}},
		{"another's token", "status", append(environ[:2:2], "TELEGRAM_TOKEN=5:x"), cli.ExitFailed, []string{"Unauthorized", "/token"}},
		{"not connected", "status", environ, cli.ExitOK, []string{"@tidemark_test_bot (4400)", "run `tidemark telegram connect`"}},
		{"a secret that is none", "connect --url https://a.example", append(environ[:3:3], "TELEGRAM_WEBHOOK_SECRET=a b"), cli.ExitFailed, []string{"TELEGRAM_WEBHOOK_SECRET is none", "A-Z, a-z, 0-9", "what to do: set it here and for the server"}},
		{"no HTTPS, said here", "connect --url http://x.example", slices.Delete(slices.Clone(environ), 1, 2), cli.ExitUsage, []string{"by HTTPS only"}},
		{"no port of theirs, said here", "connect --url https://x.example:9000", slices.Delete(slices.Clone(environ), 1, 2), cli.ExitUsage, []string{"443, 80, 88 and 8443"}},
		{"no address at all", "connect --url chat", environ, cli.ExitUsage, []string{"want the address of the server"}},
		{"no HTTPS, said by the API", "connect --url http://a.example", environ, cli.ExitFailed, []string{"HTTPS URL must be provided", "443"}},
		{"connect", "connect --url https://a.example/", environ, cli.ExitOK, []string{"https://a.example/webhooks/telegram\n", "privacy mode is on"}},
		{"connect with the path", "connect --url https://a.example/webhooks/telegram", environ, cli.ExitOK, []string{" https://a.example/webhooks/telegram\n"}},
		{"as JSON", "status --json", environ, cli.ExitOK, []string{`"url": "https://a.example/webhooks/telegram"`}},
		{"disconnect", "disconnect", environ, cli.ExitOK, []string{"disconnected"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out bytes.Buffer
			m := &cli.Main{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &out, Environ: tt.environ}
			if code := m.Run(t.Context(), commands(), append([]string{"telegram"}, strings.Fields(tt.args)...)); code != tt.code {
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

// TestTelegramTalk has a person talk with a real server over Telegram: once answered, however often
// Telegram posts, with the typing indicator, in a topic, after a flood; a stranger gets no answer.
func TestTelegramTalk(t *testing.T) {
	api := tidemarktest.NewBotAPI(t)
	home := t.TempDir()
	environ := []string{
		"TIDEMARK_HOME=" + home, "TIDEMARK_CHANNELS_TELEGRAM_BASEURL=" + api.URL, "TIDEMARK_MODEL_PROVIDER=offline",
		"TELEGRAM_TOKEN=" + api.Token, "TELEGRAM_WEBHOOK_SECRET=s-1", "TIDEMARK_CHANNELS_TELEGRAM_ALLOW=77",
		"TIDEMARK_CHANNELS_TELEGRAM_ACCESS=allow", "TIDEMARK_CHANNELS_TELEGRAM_GROUPS=mention",
	}
	server := startServer(t, home, environ)
	var out bytes.Buffer
	m := &cli.Main{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &out, Environ: environ}
	// The fake takes the server's address, which Telegram would not.
	if code := m.Run(t.Context(), commands(), []string{"telegram", "connect", "--url", server}); code != cli.ExitOK {
		t.Fatalf("connect: %s", out.String())
	}
	ctx, cancel := context.WithTimeout(t.Context(), tidemarktest.Patience)
	defer cancel()

	api.Fail(tidemarktest.BotFault{Code: 429, Text: "Too Many Requests: retry after 1", After: 1})
	first := api.Write(77, map[string]any{"text": "hello **there**"})
	deliver(t, api)
	sent, err := api.WaitSent(ctx, 1)
	if err != nil || sent[0].Chat != 77 || !strings.Contains(sent[0].Text, "offline model") {
		t.Fatalf("%+v, %v", sent, err)
	}

	api.Repeat(first)
	api.Write(78, map[string]any{"text": "a stranger"})
	api.Chat(-1001)
	api.Write(-1001, map[string]any{"text": "not for us", "from": map[string]any{"id": 77, "first_name": "Ada"}})
	api.Write(-1001, map[string]any{
		"text": "@tidemark_test_bot /status", "from": map[string]any{"id": 77, "first_name": "Ada"}, "message_thread_id": 7, "is_topic_message": true,
		"entities": []any{map[string]any{"type": "mention", "offset": 0, "length": 18}},
	})
	deliver(t, api)
	if sent, err = api.WaitSent(ctx, 2); err != nil || sent[1].Chat != -1001 || sent[1].Thread != 7 || !strings.Contains(strings.ToLower(sent[1].Text), "context") {
		t.Fatalf("%+v, %v", sent[1:], err)
	}
	api.Write(77, map[string]any{"text": "the last"})
	deliver(t, api)
	if sent, err = api.WaitSent(ctx, 3); err != nil || len(sent) != 3 || sent[2].Chat != 77 {
		t.Errorf("%+v, %v", sent, err)
	}
}

func deliver(t *testing.T, api *tidemarktest.BotAPI) {
	t.Helper()
	if err := api.Deliver(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// startServer runs a server in this process until the test ends, and returns its address.
func startServer(t *testing.T, home string, environ []string) string {
	t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan struct{})
	var out bytes.Buffer
	go func() {
		defer close(ended)
		m := &cli.Main{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &out, Environ: environ}
		if code := m.Run(ctx, commands(), []string{"serve", "--listen", "127.0.0.1:0"}); code != cli.ExitOK {
			t.Errorf("serve: exit %d\n%s", code, out.String())
		}
	}()
	t.Cleanup(func() {
		stop()
		<-ended
	})
	for {
		if s := cli.ReadServerFile(home); s.URL != "" {
			return s.URL
		}
		select {
		case <-ended:
			t.Fatal("the server ended")
		case <-time.After(10 * time.Millisecond): // a server starts; nothing tells us when
		}
	}
}
