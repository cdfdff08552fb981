package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/config"
)

// usageError is a mistake in how the program was called.
type usageError struct{ text string }

func (e *usageError) Error() string { return e.text }

// Usagef is a mistake in how the program was called.
func Usagef(format string, args ...any) error { return &usageError{fmt.Sprintf(format, args...)} }

// flagError says of a flag's value what is wanted instead of how Go failed to read it.
func flagError(err error) error {
	text, _, number := strings.Cut(err.Error(), ": strconv.Parse")
	if !number {
		return err
	}
	return Usagef("%s: want a whole number", text)
}

// ErrTold is a failure that has been reported already.
var ErrTold = errors.New("told")

// Fixed is an error that brings its own advice.
type Fixed struct {
	err error
	Fix string
}

// Advise says what a person can do about an error.
func Advise(err error, fix string) error { return &Fixed{err, fix} }

// Error is the error without the advice.
func (e *Fixed) Error() string { return e.err.Error() }

// Unwrap is the error that the advice is for.
func (e *Fixed) Unwrap() error { return e.err }

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
	var api *APIError
	var child *ChildEnded
	code, who, kind := ExitFailed, cmd.CommandPath(), "failed"
	var fix string
	switch {
	case err == nil:
		return ExitOK
	case errors.As(err, &usage) || !m.entered:
		code, who, kind, fix = ExitUsage, "tidemark", "usage", "run `"+cmd.CommandPath()+" --help`"
	case errors.Is(err, ErrTold):
		return ExitFailed
	case errors.As(err, &child):
		return child.Code
	default:
		fix = m.Fix(err)
	}
	if m.JSON {
		var out told
		if kind == "failed" && (errors.Is(err, tidemark.ErrNotFound) || errors.Is(err, fs.ErrNotExist)) {
			kind = "not_found" // as the API calls it
		}
		out.Error.Type, out.Error.Message, out.Error.Fix = kind, PlainError(err), fix
		if errors.As(err, &api) {
			out.Error.Type, out.Error.Request = cmp.Or(api.Type, kind), api.Request
		}
		m.Err.json(out)
		return code
	}
	m.Err.Printf("%s: %s\n", who, strings.ReplaceAll(strings.TrimRight(PlainError(err), "\n"), "\n", "\n  "))
	if fix != "" {
		m.Err.Printf("  what to do: %s\n", fix)
	}
	return code
}

// PlainError is the text of an error without the kind at its end, when that says no more than that something
// is wrong.
func PlainError(err error) string {
	return strings.TrimSuffix(err.Error(), ": "+tidemark.ErrInvalid.Error())
}

