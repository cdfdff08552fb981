package claude

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/internal/jsonscan"
	"github.com/tidemark-ai/tidemark/internal/place"
)

// Events of Claude Code at which our hook runs (https://docs.claude.com/en/docs/claude-code/hooks).
const (
	EventPreCompact  = "PreCompact"
	EventPostToolUse = "PostToolUse"
)

// Seconds that Claude Code gives a hook.
const (
	preCompactSeconds  = 60
	postToolUseSeconds = 30
)

// maxSettings bounds a settings file.
const maxSettings = 8 << 20

// backupSuffix names the settings file as it was before our first change.
const backupSuffix = ".tidemark-backup"

// Settings is a settings file of Claude Code: JSON with comments, of which we change nothing but our own hooks.
type Settings struct {
	Path    string
	Command string // what the hook runs, see [HookCommand]
}

// UserSettings is the path of the settings that count for all projects of a user.
func UserSettings(dir string) string { return filepath.Join(dir, "settings.json") }

// ProjectSettings is the path of the settings of a project that are the user's own: what is in it names a program of
// this machine, which is nothing to commit.
func ProjectSettings(project string) string {
	return filepath.Join(project, ".claude", "settings.local.json")
}

// HookCommand is the command line of the hook, for the shell that Claude Code gives it to: the program, its flags, and
// "hook run". Flags that are "" are left out.
func HookCommand(program, home string, flags ...string) string {
	words := []string{shellQuote(program), "hook", "run"}
	if home != "" {
		words = append(words, "--home", shellQuote(home))
	}
	for _, f := range flags {
		words = append(words, shellQuote(f))
	}
	return strings.Join(words, " ")
}

