package claude

import (
	"fmt"
	"os/exec"
	"strings"

	"github.com/tidemark-ai/tidemark"
)

// program is what Claude Code is called on the command line.
const program = "claude"

// Command is what a user types to go on in the session, for a POSIX shell.
func (b Branch) Command() string {
	return "cd " + shellQuote(b.Project) + " && " + program + " --resume " + b.Session
}

// Resume is the command that goes on in the session: Claude Code, in the branch's project. No shell is involved, and it
// is for the caller to start it on a terminal.
//
// # Errors
//
// tidemark.ErrNotFound when there is no program of that name.
func (b Branch) Resume() (*exec.Cmd, error) {
	path, err := exec.LookPath(program)
	if err != nil {
		return nil, fmt.Errorf("launch %s: there is no such program in PATH; go on with: %s: %w", program, b.Command(), tidemark.ErrNotFound)
	}
	cmd := exec.Command(path, "--resume", b.Session) //nolint:noctx,gosec // it ends when its user ends it
	cmd.Dir = b.Project
	return cmd, nil
}

// shellQuote makes one word of a text for a POSIX shell. What has none but harmless characters stays as it is.
func shellQuote(s string) string {
	plain := s != ""
	for _, c := range []byte(s) {
		plain = plain && (c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("/._-+:@%,=", c) >= 0)
	}
	if plain {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
