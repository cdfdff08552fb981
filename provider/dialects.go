package provider

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	tidemark "github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/jsonscan"
)

// maxToolName is how long the name of a tool may be in both APIs.
const maxToolName = 64

// valid is what the Messages API takes of a request. An endpoint that is not Anthropic's own signs no thinking and may
// want it back in front of the calls that it led to.
func (a *Anthropic) valid(req tidemark.Request) *sending {
	name := func(s string) string { return plain(s, maxToolName, "") }
	return valid(req, rules{
		id: name, begins: true, failing: true, system: a.takesSystem(),
		keep: func(b tidemark.Block, calling bool) bool {
			for _, name := range [...]string{"thinking", "signature", "data"} {
				if v := jsonscan.Find(b.Raw(), name); len(v) > 0 && v[0] != '"' {
					return false // no API takes it so
				}
			}
			if b.Type == tidemark.TypeRedactedThinking {
				return scalar(jsonscan.Find(b.Raw(), "data")) != ""
			}
			return b.Signature != "" || calling && !a.official()
		},
		media: anthropicMedia,
		tools: schemaRules{name: name, key: func(s string) string { return plain(s, maxToolName, ".") }},
	})
}

func (a *Anthropic) official() bool {
	u, err := url.Parse(or(a.BaseURL, anthropicURL))
	return err == nil && strings.HasSuffix(u.Hostname(), "anthropic.com")
}

// maxChatTools is how many tools OpenAI takes in a request: "Invalid 'tools': array too long. Expected an array with
// maximum length 128".
const maxChatTools = 128

// valid is what chat completions take of a request.
func (o *OpenAI) valid(req tidemark.Request) *sending {
	r := chatRules(chatID)
	r.tools.none = o.bounds.lacks(or(req.Model, o.Model), quirkTools)
	if o.official() {
		r.system = true // many servers know a system message only as the first
		r.tools.most = maxChatTools
		r.tools.long = 1024 // "Invalid 'tools[0].function.description': string too long. Expected a string with maximum length 1024"
	} else if n := int(o.bounds.known(or(req.Model, o.Model), mostTools)); n > 0 { // another one may stand before it
		r.tools.most = n
	}
	if u, err := url.Parse(o.BaseURL); err == nil && strings.HasSuffix(u.Hostname(), "mistral.ai") {
		r.id = mistralID
	}
	return valid(req, r)
}

func chatRules(id func(string) string) rules {
	return rules{id: id, keep: func(tidemark.Block, bool) bool { return false }, media: mediaRules{more: true},
		tools: schemaRules{full: true, name: func(s string) string { return plain(s, maxToolName, "") }}}
}

// chatID is the id of a call as chat completions take it: any text, but not a long one
// ("Invalid 'messages[1].tool_calls[0].id': string too long. Expected a string with maximum length 40").
func chatID(id string) string {
	const most = 40
	if id != "" && len(id) <= most {
		return id
	}
	return plain(id, 0, "")
}

// mistralID is nine letters and digits
// ("Tool call id was … but must be a-z, A-Z, 0-9, with a length of 9").
func mistralID(id string) string {
	const length = 9
	odd := func(r rune) bool { return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') }
	if len(id) == length && strings.IndexFunc(id, odd) < 0 {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:])[:length]
}

// fmtID is an id that is used again.
func fmtID(id string, n int) string { return id + "_" + strconv.Itoa(n) }

// refusedPlace is a place in a request as an API names it: a list, how far in it, and the way from there.
type refusedPlace struct {
	list string // messages, tools
	n    int
	path []string
}

// placeIn finds the first place that a text names, as messages.3.content.1, messages[3].content[1],
// messages.[3].content, /messages/3/content, ["body","messages",3,"content",1], ('body', 'messages', 3) or
// body -> messages -> 3. Gemini has all tools in one, as tools[0].function_declarations[3].
func placeIn(text string) (p refusedPlace, ok bool) {
	for _, list := range [...]string{"messages", "tools"} {
		for rest := text; ; {
			var found bool
			if _, rest, found = strings.Cut(rest, list); !found {
				break
			}
			path := pathOf(rest)
			if len(path) == 0 {
				continue
			}
			if n, err := strconv.Atoi(path[0]); err == nil && n >= 0 {
				p = refusedPlace{list, n, path[1:]}
				if k, declared := p.number("function_declarations"); k >= 0 && list == "tools" {
					p = declared
					p.n = k
				}
				return p, true
			}
		}
	}
	return p, false
}

