package room

import (
	"context"

	"github.com/tidemark-ai/tidemark"
)

// Offerer is a room that lists the tools of others. The list stays as it is while the system prompt does: each change of it
// breaks the prefix that providers cache.
type Offerer interface {
	// Offer returns the list, made anew where it may be.
	Offer(ctx context.Context) ([]tidemark.Tool, error)
	// Thaw lets the next Offer make it anew, since the prefix breaks anyway.
	Thaw()
	// Offered returns a tool of the list that the model was told of last.
	Offered(name string) (tidemark.Tool, bool)
	// Changed reports whether a tool is another than the one that the model was told of, and has the list made anew then: what
	// nobody has read must not run.
	Changed(ctx context.Context, name string) bool
}
