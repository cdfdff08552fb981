package provider

import (
	"strings"

	"github.com/tidemark-ai/tidemark"
)

// summaryRequest is a request to condense a conversation, as the compaction engine writes it.
type summaryRequest struct {
	previous string
	memories string
	lines    []spoken
	summary  bool // what is asked for
	facts    bool
	limit    tidemark.Tokens // of the answer, 0 for none
}

// spoken is one entry of the conversation.
type spoken struct {
	who  string // user, assistant, tool call NAME, tool result
	text string
}

// parseSummaryRequest recognises such a request by its tags.
func parseSummaryRequest(text, system string) (summaryRequest, bool) {
	talk, rest, ok := cutTag(text, "conversation")
	if !ok {
		return summaryRequest{}, false
	}
	var r summaryRequest
	r.previous, rest, _ = cutTag(rest, "previous-summary")
	r.memories, rest, _ = cutTag(rest, "existing-memories")
	r.summary = strings.Contains(rest, "<summary>")
	r.facts = strings.Contains(rest, "<memories>")
	if !r.summary && !r.facts {
		r.summary, r.facts = strings.Contains(system, "<summary>"), strings.Contains(system, "<memories>")
	}
	if !r.summary && !r.facts {
		return summaryRequest{}, false
	}
	r.previous, r.memories = unescape(r.previous), unescape(r.memories)
	r.lines = parseTalk(talk)
	return r, true
}

// cutTag returns what stands within a tag, and the text without it. What is within is escaped, so
// the first end is the end.
func cutTag(text, tag string) (inner, rest string, ok bool) {
	before, after, ok := strings.Cut(text, "<"+tag+">")
	if !ok {
		return "", text, false
	}
	inner, after, ok = strings.Cut(after, "</"+tag+">")
	if !ok {
		return "", text, false
	}
	return inner, before + after, true
}

func unescape(s string) string {
	return strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&").Replace(s)
}

// parseTalk reads the entries of a conversation; a line without a head belongs to the one before.
func parseTalk(talk string) []spoken {
	var out []spoken
	for line := range strings.Lines(talk) {
		who, text, ok := head(line)
		switch {
		case ok:
			out = append(out, spoken{who, unescape(text)})
		case len(out) > 0:
			out[len(out)-1].text += unescape(line)
		}
	}
	return out
}

// head parts "[user] text" and "[user]: text".
func head(line string) (who, text string, ok bool) {
	if !strings.HasPrefix(line, "[") {
		return "", "", false
	}
	who, text, ok = strings.Cut(line[1:], "]")
	if !ok || who != "user" && who != "assistant" && !strings.HasPrefix(who, "tool ") {
		return "", "", false
	}
	return who, strings.TrimPrefix(strings.TrimPrefix(text, ":"), " "), true
}

// Bounds of an extract, in bytes. Together they stay well under the 4,096 tokens that a summary is
// usually given; see room for less.
const (
	usualLimit   = 4096
	maxItem      = 240
	maxDecisions = 4000
	maxQuestions = 1200
	maxFacts     = 2400
	maxWork      = 1800
	maxMemories  = 20
	// maxRemembered bounds the memories, in bytes; twenty of the longest sentences.
	maxRemembered = 6000
)

// room scales a bound in bytes down to the limit of the answer.
func (r summaryRequest) room(bytes int) int {
	if r.limit <= 0 || r.limit >= usualLimit {
		return bytes
	}
	return bytes * int(r.limit) / usualLimit
}

// answer writes what was asked for.
func (r summaryRequest) answer() string {
	var b strings.Builder
	if r.summary {
		b.WriteString("<summary>\n" + r.extract() + "</summary>\n\n")
	}
	if r.facts {
		b.WriteString("<memories>\n")
		facts := r.durable()
		for _, f := range facts {
			b.WriteString("- " + f + "\n")
		}
		if len(facts) == 0 {
			b.WriteString("none\n")
		}
		b.WriteString("</memories>")
	}
	return strings.TrimSpace(b.String())
}