// Fix says what a person can do about an error.
func (m *Main) Fix(err error) string {
	var own *Fixed
	var api *APIError
	switch {
	case errors.As(err, &own):
		return own.Fix
	case errors.As(err, &api):
		return api.Fix()
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

// APIError is an answer that reports a failure.
type APIError struct {
	Status  int    `json:"-"`
	Type    string `json:"type"`
	Message string `json:"message"`
	Request string `json:"requestId"`
	where   string
	path    string // what was asked for
	said    string // how an answer begins that is none of ours
}

// Error is the server's own message, with what is not there said to be so.
func (e *APIError) Error() string {
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

// advices are what a person can do about answers: the first row counts whose words are those of the answer. Kinds and parts
// of the path are alternatives; ^ is the beginning of a message, $ the end of a path.
var advices = []struct{ kinds, paths, message, fix string }{
	{"not_found", "", "^no route", "check the path of --server or TIDEMARK_SERVER; it is the server's address without /v1"},
	{"not_found", "/snapshots/ /branch /compare", "", "`tidemark tree --ids` shows the snapshots and branches there are, `tidemark sessions ls` the sessions"},
	{"not_found", "/entries/", "", "`tidemark log KEY --json` shows the ids there are, and recall those of what it finds"},
	{"not_found", "", "there is no such agent", "name one that is there: main, or one of agents in the configuration"},
	{"not_found", "/memory-undo", "", "`tidemark memory cat FILE` shows the file; only what an edit has replaced can be brought back"},
	{"not_found", "/memory/ledger", "", "`tidemark memory ledger` shows the rows there are"},
	{"not_found", "/memory", "", "`tidemark memory ls` shows the files there are"},
	{"not_found", "/pairing /owner", "", "`tidemark pairing ls` shows the codes that people were told, and the names of who is known"},
	{"not_found", "/schedules", "", "`tidemark schedule ls` shows the schedules there are"},
	{"not_found", "/archives /restore", "", "`tidemark archive ls` shows the archives there are"},
	{"not_found", "/anatomy/", "^call ", ""}, // see NumbersOfCalls
	{"not_found", "", "", "`tidemark sessions ls` shows the sessions there are"},
	{"unauthorized", "", "", "set TIDEMARK_TOKEN to the server's token"},
	{"forbidden", "", "", "call it from this machine, or set TIDEMARK_TOKEN there and here; server.origins has the pages that may call"},
	{"conflict", ":proxy:", "", "go on in the client; `tidemark view KEY`, log and anatomy show the conversation"},
	{"conflict", "/branch /trim", "", "choose another --name; `tidemark tree` shows which are taken"},
	{"conflict", "/import /restore /archive? /archive$", "", "choose another --session; `tidemark sessions ls` shows which names are taken"},
	{"conflict", "/snapshots/", "", "leave it where it is: the tree needs it for what was made of it, which `tidemark snapshot show REF` lists"},
	{"conflict busy", "", "", "wait until the turn in work has ended, or stop it with `tidemark abort KEY`"},
	{"aborted", "", "", "say it again when you like; what was said before is in the log"},
	{"rate overloaded network timeout unavailable", "", "", "try again in a moment; `tidemark doctor` checks the setup"},
	{"auth", "", "", "set the right key in the environment (ANTHROPIC_API_KEY or OPENAI_API_KEY) and start again"},
	{"overflow too_large", "/schedules", "", "make the prompt shorter, or remove a schedule with `tidemark schedule rm ID`"},
	{"overflow too_large", "", "snapshots and branches", "`tidemark snapshot ls` shows what there is, and `tidemark snapshot rm REF` takes one away"},
	{"overflow too_large", "/snapshots /branch /trim", "", "correct what is named above"},
	{"overflow too_large", "", "", "raise the session's window with `tidemark sessions set KEY --window N`, or send less"},
	{"no_gain", "", "", "nothing needs to be done: there is nothing to make smaller yet"},
	{"damaged", "", "", "put a copy of that file back into the bucket; `tidemark archive verify ARCHIVE` says all that is wrong with it"},
	{"invalid bad_request changed", "/archives /restore", "", "correct what is named above; `tidemark archive ls` shows the archives"},
	{"invalid bad_request changed", "/recall", "without a peer", "add --peer whatsapp:+49… or the name of who it is, as `tidemark sessions ls` shows them"},
	{"invalid bad_request changed", "/import", "no message", "give a log of Claude Code (.jsonl), or an export or archive of Tidemark"},
	{"invalid bad_request changed", "", "", "correct what is named above"},
}

// Fix says what a person can do about it.
func (e *APIError) Fix() string {
	has := func(text, part string) bool {
		if begin, ok := strings.CutPrefix(part, "^"); ok {
			return strings.HasPrefix(text, begin)
		}
		if end, ok := strings.CutSuffix(part, "$"); ok {
			return strings.HasSuffix(text, end)
		}
		return strings.Contains(text, part)
	}
	for _, a := range advices {
		on := func(part string) bool { return has(e.path, part) }
		if !slices.Contains(strings.Fields(a.kinds), e.Type) || !has(e.Message, a.message) || a.paths != "" && !slices.ContainsFunc(strings.Fields(a.paths), on) {
			continue
		}
		return cmp.Or(a.fix, NumbersOfCalls(e.path))
	}
	if e.Message == "" && e.Request == "" {
		return "try again in a moment; `tidemark doctor` checks the server"
	}
	return "the server's log has it under request " + cmp.Or(e.Request, "?")
}

// NumbersOfCalls names the command that shows the calls of a session, whose key stands in a path of the API.
func NumbersOfCalls(path string) string {
	key := "KEY"
	if _, rest, ok := strings.Cut(path, "/sessions/"); ok {
		part, _, _ := strings.Cut(rest, "/anatomy/")
		if plain, err := url.PathUnescape(part); err == nil {
			key = PlainKey(plain)
		}
	}
	return "`tidemark anatomy " + key + "` shows the numbers of the newest calls, --limit more of them"
}

// StatusOf is the status of an answer that reports a failure, 0 for other errors.
func StatusOf(err error) int {
	var api *APIError
	if errors.As(err, &api) {
		return api.Status
	}
	return 0
}

// ChildEnded is the end of a command that did not end well: its exit code is ours, and it has said
// itself what was wrong.
type ChildEnded struct {
	Code   int
	Unmade bool // it never ran
}

// Error says how it ended.
func (e *ChildEnded) Error() string {
	return "the command ended with exit code " + strconv.Itoa(e.Code)
}
