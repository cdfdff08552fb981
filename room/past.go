package room

import (
	"context"

	"io"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/snapshot"
)

// Past is the history at its places, which snapshots name and branches go on from.
type Past struct {
	// Weigh returns how many tokens a model would read at a place of a log. With check, what no model could read is
	// refused: tidemark.ErrInvalid, or tidemark.ErrNotFound.
	Weigh func(ctx context.Context, log string, upTo int64, check bool) (tidemark.Tokens, error)
	// Trim plans the overlays that a trimmed branch from there begins with, see compaction.Trim; what is pinned stays.
	Trim func(ctx context.Context, log string, upTo int64, pins map[tidemark.EntryID]bool, threshold int) ([]tidemark.Overlay, compaction.TrimMetrics, error)
	// Archived is how far the archives of a log reach, none of which holds more than it up to a position.
	Archived func(ctx context.Context, log string, upTo int64) (int64, error)
	// State is what rooms keep now of messages up to a position, and Restore what gives it to another session; see Keeper.
	State   func(ctx context.Context, upTo int64, past bool) (State, error)
	Restore func(ctx context.Context, to tidemark.Key, from Place) ([]tidemark.Stmt, error)
	// Begin returns what makes another session, in a log of its own that goes on from a place, with the settings of the
	// session that it is of; tidemark.ErrConflict when it is written and the key is taken.
	Begin func(i tidemark.SessionInfo, from Place) []tidemark.Stmt
	// Enter has the agent's directory list it.
	Enter func(ctx context.Context, i tidemark.SessionInfo) error
}

// Blocks are the large blocks of messages, which stand beside their entries: in the database, or in the bucket by their
// hash.
type Blocks struct {
	MaxBlock int64 // bytes of one
	// Export gives those of an entry in the bucket to use, and returns its payload with those in the database in it;
	// tidemark.ErrUnavailable for one that is gone, or damaged.
	Export func(ctx context.Context, e tidemark.Entry, use func(sum tidemark.Hash, size int64, body io.Reader) error) (payload []byte, err error)
	// Import puts one into the bucket.
	Import func(ctx context.Context, sum tidemark.Hash, size int64, body io.Reader) error
	// Whole returns a message of an exported payload with all its blocks; tidemark.ErrInvalid where it refers to one that
	// was not imported.
	Whole func(ctx context.Context, m tidemark.Message, imported func(sum tidemark.Hash) bool) (tidemark.Message, error)
	// Keep returns such a message as an entry has it, and what stores the blocks that go into the database.
	Keep func(ctx context.Context, m tidemark.Message) (tidemark.Message, []tidemark.Stmt, error)
}

// Place is a snapshot, and where it ends.
type Place struct {
	snapshot.Node
	Log   string
	Seq   int64
	State State // of rooms, as it was there
}

// State is what a session keeps beside its log and changes: its card, and which messages are pinned or superseded. What
// is derived from the messages is derived again.
type State struct {
	Card    json.RawMessage `json:"card,omitempty"`
	Version int64           `json:"version,omitempty"`
	Marks   []StateMark     `json:"marks,omitempty"`
}

// StateMark is what a State has of a message.
type StateMark struct {
	ID         string `json:"id"`
	Pinned     int64  `json:"pinned,omitempty"`
	Superseded string `json:"superseded,omitempty"`
	Reason     string `json:"reason,omitempty"`
}

// Pins are the entries that stay whole.
func (s State) Pins() map[tidemark.EntryID]bool {
	out := map[tidemark.EntryID]bool{}
	for _, m := range s.Marks {
		if m.Pinned > 0 {
			out[tidemark.EntryID(m.ID)] = true
		}
	}
	return out
}
