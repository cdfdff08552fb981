package provider

import (
	"strings"

	tidemark "github.com/tidemark-ai/tidemark"
)

// rememberTool is the tool that writes down what a person asks to remember.
const rememberTool = "memory_append"

// Phrases that ask to remember what follows. Those that end a clause with "that" may stand within a
// sentence; the others only begin one.
var (
	rememberThat  = [...]string{"remember that ", "note that ", "keep in mind that "}
	rememberThis  = [...]string{"save to memory: ", "remember "}
	rememberLists = [...]string{"remember:", "save to memory:"}
)

// toRemember returns the facts that a person asks to remember, one a sentence, and the rest of what
// was said. A colon introduces all that follows it.
func toRemember(text string) (facts []string, rest string) {
	var others []string
	all := false
	for _, s := range sentences(text) {
		if all {
			facts = append(facts, s)
			continue
		}
		before, fact, list := requested(s)
		all = list
		if fact != "" {
			facts = append(facts, fact)
		}
		if fact == "" && !list {
			before = s
		}
		if before != "" {
			others = append(others, before)
		}
	}
	return facts, strings.Join(others, " ")
}

// requested parts a sentence at a request to remember; list says that more sentences belong to it.
func requested(s string) (before, fact string, list bool) {
	lower := asciiLower(s)
	start, polite, _ := clause(lower)
	if strings.HasSuffix(lower, "?") && !polite {
		return "", "", false // "remember when …?"
	}
	cut := func(at int) string {
		f := strings.TrimSpace(s[at:])
		if polite {
			f = strings.TrimRight(f, "?")
		}
		return f
	}
	for _, p := range rememberLists {
		if strings.HasPrefix(lower[start:], p) {
			return "", cut(start + len(p)), true
		}
	}
	for _, p := range rememberThat {
		i := strings.Index(lower, p)
		if i < 0 || i > 0 && letterOrDigit(lower[i-1]) {
			continue
		}
		if end, ok := clauseEnd(lower[:i]); ok {
			return strings.TrimRight(s[:end], " ,;:-—–"), cut(i + len(p)), false
		}
	}
	for _, p := range rememberThis {
		if strings.HasPrefix(lower[start:], p) {
			return "", cut(start + len(p)), false
		}
	}
	return "", "", false
}

// clause skips the polite words that begin a sentence.
func clause(lower string) (start int, polite, ok bool) {
	for again := true; again; {
		again = false
		for _, w := range [...]string{"please ", "please, ", "can you ", "could you ", "would you ", "also ", "also, ", "and ", "ok, ", "okay, "} {
			if strings.HasPrefix(lower[start:], w) {
				start += len(w)
				polite = polite || strings.HasSuffix(w, "you ")
				again = true
			}
		}
	}
	return start, polite, start > 0
}

// clauseEnd returns where the clause ends that stands before a request; ok is false when the
// request is no clause of its own, as in "I always remember that day".
func clauseEnd(before string) (end int, ok bool) {
	if start, _, _ := clause(before); start == len(before) {
		return 0, true
	}
	t := strings.TrimRight(before, " ")
	joined := false
	for _, w := range [...]string{" please", " and", " but"} {
		if rest, found := strings.CutSuffix(t, w); found {
			t, joined = strings.TrimRight(rest, " "), true
		}
	}
	if joined || t == "" {
		return len(t), true
	}
	for _, mark := range [...]string{",", ";", ":", " -", "—", "–"} {
		if strings.HasSuffix(t, mark) {
			return len(t), true
		}
	}
	return 0, false
}

// afterTools answers a message that brings the results of tools: what they say, and what else the
// person said when the call was only to remember a part of it.
func afterTools(req tidemark.Request, text string) string {
	found := reportResults(req.Messages)
	last := len(req.Messages) - 1
	if last > 1 && calledOnly(req.Messages[last-1], rememberTool) {
		_, asked := parts(req.Messages[last-2])
		if _, rest := toRemember(asked); rest != "" && len(asked) <= maxAsked && req.Messages[last-2].Role == tidemark.User {
			found = converse(req, last-2, rest) + "\n\n" + found
		}
	}
	if last > 1 && calledOnly(req.Messages[last-1], recallName) && req.Messages[last-2].Role == tidemark.User {
		_, asked := parts(req.Messages[last-2])
		if asks(lastSentence(asked)) && !finds(req.Messages[last]) { // what is in view may have a part of it
			found = converse(req, last-2, asked)
		}
	}
	if text != "" {
		found += "\n\n" + converse(req, last, text)
	}
	return found
}

// calledOnly reports whether a message calls one tool and no other.
func calledOnly(m tidemark.Message, tool string) bool {
	n := 0
	for _, b := range m.Content {
		if b.Type == tidemark.TypeToolUse {
			if b.Name != tool {
				return false
			}
			n++
		}
	}
	return n > 0
}