// extract sorts what the person said into sections, behind what the previous summary holds. What
// the model said is no fact: it quotes, or may err.
func (r summaryRequest) extract() string {
	x := newExtract()
	x.previous(r.previous)
	for _, l := range r.lines {
		if l.who == "user" {
			x.said(l.text)
		}
	}
	work := r.work(x.seen)
	var b strings.Builder
	x.decisions.write(&b, "## Decisions", r.room(maxDecisions), decidesFirmly)
	x.questions.write(&b, "## Open questions", r.room(maxQuestions), nil)
	x.facts.write(&b, "## Facts", r.room(maxFacts), durable)
	work.write(&b, "## Work state and last requests", r.room(maxWork), nil)
	if b.Len() == 0 {
		b.WriteString("## Facts\n- " + nothingSaid + "\n")
	}
	return b.String()
}

// extract is the sections of a summary. They share what was seen: a fact stands in one of them.
type extract struct {
	decisions, questions, facts *section
	seen                        map[string]bool
}

func newExtract() *extract {
	seen := map[string]bool{}
	return &extract{&section{seen: seen}, &section{seen: seen}, &section{seen: seen}, seen}
}

// previous takes over the former summary, or what stood in for one, but its state of work, which is
// written anew each time.
func (x *extract) previous(summary string) {
	heading := ""
	for line := range strings.Lines(summary) {
		line = strings.TrimSpace(line)
		item, isItem := strings.CutPrefix(line, "- ")
		switch {
		case strings.HasPrefix(line, "#"):
			heading = strings.ToLower(line)
		case line == "" || notice(item) || item == nothingSaid:
		case strings.Contains(heading, "decision"):
			x.decisions.add(bare(item))
		case strings.Contains(heading, "question") || strings.Contains(heading, "open"):
			x.questions.add(bare(item))
		case strings.Contains(heading, "last turns"):
			if text, ok := strings.CutPrefix(item, "user: "); ok {
				x.said(text)
			}
		case strings.Contains(heading, "tool calls"):
		case (strings.Contains(heading, "work") || strings.Contains(heading, "request")) && isItem:
		default:
			x.facts.add(bare(item))
		}
	}
}

// said sorts the sentences of a person.
func (x *extract) said(text string) {
	for _, s := range sentences(withoutNotices(text)) {
		if notice(s) {
			continue
		}
		if asks(s) {
			x.questions.add(s)
			continue
		}
		wanted := remembers(s, bare(s))
		s = bare(s)
		lower := strings.ToLower(s)
		switch {
		case decides(lower) || resolves(lower):
			x.decisions.add(s)
		case open(lower):
			x.questions.add(s)
		case wanted || durable(lower) || concrete(s):
			x.facts.add(s)
		}
	}
}

// nothingSaid stands in a summary without any item.
const nothingSaid = "Nothing was said that needs to be kept."

// work is where things stand: the newest requests as far as no other section holds them, the last
// answer unless it only quotes, the last tools.
func (r summaryRequest) work(seen map[string]bool) *section {
	var asked, tools []string
	answer := ""
	for _, l := range r.lines {
		text := strings.Join(strings.Fields(l.text), " ")
		switch {
		case text == "":
		case l.who == "user":
			if text = unsaid(l.text, seen); text != "" {
				asked = append(asked, "Asked: "+text)
			}
		case l.who == "assistant":
			if answer = ""; !quotes(text) {
				answer = "Last answer: " + text
			}
		case strings.HasPrefix(l.who, "tool call "):
			tools = append(tools, "Called "+strings.TrimPrefix(l.who, "tool call ")+" "+text)
		}
	}
	s := newSection()
	for _, t := range tools[max(0, len(tools)-3):] {
		s.add(t)
	}
	for _, a := range asked[max(0, len(asked)-3):] {
		s.add(a)
	}
	s.add(answer)
	return s
}

// unsaid returns the sentences of a text that no section holds.
func unsaid(text string, seen map[string]bool) string {
	var out []string
	for _, s := range sentences(withoutNotices(text)) {
		if !notice(s) && !seen[nearKey(clip(bare(s), maxItem), false)] {
			out = append(out, s)
		}
	}
	return strings.Join(out, " ")
}

