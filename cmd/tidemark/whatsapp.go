package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/channel"
	"github.com/tidemark-ai/tidemark/cmd/cli"
	"github.com/tidemark-ai/tidemark/cmd/node"
	"github.com/tidemark-ai/tidemark/config"
	"github.com/tidemark-ai/tidemark/internal/graph"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/room/outbound"
	"github.com/tidemark-ai/tidemark/session"
)

// simulation is a server, the fake of Meta's, and a phone.
type simulation struct {
	m     *cli.Main
	who   graph.Person
	home  string
	node  *node.Node
	graph *graph.Server
	phone *phone
	url   string          // of the server
	codes map[string]bool // that were shown

	last  *graph.Post // what the phone posted last
	held  int         // answers that waited for the account when it was looked last
	tests bool        // lines come from a file or a pipe: what goes wrong ends it
}

// simulateDocument is left in the home folder, so that later commands see the same settings.
const simulateDocument = `{
  // written by tidemark whatsapp simulate
  "model": { "provider": "offline" },
  "channels": { "whatsapp": { "access": %s, "groups": "mention", "baseUrl": %s } },
}
`

func (p *simulation) run(ctx context.Context, script, access string) (err error) {
	ctx, stop := cli.UntilInterrupt(ctx)
	defer stop()
	in, err := p.lines(script)
	if err != nil {
		return err
	}
	defer in.Close()
	if p.home, err = newHome(p.m, "tidemark-whatsapp-"); err != nil {
		return err
	}
	p.phone = &phone{out: p.m.Out, groups: map[string]string{}}
	p.who.Number, p.who.UserID = "15557654321", "US.9aZ"
	p.graph, err = graph.New(graph.Config{Window: true, Observe: p.phone.see, Gaps: []time.Duration{100 * time.Millisecond, time.Second, 5 * time.Second}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.graph.Close()) }()
	if err := p.open(ctx, access); err != nil {
		return err
	}
	url, end, err := serveStore(ctx, p.node)
	if err == nil {
		err = errors.Join(p.talk(ctx, url, in), end())
	}
	return errors.Join(err, p.node.Close())
}

// lines opens what is to be said.
func (p *simulation) lines(script string) (io.ReadCloser, error) {
	p.tests = script != "" || !p.m.Terminal
	if script == "" || script == "-" {
		return io.NopCloser(p.m.Stdin), nil
	}
	f, err := os.Open(script)
	if err != nil {
		return nil, cli.Advise(err, "give --script a file of lines, or - for standard input")
	}
	return f, nil
}

// open opens the store with settings that lead to the fake.
func (p *simulation) open(ctx context.Context, access string) error {
	quote := func(s string) string {
		raw, _ := json.Marshal(s) // of a string it cannot fail
		return string(raw)
	}
	document := fmt.Sprintf(simulateDocument, quote(access), quote(p.graph.URL))
	if err := os.WriteFile(filepath.Join(p.home, cli.DocumentName), []byte(document), 0o600); err != nil {
		return err
	}
	cfg, err := config.Parse(cli.DocumentName, []byte(document))
	if err != nil {
		return err
	}
	cfg.Secrets = config.Secrets{WhatsAppToken: graph.DefaultToken, WhatsAppSecret: graph.DefaultAppSecret, WhatsAppVerify: graph.DefaultVerifyToken}
	if p.node, err = node.OpenStore(ctx, p.home, cfg, p.m.Logger(cfg, true), true); err != nil {
		return err
	}
	p.node.Provider = windy{p.node.Provider}
	return nil
}

// talk carries the lines out, one after the other.
func (p *simulation) talk(ctx context.Context, url string, in io.Reader) error {
	p.url, p.codes = url, map[string]bool{}
	p.graph.SetWebhook(url + "/webhooks/whatsapp")
	if err := p.graph.Handshake(ctx); err != nil {
		return err
	}
	p.m.Out.Printf("%s's phone; the server is %s, everything is kept in %s\n", p.who.Name, url, p.home)
	if p.m.Terminal {
		p.m.Out.Line(phoneHelp)
	}
	lines := readLines(in)
	for n := 1; ; n++ {
		var next line
		select {
		case next = <-lines:
			if errors.Is(next.err, io.EOF) {
				return nil
			}
			if next.err != nil {
				return next.err
			}
		case <-ctx.Done(): // Ctrl-C, perhaps while a line is waited for
			return nil
		}
		if strings.TrimSpace(next.text) == ":quit" {
			return nil
		}
		if err := p.do(ctx, next.text); err != nil && ctx.Err() == nil {
			if p.tests {
				return fmt.Errorf("line %d: %w", n, err)
			}
			p.phone.note("%v", err)
		}
	}
}

// settleWait is how long a line may take: three calls of a model.
const settleWait = 2 * time.Minute

// settle waits until nothing is in work on either side.
func (p *simulation) settle(ctx context.Context) error {
	const look = 25 * time.Millisecond
	const quiet = 4 // looks in a row, for what goes from one hand to another between two
	end := time.Now().Add(settleWait)
	for still := 0; still < quiet; {
		busy, err := p.busy(ctx)
		if err != nil {
			return err
		}
		if still++; busy {
			still = 0
		}
		if time.Now().After(end) {
			return fmt.Errorf("something is in work for %s already: %w", settleWait, tidemark.ErrTimeout)
		}
		if err := p.node.RT.Sleep(ctx, look); err != nil {
			return err
		}
	}
	return nil
}

// busy reports whether a webhook, a turn or a message is on its way, or will be within seconds.
func (p *simulation) busy(ctx context.Context) (bool, error) {
	const soon = 6 * time.Second
	o, err := p.node.Owner(node.MainAgent, false)
	if err != nil {
		return false, err
	}
	left, err := channel.Left(ctx, o.DB, p.node.RT.Now())
	if err != nil || !left.IsZero() || p.graph.Pending() > 0 || p.node.Working() {
		return true, err
	}
	due, err := session.Due(ctx, o.DB, p.node.RT.Now())
	for _, at := range due {
		if at.Before(time.Now().Add(soon)) {
			return true, err
		}
	}
	return false, err
}

func whatsappSimulate(ctx context.Context, m *cli.Main, f *struct{ Script, Access, Name string }) error {
	if f.Access != string(channel.AccessOpen) && f.Access != string(channel.AccessPairing) {
		return cli.Usagef("--access %s: want open or pairing", f.Access)
	}
	if m.Server != "" || m.Config != "" {
		return cli.Usagef("whatsapp simulate: it serves a store of its own, with settings of its own, and writes to no other server; leave --server and --config away")
	}
	p := simulation{m: m}
	p.who.Name = f.Name
	return p.run(ctx, f.Script, f.Access)
}

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
	held, why := 0, outbound.Message{}
	for _, info := range list {
		s, err := p.node.Session(ctx, info.Key, false)
		if err != nil {
			return err
		}
		ledger, ok := session.Room[*outbound.Room](s)
		if !ok {
			continue
		}
		out, err := ledger.Messages(ctx, most)
		if err != nil {
			return err
		}
		behind := 0
		for _, o := range out { // newest first
			if o.State == outbound.Pending {
				behind++
			}
			if o.Hold == outbound.HoldHalted {
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
