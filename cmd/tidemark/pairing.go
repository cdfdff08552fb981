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
	"github.com/tidemark-ai/tidemark/channel"
	"github.com/tidemark-ai/tidemark/channel/telegram"
	"github.com/tidemark-ai/tidemark/cmd/cli"
	"github.com/tidemark-ai/tidemark/cmd/node"
	"github.com/tidemark-ai/tidemark/config"
	"github.com/tidemark-ai/tidemark/host/native"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/setup"
)

// decided says what is missing, or is too much, of a decision.
func decided(m *cli.Main, route, word string) error {
	least, most, args, want := 1, 1, m.Args, "tidemark "+route+" "+m.Cmd.Use
	if word != "approve" && word != "deny" {
		least, most = 2, 2
	}
	if word == "link" {
		least = 1
	}
	switch {
	case len(args) < least || len(args) > most:
		return cli.Usagef("%s %s: want `%s`, got %d of these words", route, word, want, len(args))
	case slices.ContainsFunc(args, func(a string) bool { return strings.TrimSpace(a) == "" }):
		return cli.Usagef("%s %s: one of the words is empty; want `%s`", route, word, want)
	case len(args) > 1:
		if _, err := channel.Named(args[0], args[1]); err != nil {
			return cli.Usagef("%s %s: %s", route, word, strings.TrimSuffix(err.Error(), ": "+tidemark.ErrInvalid.Error()))
		}
	}
	return nil
}

func standing(s channel.Standing) string {
	if s == channel.Stranger {
		return "a stranger"
	}
	return string(s)
}

// namesOf are the names by which somebody is reached now, each of which names them to these commands, and the one
// that they came by when it is theirs no more: their conversation has it still.
func namesOf(k channel.Known) string {
	now := cli.Safe(strings.Join(k.Names, ", "))
	switch {
	case now == "":
		return cli.Safe(k.Name)
	case slices.Contains(k.Names, k.Name):
		return now
	}
	return now + " (was " + cli.Safe(k.Name) + ")"
}

// desks names the agents that a channel leads to, or all channels when platform is empty, those that are on first:
// the server knows them, whose settings may be others than those here.
func (c *client) desks(ctx context.Context, of, platform string) ([]string, error) {
	if of != "" {
		return []string{of}, nil
	}
	h, err := c.health(ctx)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, on := range []bool{true, false} {
		for _, ch := range h.Channels {
			if ch.On == on && ch.Agent != "" && (platform == "" || platform == ch.Channel) && !slices.Contains(out, ch.Agent) {
				out = append(out, ch.Agent)
			}
		}
	}
	if len(out) == 0 { // an older server
		out = []string{node.MainAgent}
	}
	return out, nil
}

// deskOf is the agent that a decision is for: that of the channel, or else the one with which somebody waits who was
// told the code.
func (c *client) deskOf(ctx context.Context, of, platform, code string) (string, error) {
	all, err := c.desks(ctx, of, platform)
	if err != nil {
		return "", err
	}
	if platform != "" || len(all) == 1 {
		return all[0], nil
	}
	code = strings.ToUpper(strings.NewReplacer("-", "", " ", "").Replace(code))
	for _, name := range all {
		var list channel.Listing
		if err := c.Get(ctx, cli.AgentPath(name, "/pairing"), &list); err != nil {
			return "", err
		}
		if slices.ContainsFunc(list.Pending, func(p channel.Pending) bool { return p.Code == code }) {
			return name, nil
		}
	}
	return all[0], nil // which says that nobody was told it
}

func pairingLs(ctx context.Context, m *cli.Main, c *client, f *ofAgent) error {
	all, err := c.desks(ctx, f.Agent, "")
	if err != nil {
		return err
	}
	lists, merged := make([]channel.Listing, len(all)), channel.Listing{Pending: []channel.Pending{}, People: []channel.Known{}}
	for i, name := range all {
		if err := c.Get(ctx, cli.AgentPath(name, "/pairing"), &lists[i]); err != nil {
			return err
		}
		merged.Pending, merged.People = append(merged.Pending, lists[i].Pending...), append(merged.People, lists[i].People...)
	}
	return cli.Either(m, merged, func() {
		shown := 0
		for i, name := range all {
			rows := len(lists[i].Pending) + len(lists[i].People)
			if rows == 0 && (i+1 < len(all) || shown > 0) {
				continue
			}
			if shown++; shown > 1 {
				m.Out.Line()
			}
			if name != node.MainAgent && rows > 0 || shown > 1 {
				m.Out.Printf("with agent %s:\n", cli.Safe(name))
			}
			showPairing(m.Out, lists[i])
		}
	})
}

