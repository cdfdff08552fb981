package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/clip"
	"github.com/tidemark-ai/tidemark/room"
)

// Command turns a line that a person typed into the input that it asks for; see [tidemark.ParseCommand].
func Command(line string) (Input, error) {
	word, text, err := tidemark.ParseCommand(line)
	if err != nil {
		return Input{}, err
	}
	switch word {
	case tidemark.CommandNew:
		return Input{Kind: InputReset, Text: word}, nil
	case tidemark.CommandReset:
		return Input{Kind: InputReset, Text: "manual"}, nil
	case tidemark.CommandCompact:
		return Input{Kind: InputCompact, Text: text}, nil
	}
	if text != "" {
		word += " " + text
	}
	return Input{Kind: InputAsk, Text: word}, nil
}

// answer carries out a question.
func (s *Session) answer(ctx context.Context, r *run, line string) error {
	text, err := s.reply(ctx, r, line)
	if err != nil {
		return err
	}
	return s.answerWith(ctx, r, line, text)
}

// answerWith ends a command with a text, which is an event of the log, and a message to who gave it.
func (s *Session) answerWith(ctx context.Context, r *run, line, text string) error {
	if err := s.lastEvent(ctx, r, tidemark.Event{Type: "answer", Text: text}); err != nil {
		return fmt.Errorf("answer /%s: %w", line, err)
	}
	return nil
}

// reply is what a question is answered with.
func (s *Session) reply(ctx context.Context, r *run, line string) (string, error) {
	word, name, _ := strings.Cut(line, " ")
	owner := byOwner(r.origins...)
	switch word {
	case tidemark.CommandStatus:
		return s.status(ctx, r)
	case tidemark.CommandModel:
		return s.askModel(ctx, name, owner)
	case tidemark.CommandMemory:
		return s.askMemory(ctx, owner), nil
	}
	q := room.Asked{Word: word, Text: name, Owner: owner}
	if r.command != nil {
		q.ID, q.At = r.command.ID, r.command.At
	}
	text, ok, err := s.rooms.Answer(ctx, q)
	switch {
	case errors.Is(err, tidemark.ErrForbidden):
		return s.notYours(), nil
	case ok || err != nil:
		return text, err
	}
	return helpText(commands(owner, s.Scope().Owner)), nil
}

// status says how the conversation stands.
func (s *Session) status(ctx context.Context, r *run) (string, error) {
	v, err := s.light(ctx, r)
	r.releaseView()
	if err != nil {
		return "", err
	}
	h, err := s.head(ctx)
	if err != nil {
		return "", err
	}
	rows, err := s.DB.Query(ctx, `SELECT count(*) FROM inputs WHERE key = ? AND state = 'new' LIMIT 1`, string(s.Key))
	if err != nil {
		return "", fmt.Errorf("count queue: %w", err)
	}
	set := s.settings()
	waiting := rows[0].Int(0) - 1 // the question itself waits until it is answered
	lines := []string{
		fmt.Sprintf("Model: %s", cmp.Or(set.Model, "default")),
		fmt.Sprintf("Context: %d tokens, %s of the %d at which it is compacted (window %d%s)", v.Size, share(v.Size, s.Budget().Limit()), s.Budget().Limit(), set.Window, s.windowWhy()),
		fmt.Sprintf("Messages: %d since %s", h.Messages, h.Created.In(set.Zone).Format("2006-01-02 15:04 MST")),
		fmt.Sprintf("Compactions: %d, resets: %d", h.Compactions, h.Resets),
		fmt.Sprintf("Waiting: %d", max(waiting, 0)),
	}
	if h.Resets > 0 { // the count of messages is of what came since
		lines[2] = fmt.Sprintf("Messages: %d since the last reset", h.Messages)
	}
	unsent, err := s.rooms.Teller().Unsent(ctx)
	if unsent > 0 {
		lines = append(lines, fmt.Sprintf("Not sent yet: %d", unsent))
	}
	return strings.Join(lines, "\n"), err
}

// windowWhy says how the window is known, where it is not the one that was set.
func (s *Session) windowWhy() string {
	if w := s.Window(); w.From != tidemark.WindowSet {
		return ": " + w.From.String()
	}
	return ""
}

