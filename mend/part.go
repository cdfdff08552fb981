package mend

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// Mark begins what stands in the place of a refused block, so that it is known as such. The API's words are not in it: they may
// quote what is refused.
const Mark = "[Refused by the model's API: "

// Request is what is sent, as far as parts of it may be left out.
type Request struct {
	View   compaction.View
	Tools  []tidemark.Tool
	Pack   string // what is pushed beside the messages
	Memory string // what the system prompt has of memory
}

// Part is what may be left out of a request.
type Part struct {
	Tool   string // name of a tool whose definition it is
	Pack   bool   // what is pushed beside the messages
	Memory bool   // what the system prompt has of memory
	Reply  bool   // most of the room that is asked for the reply, of which the window may have less
	Medium bool   // a block that the API has to decode
	Said   bool   // words of a person in the turn in work
	Left   bool   // an earlier turn left it without an answer

	span  bool // what stands for several entries, such as a summary
	item  int  // in the view
	at    int  // of the item's blocks
	inner int  // of the blocks of a result, -1: all of it
	rank  rank
}

// rank is how much a part is suspected: what no model has taken before comes first, what people just said last.
type rank int

const (
	rankReply rank = iota
	rankPack
	rankUnread  // of a medium, or a type that not all know
	rankLeft    // words that an earlier turn left
	rankResult  // of the turn in work
	rankAddress // a medium that the API has to load: what was there may be gone
	rankMedium  // the oldest first, as with a bound on how many there are
	rankMemory
	rankTool // the last first: those of servers
	rankRead // the newest first
	rankSaid
)

// ofItem reports a block of what is said, or in it.
func (p Part) ofItem() bool { return !p.Pack && !p.Memory && !p.Reply && p.Tool == "" && !p.span }

// Parts are what may be left out, what is suspected most first; from is the position at which the turn in work
// begins. What stands for a span, such as a summary, is one by itself.
func (q Request) Parts(from int64) []Part {
	v := q.View
	parts := []Part{{Reply: true, rank: rankReply}}
	if q.Pack != "" {
		parts = append(parts, Part{Pack: true, rank: rankPack})
	}
	if q.Memory != "" {
		parts = append(parts, Part{Memory: true, rank: rankMemory})
	}
	answered := AnsweredIn(v.Items)
	for i := range v.Items {
		it := &v.Items[i]
		if it.Span() {
			if noted := strings.HasPrefix(it.Message.PlainText(), Mark); !noted && (i == 0 || !sameSpan(it, &v.Items[i-1])) {
				parts = append(parts, Part{span: true, item: i, inner: -1, rank: rankRead})
			}
			continue
		}
		for at, b := range it.Message.Content {
			if b.Type != tidemark.TypeToolResult {
				parts = appendPart(parts, it, b, Part{item: i, at: at, inner: -1}, i > answered, from)
				continue
			}
			if len(b.Content) == 0 || len(b.Content) == 1 && b.Content[0].Type == tidemark.TypeText {
				parts = appendPart(parts, it, b, Part{item: i, at: at, inner: -1}, i > answered, from)
				continue
			}
			for n, c := range b.Content {
				parts = appendPart(parts, it, c, Part{item: i, at: at, inner: n, rank: rankResult}, i > answered, from)
			}
		}
	}
	for i := len(q.Tools) - 1; i >= 0; i-- {
		parts = append(parts, Part{Tool: q.Tools[i].Name, item: i, rank: rankTool})
	}
	slices.SortStableFunc(parts, func(a, b Part) int {
		if a.rank != b.rank || a.Tool != "" {
			return cmp.Compare(a.rank, b.rank)
		}
		order := cmp.Or(cmp.Compare(b.item, a.item), cmp.Compare(b.at, a.at), cmp.Compare(b.inner, a.inner))
		if a.rank == rankMedium || a.rank == rankAddress {
			return -order
		}
		return order
	})
	return parts
}

// sameSpan reports that two items stand for the same span.
func sameSpan(a, b *compaction.Item) bool {
	return b.Span() && a.Overlay == b.Overlay && a.Edit == b.Edit
}

// appendPart ranks a block, of an item or within a result, unless it is a note that stands there since the API refused it before.
func appendPart(parts []Part, it *compaction.Item, b tidemark.Block, p Part, unread bool, from int64) []Part {
	if noted(it, p.at, b) {
		return parts
	}
	result := p.rank == rankResult || b.Type == tidemark.TypeToolResult
	odd := false
	switch b.Type {
	case tidemark.TypeText, tidemark.TypeToolUse, tidemark.TypeToolResult, tidemark.TypeThinking, tidemark.TypeRedactedThinking:
	default:
		odd = true
	}
	p.Medium, p.Left = medium(b), unread && it.Seq < from
	switch {
	case unread && odd:
		p.rank = rankUnread
	case p.Left:
		p.rank = rankLeft
	case unread && (result || it.Message.Role != tidemark.User):
		p.rank = rankResult
	case unread:
		p.rank, p.Said = rankSaid, true
	case p.Medium && b.Source != nil && b.Source.Type == "url":
		p.rank = rankAddress
	case odd:
		p.rank = rankMedium
	default:
		p.rank = rankRead
	}
	return append(parts, p)
}

