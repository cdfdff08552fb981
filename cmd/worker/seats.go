package main

import (
	"context"
	"fmt"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/config"
	"github.com/tidemark-ai/tidemark/proxy"
	"github.com/tidemark-ai/tidemark/session"
)

// maxSeats bounds the branches of a session that are in memory at once.
const maxSeats = 32

// seat is a session in memory.
type seat struct {
	*session.Session
	guest *proxy.Conversation // of a client that keeps the history itself, nil while none came
	cfg   *config.Config      // that it was opened with
	idle  func() bool         // nothing is lost if it is forgotten
	end   context.CancelFunc
	used  int64 // when, as seats count
}

// seats are the sessions of an object that are in memory.
type seats struct {
	live  map[tidemark.Key]*seat
	count int64 // of uses
}

// get returns the session of a key, nil when it is not in memory. One that was opened with settings that
// have changed since is forgotten as soon as it is quiet.
func (s *seats) get(key tidemark.Key, cfg *config.Config) *seat {
	st := s.live[key]
	if st == nil {
		return nil
	}
	if st.cfg != cfg && st.idle() {
		s.forget(key)
		return nil
	}
	s.count++
	st.used = s.count
	return st
}

// put adds a session; there is room for it.
func (s *seats) put(key tidemark.Key, st *seat) {
	if s.live == nil {
		s.live = map[tidemark.Key]*seat{}
	}
	s.count++
	st.used = s.count
	s.live[key] = st
}

// room makes room for one more: the quiet one that was not used for longest goes. All of it that matters
// is in the database.
func (s *seats) room() error {
	if len(s.live) < maxSeats {
		return nil
	}
	var oldest tidemark.Key
	for key, st := range s.live {
		if st.idle() && (oldest == "" || st.used < s.live[oldest].used) {
			oldest = key
		}
	}
	if oldest == "" {
		return fmt.Errorf("%d branches of this session are in work; try again when one has been answered: %w", len(s.live), tidemark.ErrBusy)
	}
	s.forget(oldest)
	return nil
}

// forget ends the life of a session in memory.
func (s *seats) forget(key tidemark.Key) {
	s.live[key].end()
	delete(s.live, key)
}
