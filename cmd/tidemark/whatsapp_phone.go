package main

import (
	"context"
	"fmt"
	"mime"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/channel"
	"github.com/tidemark-ai/tidemark/cmd/cli"
	"github.com/tidemark-ai/tidemark/cmd/node"
	"github.com/tidemark-ai/tidemark/internal/graph"
)

const phoneHelp = `  :image FILE [words]   send a picture; also :document, :audio, :video
  :reply words          answer the newest message
  :group NAME words     write in a group, with our number mentioned
  :long                 ask for what is answered at length, in several messages
  :again                the last webhook comes once more, as Meta may do
  :fail CODE            the next message to the phone is refused with an error code
  :cut                  the next message arrives, and its answer is cut off
  :expire               the next answer comes 24 hours late: it waits until the person writes
  :approve              the owner lets the person in who asked for a code
  :quit                 leave; a line that begins with # is none`

// closedCode is the refusal of a message to somebody who has not written for 24 hours.
const closedCode = 131047

// do carries out one line and waits for what comes of it.
func (p *simulation) do(ctx context.Context, line string) error {
	line = strings.TrimSpace(line)
	word, rest, _ := strings.Cut(line, " ")
	rest = strings.TrimSpace(rest)
	switch word {
	case "", "#":
		return nil
	case ":image", ":document", ":audio", ":video":
		return p.file(ctx, word[1:], rest)
	case ":reply":
		sent := p.graph.Sent()
		if len(sent) == 0 {
			return cli.Usagef(":reply: there is nothing yet to answer")
		}
		return p.say(ctx, p.graph.Text(p.who, rest).Quote(graph.DefaultNumber, sent[len(sent)-1].ID), rest)
	case ":group":
		return p.inGroup(ctx, rest)
	case ":long":
		return p.say(ctx, p.graph.Text(p.who, longAsked), longAsked)
	case ":again":
		if p.last == nil {
			return cli.Usagef(":again: nothing was posted yet")
		}
		p.phone.note("the same webhook again")
		p.graph.Post([]byte(p.last.Body))
	case ":fail":
		code, err := strconv.Atoi(rest)
		if err != nil {
			return cli.Usagef(":fail %s: want an error code such as 131056", rest)
		}
		p.graph.Fail(p.who.Number, graph.Fault{Code: code})
		p.phone.note("the next message to the phone is refused with %d", code)
		return nil
	case ":cut":
		p.graph.Fail(p.who.Number, graph.Fault{Mode: graph.Cut})
		p.phone.note("the answer to the next message will be cut off")
		return nil
	case ":expire":
		p.graph.Fail(p.who.Number, graph.Fault{Mode: graph.Late, Code: closedCode})
		p.phone.note("24 hours will have passed when the next answer is sent")
		return nil
	case ":approve":
		return p.approve(ctx)
	default:
		if strings.HasPrefix(line, "#") {
			return nil
		}
		if strings.HasPrefix(line, ":") && len(word) > 2 {
			return cli.Usagef("%s is no command of the phone:\n%s", word, phoneHelp)
		}
		return p.say(ctx, p.graph.Text(p.who, line), line)
	}
	return p.settle(ctx)
}

// say posts a message, shows it with its ticks, and waits for the answer.
func (p *simulation) say(ctx context.Context, m graph.Message, shown string) error {
	p.phone.mu.Lock() // an answer is not shown before what it answers
	p.last = p.graph.Say(p.who, m)
	acked, err := p.graph.Acked(ctx, p.last)
	ticks := "✓"
	if acked {
		ticks = "✓✓"
	}
	p.phone.bubble(shown, ticks, true)
	p.phone.mu.Unlock()
	if err != nil {
		return err
	}
	if !acked {
		return fmt.Errorf("the webhook was not taken: %s", p.last.Last)
	}
	if err := p.settle(ctx); err != nil {
		return err
	}
	if err := p.waits(ctx); err != nil {
		return err
	}
	return p.waiting(ctx)
}

