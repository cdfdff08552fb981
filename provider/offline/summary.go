package offline

import (
	"regexp"
	"slices"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/clip"
)

// request asks to condense a conversation, as the compaction engine writes it.
type request struct {
	previous, memories string
	lines              []spoken
	summary, facts     bool            // what is asked for
	limit              tidemark.Tokens // of the answer, 0 for none
}

// spoken is one entry of the conversation.
type spoken struct {
	who  string // user, assistant, tool call NAME, tool result
	text string
}

// readRequest recognises such a request by its tags; what else a prompt asks for is left alone.
func readRequest(text, system string, limit tidemark.Tokens) (r request, ok bool) {
	talk, rest, ok := cutTag(text, "conversation")
	if !ok {
		return r, false
	}
	r.limit = limit
	r.previous, rest, _ = cutTag(rest, "previous-summary")
	r.memories, rest, _ = cutTag(rest, "existing-memories")
	for _, s := range []string{rest, system} {
		if !r.summary && !r.facts {
			r.summary, r.facts = strings.Contains(s, "<summary>"), strings.Contains(s, "<memories>")
		}
	}
	r.previous, r.memories = unescape(r.previous), unescape(r.memories)
	for line := range strings.Lines(talk) {
		if m := head.FindStringSubmatch(line); m != nil {
			r.lines = append(r.lines, spoken{m[1], unescape(line[len(m[0]):])})
		} else if n := len(r.lines); n > 0 {
			r.lines[n-1].text += unescape(line)
		}
	}
	return r, r.summary || r.facts
}

// head begins an entry: "[user] text", "[user]: text".
var head = regexp.MustCompile(`^\[(user|assistant|tool [^\]]*)\]:? ?`)

// cutTag returns what stands within a tag, and the text without it. What is within is escaped, so the first end is the end.
func cutTag(text, tag string) (inner, rest string, ok bool) {
	before, after, _ := strings.Cut(text, "<"+tag+">")
	inner, after, ok = strings.Cut(after, "</"+tag+">")
	if !ok {
		return "", text, false
	}
	return inner, before + after, true
}

func unescape(s string) string {
	return strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&").Replace(s)
}

// Bounds of an extract, in bytes. Together they stay well under the 4,096 tokens that a summary is usually given.
const (
	usualLimit   = 4096
	maxDecisions = 4000
	maxFacts     = 2400
	maxWork      = 1800
	mostFacts    = 20 // memories
)

// What a sentence of a person in lower case is.
var (
	decided = regexp.MustCompile(`\b(?:we|i)(?:['’]ve| have)? (?:decided|agreed|chose|chosen|settled on)\b|\bit (?:is|was) (?:agreed|decided)\b|\b(?:the|our) decision (?:is|was)\b`)
	durable = regexp.MustCompile(`\b(?:my name is|i am called|call me|(?:i|we) (?:prefer|like|love|hate|live|work|use)|always|never|deadline|birthday|allergic)\b`)
)

// answer writes what was asked for.
func (r request) answer() string {
	var b strings.Builder
	if r.summary {
		b.WriteString("<summary>\n" + r.condensed() + "</summary>\n\n")
	}
	if r.facts {
		b.WriteString("<memories>\n" + r.remembered() + "</memories>")
	}
	return strings.TrimSpace(b.String())
}

// extract is what a person said, in the sections of a summary. A sentence stands in one of them. What the model said is no
// fact: it quotes, or may err.
type extract struct {
	decisions, facts, details, work []string
	seen                            map[string]bool
}

// add adds an item that says something new.
func (x *extract) add(l *[]string, item string) {
	item = clip.To(strings.Join(strings.Fields(item), " "), maxSentence)
	if key := normal(item); key != "" && !x.seen[key] {
		x.seen[key] = true
		*l = append(*l, item)
	}
}

// nothingSaid stands in a summary without any item.
const nothingSaid = "Nothing was said that needs to be kept."

// previous takes over the former summary, or what stood in for one, but its state of work, which is written anew.
func (x *extract) previous(summary string) {
	summaryLines(summary, func(heading, item string) {
		switch {
		case item == nothingSaid || programs.MatchString(item) || strings.HasPrefix(item, "assistant: ") || strings.Contains(heading, "work") || strings.Contains(heading, "tool calls"):
		case strings.Contains(heading, "decision"):
			x.add(&x.decisions, item)
		default:
			x.add(&x.details, strings.TrimPrefix(item, "user: "))
		}
	})
}

// said sorts the sentences of a person, and returns those that belong nowhere.
func (x *extract) said(text string) string {
	facts, rest := toRemember(programs.ReplaceAllString(text, ""))
	var other []string
	for _, s := range sentences(rest) {
		switch lower := strings.ToLower(s); {
		case asks(s):
			other = append(other, s)
		case decided.MatchString(lower):
			x.add(&x.decisions, s)
		case durable.MatchString(lower):
			x.add(&x.facts, s)
		case strings.ContainsAny(s, "0123456789"):
			x.add(&x.details, s)
		default:
			other = append(other, s)
		}
	}
	for _, f := range facts {
		x.add(&x.facts, f)
	}
	return strings.Join(other, " ")
}

// condensed is a summary.
func (r request) condensed() string {
	x := &extract{seen: map[string]bool{}}
	x.previous(r.previous)
	var calls []string
	asked := ""
	for _, l := range r.lines {
		if name, isCall := strings.CutPrefix(l.who, "tool call "); isCall {
			calls = append(calls, "Called "+name+" "+l.text)
		} else if l.who == "user" {
			asked = x.said(l.text)
		}
	}
	for _, c := range calls[max(0, len(calls)-3):] {
		x.add(&x.work, c)
	}
	if asked != "" {
		x.add(&x.work, "Asked: "+asked)
	}
	var b strings.Builder
	r.section(&b, "## Decisions", x.decisions, maxDecisions)
	r.section(&b, "## Facts", append(x.details, x.facts...), maxFacts)
	r.section(&b, "## Work state and last requests", x.work, maxWork)
	if b.Len() == 0 {
		return "## Facts\n- " + nothingSaid + "\n"
	}
	return b.String()
}

// section writes a section within most bytes, fewer when the answer has less room than is usual. Items go from the middle,
// so that neither what began the work nor what is newest is lost.
func (r request) section(b *strings.Builder, title string, items []string, most int) {
	if r.limit > 0 {
		most = most * int(min(r.limit, usualLimit)) / usualLimit
	}
	size := 0
	for _, it := range items {
		size += len(it) + len("- \n")
	}
	for size > most && len(items) > 1 {
		i := len(items) / 2
		size -= len(items[i]) + len("- \n")
		items = slices.Delete(items, i, i+1)
	}
	if len(items) > 0 {
		b.WriteString(title + "\n- " + strings.Join(items, "\n- ") + "\n")
	}
}

// remembered is what the person decided, asked to remember or said of themselves and is not known yet, the newest of it. Only
// their own words count: what tools and models say may be planted.
func (r request) remembered() string {
	x := &extract{seen: map[string]bool{}}
	for _, s := range sentences(r.memories) {
		x.seen[normal(s)] = true
	}
	for _, l := range r.lines {
		if l.who == "user" {
			x.said(l.text)
		}
	}
	facts := append(x.facts, x.decisions...)
	if len(facts) == 0 {
		return "none\n"
	}
	return "- " + strings.Join(facts[max(0, len(facts)-mostFacts):], "\n- ") + "\n"
}
