package provider

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	tidemark "github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// OfflineModel is the model name that [Offline] reports.
const OfflineModel = "offline"

// Offline is a model that needs neither key nor network and always says the same to the same
// request: no clock, no chance. It does not think; it looks things up. It answers by quoting what
// fits best in the messages it was sent, the memory in its system prompt and a summary among them;
// it calls memory and history tools when they are offered and a person asks in plain words; and it
// answers a request for a summary with an extract of the conversation. Its usage figures are
// estimates, given as reported, so that all that counts on them can be shown.
type Offline struct{}

var _ tidemark.Provider = Offline{}

// Stream answers. A request that breaks [tidemark.Check] is refused, as the APIs do, unless it is one that
// chat completions allow.
func (Offline) Stream(ctx context.Context, req tidemark.Request) iter.Seq2[tidemark.Delta, error] {
	return func(yield func(tidemark.Delta, error) bool) {
		req = (&Anthropic{}).valid(req).Request
		if err := tidemark.Check(req.Messages); err != nil {
			yield(tidemark.Delta{}, &tidemark.APIError{Class: tidemark.ClassBadRequest, Status: http.StatusBadRequest, Type: "invalid_request_error", Message: err.Error()})
			return
		}
		m := offlineMessage(req)
		call := tidemark.Call{Model: OfflineModel, Stop: stopEnd, Reported: true}
		if len(m.Calls()) > 0 {
			call.Stop = stopTool
		} else if cut, ok := within(m.PlainText(), req.MaxTokens); !ok {
			m, call.Stop = tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{tidemark.Text(cut)}}, stopLength
		}
		call.Usage = tidemark.Usage{Input: estimateRequest(req), Output: tidemark.Estimate(m)}
		for _, b := range m.Content {
			for d := range pieces(b) {
				if ctx.Err() != nil {
					yield(tidemark.Delta{}, context.Cause(ctx))
					return
				}
				if !yield(d, nil) {
					return
				}
			}
		}
		yield(tidemark.Delta{Reply: &tidemark.Reply{Message: m, Call: call}}, nil)
	}
}

// within cuts a text to a bound in tokens, 0 for none.
func within(s string, limit tidemark.Tokens) (string, bool) {
	if limit <= 0 || tidemark.EstimateText(s) <= limit {
		return s, true
	}
	n := min(len(s), int(limit)*10/3)
	for n > 0 && n < len(s) && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:max(n, 1)], false
}

// pieces yields a block as deltas: text in pieces of a few words.
func pieces(b tidemark.Block) iter.Seq[tidemark.Delta] {
	return func(yield func(tidemark.Delta) bool) {
		if b.Type == tidemark.TypeToolUse {
			yield(tidemark.Delta{Tool: b.Name})
			return
		}
		const size = 24
		rest := b.Text
		for len(rest) > size {
			n := strings.IndexByte(rest[size:], ' ') + size + 1
			if n == size || n > 4*size { // no space near: cut at a character
				for n = size; n < len(rest) && !utf8.RuneStart(rest[n]); n++ {
				}
			}
			if !yield(tidemark.Delta{Text: rest[:n]}) {
				return
			}
			rest = rest[n:]
		}
		if rest != "" {
			yield(tidemark.Delta{Text: rest})
		}
	}
}

// offlineMessage decides what to say or call.
func offlineMessage(req tidemark.Request) tidemark.Message {
	last := req.Messages[len(req.Messages)-1]
	summary, text := parts(last)
	say := func(s string) tidemark.Message {
		return tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{tidemark.Text(s)}}
	}
	if s, ok := parseSummaryRequest(last.PlainText(), req.System); ok {
		s.limit = req.MaxTokens
		return say(s.answer())
	}
	if len(last.Results()) > 0 {
		return say(afterTools(req, text))
	}
	if tool, input, ok := toolFor(req.Tools, text); ok {
		return tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{
			tidemark.ToolUse(offlineCallID(req), tool, input),
		}}
	}
	if call, ok := recallFor(req, text); ok {
		return tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{call}}
	}
	if text == "" && summary != "" {
		return say("I have read the summary. What comes next?")
	}
	return say(converse(req, len(req.Messages)-1, text))
}

// offlineCallID names a call by what was asked, so that the same request gives the same id and no
// two calls of a conversation share one.
func offlineCallID(req tidemark.Request) string {
	var all []byte
	used := map[string]bool{}
	for _, m := range req.Messages {
		all = m.AppendJSON(all)
		for _, id := range m.Calls() {
			used[id] = true
		}
	}
	for n := 0; ; n++ {
		id := "call_" + string(tidemark.HashOf(fmt.Appendf(all, "%d", n)))[:20]
		if !used[id] {
			return id
		}
	}
}

