// Package search is the room that finds messages of a conversation again, by words and by vectors, sessions before a reset
// included: for the model, for a person, for the agent and for the note beside the next call. Begin with Room.Recall.
package search

import (
	"context"
	"sync/atomic"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/room"
)

// Room finds in one conversation.
type Room struct {
	room.Self
	room.History
	room.Work
	room.Mail
	room.Finding

	counted atomic.Pointer[sizeOf] // messages of the conversation, at some time
	lately  atomic.Pointer[lately] // what the last recall read, where it is short
}

// Make makes the room.
func Make(p room.Ports) any {
	return &Room{Self: p.Self, History: p.History, Work: p.Work, Mail: p.Mail, Finding: p.Finding}
}

var (
	_ room.Tools     = (*Room)(nil)
	_ room.Retriever = (*Room)(nil)
	_ room.Amended   = (*Room)(nil)
)

// Amended drops what was read of a message that says something else now.
func (s *Room) Amended() { s.lately.Store(nil) }

// Note counts a recall and tells rooms how it went; by is who asked, see package room.
func (s *Room) Note(ctx context.Context, by string, found Recalled) {
	first := tidemark.EntryID("")
	if len(found.Results) > 0 {
		first = found.Results[0].ID
	}
	s.Recalled(ctx, by, found.Verdict, first)
}
