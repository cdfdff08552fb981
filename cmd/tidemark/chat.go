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

	"github.com/spf13/cobra"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/session"
)

func (m *Main) chatCommand() *cobra.Command {
	var message string
	var window int64
	c := &cobra.Command{
		Use: "chat [KEY]", Short: "Talk in a session", Args: cobra.MaximumNArgs(1),
		Long: `Talk in a session, the main one when no KEY is given.

KEY is a name of your own, or agent:{agent}:main, or
agent:{agent}:{channel}:{kind}:{peer}. On a terminal it answers as you type;
from a pipe each line is a message. Answers go to standard output; from a pipe,
everything else goes to standard error.

Commands begin with a slash, as at every other door; two say it to the model:

` + chatHelp() + `

/new and /reset ask first on a terminal; from a pipe they are carried out.
Ctrl-C stops the answer, and leaves when none is on its way.`,
		Example: `  tidemark chat
  tidemark chat garden --window 8000
  tidemark chat --message "What did we decide about the fence?"
  git log -5 --format=%s | tidemark chat work`,
		RunE: func(cmd *cobra.Command, args []string) error {
			key := "main"
			if len(args) > 0 {
				key = args[0]
			}
			narrow, err := ownWindow(cmd, window)
			if err != nil {
				return err
			}
			return m.with(cmd.Context(), func(c *client) error {
				t := &talk{m: m, c: c, key: key}
				if err := c.ready(); err != nil {
					return err
				}
				if narrow {
					if err := t.begin(cmd.Context(), window); err != nil {
						return err
					}
				}
				if cmd.Flags().Changed("message") {
					return t.once(cmd.Context(), message)
				}
				return t.loop(cmd.Context())
			})
		},
	}
	c.Flags().StringVarP(&message, "message", "m", "", "say one thing or give one command, print the answer and leave")
	c.Flags().Int64Var(&window, "window", 0, "give the session a context window of its own, in tokens")
	return m.jsonFlag(c)
}

