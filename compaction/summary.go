package compaction

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// SummaryMarker begins every summary message, as in the reference.
const SummaryMarker = "[Conversation summary from automatic context compaction]"

// Summary is the rolling summary: all but the newest part of the view becomes one message that a
// model writes, the former summary among its input. Papers/gsv, "What Compaction Actually Does".
type Summary struct {
	Asked bool // a person said what it is to keep: shortened blocks alone will not do
}

var _ Strategy = Summary{}

// Name is "summary".
func (Summary) Name() string { return "summary" }

// Plan cuts the view where the newest part within the keep budget begins, moved to the next legal
// cut point. The newest turn of a person always stays, in place when the cut lies before it, else
// as a hole in the span. Oversized blocks of what stays are shortened first.
func (s Summary) Plan(v View, b Budget) []tidemark.Edit {
	short, left := shorten(v, b)
	if s.Asked {
		left = v // what is summarised need not be shortened
	} else if !b.Over(left) && left.Size+b.minGain(v) <= v.Size {
		return short
	}
	covered, ok := cover(left, b)
	if !ok {
		return short
	}
	out := make([]tidemark.Edit, 0, len(short)+1)
	for _, x := range short { // a block under the span needs no edit of its own
		if i := slices.IndexFunc(left.Items, func(it Item) bool { return it.From == x.From }); i < 0 || !covered[i] {
			out = append(out, x)
		}
	}
	e := spanOver(left.Items, covered)
	e.Summarize = true
	return append(out, e)
}

// cover marks the items that a summary would replace: all before the newest part, but what is pinned and what is sent
// [whole]. Of what was read so much stays word for word as there is room for beside that.
func cover(v View, b Budget) (covered []bool, ok bool) {
	legal := Cuts(v.Items)
	cut, _ := unread(v.Items)
	keep, tail := b.verbatim(v), tidemark.Tokens(0)
	room := v.estimated(max(b.Limit()-v.Fixed, 0)) - b.allowance()
	stays := held(v.Items, legal, nil)
	for i, whole := range whole(v, b) {
		if whole {
			room -= v.Items[i].Tokens
			stays[i] = true
		}
	}
	for cut > 0 && tail+v.Items[cut-1].Tokens <= min(keep, room) {
		cut--
		tail += v.Items[cut].Tokens
	}
	for cut < len(v.Items) && !legal[cut] {
		cut++
	}
	for cut == len(v.Items) && cut > 0 || cut > 0 && !legal[cut] {
		cut--
	}
	covered = make([]bool, len(v.Items))
	freed, fresh := -b.allowance(), false // a summary of nothing but the former one says nothing new
	for i := range v.Items[:cut] {
		if !stays[i] {
			covered[i] = true
			freed += v.Items[i].Tokens
			fresh = fresh || !IsSummary(v.Items[i])
		}
	}
	return covered, fresh && freed >= b.minGain(v)
}

// spanOver returns the edit that replaces the covered items and keeps the others that lie between
// them. Positions decide, since a kept entry stands behind the summary that it is a hole of.
func spanOver(items []Item, covered []bool) tidemark.Edit {
	var e tidemark.Edit
	var from, to int64
	for i := range items {
		if !covered[i] {
			continue
		}
		it := &items[i]
		if e.From == "" || it.Seq < from {
			e.From, from = it.From, it.Seq
		}
		if e.To == "" || it.Last > to {
			e.To, to = it.To, it.Last
		}
	}
	for i := range items {
		if it := &items[i]; !covered[i] && it.Seq >= from && it.Last <= to {
			e.Keep = append(e.Keep, it.From)
		}
	}
	return e
}

// Shortened blocks keep this many characters at either end.
const (
	shortHead = 1200
	shortTail = 600
)

// shorten plans stubs for blocks that alone take half of what may be kept, oldest first, until the view is a fifth below
// the limit (all of them where it is not over: somebody asked), and returns the view with them. What is sent [whole]
// stays. The whole text stays in the log, named by its entry.
func shorten(v View, b Budget) ([]tidemark.Edit, View) {
	const least = 500
	need := v.Size
	if b.Over(v) {
		need = scaled(v.Size-b.Limit()*4/5, v.Tokens(), v.Size-v.Fixed)
	}
	edits := oversized(v.Items, whole(v, b), max(b.verbatim(v)/2, least), need)
	left, err := Preview(v, edits, b)
	if err != nil {
		return nil, v
	}
	return edits, left
}

