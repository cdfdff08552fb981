package provider

import (
	"strings"

	tidemark "github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// converse answers a text of the message at a place from what the request holds.
func converse(req tidemark.Request, at int, text string) string {
	if greets(text) {
		return "Hello. I am Tidemark's offline model: I need no key, I remember what you tell me and quote it when you ask. Tell me something, or ask what we said about it."
	}
	hits := rank(known(req, at), text, 3)
	var b strings.Builder
	question := asks(lastSentence(text))
	if !question {
		hits = related(hits, text)
	}
	switch {
	case question && len(hits) == 0:
		return "I find nothing about that here. I am the offline model and can only quote what I was told; set an API key for a model that knows more."
	case question:
		b.WriteString("This is what I have on that.\n")
	default:
		b.WriteString("Noted: “" + clip(first(sentences(text)), maxSentence) + "”")
		if len(hits) > 0 {
			b.WriteString("\n\nIt goes with this:\n")
		}
	}
	for _, h := range hits {
		b.WriteString("\n" + h.lead + ": “" + clip(h.text, maxSentence) + "”")
	}
	return b.String()
}

// related leaves the passages that a statement has to do with. Of memory and summaries, which hold
// much, they share most of its words and more than one; what was said in this conversation may
// share a single one, unless the statement is short.
func related(hits []passage, text string) []passage {
	said := wordSet(strings.Join(words(text), " "))
	var out []passage
	for _, h := range hits {
		shared := 0
		for w := range wordSet(strings.Join(words(h.text), " ")) {
			if said[w] {
				shared++
			}
		}
		if shared > 1 && shared*2 >= len(said) || h.lead == "You said" && len(said) > 3 {
			out = append(out, h)
		}
	}
	return out
}

func greets(text string) bool {
	w := strings.Fields(normal(text))
	if len(w) == 0 || len(w) > 4 {
		return len(w) == 0
	}
	switch w[0] {
	case "hi", "hello", "hey", "hallo", "moin", "hola", "bonjour":
		return true
	case "good":
		return len(w) > 1 && (w[1] == "morning" || w[1] == "evening" || w[1] == "afternoon")
	}
	return false
}

func first(s []string) string {
	if len(s) == 0 {
		return ""
	}
	return s[0]
}

func lastSentence(text string) string {
	s := sentences(clip(text, 64<<10))
	if len(s) == 0 {
		return text
	}
	return s[len(s)-1]
}

// known returns what can be quoted, the oldest first: memory in the system prompt, then the
// messages but the one that is answered, then the note with what was brought back. What the model itself said is left out: it
// was quoted from there; so are questions, which answer nothing.
func known(req tidemark.Request, at int) []passage {
	var out []passage
	add := func(lead string, texts []string) {
		for _, t := range texts {
			if len(out) < maxSentences {
				out = append(out, passage{lead: lead, text: t})
			}
		}
	}
	add("From memory", memoryLines(req.System))
	for i, m := range req.Messages {
		if m.Role != tidemark.User {
			continue
		}
		summary, said := parts(m)
		add("From the summary", factLines(summary))
		if i != at {
			add("You said", statements(said))
		}
	}
	add("From memory", memoryLines(withoutNoteFacts(req.Note)))
	return append(out, noteFacts(req.Note)...)
}

// memoryLines returns the lines of a system prompt that state something: bullets, and what stands
// under a heading or tag that names memory.
func memoryLines(s string) []string {
	var out []string
	inside := false
	for line := range strings.Lines(s) {
		line = strings.TrimSpace(line)
		lower := strings.ToLower(line)
		switch {
		case strings.HasPrefix(line, "#") || strings.HasPrefix(line, "<"):
			inside = strings.Contains(lower, "memor") && !strings.HasPrefix(line, "</")
		case line != "" && (inside || strings.HasPrefix(line, "- ") || strings.HasPrefix(line, "* ")):
			out = append(out, statements(line)...)
		}
	}
	return out
}

// factLines returns what a summary says was said: without headings, notes, the index of names, calls
// and the model's own answers.
func factLines(s string) []string {
	var out []string
	index := false
	for line := range strings.Lines(s) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "#") {
			index = strings.HasPrefix(line, "## Index of") || strings.HasPrefix(line, "## Tool calls")
			continue
		}
		item := strings.TrimPrefix(line, "- ")
		if index || notice(item) || strings.HasPrefix(item, "Last answer: ") || strings.HasPrefix(item, "Called ") || strings.HasPrefix(item, "assistant: ") {
			continue
		}
		out = append(out, statements(strings.TrimPrefix(bare(item), "user: "))...)
	}
	return out
}

