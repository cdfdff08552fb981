package tidemark

import (
	"fmt"
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

// maxCommandName bounds what /model, /snapshot, /branch, /approve and /deny may name.
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
	switch word {
	case CommandCompact:
	case CommandSnapshot, CommandBranch:
		if len(text) > maxCommandName || strings.ContainsAny(text, "\r\n") {
			return "", "", fmt.Errorf("/%s takes one name, of up to %d bytes: %w", word, maxCommandName, ErrInvalid)
		}
	case CommandApprove, CommandDeny:
		if text == "" || strings.ContainsFunc(text, unicode.IsSpace) || len(text) > maxCommandName {
			return "", "", fmt.Errorf("/%s takes the code of a call that waits: %w", word, ErrInvalid)
		}
	case CommandModel:
		if strings.ContainsFunc(text, unicode.IsSpace) || len(text) > maxCommandName {
			return "", "", fmt.Errorf("/model takes one name, or default: %w", ErrInvalid)
		}
	case CommandNew, CommandReset, CommandStatus, CommandStop, CommandMemory, CommandHelp:
		if text != "" {
			return "", "", fmt.Errorf("/%s takes nothing behind it: %w", word, ErrInvalid)
		}
	default:
		return "", "", fmt.Errorf("%.40q is no command; /help lists them: %w", line, ErrInvalid)
	}
	return word, text, nil
}