// pathOf are the words and numbers that text begins with, with dots, slashes, brackets and quotes between them, or an
// arrow. A space is between them only beside a quote or an arrow: "messages, 3 of them" is no place.
func pathOf(text string) (path []string) {
	const most = 16
	for len(path) < most {
		word := strings.TrimLeft(text, `./[]"',\ ->`)
		between := text[:len(text)-len(word)]
		arrow := strings.TrimSpace(between) == "->"
		if between == "" || len(between) > 4 || !arrow && (strings.ContainsAny(between, "->") || strings.Contains(between, " ") && !strings.ContainsAny(between, `"'`)) {
			break
		}
		end := strings.IndexFunc(word, func(r rune) bool {
			return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_'
		})
		if end < 0 {
			end = len(word)
		}
		if end == 0 {
			break
		}
		path, text = append(path, word[:end]), word[end:]
	}
	return path
}

// number is the one behind a word of the way, -1 for none; rest is the way behind it.
func (p refusedPlace) number(word string) (n int, rest refusedPlace) {
	for i, w := range p.path {
		if w != word || i+1 >= len(p.path) {
			continue
		}
		if n, err := strconv.Atoi(p.path[i+1]); err == nil {
			p.path = p.path[i+2:]
			return n, p
		}
	}
	return -1, p
}

// quotedTool is the tool that an API names by its name: "Invalid schema for function 'look': …", "Tool 'look' has …".
func quotedTool(text string) string {
	if found := regexp.MustCompile("(?i)\\b(?:function|tool) ['\"`]([^'\"`]+)['\"`]").FindStringSubmatch(text); found != nil {
		return found[1]
	}
	return ""
}

// refused says of an error which place of the request it names, as the request came: messages and blocks that are ours
// are no places.
func (s *sending) refused(api *tidemark.APIError, find func(refusedPlace) spot) {
	if api.Class != tidemark.ClassBadRequest {
		return
	}
	p, ok := placeIn(api.Param)
	if !ok {
		p, ok = placeIn(api.Message)
	}
	tool := ""
	switch {
	case !ok:
		tool = s.aliases.own(quotedTool(api.Message))
	case p.list == "tools" && p.n < len(s.Tools):
		tool = s.aliases.own(s.Tools[p.n].Name)
	case p.list == "messages":
		if at := find(p); at.message >= 0 {
			api.Place = &tidemark.Place{Message: at.message, Block: at.block, Inner: at.inner}
		}
		return
	}
	for _, t := range s.Tools {
		if own := s.aliases.own(t.Name); own == tool {
			api.Place = &tidemark.Place{Message: -1, Block: -1, Inner: -1, Tool: tool}
		}
	}
}

// spot finds a place in the messages of the Messages API.
func (s *sending) spot(p refusedPlace) spot {
	if p.n >= len(s.from) || len(s.from[p.n]) == 0 {
		return nowhere
	}
	k, rest := p.number("content")
	if k < 0 {
		return spot{s.from[p.n][0].message, -1, -1}
	}
	if k >= len(s.from[p.n]) {
		return nowhere
	}
	at := s.from[p.n][k]
	if inner, _ := rest.number("content"); inner >= 0 && at.message >= 0 {
		at.inner = s.inner(at, inner)
	}
	return at
}

// inner is which block of a result is the n-th that was sent: empty texts were left out.
func (s *sending) inner(at spot, n int) int {
	for i, c := range s.came[at.message].Content[at.block].Content {
		if !kept(c) {
			continue
		}
		if n == 0 {
			return i
		}
		n--
	}
	return -1
}
