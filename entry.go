package tidemark

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"iter"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/tidemark-ai/tidemark/internal/json"
)

// EntryID names an entry. Ids sort by time, but the order of a log is Seq.
type EntryID string

// NewID returns a new time-sortable id (a ULID, https://github.com/ulid/spec).
func NewID(now time.Time) string {
	id, err := ulid.New(ulid.Timestamp(now), rand.Reader)
	if err != nil { // only a time beyond the year 10889, or no entropy
		return ulid.MustNew(ulid.MaxTime(), rand.Reader).String()
	}
	return id.String()
}

// NamedID returns an id of the same form that is always the same for a name and a time.
func NamedID(at time.Time, name string) string {
	sum := sha256.Sum256([]byte(name))
	id := ulid.ULID(sum[:16])
	if id.SetTime(min(ulid.Timestamp(at), ulid.MaxTime())) != nil { // never: it is in range
		return ""
	}
	return id.String()
}

// Time is when an entry was made, as its id says; zero for a name that says none.
func (id EntryID) Time() time.Time {
	u, err := ulid.ParseStrict(string(id))
	if err != nil {
		return time.Time{}
	}
	return ulid.Time(u.Time())
}

// Hash is a SHA-256 in hex.
type Hash string

// HashOf hashes bytes as stored.
func HashOf(data []byte) Hash {
	sum := sha256.Sum256(data)
	return Hash(hex.EncodeToString(sum[:]))
}

// Kind says what an entry holds.
type Kind string

// The kinds of entries.
const (
	KindMessage Kind = "message" // payload: a Message
	KindOverlay Kind = "overlay" // payload: an Overlay
	KindEvent   Kind = "event"   // payload: an Event; never sent to a model
)

// Source kinds of an [Origin]: who wrote the words of a message.
const (
	FromPerson = "person" // typed by someone
	FromModel  = "model"  // written by a model
	FromTool   = "tool"   // the result of a tool
	FromRecall = "recall" // brought back from this log: never indexed again, never a memory
	FromSystem = "system" // written by Tidemark
	FromAgent  = "agent"  // asked by another conversation of the agent, which no person wrote
)

// SourceOf says who wrote a message of which nothing is known but its shape: that of another program's history.
func SourceOf(m Message) string {
	switch {
	case m.Role == Assistant:
		return FromModel
	case len(m.Results()) > 0:
		return FromTool
	}
	return FromPerson
}

// Origin says where an entry came from.
type Origin struct {
	From    string `json:"from,omitempty"`    // person, model, tool, recall, system, agent
	Channel string `json:"channel,omitempty"` // whatsapp, web, cli, import, …
	Peer    string `json:"peer,omitempty"`    // who, on that channel
	Input   string `json:"input,omitempty"`   // id of the input that it was
	Owner   bool   `json:"owner,omitempty"`   // of a person: the owner, by a token or a name that is linked
	Own     bool   `json:"own,omitempty"`     // of a tool: the conversation's own, which answers with nothing that is new

	Message string   `json:"message,omitempty"` // platform's id of what a person wrote over a channel
	To      *Address `json:"to,omitempty"`      // where its answer goes; nil: to whoever asks

	// Quiet is set on what a person said that wants no answer of ours: the owner's own answer from their phone, a note.
	Quiet bool `json:"quiet,omitempty"`

	Occasion *Occasion `json:"occasion,omitempty"` // of the run of a schedule
}

// Findable reports whether what was said is to be found, and may be a source of memory: what stands elsewhere already is found there.
func (o Origin) Findable() bool { return o.From != FromRecall && !o.Own }

// StopRefusal is the stop reason of a reply in which a model, or a filter before it, declined.
const StopRefusal = "refusal"

// Call is what one call of a model was and cost.
type Call struct {
	Model     string `json:"model,omitempty"`           // as the provider names it
	Requested string `json:"requested_model,omitempty"` // as it was asked for, which may be an alias
	Stop      string `json:"stop_reason,omitempty"`
	RequestID string `json:"request_id,omitempty"`
	Usage     Usage  `json:"usage"`
	// Reported is false when the provider sent no usage and the figures are estimates.
	Reported bool `json:"reported,omitempty"`
}

// Declined reports a call whose reply is no answer, though it may have words.
func (c Call) Declined() bool { return c.Stop == StopRefusal }

// Entry is one row of a log. Nothing updates or deletes it.
type Entry struct {
	ID      EntryID
	Seq     int64 // order, assigned by the log
	Log     string
	Kind    Kind
	At      time.Time
	Tokens  Tokens // estimate of the message; 0 for events
	Call    *Call  // replies only
	Origin  Origin
	Payload json.RawMessage
	Hash    Hash // of Payload
	Chain   Hash // of the messages up to here, see Chain
}

// Message decodes the payload of a message entry.
func (e Entry) Message() (Message, error) {
	if m, ok := quickMessage(e.Payload); ok {
		return m, nil
	}
	var m Message
	err := json.Unmarshal(e.Payload, &m)
	return m, err
}

// Skeleton is what planning needs of an entry without its payload.
type Skeleton struct {
	ID      EntryID
	Seq     int64
	At      time.Time
	Kind    Kind
	Role    Role
	Tokens  Tokens
	Blocks  int      // how many blocks the message has
	Calls   []string // ids of tool calls made
	Results []string // ids of tool calls answered
}

// Event is the payload of an event entry: something that people and tools should see, and a model
// should not.
type Event struct {
	Type string          `json:"type"` // compaction, reset, error, abort, restart, memory, …
	Text string          `json:"text"` // one line for people
	Data json.RawMessage `json:"data,omitempty"`
}

// Log is an append-only history with named positions in it.
type Log interface {
	// Append adds entries at the end of a log and fills their Seq. An entry id that is there
	// already is ErrConflict and nothing is added.
	Append(ctx context.Context, log string, entries ...Entry) error
	// Walk yields the entries of a log from the newest at or before seq (0: the newest) to the
	// oldest, through its bases. The reader stops it by breaking.
	Walk(ctx context.Context, log string, seq int64) iter.Seq2[Entry, error]
	// Ref returns the value of a ref; a missing one is ErrNotFound.
	Ref(ctx context.Context, name string) (string, error)
	// MoveRef sets a ref if it still has the old value (empty: it must not exist), else ErrConflict.
	MoveRef(ctx context.Context, name, old, value string) error
}