// quotes reports whether an answer is one of ours, which only repeat.
func quotes(answer string) bool {
	for _, l := range leads {
		if strings.HasPrefix(answer, l) {
			return true
		}
	}
	return strings.HasPrefix(answer, "This is what ") || strings.HasPrefix(answer, "I find nothing about that here") || strings.HasPrefix(answer, "Hello. I am Tidemark's")
}

func decidesFirmly(lower string) bool {
	return holds(lower, "decided", "decision", "agreed", "we chose", "settled on", "approved")
}

func decides(lower string) bool {
	return decidesFirmly(lower) || holds(lower, "we will ", "we'll ", "let's ", "going with ", "go with ", "instead of ", "must not ", "from now on")
}

func open(lower string) bool {
	return holds(lower, "open question", "todo", "to do:", "still need", "not yet", "to be decided", "unclear", "next step")
}

func durable(lower string) bool {
	return holds(lower, "my name is", "i am called", "call me ", "i prefer", "we prefer", "i like ", "i love ", "i hate ", "i live ", "i work ", "i'm from", "i am from",
		"we use ", "i use ", "always ", "never ", "remember", "deadline", "due ", "birthday", "my favourite", "my favorite", "allergic", "our ", "from now on") ||
		dated(lower)
}

// dated reports whether a text names a day.
func dated(lower string) bool {
	if holds(lower, "by monday", "by tuesday", "by wednesday", "by thursday", "by friday", "on monday", "on tuesday", "on wednesday", "on thursday", "on friday") {
		return true
	}
	for _, m := range [...]string{"january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december"} {
		if i := strings.Index(lower, m); i >= 0 {
			near := lower[max(0, i-4):min(len(lower), i+len(m)+4)]
			if strings.ContainsAny(near, "0123456789") {
				return true
			}
		}
	}
	for i := 0; i+10 <= len(lower); i++ { // 2026-11-21
		if lower[i+4] == '-' && lower[i+7] == '-' && digits(lower[i:i+4]) && digits(lower[i+5:i+7]) && digits(lower[i+8:i+10]) {
			return true
		}
	}
	return false
}

func digits(s string) bool { return strings.Trim(s, "0123456789") == "" }

// concrete reports whether a sentence names a thing: a path, an address, a number, an error.
func concrete(s string) bool {
	return strings.ContainsAny(s, "0123456789") || strings.Contains(s, "://") || strings.Contains(s, "/") || holds(strings.ToLower(s), "error", "failed", "is called", "is named")
}

// section is a list of items without repeats.
type section struct {
	items []string
	seen  map[string]bool
}

func newSection() *section { return &section{seen: map[string]bool{}} }

func (s *section) add(item string) {
	item = clip(strings.Join(strings.Fields(item), " "), maxItem)
	if key := nearKey(item, false); key != "" && !s.seen[key] {
		s.seen[key] = true
		s.items = append(s.items, item)
	}
}

// write writes the section within limit bytes. The oldest items go first, and of those the ones
// that firm, when given, does not hold for; firm ones go last, from the middle, so that neither
// what began the work nor what is newest is lost.
func (s *section) write(b *strings.Builder, title string, limit int, firm func(lower string) bool) {
	size := 0
	for _, it := range s.items {
		size += len(it) + 3
	}
	keep := make([]string, 0, len(s.items))
	for _, it := range s.items {
		if size > limit && (firm == nil || !firm(strings.ToLower(it))) {
			size -= len(it) + 3
			continue
		}
		keep = append(keep, it)
	}
	for size > limit && len(keep) > 1 {
		i := len(keep) / 2
		size -= len(keep[i]) + 3
		keep = append(keep[:i], keep[i+1:]...)
	}
	if len(keep) == 0 {
		return
	}
	b.WriteString(title + "\n")
	for _, it := range keep {
		b.WriteString("- " + it + "\n")
	}
}