// request is a way to ask for a tool in plain words.
type request struct {
	phrases []string // what the text begins with, or holds
	inside  bool     // anywhere in the text, not only at its beginning
	tools   []string // in the order of preference
	args    []string // names that the tool's argument may have
}

var (
	appendArgs = []string{"text", "content", "fact", "entry", "memory", "note", "line"}
	searchArgs = []string{"query", "q", "search", "text", "pattern"}
	requests   = [...]request{
		{phrases: []string{"search memory for ", "search your memory for ", "look in memory for ", "what do you remember about ", "do you remember ", "what do you know about "},
			inside: true, tools: []string{"memory_search"}, args: searchArgs},
		{phrases: []string{"what did we say about ", "what did i say about ", "what did we decide about ", "what did we decide on ", "did we talk about ", "search history for ", "search the history for ", "recall "},
			inside: true, tools: []string{"recall", "memory_search"}, args: searchArgs},
	}
)

// maxAsked bounds a request for a tool, in bytes: what is longer was pasted, not asked.
const maxAsked = 2000

// toolFor returns the call that a person asks for, if its tool is offered: to remember something,
// in any sentence, one of the requests above, or "call NAME {arguments}".
func toolFor(tools []tidemark.Tool, text string) (name string, input json.RawMessage, ok bool) {
	text = strings.TrimSpace(text)
	if len(text) > maxAsked {
		return "", nil, false
	}
	offered := map[string]tidemark.Tool{}
	for _, t := range tools {
		offered[t.Name] = t
	}
	if rest, found := cutPrefixFold(text, "call "); found {
		name, args, _ := strings.Cut(rest, " ")
		if _, ok := offered[name]; ok {
			return name, toolInput(args), true
		}
	}
	if t, ok := offered[rememberTool]; ok {
		if facts, _ := toRemember(text); len(facts) > 0 {
			return rememberTool, callInput(argument(t, appendArgs), strings.Join(facts, "\n")), true
		}
	}
	for _, polite := range [...]string{"please ", "can you ", "could you "} {
		text, _ = cutPrefixFold(text, polite)
	}
	for _, r := range requests {
		what, found := r.match(text)
		if !found {
			continue
		}
		for _, name := range r.tools {
			if t, ok := offered[name]; ok {
				return name, callInput(argument(t, r.args), what), true
			}
		}
	}
	return "", nil, false
}

// callInput is the input of a call with one argument.
func callInput(name, value string) json.RawMessage {
	in := append(json.AppendString([]byte{'{'}, name), ':')
	return append(json.AppendString(in, value), '}')
}

// match returns what is asked for.
func (r request) match(text string) (what string, ok bool) {
	lower := asciiLower(text)
	for _, p := range r.phrases {
		i := strings.Index(lower, p)
		if i < 0 || i > 0 && (!r.inside || unicode.IsLetter(rune(lower[i-1]))) {
			continue
		}
		what = strings.TrimSpace(text[i+len(p):])
		if r.inside {
			what, _, _ = strings.Cut(what, "\n")
			what = strings.TrimRight(what, " ?.!")
			for _, end := range [...]string{" earlier", " before", " last time"} {
				what = strings.TrimSuffix(what, end)
			}
			for _, start := range [...]string{"what ", "that ", "my ", "our ", "the "} {
				what, _ = cutPrefixFold(what, start)
			}
		}
		if what != "" {
			return what, true
		}
	}
	return "", false
}

// argument returns the name of the tool's text argument.
func argument(t tidemark.Tool, names []string) string {
	var s struct {
		Properties map[string]struct {
			Type string `json:"type"`
		} `json:"properties"`
		Required []string `json:"required"`
	}
	if json.Unmarshal(t.InputSchema, &s) != nil {
		return names[0]
	}
	for _, n := range names {
		if p, ok := s.Properties[n]; ok && (p.Type == "string" || p.Type == "") {
			return n
		}
	}
	for _, n := range s.Required {
		if s.Properties[n].Type == "string" {
			return n
		}
	}
	return names[0]
}

// asciiLower keeps every byte at its place, which strings.ToLower does not.
func asciiLower(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

func cutPrefixFold(s, prefix string) (string, bool) {
	if len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix) {
		return s[len(prefix):], true
	}
	return s, false
}
