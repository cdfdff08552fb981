// Package skill holds what a skill is: instructions in Markdown that a model reads when it needs them. It reads and
// writes their format and lists them for a system prompt, but does no I/O; package agent keeps them in the bucket. Begin
// with [Skill]:
//
//	agents/{agent}/skills/{name}/SKILL.md            front matter and instructions
//	agents/{agent}/skills/{name}/references/x.md     more of it, text only
package skill

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/tidemark-ai/tidemark"
)

const (
	// Main is the file that makes a folder a skill.
	Main = "SKILL.md"
	// Folder is where the skills of an agent lie, below its own folder.
	Folder = "skills/"
	// Tool is the name of the tool that reads them.
	Tool = "skill"
)

// Bounds of a skill, in bytes where nothing else is said.
const (
	MaxName        = 64
	MaxDescription = 1024    // characters
	MaxMain        = 128_000 // of SKILL.md; more belongs into files beside it
	MaxFile        = 1 << 20 // of a file beside it
	maxPath        = 200
	maxDepth       = 4 // names in the path of a file
)

// Skill is what SKILL.md says.
type Skill struct {
	Name        string
	Description string
	Peers       bool   // also for conversations with people who are not the owner
	Body        string // the instructions
	// Extra are the other lines of the front matter as they stand, comments and empty lines left out.
	Extra []string
}

// Error is what is wrong with a file, and where.
type Error struct {
	Line int // from 1
	Text string
}

// Error names the line.
func (e *Error) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Text) }

// Is makes it a [tidemark.ErrInvalid].
func (e *Error) Is(target error) bool { return target == tidemark.ErrInvalid }

// CheckName reports a name that no skill has: it is one of a folder and of the argument of a tool.
func CheckName(name string) error {
	if name == "" || len(name) > MaxName || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" ||
		strings.ContainsRune("-_", rune(name[0])) || strings.ContainsRune("-_", rune(name[len(name)-1])) {
		return fmt.Errorf("name %.80q is none of a skill: want 1 to %d letters in lower case, digits, - and _, not at its ends: %w", name, MaxName, tidemark.ErrInvalid)
	}
	return nil
}

// CheckFile reports a path that no file of a skill has.
func CheckFile(path string) error {
	parts := strings.Split(path, "/")
	ok := len(path) <= maxPath && len(parts) <= maxDepth
	for _, p := range parts {
		ok = ok && p != "" && p[0] != '.' && strings.IndexFunc(p, func(r rune) bool {
			return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_.", r))
		}) < 0
	}
	if !ok {
		return fmt.Errorf("path %.80q is no file of a skill: want at most %d names of letters, digits, - _ and . with / between, such as references/more.md: %w", path, maxDepth, tidemark.ErrInvalid)
	}
	return nil
}

// CheckContent reports what a file of a skill may not hold.
func CheckContent(path string, content []byte) error {
	most := MaxFile
	if path == Main {
		most = MaxMain
	}
	if len(content) > most {
		return fmt.Errorf("%s has %d bytes, at most %d: %w", path, len(content), most, tidemark.ErrTooLarge)
	}
	if line := badLine(string(content)); line > 0 {
		return fmt.Errorf("%s: %w", path, &Error{line, "a skill is text: this is no UTF-8, or has a NUL"})
	}
	return nil
}

// badLine is the number of the first line that is no text, 0 when all are.
func badLine(text string) int {
	if utf8.ValidString(text) && !strings.Contains(text, "\x00") {
		return 0
	}
	for i, line := range strings.Split(text, "\n") {
		if !utf8.ValidString(line) || strings.Contains(line, "\x00") {
			return i + 1
		}
	}
	return 1
}

// Read reads the file of the skill that lies in a folder of that name.
func Read(folder string, file []byte) (Skill, error) {
	if err := CheckContent(Main, file); err != nil {
		return Skill{}, err
	}
	s, line, err := parse(string(file))
	if err == nil && s.Name != folder {
		err = &Error{line, fmt.Sprintf("the name is %q and the folder %q: they must be the same", s.Name, folder)}
	}
	if err != nil {
		return Skill{}, fmt.Errorf("%s: %w", Main, err)
	}
	return s, nil
}

// Parse reads a file of whatever folder.
func Parse(file []byte) (Skill, error) {
	if err := CheckContent(Main, file); err != nil {
		return Skill{}, err
	}
	s, _, err := parse(string(file))
	if err != nil {
		return Skill{}, fmt.Errorf("%s: %w", Main, err)
	}
	return s, nil
}

// Print writes a skill so that Parse reads the same.
func (s Skill) Print() []byte {
	var b strings.Builder
	b.WriteString("---\nname: " + s.Name + "\ndescription: " + quoted(s.Description) + "\n")
	if s.Peers {
		b.WriteString("peers: true\n")
	}
	for _, line := range s.Extra {
		b.WriteString(line + "\n")
	}
	b.WriteString("---\n" + s.Body)
	return []byte(b.String())
}