// talk is a conversation with a person.
type talk struct {
	m      *Main
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

// sessionView is a session as the API shows it.
type sessionView struct {
	tidemark.SessionInfo
	Busy     string           `json:"busy"`
	Settings session.Override `json:"settings"`
	From     string           `json:"windowFrom"`
	Limit    tidemark.Tokens  `json:"limit"`
	Reserve  tidemark.Tokens  `json:"reserve"`
	Keep     tidemark.Tokens  `json:"keep"`
}

// begin sets the window.
func (t *talk) begin(ctx context.Context, window int64) error {
	return t.c.call(ctx, http.MethodPatch, sessionPath(t.key, ""), map[string]any{"window": window}, nil)
}

// once says one thing, or carries out one command, as a line of input would.
func (t *talk) once(ctx context.Context, message string) error {
	ctx, stop := untilInterrupt(ctx)
	defer stop()
	if err := checkText(message); err != nil {
		return err
	}
	if said, literal := strings.CutPrefix(message, "//"); literal {
		message = "/" + said
	} else if strings.HasPrefix(message, "/") {
		return t.onceCommand(ctx, message)
	}
	if t.m.json {
		var out json.RawMessage
		if err := t.c.post(ctx, sessionPath(t.key, "/messages"), map[string]string{"text": message, "channel": "cli"}, &out); err != nil {
			return err
		}
		return t.m.printJSON(out)
	}
	return t.say(ctx, message)
}

// onceCommand carries out one command. Nobody reads on, so one that is no command is a failure.
func (t *talk) onceCommand(ctx context.Context, text string) error {
	name, _, _ := strings.Cut(text, " ")
	if t.m.json {
		return usagef("%s is a command, and --json prints answers to messages; leave it out, or begin with // to say that to the model", name)
	}
	if _, _, err := tidemark.ParseCommand(text); err != nil && name != "/view" && name != "/?" {
		return &fixed{err, "begin with // to say it to the model"}
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
		t.m.out.line(t.m.dim("session " + t.key + " at " + t.c.where + "  (/help lists the commands)"))
	}
	if t.c.local != nil && t.m.Terminal {
		if err := writeServerFile(t.c.local.home, serverFile{Talk: true}); err != nil {
			return err
		}
		defer removeServerFile(t.c.local.home)
	}
	lines := readLines(t.m.Stdin)
	for {
		if t.m.Terminal {
			t.m.out.put("> ")
		}
		select {
		case <-interrupts:
			t.m.out.line()
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		case l, ok := <-lines:
			if !ok || errors.Is(l.err, io.EOF) {
				if t.m.Terminal {
					t.m.out.line()
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
	var api *apiError
	if err != nil && (t.m.Terminal || errors.As(err, &api) && api.Type == "aborted") {
		t.note(err.Error())
		if fix := t.m.fix(err); fix != "" {
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
		return &fixed{fmt.Errorf("message %q: byte %d (0x%02x) is not UTF-8", cut(strings.ToValidUTF8(text, "?"), 40), i+1, text[i]),
			"convert it first, for example by: iconv -f latin1 -t utf-8"}
	}
	return nil
}

func (t *talk) abort(ctx context.Context) error {
	return t.c.post(ctx, sessionPath(t.key, "/abort"), nil, nil)
}

// say sends a message and shows its answer as it comes, then how full the window is.
func (t *talk) say(ctx context.Context, text string) error {
	err := t.stream(ctx, "/messages", map[string]string{"text": text, "channel": "cli"})
	if err != nil {
		return err
	}
	return t.gauge(ctx)
}

// gauge shows how near the context is to its compaction.
func (t *talk) gauge(ctx context.Context) error {
	var s sessionView
	if err := t.c.get(ctx, sessionPath(t.key, ""), &s); err != nil {
		return err
	}
	t.note(towards(s.ContextTokens, s.Limit, s.Window))
	return nil
}

// stream sends a body and shows the events of the answer.
func (t *talk) stream(ctx context.Context, path string, body any) error {
	raw, err := json.Marshal(body)
	if err != nil {
		return err
	}
	err = t.c.events(ctx, http.MethodPost, sessionPath(t.key, path), bytes.NewReader(raw), t.event)
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
			text = safe(text)
		}
		t.m.out.put(text)
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
		t.m.out.line()
		t.column = false
	}
}

// note shows a line beside the conversation: on a terminal among it, else on standard error.
func (t *talk) note(s string) {
	t.newline()
	w := t.m.err
	if t.m.Terminal {
		w = t.m.out
	}
	w.line(t.m.dim(safe(s)))
}

// Commands outside of a talk.

func (m *Main) resetCommand() *cobra.Command {
	var reason string
	c := &cobra.Command{
		Use: "reset KEY", Short: "Archive a session, remember what matters and begin anew", Args: oneKey,
		Example: `  tidemark reset main`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return m.act(cmd.Context(), args[0], "/reset", map[string]string{"reason": reason})
		},
	}
	c.Flags().StringVar(&reason, "reason", "", "why, for the record")
	return m.jsonFlag(c)
}

func (m *Main) compactCommand() *cobra.Command {
	return m.jsonFlag(&cobra.Command{
		Use: "compact KEY [INSTRUCTIONS]", Short: "Make a session's context smaller now", Args: func(cmd *cobra.Command, args []string) error { return oneKey(cmd, args[:min(len(args), 1)]) },
		Example: `  tidemark compact main
  tidemark compact work keep every file name`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return m.act(cmd.Context(), args[0], "/compact", map[string]string{"instructions": strings.Join(args[1:], " ")})
		},
	})
}

func (m *Main) abortCommand() *cobra.Command {
	return m.jsonFlag(&cobra.Command{
		Use: "abort KEY", Short: "Stop the turn in work", Args: oneKey,
		Example: `  tidemark abort main`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return m.with(cmd.Context(), func(c *client) error {
				var out struct {
					Aborted bool `json:"aborted"`
				}
				if err := c.post(cmd.Context(), sessionPath(args[0], "/abort"), nil, &out); err != nil {
					return err
				}
				if m.json {
					return m.printJSON(out)
				}
				text := "nothing was in work"
				if out.Aborted {
					text = "stopped"
				}
				m.out.line(text)
				return nil
			})
		},
	})
}

// act carries out a command of a session and prints what people should know.
func (m *Main) act(ctx context.Context, key, path string, body any) error {
	ctx, stop := untilInterrupt(ctx)
	defer stop()
	return m.with(ctx, func(c *client) error {
		if path == "/compact" { // a reset goes on without what the model would remember
			if err := c.ready(); err != nil {
				return err
			}
		}
		var raw json.RawMessage
		if err := c.post(ctx, sessionPath(key, path), body, &raw); err != nil {
			return err
		}
		if m.json {
			return m.printJSON(raw)
		}
		var out outcome
		if err := json.Unmarshal(raw, &out); err != nil {
			return err
		}
		for _, e := range out.Events {
			m.out.line(safe(e.Text))
		}
		if len(out.Events) == 0 {
			m.out.line(safe(out.Text))
		}
		return nil
	})
}