// waiting shows what an owner does with a code that the person was told.
func (p *simulation) waiting(ctx context.Context) error {
	book, err := p.node.People(ctx, node.MainAgent)
	if err != nil {
		return err
	}
	all, err := book.List(ctx)
	for _, k := range all.Pending {
		if !p.codes[k.Code] {
			p.codes[k.Code] = true
			p.phone.note("the owner lets them in by: tidemark pairing approve %s --server %s (here: :approve)", channel.Told(k.Code), p.url)
		}
	}
	return err
}

// file sends a file of this machine.
func (p *simulation) file(ctx context.Context, kind, rest string) error {
	name, caption, _ := strings.Cut(rest, " ")
	data, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	typ := mime.TypeByExtension(filepath.Ext(name))
	if typ == "" {
		typ = "application/octet-stream"
	}
	return p.say(ctx, p.graph.File(p.who, kind, data, typ, caption), strings.TrimSpace("["+kind+" "+filepath.Base(name)+"] "+caption))
}

// approve lets in whoever waits.
func (p *simulation) approve(ctx context.Context) error {
	book, err := p.node.People(ctx, node.MainAgent)
	if err != nil {
		return err
	}
	all, err := book.List(ctx)
	if err != nil {
		return err
	}
	if len(all.Pending) == 0 {
		return fmt.Errorf(":approve: nobody has asked: %w", tidemark.ErrNotFound)
	}
	for _, k := range all.Pending {
		if _, err := book.Approve(ctx, k.Code, channel.Approved); err != nil {
			return err
		}
		p.phone.note("the owner approves %s", channel.Told(k.Code))
	}
	return nil
}

// phone draws what the person sees.
type phone struct {
	mu     sync.Mutex // guards the following, and the order of what is shown
	out    *cli.Output
	groups map[string]string // their names, by id
}

const (
	phoneWidth  = 64
	bubbleWidth = 46
)

// see shows what the fake tells.
func (p *phone) see(e graph.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case e.Kind == "message":
		text := e.Text
		if name := p.groups[e.To]; name != "" {
			text = "[" + name + "] " + text
		}
		p.bubble(text, "", false)
	case e.Kind == "read":
		p.out.Printf("%*s\n", phoneWidth, "✓✓ read")
	case e.Kind == "typing":
		p.out.Line("  … typing")
	case e.Kind == "status" && e.Status == "failed":
		p.out.Printf("  ✗ not delivered: %d %s\n", e.Code, e.Text)
	case e.Kind == "status" && e.Status == "read":
		p.out.Line("  ✓✓ read")
	}
}

// note shows what happens around the phone.
func (p *phone) note(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.out.Printf("  -- "+format+" --\n", args...)
}

// bubble draws a message, to the right when it is the person's own. The caller holds mu.
func (p *phone) bubble(text, ticks string, own bool) {
	lines := wrap(text, bubbleWidth)
	width := 0
	for _, l := range lines {
		width = max(width, utf8.RuneCountInString(l))
	}
	foot := strings.TrimSpace(time.Now().Format("15:04") + " " + ticks)
	width = max(width, utf8.RuneCountInString(foot)+1)
	indent := ""
	if own {
		indent = strings.Repeat(" ", phoneWidth-width-4)
	}
	p.out.Printf("%s╭%s╮\n", indent, strings.Repeat("─", width+2))
	for _, l := range lines {
		p.out.Printf("%s│ %s%s │\n", indent, l, strings.Repeat(" ", width-utf8.RuneCountInString(l)))
	}
	p.out.Printf("%s╰%s %s ╯\n", indent, strings.Repeat("─", width-utf8.RuneCountInString(foot)), foot)
}

// wrap breaks a text into lines of at most width letters, at spaces where there are any.
func wrap(text string, width int) []string {
	var out []string
	for _, line := range strings.Split(strings.ReplaceAll(strings.TrimRight(text, "\n"), "\t", "    "), "\n") {
		for rest := []rune(line); ; {
			if len(rest) <= width {
				out = append(out, string(rest))
				break
			}
			cut := width
			for cut > 0 && rest[cut] != ' ' {
				cut--
			}
			next := cut + 1
			if cut == 0 {
				cut, next = width, width
			}
			out = append(out, string(rest[:cut]))
			rest = rest[next:]
		}
	}
	return out
}
