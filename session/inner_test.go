package session

import (
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host/hosttest"
	"github.com/tidemark-ai/tidemark/room"
	"github.com/tidemark-ai/tidemark/room/search"
)

// bare opens a session that answers nobody.
func bare(t *testing.T) *Session {
	t.Helper()
	s, err := Open(t.Context(), Config{Key: "agent:main:main", DB: hosttest.DB(t), Runtime: hosttest.Runtime(t), Rooms: []room.Maker{search.Make}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// logged appends a message and returns its entry.
func (s *Session) logged(t *testing.T, from, text string) tidemark.EntryID {
	t.Helper()
	h, err := s.head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	id := tidemark.EntryID(tidemark.NewID(s.Runtime.Now()))
	err = s.log.Append(t.Context(), h.Log, tidemark.Entry{ID: id, Kind: tidemark.KindMessage, At: s.Runtime.Now(), Origin: tidemark.Origin{From: from, Owner: true},
		Payload: tidemark.NewText(tidemark.User, text).AppendJSON(nil)})
	if err != nil {
		t.Fatal(err)
	}
	return id
}
