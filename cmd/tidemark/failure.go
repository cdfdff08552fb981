package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/config"
)

// usageError is a mistake in how the program was called.
type usageError struct{ text string }

func (e *usageError) Error() string { return e.text }

func usagef(format string, args ...any) error { return &usageError{fmt.Sprintf(format, args...)} }

// flagError says of a flag's value what is wanted instead of how Go failed to read it.
func flagError(err error) error {
	text, _, number := strings.Cut(err.Error(), ": strconv.Parse")
	if !number {
		return err
	}
	return usagef("%s: want a whole number", text)
}

// errTold is a failure that has been reported already.
var errTold = errors.New("told")

// fixed is an error that brings its own advice.
type fixed struct {
	err error
	fix string
}

func (e *fixed) Error() string { return e.err.Error() }
func (e *fixed) Unwrap() error { return e.err }

// told is a failure as programs read it, in the shape of the API's.
type told struct {
	Error struct {
		Type    string `json:"type"` // the API's, or usage, or failed
		Message string `json:"message"`
		Fix     string `json:"fix,omitempty"`
		Request string `json:"requestId,omitempty"`
	} `json:"error"`
}

// report says on standard error what failed and what to do, and returns the exit code.
func (m *Main) report(cmd *cobra.Command, err error) int {
	var usage *usageError
	var api *apiError
	var child *childEnded
	code, who, kind := exitFailed, cmd.CommandPath(), "failed"
	var fix string
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &usage) || !m.entered:
		code, who, kind, fix = exitUsage, "tidemark", "usage", "run `"+cmd.CommandPath()+" --help`"
	case errors.Is(err, errTold):
		return exitFailed
	case errors.As(err, &child):
		return child.code
	default:
		fix = m.fix(err)
	}
	if m.json {
		var out told
		if kind == "failed" && (errors.Is(err, tidemark.ErrNotFound) || errors.Is(err, fs.ErrNotExist)) {
			kind = "not_found" // as the API calls it
		}
		out.Error.Type, out.Error.Message, out.Error.Fix = kind, plainError(err), fix
		if errors.As(err, &api) {
			out.Error.Type, out.Error.Request = cmp.Or(api.Type, kind), api.Request
		}
		m.err.json(out)
		return code
	}
	m.err.printf("%s: %s\n", who, strings.ReplaceAll(strings.TrimRight(plainError(err), "\n"), "\n", "\n  "))
	if fix != "" {
		m.err.printf("  what to do: %s\n", fix)
	}
	return code
}

// plainError is the text of an error without the kind at its end, when that says no more than that something
// is wrong.
func plainError(err error) string {
	return strings.TrimSuffix(err.Error(), ": "+tidemark.ErrInvalid.Error())
}

// wantArgs has a command and those below it say which arguments they want, where cobra counts them.
func wantArgs(c *cobra.Command) {
	for _, sub := range c.Commands() {
		wantArgs(sub)
	}
	check := c.Args
	if check == nil {
		return
	}
	c.Args = func(cmd *cobra.Command, args []string) error {
		err := check(cmd, args)
		if err == nil || !strings.Contains(err.Error(), "arg(s)") {
			return err
		}
		_, wanted, _ := strings.Cut(cmd.Use, " ")
		return usagef("%s: want %s, got %s", cmd.CommandPath(), wanted, cmp.Or(strings.Join(args, " "), "nothing"))
	}
}

// fix says what a person can do about an error.
func (m *Main) fix(err error) string {
	var own *fixed
	var api *apiError
	switch {
	case errors.As(err, &own):
		return own.fix
	case errors.As(err, &api):
		return api.fix()
	case errors.Is(err, context.Canceled):
		return "nothing is lost; run it again when you like"
	case ofConfig(err):
		return "correct what is named above; `tidemark config check` reads the configuration"
	case errors.Is(err, tidemark.ErrInvalid): // what a command was given
		return "correct what is named above"
	case errors.Is(err, os.ErrNotExist), errors.Is(err, os.ErrPermission):
		return "check the path and its permissions"
	}
	return "`tidemark doctor` checks the setup"
}

// ofConfig reports whether the configuration is what is wrong: its own list of mistakes, or what
// [Main.load] says of the document.
func ofConfig(err error) bool {
	var list *config.Error
	return errors.As(err, &list) || errors.Is(err, tidemark.ErrInvalid) && strings.HasPrefix(err.Error(), "configuration: ")
}

// apiError is an answer that reports a failure.
type apiError struct {
	Status  int    `json:"-"`
	Type    string `json:"type"`
	Message string `json:"message"`
	Request string `json:"requestId"`
	where   string
	path    string // what was asked for
	said    string // how an answer begins that is none of ours
}

// Error is the server's own message, with what is not there said to be so.
func (e *apiError) Error() string {
	text := e.Message
	if text == "" {
		text = fmt.Sprintf("%s answered %d %s", e.where, e.Status, http.StatusText(e.Status))
		if e.said != "" {
			text += ": " + e.said
		}
	}
	if e.Type == "not_found" && !strings.Contains(text, "not found") && !strings.Contains(text, "there is no such") {
		text += ": not found"
	}
	return text
}

