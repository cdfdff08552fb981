package session

import (
	"context"
	"slices"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/archive"
	"github.com/tidemark-ai/tidemark/cleanup"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/room"
)

// tags parts the text of one reply from what the model asks for in it. One filter reads all text blocks of a reply,
// since the pieces of a stream do not say of which they are.
type tags struct {
	on   bool
	text cleanup.Filter
	said strings.Builder
}

// push takes a piece and returns what readers see of it.
func (t *tags) push(piece string) string {
	if t.on {
		piece = t.text.Push(piece)
	}
	t.said.WriteString(piece)
	return piece
}

// end returns what is left for readers to see.
func (t *tags) end() string {
	if !t.on {
		return ""
	}
	return t.text.End()
}

// TidyEvent is the data of an event of type cleanup: what the model asked for in a reply, and what became of it.
type TidyEvent struct {
	Entry   tidemark.EntryID   `json:"entry"`             // the reply
	Overlay tidemark.EntryID   `json:"overlay,omitempty"` // what changed the view; undo it to have all back
	Pinned  []tidemark.EntryID `json:"pinned,omitempty"`
	Ops     []compaction.Tidy  `json:"ops"`
	Blocks  []int              `json:"blocks"` // of the reply as the model wrote it, from 0, with tags
	Texts   []string           `json:"texts"`  // and what they were
	Archive string             `json:"archive,omitempty"`
}

// cleanupEvent is its type.
const cleanupEvent = "cleanup"

// tidyStmts decides what a model asked for in a reply and returns what carries it out: statements for the transaction
// that appends the reply, so that neither is there without the other.
func (s *Session) tidyStmts(ctx context.Context, r *run, v View, reply tidemark.EntryID) ([]tidemark.Stmt, *tidemark.Event, error) {
	t, ok := room.Find[room.Tidier](s.rooms)
	if len(r.asked.Blocks) == 0 || !ok {
		return nil, nil, nil
	}
	pins, err := s.rooms.Pinned(ctx, r.Log)
	if err != nil {
		return nil, nil, err
	}
	done, ok := t.Tidy(compaction.Hold(v.View, pins, s.Budget()), r.asked.Ops)
	if !ok {
		return nil, nil, nil
	}
	if slices.ContainsFunc(r.origins, func(o tidemark.Origin) bool { return !s.mayChange(o) }) {
		done.Refuse(true, "the turn answers somebody who may not change this conversation")
	}
	part, freed, err := s.tidyChecked(ctx, r, v, &done)
	if err != nil {
		return nil, nil, err
	}
	e := TidyEvent{Entry: reply, Pinned: done.Pins, Ops: done.Done, Blocks: r.asked.Blocks, Texts: r.asked.Texts, Archive: part.Key}
	var stmts []tidemark.Stmt
	if len(done.Edits) > 0 {
		now := s.Runtime.Now()
		o := tidemark.Overlay{By: []string{cleanupEvent}, Edits: done.Edits, Reason: "model", Before: v.Size, After: max(v.Size-freed, 0)}
		if e.Overlay, stmts, err = s.overlayStmts(r.Log, tidemark.FromModel, o); err != nil {
			return nil, nil, err
		}
		stmts = append(stmts, tidemark.Stmt{SQL: `UPDATE heads SET context = max(context - ?, 0) WHERE key = ?`, Args: []any{int64(freed), string(s.Key)}, Want: 1})
		if done.Pruned > 0 {
			stmts = append(stmts, s.dueStmt(dueOutbox, now.Add(outboxRetry), ""))
			if !s.settings().NoMemories {
				stmts = append(stmts, s.evictedStmt(r.Log, e.Overlay))
			}
		}
	}
	if h, ok := room.Find[room.Holder](s.rooms); ok { // as the model's tool for the task does
		more, err := h.PinStmts(ctx, r.Log, done.Pins)
		if err != nil {
			return nil, nil, err
		}
		stmts = append(stmts, more...)
	}
	r.untidy = done.Refusals()
	event := tidemark.Event{Type: cleanupEvent, Text: done.Line(freed), Data: []byte(mustJSON(e))}
	return append(stmts, s.eventStmt(r.Log, event)), &event, nil
}

// tidyChecked refuses what the view could not show or what could not be archived, and archives what leaves whole. freed
// is what the view is smaller by.
func (s *Session) tidyChecked(ctx context.Context, r *run, v View, t *compaction.Tidied) (part archive.Info, freed tidemark.Tokens, err error) {
	if t.Pruned > 0 {
		p, err := s.openPlan(ctx, r.Log)
		if err != nil {
			return part, 0, err
		}
		if p != nil {
			t.Refuse(false, "a compaction is under way")
		}
	}
	if t.Pruned > 0 {
		if part, err = s.parts.Put(ctx, r.Log, t.Last); err != nil {
			if ctx.Err() != nil {
				return part, 0, err
			}
			s.warn("archive before turns are collapsed", err)
			t.Refuse(false, "what leaves could not be archived")
		}
	}
	if len(t.Edits) == 0 {
		return part, 0, nil
	}
	after, err := compaction.Preview(v.View, t.Edits, s.Budget())
	if err == nil {
		err = tidemark.Check(after.Messages())
	}
	if err == nil {
		err = s.Reader.Fits(ctx, v.Shown, t.Edits)
	}
	if err != nil {
		if ctx.Err() != nil {
			return part, 0, err
		}
		s.warn("what the model asked for does not fit its context", err)
		t.Refuse(true, "the context could not be sent so")
		return part, 0, nil
	}
	return part, max(v.View.Tokens()-after.Tokens(), 0), nil
}
