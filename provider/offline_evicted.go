package provider

import (
	"strings"

	"github.com/tidemark-ai/tidemark"
)

// What stands in the place of messages that left the view, and in the note beside those that are back.
const (
	markerMark = "[Events "       // of a marker
	cardMark   = "[The task card" // a note with what is worked on
	pushMark   = "[From evicted messages"
	noFind     = "Nothing found that this query" // begins what recall answers when it finds nothing
	recallName = "recall"
)

// leads of what is read from a note.
const (
	fromCard  = "From the task card"
	fromEvict = "From evicted messages"
)

// noteFacts returns what the note of a request holds of what was said: the card, and the messages that were
// brought back, but not what the model itself said.
func noteFacts(note string) (out []passage) {
	lead, own := "", false
	add := func(lead, text string) {
		for _, s := range statements(text) {
			out = append(out, passage{lead: lead, text: s})
		}
	}
	for line := range strings.Lines(note) {
		line = strings.TrimSpace(line)
		quoted, isQuote := strings.CutPrefix(line, "|")
		switch {
		case strings.HasPrefix(line, cardMark):
			lead = fromCard
		case strings.HasPrefix(line, pushMark):
			lead = fromEvict
		case strings.HasPrefix(line, "["), line == "":
			lead = ""
		case lead == fromEvict && isQuote:
			if !own {
				add(fromEvict, quoted)
			}
		case lead == fromEvict: // entry ID, time, who:
			own = strings.HasSuffix(line, ", "+tidemark.FromModel+":")
		case lead == fromCard && strings.HasPrefix(line, "- "):
			if _, item, ok := strings.Cut(line, ": "); ok {
				add(fromCard, item)
			}
		}
	}
	return out
}

// withoutNoteFacts is the rest of a note, which holds memory as a system prompt does.
func withoutNoteFacts(note string) string {
	var b strings.Builder
	inside := false
	for line := range strings.Lines(note) {
		if strings.HasPrefix(line, "[") || strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#") {
			inside = strings.HasPrefix(line, cardMark) || strings.HasPrefix(line, pushMark)
		}
		if !inside {
			b.WriteString(strings.TrimPrefix(line, "| ")) // of memory
		}
	}
	return b.String()
}

// bracketed reports a line that is a remark of a program as a whole, such as a marker: each sentence of it
// is, though only the first begins with the bracket.
func bracketed(line string) bool {
	line = strings.TrimSpace(line)
	return strings.HasPrefix(line, "[") && strings.HasSuffix(line, "]")
}

// leftView reports whether messages left the view of a request, for a marker or for a summary.
func leftView(messages []tidemark.Message) (marker, summary bool) {
	for _, m := range messages {
		if m.Role != tidemark.User {
			continue
		}
		for _, b := range m.Content {
			marker = marker || b.Type == tidemark.TypeText && strings.HasPrefix(b.Text, markerMark)
			summary = summary || b.Type == tidemark.TypeText && strings.HasPrefix(b.Text, summaryMark)
		}
	}
	return marker, summary
}

// recallFor returns the call of recall for a question that what is in view does not answer: nothing there
// has a word of it, or, where markers stand, half of its words or fewer.
func recallFor(req tidemark.Request, text string) (tidemark.Block, bool) {
	marker, summary := leftView(req.Messages)
	question := lastSentence(text)
	if !marker && !summary || len(text) > maxAsked || greets(text) || !asks(question) {
		return tidemark.Block{}, false
	}
	for _, t := range req.Tools {
		if t.Name != recallName {
			continue
		}
		hits := rank(known(req, len(req.Messages)-1), text, 1)
		if len(hits) > 0 && (!marker || answers(hits[0].text, question)) || len(words(question)) == 0 {
			return tidemark.Block{}, false
		}
		return tidemark.ToolUse(offlineCallID(req), recallName, callInput(argument(t, searchArgs), question)), true
	}
	return tidemark.Block{}, false
}

// answers reports whether a passage has more than half of the words of a question.
func answers(passage, question string) bool {
	has := wordSet(strings.Join(words(passage), " "))
	asked := wordSet(strings.Join(words(question), " "))
	n := 0
	for w := range asked {
		if has[w] {
			n++
		}
	}
	return 2*n > len(asked)
}

// recalled is what a recall found without the heads of its finds and without what the model itself said,
// which was only quoted.
func recalled(text string) string {
	var b strings.Builder
	own := false
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "[") && strings.Contains(line, ", entry ") {
			_, who, _ := strings.Cut(line, "] ")
			own = strings.HasPrefix(who, tidemark.FromModel+",") || strings.HasPrefix(who, tidemark.FromModel+" in ")
			continue
		}
		if said, ok := strings.CutPrefix(line, "| "); ok && !own && !bracketed(said) {
			b.WriteString(said)
		}
	}
	return b.String()
}

// finds reports whether the results of a message hold anything that was said.
func finds(m tidemark.Message) bool {
	for _, b := range m.Content {
		if b.Type != tidemark.TypeToolResult {
			continue
		}
		for _, t := range resultTexts(b) {
			if b.IsError || strings.TrimSpace(recalled(t)) != "" && !strings.HasPrefix(t, noFind) {
				return true
			}
		}
	}
	return false
}
