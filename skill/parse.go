package skill

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// fence stands above and below the front matter.
const fence = "---"

// parse reads a file; name is the line that its name stands in.
func parse(file string) (s Skill, name int, err error) {
	first, rest, _ := strings.Cut(strings.TrimPrefix(file, "\ufeff"), "\n")
	if strings.TrimRight(first, " \t\r") != fence {
		return s, 0, &Error{1, `want "---": a skill begins with a front matter that has name and description`}
	}
	lines, body, err := front(rest)
	if err != nil {
		return s, 0, err
	}
	keys, err := fields(lines)
	if err != nil {
		return s, 0, err
	}
	seen := map[string]int{}
	for i := 0; i < len(keys); i += 2 {
		key, value, end := keys[i], keys[i+1], len(lines)
		if i+2 < len(keys) {
			end = keys[i+2].Line - 1
		}
		if key.Value != "name" && key.Value != "description" && key.Value != "peers" {
			s.Extra = append(s.Extra, slices.DeleteFunc(slices.Clone(lines[key.Line-1:end]), isBlank)...)
			continue
		}
		problem := key.Value + " is given twice"
		if seen[key.Value] == 0 {
			problem = s.set(key.Value, value)
		}
		if problem != "" {
			return Skill{}, 0, &Error{key.Line + 1, problem}
		}
		seen[key.Value] = key.Line + 1
	}
	for _, key := range []string{"name", "description"} {
		if seen[key] == 0 {
			return Skill{}, 0, &Error{len(lines) + 2, "the front matter has no " + key}
		}
	}
	if s.Body = body; strings.TrimSpace(body) == "" {
		return Skill{}, 0, &Error{len(lines) + 3, "there are no instructions below the front matter"}
	}
	return s, seen["name"], nil
}

// front cuts the lines of the front matter off and returns what is below it.
func front(rest string) (lines []string, body string, err error) {
	for {
		line, more, found := strings.Cut(rest, "\n")
		line = strings.TrimSuffix(line, "\r")
		if strings.TrimRight(line, " \t") == fence {
			return lines, more, nil
		}
		if !found {
			return nil, "", &Error{len(lines) + 2, `the front matter does not end: want a line "---" behind it`}
		}
		if i := strings.IndexFunc(line, isControl); i >= 0 {
			c, _ := utf8.DecodeRuneInString(line[i:])
			return nil, "", &Error{len(lines) + 2, fmt.Sprintf("a control character (%U)", c)}
		}
		lines, rest = append(lines, line), more
	}
}

func isControl(c rune) bool { return c != '\t' && unicode.IsControl(c) }

var (
	// loose is a description with a colon in it, which many write without quotes, though YAML wants them.
	loose = regexp.MustCompile("^description:[ \t]+([^\\s\"'|>\\[\\]{},&*!%@`#-].*?:(?:[ \t].*?)?)(?:[ \t]+#.*)?[ \t]*$")
	// place is where an error of YAML is.
	place = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)
)

// fields returns keys and values of a front matter in turn: a block of YAML, each key in a line of its own.
func fields(lines []string) ([]*yaml.Node, error) {
	text := slices.Clone(lines)
	for i, line := range text {
		if m := loose.FindStringSubmatch(line); m != nil && (i+1 == len(text) || isBlank(text[i+1]) || !unicode.IsSpace(rune(text[i+1][0]))) {
			text[i] = "description: " + quoted(m[1])
		}
	}
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(strings.Join(text, "\n")), &doc); err != nil {
		m := place.FindStringSubmatch(err.Error())
		line, _ := strconv.Atoi(append(m, "", "")[1])
		return nil, &Error{min(max(line, 1), len(lines)) + 1, strings.TrimPrefix(err.Error(), append(m, "")[0])}
	}
	if len(doc.Content) == 0 {
		return nil, nil
	}
	all := doc.Content[0]
	if all.Kind != yaml.MappingNode {
		return nil, &Error{all.Line + 1, fmt.Sprintf(`want "key: value", not %q`, clip(lines[all.Line-1], 60))}
	}
	for i := 0; i < len(all.Content); i += 2 {
		if k := all.Content[i]; k.Column != 1 || !strings.HasPrefix(lines[k.Line-1], k.Value+":") || all.Style&yaml.FlowStyle != 0 {
			return nil, &Error{k.Line + 1, fmt.Sprintf(`want "key: value", not %q`, clip(lines[k.Line-1], 60))}
		}
	}
	return all.Content, nil
}

// set takes up the value of a key, and says what is wrong with it.
func (s *Skill) set(key string, value *yaml.Node) (problem string) {
	text := strings.TrimSpace(value.Value)
	if value.Kind != yaml.ScalarNode || value.Style&yaml.TaggedStyle != 0 || value.Anchor != "" {
		return key + " is no plain text: want one text"
	}
	if strings.IndexFunc(text, func(c rune) bool { return c != '\n' && isControl(c) }) >= 0 {
		return key + " has a control character"
	}
	switch n := utf8.RuneCountInString(text); {
	case key == "name" && CheckName(text) != nil:
		return fmt.Sprintf("name %q: want 1 to %d letters in lower case, digits, - and _, not at its ends", clip(text, 60), MaxName)
	case key == "name":
		s.Name = text
	case key == "peers" && text != "true" && text != "false":
		return fmt.Sprintf("peers: want true or false, not %q", clip(text, 20))
	case key == "peers":
		s.Peers = text == "true"
	case n > MaxDescription:
		return fmt.Sprintf("the description has %d characters, at most %d", n, MaxDescription)
	case n == 0:
		return "the description is empty: say what the skill is for, and when to use it"
	default:
		s.Description = text
	}
	return ""
}

// quoted writes a value in double quotes.
func quoted(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\\' || r == '"':
			b.WriteString(`\` + string(r))
		case unicode.IsPrint(r):
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, `\U%08X`, r)
		}
	}
	return `"` + b.String() + `"`
}

// isBlank reports a line that says nothing: empty, or a comment that belongs to no value.
func isBlank(line string) bool {
	return strings.Trim(line, " \t") == "" || line[0] == '#'
}

// clip is the beginning of a text, at most so many characters.
func clip(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n]) + "…"
	}
	return s
}
