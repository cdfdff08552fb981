package compaction

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/tidemark-ai/tidemark"
)

// draft is a plan of pointers in the making: what each item would take with those that are planned. A pointer
// is written when it stays, since most of what one act plans goes under its marker.
type draft struct {
	items       []Item // of the view, which stays as it is
	size, fixed tidemark.Tokens
	tokens      []tidemark.Tokens // of each item, as planned
	sum         tidemark.Tokens   // of them
	alone       []bool            // items of one block, which becomes a pointer
	changed     []*Item           // others in which blocks become pointers, with these; none of them, or of all items
	stubs       []stub            // in the order that they were planned
	shapes      []shape           // that were met, at most maxShapes
}

// stub is a pointer that is planned.
type stub struct {
	at, place int             // item, and place in its content
	block     int             // of the entry, from 1
	tokens    tidemark.Tokens // of the block that it stands for
	blocks    []tidemark.Block
}

func newDraft(v View) *draft {
	d := &draft{items: v.Items, size: v.Size, fixed: v.Fixed, tokens: make([]tidemark.Tokens, len(v.Items)), alone: make([]bool, len(v.Items))}
	for i := range v.Items {
		d.tokens[i] = v.Items[i].Tokens
		d.sum += d.tokens[i]
	}
	return d
}

// set says what an item takes now.
func (d *draft) set(i int, tokens tidemark.Tokens) {
	d.sum += tokens - d.tokens[i]
	d.tokens[i] = tokens
}

// point plans pointers for the large blocks of a kind in an item, but those of calls that stay.
func (d *draft) point(i int, kind string, large tidemark.Tokens, stay map[string]bool) {
	it := &d.items[i]
	if len(it.Message.Content) == 1 && it.Stubs == 0 && kind == tidemark.TypeToolResult && !stay[it.Message.Content[0].ToolUseID] {
		d.stubs = append(d.stubs, stub{at: i, block: 1, tokens: it.Tokens})
		d.alone[i] = true
		d.set(i, d.estimate(it, it.Tokens))
		return
	}
	if c := d.with(i); c != nil {
		it = c
	}
	whole := *it
	var content []tidemark.Block
	for n, blk := range whole.Message.Content {
		if blk.Type != kind || stay[cmp.Or(blk.ToolUseID, blk.ID)] || isPointer(&whole, blk) || whole.several(n) {
			continue
		}
		tokens := whole.Tokens
		if len(whole.Message.Content) > 1 {
			tokens = tidemark.EstimateBlock(blk)
		}
		if tokens <= large {
			continue
		}
		if content == nil {
			content = slices.Clone(whole.Message.Content)
		}
		content[n] = pointerTo(&whole, blk, tokens)
		d.stubs = append(d.stubs, stub{i, n, whole.Block(n), tokens, []tidemark.Block{content[n]}})
	}
	if content == nil {
		return
	}
	now := whole
	now.Message, now.Stubs = tidemark.Message{Role: whole.Message.Role, Content: content}, whole.Stubs+1
	now.Tokens = tidemark.Estimate(now.Message)
	if d.changed == nil {
		d.changed = make([]*Item, len(d.items))
	}
	d.changed[i] = &now
	d.set(i, now.Tokens)
}

// shape is what the length of a message with one pointer depends on, where no character has to be escaped.
type shape struct {
	entry, call, digits int
	failed              bool
	tokens              tidemark.Tokens // what it takes
}

const maxShapes = 16 // ids of a log are alike

// with returns an item with the pointers that are planned, nil where it is in d.items.
func (d *draft) with(i int) *Item {
	if d.changed == nil {
		return nil
	}
	return d.changed[i]
}

// estimate is what an item takes whose one block becomes a pointer. The first of a shape is written for it.
func (d *draft) estimate(it *Item, tokens tidemark.Tokens) tidemark.Tokens {
	b := &it.Message.Content[0]
	s := shape{len(it.ID), len(b.ToolUseID), len(strconv.Itoa(int(tokens))), b.IsError, 0}
	year := it.At.Year()
	same := it.Message.Role == tidemark.User && year >= 0 && year <= 9999 && unescaped(string(it.ID)) && unescaped(b.ToolUseID)
	for _, known := range d.shapes {
		if s.tokens = known.tokens; same && s == known {
			return s.tokens
		}
	}
	n := tidemark.Estimate(tidemark.Message{Role: it.Message.Role, Content: []tidemark.Block{pointerTo(it, *b, tokens)}})
	if s.tokens = n; same && len(d.shapes) < maxShapes {
		d.shapes = append(d.shapes, s)
	}
	return n
}

// unescaped reports a text of ASCII that stands for itself in JSON.
func unescaped(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// write writes the pointer, if it is not yet.
func (d *draft) write(s *stub) []tidemark.Block {
	if s.blocks == nil {
		it := &d.items[s.at]
		s.blocks = []tidemark.Block{pointerTo(it, it.Message.Content[s.place], s.tokens)}
	}
	return s.blocks
}

// preview adds a few lines of a large result to its pointer, when it still frees half of it or more.
func (d *draft) preview(s *stub) bool {
	whole := &d.items[s.at]
	blk := whole.Message.Content[s.place]
	if blk.Type != tidemark.TypeToolResult || whole.Tokens < 4*previewTokens {
		return false
	}
	text := longest(blk)
	lines := preview(text, previewTokens, pointerSniff)
	if lines == "" {
		return false
	}
	bare := d.write(s)[0]
	with := tidemark.ToolResult(bare.ToolUseID, bare.Content[0].Text+"\n"+lines, bare.IsError)
	const bytesOfChar = 3 // at most: most texts need no counting
	if most := 2 * tidemark.EstimateBlock(with); most > tidemark.EstimateChars(len(text)/bytesOfChar) && most > tidemark.EstimateText(text) {
		return false
	}
	s.blocks[0] = with
	m := tidemark.Message{Role: whole.Message.Role, Content: s.blocks}
	if c := d.with(s.at); c != nil {
		c.Message.Content[s.place] = with // ours: point made it
		m = c.Message
	}
	d.set(s.at, tidemark.Estimate(m))
	return true
}

// longest returns the longest text of a result.
func longest(b tidemark.Block) string {
	text := ""
	for n := range b.Content {
		if c := &b.Content[n]; c.Type == tidemark.TypeText && len(c.Text) > len(text) {
			text = c.Text
		}
	}
	return text
}

// weight is how soon an item goes, with the pointers that are planned.
func (d *draft) weight(i int) float64 {
	if d.alone[i] {
		return max(weightMessage, weightArtifact)
	}
	if c := d.with(i); c != nil {
		return weightOf(c)
	}
	return weightOf(&d.items[i])
}

// edits returns an edit for each pointer of an item that is not covered: those of others need none.
func (d *draft) edits(covered []bool) []tidemark.Edit {
	stays := func(s *stub) bool { return covered == nil || !covered[s.at] }
	n := 0
	for i := range d.stubs {
		if stays(&d.stubs[i]) {
			n++
		}
	}
	if n == 0 {
		return nil
	}
	out := make([]tidemark.Edit, 0, n+1)
	for i := range d.stubs {
		if s := &d.stubs[i]; stays(s) {
			out = append(out, tidemark.Edit{From: d.items[s.at].From, Block: s.block, Blocks: d.write(s)})
		}
	}
	return out
}
