package session

import (
	"context"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/recall"
	"github.com/tidemark-ai/tidemark/room"
)

// Room returns the first room of a session that is of a type, or has what an interface says.
func Room[T any](s *Session) (found T, ok bool) {
	for _, r := range s.rooms {
		if t, ok := r.(T); ok {
			return t, true
		}
	}
	return found, false
}

// ports is what rooms may use of the session.
func (s *Session) ports() room.Ports {
	return room.Ports{Key: s.Key, DB: s.DB, Log: s.log, Runtime: s.Runtime, Segments: s.segments, Reaches: s.reaches, MayChange: s.mayChange, NoteRoom: s.noteRoom,
		Current: func(ctx context.Context) (string, error) {
			h, err := s.head(ctx)
			return h.Log, err
		}}
}

// roomTools lists the tools of rooms.
func (s *Session) roomTools() (out []tidemark.Tool) {
	for _, r := range s.rooms {
		if t, ok := r.(room.Tools); ok {
			out = append(out, t.Tools(s.pointing())...)
		}
	}
	return out
}

// pinned returns the entries of a log, and of what it continues, that stay in view.
func (s *Session) pinned(ctx context.Context, log string) (map[tidemark.EntryID]bool, error) {
	if r, ok := Room[room.Holder](s); ok {
		return r.Pinned(ctx, log)
	}
	return nil, nil
}

// task returns what the conversation works on, as its agent or a person keeps it; the zero Task when neither does.
func (s *Session) task(ctx context.Context) (recall.Task, error) {
	if r, ok := Room[room.Marker](s); ok {
		return r.Working(ctx)
	}
	return recall.Task{}, nil
}

// marksOf returns what is known of some entries; those of which nothing is are absent.
func (s *Session) marksOf(ctx context.Context, ids []tidemark.EntryID) (map[tidemark.EntryID]room.Mark, error) {
	if r, ok := Room[room.Marker](s); ok {
		return r.Marks(ctx, ids)
	}
	return nil, nil
}
