package channel

import (
	"context"
	"fmt"
	"strings"
	"unicode"

	"github.com/tidemark-ai/tidemark"
)

// do carries an arrival to whom it is for. Everything it does may be done twice.
func (g *Ingress) do(ctx context.Context, t *task) error {
	c, ok := g.Channels[t.platform]
	if !ok {
		return fmt.Errorf("%w: %w", errUnset, tidemark.ErrUnavailable)
	}
	switch a := t.arrival; {
	case a.Alias != nil:
		if a.Alias.Platform == "" {
			a.Alias.Platform = t.platform
		}
		return rename(ctx, g.Desk(c.Rules.Agent), *a.Alias)
	case a.Status != nil:
		return g.delivered(ctx, *a.Status)
	case a.Message != nil:
		return g.message(ctx, c, t)
	}
	return nil
}

// groupName begins the name of a group among those of people.
const groupName = "group/"

// rename notes an alias. A group is known from then on: its conversation has the name that it had first.
func rename(ctx context.Context, desk Desk, a Alias) error {
	if !a.Group {
		return desk.Rename(ctx, a)
	}
	a.Old, a.New = groupName+a.Old, groupName+a.New
	if _, err := desk.Who(ctx, a.Platform, []string{a.Old}, true); err != nil {
		return err
	}
	return desk.Rename(ctx, a)
}

// delivered tells a session what became of its message. A platform that gives no reference back leaves
// nobody to tell; the session then knows what the platform answered when it was sent.
func (g *Ingress) delivered(ctx context.Context, d tidemark.Delivery) error {
	key, ok := tidemark.RefKey(d.Ref)
	if !ok {
		g.Logger.Debug("a status of nobody's", "status", d.Status)
		return nil
	}
	return g.Sessions.Delivered(ctx, key, d)
}

// message admits a message and posts it.
func (g *Ingress) message(ctx context.Context, c Channel, t *task) error {
	m, desk := *t.arrival.Message, g.Desk(c.Rules.Agent)
	if m.Group != "" && (!c.Rules.Groups || !m.Mentioned) { // a busy group asks nobody
		return nil
	}
	p, err := desk.Who(ctx, c.Name(), m.From, c.Rules.Welcome(m.From))
	if err != nil {
		return err
	}
	if m.Group != "" {
		first, err := desk.Who(ctx, c.Name(), []string{groupName + m.Group}, false)
		if err != nil {
			return err
		}
		m.Group = strings.TrimPrefix(first.Name, groupName)
	}
	p = c.Rules.then(m, p)
	v := c.Rules.Decide(m, p)
	switch {
	case v.Knock && (m.Edits+m.Revokes != "" || m.Echo || m.Note): // nobody asked to be let in
		return nil
	case v.Knock:
		return g.knock(ctx, c, desk, m, p)
	case v.Key == "":
		g.Logger.Info("not let in", "channel", c.Name(), "why", v.Why)
		return nil
	}
	in := Input{ID: m.ID, Quoted: m.Quoted, Origin: tidemark.Origin{From: tidemark.FromPerson, Channel: c.Name(), Peer: p.Name, Owner: p.Standing == Owner, Message: m.Message, To: &m.Reply}}
	if in.Edits, in.Revokes = m.Edits, m.Revokes; m.Revokes != "" {
		return g.Sessions.Post(ctx, v.Key, in)
	}
	if m.Echo || m.Note { // no answer goes anywhere
		in.Origin.Quiet, in.Origin.To = true, nil
	}
	switch {
	case m.Echo:
		in.Origin.Owner, m.Text = true, strings.TrimSpace(fromPhone+" "+m.Text)
	case strings.Contains(m.Text, fromPhone): // nobody else's words read so
		m.Text = plainLines(m.Text, true)
	}
	if word, rest, ok := Command(m.Text); ok && m.Kind == "text" && !m.Echo && len(m.Media) == 0 && c.Rules.Commands(m, p) {
		in.Command, in.Text = word, rest
		return g.Sessions.Post(ctx, v.Key, in)
	}
	if in.Message, err = g.content(ctx, c, m, p, t.files); err != nil {
		return err
	}
	if len(in.Message.Content) == 0 {
		return nil
	}
	return g.Sessions.Post(ctx, v.Key, in)
}

// knock tells a stranger a code. What is said goes through a ledger of the stranger's own: those of others
// do not show it, and there are no more than may wait for a code. The message that asked names the code, so
// that a life which ends between says the same.
func (g *Ingress) knock(ctx context.Context, c Channel, desk Desk, m Incoming, p Person) error {
	key := c.Rules.own(m, p.Name)
	code, err := desk.Knock(ctx, Knock{Platform: c.Name(), Names: m.From, Called: m.Name, Message: m.ID, Key: key, Reply: m.Reply})
	if err != nil || code == "" {
		return err
	}
	text := fmt.Sprintf("This is a private assistant. To talk with it, give its owner this code: %s\nIt is good for one hour.", Told(code))
	return g.Sessions.Say(ctx, key, "pairing/"+m.ID, m.Reply, text)
}

// content makes the message that a model reads: who speaks, where there are several, the files, the
// words. failed is how often a file of it could not be had.
func (g *Ingress) content(ctx context.Context, c Channel, m Incoming, p Person, failed int) (tidemark.Message, error) {
	var blocks []tidemark.Block
	var notes []string
	for _, f := range m.Media {
		b, note, err := g.fetch(ctx, c, m, f, failed)
		if err != nil {
			return tidemark.Message{}, err
		}
		if note != "" {
			notes = append(notes, note)
			continue
		}
		blocks = append(blocks, b)
	}
	var texts []string // a correction replaces the last: what stands for files is not lost with it
	if len(notes) > 0 {
		texts = append(texts, strings.Join(notes, "\n"))
	}
	switch words := m.Text; {
	case strings.TrimSpace(words) == "": // a model takes no blank text
	case m.Group != "":
		texts = append(texts, plainLines(words, len(notes) > 0))
	default:
		texts = append(texts, words)
	}
	if m.Group != "" && len(blocks)+len(texts) > 0 {
		if len(texts) == 0 {
			texts = []string{""}
		}
		texts[0] = "[" + strings.NewReplacer("[", "(", "]", ")").Replace(strings.TrimSpace(oneLine(m.Name)+" "+p.Name)) + "] " + texts[0]
	}
	switch {
	case len(blocks)+len(texts) == 0:
		return tidemark.Message{}, nil
	case len(blocks) == 0 && len(texts) == 1:
		return tidemark.NewText(tidemark.User, texts[0]), nil
	}
	for _, text := range texts {
		blocks = append(blocks, tidemark.Text(text))
	}
	return tidemark.Message{Role: tidemark.User, Content: blocks}, nil
}

// fromPhone stands before what the owner answered from the phone of the account.
const fromPhone = "[The owner, from their phone]"

// plainLines takes the brackets off the begins of lines, where they would look like what another in the group
// says. The first is no begin when who speaks stands before it.
func plainLines(text string, begins bool) string {
	open := false
	return strings.Map(func(r rune) rune {
		switch {
		case strings.ContainsRune("\n\r\v\f\u0085\u2028\u2029", r):
			begins, open = true, false
		case begins && (unicode.IsSpace(r) || !unicode.IsGraphic(r)): // unseen before a bracket
		case begins && r == '[':
			begins, open = false, true
			return '('
		case open && r == ']':
			open = false
			return ')'
		default:
			begins = false
		}
		return r
	}, text)
}
