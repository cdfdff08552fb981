package compaction

import (
	"cmp"
	"slices"

	"github.com/tidemark-ai/tidemark"
)

// draft is a plan of pointers in the making: what each item would take with those that are planned.
type draft struct {
	items       []Item // of the view, which stays as it is
	size, fixed tidemark.Tokens
	tokens      []tidemark.Tokens // of each item, as planned
	sum         tidemark.Tokens   // of them
	changed     []*Item           // those in which blocks become pointers, with these
	stubs       []stub            // in the order that they were planned
}

// stub is a pointer that is planned.
type stub struct {
	at, place int // item, and place in its content
	block     int // of the entry, from 1
	blocks    []tidemark.Block
}

func newDraft(v View) *draft {
	d := &draft{items: v.Items, size: v.Size, fixed: v.Fixed, tokens: make([]tidemark.Tokens, len(v.Items)), changed: make([]*Item, len(v.Items))}
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
	whole := *d.item(i)
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
		d.stubs = append(d.stubs, stub{i, n, whole.Block(n), []tidemark.Block{content[n]}})
	}
	if content == nil {
		return
	}
	now := whole
	now.Message = tidemark.Message{Role: whole.Message.Role, Content: content}
	now.Stubs++
	now.Tokens = tidemark.Estimate(now.Message)
	d.changed[i] = &now
	d.set(i, now.Tokens)
}

// item is an item with the pointers that are planned.
func (d *draft) item(i int) *Item {
	if c := d.changed[i]; c != nil {
		return c
	}
	return &d.items[i]
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
	bare := s.blocks[0]
	with := tidemark.ToolResult(bare.ToolUseID, bare.Content[0].Text+"\n"+lines, bare.IsError)
	const bytesOfChar = 3 // at most: most texts need no counting
	if most := 2 * tidemark.EstimateBlock(with); most > tidemark.EstimateChars(len(text)/bytesOfChar) && most > tidemark.EstimateText(text) {
		return false
	}
	s.blocks[0] = with
	m := d.changed[s.at].Message
	m.Content[s.place] = with // ours: point made it
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

// edits returns an edit for each pointer of an item that is not covered: those of others need none.
func (d *draft) edits(covered []bool) []tidemark.Edit {
	var out []tidemark.Edit
	for _, s := range d.stubs {
		if covered == nil || !covered[s.at] {
			out = append(out, tidemark.Edit{From: d.items[s.at].From, Block: s.block, Blocks: s.blocks})
		}
	}
	return out
}
