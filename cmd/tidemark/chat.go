package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"unicode/utf8"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/cmd/cli"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/session"
)

// talk is a conversation with a person.
type talk struct {
	m      *cli.Main
	c      *client
	key    string
	column bool // text stands on the line
}

// outcome is how a turn ends; see docs/http.md.
type outcome struct {
	Text   string           `json:"text"`
	Stop   string           `json:"stop"`
	Events []tidemark.Event `json:"events"`
}

// once says one thing, or carries out one command, as a line of input would.
func (t *talk) once(ctx context.Context, message string) error {
	ctx, stop := cli.UntilInterrupt(ctx)
	defer stop()
	if err := checkText(message); err != nil {
		return err
	}
	if said, literal := strings.CutPrefix(message, "//"); literal {
		message = "/" + said
	} else if strings.HasPrefix(message, "/") {
		return t.onceCommand(ctx, message)
	}
	return t.say(ctx, message)
}

// onceCommand carries out one command. Nobody reads on, so one that is no command is a failure.
func (t *talk) onceCommand(ctx context.Context, text string) error {
	name, _, _ := strings.Cut(text, " ")
	if _, _, err := tidemark.ParseCommand(text); err != nil && name != "/view" && name != "/?" && !t.m.JSON {
		return cli.Advise(err, "begin with // to say it to the model")
	}
	_, err := t.command(ctx, text)
	return err
}

// loop reads messages until the input ends.
func (t *talk) loop(ctx context.Context) error {
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt)
	defer signal.Stop(interrupts)
	if t.m.Terminal {
		t.m.Out.Line(t.m.Dim("session " + t.key + " at " + t.c.Where + "  (/help lists the commands)"))
	}
	if t.c.local != nil && t.m.Terminal {
		if err := cli.WriteServerFile(t.c.local.Home, cli.ServerFile{Talk: true}); err != nil {
			return err
		}
		defer cli.RemoveServerFile(t.c.local.Home)
	}
	lines := readLines(t.m.Stdin)
	for {
		if t.m.Terminal {
			t.m.Out.Put("> ")
		}
		select {
		case <-interrupts:
			t.m.Out.Line()
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		case l, ok := <-lines:
			if !ok || errors.Is(l.err, io.EOF) {
				if t.m.Terminal {
					t.m.Out.Line()
				}
				return nil
			}
			if l.err != nil {
				return fmt.Errorf("read input: %w", l.err)
			}
			if t.m.Terminal && ends(l.text) && !t.sure(lines, interrupts) {
				t.note("nothing was done")
				continue
			}
			over, err := t.line(ctx, l.text, interrupts)
			if err != nil || over {
				return err
			}
		}
	}
}

// line is one line of input.
type line struct {
	text string
	err  error
}

// readLines gives the lines of r. Its goroutine ends with the input, or with the program.
func readLines(r io.Reader) <-chan line {
	lines := make(chan line)
	go func() {
		defer close(lines)
		in := bufio.NewReader(r)
		for {
			s, err := in.ReadString('\n')
			if s != "" {
				lines <- line{text: strings.TrimRight(s, "\r\n")}
			}
			if err != nil {
				lines <- line{err: err}
				return
			}
		}
	}()
	return lines
}

// line carries out one line. On a terminal a failure is shown and the talk goes on; from a pipe it
// ends, since the next line may depend on it.
func (t *talk) line(ctx context.Context, text string, interrupts <-chan os.Signal) (over bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan struct{})
	defer close(done)
	go func() {
		for n := 0; ; n++ {
			select {
			case <-done:
				return
			case <-interrupts:
				if n > 0 || t.abort(ctx) != nil {
					cancel()
				}
			}
		}
	}()
	bad := checkText(text)
	switch {
	case bad != nil:
		err = bad
	case strings.TrimSpace(text) == "":
	case strings.HasPrefix(text, "//"):
		err = t.say(ctx, text[1:])
	case strings.HasPrefix(text, "/"):
		over, err = t.command(ctx, text)
	default:
		err = t.say(ctx, text)
	}
	var api *cli.APIError
	if err != nil && (t.m.Terminal || errors.As(err, &api) && api.Type == "aborted") {
		t.note(err.Error())
		if fix := t.m.Fix(err); fix != "" {
			t.note("  " + fix)
		}
		err = nil
	}
	return over, err
}

// checkText refuses what is not UTF-8: JSON cannot carry it, and a message is never altered.
func checkText(text string) error {
	for i, r := range text {
		if r != utf8.RuneError || strings.HasPrefix(text[i:], string(utf8.RuneError)) {
			continue
		}
		return cli.Advise(fmt.Errorf("message %q: byte %d (0x%02x) is not UTF-8", cli.Cut(strings.ToValidUTF8(text, "?"), 40), i+1, text[i]),
			"convert it first, for example by: iconv -f latin1 -t utf-8")
	}
	return nil
}

func (t *talk) abort(ctx context.Context) error {
	return t.c.Post(ctx, cli.SessionPath(t.key, "/abort"), nil, nil)
}

