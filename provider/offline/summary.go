package offline

import (
	"regexp"
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
	maxQuestions = 1200
	maxFacts     = 2400
	maxWork      = 1800
	maxMemories  = 6000
	mostFacts    = 20 // memories
	mostDecided  = 8  // decisions among them
)

// What a sentence of a person in lower case is.
var (
	resolves = regexp.MustCompile(`\b(?:(?:we|i)(?:['’]ve| have)?(?: finally)? (?:decided|agreed|chose|chosen|settled on)|it (?:is|was) (?:agreed|decided)|(?:the|our) decision (?:is|was))\b`)
	supposes = regexp.MustCompile(`\b(?:(?:if|once|until|before) (?:we|i)|whether) `)
	firm     = regexp.MustCompile(`\b(?:decided|decision|agreed|we chose|settled on|approved)`)
	decides  = regexp.MustCompile(`\b(?:we will|we'll|let's|going with|go with|instead of|must not|from now on) `)
	open     = regexp.MustCompile(`\b(?:open question|todo|to do:|still need|not yet|to be decided|unclear|next step)`)
	durable  = regexp.MustCompile(`\b(?:my name is|i am called|call me|we prefer|i (?:prefer|like|love|hate|live|work|use)|i['’]?( a)?m from|we use|always|never|remember|deadline|due|birthday|my favou?rite|allergic|our|from now on)\b|` +
		`\b(?:by|on) (?:mon|tues|wednes|thurs|fri)day|\d (?:january|february|march|april|may|june|july|august|september|october|november|december)|\d{4}-\d\d-\d\d`)
	concrete = regexp.MustCompile(`[\d/]|\b(?:error|failed|is called|is named)`)
)

func decided(lower string) bool { return resolves.MatchString(lower) && !supposes.MatchString(lower) }

