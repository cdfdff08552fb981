package snapshot

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tidemark-ai/tidemark"
)

// maxID bounds ids and keys of nodes.
const maxID = 1024 // bytes

// CheckName holds the name of a snapshot to what can be shown, typed and quoted: 1 to [MaxName] letters, digits,
// spaces and - _ . of any script, no space at an end.
func CheckName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("name: is empty: want 1 to %d characters: %w", MaxName, tidemark.ErrInvalid)
	case !utf8.ValidString(name):
		return fmt.Errorf("name: is no UTF-8: %w", tidemark.ErrInvalid)
	case utf8.RuneCountInString(name) > MaxName:
		return fmt.Errorf("name: %d characters, over %d: put the rest into the description: %w", utf8.RuneCountInString(name), MaxName, tidemark.ErrInvalid)
	case strings.TrimSpace(name) != name:
		return fmt.Errorf("name %q: a space at its begin or end: %w", name, tidemark.ErrInvalid)
	case strings.Trim(name, ".") == "":
		return fmt.Errorf("name %q: dots alone name no snapshot: %w", name, tidemark.ErrInvalid)
	}
	for _, r := range name {
		if r != ' ' && !inName(r) {
			return fmt.Errorf("name %q: has %q: want letters, digits, spaces and - _ . only: %w", name, r, tidemark.ErrInvalid)
		}
	}
	return nil
}

// CheckDescription holds a description to its bound: [MaxDescription] characters, no control characters but line
// breaks and tabs.
func CheckDescription(text string) error {
	if !utf8.ValidString(text) {
		return fmt.Errorf("description: is no UTF-8: %w", tidemark.ErrInvalid)
	}
	if n := utf8.RuneCountInString(text); n > MaxDescription {
		return fmt.Errorf("description: %d characters, over %d: %w", n, MaxDescription, tidemark.ErrTooLarge)
	}
	for _, r := range text {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return fmt.Errorf("description: has the control character %U: %w", r, tidemark.ErrInvalid)
		}
	}
	return nil
}

// CheckTags holds tags to their bounds: [MaxTags] of 1 to [MaxTag] characters each, without spaces and control
// characters, none twice.
func CheckTags(tags []string) error {
	if len(tags) > MaxTags {
		return fmt.Errorf("tags: %d of them, over %d: %w", len(tags), MaxTags, tidemark.ErrTooLarge)
	}
	for i, t := range tags {
		switch n := utf8.RuneCountInString(t); {
		case n == 0 || n > MaxTag || !utf8.ValidString(t):
			return fmt.Errorf("tags[%d]: want 1 to %d characters: %w", i, MaxTag, tidemark.ErrInvalid)
		case strings.ContainsFunc(t, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) || r == ',' }):
			return fmt.Errorf("tags[%d] %q: want no spaces, commas and control characters: %w", i, t, tidemark.ErrInvalid)
		}
		if slices.Contains(tags[:i], t) {
			return fmt.Errorf("tags[%d]: %q is there twice: %w", i, t, tidemark.ErrInvalid)
		}
	}
	return nil
}

// Check holds a node that comes from outside to the bounds of what is kept and shown.
func (n *Node) Check() error {
	switch {
	case n.ID == "" || len(n.ID) > maxID || !printable(n.ID):
		return fmt.Errorf("id: want 1 to %d printable bytes: %w", maxID, tidemark.ErrInvalid)
	case n.Kind != KindSnapshot && n.Kind != KindBranch:
		return fmt.Errorf("kind %.40q: want snapshot or branch: %w", n.Kind, tidemark.ErrInvalid)
	case n.Of != OfSession && n.Of != OfClaude:
		return fmt.Errorf("of %.40q: want session or claude: %w", n.Of, tidemark.ErrInvalid)
	case len(n.Session) > maxID || !printable(n.Session):
		return fmt.Errorf("session: want up to %d printable bytes: %w", maxID, tidemark.ErrInvalid)
	case len(n.Parent) > maxID || !printable(n.Parent):
		return fmt.Errorf("parent: want up to %d printable bytes: %w", maxID, tidemark.ErrInvalid)
	case n.Messages < 0 || n.Tokens < 0:
		return fmt.Errorf("message_count and tokens: below zero: %w", tidemark.ErrInvalid)
	case n.Hash != "" && !isHash(string(n.Hash)):
		return fmt.Errorf("hash: want a SHA-256 in lower case hex: %w", tidemark.ErrInvalid)
	}
	if err := CheckName(n.Name); err != nil {
		return err
	}
	if err := CheckDescription(n.Description); err != nil {
		return err
	}
	return CheckTags(n.Tags)
}

// printable reports whether a text can stand in a line of a terminal or a log.
func printable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}
