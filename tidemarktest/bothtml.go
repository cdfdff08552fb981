package tidemarktest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// botTags are the tags that the Bot API knows.
//
// https://core.telegram.org/bots/api#html-style
var botTags = []string{"b", "strong", "i", "em", "u", "ins", "s", "strike", "del", "span", "tg-spoiler", "a", "tg-emoji", "code", "pre", "blockquote"}

// botRefusal is an error in the words of the Bot API.
type botRefusal string

func (r botRefusal) Error() string { return string(r) }

func refuse(format string, args ...any) error { return botRefusal(fmt.Sprintf(format, args...)) }

// readBotHTML reads a text with parse_mode HTML as the Bot API does, with its errors.
func readBotHTML(html string) (plain string, tags []string, err error) {
	var b strings.Builder
	var open []string
	for i := 0; i < len(html); {
		switch html[i] {
		case '<':
			end := strings.IndexByte(html[i:], '>')
			if end < 0 {
				return "", nil, refuse("Unclosed start tag at byte offset %d", i)
			}
			tag := html[i+1 : i+end]
			if name, closes := strings.CutPrefix(tag, "/"); closes {
				if len(open) == 0 {
					return "", nil, refuse("Unexpected end tag at byte offset %d", i)
				}
				if want := open[len(open)-1]; name != "" && name != want {
					return "", nil, refuse("Unmatched end tag at byte offset %d, expected \"</%s>\", found \"</%s>\"", i, want, name)
				}
				open = open[:len(open)-1]
			} else {
				name, _, _ := strings.Cut(tag, " ")
				if !slices.Contains(botTags, name) {
					return "", nil, refuse("Unsupported start tag \"%s\" at byte offset %d", name, i)
				}
				open, tags = append(open, name), append(tags, name)
			}
			i += end + 1
		case '&':
			r, n := botEntity(html[i:])
			b.WriteString(r)
			i += n
		default:
			b.WriteByte(html[i])
			i++
		}
	}
	if len(open) > 0 {
		return "", nil, refuse("Can't find end tag corresponding to start tag \"%s\"", open[len(open)-1])
	}
	return b.String(), tags, nil
}

// botEntity reads one of the four entities that have a name, or a number; any other is text.
func botEntity(s string) (string, int) {
	end := strings.IndexByte(s[:min(len(s), 12)], ';')
	if end < 0 {
		return "&", 1
	}
	name := s[1:end]
	switch name {
	case "lt":
		return "<", end + 1
	case "gt":
		return ">", end + 1
	case "amp":
		return "&", end + 1
	case "quot":
		return `"`, end + 1
	}
	if digits, ok := strings.CutPrefix(name, "#"); ok {
		base := 10
		if hex, ok := strings.CutPrefix(digits, "x"); ok {
			digits, base = hex, 16
		}
		if n, err := strconv.ParseUint(digits, base, 21); err == nil && n > 0 {
			return string(rune(n)), end + 1
		}
	}
	return "&", 1
}
