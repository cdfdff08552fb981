package episodes

import (
	"fmt"

	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/internal/near"
)

// Level is how far an episode is stripped (papers/cwl §4.4). What stands at a level leaves with it.
type Level uint8

// The levels, in the order in which they are tried.
const (
	Reasoning    Level = 1 + iota // thinking, of explorations
	Bulk                          // searches and listings, with their results
	Intermediate                  // reads, commands, fetches and all tools that nothing is known of
	Whole                         // the rest: what the agent said, changes, the episode itself
	levels
)

var levelNames = [levels]string{"", "reasoning", "bulk", "intermediate", "whole"}

// String is the name of a level.
func (l Level) String() string {
	if l >= levels {
		return ""
	}
	return levelNames[l]
}

// ParseLevel reads the level of a tool.
func ParseLevel(s string) (Level, error) {
	for l := Bulk; l < levels; l++ {
		if levelNames[l] == s {
			return l, nil
		}
	}
	return 0, fmt.Errorf("level %.40q of a tool: want bulk, intermediate or whole", s)
}

// Files says of calls which files they name and whether they change them: the table of file tools of paging.
type Files interface {
	Changes(name string, input []byte) bool
	Paths(name string, input []byte) []string
}

// Tools says with which level the calls of a tool leave, and which files they name. It is only read.
type Tools struct {
	files Files
	rows  map[string]Level // by plain name
}

// bulk are tools whose results are large and can be had again: searches and listings of the paper, of Claude Code, Codex,
// Gemini CLI, Cursor, Cline and OpenCode.
var bulk = [...]string{"grep", "glob", "find", "ls", "search", "list", "tree", "rg", "ripgrep", "list_dir", "list_directory", "list_files", "directory_tree",
	"search_files", "search_file_content", "file_search", "grep_search", "codebase_search", "code_search", "find_files", "find_by_name", "web_search"}

// DefaultTools is the table of known tools: searches and listings are bulk, changes of files go with their episode, and all
// others are intermediate, those of MCP servers too. Without files no tool is known to change one.
func DefaultTools(files Files) Tools {
	t := Tools{files: files, rows: make(map[string]Level, len(bulk))}
	for _, name := range bulk {
		t.rows[near.Plain(name)] = Bulk
	}
	return t
}

// With returns a table in which the given rows stand over those of t.
func (t Tools) With(rows map[string]Level) Tools {
	out := Tools{files: t.files, rows: make(map[string]Level, len(t.rows)+len(rows))}
	for name, l := range t.rows {
		out.rows[name] = l
	}
	for name, l := range rows {
		out.rows[near.Plain(name)] = l
	}
	return out
}

// Known reports a table that is not the zero value.
func (t Tools) Known() bool { return t.rows != nil }

// Level is the level of a call.
func (t Tools) Level(name string, input json.RawMessage) Level {
	if name == ToolName {
		return Whole
	}
	if l, ok := t.rows[near.Plain(name)]; ok {
		return l
	}
	if t.files != nil && t.files.Changes(name, input) {
		return Whole
	}
	return Intermediate
}
