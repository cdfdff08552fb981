package main

import (
	"context"
	"crypto/rand"
	"errors"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/channel/telegram"
	"github.com/tidemark-ai/tidemark/cmd/cli"
	"github.com/tidemark-ai/tidemark/cmd/node"
	"github.com/tidemark-ai/tidemark/config"
	"github.com/tidemark-ai/tidemark/host/native"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/setup"
)

// telegramPath is where updates are posted.
const telegramPath = "/webhooks/telegram"

func telegramConnect(ctx context.Context, m *cli.Main, f *struct {
	URL string `flag:"url"`
}) error {
	if f.URL == "" {
		return cli.Usagef("telegram connect: --url is missing: the address of the server as Telegram reaches it, such as https://chat.example.com")
	}
	return bot(ctx, m, func(ctx context.Context, cfg telegram.Config) error {
		if cfg.Secret == "" {
			return cli.Advise(errors.New("TELEGRAM_WEBHOOK_SECRET is not set"),
				"set it here and for the server, to something nobody can guess, such as "+rand.Text())
		}
		if telegram.CheckSecret(cfg.Secret) != nil {
			return cli.Advise(errors.New("TELEGRAM_WEBHOOK_SECRET is none that Telegram takes: 1 to 256 of A-Z, a-z, 0-9, _ and -"), "set it here and for the server to another, such as "+rand.Text())
		}
		if err := reachedBy(f.URL, cfg.BaseURL); err != nil {
			return err
		}
		b, err := telegram.Connect(ctx, cfg, strings.TrimSuffix(strings.TrimRight(f.URL, "/"), telegramPath)+telegramPath)
		if err != nil {
			return err
		}
		return printBot(m, b)
	})
}

// reachedBy refuses an address that Telegram posts nothing to. A Bot API server of one's own may post elsewhere, and
// says so itself (https://core.telegram.org/bots/api#using-a-local-bot-api-server).
func reachedBy(address, baseURL string) error {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return cli.Usagef("telegram connect: --url %.100s: want the address of the server, such as https://chat.example.com", address)
	}
	switch port := u.Port(); {
	case baseURL != "":
	case u.Scheme != "https":
		return cli.Usagef("telegram connect: --url %.100s: Telegram posts by HTTPS only; put a proxy with a certificate in front and give its address, such as https://chat.example.com", address)
	case !slices.Contains([]string{"", "443", "80", "88", "8443"}, port):
		return cli.Usagef("telegram connect: --url %.100s: Telegram posts to the ports 443, 80, 88 and 8443 only, not to %s", address, port)
	}
	return nil
}

func telegramStatus(ctx context.Context, m *cli.Main) error {
	return bot(ctx, m, func(ctx context.Context, cfg telegram.Config) error {
		b, err := telegram.Status(ctx, cfg)
		if err != nil {
			return err
		}
		return printBot(m, b)
	})
}

func telegramDisconnect(ctx context.Context, m *cli.Main) error {
	return bot(ctx, m, func(ctx context.Context, cfg telegram.Config) error {
		if err := telegram.Disconnect(ctx, cfg); err != nil {
			return err
		}
		m.Out.Printf("disconnected\n")
		return nil
	})
}

// bot calls f with the bot of the configuration.
func bot(ctx context.Context, m *cli.Main, f func(context.Context, telegram.Config) error) error {
	c, err := m.SettingsOf(ctx)
	if err != nil {
		return err
	}
	s := c.Secrets
	if s.TelegramToken == "" {
		return cli.Advise(errors.New("TELEGRAM_TOKEN is not set"), "ask @BotFather for a bot with /newbot and set TELEGRAM_TOKEN to the token that it gives")
	}
	err = f(ctx, telegram.Config{Token: s.TelegramToken.Reveal(), Secret: s.TelegramSecret.Reveal(), Username: c.Channels.Telegram.Username,
		BaseURL: c.Channels.Telegram.BaseURL, Transport: native.Transport(), Runtime: native.NewRuntime(m.Logger(c, true))})
	switch {
	case errors.Is(err, tidemark.ErrUnauthorized):
		return cli.Advise(err, "compare TELEGRAM_TOKEN with what @BotFather says to /token")
	case errors.Is(err, tidemark.ErrInvalid):
		return cli.Advise(err, "Telegram posts to HTTPS addresses on port 443, 80, 88 or 8443 that the internet reaches")
	}
	return err
}

