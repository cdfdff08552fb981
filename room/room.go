// Package room says what a session and its rooms know of each other. A room is what a conversation has beside its core,
// in a package of its own with its own tables: it holds [Ports], and takes part in the turn through the interfaces below,
// which a session finds by type assertion. Begin with Ports, then with room/task, which has one of each.
package room

import (
	"context"
	"fmt"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/recall"
)

// Ports is what a room may use of its session.
type Ports struct {
	Key     tidemark.Key
	DB      tidemark.DB
	Log     *host.Log
	Runtime tidemark.Runtime
	// Current returns the id of the log that the conversation stands in.
	Current func(ctx context.Context) (string, error)
	// Segments returns a log and those that it continues as a branch.
	Segments func(ctx context.Context, log string) (map[string]bool, error)
	// Reaches reports whether an entry is of this conversation.
	Reaches func(ctx context.Context, e tidemark.Entry) (bool, error)
	// MayChange reports whether what somebody says may change the conversation.
	MayChange func(o tidemark.Origin) bool
	// NoteRoom returns the tokens that a room may push, and those with what must be heeded, however little is left.
	NoteRoom func() (rest, all tidemark.Tokens)
}

// Maker makes a room of a session that is opened.
type Maker func(Ports) any

// Tools is a room with tools for the model.
type Tools interface {
	// Tools lists them; pointing says that what leaves the view leaves pointers.
	Tools(pointing bool) []tidemark.Tool
	// Call carries out a call of one of them; failures are results with is_error.
	Call(ctx context.Context, c Call) tidemark.Block
}

// Call is a call of a tool of a room.
type Call struct {
	ID      string // that the result answers
	Input   []byte
	By      string // run, round and number: the same when it is carried out again
	Log     string
	Origins []tidemark.Origin // of whom the turn answers
	Fence   tidemark.Stmt     // holds while the run works on it
}

// Pusher is a room that has something for the note beside the messages of a call, within some tokens; see
// Ports.NoteRoom. Empty is nothing.
type Pusher interface {
	Push(ctx context.Context, rest, all tidemark.Tokens) (string, error)
}

// Holder is a room that keeps entries in view.
type Holder interface {
	// Pinned returns the entries of a log, and of what it continues, that stay in view.
	Pinned(ctx context.Context, log string) (map[tidemark.EntryID]bool, error)
	// PinStmts returns what pins entries on behalf of the model.
	PinStmts(ctx context.Context, log string, ids []tidemark.EntryID) ([]tidemark.Stmt, error)
}

// Marker is a room that knows what is worked on, and something of single entries.
type Marker interface {
	// Working returns what the conversation works on, the zero Task when nobody says.
	Working(ctx context.Context) (recall.Task, error)
	// Marks returns what is known of some entries; those of which nothing is are absent.
	Marks(ctx context.Context, ids []tidemark.EntryID) (map[tidemark.EntryID]Mark, error)
}

// Mark is what is known of an entry beside what it holds.
type Mark struct {
	Premise      string           // that held when it was logged; empty when none was known
	Task         string           // that was worked on then
	SupersededBy tidemark.EntryID // the entry that holds in its place
	Pinned       bool
	Importance   int // 1 to 10; 0 is that of its kind
}

// Keeper is a room that keeps what a snapshot has as it was.
type Keeper interface {
	// State returns what is kept now of messages up to a position; past says that newer ones are there.
	State(ctx context.Context, upTo int64, past bool) (State, error)
	// Restore returns what gives a new session the state that a snapshot of another one has.
	Restore(ctx context.Context, to tidemark.Key, from string, upTo int64, s State) ([]tidemark.Stmt, error)
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

// TaskTool is the name of the tool of room/task: what it answers stands in the log, or on the card, already.
const TaskTool = "task_state"

// Harmless breaks the tags that agents put around reminders, which a model would take for words of the
// program.
func Harmless(s string) string {
	return strings.NewReplacer("<system-reminder", "&lt;system-reminder", "</system-reminder", "&lt;/system-reminder").Replace(s)
}

// JSON encodes values of ours, which always encode.
func JSON(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("encode %T: %v", v, err))
	}
	return string(raw)
}
