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
  tidemark pairing forget whatsapp +4915123456789`,
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
				if err := c.post(cmd.Context(), agentPath(of, "/"+route), body, &k); err != nil {
					return err
				}
				if m.json {
					return m.printJSON(k)
				}
				m.out.line(safe(k.Channel), safe(k.Name), "is", standing(k.Standing))
				return nil
			})
		}}
	agentFlag(c, &of)
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

func (m *Main) pairingLs() *cobra.Command {
	var of string
	c := &cobra.Command{Use: "ls", Short: "List who waits and who may talk", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return m.with(cmd.Context(), func(c *client) error { return m.listPairing(cmd.Context(), c, of) })
		}}
	agentFlag(c, &of)
	return m.jsonFlag(c)
}

func (m *Main) listPairing(ctx context.Context, c *client, of string) error {
	var list channel.Listing
	if err := c.get(ctx, agentPath(of, "/pairing"), &list); err != nil {
		return err
	}
	if m.json {
		return m.printJSON(list)
	}
	showPairing(m.out, list)
	return nil
}

// showPairing draws who waits and who may talk.
func showPairing(out *output, list channel.Listing) {
	rows := [][]string{{"CHANNEL", "NAME", "CALLED", "STANDING", "SINCE"}}
	for _, p := range list.Pending {
		rows = append(rows, []string{safe(p.Channel), safe(p.Name), safe(p.Called), "waits, code " + safe(channel.Told(p.Code)) + " until " + when(p.Expires), ""})
	}
	for _, k := range list.People {
		rows = append(rows, []string{safe(k.Channel), safe(k.Name), safe(k.Called), string(k.Standing), when(k.Since)})
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
				var list struct {
					Owner []channel.Known `json:"owner"`
				}
				if err := c.get(cmd.Context(), agentPath(of, "/owner"), &list); err != nil {
					return err
				}
				if m.json {
					return m.printJSON(list.Owner)
				}
				rows := [][]string{{"CHANNEL", "NAME", "SINCE"}}
				for _, k := range list.Owner {
					rows = append(rows, []string{safe(k.Channel), safe(k.Name), when(k.Since)})
				}
				table(m.out, rows)
				return nil
			})
		}}
	agentFlag(c, &of)
	return m.jsonFlag(c)
}
