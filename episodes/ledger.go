package episodes

import (
	"github.com/tidemark-ai/tidemark"
)

// Item is a message of a context, as a [Ledger] takes it.
type Item struct {
	Seq     int64 // of the message in the log; of a line its first
	Last    int64 // of what stands for several messages the last one; some of them may stand all the same
	Message *tidemark.Message
	Numbers []int // of its blocks in the log's message, from 0, -1 for one that is the line of an episode; nil: as they stand
	Tokens  tidemark.Tokens
	Person  bool  // somebody said it: it stays, whatever is missing
	Stays   bool  // it is pinned, or of another strategy
	Line    *Line // it is what stands for episodes that left

	Together bool  // of its blocks none leaves before the others: its API knows it again
	Told     []int // episodes whose line is a block of it
}

// Line is what stands for episodes that left a context whole, by their numbers: each with a line of its own, the oldest
// folded into one.
type Line struct {
	Folded Numbers `json:"folded,omitempty"`
	Lines  []int   `json:"lines,omitempty"`
}

// Part is a block of a context.
type Part struct {
	Item   int // index in the context
	Block  int // index in its content
	Number int // in the log's message, from 0

	tokens  tidemark.Tokens
	episode int // index in the graph, -1 for what stays
	level   Level
	said    bool // by the assistant
	signed  bool // thinking that its API knows again
}

// Ledger says what of each episode stands in a context, and how large it is.
type Ledger struct {
	graph *Graph
	items []entry
	parts []Part
	tally []tally // by index in the graph
	turns []int   // items that a person said
	lines []int   // items that are lines
	told  []told  // lines that are blocks of others

	reply *tidemark.Message // the newest before an item, while items are added: what its results answer
	said  int               // its item
}

type entry struct {
	seq      int64
	reach    int64 // the last position that those up to it stand for
	tokens   tidemark.Tokens
	from     int  // its first part
	within   bool // it stands though something stands for the messages around it
	stays    bool
	said     bool // by the assistant
	together bool
	line     *Line
}

// told is an episode whose line is a block of an item.
type told struct{ item, episode int }

// Tokens is how much the items take.
func (l *Ledger) Tokens() (n tidemark.Tokens) {
	for i := range l.items {
		n += l.items[i].tokens
	}
	return n
}

// newest is the item that the assistant said last.
func (l *Ledger) newest() int {
	n := len(l.items) - 1
	for n >= 0 && !l.items[n].said {
		n--
	}
	return n
}

// tally is what stands of an episode.
type tally struct {
	level       [levels]tidemark.Tokens
	parts       int
	first, last int // items
}

// NewLedger returns the ledger of a context.
func NewLedger(g *Graph, items []Item) *Ledger {
	l := &Ledger{graph: g, items: make([]entry, 0, len(items)), parts: make([]Part, 0, 2*len(items)), tally: make([]tally, len(g.list))}
	for i := range items {
		it := &items[i]
		l.add(it)
		if it.Message.Role == tidemark.Assistant {
			l.reply, l.said = it.Message, i
		}
	}
	return l
}

// add takes the next item.
func (l *Ledger) add(it *Item) {
	n := len(l.items)
	e := entry{seq: it.Seq, tokens: it.Tokens, from: len(l.parts), stays: it.Stays || it.Person,
		said: it.Message.Role == tidemark.Assistant, together: it.Together, line: it.Line}
	if n > 0 {
		e.reach = l.items[n-1].reach
	}
	e.within, e.reach = e.seq <= e.reach, max(e.reach, it.Last)
	l.items = append(l.items, e)
	if it.Person {
		l.turns = append(l.turns, n)
	}
	if it.Line != nil {
		l.lines = append(l.lines, n)
	}
	for _, number := range it.Told {
		l.told = append(l.told, told{n, number})
	}
	alike := true
	for i := range it.Message.Content {
		p := Part{Item: n, Block: i, Number: i, episode: -1}
		if it.Numbers != nil {
			p.Number = it.Numbers[i]
		}
		if !e.stays && it.Line == nil && p.Number >= 0 {
			l.own(&p, it, &it.Message.Content[i])
		}
		l.parts = append(l.parts, p)
		alike = alike && p.episode == l.parts[e.from].episode && p.level == l.parts[e.from].level
	}
	own := l.parts[e.from:]
	if alike && len(own) > 0 {
		own[len(own)-1].tokens = it.Tokens
	} else {
		share(own, it)
	}
	for i := range own {
		if p := &own[i]; p.episode >= 0 {
			l.tally[p.episode].count(p)
		}
	}
}

