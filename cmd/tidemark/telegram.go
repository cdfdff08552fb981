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

	"github.com/spf13/cobra"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/channel/telegram"
	"github.com/tidemark-ai/tidemark/config"
	"github.com/tidemark-ai/tidemark/host/native"
)

// telegramPath is where updates are posted.
const telegramPath = "/webhooks/telegram"

func (m *Main) telegramCommand() *cobra.Command {
	return group("telegram", "Connect a Telegram bot", `  tidemark telegram connect --url https://chat.example.com
  tidemark telegram status
  tidemark telegram disconnect`,
		m.telegramConnect(), m.telegramStatus(), m.telegramDisconnect())
}

func (m *Main) telegramConnect() *cobra.Command {
	var address string
	cmd := m.jsonFlag(&cobra.Command{Use: "connect", Short: "Have Telegram post what people write to a server", Args: cobra.NoArgs,
		Long: `Tell Telegram where the server is, which secret to send with each update, and
which commands to offer. The token and the secret come from TELEGRAM_TOKEN and
TELEGRAM_WEBHOOK_SECRET; the server needs the same two. It may be repeated.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if address == "" {
				return usagef("telegram connect: --url is missing: the address of the server as Telegram reaches it, such as https://chat.example.com")
			}
			return m.bot(cmd.Context(), func(ctx context.Context, cfg telegram.Config) error {
				if cfg.Secret == "" {
					return &fixed{errors.New("TELEGRAM_WEBHOOK_SECRET is not set"),
						"set it here and for the server, to something nobody can guess, such as " + rand.Text()}
				}
				if telegram.CheckSecret(cfg.Secret) != nil {
					return &fixed{errors.New("TELEGRAM_WEBHOOK_SECRET is none that Telegram takes: 1 to 256 of A-Z, a-z, 0-9, _ and -"), "set it here and for the server to another, such as " + rand.Text()}
				}
				if err := reachedBy(address, cfg.BaseURL); err != nil {
					return err
				}
				b, err := telegram.Connect(ctx, cfg, strings.TrimSuffix(strings.TrimRight(address, "/"), telegramPath)+telegramPath)
				if err != nil {
					return err
				}
				return m.printBot(b)
			})
		}})
	cmd.Flags().StringVar(&address, "url", "", "address of the server as Telegram reaches it, by HTTPS")
	return cmd
}

// reachedBy refuses an address that Telegram posts nothing to. A Bot API server of one's own may post elsewhere, and
// says so itself (https://core.telegram.org/bots/api#using-a-local-bot-api-server).
func reachedBy(address, baseURL string) error {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return usagef("telegram connect: --url %.100s: want the address of the server, such as https://chat.example.com", address)
	}
	switch port := u.Port(); {
	case baseURL != "":
	case u.Scheme != "https":
		return usagef("telegram connect: --url %.100s: Telegram posts by HTTPS only; put a proxy with a certificate in front and give its address, such as https://chat.example.com", address)
	case !slices.Contains([]string{"", "443", "80", "88", "8443"}, port):
		return usagef("telegram connect: --url %.100s: Telegram posts to the ports 443, 80, 88 and 8443 only, not to %s", address, port)
	}
	return nil
}

func (m *Main) telegramStatus() *cobra.Command {
	return m.jsonFlag(&cobra.Command{Use: "status", Short: "Show who the bot is and whether its updates arrive", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return m.bot(cmd.Context(), func(ctx context.Context, cfg telegram.Config) error {
				b, err := telegram.Status(ctx, cfg)
				if err != nil {
					return err
				}
				return m.printBot(b)
			})
		}})
}

func (m *Main) telegramDisconnect() *cobra.Command {
	return &cobra.Command{Use: "disconnect", Short: "Have Telegram post nothing any more", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return m.bot(cmd.Context(), func(ctx context.Context, cfg telegram.Config) error {
				if err := telegram.Disconnect(ctx, cfg); err != nil {
					return err
				}
				m.out.printf("disconnected\n")
				return nil
			})
		}}
}

// bot calls f with the bot of the configuration.
func (m *Main) bot(ctx context.Context, f func(context.Context, telegram.Config) error) error {
	home, err := m.homeDir()
	if err != nil {
		return err
	}
	c, _, err := m.load(ctx, home)
	if err != nil {
		return err
	}
	s := c.Secrets
	if s.TelegramToken == "" {
		return &fixed{errors.New("TELEGRAM_TOKEN is not set"), "ask @BotFather for a bot with /newbot and set TELEGRAM_TOKEN to the token that it gives"}
	}
	err = f(ctx, m.telegramConfig(c))
	switch {
	case errors.Is(err, tidemark.ErrUnauthorized):
		return &fixed{err, "compare TELEGRAM_TOKEN with what @BotFather says to /token"}
	case errors.Is(err, tidemark.ErrInvalid):
		return &fixed{err, "Telegram posts to HTTPS addresses on port 443, 80, 88 or 8443 that the internet reaches"}
	}
	return err
}

func (m *Main) telegramConfig(c *config.Config) telegram.Config {
	return telegram.Config{
		Token: c.Secrets.TelegramToken.Reveal(), Secret: c.Secrets.TelegramSecret.Reveal(),
		Username: c.Channels.Telegram.Username, BaseURL: c.Channels.Telegram.BaseURL,
		Transport: native.Transport(), Runtime: native.NewRuntime(m.logger(c, true)),
	}
}

// printBot says how a bot stands.
func (m *Main) printBot(b telegram.Bot) error {
	if m.json {
		return m.printJSON(b)
	}
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
	rows := [][]string{
		{"bot", "@" + b.Name + " (" + strconv.FormatInt(b.ID, 10) + ")"},
		{"groups", groups},
		{"webhook", webhook},
		{"waiting", strconv.Itoa(b.Webhook.Pending)},
	}
	if b.Webhook.Error != "" {
		rows = append(rows, []string{"last error", time.Unix(b.Webhook.At, 0).UTC().Format(time.RFC3339) + " " + oneLine(b.Webhook.Error, 200)})
	}
	table(m.out, rows)
	return nil
}
