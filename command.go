package tidemark

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// Commands that a person may give in a conversation, as words after a slash.
const (
	CommandNew     = "new"
	CommandReset   = "reset"
	CommandCompact = "compact"
	CommandStatus  = "status"
	CommandStop    = "stop"
	CommandModel   = "model"
	CommandMemory  = "memory"
	CommandHelp    = "help"

	CommandSnapshot = "snapshot"
	CommandBranch   = "branch"

	CommandApprove = "approve" // with the code of a tool call that waits
	CommandDeny    = "deny"
)

// Command is a word after a slash: what it takes, who may give it, and how help tells of it.
type Command struct {
	Word  string
	Takes string // "": nothing, "text": any, or none, "name": a line, or none, "word": one, or none, "code": one word
	Whose Whose
	Form  string // empty: the line of another word tells of it, too
	Does  string
}

// Whose says who may give a command.
type Whose int

// Who gives commands.
const (
	Everybodys Whose = iota
	Speakers         // the owner's, and in a conversation of others theirs
	Owners           // the owner's, in a conversation of the owner's
)

// Commands are all of them, as help lists them.
func Commands() []Command {
	return []Command{
		{CommandNew, "", Speakers, "/new or /reset", "begin a new conversation; this one is archived"},
		{CommandReset, "", Speakers, "", ""},
		{CommandCompact, "text", Speakers, "/compact [what to keep]", "summarise older messages now"},
		{CommandStop, "", Speakers, "/stop", "stop the answer that is being written"},
		{CommandSnapshot, "name", Speakers, "/snapshot [name]", "name this place, to come back to"},
		{CommandStatus, "", Everybodys, "/status", "how this conversation stands"},
		{CommandModel, "word", Everybodys, "/model", "which model answers"},
		{CommandBranch, "name", Owners, "/branch [name]", "go on from here in a session of its own, trimmed"},
		{CommandMemory, "", Owners, "/memory", "what is remembered"},
		{CommandApprove, "code", Owners, "/approve CODE, /deny CODE", "decide about a tool call that waits; yes CODE and no CODE do, too"},
		{CommandDeny, "code", Owners, "", ""},
		{CommandHelp, "", Everybodys, "/help", "this"},
	}
}

// maxCommandName bounds a name, a word or a code behind a command.
const maxCommandName = 200

// ParseCommand reads a line that a person typed, such as "/compact keep the numbers", with its slash or
// without, in whatever case a phone's keyboard began it. It is the one grammar of commands for all doors;
// which lines are meant as commands is for each to say.
//
// # Errors
//
// [ErrInvalid] for what is no command, or has more behind it than it takes: a sentence that begins with
// a slash must not reset anything.
func ParseCommand(line string) (word, text string, err error) {
	line = strings.TrimPrefix(strings.TrimSpace(line), "/")
	end := strings.IndexFunc(line, unicode.IsSpace)
	if end < 0 {
		end = len(line)
	}
	word, text = strings.ToLower(line[:end]), strings.TrimSpace(line[end:])
	all := Commands()
	i := slices.IndexFunc(all, func(c Command) bool { return c.Word == word })
	if i < 0 {
		return "", "", fmt.Errorf("%.40q is no command; /help lists them: %w", line, ErrInvalid)
	}
	spaced, long, want := strings.ContainsFunc(text, unicode.IsSpace), len(text) > maxCommandName, ""
	switch takes := all[i].Takes; {
	case takes == "" && text != "":
		want = "nothing behind it"
	case takes == "name" && (long || strings.ContainsAny(text, "\r\n")):
		want = fmt.Sprintf("one name, of up to %d bytes", maxCommandName)
	case takes == "word" && (long || spaced):
		want = "one name, or default"
	case takes == "code" && (long || spaced || text == ""):
		want = "the code of a call that waits"
	}
	if want != "" {
		return "", "", fmt.Errorf("/%s takes %s: %w", word, want, ErrInvalid)
	}
	return word, text, nil
}
