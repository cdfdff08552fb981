package main

import (
	"context"
	"errors"
	"os"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/cmd/cli"
	"github.com/tidemark-ai/tidemark/session"
)

// chatHelp lists what may be typed after a slash: what every door takes, then what only a terminal has.
func chatHelp() string {
	return session.Help() + `
/view: what the model sees now, item by item
/quit: leave
// at the start of a line: a message that begins with a slash`
}

// ends reports whether a line is a command that begins a new conversation.
func ends(text string) bool {
	if !strings.HasPrefix(text, "/") {
		return false
	}
	word, _, err := tidemark.ParseCommand(text)
	return err == nil && (word == tidemark.CommandNew || word == tidemark.CommandReset)
}

// sure asks a person before the conversation is ended. Only a yes is one: neither another line nor the end
// of the input.
func (t *talk) sure(lines <-chan line, interrupts <-chan os.Signal) bool {
	t.m.Out.Put("Archive this conversation and begin a new one? [y/N] ")
	select {
	case <-interrupts:
		t.m.Out.Line()
		return false
	case l := <-lines:
		switch strings.ToLower(strings.TrimSpace(l.text)) {
		case "y", "yes":
			return true
		}
		return false
	}
}

// command carries out a line that begins with a slash. What is none is said to be so and goes nowhere; the
// lines behind it are no worse for it.
func (t *talk) command(ctx context.Context, text string) (over bool, err error) {
	switch own := strings.ToLower(strings.TrimSpace(text)); own {
	case "/quit", "/exit", "/q":
		return true, nil
	case "/?":
		t.answer(chatHelp())
		return false, nil
	case "/view":
		return false, t.begun(showView(ctx, t.m, t.c, t.key))
	}
	word, _, err := tidemark.ParseCommand(text)
	switch {
	case err != nil:
		t.note(strings.TrimSuffix(err.Error(), ": "+tidemark.ErrInvalid.Error()))
		return false, nil
	case word == tidemark.CommandHelp:
		t.answer(chatHelp())
		return false, nil
	}
	if err := t.stream(ctx, "/commands", map[string]string{"line": text}); err != nil {
		return false, t.begun(err)
	}
	switch word {
	case tidemark.CommandNew, tidemark.CommandReset, tidemark.CommandCompact:
		return false, t.gauge(ctx)
	}
	return false, nil
}

// begun makes no failure of a session in which nothing was said yet: it was opened a moment ago, and the
// first line makes it.
func (t *talk) begun(err error) error {
	var api *cli.APIError
	if !errors.As(err, &api) || api.Type != "not_found" || strings.HasPrefix(api.Message, "no route") {
		return err
	}
	t.note("nothing was said in " + t.key + " yet: say something first")
	return nil
}

// answer shows what a command was answered with.
func (t *talk) answer(text string) {
	t.newline()
	if t.m.Terminal {
		text = cli.Safe(text)
	}
	t.m.Out.Line(text)
}
