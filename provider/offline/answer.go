package offline

import (
	"regexp"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/clip"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/internal/scan"
)

// What stands in the place of messages that left the view, and in the note beside those that are back.
const (
	summaryMark = "[Conversation summary"         // of a summary
	markerMark  = "[Events "                      // of a marker
	cardMark    = "[The task card"                // a note with what is worked on
	pushMark    = "[From evicted messages"        // a note with what was brought back
	noFind      = "Nothing found that this query" // begins what recall answers when it finds nothing
)

// Where a quotation is from.
const (
	fromMemory  = "From memory"
	fromSummary = "From the summary"
	fromCard    = "From the task card"
	fromEvicted = "From evicted messages"
	fromPerson  = "You said"
)

// leads are what stands before a quotation in answers and summaries.
var leads = regexp.MustCompile(`^(?:(?:` + strings.Join([]string{fromMemory, fromSummary, fromCard, fromEvicted, fromPerson}, "|") +
	`|Noted|I will remember that|I know that already|Asked): )+“?`)

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
	var b strings.Builder
	switch question := asks(lastSentence(text)); {
	case question && len(hits) == 0:
		return "I find nothing about that here. I am the offline model and can only quote what I was told; set an API key for a model that knows more."
	case question:
		b.WriteString("This is what I have on that.\n")
	default:
		first := ""
		for s := range sentencesOf(text) {
			first = s
			break
		}
		b.WriteString("Noted: “" + clip.To(first, maxSentence) + "”")
		if hits = related(hits, text); len(hits) > 0 {
			b.WriteString("\n\nIt goes with this:\n")
		}
	}
	for _, h := range hits {
		b.WriteString("\n" + h.lead + ": “" + clip.To(h.text, maxSentence) + "”")
	}
	return b.String()
}

// related leaves the passages that a statement has to do with: they share most of its words and more than one; what was
// said in this conversation may share a single one, unless the statement is short.
func related(hits []passage, text string) (out []passage) {
	said := len(wordSet(text))
	for _, h := range hits {
		if n := shared(h.text, text); n > 1 && n*2 >= said || h.lead == fromPerson && said > 3 {
			out = append(out, h)
		}
	}
	return out
}

// known returns what can be quoted, the oldest first: memory in the system prompt, then the messages but the one that is
// answered, then the note. What the model itself said is left out: it was quoted from there; so are questions.
func known(req tidemark.Request, at int) (out []passage) {
	add := func(lead string, text string) {
		for _, s := range statements(text) {
			out = append(out, passage{lead: lead, text: s})
		}
	}
	memoryLines(req.System, add)
	for i, m := range req.Messages {
		if m.Role != tidemark.User {
			continue
		}
		summary, said := parts(m)
		summaryLines(summary, func(heading, line string) {
			if line, quoted := strings.CutPrefix(line, "- "); !strings.Contains(heading, "index of") && !strings.Contains(heading, "tool calls") && (quoted || !notice(line)) && !modelLine.MatchString(line) {
				add(fromSummary, strings.TrimPrefix(bare(line), "user: "))
			}
		})
		if i != at {
			add(fromPerson, said)
		}
	}
	noteLines(req.Note, add)
	return out
}

// modelLine is a line of a summary that tells of the model, not of a person.
var modelLine = regexp.MustCompile(`^(?:Last answer: |Called |assistant: )`)

// memoryLines gives the lines of a system prompt that state something: bullets, and what stands under a heading or tag that
// names memory.
func memoryLines(s string, add func(lead, text string)) {
	inside := false
	for line := range strings.Lines(s) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "#") || strings.HasPrefix(line, "<"):
			inside = strings.Contains(strings.ToLower(line), "memor") && !strings.HasPrefix(line, "</")
		case inside || strings.HasPrefix(line, "- ") || strings.HasPrefix(line, "* "):
			add(fromMemory, line)
		}
	}
}

// summaryLines gives the lines of a summary with the heading above them, in lower case.
func summaryLines(s string, f func(heading, line string)) {
	heading := ""
	for line := range strings.Lines(s) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "#") {
			heading = strings.ToLower(line)
		} else if line != "" {
			f(heading, line)
		}
	}
}

// noteLines gives what a note holds of memory, of the card and of the messages that were brought back, but not what the
// model itself said.
func noteLines(note string, add func(lead, text string)) {
	lead, own := "", false
	var memory strings.Builder
	for line := range strings.Lines(note) {
		line = strings.TrimSpace(line)
		quoted, isQuote := strings.CutPrefix(line, "| ")
		switch {
		case strings.HasPrefix(line, cardMark):
			lead = fromCard
		case strings.HasPrefix(line, pushMark):
			lead = fromEvicted
		case strings.HasPrefix(line, "[") || strings.HasPrefix(line, "#") || line == "":
			lead = ""
			memory.WriteString(line + "\n")
		case lead == fromEvicted && !isQuote: // entry ID, time, who:
			own = strings.HasSuffix(line, ", "+tidemark.FromModel+":")
		case lead == fromEvicted && !own:
			add(lead, quoted)
		case lead == fromCard && strings.HasPrefix(line, "- "):
			_, item, _ := strings.Cut(line, ": ")
			add(lead, item)
		case lead == "":
			memory.WriteString(quoted + "\n")
		}
	}
	memoryLines(memory.String(), add)
}