// showPairing draws who waits and who may talk.
func showPairing(out *cli.Output, list channel.Listing) {
	rows := [][]string{{"CHANNEL", "NAME", "CALLED", "STANDING", "SINCE"}}
	for _, p := range list.Pending {
		rows = append(rows, []string{cli.Safe(p.Channel), cli.Safe(p.Name), cli.Safe(p.Called), "waits, code " + cli.Safe(channel.Told(p.Code)) + " until " + cli.When(p.Expires), ""})
	}
	for _, k := range list.People {
		rows = append(rows, []string{cli.Safe(k.Channel), namesOf(k), cli.Safe(k.Called), string(k.Standing), cli.When(k.Since)})
	}
	cli.PrintTable(out, rows)
	waiting := map[string]int{}
	for _, p := range list.Pending {
		if waiting[p.Channel]++; waiting[p.Channel] == channel.MostPending {
			out.Printf("\n%d of %d wait on %s: who else writes there gets no answer until one is let in, denied, or an hour has passed\n",
				channel.MostPending, channel.MostPending, cli.Safe(p.Channel))
		}
	}
}

// owners are the owner's own names with the agents that channels lead to.
func (c *client) owners(ctx context.Context, of string) ([]channel.Known, error) {
	all, err := c.desks(ctx, of, "")
	if err != nil {
		return nil, err
	}
	out := []channel.Known{}
	for _, name := range all {
		var list struct {
			Owner []channel.Known `json:"owner"`
		}
		if err := c.Get(ctx, cli.AgentPath(name, "/owner"), &list); err != nil {
			return nil, err
		}
		out = append(out, list.Owner...)
	}
	return out, nil
}

// decideDesk posts a decision: of a code, or of a name on a channel.
func decideDesk(route, word string) cli.Run {
	return cli.Does(func(ctx context.Context, m *cli.Main, f *ofAgent) error {
		body := map[string]string{word: m.Args[len(m.Args)-1]}
		if len(m.Args) > 1 {
			body["channel"] = m.Args[0]
		}
		return with(ctx, m, func(c *client) error {
			whose, err := c.deskOf(ctx, f.Agent, body["channel"], m.Args[0])
			if err != nil {
				return err
			}
			var k channel.Known
			if err := c.Post(ctx, cli.AgentPath(whose, "/"+route), body, &k); err != nil {
				return err
			}
			return cli.Either(m, k, func() {
				m.Out.Line(cli.Safe(k.Channel), namesOf(k), "is", standing(k.Standing))
			})
		})
	}).Checked(func(m *cli.Main) error { return decided(m, route, word) })
}

func ownerLs(ctx context.Context, m *cli.Main, c *client, f *ofAgent) error {
	owner, err := c.owners(ctx, f.Agent)
	if err != nil {
		return err
	}
	return cli.Rows(m, owner, []string{"CHANNEL", "NAME", "SINCE"}, func(k channel.Known) []string {
		return []string{cli.Safe(k.Channel), namesOf(k), cli.When(k.Since)}
	})
}

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
	return cli.Either(m, b, func() {
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
	})
}

func configShow(ctx context.Context, m *cli.Main) error {
	c, err := m.SettingsOf(ctx)
	if err != nil {
		return err
	}
	values := c.Values()
	return cli.Either(m, values, func() {
		rows := [][]string{{"KEY", "VALUE", "FROM"}}
		for _, v := range values {
			text := "-"
			if raw, err := json.Marshal(v.Value); err == nil && v.Value != nil {
				text = cli.OneLine(string(raw), 60)
			}
			rows = append(rows, []string{v.Key, text, v.Origin})
		}
		for _, s := range []struct {
			name  string
			value config.Secret
		}{{"ANTHROPIC_API_KEY", c.Secrets.Anthropic}, {"OPENAI_API_KEY", c.Secrets.OpenAI}, {"EMBEDDINGS_API_KEY", c.Secrets.Embedding}, {"TIDEMARK_TOKEN", c.Secrets.Token}} {
			rows = append(rows, []string{s.name, s.value.String(), "environment"})
		}
		cli.PrintTable(m.Out, rows)
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
	return cli.Either(m, map[string]any{"ok": true, "file": path, "problems": []string{}, "warnings": c.Warnings}, func() {
		if path == "" {
			path = "no document, all defaults"
		}
		for _, w := range c.Warnings {
			m.Err.Printf("warning: %s\n", w)
		}
		m.Out.Printf("ok: %s\n", path)
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
