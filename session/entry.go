package session

import (
	"bytes"
	"context"
	"fmt"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/blocks"
)

// Entry returns one entry of the conversation with its large blocks, those of sessions before a
// reset and of other branches included. An entry of another conversation is ErrNotFound.
func (s *Session) Entry(ctx context.Context, id tidemark.EntryID) (tidemark.Entry, error) {
	e, err := s.log.Entry(ctx, id)
	if err != nil {
		return e, err
	}
	i, err := s.log.Info(ctx, e.Log)
	if err != nil {
		return tidemark.Entry{}, err
	}
	ours := i.Key.Root() == s.Key.Root()
	if !ours { // what an archive brought may stand where this store had it
		if ours, err = s.lineage.Reaches(ctx, e); err != nil {
			return tidemark.Entry{}, err
		}
	}
	if !ours {
		return tidemark.Entry{}, fmt.Errorf("entry %s: %w", id, tidemark.ErrNotFound)
	}
	if e.Kind == tidemark.KindMessage && bytes.Contains(e.Payload, []byte(blocks.Field)) {
		m, err := s.blocks.Message(ctx, e)
		if err != nil {
			return e, err
		}
		e.Payload = m.AppendJSON(nil)
	}
	return e, nil
}
