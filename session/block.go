package session

import (
	"context"
	"errors"
	"fmt"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/internal/clip"
)

// entry returns a message of this conversation whole.
func (s *Session) entry(ctx context.Context, id tidemark.EntryID) (tidemark.Message, error) {
	e, err := s.log.Entry(ctx, id)
	if err != nil {
		return tidemark.Message{}, err
	}
	ours, err := s.lineage.Reaches(ctx, e)
	if err != nil || !ours || e.Kind != tidemark.KindMessage {
		return tidemark.Message{}, errors.Join(err, fmt.Errorf("entry %s: %w", id, tidemark.ErrNotFound)) // of another conversation
	}
	return s.blocks.Message(ctx, e)
}

// readBlock answers a call that asks for one block of an entry, which a stub named: to the byte, in pages.
func (s *Session) readBlock(ctx context.Context, call string, id tidemark.EntryID, block, offset int) (tidemark.Block, error) {
	m, err := s.entry(ctx, id)
	if err != nil {
		return tidemark.Block{}, err
	}
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
	page := text[offset:min(offset+toolPage, len(text))]
	if end := offset + len(page); end < len(text) {
		page = clip.Runes(page)
		end = offset + len(page)
		page += fmt.Sprintf("\n[%d of %d bytes; go on with offset %d]", len(page), len(text), end)
	}
	return tidemark.ToolResult(call, page+left, false), nil
}
