package compaction

import "github.com/tidemark-ai/tidemark/internal/json"

// Stubbed is a block of an entry for which something else stands in an item, or nothing. An edit of that block
// replaces all that stands for it: of one that was taken out the new one shows in its place, and several go together.
type Stubbed struct {
	Block int             // of the entry, from 1
	At    int             // where the replacement begins in the item's content, from 0
	Many  int             // of how many blocks it is; 0 when the block was taken out
	Row   int64           // position of the overlay; 0 for one that is only planned
	Data  json.RawMessage // of the edit
}

// Blocks returns how many blocks the entry of an item has, whatever stands for them.
func (i *Item) Blocks() int {
	n := len(i.Message.Content)
	for k := range i.Stubbed {
		n += 1 - i.Stubbed[k].Many
	}
	return n
}

// Block returns which block of the entry, from 1, stands at a place of the item's content, from 0, itself or by what
// replaced it. Edits and handles name the entry's block: the place is another number as soon as a block before it was
// taken out or became several.
func (i *Item) Block(at int) int {
	n := at + 1
	for k := range i.Stubbed { // by block, so by place
		s := &i.Stubbed[k]
		if at < s.At {
			break
		}
		if at < s.At+s.Many {
			return s.Block
		}
		n += 1 - s.Many
	}
	return n
}

// Place returns where in the item's content, from 0, what stands for a block of the entry, from 1, begins, and of how
// many blocks it is: 0 for a block that was taken out, and for one that the entry does not have.
func (i *Item) Place(block int) (at, many int) {
	at = block - 1
	for k := range i.Stubbed {
		s := &i.Stubbed[k]
		if s.Block == block {
			return s.At, s.Many
		}
		if s.Block > block {
			break
		}
		at += s.Many - 1
	}
	if at < 0 || at >= len(i.Message.Content) {
		return at, 0
	}
	return at, 1
}

// stubbed returns what stands for a block of the entry, from 1, nil for the block itself.
func (i *Item) stubbed(block int) *Stubbed {
	for n := range i.Stubbed {
		if i.Stubbed[n].Block == block {
			return &i.Stubbed[n]
		}
	}
	return nil
}

// several reports whether a block of the content, from 0, is one of several that stand for one block: an edit of it
// would replace the others too, so no strategy plans one.
func (i *Item) several(at int) bool {
	if len(i.Stubbed) == 0 {
		return false
	}
	_, many := i.Place(i.Block(at))
	return many > 1
}

// shifted reports whether some block of the content stands at another place than in the entry.
func (i *Item) shifted() bool {
	for at := range i.Message.Content {
		if len(i.Stubbed) > 0 && i.Block(at) != at+1 {
			return true
		}
	}
	return false
}