// reportResults says what the tools answered that the last message brings.
func reportResults(messages []tidemark.Message) string {
	calls := map[string]tidemark.Block{}
	if n := len(messages); n > 1 {
		for _, b := range messages[n-2].Content {
			if b.Type == tidemark.TypeToolUse {
				calls[b.ID] = b
			}
		}
	}
	var parts []string
	for _, b := range messages[len(messages)-1].Content {
		if b.Type == tidemark.TypeToolResult {
			parts = append(parts, reportResult(calls[b.ToolUseID], b))
		}
	}
	return strings.Join(parts, "\n\n")
}

func reportResult(call, result tidemark.Block) string {
	texts := resultTexts(result)
	if call.Name == recallName && !result.IsError {
		for i, t := range texts {
			texts[i] = recalled(t)
		}
	}
	text := strings.Join(texts, "\n")
	query := strings.ReplaceAll(strings.Join(inputTexts(call.Input), " "), "\n", " ")
	switch {
	case result.IsError:
		return "The tool " + call.Name + " failed: " + clip(text, maxSentence)
	case call.Name == rememberTool && strings.HasPrefix(text, "Nothing new"):
		return "I know that already: “" + clip(query, maxSentence) + "”"
	case call.Name == rememberTool:
		return "I will remember that: “" + clip(query, maxSentence) + "”"
	}
	var lines []passage
	for _, t := range texts {
		for _, s := range sentences(t) {
			if strings.Trim(s, "#-=*[]{}(), ") != "" && !asks(s) && len(lines) < maxSentences {
				lines = append(lines, passage{text: s})
			}
		}
	}
	best := rank(lines, query, 3)
	if len(best) == 0 {
		best = lines[:min(3, len(lines))]
	}
	if len(best) == 0 {
		return call.Name + " found nothing about “" + clip(query, maxSentence) + "”."
	}
	var b strings.Builder
	b.WriteString("This is what " + call.Name + " found about “" + clip(query, maxSentence) + "”:\n")
	for _, p := range best {
		b.WriteString("\n- " + clip(p.text, maxSentence))
	}
	return b.String()
}

// resultTexts returns the texts of a result; of one that is JSON, its strings.
func resultTexts(b tidemark.Block) []string {
	var out []string
	for _, c := range b.Content {
		if c.Type != tidemark.TypeText {
			continue
		}
		if t := strings.TrimSpace(c.Text); t != "" && (t[0] == '{' || t[0] == '[') && json.Valid([]byte(t)) {
			out = append(out, inputTexts(json.RawMessage(t))...)
			continue
		}
		out = append(out, c.Text)
	}
	return out
}

// inputTexts returns the strings within a JSON value that are longer than a word or stand alone, in
// the order in which they are written.
func inputTexts(raw json.RawMessage) []string {
	var out []string
	for i := 0; i < len(raw) && len(out) < maxSentences; {
		if raw[i] != '"' {
			i++
			continue
		}
		end := skipString(raw, i)
		next := skipSpace(raw, end)
		var s string
		isKey := next < len(raw) && raw[next] == ':'
		if !isKey && json.Unmarshal(raw[i:end], &s) == nil && s != "" {
			out = append(out, s)
		}
		i = end
	}
	return out
}
