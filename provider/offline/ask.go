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

// Ways to ask for a tool in plain words.
var (
	callWords    = regexp.MustCompile(`(?is)^call +(\S+)(.*)$`)
	searchWords  = regexp.MustCompile(`(?i)\b(?:search (?:your )?memory for|look in memory for|what do you remember about|do you remember|what do you know about) +(.+)`)
	historyWords = regexp.MustCompile(`(?i)\b(?:what did (?:we|i) say about|what did we decide (?:about|on)|did we talk about|search (?:the )?history for|recall) +(.+)`)
	rememberThat = regexp.MustCompile(`(?i)^(?:(.*?)(?:[,;:—–]| -|\band|\bbut) *)?(?:(?:please|also|and),? +)*(?:(?:remember|note|keep in mind)(?: that|:)|save to memory:) +(.+)$`)
	subject      = regexp.MustCompile(`(?i)^(?:what )?(?:that )?(?:my )?(?:our )?(?:the )?(.*?)(?: earlier| before| last time)?[ ?.!]*$`)
)

// toolFor returns the call that a person asks for, if its tool is offered, "" for none.
func toolFor(req tidemark.Request, text string) (name string, input json.RawMessage) {
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
	if question := lastSentence(text); leftView(req, question) {
		call(question, recallTool)
	}
	return name, input
}

// leftView reports a question that what is in view does not answer, where messages left the view: it has no more than
// half of the question's words.
func leftView(req tidemark.Request, question string) bool {
	left := false
	for _, m := range req.Messages {
		for _, b := range m.Content {
			left = left || m.Role == tidemark.User && (strings.HasPrefix(b.Text, markerMark) || strings.HasPrefix(b.Text, summaryMark))
		}
	}
	if !left || greets(question) || !asks(question) || len(words(question)) == 0 {
		return false
	}
	hits := rank(known(req, len(req.Messages)-1), question, 1)
	return len(hits) == 0 || 2*hits[0].score <= len(words(question))
}

// callInput is the input of a call with one argument, in the tool's own name for it: the first that it must have.
func callInput(t tidemark.Tool, value string) json.RawMessage {
	s := struct {
		Required []string `json:"required"`
	}{}
	if err := json.Unmarshal(t.InputSchema, &s); err != nil || len(s.Required) == 0 {
		s.Required = []string{"query"}
	}
	in := append(json.AppendString([]byte{'{'}, s.Required[0]), ':')
	return append(json.AppendString(in, value), '}')
}

// toRemember returns the facts that a person asks to remember, one a sentence, and the rest of what was said.
func toRemember(text string) (facts []string, rest string) {
	var others []string
	for _, s := range sentences(text) {
		if m := rememberThat.FindStringSubmatch(s); m != nil && !asks(s) {
			facts = append(facts, m[2])
			s = strings.TrimRight(m[1], " ,;:-—–")
		}
		if s != "" {
			others = append(others, s)
		}
	}
	return facts, strings.Join(others, " ")
}
