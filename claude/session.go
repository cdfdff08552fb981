package claude

import (
	"path/filepath"
	"time"
)

// ActiveFor is how long after its last line a session counts as being written.
const ActiveFor = 2 * time.Minute

// Session is a session log of Claude Code, as a listing shows it: what a look at its first and last lines tells.
type Session struct {
	ID       string    `json:"id"`      // the name of its log, without .jsonl
	Path     string    `json:"path"`    // of the log
	Project  string    `json:"project"` // the folder of the log's lines, "" when none names one
	Title    string    `json:"title,omitempty"`
	Prompt   string    `json:"prompt,omitempty"` // the beginning of the first thing the user said
	Model    string    `json:"model,omitempty"`  // that answered last
	Branch   string    `json:"git_branch,omitempty"`
	Version  string    `json:"version,omitempty"` // of Claude Code
	Bytes    int64     `json:"bytes"`
	Created  time.Time `json:"created_at,omitzero"` // of the first line that has a time
	Modified time.Time `json:"modified_at"`         // of the file
	// Side says that the log holds nothing but the talk of a subagent.
	Side bool `json:"side,omitempty"`
}

// Active reports whether somebody probably writes the log now.
func (s Session) Active(now time.Time) bool { return now.Sub(s.Modified) < ActiveFor }

// folder is where Claude Code keeps what belongs to the session beside its log: logs of subagents, outputs of tools.
func (s Session) folder() string { return filepath.Join(filepath.Dir(s.Path), s.ID) }