// answer writes what was asked for.
func (r request) answer() string {
	var b strings.Builder
	if r.summary {
		b.WriteString("<summary>\n" + r.extract() + "</summary>\n\n")
	}
	if r.facts {
		b.WriteString("<memories>\n")
		facts := r.remembered()
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

// room scales a bound in bytes down to the limit of the answer.
func (r request) room(bytes int) int {
	if r.limit <= 0 || r.limit >= usualLimit {
		return bytes
	}
	return bytes * int(r.limit) / usualLimit
}

// extract is the sections of a summary. A fact stands in one of them.
type extract struct {
	decisions, questions, facts, work list
	seen                              map[string]bool
}

// list is items in their order.
type list []string

// add adds an item that says something new.
func (x *extract) add(l *list, item string) {
	item = clip.To(strings.Join(strings.Fields(item), " "), maxSentence)
	if key := nearKey(item); key != "" && !x.seen[key] {
		x.seen[key] = true
		*l = append(*l, item)
	}
}

// nothingSaid stands in a summary without any item.
const nothingSaid = "Nothing was said that needs to be kept."

// extract sorts what the person said into sections, behind what the previous summary holds. What the model said is no
// fact: it quotes, or may err.
func (r request) extract() string {
	x := &extract{seen: map[string]bool{}}
	x.previous(r.previous)
	for _, l := range r.lines {
		if l.who == "user" {
			x.said(l.text)
		}
	}
	x.state(r.lines)
	var b strings.Builder
	x.decisions.write(&b, "## Decisions", r.room(maxDecisions), firm)
	x.questions.write(&b, "## Open questions", r.room(maxQuestions), nil)
	x.facts.write(&b, "## Facts", r.room(maxFacts), durable)
	x.work.write(&b, "## Work state and last requests", r.room(maxWork), nil)
	if b.Len() == 0 {
		return "## Facts\n- " + nothingSaid + "\n"
	}
	return b.String()
}

// previous takes over the former summary, or what stood in for one, but its state of work, which is written anew.
func (x *extract) previous(summary string) {
	summaryLines(summary, func(heading, line string) {
		item, isItem := strings.CutPrefix(line, "- ")
		at := func(words ...string) bool {
			for _, w := range words {
				if strings.Contains(heading, w) {
					return true
				}
			}
			return false
		}
		switch {
		case notice(item) || item == nothingSaid || at("tool calls") || at("work", "request") && isItem:
		case at("decision"):
			x.add(&x.decisions, bare(item))
		case at("question", "open"):
			x.add(&x.questions, bare(item))
		case at("last turns"):
			if text, ok := strings.CutPrefix(item, "user: "); ok {
				x.said(text)
			}
		default:
			x.add(&x.facts, bare(item))
		}
	})
}

// said sorts the sentences of a person.
func (x *extract) said(text string) {
	for _, s := range sentences(withoutNotices(text)) {
		own := bare(s)
		lower := strings.ToLower(own)
		switch {
		case notice(s):
		case asks(s):
			x.add(&x.questions, s)
		case firm.MatchString(lower) || decides.MatchString(lower) || decided(lower):
			x.add(&x.decisions, own)
		case open.MatchString(lower):
			x.add(&x.questions, own)
		case own != s || durable.MatchString(lower) || concrete.MatchString(lower):
			x.add(&x.facts, own)
		}
	}
}

// state is where things stand: the newest requests as far as no other section holds them, the last answer unless it only
// quotes, the last tools.
func (x *extract) state(lines []spoken) {
	var asked, tools []string
	answer := ""
	for _, l := range lines {
		text := strings.Join(strings.Fields(l.text), " ")
		name, isCall := strings.CutPrefix(l.who, "tool call ")
		switch {
		case text == "":
		case isCall:
			tools = append(tools, "Called "+name+" "+text)
		case l.who == "assistant":
			if answer = ""; !quotes.MatchString(text) && !leads.MatchString(text) {
				answer = "Last answer: " + text
			}
		case l.who == "user":
			var left []string
			for _, s := range sentences(withoutNotices(l.text)) {
				if !notice(s) && !x.seen[nearKey(clip.To(bare(s), maxSentence))] {
					left = append(left, s)
				}
			}
			if len(left) > 0 {
				asked = append(asked, "Asked: "+strings.Join(left, " "))
			}
		}
	}
	x.seen = map[string]bool{}
	for _, t := range append(tools[max(0, len(tools)-3):], asked[max(0, len(asked)-3):]...) {
		x.add(&x.work, t)
	}
	x.add(&x.work, answer)
}

// quotes begin answers of ours, which only repeat.
var quotes = regexp.MustCompile(`^(?:This is what |I find nothing about that here|Hello\. I am Tidemark's)`)

// write writes the section within limit bytes. The oldest items go first, and of those the ones that firm, when given, does
// not match; firm ones go last, from the middle, so that neither what began the work nor what is newest is lost.
func (l list) write(b *strings.Builder, title string, limit int, firm *regexp.Regexp) {
	size := 0
	for _, it := range l {
		size += len(it) + 3
	}
	keep := make([]string, 0, len(l))
	for _, it := range l {
		if size > limit && (firm == nil || !firm.MatchString(strings.ToLower(it))) {
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
	if len(keep) > 0 {
		b.WriteString(title + "\n- " + strings.Join(keep, "\n- ") + "\n")
	}
}

var digits = regexp.MustCompile(`\d+`)

// remembered returns what the person said that will matter elsewhere and is not known yet: facts about them, and the newest
// of what they decided. Only their own words count: what tools and models say may be planted. Of decisions that differ in
// their numbers alone the newest counts, so that a series is one.
func (r request) remembered() []string {
	known := map[string]bool{}
	for _, s := range sentences(r.memories) {
		known[nearKey(s)] = true
	}
	x := &extract{seen: map[string]bool{}}
	var decisions []string
	for _, l := range r.lines {
		if l.who != "user" {
			continue
		}
		for _, sentence := range statements(l.text) {
			s := bare(sentence)
			lower := strings.ToLower(s)
			switch {
			case len(s) < 8 || len(s) > maxSentence || known[nearKey(s)]:
			case decided(lower):
				decisions = append(decisions, s)
			case s != sentence || durable.MatchString(lower):
				x.add(&x.facts, s)
			}
		}
	}
	var newest []string
	seen := map[string]bool{}
	for i := len(decisions) - 1; i >= 0 && len(newest) < mostDecided; i-- {
		if key := digits.ReplaceAllString(nearKey(decisions[i]), "#"); !seen[key] {
			seen[key] = true
			newest = append([]string{decisions[i]}, newest...)
		}
	}
	out := append(x.facts[:min(len(x.facts), mostFacts-len(newest)):min(len(x.facts), mostFacts-len(newest))], newest...)
	size := 0
	for i := len(out) - 1; i >= 0; i-- { // the newest decisions stand last: facts go first
		if size += len(out[i]) + 3; size > r.room(maxMemories) {
			return out[i+1:]
		}
	}
	return out
}
