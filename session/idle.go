package session

import "github.com/tidemark-ai/tidemark/room"

// Working reports whether a run works in this life, or a room.
func (s *Session) Working() bool {
	for _, r := range s.rooms {
		if w, ok := r.(room.Worker); ok && w.Working() {
			return true
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.mine) > 0
}

// Idle reports whether nothing works in this life and nobody listens: a host may then forget the
// object, since all that matters is in the database.
func (s *Session) Idle() bool { return !s.Working() && s.hub.nobodyListens() }

// nobodyListens reports whether nobody listens.
func (h *hub) nobodyListens() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.subs) == 0
}
