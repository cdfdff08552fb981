package session

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/internal/lexicon"
	"github.com/tidemark-ai/tidemark/recall"
)

// said is what a person said, as far as the task is read from it.
type said struct {
	id   tidemark.EntryID
	at   time.Time
	text string
}

// hearing is what the persons of a log said lately and the rules that they set, so that a turn reads only
// what came since the last. It can be lost at any time.
type hearing struct {
	mu    sync.Mutex // guards the following 4 fields; never held over a wait
	log   string
	last  int64
	said  []said
	rules []CardItem
}

// Bounds of what is read for a derived task.
const (
	maxHeard       = 100  // messages of persons that are kept
	maxHeardText   = 2000 // bytes of each
	heardBack      = 5000 // messages of the log that the first look goes back
	maxHeardTokens = 4096 // what is longer was pasted, and holds no rule
	recentMessages = 40   // messages that phase and open loops are read from
	derivedAsks    = 3    // of a kind
)

// heard returns what those persons said lately in a log who may set its task, oldest first, and the newest
// rules among all that was looked at, as many as a card holds.
func (s *Session) heard(ctx context.Context, log string) ([]said, []CardItem, error) {
	h := &s.hearing
	h.mu.Lock()
	if h.log != log {
		h.log, h.last, h.said, h.rules = log, 0, nil, nil
	}
	last := h.last
	h.mu.Unlock()
	if last == 0 { // messages of this log are counted: natively all conversations share the positions
		rows, err := s.DB.Query(ctx, `SELECT seq FROM entries WHERE log = ? AND kind = 'message' ORDER BY seq DESC LIMIT 1 OFFSET ?`, log, heardBack)
		if err != nil {
			return nil, nil, fmt.Errorf("read what was said: %w", err)
		}
		if len(rows) > 0 {
			last = rows[0].Int(0)
		}
	}
	const page = 50
	for more := true; more; {
		rows, err := s.DB.Query(ctx, `SELECT id, seq, at, origin, payload FROM entries WHERE log = ? AND kind = 'message' AND seq > ? AND role = 'user'
			AND tokens <= ? AND origin LIKE '{"from":"person"%' ORDER BY seq LIMIT ?`, log, last, maxHeardTokens, page)
		if err != nil {
			return nil, nil, fmt.Errorf("read what was said: %w", err)
		}
		more = len(rows) == page
		var fresh []said
		for _, r := range rows {
			last = r.Int(1)
			if m, ok := s.personal(r); ok {
				fresh = append(fresh, m)
			}
		}
		h.add(log, last, fresh)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.said), slices.Clone(h.rules), nil
}

// add takes in what was read up to a position, once.
func (h *hearing) add(log string, last int64, fresh []said) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.log != log || h.last >= last {
		return // another turn read it meanwhile
	}
	h.last = last
	for _, m := range fresh {
		for _, rule := range rules(m.text) {
			h.rules = slices.DeleteFunc(h.rules, func(i CardItem) bool { return strings.EqualFold(i.Text, rule) })
			h.rules = append(h.rules, CardItem{Kind: Constraint, Text: rule, By: tidemark.FromPerson, Entry: m.id, At: m.at})
		}
		h.rules = h.rules[max(0, len(h.rules)-maxItems):]
	}
	h.said = append(h.said, fresh...)
	h.said = slices.Clone(h.said[max(0, len(h.said)-maxHeard):])
}

// setsTask reports whether what somebody says may set the task: in the owner's conversation only what the
// owner says, whoever else talks there. What the holder of the token imported is the owner's.
func (s *Session) setsTask(o tidemark.Origin) bool {
	return s.mayChange(o) || o.Channel == importChannel
}

// personal reads a message of a person, if it is of one who may set the task.
func (s *Session) personal(r tidemark.Row) (said, bool) {
	var o tidemark.Origin
	if json.Unmarshal(r.Bytes(3), &o) != nil || !s.setsTask(o) {
		return said{}, false
	}
	m, err := tidemark.Entry{Payload: r.Bytes(4)}.Message()
	if err != nil {
		return said{}, false
	}
	text := ownWords(m)
	return said{tidemark.EntryID(r.Text(0)), time.UnixMilli(r.Int(2)), text}, text != ""
}

