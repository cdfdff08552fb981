package setup

import (
	"context"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/agent"
	"github.com/tidemark-ai/tidemark/recall"
)

var _ agent.Sessions = Here(nil)

// Recall implements [agent.Sessions]. It makes no session that is not there.
func (h Here) Recall(ctx context.Context, key tidemark.Key, ask recall.Ask) (recall.Answer, error) {
	s, err := h(ctx, key, false)
	if err != nil || ask.Query == "" {
		return recall.Answer{}, err
	}
	return s.Answer(ctx, ask)
}
