// Package body reads the request that a client sends to a model API and writes it anew with edits. It decides no edit
// and sends nothing; package proxy does. Begin with [Scan].
//
// A request is read by one walk over its bytes that notes where its parts stand and decodes next to
// nothing. Edits are spliced into the client's own bytes: whatever no edit touches (unknown fields, the
// order of keys, the form of numbers, white space) comes out byte for byte as it came in. Roles, blocks, calls
// and tools of a kind that is not known are stepped over. Only what would make an edit wrong is an error, upon
// which the caller passes the body on as it came: what is no JSON, a key that counts and stands twice, what is
// beyond a bound.
//
// Two dialects are known: the Messages API (https://docs.anthropic.com/en/api/messages) and chat
// completions (https://platform.openai.com/docs/api-reference/chat). All edits are given in the form of the
// Messages API; for chat completions they are translated.
//
// The package is pure: it does no I/O, and its functions may be called at once. What they return may share
// memory with the body that was scanned, which must not be changed.
package body

import "github.com/tidemark-ai/tidemark"

// Bounds of what is read. A body beyond one is an error, and so passed on as it is.
const (
	MaxBytes    = 32 << 20 // what the Messages API takes
	MaxDepth    = 100      // nested values
	MaxMessages = 100_000
	MaxBlocks   = 500_000 // of all messages together
	MaxTools    = 4096
)

// Dialect is the API that a request is for.
type Dialect uint8

// The dialects.
const (
	Messages Dialect = iota // Anthropic's Messages API
	Chat                    // OpenAI's chat completions
)

// Request is a request that was scanned. It is not changed by what is done with it.
type Request struct {
	Dialect Dialect
	Model   string
	Stream  bool
	User    string          // metadata.user_id; for chat user, else prompt_cache_key
	Choice  string          // tool_choice: "", auto, any, tool, none
	Max     tidemark.Tokens // of the answer, 0 when not said
	Items   []Item
	Tools   []Tool
	Fixed   int // bytes of system and tools

	raw      []byte
	at       []span // of the items in raw (Messages only)
	list     span   // messages, with its brackets
	before   int    // where the key of messages stands
	tools    span   // tools, with its brackets; empty if there are none
	closed   bool   // tools is neither a list nor null: none can be added
	toolList []span

	chat      []chatMessage // Chat only
	chatItems []chatItem
}

// Item is one message as JSON of the Messages API. For that API it is the client's own bytes; for chat
// completions it is converted: the messages of consecutive tool results are one item, and system and
// developer messages are none.
type Item struct {
	Role tidemark.Role // "" for a message without one
	Raw  []byte

	content span // in Raw
	bare    bool // content is a string
	blocks  []block
	fixed   bool
	more    bool // it has more members than role and content
}

// Fixed reports a message of a form that is not known: another role than user, assistant or system, content
// that is neither a string nor a list of blocks, a call of another kind. It is sent as it came: a change of its
// blocks is dropped, and nothing is put into it.
func (i Item) Fixed() bool { return i.fixed }

// Tool is a definition as it came, in the form of its dialect.
type Tool struct {
	Name string
	Raw  []byte
}

// Change is what is to be different from what the client sent. The zero value changes nothing. Blocks and
// messages are JSON of the Messages API.
type Change struct {
	Blocks  []BlockChange
	Spans   []SpanChange
	Inserts []Insert
	// Note is a text block behind all blocks of the last message of the user, or of the system message behind that,
	// and so behind the last cache marker.
	Note   string
	Append [][]byte // messages behind the last one
	Tools  [][]byte // definitions behind the client's
	Trim   *Trim    // made by Trimmed for this request and this change
}

// BlockChange puts another block in the place of one. The cache marker of the old block stays.
type BlockChange struct {
	Item, Block int    // from 0
	Raw         []byte // nil: the block is left out, and its cache marker moves to the block before it
}

// SpanChange puts messages in the place of a run of items. Other changes of these items are dropped, but for
// those of Keep, which stay. A message of the role system stands where the API takes one
// ([tidemark.Message.TakesSystem]) and before one of the assistant or at the end; where a span takes a neighbour of it
// away, it moves to another such place. Without one the spans are not changed.
type SpanChange struct {
	From, To int // items from 0, inclusive
	Messages [][]byte
	Keep     []int // items of the run that stay, in order
}

// Insert puts back what the client never saw: calls within a message of the assistant, and their results.
type Insert struct {
	Item     int
	Visible  int // so many blocks of Item that are not thinking stand before it,
	Thinking int // and behind those so many of thinking, or fewer if the client dropped them,
	// Offset parts the text block behind these: so many bytes of its text stand before the insert. Chat
	// completions need it, since there the text of all legs is one. If another change is made to that block,
	// it is not parted, and the insert stands before it.
	Offset int

	Blocks  [][]byte // what else is put there, before Calls
	Calls   [][]byte // tool_use blocks
	Results [][]byte // tool_result blocks

	// Split ends the message behind Calls; a message of the user with Results follows, then what is left
	// as a new message of the assistant, if anything is. Without it Results go to the front of the next
	// message, or make a new one if there is none of the user.
	Split bool
}