// importChannel is the channel of messages that were imported.
const importChannel = "import"

// ownWords is what a person wrote of a message: not the reminders and news of a program, nor code, nor what
// they quote, since another wrote those.
func ownWords(m tidemark.Message) string {
	var b strings.Builder
	for _, blk := range m.Content {
		if blk.Type != tidemark.TypeText {
			continue
		}
		fenced := false
		for line := range strings.Lines(withoutNews(tidemark.StripReminders(blk.Text))) {
			bare := strings.TrimSpace(line)
			if strings.HasPrefix(bare, "```") || strings.HasPrefix(bare, "~~~") {
				fenced = !fenced
				continue
			}
			if strings.HasPrefix(bare, resumed) { // all of it is a program's
				break
			}
			if !fenced && !strings.HasPrefix(bare, ">") && begins(bare, toolMade[:]) == 0 && b.Len()+len(line) <= maxHeardText {
				b.WriteString(line)
			}
		}
		b.WriteByte('\n')
	}
	return strings.TrimSpace(b.String())
}

// resumed begins what a program wrote of a conversation that it goes on with, and toolMade a line that it put among
// what a person wrote.
const resumed = "This session is being continued from a previous conversation"

var toolMade = [...]string{"[Request interrupted by user", "Read the output file to retrieve the result:", "Caveat: The messages below were generated by the user"}

// withoutNews takes out spans that a program tagged and put at the begin of a line: news of its tasks,
// commands and what they printed. Their names have a dash or an underscore, as those of HTML have not.
func withoutNews(text string) string {
	const spans = 32 // that are looked for: what is behind them was not typed
	var b strings.Builder
	for n := 0; text != "" && n < spans; {
		line, rest, found := strings.Cut(text, "\n")
		name := newsTag(line)
		if name != "" {
			n++
			_, text, _ = strings.Cut(text, "</"+name+">")
			continue
		}
		b.WriteString(line)
		if found {
			b.WriteByte('\n')
		}
		text = rest
	}
	return b.String()
}

// newsTag is the name of the tag of a program that a line begins with. One that does not end takes the rest
// of the text with it, which was cut off.
func newsTag(line string) string {
	rest, ok := strings.CutPrefix(strings.TrimLeft(line, " \t"), "<")
	end := strings.IndexByte(rest, '>')
	if !ok || end <= 0 {
		return ""
	}
	name, _, _ := strings.Cut(rest[:end], " ")
	if strings.ContainsFunc(name, func(r rune) bool { return r != '-' && r != '_' && !wordRune(r) }) || !strings.ContainsAny(name, "-_") {
		return ""
	}
	return name
}

// ruleWords are what a rule is known by; softWords make a sentence with one of them none, and plainWords are no
// rule by themselves; decided are the words of a decision.
var (
	ruleWords = [...]string{"must", "never", "always", "do not", "don't", "under no circumstances", "niemals", "immer", "auf keinen fall",
		"siempre", "nunca", "toujours", "jamais", "必须", "不要", "永远", "絶対"}
	softWords = [...]string{"i don't know", "i don't think", "i don't remember", "i don't mind", "i don't care", "i do not know", "i do not think",
		"i do not remember", "i do not mind", "i do not care", "don't worry", "never mind", "nevermind", "must have been", "must be because"}
	plainWords = strings.NewReplacer("i don't have", "", "we don't have", "", "i don't like", "", "i don't feel", "", "i don't understand", "", "as always", "",
		"immer noch", "", "noch immer", "", "wie immer", "", "immer wieder", "", "immer mehr", "", "fast immer", "", "nicht immer", "")
	decided = [...]string{"i decided", "we decided", "decision:", "we agreed", "we will use", "we'll use", "let's go with", "we settled on"}
)

