package provider

import (
	"strings"
	"unicode"

	tidemark "github.com/tidemark-ai/tidemark"
)

// summaryMark begins a summary message of the compaction engine.
const summaryMark = "[Conversation summary"

// parts separates what a person said in a message from summaries, which may stand in blocks of the
// same message since roles alternate.
func parts(m tidemark.Message) (summary, said string) {
	var sums, words []string
	for _, b := range m.Content {
		switch {
		case b.Type != tidemark.TypeText || b.Text == "" || strings.HasPrefix(b.Text, markerMark) && bracketed(b.Text):
		case strings.HasPrefix(b.Text, summaryMark):
			sums = append(sums, b.Text)
		default:
			words = append(words, b.Text)
		}
	}
	return strings.Join(sums, "\n"), strings.TrimSpace(tidemark.StripReminders(strings.Join(words, "\n")))
}

// statements returns the sentences of a person that state something: neither questions nor what a
// machine put into the message.
func statements(text string) []string {
	var out []string
	for _, s := range sentences(withoutNotices(text)) {
		if !asks(s) && !notice(s) {
			out = append(out, s)
		}
	}
	return out
}

// maxSpans bounds how often the end of a machine's tag is looked for in one text.
const maxSpans = 64

// withoutNotices takes out what programs put into messages: tagged spans that begin a line, such as news of
// tasks, commands and their output, and lines in brackets, such as markers.
func withoutNotices(text string) string {
	if !strings.ContainsAny(text, "<[") {
		return text
	}
	var b strings.Builder
	for spans := 0; text != ""; {
		line, rest, _ := strings.Cut(text, "\n")
		if bracketed(line) {
			text = rest
			continue
		}
		name, ok := tagName(strings.TrimSpace(line))
		if !ok {
			b.WriteString(line + "\n")
			text = rest
			continue
		}
		end := "</" + name + ">"
		if spans++; spans <= maxSpans {
			if _, after, found := strings.Cut(text, end); found {
				text = after
				continue
			}
		}
		text = rest
	}
	return b.String()
}

// tagName returns the name of the tag that a line begins with.
func tagName(line string) (string, bool) {
	rest, ok := strings.CutPrefix(line, "<")
	if !ok {
		return "", false
	}
	rest = strings.TrimPrefix(rest, "/")
	n := strings.IndexFunc(rest, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '-' && r != '_'
	})
	if n <= 0 || !strings.ContainsRune("> /", rune(rest[n])) || !strings.Contains(rest, ">") {
		return "", false
	}
	return rest[:n], true
}

// notice reports whether a line is a machine's: a tag, or a remark in brackets.
func notice(line string) bool {
	line = strings.TrimSpace(line)
	_, tagged := tagName(line)
	return tagged || strings.HasPrefix(line, "[") || strings.HasPrefix(line, "No model could write a summary")
}

// leads are what stands before a quotation in answers and summaries.
var leads = [...]string{"You said: ", "Noted: ", "From memory: ", "From the summary: ", "I will remember that: ", "I know that already: ", "Asked: ",
	fromCard + ": ", fromEvict + ": "}

// bare is what a sentence says, without what introduces it: "Noted: “x”" and "Remember that x" are
// both x, so a fact is not kept once for each way to mention it.
func bare(s string) string {
	for _, l := range leads {
		if rest, ok := strings.CutPrefix(s, l); ok {
			s = strings.TrimSuffix(strings.TrimPrefix(rest, "“"), "”")
		}
	}
	if facts, rest := toRemember(s); len(facts) == 1 && rest == "" {
		return facts[0]
	}
	return s
}

// fillers change nothing about which fact a sentence states. Negations are no fillers.
var fillers = wordSet(`a an the that so also just now really very ok okay yes well please have has had ve`)

// nearKey is equal for sentences that say nearly the same. Numbers count unless they are blank.
func nearKey(s string, blankNumbers bool) string {
	var out []string
	for _, w := range strings.Fields(normal(bare(s))) {
		switch {
		case fillers[w]:
		case blankNumbers && strings.ContainsAny(w, "0123456789"):
			out = append(out, "#")
		default:
			out = append(out, stem(w))
		}
	}
	if len(out) == 0 {
		return normal(s)
	}
	return strings.Join(out, " ")
}

// resolves reports whether a person says what was decided. What only may be decided does not count.
func resolves(lower string) bool {
	if holds(lower, "if we ", "if i ", "whether ", "once we ", "until we ", "before we ") {
		return false
	}
	return holds(lower, "we decided", "we've decided", "we’ve decided", "we have decided", "we finally decided", "i decided", "i have decided", "i've decided",
		"we agreed", "we have agreed", "we've agreed", "it is agreed", "it was agreed", "we chose", "we have chosen", "we've chosen", "we settled on",
		"the decision is", "the decision was", "our decision is", "it was decided", "it is decided")
}

// maxResolved bounds the decisions among the memories of one summary.
const maxResolved = 8

// durable returns what the person said that will matter elsewhere and is not known yet: facts about
// them and what they decided. Only their own words count: what tools and models say may be planted.
// Of decisions that differ in their numbers alone the newest counts, so that a series is one.
func (r summaryRequest) durable() []string {
	known := map[string]bool{}
	for _, s := range sentences(r.memories) {
		known[nearKey(s, false)] = true
	}
	facts, decided := newSection(), map[string]int{}
	var resolved []string // "" where a newer one took its place
	for _, l := range r.lines {
		if l.who != "user" {
			continue
		}
		for _, s := range statements(l.text) {
			s = bare(s)
			lower := strings.ToLower(s)
			if len(s) < 8 || len(s) > maxSentence || known[nearKey(s, false)] {
				continue
			}
			if !resolves(lower) {
				if durable(lower) || remembers(l.text, s) {
					facts.add(s)
				}
				continue
			}
			key := nearKey(s, true)
			if i, ok := decided[key]; ok {
				resolved[i] = ""
			}
			decided[key] = len(resolved)
			resolved = append(resolved, s)
		}
	}
	return r.bounded(facts.items, resolved)
}

// bounded is the newest decisions behind the facts, within the bounds of memories.
func (r summaryRequest) bounded(facts, resolved []string) []string {
	decisions := newSection()
	for i := len(resolved) - 1; i >= 0 && len(decisions.items) < maxResolved; i-- {
		decisions.add(resolved[i])
	}
	out := append([]string{}, facts[:min(len(facts), maxMemories-len(decisions.items))]...)
	for i := len(decisions.items) - 1; i >= 0; i-- {
		out = append(out, decisions.items[i])
	}
	size := 0
	for _, f := range out {
		size += len(f) + 3
	}
	for size > r.room(maxRemembered) && len(out) > 0 { // the newest decisions stand last: facts go first
		size -= len(out[0]) + 3
		out = out[1:]
	}
	return out
}

// remembers reports whether a person asked in a text to remember a fact.
func remembers(text, fact string) bool {
	facts, _ := toRemember(text)
	for _, f := range facts {
		if f == fact {
			return true
		}
	}
	return false
}