// noted reports a note that stands for a block, or within it: elsewhere it is somebody's words.
func noted(it *compaction.Item, at int, b tidemark.Block) bool {
	if len(b.Content) == 1 {
		b = b.Content[0]
	}
	n := it.Block(at)
	return strings.HasPrefix(b.Text, Mark) && slices.ContainsFunc(it.Stubbed, func(st compaction.Stubbed) bool { return st.Block == n })
}

// medium reports a block that an API has to decode; words of a document are none.
func medium(b tidemark.Block) bool {
	_, words := b.DocumentText()
	return (b.Type == tidemark.TypeImage || b.Type == tidemark.TypeDocument) && !words
}

// AnsweredIn is the last item in which a model answered, -1 for none: what stands behind it is not answered.
func AnsweredIn(items []compaction.Item) int {
	n := len(items) - 1
	for n >= 0 && (items[n].Message.Role != tidemark.Assistant || items[n].Call != nil && items[n].Call.Declined()) {
		n--
	}
	return n
}

// Named are the parts at a place that an API names in messages that were sent. A block is found by its bytes, wherever it
// stands, since the same bytes are refused again. vague says that it is one of these.
func (q Request) Named(parts []Part, sent []tidemark.Message, p *tidemark.Place) (named []int, vague bool) {
	if p == nil {
		return nil, false
	}
	if p.Tool != "" {
		i := slices.IndexFunc(parts, func(part Part) bool { return part.Tool == p.Tool })
		if i < 0 {
			return nil, false
		}
		return []int{i}, false
	}
	if p.Message < 0 || p.Message >= len(sent) || p.Block >= len(sent[p.Message].Content) {
		return nil, false
	}
	blocks := sent[p.Message].Content
	vague = p.Block < 0
	if !vague {
		blocks = blocks[p.Block : p.Block+1]
	}
	raw := map[string]bool{}
	for _, b := range blocks {
		raw[string(b.AppendJSON(nil))] = true
	}
	for i, part := range parts {
		if !part.ofItem() || !raw[string(q.View.Items[part.item].Message.Content[part.at].AppendJSON(nil))] {
			continue
		}
		if part.inner >= 0 && p.Inner < 0 {
			vague = true
		}
		if p.Inner < 0 || part.inner < 0 || part.inner == p.Inner {
			named = append(named, i)
		}
	}
	return named, vague
}

// Without is the request with notes in the place of some parts. The items stay as many as they were.
func (q Request) Without(parts []Part) Request {
	v := q.View
	v.Items = slices.Clone(v.Items)
	for i, blocks := range byItem(parts) {
		it := &v.Items[i]
		var content []tidemark.Block
		for at, b := range it.Message.Content {
			if inners, out := blocks[at]; out {
				content = append(content, instead(it, at, inners)...)
			} else {
				content = append(content, b)
			}
		}
		it.Message = tidemark.Message{Role: it.Message.Role, Content: content}
	}
	for _, p := range parts {
		switch {
		case p.Pack:
			q.Pack = ""
		case p.Memory:
			q.Memory = ""
		case p.span:
			first := v.Items[p.item]
			for i := p.item; i < len(v.Items) && sameSpan(&first, &v.Items[i]); i++ {
				v.Items[i].Message.Content = nil
			}
			v.Items[p.item].Message = insteadOf(&first)
		}
	}
	q.View = v
	q.Tools = slices.DeleteFunc(slices.Clone(q.Tools), func(t tidemark.Tool) bool {
		return slices.ContainsFunc(parts, func(p Part) bool { return p.Tool == t.Name })
	})
	return q
}

// insteadOf is what stands in the place of a span.
func insteadOf(it *compaction.Item) tidemark.Message {
	return tidemark.NewText(tidemark.User, fmt.Sprintf("%swhat stood here stood for %s to %s, which recall reads and finds.]", Mark, it.From, it.To))
}

// byItem are the blocks of parts by their items, each with the blocks of a result that are out.
func byItem(parts []Part) map[int]map[int][]int {
	out := map[int]map[int][]int{}
	for _, p := range parts {
		if !p.ofItem() {
			continue
		}
		if out[p.item] == nil {
			out[p.item] = map[int][]int{}
		}
		out[p.item][p.at] = append(out[p.item][p.at], p.inner)
	}
	return out
}