// says reports whether a text has one of some words, as whole words where words have ends.
func says(text string, words []string) bool {
	lower := strings.ToLower(text)
	for _, w := range words {
		for at := 0; ; {
			i := strings.Index(lower[at:], w)
			if i < 0 {
				break
			}
			at += i + len(w)
			before, _ := utf8.DecodeLastRuneInString(lower[:at-len(w)])
			after, _ := utf8.DecodeRuneInString(lower[at:])
			if w[0] >= utf8.RuneSelf || !wordRune(before) && !wordRune(after) {
				return true
			}
		}
	}
	return false
}

func wordRune(r rune) bool { return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r)) }

// rules returns the sentences that say what must or must not be.
func rules(text string) []string {
	var out []string
	for _, sentence := range sentences(text) {
		lower := strings.ReplaceAll(strings.ToLower(sentence), "’", "'")
		if len(sentence) <= maxRuleText && !strings.HasSuffix(sentence, "?") && !says(lower, softWords[:]) && says(plainWords.Replace(lower), ruleWords[:]) {
			if line := oneLine(sentence, maxRuleText); line != "" {
				out = append(out, line)
			}
		}
	}
	return out
}

// sentences returns those of a text that have a word, without the signs of a list before them.
func sentences(text string) []string {
	var out []string
	for s := range lexicon.Sentences(text) {
		if s = strings.Trim(s, " \t\r\n-*•"); strings.ContainsFunc(s, wordRune) {
			out = append(out, s)
		}
	}
	return out
}

// derived returns the card that the messages of a log tell. It is a guess: ranking does not use it.
func (s *Session) derived(ctx context.Context, log string) (Card, error) {
	asked, rules, err := s.heard(ctx, log)
	if err != nil {
		return Card{}, err
	}
	var recent []spoken
	for e, err := range s.log.Walk(ctx, log, 0) {
		if err != nil {
			return Card{}, err
		}
		if e.Kind != tidemark.KindMessage {
			continue
		}
		m, err := e.Message() // as stored: of a large block only its name and state matter
		if err != nil {
			return Card{}, fmt.Errorf("read entry %s: %w", e.ID, err)
		}
		from := e.Origin.From
		if from == tidemark.FromPerson && !s.setsTask(e.Origin) {
			from = "" // what they say says nothing of what is worked on here
		}
		if recent = append(recent, spoken{e.ID, e.At, from, m}); len(recent) == recentMessages {
			break
		}
	}
	slices.Reverse(recent)
	return derive(asked, rules, recent), nil
}

// spoken is one of the newest messages.
type spoken struct {
	id   tidemark.EntryID
	at   time.Time
	from string
	m    tidemark.Message
}

// derive reads a card from what persons asked for, the rules that they set, and the newest messages. Of
// what tools returned it takes no word, only whether they failed.
func derive(asked []said, rules []CardItem, recent []spoken) Card {
	var c Card
	for _, r := range rules {
		c = c.derivedItem(Constraint, r.Text, r.By, r.Entry, r.At)
	}
	for _, m := range asks(asked) {
		c = c.derivedItem(Goal, m.text, tidemark.FromPerson, m.id, m.at)
	}
	for _, m := range openLoops(asked) {
		c = c.derivedItem(Loop, m.text, tidemark.FromPerson, m.id, m.at)
	}
	for _, m := range recent {
		if m.from != tidemark.FromPerson && m.from != tidemark.FromModel {
			continue
		}
		for _, line := range sentences(ownWords(m.m)) {
			switch {
			case m.from == tidemark.FromModel && (strings.HasPrefix(line, "TODO") || strings.HasPrefix(line, "[ ]")):
				c = c.derivedItem(Loop, line, m.from, m.id, m.at)
			case says(line, decided[:]):
				c = c.derivedItem(KeyEvent, line, m.from, m.id, m.at)
			}
		}
	}
	if n := len(recent); n > 0 && recent[n-1].from == tidemark.FromPerson && strings.HasSuffix(ownWords(recent[n-1].m), "?") {
		last := recent[n-1]
		if lines := sentences(ownWords(last.m)); len(lines) > 0 {
			c = c.derivedItem(Loop, "unanswered: "+lines[len(lines)-1], last.from, last.id, last.at)
		}
	}
	calls := callsIn(recent)
	for _, f := range openFailures(calls) {
		c = c.derivedItem(Loop, "the last call of "+f.name+" failed", tidemark.FromTool, f.result, f.at)
	}
	c.Phase = phaseOf(calls)
	return c
}

