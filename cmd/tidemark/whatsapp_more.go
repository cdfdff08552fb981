package main

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/cmd/cli"
	"github.com/tidemark-ai/tidemark/cmd/node"
	"github.com/tidemark-ai/tidemark/internal/graph"
	"github.com/tidemark-ai/tidemark/session"
)

// longAsked is what the phone says for :long. Whoever says it gets an answer of several messages.
const longAsked = "Tell me at length how a table is made."

// windy is the model of the simulator: it can be made to answer at length, which the offline model never does.
type windy struct{ tidemark.Provider }

// Stream implements [tidemark.Provider].
func (w windy) Stream(ctx context.Context, req tidemark.Request) iter.Seq2[tidemark.Delta, error] {
	last := req.Messages[len(req.Messages)-1]
	if !strings.HasSuffix(strings.TrimSpace(last.PlainText()), longAsked) {
		return w.Provider.Stream(ctx, req)
	}
	return func(yield func(tidemark.Delta, error) bool) {
		m := tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{tidemark.Text(longAnswer())}}
		yield(tidemark.Delta{Reply: &tidemark.Reply{Message: m, Call: tidemark.Call{Model: "offline", Stop: "end_turn"}}}, nil)
	}
}

// longAnswer is over the 4,096 characters of one message, with a list of cuts in code that goes across.
func longAnswer() string {
	const cuts = 90
	var b strings.Builder
	b.WriteString("# A table\n\n")
	for _, part := range []string{"Choose the wood", "Let it dry", "Plane the boards", "Glue the top", "Cut the legs"} {
		fmt.Fprintf(&b, "**%s.** %s\n\n", part, strings.Repeat("Take your time with it, for what is hurried here is seen later. ", 5))
	}
	b.WriteString("```\n")
	for i := 1; i <= cuts; i++ {
		fmt.Fprintf(&b, "cut %2d: board %c, %4d mm, square\n", i, 'a'+rune(i%26), 300+i*7)
	}
	b.WriteString("```\n\nThat is all of it.")
	return b.String()
}

// inGroup writes in a group, with our number mentioned: who is not mentioned there does not answer.
func (p *simulation) inGroup(ctx context.Context, rest string) error {
	name, words, _ := strings.Cut(rest, " ")
	if words = strings.TrimSpace(words); words == "" {
		return cli.Usagef(":group %s: want the name of a group, in one word, and what to say there", rest)
	}
	id := "group-" + strings.ToLower(name)
	p.phone.mu.Lock()
	p.phone.groups[id] = name
	p.phone.mu.Unlock()
	words = "@" + graph.DefaultNumber + " " + words
	return p.say(ctx, p.graph.Text(p.who, words).In(id), "["+name+"] "+words)
}

// waits shows that answers are kept, whenever there are more or fewer of them: the phone shows nothing then.
func (p *simulation) waits(ctx context.Context) error {
	a, err := p.node.Agent(ctx, node.MainAgent)
	if err != nil {
		return err
	}
	const most = 100
	list, _, err := a.Sessions(ctx, "", most)
	if err != nil {
		return err
	}
	held, why := 0, session.Outbound{}
	for _, info := range list {
		s, err := p.node.Session(ctx, info.Key, false)
		if err != nil {
			return err
		}
		out, err := s.Outbound(ctx, most)
		if err != nil {
			return err
		}
		behind := 0
		for _, o := range out { // newest first
			if o.State == "pending" {
				behind++
			}
			if o.Hold == session.HoldHalted {
				held, why, behind = held+behind, o, 0
			}
		}
	}
	if held != p.held && held > 0 {
		p.phone.note("held: %s; %d to go out when the account may send again, as with a new token; tried next at %s", why.Error, held, why.Next.Local().Format("15:04"))
	}
	p.held = held
	return nil
}
