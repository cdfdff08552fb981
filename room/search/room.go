// Package search is the room that finds messages of a conversation again, by words and by vectors, sessions before a reset
// included: for the model, for a person, for the agent and for the note beside the next call. Its parts are the index of
// words, the pieces of long texts, the turns that are left out, and the digests by which the agent knows whom to ask. Begin with Room.Recall.
package search

import (
	"context"
	"sync/atomic"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/room"
)

// ports are what the parts of the room use of the session.
type ports struct {
	room.Self
	room.History
	room.Work
	room.Mail
	room.Voice
	room.Turns
	room.Finding
}

// Room finds in one conversation.
type Room struct {
	ports
	index   *Index
	pieces  *Pieces
	skips   *Skips
	digests *Digests

	counted atomic.Pointer[sizeOf] // messages of the conversation, at some time
	lately  atomic.Pointer[lately] // what the last recall read, where it is short
}

// Make makes the room.
func Make(p room.Ports) any {
	all := ports{p.Self, p.History, p.Work, p.Mail, p.Voice, p.Turns, p.Finding}
	s := &Room{ports: all, skips: &Skips{ports: all}}
	s.pieces = &Pieces{ports: all, skips: s.skips}
	s.index = &Index{ports: all, pieces: s.pieces, skips: s.skips}
	s.skips.index = s.index
	s.digests = &Digests{ports: all, skips: s.skips}
	return s
}

var (
	_ room.Parted    = (*Room)(nil)
	_ room.Tools     = (*Room)(nil)
	_ room.Retriever = (*Room)(nil)
	_ room.Amender   = (*Room)(nil)
)

// Parts implements room.Parted.
func (s *Room) Parts() []any { return []any{s.index, s.pieces, s.skips, s.digests} }

// Note counts a recall and tells rooms how it went; by is who asked, see package room.
func (s *Room) Note(ctx context.Context, by string, found Recalled) {
	first := tidemark.EntryID("")
	if len(found.Results) > 0 {
		first = found.Results[0].ID
	}
	s.Recalled(ctx, by, found.Verdict, first)
}
