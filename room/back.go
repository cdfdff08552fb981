package room

import (
	"errors"
	"fmt"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/internal/clip"
)

// ToolPage bounds what a tool reads back of a text at a time, in bytes.
const ToolPage = 20_000

// Page returns a page of the text of a message, from an offset in bytes on, and says where the next begins.
func Page(m tidemark.Message, offset int) (string, error) {
	text, size := TextAt(m, max(offset, 0), ToolPage)
	if offset < 0 || offset > size {
		return "", fmt.Errorf("offset %d: the entry has %d bytes: %w", offset, size, tidemark.ErrInvalid)
	}
	return strings.ToValidUTF8(page(text, offset, size), ""), nil
}

// BlockPage answers a call that asks for one block of a message, which a stub named: to the byte, in pages. What else than
// text is in it comes with the first.
func BlockPage(call string, id tidemark.EntryID, m tidemark.Message, block, offset int) (tidemark.Block, error) {
	text, media, err := compaction.BlockOf(id, m, block)
	if err != nil {
		return tidemark.Block{}, err
	}
	if offset < 0 || offset > len(text) {
		return tidemark.Block{}, fmt.Errorf("offset %d: the block has %d bytes: %w", offset, len(text), tidemark.ErrInvalid)
	}
	left := ""
	if len(media) > 0 && offset == 0 {
		out, err := compaction.WithMedia(call, text, media)
		if err == nil || text == "" || !errors.Is(err, tidemark.ErrTooLarge) {
			return out, err
		}
		left = fmt.Sprintf("\n[What else is in it, %d images or documents, is too large to be brought back: ask the person to send it again.]", len(media))
	}
	return tidemark.ToolResult(call, page(text[offset:min(offset+ToolPage, len(text))], offset, len(text))+left, false), nil
}

// page ends a page of a text of some size between two characters, and says where the next begins.
func page(text string, offset, size int) string {
	if offset+len(text) >= size {
		return text
	}
	text = clip.Runes(text)
	return text + fmt.Sprintf("\n[%d of %d bytes; go on with offset %d]", len(text), size, offset+len(text))
}