// share parts the tokens of an item among its blocks. What blocks take beside themselves counts for the last. Plain text
// is parted by its bytes; where these do not tell the size, as in Chinese or of an image, each block is estimated.
func share(own []Part, it *Item) {
	const slack = 8 // an eighth may be other than bytes say
	plain, sum := true, 0
	for i := range own {
		n, ok := bytesOf(&it.Message.Content[i])
		own[i].tokens = tidemark.Tokens(n) // until they are parted
		plain, sum = plain && ok, sum+n
	}
	off := it.Tokens - tidemark.EstimateChars(sum)
	plain = plain && sum > 0 && max(off, -off) <= it.Tokens/slack
	left := it.Tokens
	for i := range own {
		p := &own[i]
		switch {
		case i == len(own)-1:
			p.tokens = left
		case plain:
			p.tokens = min(left, it.Tokens*p.tokens/tidemark.Tokens(sum))
		default:
			p.tokens = min(left, tidemark.EstimateBlock(it.Message.Content[p.Block]))
		}
		left -= p.tokens
	}
}

// bytesOf is about what a block takes as JSON, and whether it can be told so.
func bytesOf(b *tidemark.Block) (n int, ok bool) {
	const frame = 40 // names of fields, quotes and brackets
	if raw := b.Raw(); raw != nil {
		n = len(raw)
	} else {
		n = frame + len(b.Text) + len(b.ID) + len(b.Name) + len(b.Input) + len(b.ToolUseID) + len(b.Signature)
	}
	ok = b.Source == nil
	for i := range b.Content {
		inner, is := bytesOf(&b.Content[i])
		if ok = ok && is; b.Raw() == nil {
			n += inner
		}
	}
	return n, ok
}

func (t *tally) count(p *Part) {
	if t.parts == 0 {
		t.first = p.Item
	}
	t.level[p.level] += p.tokens
	t.parts++
	t.last = p.Item
}

// own finds the episode of a block and the level with which it leaves.
func (l *Ledger) own(p *Part, it *Item, b *tidemark.Block) {
	if it.Message.Role == tidemark.User {
		if b.Type != tidemark.TypeToolResult {
			return // who said it is not an agent
		}
		if l.reply != nil {
			from, to := l.span(l.said)
			for i := from; i < to; i++ {
				c := &l.parts[i]
				if call := &l.reply.Content[c.Block]; call.Type == tidemark.TypeToolUse && call.ID == b.ToolUseID {
					p.episode, p.level = c.episode, c.level
					break // of two with one id the API is sent the first
				}
			}
		}
		return
	}
	p.level, p.said = Whole, true
	switch b.Type {
	case tidemark.TypeToolUse:
		p.level = l.graph.tools.Level(b.Name, b.Input)
	case tidemark.TypeThinking, tidemark.TypeRedactedThinking:
		p.level, p.signed = Reasoning, true
	}
	e := l.graph.Owner(Place{it.Seq, p.Number})
	if e == nil {
		return
	}
	p.episode = e.N - 1
	if p.level == Reasoning && e.Type == Action || it.Together { // it goes with the action, or the message
		p.level = Whole
	}
}

// State is how far an episode left a context.
type State struct {
	Episode *Episode
	Tokens  tidemark.Tokens // of what stands
	Gone    bool            // nothing does
}

// States tells of all episodes, by place.
func (l *Ledger) States() []State {
	out := make([]State, len(l.tally))
	for i := range l.tally {
		t := &l.tally[i]
		out[i] = State{Episode: l.graph.list[i], Gone: t.parts == 0}
		for _, n := range t.level {
			out[i].Tokens += n
		}
	}
	return out
}
