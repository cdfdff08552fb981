package session_test

import (
	"context"
	"testing"

	episodic "github.com/tidemark-ai/tidemark/room/episodes"
	"github.com/tidemark-ai/tidemark/session"
)

// ReadEpisode is a page of an episode, as the model reads it.
func (h *harness) ReadEpisode(ctx context.Context, name string, offset int) (string, error) {
	log, err := h.divided().Current(ctx)
	if err != nil {
		return "", err
	}
	return h.divided().ReadEpisode(ctx, log, name, offset)
}

func (h *harness) divided() *episodic.Room { return dividedOf(h.t, h.Session) }

func dividedOf(t *testing.T, s *session.Session) *episodic.Room {
	t.Helper()
	r, ok := session.Room[*episodic.Room](s)
	if !ok {
		t.Fatal("the session has no room for its episodes")
	}
	return r
}
