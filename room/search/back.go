package search

import (
	"context"
	"fmt"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/room"
)

// maxID is how many bytes the id of an entry may have, so that no other text is told back.
const maxID = 100

// readBack answers a call that names what it wants to read again, from an offset in bytes on: an entry, a block of one, what a
// conversation that it delegated to said, or an episode.
func (s *Room) readBack(ctx context.Context, c room.Call, entry, episode string, offset int) (tidemark.Block, error) {
	var text string
	var err error
	far, delegates := s.Far()
	episodes, divided := s.Episodes()
	switch {
	case entry == "" && divided:
		text, err = episodes.ReadEpisode(ctx, c.Log, episode, offset)
	case entry == "":
		err = fmt.Errorf("episode %.100q: %w", episode, tidemark.ErrNotFound)
	case delegates && strings.HasPrefix(entry, "agent:"):
		text, err = far.Read(ctx, entry, offset)
	case len(entry) > maxID:
		err = fmt.Errorf("entry %.40q…: an id has at most %d bytes: %w", entry, maxID, tidemark.ErrInvalid)
	default:
		return s.entryBack(ctx, c, entry, offset)
	}
	return tidemark.ToolResult(c.ID, text, false), err
}

func (s *Room) entryBack(ctx context.Context, c room.Call, entry string, offset int) (tidemark.Block, error) {
	id, block := compaction.ReadHandle(entry)
	m, err := s.Entry(ctx, id)
	if err != nil {
		return tidemark.Block{}, err
	}
	if block >= 0 {
		return room.BlockPage(c.ID, id, m, block, offset)
	}
	text, err := room.Page(m, offset)
	return tidemark.ToolResult(c.ID, text, false), err
}
