package compaction

import (
	"slices"

	"github.com/tidemark-ai/tidemark"
)

// Cuts reports, for each position 0..len(items), whether a span may end or begin there. It is the
// one definition of a cut point: a tool call and its result, and the calls of one exchange, are
// never parted.
func Cuts(items []Item) []bool {
	legal := make([]bool, len(items)+1)
	open, answered := map[string]bool{}, resultIDs(items)
	legal[0] = true
	for i := range items {
		calls := false
		for n := range items[i].Message.Content {
			switch b := &items[i].Message.Content[n]; b.Type {
			case tidemark.TypeToolUse:
				if calls = true; answered[b.ID] { // one that no one ever answers holds nothing open
					open[b.ID] = true
				}
			case tidemark.TypeToolResult:
				delete(open, b.ToolUseID)
			}
		}
		// A call without any result stays with what follows it up to the next message of the
		// assistant, so that the repair of the view finds it in one piece.
		beside := calls && i+1 < len(items) && has(items[i+1].Message, tidemark.TypeToolResult)
		legal[i+1] = len(open) == 0 && !beside
	}
	return legal
}

// has reports a message with a block of a type.
func has(m tidemark.Message, kind string) bool {
	for n := range m.Content {
		if m.Content[n].Type == kind {
			return true
		}
	}
	return false
}

func resultIDs(items []Item) map[string]bool {
	ids := map[string]bool{}
	for i := range items {
		for n := range items[i].Message.Content {
			if b := &items[i].Message.Content[n]; b.Type == tidemark.TypeToolResult {
				ids[b.ToolUseID] = true
			}
		}
	}
	return ids
}

// personTurn reports whether an item is something that a person said.
func personTurn(it *Item) bool {
	return it.Message.Role == tidemark.User && !it.Span() && !has(it.Message, tidemark.TypeToolResult)
}

// newestTurn returns where what a person said last begins and ends: one message, or several that were sent before a reply,
// all of which that reply is to answer. Both are 0 where nobody said anything.
func newestTurn(items []Item) (from, to int) {
	for to = len(items); to > 0 && !personTurn(&items[to-1]); {
		to--
	}
	for from = to; from > 0 && (personTurn(&items[from-1]) || items[from-1].Message.Role == tidemark.System); {
		if from < to && left(items, items[from-1].Last, items[from].Seq) {
			break
		}
		from--
	}
	return from, to
}

// left reports whether something between two positions has left the view, such as the reply to what a hole of a span holds.
func left(items []Item, after, before int64) bool {
	return after+1 < before && slices.ContainsFunc(items, func(it Item) bool { return it.Span() && it.Seq < before && it.Last > after })
}

// Chunks splits items at cut points into runs of at most budget tokens. A run that cannot be cut
// and is larger stands alone.
func Chunks(items []Item, budget tidemark.Tokens) [][]Item {
	legal := Cuts(items)
	var out [][]Item
	start, last := 0, 0
	var size, sinceLast tidemark.Tokens
	for i, it := range items {
		if size+it.Tokens > budget && last > start {
			out = append(out, items[start:last])
			start, size = last, sinceLast
		}
		size += it.Tokens
		sinceLast += it.Tokens
		if legal[i+1] {
			last, sinceLast = i+1, 0
		}
	}
	if start < len(items) {
		out = append(out, items[start:])
	}
	return out
}

// Halves parts items for a model that reads them as a transcript and takes no more: where the second half of their tokens
// begins, or in the middle of the longest text of a single one. The second is empty where nothing can be parted.
func Halves(items []Item) [2][]Item {
	if len(items) == 1 {
		a, b, ok := halved(items[0])
		if !ok {
			return [2][]Item{items, nil}
		}
		return [2][]Item{{a}, {b}}
	}
	var all, n tidemark.Tokens
	for i := range items {
		all += items[i].Tokens
	}
	at := 0
	for at < len(items)-1 && (at == 0 || n+items[at].Tokens <= all/2) {
		n += items[at].Tokens
		at++
	}
	return [2][]Item{items[:at], items[at:]}
}

// halved cuts the longest text of an item in two; all else stays with the first part.
func halved(it Item) (a, b Item, ok bool) {
	at, text := -1, ""
	for n, blk := range it.Message.Content {
		words, document := blk.DocumentText()
		if !document && blk.Type == tidemark.TypeText {
			words = blk.Text
		}
		if len(words) > len(text) {
			at, text = n, words
		}
	}
	if len(text) < 2 {
		return it, it, false
	}
	mid := runeFloor(text, len(text)/2)
	a, b = it, it
	content := slices.Clone(it.Message.Content)
	parts := [2]tidemark.Block{tidemark.Text(text[:mid]), tidemark.Text(text[mid:])}
	if content[at].Type == tidemark.TypeDocument { // nobody said it
		for i := range parts {
			part, err := tidemark.TextDocument("", parts[i].Text)
			if err != nil {
				return it, it, false
			}
			parts[i] = part
		}
	}
	content[at] = parts[0]
	a.Message = tidemark.Message{Role: it.Message.Role, Content: content}
	b.Message = tidemark.Message{Role: it.Message.Role, Content: parts[1:]}
	a.Tokens, b.Tokens = tidemark.Estimate(a.Message), tidemark.Estimate(b.Message)
	return a, b, mid > 0
}
