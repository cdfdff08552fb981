package memory

import (
	"slices"
	"strings"

	"github.com/tidemark-ai/tidemark"
)

// Hot is what may be decided of a turn while it is logged. There are two values and no third: that a fact
// replaces or ends another is for the nightly sweep to say, see [Decision]. Papers/total-recall §8.3.
type Hot bool

// The decisions of the hot path. The zero value keeps.
const (
	Add  Hot = false // the turn is found by recall
	None Hot = true  // it stands in the log, and nothing is derived from it
)

// String names the decision as the paper does.
func (h Hot) String() string {
	if h == None {
		return "NONE"
	}
	return "ADD"
}

// Event is a logged message as a [Gate] sees it.
type Event struct {
	ID         tidemark.EntryID
	Importance int   // of its kind, 1 to 10
	Bytes      int64 // as it is stored
	Protected  bool  // pinned, a constraint, an error, or what a person asked for
}

// Turn is what is decided on as one: a message, the calls that it led to, their results and the reply. Parts of
// it are never decided on alone, since a call without its question is no cause of anything.
type Turn []Event

// Held is how much of a conversation recall has to look through already.
type Held struct {
	Events int
	Bytes  int64
}

// Gate decides on the hot path whether a turn is worth finding again. It is asked once a turn, must answer at
// once, and calls nobody.
type Gate interface {
	DecideHot(t Turn, h Held) Hot
}

// Defaults of [BySize], those of the paper's implementation; a line of its store is an event.
const (
	DefaultWorkingEvents       = 500
	DefaultWorkingBytes  int64 = 50 << 20
	lowImportance              = 3
)

// BySize drops turns of low importance once more is held than a budget allows. A turn with anything protected in
// it stays.
type BySize struct {
	Events int   // 0: DefaultWorkingEvents
	Bytes  int64 // 0: DefaultWorkingBytes
}

// DecideHot implements [Gate]. The importance of a turn is that of its events, weighed by their bytes: what is
// nearly all output of tools counts as that.
func (b BySize) DecideHot(t Turn, h Held) Hot {
	if len(t) == 0 || !b.Over(h) || slices.ContainsFunc(t, func(e Event) bool { return e.Protected }) {
		return Add
	}
	var sum, weight int64
	for _, e := range t {
		n := max(e.Bytes, 1)
		sum, weight = sum+n*int64(e.Importance), weight+n
	}
	if (sum+weight/2)/weight > lowImportance { // rounded
		return Add
	}
	return None
}

// Over reports whether a conversation holds more than the budget.
func (b BySize) Over(h Held) bool {
	events, bytes := b.Events, b.Bytes
	if events <= 0 {
		events = DefaultWorkingEvents
	}
	if bytes <= 0 {
		bytes = DefaultWorkingBytes
	}
	return h.Events > events || h.Bytes > bytes
}

// Wants reports a message in which a person wants something.
func Wants(o tidemark.Origin, m tidemark.Message) bool {
	if o.From == tidemark.FromAgent {
		return true // it is a task
	}
	if o.From != "" && o.From != tidemark.FromPerson {
		return false
	}
	for _, b := range m.Content {
		if b.Type != tidemark.TypeText {
			return true // a picture, a file
		}
	}
	return !Acknowledges(m.PlainText())
}

// Acknowledges reports a message that asks for nothing by itself: "ok", "continue", "thanks". It knows a few
// words only; everything else is an ask.
func Acknowledges(text string) bool {
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return strings.ContainsRune(" \t\r\n.,;:!…👍", r) })
	if len(words) > 4 {
		return false
	}
	for _, w := range words {
		if !strings.Contains(acknowledging, " "+w+" ") {
			return false
		}
	}
	return true
}

// acknowledging are words of messages that ask for nothing new, none of which can be an order by itself.
const acknowledging = " ok okay k yes yep yeah y go on ahead continue proceed next more thanks thank you thx great good fine nice cool perfect please sure" +
	" weiter ja gut danke bitte mach oui merci continuez vas-y sí si gracias sigue adelante continúa va bene grazie sim obrigado はい 好的 继续 "
