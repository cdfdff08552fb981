package compaction

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tidemark-ai/tidemark"
)

// ReadHandle reads how a stub names an entry, or a block of it from 0: "ID" or "ID#3". block is -1 for none.
func ReadHandle(handle string) (id tidemark.EntryID, block int) {
	if name, number, ok := strings.Cut(handle, "#"); ok {
		if n, err := strconv.Atoi(number); err == nil && n >= 0 {
			return tidemark.EntryID(name), n
		}
	}
	return tidemark.EntryID(handle), -1
}

// BlockOf returns what is in one block of an entry: the text of a result, the input of a call as JSON, and images and
// documents as such.
func BlockOf(id tidemark.EntryID, m tidemark.Message, block int) (text string, media []tidemark.Block, err error) {
	if block >= len(m.Content) {
		return "", nil, fmt.Errorf("entry %s#%d: it has %d blocks, counted from 0: %w", id, block, len(m.Content), tidemark.ErrInvalid)
	}
	b := m.Content[block]
	switch b.Type {
	case tidemark.TypeToolUse:
		text = string(b.Input)
	case tidemark.TypeToolResult:
		for _, c := range b.Content {
			if c.Type == tidemark.TypeText {
				text += c.Text
			} else {
				media = append(media, c)
			}
		}
	case tidemark.TypeText:
		text = b.Text
	default:
		media = []tidemark.Block{b}
	}
	return text, media, nil
}

// WithMedia is a result that brings images and documents back as they were.
func WithMedia(call, text string, media []tidemark.Block) (tidemark.Block, error) {
	content := media
	if text != "" {
		content = append([]tidemark.Block{tidemark.Text(strings.ToValidUTF8(text, string(utf8.RuneError)))}, media...)
	}
	for _, b := range media {
		if b.Type != tidemark.TypeImage && b.Type != tidemark.TypeDocument {
			return tidemark.Block{}, fmt.Errorf("a block of type %.40s is no result of a tool; a person can read the entry: %w", b.Type, tidemark.ErrInvalid)
		}
	}
	out := tidemark.Block{Type: tidemark.TypeToolResult, ToolUseID: call, Content: content}
	if n := len(out.AppendJSON(nil)); n > RecallBytes {
		return tidemark.Block{}, fmt.Errorf("the block has %d bytes, at most %d are brought back: ask the person to send it again: %w", n, RecallBytes, tidemark.ErrTooLarge)
	}
	return out, nil
}