func (c Card) derivedItem(k ItemKind, text, by string, entry tidemark.EntryID, at time.Time) Card {
	c, _ = c.add(AddedItem{Kind: k, Text: text, Entry: entry}, by, entry, at)
	return c
}

// asks returns the messages whose sentences derived goals are: the newest that name one, and the newest that ask
// for something.
func asks(asked []said) []said {
	var out []said
	var n [goal + 1]int
	for _, m := range slices.Backward(asked) {
		var how aim
		if m.text, how = asksFor(m.text); how > noAim && n[how] < derivedAsks {
			n[how]++
			out = append(out, m)
		}
	}
	slices.Reverse(out)
	return out
}

// openLoops returns the newest sentences of persons about what is still to be done.
func openLoops(asked []said) []said {
	var out []said
	for _, m := range slices.Backward(asked) {
		for _, line := range slices.Backward(sentences(m.text)) {
			if leftOpen(line) && len(out) < derivedAsks {
				out = append(out, said{m.id, m.at, line})
			}
		}
	}
	slices.Reverse(out)
	return out
}

// called is a call of a tool and how it went.
type called struct {
	name   string
	at     time.Time
	result tidemark.EntryID
	failed bool
}

// callsIn lists the calls of the newest messages that have a result, in their order.
func callsIn(recent []spoken) []called {
	names := map[string]string{}
	var out []called
	for _, m := range recent {
		for _, b := range m.m.Content {
			switch {
			case b.Type == tidemark.TypeToolUse:
				names[b.ID] = b.Name
			case b.Type == tidemark.TypeToolResult && names[b.ToolUseID] != "":
				out = append(out, called{names[b.ToolUseID], m.at, m.id, b.IsError})
			}
		}
	}
	return out
}

// openFailures returns the tools whose last call failed.
func openFailures(calls []called) []called {
	last := map[string]int{}
	for i, c := range calls {
		last[c.name] = i
	}
	var out []called
	for i, c := range calls {
		if c.failed && last[c.name] == i {
			out = append(out, c)
		}
	}
	return out
}

// Names of tools that change something, and of those that only look.
var (
	changing = [...]string{"edit", "write", "patch", "create", "apply", "append", "insert", "delete", "move", "send", "commit", "replace"}
	looking  = [...]string{"read", "grep", "glob", "list", "ls", "search", "find", "view", "fetch", "look", "get", "recall"}
)

// named reports whether the name of a tool has one of some words in it.
func named(tool string, words []string) bool {
	lower := strings.ToLower(tool)
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(lower, w) })
}

// phaseOf tells from the last calls what is being done: mending what failed, changing, looking before
// anything was changed, or looking at what was.
func phaseOf(calls []called) recall.Phase {
	const lately = 6
	changed := slices.ContainsFunc(calls, func(c called) bool { return named(c.name, changing[:]) })
	calls = calls[max(0, len(calls)-lately):]
	failed, looked := 0, 0
	for _, c := range calls {
		switch {
		case c.failed:
			failed++
		case !named(c.name, changing[:]) && named(c.name, looking[:]):
			looked++
		}
	}
	switch {
	case len(calls) == 0:
		return recall.Idle
	case 2*failed >= len(calls) || calls[len(calls)-1].failed:
		return recall.Debugging
	case looked == len(calls) && changed:
		return recall.Reviewing
	case looked == len(calls):
		return recall.Planning
	}
	return recall.Executing
}
