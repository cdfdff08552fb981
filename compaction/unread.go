package compaction

import (
	"slices"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// unread returns from which item on nobody has read what is there: the last calls and their results, until a reply
// follows, or what stands behind the last reply. turn is from where on the turn of those calls goes, whose thinking must
// be sent back; both are the end for a conversation that a reply ends.
func unread(items []Item) (from, turn int) {
	last := len(items) - 1
	for last >= 0 && items[last].Message.Role != tidemark.Assistant {
		last--
	}
	from, turn = last+1, len(items)
	if last < 0 || !has(items[last].Message, tidemark.TypeToolUse) {
		return from, turn
	}
	legal := Cuts(items)
	for from = last; from > 0 && !legal[from]; {
		from--
	}
	for turn = from; turn > 0 && !personTurn(&items[turn-1]); { // what a person wrote behind the calls is sent with their results
		turn--
	}
	return from, turn
}

// whole marks what is sent whole as long as the window has room for it by itself, whatever else has to leave: what no
// model has read, the newest turn of a person and, while it has room for all of that, the calls since and their results.
func whole(v View, b Budget) []bool {
	out := make([]bool, len(v.Items))
	from, turn := unread(v.Items)
	first, to := newestTurn(v.Items)
	size := b.allowance()
	for i := range v.Items {
		it := &v.Items[i]
		if out[i] = i >= first && i < to || i >= min(from, turn) && !it.Span(); out[i] {
			size += it.Tokens
		}
	}
	if v.counted(v.Fixed+size) > b.Room() {
		for i := turn; i < from; i++ {
			out[i] = i >= first && i < to
		}
	}
	return out
}

// counted is how many tokens a provider counts where so many are estimated, of the fixed part and what is beside it: by the
// whole view, as it was counted last. Where it was refused since, no fewer are.
func (v View) counted(n tidemark.Tokens) tidemark.Tokens {
	all := v.Fixed + v.Tokens()
	if all <= 0 || v.Refused && v.Size < all {
		return n
	}
	return n * v.Size / all
}

// Room is the most that a request may take where nothing else can leave: the reserve gives way, down to an eighth of the
// window for the answer.
func (b Budget) Room() tidemark.Tokens { return max(b.Limit(), b.Window-b.Window/8) }

// UsualReply is how many tokens providers ask for where no bound on the reply is configured.
const UsualReply tidemark.Tokens = 8192

// LeastReply is the room that a reply has in a window that is full otherwise.
func (b Budget) LeastReply() tidemark.Tokens { return b.Window / 32 }

// squeezeName is what overlays and events call [squeeze].
const squeezeName = "cut"

// maxSqueezed is how many bytes of text all cuts of one act may keep: their overlay is one row of the database.
const maxSqueezed = 800 << 10

// squeeze cuts what is to be sent whole where it does not fit the window even alone: the largest blocks lose their
// middle, down to one size, until all of it fits; where words have no room even so, pictures and files leave, the oldest
// first. What stands beside it, such as a summary of the rest, takes from the room of the answer first, of which a
// sixteenth of the window stays.
func squeeze(v View, b Budget) []tidemark.Edit {
	var fixed, rest tidemark.Tokens
	var words, media []long
	marks, eighth := whole(v, b), v.estimated(b.Window/8)
	for i := range v.Items {
		it := &v.Items[i]
		switch {
		case !marks[i] && IsSummary(*it): // see shortSummary
			rest += min(it.Tokens, eighth)
			continue
		case !marks[i]:
			rest += it.Tokens
			continue
		}
		fixed += it.Tokens
		for n := range it.Message.Content {
			l := long{item: it, at: n, block: it.Message.Content[n], cut: gapIn(it, n)}
			l.tokens = tidemark.EstimateBlock(l.block)
			switch {
			case it.several(n) || l.tokens <= leastCut:
			case l.text() != "":
				words = append(words, l)
				fixed -= l.tokens
			case l.bare() != nil:
				media = append(media, l)
			}
		}
	}
	if !v.Refused { // else it is known that it does not fit, and what stands beside it could not leave
		rest = min(rest, eighth)
	}
	beside := v.estimated(b.Window-b.Window/16-v.Fixed) - rest
	room := max(min(v.estimated(b.Room()-v.Fixed), beside), 0) - fixed
	var all tidemark.Tokens
	for _, l := range words {
		all += l.tokens
	}
	if v.doubted(all) <= room { // it may fit as it is
		return nil
	}
	for least := leastCut * tidemark.Tokens(len(words)); len(media) > 0 && least > room; media = media[1:] {
		l := media[0]
		room += l.tokens
		l.out = max(noText(l.block.Content), 1)
		l.block = *l.bare()
		l.tokens = tidemark.EstimateBlock(l.block)
		least += min(l.tokens, leastCut)
		words = append(words, l)
	}
	all = 0
	for _, l := range words {
		all += l.tokens
	}
	if len(words) == 0 {
		return nil
	}
	most := all
	if all > room {
		most = evenly(words, max(room, 0))
	}
	cut := 0
	for _, l := range words {
		if l.tokens > most {
			cut++
		}
	}
	var edits []tidemark.Edit
	for _, l := range words {
		if e, ok := l.edit(most, maxSqueezed/max(cut, 1)); ok {
			edits = append(edits, e)
		}
	}
	return edits
}

// shortSummary cuts a summary down to the eighth of the window that [squeeze] leaves it, where the view is too large even so:
// it was made for a larger window, and a summary of nothing but the former one says nothing new.
func shortSummary(v View, b Budget) []tidemark.Edit {
	if v.doubted(v.Size) <= b.Window-b.Window/16 {
		return nil
	}
	most := v.estimated(b.Window / 8)
	for i := range v.Items {
		it := &v.Items[i]
		if !IsSummary(*it) || it.Tokens <= most {
			continue
		}
		covered := make([]bool, len(v.Items))
		covered[i] = true
		e := spanOver(v.Items, covered)
		e.Messages = []tidemark.Message{tidemark.NewText(tidemark.User, Bound(it.Message.Content[0].Text, most))}
		e.Data = it.Data
		return []tidemark.Edit{e}
	}
	return nil
}

// doubted is how little some tokens of the estimate may be for a provider: it takes 3.3 characters for a token, and plain
// English has up to 4.8. A provider that refuses the messages has the last word.
func (v View) doubted(n tidemark.Tokens) tidemark.Tokens {
	if v.Refused {
		return n
	}
	return n - n/3
}

// leastCut is the size, in tokens, that no cut goes below.
const leastCut tidemark.Tokens = 200

// evenly is the size to which the largest of some blocks have to come for all of them to fit.
func evenly(blocks []long, room tidemark.Tokens) tidemark.Tokens {
	sizes := make([]tidemark.Tokens, len(blocks))
	for i, l := range blocks {
		sizes[i] = l.tokens
	}
	slices.Sort(sizes)
	for i, size := range sizes { // the smaller ones stay as they are
		if left := tidemark.Tokens(len(sizes) - i); size*left > room {
			return max(room/left, leastCut)
		}
		room -= size
	}
	return sizes[len(sizes)-1]
}

// long is a block whose middle may be cut out.
type long struct {
	item   *Item
	at     int // place in the content
	block  tidemark.Block
	tokens tidemark.Tokens
	cut    Gap // what was cut out of it before
	out    int // pictures and files of it for which notes stand
}

// bare is a block with notes in the place of its pictures and files, nil for one that has none.
func (l *long) bare() *tidemark.Block {
	handle := Handle(l.item.ID, l.item.Block(l.at)-1)
	if l.block.Type == tidemark.TypeToolResult {
		return bareResult(&l.block, wayBack(&l.block, handle, "reads"))
	}
	return trimMedia(&l.block, handle)
}

// noText counts the blocks of a result that are no text.
func noText(content []tidemark.Block) (n int) {
	for i := range content {
		if content[i].Type != tidemark.TypeText {
			n++
		}
	}
	return n
}

// Gap is the data of the edit of a block whose middle was left out: how long its text was, in bytes, and how many of them
// still stand before and behind the gap; or of one that lost so many pictures and files.
type Gap struct {
	Of    int `json:"of"`
	Head  int `json:"head"`
	Tail  int `json:"tail"`
	Media int `json:"media,omitempty"`
}

// Left is how many bytes were left out.
func (c Gap) Left() int { return c.Of - c.Head - c.Tail }

// GapOf returns what an edit left out of a block that was to be sent whole; ok is false for any other edit.
func GapOf(e tidemark.Edit) (c Gap, ok bool) {
	if e.Block == 0 || json.Unmarshal(e.Data, &c) != nil {
		return Gap{}, false
	}
	return c, c.Of > 0 && c.Left() > 0 || c.Media > 0
}

// gapIn returns how a block of an item was cut before, the zero value if it was not.
func gapIn(it *Item, at int) Gap {
	s := it.stubbed(it.Block(at))
	if s == nil {
		return Gap{}
	}
	c, _ := GapOf(tidemark.Edit{Block: s.Block, Data: s.Data})
	return c
}

// text is what a cut shortens: the words, what a tool answered, or what it was called with.
func (l *long) text() string {
	switch l.block.Type {
	case tidemark.TypeText:
		return l.block.Text
	case tidemark.TypeToolResult:
		if noText(l.block.Content) > 0 {
			return "" // a picture is no text: it stays
		}
		return resultText(l.block)
	case tidemark.TypeToolUse:
		if l.cut.Of > 0 {
			return cutInput(l.block.Input)
		}
		return string(l.block.Input)
	case tidemark.TypeDocument:
		text, _ := l.block.DocumentText()
		return text
	}
	return ""
}

// with is the block with another text.
func (l *long) with(text string) tidemark.Block {
	switch l.block.Type {
	case tidemark.TypeToolResult:
		return tidemark.ToolResult(l.block.ToolUseID, text, l.block.IsError)
	case tidemark.TypeToolUse:
		return tidemark.ToolUse(l.block.ID, l.block.Name, shortInput(text))
	}
	return tidemark.Text(text)
}

// edit leaves out the middle of a block that takes more than some tokens, and of one of which more than some bytes would
// be kept.
func (l *long) edit(most tidemark.Tokens, bytes int) (tidemark.Edit, bool) {
	if l.tokens <= most {
		data, err := json.Marshal(Gap{Media: l.out})
		return tidemark.Edit{From: l.item.From, Block: l.item.Block(l.at), Blocks: []tidemark.Block{l.block}, Data: data}, err == nil && l.out > 0
	}
	text := l.text()
	head, tail, of := text, text, len(text)
	if l.cut.Of > 0 { // the gap of before grows
		head, tail, of = text[:min(l.cut.Head, len(text))], text[max(len(text)-l.cut.Tail, 0):], l.cut.Of
	}
	for keep := min(len(text)*int(most)/int(l.tokens), bytes); ; keep = keep * 9 / 10 {
		h, t := head[:runeFloor(head, min(keep/2, len(head)))], tail[runeCeil(tail, max(len(tail)-keep/2, 0)):]
		c := Gap{Of: of, Head: len(h), Tail: len(t), Media: l.out}
		b := l.with(h + leftOut(c.Left(), of, string(l.item.ID)) + t)
		if tidemark.EstimateBlock(b) <= most || keep < 100 {
			data, err := json.Marshal(c)
			return tidemark.Edit{From: l.item.From, Block: l.item.Block(l.at), Blocks: []tidemark.Block{b}, Data: data}, err == nil
		}
	}
}
