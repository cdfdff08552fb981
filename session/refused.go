package session

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/tidemark-ai/tidemark"
)

// setAside keeps an input that the model API refuses from being refused with every later turn: its
// blocks that are no text (a type that no provider takes, an image too large) read as a note from
// now on. The originals stay in the log, and the overlay can be lifted.
func (s *Session) setAside(ctx context.Context, r *run, why error) ([]tidemark.Stmt, error) {
	var api *tidemark.APIError
	if !errors.As(why, &api) || api.Class != tidemark.ClassBadRequest || api.Status == http.StatusNotFound || len(r.took) == 0 {
		return nil, nil // what is not found is the model, or the address
	}
	const look = 200 // entries, more than one call takes up
	o := tidemark.Overlay{By: []string{"session"}, Reason: "refused"}
	seen := 0
	for e, err := range s.log.Walk(ctx, r.Log, 0) {
		if err != nil {
			return nil, err
		}
		if seen++; seen > look {
			break
		}
		if e.Kind == tidemark.KindMessage && slices.Contains(r.took, e.Origin.Input) {
			m, err := e.Message()
			if err != nil {
				return nil, err
			}
			o.Edits = append(o.Edits, refusedBlocks(e.ID, m, api.Message)...)
		}
	}
	if len(o.Edits) == 0 {
		return nil, nil
	}
	now := s.Runtime.Now()
	return s.log.AppendStmts(r.Log, tidemark.Entry{ID: tidemark.EntryID(tidemark.NewID(now)), Kind: tidemark.KindOverlay, At: now,
		Payload: []byte(mustJSON(o)), Origin: tidemark.Origin{From: tidemark.FromSystem}})
}

// refusedBlocks returns an edit for each block that is no text.
func refusedBlocks(id tidemark.EntryID, m tidemark.Message, reason string) []tidemark.Edit {
	var edits []tidemark.Edit
	for i, b := range m.Content {
		if b.Type == tidemark.TypeText {
			continue
		}
		note := fmt.Sprintf("[A block of type %q stood here. The model API refused it: %q. It is in entry %s.]", b.Type, quoted(reason), id)
		edits = append(edits, tidemark.Edit{From: id, Block: i + 1, Blocks: []tidemark.Block{tidemark.Text(note)}})
	}
	return edits
}
