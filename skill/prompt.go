package skill

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/tidemark-ai/tidemark"
)

// Bounds of the list in a prompt.
const (
	MaxListed   = 50  // skills
	shownLength = 180 // characters of a description
)

// Listing begins the section of a prompt that lists skills. Whoever has it in the prompt has the tool, too.
const Listing = "## Skills\n\nInstructions of your owner for certain work. When one fits the task, read it with skill(name) first and follow it; here they are only named.\n"

// Listed reports whether a system prompt lists skills.
func Listed(system string) bool { return strings.Contains(system, Listing) }

// Line is what the list says of a skill.
type Line struct {
	Name        string
	Description string
}

// Section lists skills within a budget of tokens, by name and description. Those that have no room are counted.
// It is empty when there are none, or there is no room for one.
func Section(skills []Line, budget tidemark.Tokens) string {
	var lines []string
	left := budget - tidemark.EstimateText(Listing) - tidemark.EstimateText(remark(len(skills)))
	for _, s := range skills[:min(len(skills), MaxListed)] {
		line := "\n- " + s.Name + ": " + Shown(s.Description)
		cost := tidemark.EstimateText(line)
		if cost > left {
			break
		}
		left -= cost
		lines = append(lines, line)
	}
	if len(lines) == 0 {
		return ""
	}
	out := Listing + strings.Join(lines, "")
	if n := len(skills) - len(lines); n > 0 {
		out += remark(n)
	}
	return out
}

func remark(n int) string {
	return fmt.Sprintf("\n\n[%d more are left out here; skill with an empty name lists all]", n)
}

// Shown is a description in one line, at most 180 characters, with nothing in it that could pass for the
// structure of a prompt: no tags, no control characters, none that turn the direction of a text.
func Shown(description string) string {
	text := strings.Map(func(r rune) rune {
		switch {
		case r == '<':
			return '‹'
		case r == '>':
			return '›'
		case unicode.IsSpace(r) || unicode.IsControl(r):
			return ' '
		case unicode.Is(unicode.Cf, r) && r != '\u200d': // that joins the parts of a picture
			return -1
		}
		return r
	}, strings.ToValidUTF8(description, "\ufffd"))
	return clip(strings.Join(strings.Fields(text), " "), shownLength-1)
}
