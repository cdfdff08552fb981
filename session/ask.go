package session

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/tidemark-ai/tidemark"
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

// answer carries out a question: its answer is an event of the log, and a message to who asked.
func (s *Session) answer(ctx context.Context, r *run, line string) error {
	text, err := s.reply(ctx, r, line)
	if err != nil {
		return err
	}
	event := tidemark.Event{Type: "answer", Text: text}
	stmts, err := s.eventStmts(r.Log, event)
	if err != nil {
		return err
	}
	lines, err := s.tellStmts(ctx, r.Log, r.origins, text)
	if err != nil {
		return err
	}
	if err := s.last(ctx, r, append(stmts, lines...)...); err != nil {
		return fmt.Errorf("answer /%s: %w", line, err)
	}
	s.hub.send(Notice{Type: NoticeEvent, Run: r.ID, Event: &event})
	s.dispatch()
	return nil
}

// reply is what a question is answered with.
func (s *Session) reply(ctx context.Context, r *run, line string) (string, error) {
	word, name, _ := strings.Cut(line, " ")
	switch word {
	case tidemark.CommandStatus:
		return s.status(ctx, r)
	case tidemark.CommandModel:
		return s.askModel(ctx, name)
	case tidemark.CommandMemory:
		return s.askMemory(ctx), nil
	}
	return s.help(), nil
}

// status says how the conversation stands.
func (s *Session) status(ctx context.Context, r *run) (string, error) {
	v, err := s.light(ctx, r)
	r.leave()
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
		fmt.Sprintf("Context: %d of %d tokens (%d %%), compacted over %d", v.Size, set.Window, 100*v.Size/max(set.Window, 1), s.budget().Limit()),
		fmt.Sprintf("Messages: %d since %s", h.Messages, h.Created.In(set.Zone).Format("2006-01-02 15:04 MST")),
		fmt.Sprintf("Compactions: %d, resets: %d", h.Compactions, h.Resets),
		fmt.Sprintf("Waiting: %d", max(waiting, 0)),
	}
	if h.Resets > 0 { // the count of messages is of what came since
		lines[2] = fmt.Sprintf("Messages: %d since the last reset", h.Messages)
	}
	out, err := s.undelivered(ctx)
	if out != "" {
		lines = append(lines, out)
	}
	return strings.Join(lines, "\n"), err
}

// undelivered counts what people do not have yet.
func (s *Session) undelivered(ctx context.Context) (string, error) {
	if !s.ledger.Load() {
		return "", nil
	}
	rows, err := s.DB.Query(ctx, `SELECT count(*) FROM outbound WHERE key = ? AND open = 1 LIMIT 1`, string(s.Key))
	if err != nil || rows[0].Int(0) == 0 {
		return "", err
	}
	return fmt.Sprintf("Not sent yet: %d", rows[0].Int(0)), nil
}

// notYours answers who may not do what only the owner may.
const notYours = "Only the owner can do that. You can use /status, /new, /compact, /stop and /help."

// askModel shows the model, or changes it. Carried out twice, it is the same.
func (s *Session) askModel(ctx context.Context, name string) (string, error) {
	if name == "" {
		return fmt.Sprintf("Model: %s", cmp.Or(s.settings().Model, "default")), nil
	}
	if !s.Scope().Owner {
		return notYours, nil
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
func (s *Session) askMemory(ctx context.Context) string {
	if !s.Scope().Owner {
		return notYours
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
		return "Memory cannot be read now: " + oneLine(files, 200)
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

// help lists what this person may ask for.
func (s *Session) help() string {
	lines := []string{
		"/new or /reset: begin a new conversation; this one is archived",
		"/compact [what to keep]: summarise older messages now",
		"/stop: stop the answer that is being written",
		"/status: how this conversation stands",
		"/model: which model answers",
		"/help: this",
	}
	if s.Scope().Owner {
		lines[4] = "/model [name or default]: show or change which model answers"
		lines = append(lines[:5], "/memory: what is remembered", lines[5])
	}
	return strings.Join(lines, "\n")
}