// oversized returns the edits that shorten blocks over a limit, the oldest first, until so many tokens are free.
func oversized(items []Item, stays []bool, limit, need tidemark.Tokens) []tidemark.Edit {
	var edits []tidemark.Edit
	for i := range items {
		it := &items[i]
		if it.Span() || it.Tokens <= limit || it.Stubs > 0 || it.Pinned || stays[i] {
			continue
		}
		for n, blk := range it.Message.Content {
			tokens := tidemark.EstimateBlock(blk)
			if tokens <= limit || need <= 0 {
				continue
			}
			if short, ok := shortBlock(it.ID, blk); ok {
				edits = append(edits, tidemark.Edit{From: it.From, Block: n + 1, Blocks: []tidemark.Block{short}})
				need -= tokens - tidemark.EstimateBlock(short)
			}
		}
	}
	return edits
}

// shortBlock returns a block that says what was left out and how to get it back.
func shortBlock(id tidemark.EntryID, b tidemark.Block) (tidemark.Block, bool) {
	switch b.Type {
	case tidemark.TypeText:
		if s, ok := Excerpt(b.Text, shortHead, shortTail, string(id)); ok {
			return tidemark.Text(s), true
		}
	case tidemark.TypeDocument:
		text, _ := b.DocumentText()
		if s, ok := Excerpt(text, shortHead, shortTail, string(id)); ok {
			return tidemark.Text(s), true
		}
	case tidemark.TypeToolResult:
		if s, ok := Excerpt(resultText(b), shortHead, shortTail, string(id)); ok {
			return tidemark.ToolResult(b.ToolUseID, s, b.IsError), true
		}
	case tidemark.TypeToolUse:
		raw := string(b.Input)
		if s, ok := Excerpt(raw, shortHead, shortTail, string(id)); ok {
			return tidemark.ToolUse(b.ID, b.Name, shortInput(s)), true
		}
	}
	return b, false
}

// shortInput is the input of a call, which has to be an object, where its text was shortened; cutInput reads that text again.
func shortInput(text string) []byte {
	in, _ := json.Marshal(map[string]string{"shortened": text}) // of a string it is never an error
	return in
}

func cutInput(in []byte) string {
	var o struct {
		Shortened string `json:"shortened"`
	}
	if json.Unmarshal(in, &o) == nil && o.Shortened != "" {
		return o.Shortened
	}
	return string(in)
}

// Excerpt keeps head and tail characters of a long text and says between them how much is missing
// and where the whole is. ok is false when nothing would be gained.
func Excerpt(s string, head, tail int, entry string) (string, bool) {
	if len(s) <= head+tail+400 {
		return s, false
	}
	a, z := runeFloor(s, head), runeCeil(s, len(s)-tail)
	return s[:a] + leftOut(z-a, len(s), entry) + s[z:], true
}

// leftOut stands for the middle of a text.
func leftOut(n, of int, entry string) string {
	return fmt.Sprintf("\n[… %d of %d bytes left out here. The whole text is entry %s: recall with {\"entry\": %q} reads it …]\n", n, of, entry, entry)
}

// runeFloor returns the largest i <= n that does not split a rune of s.
func runeFloor(s string, n int) int {
	for n > 0 && n < len(s) && s[n]&0xC0 == 0x80 {
		n--
	}
	return n
}

// runeCeil returns the smallest i >= n that does not split a rune of s.
func runeCeil(s string, n int) int {
	for n < len(s) && s[n]&0xC0 == 0x80 {
		n++
	}
	return n
}

// Digest is what a summary carries mechanically from one compaction to the next, beside the words
// of the model: it is computed, so it cannot be invented or forgotten.
type Digest struct {
	Index    Index            `json:"index"`
	Asks     []Said           `json:"asks,omitempty"` // newest requests of people, verbatim, oldest first
	Images   int              `json:"images,omitempty"`
	Messages int              `json:"messages"` // originals that it stands for, over all compactions
	Text     string           `json:"text"`     // the model's words alone
	Tier     string           `json:"tier"`     // full, partial, plaintext
	From     tidemark.EntryID `json:"from,omitempty"`
	Evicted  []Marker         `json:"evicted,omitempty"` // markers that stood in the span, oldest first
}

// Said is what a person wrote in an entry, or the beginning of it.
type Said struct {
	Entry tidemark.EntryID `json:"entry"`
	Text  string           `json:"text"`
}

// PreviousDigest returns the digest of the summary at the head of a span, if there is one.
func PreviousDigest(edit tidemark.Edit) (Digest, bool) {
	var d Digest
	if json.Unmarshal(edit.Data, &d) != nil {
		return Digest{}, false
	}
	return d, true
}

// IsSummary reports whether an item is a summary message.
func IsSummary(it Item) bool {
	return it.Span() && len(it.Message.Content) > 0 && strings.HasPrefix(it.Message.Content[0].Text, SummaryMarker)
}