// say sends a message and shows its answer as it comes, then how full the window is; as JSON, the answer alone.
func (t *talk) say(ctx context.Context, text string) error {
	said := map[string]string{"text": text, "channel": "cli"}
	if t.m.JSON {
		return answer(ctx, t.m, t.c, http.MethodPost, cli.SessionPath(t.key, "/messages"), said, func(json.RawMessage) {})
	}
	if err := t.stream(ctx, "/messages", said); err != nil {
		return err
	}
	return t.gauge(ctx)
}

// gauge shows how near the context is to its compaction.
func (t *talk) gauge(ctx context.Context) error {
	var s sessionView
	if err := t.c.Get(ctx, cli.SessionPath(t.key, ""), &s); err != nil {
		return err
	}
	t.note(cli.Towards(s.ContextTokens, s.Limit, s.Window))
	return nil
}

// stream sends a body and shows the events of the answer.
func (t *talk) stream(ctx context.Context, path string, body any) error {
	raw, err := json.Marshal(body)
	if err != nil {
		return err
	}
	err = t.c.Events(ctx, http.MethodPost, cli.SessionPath(t.key, path), bytes.NewReader(raw), t.event)
	t.newline()
	return err
}

// event shows one event of a turn.
func (t *talk) event(name string, data []byte) error {
	var n session.Notice
	if name == "done" || name == "receipt" {
		return nil
	}
	if err := json.Unmarshal(data, &n); err != nil {
		return fmt.Errorf("event %s: %w", name, err)
	}
	switch name {
	case session.NoticeText:
		text := n.Text
		if t.m.Terminal {
			text = cli.Safe(text)
		}
		t.m.Out.Put(text)
		t.column = text != "" && !strings.HasSuffix(text, "\n") || text == "" && t.column
	case session.NoticeApproval:
		if len(n.Approvals) > 0 {
			t.answer(n.Text)
		}
	case session.NoticeTool:
		t.note("[" + n.Text + "]")
	case session.NoticeRestart:
		t.note("[the answer begins again]")
	case session.NoticeCompacting:
		t.note("[" + n.Text + "]")
	case session.NoticeEvent:
		switch {
		case n.Event == nil:
		case n.Event.Type == "answer":
			t.answer(n.Event.Text)
		default:
			t.note("[" + n.Event.Text + "]")
		}
	}
	return nil
}

// newline ends the line of an answer.
func (t *talk) newline() {
	if t.column {
		t.m.Out.Line()
		t.column = false
	}
}

// note shows a line beside the conversation: on a terminal among it, else on standard error.
func (t *talk) note(s string) {
	t.newline()
	w := t.m.Err
	if t.m.Terminal {
		w = t.m.Out
	}
	w.Line(t.m.Dim(cli.Safe(s)))
}

// act carries out a command of a session and prints what people should know.
func act(ctx context.Context, m *cli.Main, key, path string, body any) error {
	ctx, stop := cli.UntilInterrupt(ctx)
	defer stop()
	return with(ctx, m, func(c *client) error {
		if path == "/compact" { // a reset goes on without what the model would remember
			if err := c.ready(); err != nil {
				return err
			}
		}
		return answer(ctx, m, c, http.MethodPost, cli.SessionPath(key, path), body, func(out outcome) {
			for _, e := range out.Events {
				m.Out.Line(cli.Safe(e.Text))
			}
			if len(out.Events) == 0 {
				m.Out.Line(cli.Safe(out.Text))
			}
		})
	})
}

type chatFlags struct {
	Message string
	Window  int64
}

func chat(ctx context.Context, m *cli.Main, f *chatFlags) error {
	narrow, err := ownWindow(m, f.Window)
	if err != nil {
		return err
	}
	return with(ctx, m, func(c *client) error {
		t := &talk{m: m, c: c, key: strings.Join(append(m.Args, "main")[:1], "")}
		if err := c.ready(); err != nil {
			return err
		}
		if narrow {
			if err := c.Call(ctx, http.MethodPatch, cli.SessionPath(t.key, ""), map[string]any{"window": f.Window}, nil); err != nil {
				return err
			}
		}
		if m.Changed("message") {
			return t.once(ctx, f.Message)
		}
		return t.loop(ctx)
	})
}

func resetSession(ctx context.Context, m *cli.Main, f *struct{ Reason string }) error {
	return act(ctx, m, m.Args[0], "/reset", map[string]string{"reason": f.Reason})
}

func compact(ctx context.Context, m *cli.Main) error {
	return act(ctx, m, m.Args[0], "/compact", map[string]string{"instructions": strings.Join(m.Args[1:], " ")})
}

func abort(ctx context.Context, m *cli.Main) error {
	type aborted struct {
		Aborted bool `json:"aborted"`
	}
	return tell(ctx, m, http.MethodPost, cli.SessionPath(m.Args[0], "/abort"), nil, func(out aborted) {
		m.Out.Line(map[bool]string{true: "stopped", false: "nothing was in work"}[out.Aborted])
	})
}

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
	own := strings.ToLower(strings.TrimSpace(text))
	switch own {
	case "/quit", "/exit", "/q":
		return true, nil
	}
	if name, _, _ := strings.Cut(text, " "); t.m.JSON {
		return false, cli.Usagef("%s is a command, and --json prints answers to messages; leave it out, or begin with // to say that to the model", name)
	}
	switch own {
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