// Filler are other words, as many as in the parts that are out, in short messages that are all different: an API minds them for their
// size alone.
func (q Request) Filler(parts []Part) (items []compaction.Item) {
	const each = 150 // words of a message
	n, r := q.words(parts), rand.New(rand.NewPCG(1, 1))
	for ; n > 0; n -= each {
		text := make([]string, min(n, each))
		for i := range text {
			text[i] = common[r.IntN(len(common))]
		}
		items = append(items, compaction.Item{Message: tidemark.NewText(tidemark.User, strings.Join(text, " "))}, compaction.Item{Message: tidemark.NewText(tidemark.Assistant, text[0])})
	}
	return items
}

// common are words of one token each.
var common = strings.Fields("the of and to in is that it was for on are as with his they at be this from have or by one had not but what all were when we there can an your which their said if do will each about how up out them then she many some so these would other into has more her two like him see time could no make than first been its who now people my made over did down only way find use may water long little very after words called just where most know")

// words are how many words of filler are as large as some parts.
func (q Request) words(parts []Part) int {
	v := q.View
	size := 0
	for _, p := range parts {
		switch {
		case p.Medium || p.Reply:
		case p.Pack:
			size += wordsIn(q.Pack)
		case p.Memory:
			size += wordsIn(q.Memory)
		case p.Tool != "":
			raw, _ := json.Marshal(q.Tools[p.item])
			size += wordsIn(string(raw))
		case p.span:
			for i := p.item; i < len(v.Items) && sameSpan(&v.Items[p.item], &v.Items[i]); i++ {
				size += wordsIn(v.Items[i].Message.PlainText())
			}
		default:
			b := v.Items[p.item].Message.Content[p.at]
			if p.inner >= 0 {
				b = b.Content[p.inner]
			}
			size += wordsIn(string(b.AppendJSON(nil)))
		}
	}
	return size
}

// wordsIn is how many words of filler are as large as a text for a model: it takes some 4 letters of Latin script for a token, and of
// others one for each character.
func wordsIn(text string) int {
	quarters := 0
	for _, r := range text {
		if quarters++; r > 0x2FF {
			quarters += 3
		}
	}
	return (quarters + 3) / 4
}

// Edits have notes read in the place of parts; shown are the overlays that are in effect: of a span that one of them replaced, the
// same entries stay visible.
func Edits(v compaction.View, shown []compaction.Replacement, parts []Part) []tidemark.Edit {
	type place struct{ item, block int }
	var edits []tidemark.Edit
	done := map[place]bool{}
	by := byItem(parts)
	for _, p := range parts {
		if p.span {
			it := &v.Items[p.item]
			e := tidemark.Edit{From: it.From, To: it.To, Messages: []tidemark.Message{insteadOf(it)}}
			for _, r := range shown {
				if r.Overlay == it.Overlay && r.N == it.Edit {
					e.Keep = r.Edit.Keep
				}
			}
			edits = append(edits, e)
		}
		if !p.ofItem() {
			continue
		}
		it := &v.Items[p.item]
		n := it.Block(p.at)
		if done[place{p.item, n}] {
			continue
		}
		done[place{p.item, n}] = true
		first, behind := p.at, p.at+1
		for _, st := range it.Stubbed { // it is one of those that stand for a block of the entry: the others stay
			if st.Block == n {
				first, behind = st.At, st.At+st.Many
			}
		}
		var with []tidemark.Block
		for at := first; at < behind; at++ {
			if inners, out := by[p.item][at]; out {
				with = append(with, instead(it, at, inners)...)
			} else {
				with = append(with, it.Message.Content[at])
			}
		}
		edits = append(edits, tidemark.Edit{From: it.ID, Block: n, Blocks: with})
	}
	return edits
}

// instead is what stands in the place of a block, or of some blocks of a result.
func instead(it *compaction.Item, at int, inners []int) []tidemark.Block {
	b, n := it.Message.Content[at], it.Block(at)
	note := func(kind string) tidemark.Block {
		return tidemark.Text(fmt.Sprintf("%sa block of the type %s stood here; recall with {\"entry\": \"%s#%d\"} tells what the log keeps of it.]", Mark, kind, it.ID, n))
	}
	switch b.Type {
	case tidemark.TypeThinking, tidemark.TypeRedactedThinking: // nobody misses it
		return nil
	case tidemark.TypeToolUse: // its result becomes a text by itself
		return []tidemark.Block{note(b.Type + " " + b.Name)}
	case tidemark.TypeToolResult:
		if inners[0] < 0 {
			return []tidemark.Block{tidemark.ToolResult(b.ToolUseID, note(b.Type).Text, b.IsError)}
		}
		out := tidemark.Block{Type: tidemark.TypeToolResult, ToolUseID: b.ToolUseID, IsError: b.IsError, Content: slices.Clone(b.Content)}
		for _, inner := range inners {
			out.Content[inner] = note(b.Content[inner].Type)
		}
		return []tidemark.Block{out}
	}
	return []tidemark.Block{note(b.Type)}
}