// afterTools answers a message that brings the results of tools: what they say, and what else the person said when the
// call was only to remember a part of it.
func afterTools(req tidemark.Request, text string) string {
	at := len(req.Messages) - 1
	calls := map[string]tidemark.Block{}
	tool, asked := "", ""
	if at > 0 {
		for _, b := range req.Messages[at-1].Content {
			if b.Type == tidemark.TypeToolUse {
				tool, calls[b.ID] = b.Name, b
			}
		}
	}
	if at > 1 && req.Messages[at-2].Role == tidemark.User && len(calls) == 1 {
		_, asked = parts(req.Messages[at-2])
	}
	var found []string
	quotes := false // anything that was said
	for _, b := range req.Messages[at].Content {
		if b.Type == tidemark.TypeToolResult {
			texts := resultTexts(b, calls[b.ToolUseID].Name)
			quotes = quotes || b.IsError || strings.TrimSpace(strings.Join(texts, "")) != ""
			found = append(found, reported(calls[b.ToolUseID], texts, b.IsError))
		}
	}
	_, rest := toRemember(asked)
	switch {
	case tool == rememberTool && rest != "" && len(asked) <= maxAsked:
		found = append([]string{converse(req, at-2, rest)}, found...)
	case tool == recallTool && !quotes && asks(lastSentence(asked)): // what is in view may have a part of it
		found = []string{converse(req, at-2, asked)}
	}
	if text != "" {
		found = append(found, converse(req, at, text))
	}
	return strings.Join(found, "\n\n")
}

// reported says what a tool answered.
func reported(call tidemark.Block, texts []string, failed bool) string {
	text := strings.Join(texts, "\n")
	query := "“" + clip.To(strings.ReplaceAll(strings.Join(jsonTexts(call.Input), " "), "\n", " "), maxSentence) + "”"
	switch {
	case failed:
		return "The tool " + call.Name + " failed: " + clip.To(text, maxSentence)
	case call.Name == rememberTool && strings.HasPrefix(text, "Nothing new"):
		return "I know that already: " + query
	case call.Name == rememberTool:
		return "I will remember that: " + query
	}
	var lines []passage
	for s := range sentencesOf(text) {
		if strings.Trim(s, "#-=*[]{}(), ") != "" && !asks(s) {
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
	var b strings.Builder
	b.WriteString("This is what " + call.Name + " found about " + query + ":\n")
	for _, p := range best {
		b.WriteString("\n- " + clip.To(p.text, maxSentence))
	}
	return b.String()
}

// resultTexts returns the texts of a result; of one that is JSON, its strings. What was recalled comes without the heads of
// the finds, and without what the model itself said, which was only quoted.
func resultTexts(b tidemark.Block, tool string) (out []string) {
	for _, c := range b.Content {
		t := strings.TrimSpace(c.Text)
		switch {
		case c.Type != tidemark.TypeText:
		case tool == recallTool && !b.IsError:
			out = append(out, recalled(c.Text))
		case t != "" && (t[0] == '{' || t[0] == '[') && json.Valid([]byte(t)):
			out = append(out, jsonTexts(json.RawMessage(t))...)
		default:
			out = append(out, c.Text)
		}
	}
	return out
}

func recalled(text string) string {
	if strings.HasPrefix(text, noFind) {
		return ""
	}
	var b strings.Builder
	own := false
	for line := range strings.Lines(text) {
		if said, ok := strings.CutPrefix(line, "| "); ok && !own && !bracketed(said) {
			b.WriteString(said)
		} else if strings.HasPrefix(line, "[") && strings.Contains(line, ", entry ") {
			_, who, _ := strings.Cut(line, "] ")
			own = strings.HasPrefix(who, tidemark.FromModel+",") || strings.HasPrefix(who, tidemark.FromModel+" in ")
		}
	}
	return b.String()
}

// jsonTexts returns the strings within a JSON value, in the order in which they are written.
func jsonTexts(raw json.RawMessage) (out []string) {
	if len(raw) == 0 {
		return nil
	}
	take := func(value []byte) { out = append(out, jsonTexts(value)...) }
	switch raw[0] {
	case '{':
		_ = scan.Members(raw, func(_, value []byte) { take(value) }) // it is valid
	case '[':
		_ = scan.Elements(raw, take)
	case '"':
		if s := string(scan.Unquoted(raw)); s != "" {
			out = append(out, s)
		}
	}
	return out
}
