package room

import (
	"context"
	"fmt"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
)

// Checker is a room that looks at what a compaction did, before anything rests on it.
type Checker interface {
	// Check says what is wrong with an act. A check that cannot be made is an error and no violation.
	Check(ctx context.Context, a Acted) (Checked, error)
	// LiftedStmts note that an act was lifted for what was found.
	LiftedStmts(ctx context.Context, a Acted, c Checked) ([]tidemark.Stmt, error)
	// Lifted says why an act that does the same was lifted a short while ago, "" where none was: it would be again.
	Lifted(ctx context.Context, edits []tidemark.Edit) (why string, err error)
}

// Acted is what a compaction did: an overlay, and the messages that the model sees behind it.
type Acted struct {
	Log      string
	Overlay  tidemark.EntryID
	Edits    []tidemark.Edit
	Messages []tidemark.Message
}

// Checked is what the self-check behind a compaction found.
type Checked struct {
	Overlay    tidemark.EntryID `json:"overlay"`
	Checks     int              `json:"checks"`
	Repaired   int              `json:"repaired,omitempty"` // rows of the index that were missing, or of other words
	Violations []string         `json:"violations,omitempty"`
}

// Fails notes a violation.
func (c *Checked) Fails(format string, args ...any) {
	c.Violations = append(c.Violations, fmt.Sprintf(format, args...))
}

// Checks is what a self-check looks at, besides the log.
type Checks struct {
	// Places resolves the entries that edits name.
	Places func(ctx context.Context, edits []tidemark.Edit) ([]compaction.Placed, error)
	// Message is a message of an entry whole; what its large blocks were lost with is blocks.ErrDamaged or tidemark.ErrNotFound.
	Message func(ctx context.Context, e tidemark.Entry) (tidemark.Message, error)
	// Reads reads an entry as recall does.
	Reads func(ctx context.Context, id tidemark.EntryID) error
	// InBucket is how large a block in the bucket is, by its hash.
	InBucket func(ctx context.Context, sum string) (int64, error)
	// Indexed looks for an entry in the index of a room, see Indexer.
	Indexed func(ctx context.Context, e tidemark.Entry, m tidemark.Message) (checks, repaired int, fault string, err error)
}
