package compaction

import (
	"cmp"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// MarkerPrefix begins the text of every marker.
const MarkerPrefix = "[Events "

// Bounds of a marker.
const (
	maxMarker    tidemark.Tokens = 60 // of its text
	markerTokens tidemark.Tokens = 80 // what it takes in the view, with what stands around the text
)

// Marker stands at the place of a span that was evicted: when it was, how much it was, and some words that
// tell what to ask recall for. It says nothing of what was said there. Papers/total-recall §5.2.
type Marker struct {
	From   time.Time       `json:"from"`
	To     time.Time       `json:"to"`
	Count  int             `json:"count"` // messages
	Tokens tidemark.Tokens `json:"tokens"`
	Topics []Topic         `json:"topics,omitempty"`
	Cycles int             `json:"cycles"` // compactions that it stands for
}

// Message is what the model sees. It has as many topics as there is room for, the strongest first.
func (m Marker) Message() tidemark.Message {
	const end = " Use recall(query) to retrieve.]"
	text := fmt.Sprintf("%s%s to %s evicted: %d messages, %d tokens.", MarkerPrefix, stamp(m.From), stampAfter(m.From, m.To), m.Count, m.Tokens)
	topics := ""
	for _, t := range m.Topics {
		more := topics + ", " + t.Word
		if topics == "" {
			more = " Key topics: " + t.Word
		}
		if textCost(text+more+"."+end) <= maxMarker {
			topics = more // one that is too long leaves room for a shorter one behind it
		}
	}
	if topics != "" {
		text += topics + "."
	}
	return tidemark.NewText(tidemark.User, text+end)
}

// textCost is what a short text costs at most: outside ASCII a character may be a token of its own.
func textCost(s string) tidemark.Tokens {
	n := utf8.RuneCountInString(s)
	ascii := 0
	for i := range len(s) {
		if s[i] < utf8.RuneSelf {
			ascii++
		}
	}
	return tidemark.EstimateChars(ascii) + tidemark.Tokens(n-ascii)
}

func (m Marker) data() []byte {
	raw, err := json.Marshal(struct {
		Marker Marker `json:"marker"`
	}{m})
	if err != nil { // a type of ours
		panic(err)
	}
	return raw
}

// Put returns an edit with the marker in the place of what it had.
func (m Marker) Put(e tidemark.Edit) tidemark.Edit {
	e.Messages, e.Data = []tidemark.Message{m.Message()}, m.data()
	return e
}

// MarkerOf returns the marker that an edit put into the view, if it is one.
func MarkerOf(e tidemark.Edit) (Marker, bool) {
	var d struct {
		Marker *Marker `json:"marker"`
	}
	if json.Unmarshal(e.Data, &d) != nil || d.Marker == nil {
		return Marker{}, false
	}
	return *d.Marker, true
}

// IsMarker reports whether an item is a marker.
func IsMarker(it Item) bool { return isMarker(&it) }

func isMarker(it *Item) bool {
	_, ok := markerAt(it)
	return ok
}

func markerAt(it *Item) (Marker, bool) {
	if !it.Span() || it.Data == nil {
		return Marker{}, false
	}
	return MarkerOf(tidemark.Edit{Data: it.Data})
}

// markerOf returns the marker of the covered items: one cycle for messages, and all that the markers among
// them stand for.
func markerOf(items []Item, covered []bool) Marker {
	var m Marker
	count := newTopicCount()
	fresh, n := false, 0
	for _, c := range covered {
		if c {
			n++
		}
	}
	every := max(1, (n+topicMessages-1)/topicMessages)
	n, lines := 0, 0
	for i, c := range covered {
		if !c {
			continue
		}
		it := &items[i]
		if o, ok := markerAt(it); ok {
			m.take(o.From, o.To, o.Count, o.Tokens)
			m.Cycles += o.Cycles
			count.topics(o.Topics)
			continue
		}
		if it.Span() { // the line of an episode is of no time
			lines++
			continue
		}
		m.take(it.At, it.At, 1, cmp.Or(it.Whole, it.Tokens)) // notes may be longer than what they stand for
		fresh = true
		if n%every == 0 {
			count.message(it)
		}
		n++
	}
	if fresh {
		m.Cycles++
	}
	m.Count += lines
	m.Topics = count.strongest()
	return m
}

// join returns the marker of two spans, with the hints of both.
func (m Marker) join(o Marker) Marker {
	count := newTopicCount()
	count.topics(m.Topics)
	count.topics(o.Topics)
	m.take(o.From, o.To, o.Count, o.Tokens)
	m.Cycles += o.Cycles
	m.Topics = count.strongest()
	return m
}

func (m *Marker) take(from, to time.Time, count int, tokens tidemark.Tokens) {
	if m.Count == 0 || from.Before(m.From) {
		m.From = from
	}
	if to.After(m.To) {
		m.To = to
	}
	m.Count += count
	m.Tokens += tokens
}

// stamp is a time as markers say it, in the zone that it has: the session's, as recall reads times.
func stamp(t time.Time) string { return t.Format(stampLayout) }

const stampLayout = "2006-01-02 15:04"

// stampAfter leaves the day out when it is that of the time before.
func stampAfter(before, t time.Time) string {
	t = t.In(before.Location())
	if before.Format(time.DateOnly) == t.Format(time.DateOnly) {
		return t.Format("15:04")
	}
	return stamp(t)
}
