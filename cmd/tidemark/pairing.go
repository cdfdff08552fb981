package main

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/channel"
)

func (m *Main) pairingCommand() *cobra.Command {
	return group("pairing", "Say who may talk over WhatsApp and Telegram", `  tidemark pairing ls
  tidemark pairing approve ABCD-EFGH
  tidemark pairing deny ABCD-EFGH            and block who asked
  tidemark pairing block whatsapp +4915123456789
  tidemark pairing forget whatsapp +4915123456789
  tidemark pairing ls --agent work           of that agent alone`,
		m.pairingLs(),
		m.decideCommand("approve CODE", "Let the one in who was told a code", "pairing", "approve"),
		m.decideCommand("deny CODE", "Block the one who was told a code", "pairing", "deny"),
		m.decideCommand("block CHANNEL NAME", "Keep somebody out", "pairing", "block"),
		m.decideCommand("forget CHANNEL NAME", "Make somebody a stranger again", "pairing", "forget"))
}

func (m *Main) ownerCommand() *cobra.Command {
	return group("owner", "Say which numbers and ids are your own", `  tidemark owner ls
  tidemark owner link ABCD-EFGH              the code that you were told there
  tidemark owner link whatsapp +4915123456789
  tidemark owner unlink whatsapp +4915123456789`,
		m.ownerLs(),
		m.decideCommand("link CODE | CHANNEL NAME", "Share the main session with a number of yours", "owner", "link"),
		m.decideCommand("unlink CHANNEL NAME", "End that", "owner", "unlink"))
}

// decideCommand is a command that posts a decision: of a code, or of a name on a channel.
func (m *Main) decideCommand(use, short, route, word string) *cobra.Command {
	var of string
	least, most := 1, 1
	if word != "approve" && word != "deny" {
		least, most = 2, 2
	}
	if word == "link" {
		least = 1
	}
	c := &cobra.Command{Use: use, Short: short, Args: func(_ *cobra.Command, args []string) error { return decided(route, word, use, least, most, args) },
		RunE: func(cmd *cobra.Command, args []string) error {
			body := map[string]string{word: args[len(args)-1]}
			if len(args) > 1 {
				body["channel"] = args[0]
			}
			return m.with(cmd.Context(), func(c *client) error {
				var k channel.Known
				whose, err := c.deskOf(cmd.Context(), of, body["channel"], args[0])
				if err != nil {
					return err
				}
				if err := c.post(cmd.Context(), agentPath(whose, "/"+route), body, &k); err != nil {
					return err
				}
				if m.json {
					return m.printJSON(k)
				}
				m.out.line(safe(k.Channel), namesOf(k), "is", standing(k.Standing))
				return nil
			})
		}}
	deskFlag(c, &of)
	return m.jsonFlag(c)
}

// decided says what is missing, or is too much, of a decision.
func decided(route, word, use string, least, most int, args []string) error {
	want := "tidemark " + route + " " + use
	switch {
	case len(args) < least || len(args) > most:
		return usagef("%s %s: want `%s`, got %d of these words", route, word, want, len(args))
	case slices.ContainsFunc(args, func(a string) bool { return strings.TrimSpace(a) == "" }):
		return usagef("%s %s: one of the words is empty; want `%s`", route, word, want)
	case len(args) > 1:
		if _, err := channel.Named(args[0], args[1]); err != nil {
			return usagef("%s %s: %s", route, word, strings.TrimSuffix(err.Error(), ": "+tidemark.ErrInvalid.Error()))
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
	now := safe(strings.Join(k.Names, ", "))
	switch {
	case now == "":
		return safe(k.Name)
	case slices.Contains(k.Names, k.Name):
		return now
	}
	return now + " (was " + safe(k.Name) + ")"
}

func (m *Main) pairingLs() *cobra.Command {
	var of string
	c := &cobra.Command{Use: "ls", Short: "List who waits and who may talk", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return m.with(cmd.Context(), func(c *client) error { return m.listPairing(cmd.Context(), c, of) })
		}}
	deskFlag(c, &of)
	return m.jsonFlag(c)
}

// deskFlag names the agent whose people are meant.
func deskFlag(c *cobra.Command, of *string) {
	c.Flags().StringVar(of, "agent", "", "whose people are meant (default: those of the agents that channels lead to)")
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
		out = []string{mainAgent}
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
		if err := c.get(ctx, agentPath(name, "/pairing"), &list); err != nil {
			return "", err
		}
		if slices.ContainsFunc(list.Pending, func(p channel.Pending) bool { return p.Code == code }) {
			return name, nil
		}
	}
	return all[0], nil // which says that nobody was told it
}

func (m *Main) listPairing(ctx context.Context, c *client, of string) error {
	all, err := c.desks(ctx, of, "")
	if err != nil {
		return err
	}
	lists, merged := make([]channel.Listing, len(all)), channel.Listing{Pending: []channel.Pending{}, People: []channel.Known{}}
	for i, name := range all {
		if err := c.get(ctx, agentPath(name, "/pairing"), &lists[i]); err != nil {
			return err
		}
		merged.Pending, merged.People = append(merged.Pending, lists[i].Pending...), append(merged.People, lists[i].People...)
	}
	if m.json {
		return m.printJSON(merged)
	}
	shown := 0
	for i, name := range all {
		rows := len(lists[i].Pending) + len(lists[i].People)
		if rows == 0 && (i+1 < len(all) || shown > 0) {
			continue
		}
		if shown++; shown > 1 {
			m.out.line()
		}
		if name != mainAgent && rows > 0 || shown > 1 {
			m.out.printf("with agent %s:\n", safe(name))
		}
		showPairing(m.out, lists[i])
	}
	return nil
}

// showPairing draws who waits and who may talk.
func showPairing(out *output, list channel.Listing) {
	rows := [][]string{{"CHANNEL", "NAME", "CALLED", "STANDING", "SINCE"}}
	for _, p := range list.Pending {
		rows = append(rows, []string{safe(p.Channel), safe(p.Name), safe(p.Called), "waits, code " + safe(channel.Told(p.Code)) + " until " + when(p.Expires), ""})
	}
	for _, k := range list.People {
		rows = append(rows, []string{safe(k.Channel), namesOf(k), safe(k.Called), string(k.Standing), when(k.Since)})
	}
	table(out, rows)
	waiting := map[string]int{}
	for _, p := range list.Pending {
		if waiting[p.Channel]++; waiting[p.Channel] == channel.MostPending {
			out.printf("\n%d of %d wait on %s: who else writes there gets no answer until one is let in, denied, or an hour has passed\n",
				channel.MostPending, channel.MostPending, safe(p.Channel))
		}
	}
}

func (m *Main) ownerLs() *cobra.Command {
	var of string
	c := &cobra.Command{Use: "ls", Short: "List your numbers and ids", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return m.with(cmd.Context(), func(c *client) error {
				owner, err := c.owners(cmd.Context(), of)
				if err != nil {
					return err
				}
				if m.json {
					return m.printJSON(owner)
				}
				rows := [][]string{{"CHANNEL", "NAME", "SINCE"}}
				for _, k := range owner {
					rows = append(rows, []string{safe(k.Channel), namesOf(k), when(k.Since)})
				}
				table(m.out, rows)
				return nil
			})
		}}
	deskFlag(c, &of)
	return m.jsonFlag(c)
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
		if err := c.get(ctx, agentPath(name, "/owner"), &list); err != nil {
			return nil, err
		}
		out = append(out, list.Owner...)
	}
	return out, nil
}
