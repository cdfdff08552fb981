package setup

import (
	"context"
	"fmt"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/agent"
	"github.com/tidemark-ai/tidemark/recall"
	"github.com/tidemark-ai/tidemark/room/search"
	"github.com/tidemark-ai/tidemark/session"
)

var _ agent.Sessions = Here(nil)

// Recall implements [agent.Sessions]. It makes no session that is not there.
func (h Here) Recall(ctx context.Context, key tidemark.Key, ask recall.Ask) (recall.Answer, error) {
	s, err := h(ctx, key, false)
	if err != nil || ask.Query == "" {
		return recall.Answer{}, err
	}
	r, ok := session.Room[*search.Room](s)
	if !ok {
		return recall.Answer{}, fmt.Errorf("recall in %s: %w", key, tidemark.ErrUnavailable)
	}
	return r.Answer(ctx, ask)
}
