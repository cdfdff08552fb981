package claude

import (
	"context"
	"fmt"
	"io"
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

// Launch runs Claude Code in the branch's project, on the given terminal, and waits for its end. No shell is involved.
//
// # Errors
//
// tidemark.ErrNotFound when there is no program of that name; then nothing was started.
func (b Branch) Launch(ctx context.Context, stdin io.Reader, stdout, stderr io.Writer) error {
	path, err := exec.LookPath(program)
	if err != nil {
		return fmt.Errorf("launch %s: there is no such program in PATH; go on with: %s: %w", program, b.Command(), tidemark.ErrNotFound)
	}
	cmd := exec.CommandContext(ctx, path, "--resume", b.Session)
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = b.Project, stdin, stdout, stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("launch %s: %w", program, err)
	}
	return nil
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
