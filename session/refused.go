package session

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
)

// otherWords are in what APIs say of a request whose messages they do not mind: "Unsupported parameter: temperature".
var otherWords = [...]string{"param", "parameter", "temperature", "top_p", "top_k", "token", "max_tokens", "tool", "function", "schema", "thinking", "reasoning", "stream"}

// setAside keeps what is no text in the input of a turn that failed (a type that no provider takes, a picture) from being
// refused with every later turn, where the refusal may be for it: it names such a type, speaks of media, or names nothing
// at all. The originals stay in the log, and the overlay can be lifted.
func (s *Session) setAside(ctx context.Context, r *run, why error) ([]tidemark.Stmt, error) {
	var api *tidemark.APIError
	if errors.As(why, &api) && len(r.guessed) > 0 && (api.Class == tidemark.ClassBadRequest || api.Class == tidemark.ClassRefusal) {
		_, stmts, err := s.overlayStmts(r.Log, tidemark.FromSystem, tidemark.Overlay{By: []string{"session"}, Lifts: r.guessed, Reason: "refused all the same"})
		return append(stmts, s.eventStmt(r.Log, tidemark.Event{Type: "notice", Text: "What was taken out was not why. It is in view as before."})), err
	}
	if api == nil || api.Class != tidemark.ClassBadRequest || api.Status == http.StatusNotFound || len(r.took) == 0 {
		return nil, nil // what is not found is the model, or the address
	}
	if api.Place != nil || api.Param != "" && !strings.HasPrefix(api.Param, "messages") {
		return nil, nil // a place is mended where it can be
	}
	const look = 200 // entries, more than one call takes up
	var items []compaction.Item
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
			items = append(items, compaction.Item{ID: e.ID, Message: m})
		}
	}
	edits := firstEdits(items, -1, *api,
		func(_ int, b tidemark.Block) bool { return b.Type != tidemark.TypeText && speaksOf(*api, b.Type) },
		func(_ int, b tidemark.Block) bool {
			return b.Type != tidemark.TypeText && (speaksOf(*api, mediaWords[:]...) || !speaksOf(*api, slices.Concat(otherWords[:], []string{"model", "system"})...))
		})
	if len(edits) == 0 {
		return nil, nil
	}
	_, stmts, err := s.overlayStmts(r.Log, tidemark.FromSystem, tidemark.Overlay{By: []string{"session"}, Reason: "refused", Edits: edits})
	return stmts, err
}