// printBot says how a bot stands.
func printBot(m *cli.Main, b telegram.Bot) error {
	return cli.Either(m, b, func() error {
		groups := "hears commands and answers to it (privacy mode is on)"
		switch {
		case !b.Groups:
			groups = "joins none"
		case b.Reads:
			groups = "hears everything, answers when it is mentioned"
		}
		webhook := b.Webhook.URL
		if webhook == "" {
			webhook = "none: run `tidemark telegram connect`"
		}
		rows := [][]string{{"bot", "@" + b.Name + " (" + strconv.FormatInt(b.ID, 10) + ")"}, {"groups", groups}, {"webhook", webhook}, {"waiting", strconv.Itoa(b.Webhook.Pending)}}
		if b.Webhook.Error != "" {
			rows = append(rows, []string{"last error", time.Unix(b.Webhook.At, 0).UTC().Format(time.RFC3339) + " " + cli.OneLine(b.Webhook.Error, 200)})
		}
		cli.PrintTable(m.Out, rows)
		return nil
	})
}

func configShow(ctx context.Context, m *cli.Main) error {
	c, err := m.SettingsOf(ctx)
	if err != nil {
		return err
	}
	values := c.Values()
	return cli.Rows(m, values, []string{"KEY", "VALUE", "FROM"}, func(add func(...string)) {
		for _, v := range values {
			text := "-"
			if raw, err := json.Marshal(v.Value); err == nil && v.Value != nil {
				text = cli.OneLine(string(raw), 60)
			}
			add(v.Key, text, v.Origin)
		}
		for _, s := range []struct {
			name  string
			value config.Secret
		}{{"ANTHROPIC_API_KEY", c.Secrets.Anthropic}, {"OPENAI_API_KEY", c.Secrets.OpenAI}, {"EMBEDDINGS_API_KEY", c.Secrets.Embedding}, {"TIDEMARK_TOKEN", c.Secrets.Token}} {
			add(s.name, s.value.String(), "environment")
		}
	})
}

func configCheck(ctx context.Context, m *cli.Main) error {
	home, err := m.HomeDir()
	if err != nil {
		return err
	}
	c, path, err := m.Load(ctx, home)
	var mistakes *config.Error
	if errors.As(err, &mistakes) && m.JSON {
		return errors.Join(m.PrintJSON(map[string]any{"ok": false, "file": path, "problems": mistakes.Problems}), cli.ErrTold)
	}
	if err != nil {
		return err
	}
	c.Warnings = append(c.Warnings, refusals(c)...)
	for _, g := range append(setup.ChannelGaps(c), setup.ToolGaps(c, true)...) {
		c.Warnings = append(c.Warnings, g.Setting+" "+g.Message+"; "+node.GapFix(g))
	}
	return cli.Either(m, map[string]any{"ok": true, "file": path, "problems": []string{}, "warnings": c.Warnings}, func() error {
		if path == "" {
			path = "no document, all defaults"
		}
		for _, w := range c.Warnings {
			m.Err.Printf("warning: %s\n", w)
		}
		m.Out.Printf("ok: %s\n", path)
		return nil
	})
}

// refusals says what `tidemark serve` would refuse. It is no mistake of the document: secrets may be
// set where the server runs, and not here.
func refusals(c *config.Config) []string {
	var out []string
	c.Resolve()
	for _, err := range []error{mayListen(c.Server.Listen, c), cli.NeedKey(c)} {
		if own := (*cli.Fixed)(nil); errors.As(err, &own) {
			out = append(out, "`tidemark serve` would refuse to start here: "+own.Error()+"; "+own.Fix)
		}
	}
	return out
}

func configSchema(_ context.Context, m *cli.Main) error {
	_, err := m.Out.Write(config.Schema())
	return err
}