// isOurs reports whether a command is one that [HookCommand] makes, of whatever version and place: a program of our
// name, or the one that is asked for now, and "hook run" right behind it.
func (s Settings) isOurs(command string) bool {
	if command == s.Command && command != "" {
		return true
	}
	word, rest, ok := cutWord(command)
	if !ok || !strings.HasPrefix(rest, " hook run") || strings.ContainsAny(strings.TrimPrefix(rest, " hook run"), ";&|<>`$\n#(") {
		return false
	}
	if rest = strings.TrimPrefix(rest, " hook run"); rest != "" && rest[0] != ' ' {
		return false
	}
	own, _, _ := cutWord(s.Command)
	base := path.Base(strings.ReplaceAll(word, `\`, "/"))
	return base == "tidemark" || base == "tidemark.exe" || own != "" && word == own
}

// cutWord cuts the first word off a command, which may be quoted.
func cutWord(command string) (word, rest string, ok bool) {
	if command == "" {
		return "", "", false
	}
	if q := command[0]; q == '\'' || q == '"' {
		i := strings.IndexByte(command[1:], q)
		if i < 0 {
			return "", "", false
		}
		return command[1 : i+1], command[i+2:], true
	}
	if i := strings.IndexByte(command, ' '); i >= 0 {
		return command[:i], command[i:], true
	}
	return command, "", true
}

// Change is what an edit of a settings file does to it. Nothing is written before [Change.Apply].
type Change struct {
	Path          string
	Before, After []byte // nil for no file
	target        string // the file itself, links followed
	mode          fs.FileMode
	backup        bool // keep Before beside it
	forget        bool // the backup is what the file is again
}

// Changed reports whether there is anything to do.
func (c Change) Changed() bool {
	return (c.Before == nil) != (c.After == nil) || !bytes.Equal(c.Before, c.After)
}

// Installed lists the events at which the hook runs.
func (s Settings) Installed() ([]string, error) {
	c, err := s.read()
	if err != nil || c.Before == nil {
		return nil, err
	}
	found, err := s.find(bytes.TrimPrefix(c.Before, byteOrderMark))
	if err != nil {
		return nil, fmt.Errorf("read settings %s: %w", s.Path, err)
	}
	var events []string
	for _, f := range found {
		events = append(events, f.event)
	}
	return events, nil
}

// Install plans to add the hook to its events. One that is there already as it should be is left.
func (s Settings) Install() (Change, error) {
	c, err := s.read()
	if err != nil {
		return c, err
	}
	c.After, err = s.install(c.Before)
	if err != nil {
		return c, fmt.Errorf("change settings %s: %w", s.Path, err)
	}
	c.backup = c.Before != nil && c.Changed()
	return c, nil
}

// Uninstall plans to take our hooks out, and nothing else. When the file is as the installation left it, it becomes
// what it was before, byte for byte.
func (s Settings) Uninstall() (Change, error) {
	c, err := s.read()
	if err != nil || c.Before == nil {
		return c, err
	}
	if c.After, err = s.uninstall(c.Before); err != nil {
		return c, fmt.Errorf("change settings %s: %w", s.Path, err)
	}
	if bytes.Equal(c.After, c.Before) {
		return c, nil
	}
	old, _, err := readSmall(c.target+backupSuffix, maxSettings)
	if err != nil { // without a backup our hooks are taken out one by one
		if fresh, err := s.install(nil); err == nil && bytes.Equal(fresh, c.Before) {
			c.After = nil // there was no file
		}
		return c, nil
	}
	if again, err := s.install(old); err == nil && bytes.Equal(again, c.Before) {
		c.After, c.forget = old, true
	}
	return c, nil
}

func (s Settings) read() (Change, error) {
	c := Change{Path: s.Path, target: s.Path, mode: fileMode}
	if real, err := filepath.EvalSymlinks(s.Path); err == nil {
		c.target = real // a settings file may be a link into somebody's dotfiles
	}
	raw, mode, err := readSmall(c.target, maxSettings)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return c, fmt.Errorf("read settings %s: %w", s.Path, err)
	}
	c.Before, c.mode = raw, mode
	if c.Before == nil {
		c.Before = []byte{}
	}
	return c, nil
}

// Apply writes the file, if it is still as it was when the change was planned. Before the first change the original is
// kept beside it.
//
// # Errors
//
// tidemark.ErrConflict when somebody changed it meanwhile.
func (c Change) Apply() error {
	if !c.Changed() {
		return nil
	}
	now, _, err := readSmall(c.target, maxSettings)
	if missing := errors.Is(err, fs.ErrNotExist); err != nil && !missing || missing != (c.Before == nil) || !bytes.Equal(now, c.Before) {
		return fmt.Errorf("change settings %s: another program changed the file meanwhile; try again: %w", c.Path, tidemark.ErrConflict)
	}
	if c.backup {
		if err := keepOnce(c.target+backupSuffix, c.Before, c.mode); err != nil {
			return fmt.Errorf("change settings %s: keep the original: %w", c.Path, err)
		}
	}
	if c.After == nil {
		if err := os.Remove(c.target); err != nil {
			return err
		}
		if dir := filepath.Dir(c.target); filepath.Base(dir) == ".claude" {
			_ = os.Remove(dir) // made for the file, when nothing else is in it
		}
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(c.target), folderMode); err != nil {
		return fmt.Errorf("change settings %s: %w", c.Path, err)
	}
	if err := replaceFile(c.target, c.After, c.mode); err != nil {
		return fmt.Errorf("change settings %s: %w", c.Path, err)
	}
	if c.forget {
		_ = os.Remove(c.target + backupSuffix)
	}
	return nil
}

// keepOnce writes a file unless it is there.
func keepOnce(path string, content []byte, mode fs.FileMode) error {
	err := place.Bytes(path, place.Options{Mode: mode}, content)
	if errors.Is(err, tidemark.ErrConflict) {
		return nil
	}
	return err
}

// ours is a hook of ours by its place: the list of its event, and which group and which hook of the group it is.
type ours struct {
	event       string
	command     string
	group, hook int
	groups      *hujson.Value // list of groups of the event
	list        *hujson.Value // hooks of the group
	hooks       *hujson.Value // object of all events
	at, atRoot  int           // which member of hooks, and of the root
}

// find lists our hooks, and refuses a document whose hooks are not what Claude Code reads.
func (s Settings) find(raw []byte) ([]ours, error) {
	_, hooks, at, err := parseSettings(raw)
	if err != nil || hooks == nil {
		return nil, err
	}
	var found []ours
	object, ok := hooks.Value.(*hujson.Object)
	if !ok {
		return nil, fmt.Errorf("hooks is no object: %w", tidemark.ErrInvalid)
	}
	for i := range object.Members {
		m := &object.Members[i]
		event := literal(m.Name.Value)
		groups, ok := m.Value.Value.(*hujson.Array)
		if !ok {
			if event == EventPreCompact || event == EventPostToolUse {
				return nil, fmt.Errorf("hooks.%s is no list: %w", event, tidemark.ErrInvalid)
			}
			continue
		}
		for g := range groups.Elements {
			list := groups.Elements[g].Find("/hooks")
			if list == nil {
				continue
			}
			entries, _ := list.Value.(*hujson.Array)
			for h := 0; entries != nil && h < len(entries.Elements); h++ {
				c := entries.Elements[h].Find("/command")
				if c == nil || !s.isOurs(literal(c.Value)) {
					continue
				}
				found = append(found, ours{event, literal(c.Value), g, h, &m.Value, list, hooks, i, at})
			}
		}
	}
	return found, nil
}

// parseSettings returns the document, its member hooks when it has one, and which member that is.
func parseSettings(raw []byte) (*hujson.Value, *hujson.Value, int, error) {
	root, err := hujson.Parse(raw)
	if err != nil {
		return nil, nil, 0, fmt.Errorf("it is broken, so nothing was changed: %w: %w", err, tidemark.ErrInvalid)
	}
	object, ok := root.Value.(*hujson.Object)
	if !ok {
		return nil, nil, 0, fmt.Errorf("it is no object, so nothing was changed: %w", tidemark.ErrInvalid)
	}
	var hooks *hujson.Value
	at := 0
	for i := range object.Members {
		if literal(object.Members[i].Name.Value) != "hooks" {
			continue
		}
		if hooks != nil {
			return nil, nil, 0, fmt.Errorf("it has hooks twice, so nothing was changed; join them: %w", tidemark.ErrInvalid)
		}
		hooks, at = &object.Members[i].Value, i
	}
	return &root, hooks, at, nil
}

// literal is the text of a string, "" of anything else.
func literal(v hujson.ValueTrimmed) string {
	l, ok := v.(hujson.Literal)
	if !ok || l.Kind() != '"' {
		return ""
	}
	return l.String()
}

// byteOrderMark begins files that some editors of Windows write. It is no JSON, and it stays.
var byteOrderMark = []byte("\ufeff")

// marked does something to a document without its byte order mark.
func marked(raw []byte, do func([]byte) ([]byte, error)) ([]byte, error) {
	rest, has := bytes.CutPrefix(raw, byteOrderMark)
	if !has {
		return do(raw)
	}
	out, err := do(rest)
	if err != nil {
		return nil, err
	}
	return append(bytes.Clone(byteOrderMark), out...), nil
}

func (s Settings) install(raw []byte) ([]byte, error) { return marked(raw, s.installed) }

func (s Settings) installed(raw []byte) ([]byte, error) {
	if len(bytes.TrimSpace(raw)) == 0 {
		raw = []byte("{\n}\n")
	}
	found, err := s.find(raw)
	if err != nil {
		return nil, err
	}
	have := map[string]int{}
	for _, f := range found {
		if f.command == s.Command {
			have[f.event]++
		}
	}
	if len(found) == 2 && have[EventPreCompact] == 1 && have[EventPostToolUse] == 1 {
		return raw, nil
	}
	if raw, err = s.uninstalled(raw); err != nil {
		return nil, err
	}
	for _, event := range []string{EventPreCompact, EventPostToolUse} {
		if raw, err = s.add(raw, event); err != nil {
			return nil, err
		}
	}
	return raw, nil
}

// add adds the hook to one event.
func (s Settings) add(raw []byte, event string) ([]byte, error) {
	root, hooks, _, err := parseSettings(raw)
	if err != nil {
		return nil, err
	}
	group := hookGroup{Hooks: []hookEntry{{"command", s.Command, preCompactSeconds}}}
	if event == EventPostToolUse {
		group.Matcher, group.Hooks[0].Timeout = "*", postToolUseSeconds
	}
	if hooks == nil {
		return jsonscan.Splice(nil, raw, appendTo(raw, root, member("hooks", map[string][]hookGroup{event: {group}}))...), nil
	}
	if list := hooks.Find("/" + event); list != nil {
		if _, ok := list.Value.(*hujson.Array); !ok {
			return nil, fmt.Errorf("hooks.%s is no list: %w", event, tidemark.ErrInvalid)
		}
		return jsonscan.Splice(nil, raw, appendTo(raw, list, layout(group))...), nil
	}
	return jsonscan.Splice(nil, raw, appendTo(raw, hooks, member(event, []hookGroup{group}))...), nil
}

// hookGroup and hookEntry are what Claude Code reads.
type hookGroup struct {
	Matcher string      `json:"matcher,omitempty"`
	Hooks   []hookEntry `json:"hooks"`
}

type hookEntry struct {
	Type    string `json:"type"`
	Command string `json:"command"`
	Timeout int    `json:"timeout"` // seconds
}

// layout lays a value out for its place.
func layout(v any) func(indent string, lines bool) []byte {
	return func(indent string, lines bool) []byte {
		if !lines {
			raw, err := json.Marshal(v)
			if err != nil { // strings and numbers only
				return []byte("null")
			}
			return raw
		}
		raw, err := json.MarshalIndent(v)
		if err != nil {
			return []byte("null")
		}
		return bytes.ReplaceAll(bytes.TrimSpace(raw), []byte("\n"), []byte("\n"+indent))
	}
}

func member(name string, v any) func(indent string, lines bool) []byte {
	lay := layout(v)
	return func(indent string, lines bool) []byte {
		return append([]byte(`"`+name+`": `), lay(indent, lines)...)
	}
}

func (s Settings) uninstall(raw []byte) ([]byte, error) { return marked(raw, s.uninstalled) }

// uninstalled takes our hooks out one by one, with the group, the event and the object that hold nothing else, comments
// included.
func (s Settings) uninstalled(raw []byte) ([]byte, error) {
	for {
		found, err := s.find(raw)
		if err != nil || len(found) == 0 {
			return raw, err
		}
		f := found[len(found)-1]
		at, i := f.list, f.hook
		if len(partsOf(at).values) == 1 {
			at, i = f.groups, f.group
			if alone(raw, at) {
				at, i = f.hooks, f.at
				if alone(raw, at) {
					root, _, _, err := parseSettings(raw)
					if err != nil {
						return nil, err
					}
					at, i = root, f.atRoot
				}
			}
		}
		raw = jsonscan.Splice(nil, raw, removeFrom(raw, at, i)...)
	}
}