// about reports whether the path has a part.
func (e *apiError) about(part string) bool { return strings.Contains(e.path, part) }

// fix says what a person can do about it.
func (e *apiError) fix() string {
	switch e.Type {
	case "not_found":
		return e.lists()
	case "unauthorized":
		return "set TIDEMARK_TOKEN to the server's token"
	case "forbidden":
		return "call it from this machine, or set TIDEMARK_TOKEN there and here; server.origins has the pages that may call"
	case "conflict":
		if strings.Contains(e.path, ":proxy:") {
			return "go on in the client; `tidemark view KEY`, log and anatomy show the conversation"
		}
		if e.about("/branch") || e.about("/trim") {
			return "choose another --name; `tidemark tree` shows which are taken"
		}
		if e.about("/import") || e.about("/restore") || e.about("/archive?") || strings.HasSuffix(e.path, "/archive") {
			return "choose another --session; `tidemark sessions ls` shows which names are taken"
		}
		if e.about("/snapshots/") {
			return "leave it where it is: the tree needs it for what was made of it, which `tidemark snapshot show REF` lists"
		}
		return "wait until the turn in work has ended, or stop it with `tidemark abort KEY`"
	case "busy":
		return "wait until the turn in work has ended, or stop it with `tidemark abort KEY`"
	case "aborted":
		return "say it again when you like; what was said before is in the log"
	case "rate", "overloaded", "network", "timeout", "unavailable":
		return "try again in a moment; `tidemark doctor` checks the setup"
	case "auth":
		return "set the right key in the environment (ANTHROPIC_API_KEY or OPENAI_API_KEY) and start again"
	case "overflow", "too_large":
		switch {
		case e.about("/schedules"):
			return "make the prompt shorter, or remove a schedule with `tidemark schedule rm ID`"
		case strings.Contains(e.Message, "snapshots and branches"):
			return "`tidemark snapshot ls` shows what there is, and `tidemark snapshot rm REF` takes one away"
		case e.about("/snapshots"), e.about("/branch"), e.about("/trim"):
			return "correct what is named above"
		}
		return "raise the session's window with `tidemark sessions set KEY --window N`, or send less"
	case "no_gain":
		return "nothing needs to be done: there is nothing to make smaller yet"
	case "damaged":
		return "put a copy of that file back into the bucket; `tidemark archive verify ARCHIVE` says all that is wrong with it"
	case "invalid", "bad_request", "changed":
		return e.correct()
	}
	if e.Message == "" && e.Request == "" {
		return "try again in a moment; `tidemark doctor` checks the server"
	}
	return "the server's log has it under request " + cmp.Or(e.Request, "?")
}

// correct says what is wanted where the message cannot.
func (e *apiError) correct() string {
	switch {
	case e.about("/archives") || e.about("/restore"):
		return "correct what is named above; `tidemark archive ls` shows the archives"
	case e.about("/recall") && strings.Contains(e.Message, "without a peer"):
		return "add --peer whatsapp:+49… or the name of who it is, as `tidemark sessions ls` shows them"
	case e.about("/import") && strings.Contains(e.Message, "no message"):
		return "give a log of Claude Code (.jsonl), or an export or archive of Tidemark"
	}
	return "correct what is named above"
}

// lists names the command that shows what there is of the kind that was not found.
func (e *apiError) lists() string {
	switch {
	case strings.HasPrefix(e.Message, "no route"):
		return "check the path of --server or TIDEMARK_SERVER; it is the server's address without /v1"
	case e.about("/snapshots/"), e.about("/branch"), e.about("/compare"):
		return "`tidemark tree --ids` shows the snapshots and branches there are, `tidemark sessions ls` the sessions"
	case e.about("/entries/"):
		return "`tidemark log KEY --json` shows the ids there are, and recall those of what it finds"
	case strings.Contains(e.Message, "there is no such agent"):
		return "name one that is there: main, or one of agents in the configuration"
	case e.about("/memory-undo"):
		return "`tidemark memory cat FILE` shows the file; only what an edit has replaced can be brought back"
	case e.about("/memory/ledger"):
		return "`tidemark memory ledger` shows the rows there are"
	case e.about("/memory"):
		return "`tidemark memory ls` shows the files there are"
	case e.about("/pairing"), e.about("/owner"):
		return "`tidemark pairing ls` shows the codes that people were told, and the names of who is known"
	case e.about("/schedules"):
		return "`tidemark schedule ls` shows the schedules there are"
	case e.about("/archives"), e.about("/restore"):
		return "`tidemark archive ls` shows the archives there are"
	case e.about("/anatomy/") && strings.HasPrefix(e.Message, "call "):
		return numbersOfCalls(e.path)
	}
	return "`tidemark sessions ls` shows the sessions there are"
}

// numbersOfCalls names the command that shows the calls of a session, whose key stands in a path of the API.
func numbersOfCalls(path string) string {
	key := "KEY"
	if _, rest, ok := strings.Cut(path, "/sessions/"); ok {
		part, _, _ := strings.Cut(rest, "/anatomy/")
		if plain, err := url.PathUnescape(part); err == nil {
			key = plainKey(plain)
		}
	}
	return "`tidemark anatomy " + key + "` shows the numbers of the newest calls, --limit more of them"
}
