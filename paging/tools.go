package paging

import (
	"bytes"
	"path"
	"slices"
	"strings"

	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/internal/jsonscan"
	"github.com/tidemark-ai/tidemark/internal/near"
)

// Kind is what a tool does, as far as paging cares.
type Kind uint8

// The kinds of tools. The zero Kind is that of every tool that nothing is known of.
const (
	Looks   Kind = iota // looks something up or runs something: its results are garbage in time
	Reads               // reads a file or a part of it: its results are pages
	Changes             // changes a file: what was read of it is old from then on
)

// Tool is a row of the table of tools.
type Tool struct {
	Kind Kind
	Path []string // fields that may hold the path, the first one that is there counts
	// Verb is the field that says what a tool of several uses does, "" for a tool of one. A call
	// whose verb is not among Views changes the file.
	Verb  string
	Views []string
	Patch string // field with a patch that names its files itself
}

// Tools is the table of tools by name. A name is matched as it is, then by its last part where it is
// that of an MCP server (mcp__server__tool), both without regard to capitals, "_" and "-".
// It is only read: [Tools.With] makes another one.
type Tools map[string]Tool

// anyPath are the fields in which tools of several agents name a file.
var anyPath = []string{"file_path", "path", "filename", "file", "target_file", "absolute_path", "notebook_path", "uri", "relative_path", "relative_workspace_path"}

// DefaultTools are the file tools of Claude Code, the Anthropic text editor, Codex, Gemini CLI, Cursor,
// Cline, OpenCode and the MCP filesystem server.
func DefaultTools() Tools {
	t := Tools{}
	for _, name := range []string{"read", "view", "cat", "read_file", "view_file", "read_text_file", "open_file",
		"notebook_read", "read_notebook", "get_file_contents", "read_media_file", "file_read", "fs_read"} {
		t[near.Plain(name)] = Tool{Kind: Reads, Path: anyPath}
	}
	for _, name := range []string{"write", "edit", "multi_edit", "notebook_edit", "edit_notebook", "create", "create_file", "str_replace",
		"insert", "write_file", "write_to_file", "edit_file", "replace", "replace_in_file", "search_replace", "apply_diff",
		"insert_content", "insert_edit_into_file", "delete_file", "create_or_update_file", "undo_edit", "file_write", "file_edit"} {
		t[near.Plain(name)] = Tool{Kind: Changes, Path: anyPath}
	}
	editor := Tool{Kind: Changes, Path: anyPath, Verb: "command", Views: []string{"view"}}
	for _, name := range []string{"str_replace_based_edit_tool", "str_replace_editor", "text_editor"} {
		t[near.Plain(name)] = editor
	}
	t[near.Plain("apply_patch")] = Tool{Kind: Changes, Path: anyPath, Patch: "input"}
	return t
}

// With returns a table in which the given rows stand over those of t.
func (t Tools) With(rows map[string]Tool) Tools {
	out := make(Tools, len(t)+len(rows))
	for name, row := range t {
		out[name] = row
	}
	for name, row := range rows {
		if row.Kind != Looks && len(row.Path) == 0 {
			row.Path = anyPath
		}
		out[near.Plain(name)] = row
	}
	return out
}

// find returns the row of a tool.
func (t Tools) find(name string) (Tool, bool) {
	if row, ok := t[near.Plain(name)]; ok {
		return row, true
	}
	if !strings.HasPrefix(name, "mcp__") {
		return Tool{}, false
	}
	row, ok := t[near.Plain(name[strings.LastIndex(name, "__")+2:])]
	return row, ok
}

// Call is what paging knows of a call of a tool.
type Call struct {
	Tool  string
	Kind  Kind
	Path  string // cleaned; "" when nothing is known of a file
	Range Range
	More  []string // further files that a patch changes
	Asks  string   // what it runs or looks for: the beginning of its command, pattern or query

	Release []string // handles and paths that the model is done with: a call of [ReleaseTool]
	Recall  string   // the handle that it asks for: a call of [RecallTool]
	Wants   []string // handles and paths that it asks for: a call of [FaultTool]
}

// maxName bounds names of tools and files that are kept; a longer one is cut and told by its hash.
const maxName = 1024

// maxPatched bounds the files of one patch.
const maxPatched = 256

// Call says what a call does. A read or change that names no file only looks. A tool that has a row is that of the
// client, also where it is called as one of ours is.
func (t Tools) Call(name string, input []byte) Call {
	c := Call{Tool: bounded(name)}
	row, ok := t.find(name)
	if !ok {
		c.cooperate(name, input)
	}
	f := fields(input)
	if row.Kind == Looks {
		c.Asks = f.asked()
		return c
	}
	for _, field := range row.Path {
		if p := f.text(field); p != "" {
			c.Path = bounded(path.Clean(p))
			break
		}
	}
	c.Kind = row.Kind
	if row.Verb != "" && slices.Contains(row.Views, f.text(row.Verb)) {
		c.Kind = Reads
	}
	if row.Patch != "" {
		c.patched(f.text(row.Patch), f.text("patch"))
	}
	switch {
	case c.Path == "":
		c.Kind = Looks
	case c.Kind == Reads:
		c.Range = f.span()
	}
	return c
}

// patched adds the files that patches name in the form of apply_patch or of a unified diff.
func (c *Call) patched(texts ...string) {
	for _, text := range texts {
		for line := range strings.Lines(text) {
			for _, head := range []string{"*** Update File: ", "*** Add File: ", "*** Delete File: ", "*** Move to: ", "+++ b/", "--- a/"} {
				p, ok := strings.CutPrefix(line, head)
				if p = strings.TrimSpace(p); !ok || p == "" || len(c.More) >= maxPatched {
					continue
				}
				if p = bounded(path.Clean(p)); c.Path == "" {
					c.Path = p
				} else if p != c.Path {
					c.More = append(c.More, p)
				}
			}
		}
	}
}

// inputs are the arguments of a call, by plain name.
type inputs []input

type input struct {
	name string
	raw  []byte
}

// fields lists the members of an input, none of what is no object.
func fields(raw []byte) (f inputs) {
	if jsonscan.Members(raw, func(key, value []byte) { f = append(f, input{near.Plain(string(key)), value}) }) != nil {
		return nil
	}
	return f
}

// get returns the bytes of a value; of two with one name the last.
func (f inputs) get(name string) []byte {
	name = near.Plain(name)
	for i := len(f) - 1; i >= 0; i-- {
		if f[i].name == name {
			return f[i].raw
		}
	}
	return nil
}

// text returns a string, "" where there is none.
func (f inputs) text(name string) (s string) {
	if raw := f.get(name); bytes.HasPrefix(raw, []byte{'"'}) {
		_ = json.Unmarshal(raw, &s)
	}
	return s
}

// Paths returns the files that a call names.
func (t Tools) Paths(name string, input []byte) []string {
	c := t.Call(name, input)
	if c.Path == "" {
		return nil
	}
	return append([]string{c.Path}, c.More...)
}

// Changes reports whether a call changes a file, whichever that is. The input is only read where the name does not say it.
func (t Tools) Changes(name string, input []byte) bool {
	row, _ := t.find(name)
	return row.Kind == Changes && (row.Verb == "" || !slices.Contains(row.Views, fields(input).text(row.Verb)))
}