// share is how full the context is, of what it may grow to, in the page's own words and rounding, so that a
// person reads one figure everywhere.
func share(size, limit tidemark.Tokens) string {
	limit = max(limit, 1)
	if size > 0 && 100*size < limit {
		return "under 1 %"
	}
	return fmt.Sprintf("%d %%", (200*size+limit)/(2*limit))
}

// byOwner reports whether inputs are the owner's. Whose session it is does not say that: others may talk in
// the owner's. What no person gave comes from the program itself.
func byOwner(origins ...tidemark.Origin) bool {
	return !slices.ContainsFunc(origins, func(o tidemark.Origin) bool { return o.From == tidemark.FromPerson && !o.Owner })
}

// mayChange reports whether an input may end, shorten or stop what is going on here. That is for whoever's
// conversation it is, and so for nobody but the owner in the owner's.
func (s *Session) mayChange(o tidemark.Origin) bool { return !s.Scope().Owner || byOwner(o) }

// notYours answers who may not do what only the owner may.
func (s *Session) notYours() string {
	list := commands(false, s.Scope().Owner)
	words := make([]string, len(list))
	for i, c := range list {
		words[i] = c.Form
	}
	last := len(words) - 1
	return "Only the owner can do that. You can use " + strings.Join(words[:last], ", ") + " and " + words[last] + "."
}

// askModel shows the model, or changes it. Carried out twice, it is the same.
func (s *Session) askModel(ctx context.Context, name string, owner bool) (string, error) {
	if name == "" {
		return fmt.Sprintf("Model: %s", cmp.Or(s.settings().Model, "default")), nil
	}
	if !owner {
		return s.notYours(), nil
	}
	o, err := s.Override(ctx)
	if err != nil {
		return "", err
	}
	o.Model = name
	if name == "default" {
		o.Model = ""
	}
	if err := s.Configure(ctx, o); err != nil {
		return "", err
	}
	return fmt.Sprintf("Model from now on: %s", cmp.Or(s.settings().Model, "default")), nil
}

// Bounds of what /memory shows.
const (
	memoryLines = 40
	memoryText  = 3000
)

// askMemory shows the curated memory and the names of the other files, through the tools that the model
// of this conversation has.
func (s *Session) askMemory(ctx context.Context, owner bool) string {
	if !owner || !s.Scope().Owner { // a group would read what the owner asks there
		return s.notYours()
	}
	read := func(input string) (string, bool) {
		b := s.Agent.Call(ctx, s.Scope(), tidemark.ToolUse("ask", "memory_read", []byte(input)))
		text := ""
		for _, c := range b.Content {
			text += c.Text
		}
		return text, !b.IsError
	}
	files, ok := read(`{}`)
	if !ok {
		return "Memory cannot be read now: " + clip.Line(files, 200)
	}
	names := strings.Split(files, "\n")
	if len(names) > memoryLines {
		names = append(names[:memoryLines], "…")
	}
	out := "Memory files:\n" + strings.Join(names, "\n")
	if text, ok := read(`{"path":"MEMORY.md"}`); ok {
		if len(text) > memoryText {
			text = strings.ToValidUTF8(text[:memoryText], "") + "…"
		}
		out += "\n\nMEMORY.md:\n" + text
	}
	return out
}

// Help lists the commands that the owner has in a conversation of theirs.
func Help() string { return helpText(commands(true, true)) }

// commands lists what may be asked for by the owner or another, in a conversation of the owner's or another's.
func commands(owner, owners bool) []tidemark.Command {
	out := slices.DeleteFunc(tidemark.Commands(), func(c tidemark.Command) bool {
		return c.Form == "" || c.Whose == tidemark.Speakers && owners && !owner || c.Whose == tidemark.Owners && !(owner && owners)
	})
	for i := range out {
		if owner && out[i].Word == tidemark.CommandModel {
			out[i].Form, out[i].Does = "/model [name or default]", "show or change which model answers"
		}
	}
	return out
}

func helpText(list []tidemark.Command) string {
	out := make([]string, len(list))
	for i, c := range list {
		out[i] = c.Form + ": " + c.Does
	}
	return strings.Join(out, "\n")
}
