package offline

import (
	"regexp"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/clip"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/internal/jsonscan"
)

// What stands in the place of messages that left the view.
const (
	summaryMark = "[Conversation summary"         // of a summary
	markerMark  = "[Events "                      // of a marker
	noFind      = "Nothing found that this query" // begins what recall answers when it finds nothing
)

// Where a quotation is from.
const (
	fromMemory  = "From memory"
	fromSummary = "From the summary"
	fromNote    = "From the note"
	fromPerson  = "You said"
)

var greeting = regexp.MustCompile(`^(?:hi|hello|hey|hallo|moin|hola|bonjour|good (?:morning|evening|afternoon))\b`)

func greets(text string) bool {
	n := normal(text)
	return n == "" || greeting.MatchString(n) && strings.Count(n, " ") < 4
}

// converse answers a text of the message at a place from what the request holds.
func converse(req tidemark.Request, at int, text string) string {
	if greets(text) {
		return "Hello. I am Tidemark's offline model: I need no key, I remember what you tell me and quote it when you ask. Tell me something, or ask what we said about it."
	}
	hits := rank(known(req, at), text, 3)
	answer := "This is what I have on that.\n"
	if !asks(lastSentence(text)) {
		answer = "Noted: “" + clip.To(sentences(text)[0], maxSentence) + "”"
		if len(hits) == 0 || len(words(text)) < 4 {
			return answer
		}
		answer += "\n\nIt goes with this:\n"
	} else if len(hits) == 0 {
		return "I find nothing about that here. I am the offline model and can only quote what I was told; set an API key for a model that knows more."
	}
	for _, h := range hits {
		answer += "\n" + h.lead + ": “" + clip.To(h.text, maxSentence) + "”"
	}
	return answer
}

// known returns what can be quoted, the oldest first: memory in the system prompt, then the messages but the one that is
// answered, then the note. What the model itself said is left out: it was quoted from there; so are questions.
func known(req tidemark.Request, at int) (out []passage) {
	add := func(lead string, text string) {
		for _, s := range sentences(text) {
			if !asks(s) {
				out = append(out, passage{lead: lead, text: s})
			}
		}
	}
	quotable(req.System, func(text string) { add(fromMemory, text) })
	for i, m := range req.Messages {
		if m.Role != tidemark.User {
			continue
		}
		summary, said := parts(m)
		summaryLines(summary, func(heading, line string) {
			if !strings.Contains(heading, "index of") && !strings.Contains(heading, "tool calls") && !strings.Contains(heading, "work state") {
				add(fromSummary, line)
			}
		})
		if i != at {
			add(fromPerson, said)
		}
	}
	quotable(req.Note, func(text string) { add(fromNote, text) })
	return out
}

// quotable gives the bullets and quoted lines of a system prompt or a note, but not what the model itself said.
func quotable(text string, add func(text string)) {
	own := false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		said, ok := strings.CutPrefix(line, "| ")
		switch {
		case !own && (ok || strings.HasPrefix(line, "- ") || strings.HasPrefix(line, "* ")):
			add(said)
		case !ok: // a title, or entry ID, time, who:
			own = strings.HasSuffix(line, ", "+tidemark.FromModel+":")
		}
	}
}

// summaryLines gives the items of a summary with the heading above them, in lower case.
func summaryLines(s string, f func(heading, item string)) {
	heading := ""
	for line := range strings.Lines(s) {
		line = strings.TrimSpace(line)
		if item, ok := strings.CutPrefix(line, "- "); ok {
			f(heading, item)
		} else if strings.HasPrefix(line, "#") {
			heading = strings.ToLower(line)
		}
	}
}

// afterTools answers a message that brings the results of tools: what they say, and what else the person said when the
// call was only to remember a part of it.
func afterTools(req tidemark.Request, text string) string {
	at := len(req.Messages) - 1
	calls := map[string]tidemark.Block{}
	var found []string
	if at > 0 {
		for _, b := range req.Messages[at-1].Content {
			calls[b.ID] = b
		}
	}
	for _, b := range req.Messages[at].Content {
		if b.Type != tidemark.TypeToolResult {
			continue
		}
		call, asked := calls[b.ToolUseID], ""
		if at > 1 {
			_, asked = parts(req.Messages[at-2])
		}
		result := resultText(b, call.Name)
		if call.Name == recallTool && result == "" && asks(lastSentence(asked)) { // what is in view may have a part of it
			found = append(found, converse(req, at-2, asked))
			continue
		}
		if _, rest := toRemember(asked); call.Name == rememberTool && rest != "" && len(asked) <= maxAsked {
			found = append(found, converse(req, at-2, rest))
		}
		found = append(found, reported(call, result, b.IsError))
	}
	if text != "" {
		found = append(found, converse(req, at, text))
	}
	return strings.Join(found, "\n\n")
}

// reported says what a tool answered.
func reported(call tidemark.Block, text string, failed bool) string {
	query := "“" + clip.To(argument(call.Input), maxSentence) + "”"
	switch {
	case failed:
		return "The tool " + call.Name + " failed: " + clip.To(text, maxSentence)
	case call.Name == rememberTool:
		return "I will remember that: " + query
	}
	var lines []passage
	for _, s := range sentences(text) {
		if normal(s) != "" && !asks(s) {
			lines = append(lines, passage{text: s})
		}
	}
	best := rank(lines, query, 3)
	if len(best) == 0 {
		best = lines[:min(3, len(lines))]
	}
	if len(best) == 0 {
		return call.Name + " found nothing about " + query + "."
	}
	answer := "This is what " + call.Name + " found about " + query + ":\n"
	for _, p := range best {
		answer += "\n- " + clip.To(p.text, maxSentence)
	}
	return answer
}

// argument is the text that a call of one text has for its input.
func argument(input json.RawMessage) (text string) {
	_ = jsonscan.Members(input, func(_, value []byte) { text += string(jsonscan.Unquoted(value)) }) // what is no object has none
	return strings.ReplaceAll(text, "\n", " ")
}

// resultText is the text of a result. What was recalled comes without the heads of the finds, and without what the model
// itself said, which was only quoted.
func resultText(b tidemark.Block, tool string) string {
	var texts []string
	for _, c := range b.Content {
		if c.Type == tidemark.TypeText {
			texts = append(texts, c.Text)
		}
	}
	text := strings.Join(texts, "\n")
	if tool != recallTool || b.IsError {
		return text
	}
	if strings.HasPrefix(text, noFind) {
		return ""
	}
	var said strings.Builder
	for find := range strings.SplitSeq(text, "\n[") {
		head, quoted, _ := strings.Cut(find, "\n")
		if !strings.Contains(head, "] "+tidemark.FromModel) {
			said.WriteString(programs.ReplaceAllString(strings.ReplaceAll("\n"+quoted, "\n| ", "\n"), ""))
		}
	}
	return strings.TrimSpace(said.String())
}
