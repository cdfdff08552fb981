package main

import (
	"context"
	"slices"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/channel"
	"github.com/tidemark-ai/tidemark/cmd/cli"
	"github.com/tidemark-ai/tidemark/cmd/node"
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

func listPairing(ctx context.Context, m *cli.Main, c *client, of string) error {
	all, err := c.desks(ctx, of, "")
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
	if m.JSON {
		return m.PrintJSON(merged)
	}
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
	return nil
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
			return cli.Either(m, k, func() error {
				m.Out.Line(cli.Safe(k.Channel), namesOf(k), "is", standing(k.Standing))
				return nil
			})
		})
	}).Checked(func(m *cli.Main) error { return decided(m, route, word) })
}

func pairingLs(ctx context.Context, m *cli.Main, f *ofAgent) error {
	return with(ctx, m, func(c *client) error { return listPairing(ctx, m, c, f.Agent) })
}

func ownerLs(ctx context.Context, m *cli.Main, f *ofAgent) error {
	return with(ctx, m, func(c *client) error {
		owner, err := c.owners(ctx, f.Agent)
		if err != nil {
			return err
		}
		return cli.Rows(m, owner, []string{"CHANNEL", "NAME", "SINCE"}, func(add func(...string)) {
			for _, k := range owner {
				add(cli.Safe(k.Channel), namesOf(k), cli.When(k.Since))
			}
		})
	})
}
