package offline

import (
	"regexp"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/provider"
)

// Tools that are called when a person asks for what they do.
const (
	rememberTool = "memory_append"
	searchTool   = "memory_search"
	recallTool   = "recall"
)

// maxAsked bounds a request for a tool, in bytes: what is longer was pasted, not asked.
const maxAsked = 2000

const polite = `((?:(?:please|also|and|ok|okay|can you|could you|would you),? +)*)`

// Ways to ask for a tool in plain words.
var (
	callWords     = regexp.MustCompile(`(?is)^call +(\S+)(.*)$`)
	searchWords   = regexp.MustCompile(`(?i)\b(?:search (?:your )?memory for|look in memory for|what do you remember about|do you remember|what do you know about) +(.+)`)
	historyWords  = regexp.MustCompile(`(?i)\b(?:what did (?:we|i) say about|what did we decide (?:about|on)|did we talk about|search (?:the )?history for|recall) +(.+)`)
	rememberThat  = regexp.MustCompile(`(?i)^(?:(.*?)(?:[,;:—–]| -|\band|\bbut) *)?` + polite + `(?:remember|note|keep in mind) that +(.+)$`)
	rememberThis  = regexp.MustCompile(`(?i)^` + polite + `(?:save to memory:|remember) +(.+)$`)
	rememberLists = regexp.MustCompile(`(?i)^` + polite + `(?:save to memory|remember):(.*)$`)
	subject       = regexp.MustCompile(`(?i)^(?:what )?(?:that )?(?:my )?(?:our )?(?:the )?(.*?)(?: earlier| before| last time)?[ ?.!]*$`)
)

// toolFor returns the call that a person asks for, if its tool is offered, "" for none.
func toolFor(req tidemark.Request, text string) (name string, input json.RawMessage) {
	text = strings.TrimSpace(text)
	if len(text) > maxAsked {
		return "", nil
	}
	offered := map[string]tidemark.Tool{}
	for _, t := range req.Tools {
		offered[t.Name] = t
	}
	call := func(value string, names ...string) bool {
		for _, n := range names {
			if t, ok := offered[n]; ok && value != "" {
				name, input = n, callInput(t, value)
				return true
			}
		}
		return false
	}
	if m := callWords.FindStringSubmatch(text); m != nil {
		if _, ok := offered[m[1]]; ok {
			return m[1], provider.ToolInput(m[2])
		}
	}
	facts, _ := toRemember(text)
	if call(strings.Join(facts, "\n"), rememberTool) {
		return name, input
	}
	if m := searchWords.FindStringSubmatch(text); m != nil && call(subject.FindStringSubmatch(m[1])[1], searchTool) {
		return name, input
	}
	if m := historyWords.FindStringSubmatch(text); m != nil && call(subject.FindStringSubmatch(m[1])[1], recallTool, searchTool) {
		return name, input
	}
	if question := lastSentence(text); leftView(req, text, question) {
		call(question, recallTool)
	}
	return name, input
}

// leftView reports a question that what is in view does not answer, where messages left the view: nothing there has a
// word of it or, where markers stand, half of its words or fewer.
func leftView(req tidemark.Request, text, question string) bool {
	marker, summary := false, false
	for _, m := range req.Messages {
		for _, b := range m.Content {
			marker = marker || m.Role == tidemark.User && strings.HasPrefix(b.Text, markerMark)
			summary = summary || m.Role == tidemark.User && strings.HasPrefix(b.Text, summaryMark)
		}
	}
	if !marker && !summary || greets(text) || !asks(question) || len(words(question)) == 0 {
		return false
	}
	hits := rank(known(req, len(req.Messages)-1), text, 1)
	return len(hits) == 0 || marker && 2*shared(hits[0].text, question) <= len(wordSet(question))
}

// callInput is the input of a call with one argument, in the tool's own name for it: that of the first text it must have.
func callInput(t tidemark.Tool, value string) json.RawMessage {
	var s struct {
		Properties map[string]struct {
			Type string `json:"type"`
		} `json:"properties"`
		Required []string `json:"required"`
	}
	name := "query"
	if t.Name == rememberTool {
		name = "text"
	}
	if json.Unmarshal(t.InputSchema, &s) == nil {
		for _, n := range s.Required {
			if s.Properties[n].Type == "string" {
				name = n
				break
			}
		}
	}
	in := append(json.AppendString([]byte{'{'}, name), ':')
	return append(json.AppendString(in, value), '}')
}

// toRemember returns the facts that a person asks to remember, one a sentence, and the rest of what was said. A colon
// introduces all that follows it.
func toRemember(text string) (facts []string, rest string) {
	var others []string
	all := false
	for _, s := range sentences(text) {
		before, fact := "", s
		if !all {
			before, fact, all = requested(s)
		}
		if fact != "" {
			facts = append(facts, fact)
		}
		if before != "" {
			others = append(others, before)
		}
	}
	return facts, strings.Join(others, " ")
}

// requested parts a sentence at a request to remember; list says that more sentences belong to it.
func requested(s string) (before, fact string, list bool) {
	switch {
	case rememberLists.MatchString(s):
		m := rememberLists.FindStringSubmatch(s)
		return "", strings.TrimSpace(m[2]), true
	case rememberThat.MatchString(s):
		m := rememberThat.FindStringSubmatch(s)
		before, fact = m[1], m[3]
		if asks(s) && !strings.Contains(strings.ToLower(m[2]), " you") {
			return s, "", false
		}
	case rememberThis.MatchString(s):
		m := rememberThis.FindStringSubmatch(s)
		fact = m[2]
		if asks(s) && !strings.Contains(strings.ToLower(m[1]), " you") { // "Remember when …?"
			return s, "", false
		}
	default:
		return s, "", false
	}
	return strings.TrimRight(before, " ,;:-—–"), strings.TrimRight(fact, "?"), false
}
