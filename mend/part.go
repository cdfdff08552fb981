package mend

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// Mark begins what stands in the place of a refused block, so that it is known as such.
const Mark = "[Refused by the model's API: "

const (
	maxWords   = 200 // bytes of what the API said
	leastWords = 8   // of these, to know them again within others
)

// Part is what may be left out of a request.
type Part struct {
	Tool   string // name of a tool whose definition it is
	Pack   bool   // what is pushed beside the messages
	Reply  bool   // most of the room that is asked for the reply, of which the window may have less
	Medium bool   // a block that the API has to decode
	Said   bool   // words of a person in the turn in work
	Left   bool   // an earlier turn left it without an answer

	item  int // in the view
	at    int // of the item's blocks
	inner int // of the blocks of a result, -1: all of it
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
	rankTool    // the last first: those of servers
	rankRead    // the newest first
	rankSaid
)

// ofItem reports a part of what is said.
func (p Part) ofItem() bool { return !p.Pack && !p.Reply && p.Tool == "" }

// Parts are what may be left out of a view, what is suspected most first; from is the position at which the turn in work
// begins. Summaries and other replacements of spans are none.
func Parts(v compaction.View, tools []tidemark.Tool, pack string, from int64) []Part {
	parts := []Part{{Reply: true, rank: rankReply}}
	if pack != "" {
		parts = append(parts, Part{Pack: true, rank: rankPack})
	}
	answered := AnsweredIn(v.Items)
	for i := range v.Items {
		it := &v.Items[i]
		if it.Span() {
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
	for i := len(tools) - 1; i >= 0; i-- {
		parts = append(parts, Part{Tool: tools[i].Name, item: i, rank: rankTool})
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
func Named(v compaction.View, parts []Part, sent []tidemark.Message, p *tidemark.Place) (named []int, vague bool) {
	if p == nil {
		return nil, false
	}
	if p.Tool != "" {
		i := slices.IndexFunc(parts, func(q Part) bool { return q.Tool == p.Tool })
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
	for i, q := range parts {
		if !q.ofItem() || !raw[string(v.Items[q.item].Message.Content[q.at].AppendJSON(nil))] {
			continue
		}
		if q.inner >= 0 && p.Inner < 0 {
			vague = true
		}
		if p.Inner < 0 || q.inner < 0 || q.inner == p.Inner {
			named = append(named, i)
		}
	}
	return named, vague
}

// Without is a view with notes in the place of some parts. The items stay as many as they were.
func Without(v compaction.View, parts []Part, why string) compaction.View {
	v.Items = slices.Clone(v.Items)
	for i, blocks := range byItem(parts) {
		it := &v.Items[i]
		var content []tidemark.Block
		for at, b := range it.Message.Content {
			if inners, out := blocks[at]; out {
				content = append(content, instead(it, at, inners, why)...)
			} else {
				content = append(content, b)
			}
		}
		it.Message = tidemark.Message{Role: it.Message.Role, Content: content}
	}
	return v
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

// WithoutTools are the tools that are no part.
func WithoutTools(tools []tidemark.Tool, parts []Part) []tidemark.Tool {
	return slices.DeleteFunc(slices.Clone(tools), func(t tidemark.Tool) bool {
		return slices.ContainsFunc(parts, func(p Part) bool { return p.Tool == t.Name })
	})
}

// Filler are words of the size of those that are out, of which no API minds what they say.
func Filler(v compaction.View, tools []tidemark.Tool, pack string, parts []Part) string {
	var size tidemark.Tokens
	for _, p := range parts {
		switch {
		case p.Medium || p.Reply:
		case p.Pack:
			size += tidemark.EstimateText(pack)
		case p.Tool != "":
			raw, _ := json.Marshal(tools[p.item])
			size += tidemark.EstimateText(string(raw))
		default:
			b := v.Items[p.item].Message.Content[p.at]
			if p.inner >= 0 {
				b = b.Content[p.inner]
			}
			size += tidemark.EstimateBlock(b)
		}
	}
	const word = "word "
	chars := int(size) * 10 / 3 // the estimator's characters for a token
	return strings.Repeat(word, chars/len(word))
}

// Edits have notes read in the place of parts.
func Edits(v compaction.View, parts []Part, why string) []tidemark.Edit {
	type place struct{ item, block int }
	var edits []tidemark.Edit
	done := map[place]bool{}
	by := byItem(parts)
	for _, p := range parts {
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
				with = append(with, instead(it, at, inners, why)...)
			} else {
				with = append(with, it.Message.Content[at])
			}
		}
		edits = append(edits, tidemark.Edit{From: it.ID, Block: n, Blocks: with})
	}
	return edits
}

// instead is what stands in the place of a block, or of some blocks of a result.
func instead(it *compaction.Item, at int, inners []int, why string) []tidemark.Block {
	b, n := it.Message.Content[at], it.Block(at)
	note := func(kind string) tidemark.Block {
		return tidemark.Text(fmt.Sprintf("%s%s. A block of the type %s stood here; recall with {\"entry\": \"%s#%d\"} tells what the log keeps of it.]", Mark, Quoted(why), kind, it.ID, n))
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

// Alike reports that two refusals are in the same words, whatever places and figures they name.
func Alike(a, b tidemark.APIError) bool {
	letters := func(e tidemark.APIError) string {
		return strings.Map(func(r rune) rune {
			if unicode.IsDigit(r) {
				return -1
			}
			return r
		}, Quoted(e.Message))
	}
	x, y := letters(a), letters(b)
	if len(x) > len(y) {
		x, y = y, x
	}
	return a.Status == b.Status && (x == y || len(x) >= leastWords && strings.Contains(y, x))
}

// Quoted is what an API said, as it stands in a line.
func Quoted(text string) string {
	if len(text) > maxWords {
		text = text[:maxWords]
	}
	return strings.Join(strings.Fields(strings.ToValidUTF8(text, "")), " ")
}
