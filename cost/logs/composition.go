package logs

import (
	"time"

	"github.com/tidemark-ai/tidemark"
)

// ContextLimit is the window that shares of a context are told of, as the known implementation does.
const ContextLimit tidemark.Tokens = 200_000

// Part is what one kind of content takes of the live part of a log.
type Part struct {
	Bytes   int64           `json:"bytes"`
	Count   int64           `json:"count"`
	Percent int             `json:"percent"` // of the live bytes, rounded
	Tokens  tidemark.Tokens `json:"tokens"`  // an estimate; 0 for what never reaches the model
}

// Composition is what the live part of a log is made of: all behind the last compaction, in bytes of the file. The
// kinds are those of the known implementation, with one more: copies of tool results that stand beside the messages
// are no conversation.
type Composition struct {
	ToolResults  Part `json:"tool_results"`
	Signatures   Part `json:"thinking_signatures"` // the signatures alone; their tokens are of the thinking
	FileHistory  Part `json:"file_history"`
	Requests     Part `json:"tool_use_requests"`
	Conversation Part `json:"conversation"` // what is left of lines that are messages
	Copies       Part `json:"copies"`       // toolUseResult, never sent
	Other        Part `json:"other"`        // progress, side chains, lines that are no JSON
}

// Parts gives the kinds in their order, the largest savings first.
func (c *Composition) Parts() []*Part {
	return []*Part{&c.ToolResults, &c.Signatures, &c.FileHistory, &c.Requests, &c.Conversation, &c.Copies, &c.Other}
}

// PartNames are how people read them, in the order of [Composition.Parts].
var PartNames = []string{"tool results", "thinking signatures", "file history", "tool requests", "conversation", "copies of results", "other"}

// bytes is the sum of all parts.
func (c *Composition) bytes() (n int64) {
	for _, p := range c.Parts() {
		n += p.Bytes
	}
	return n
}

// shares fills in the percentages.
func (c *Composition) shares() {
	all := c.bytes()
	for _, p := range c.Parts() {
		if p.Percent = 0; all > 0 {
			p.Percent = int((200*p.Bytes + all) / (2 * all))
		}
	}
}

// Counts are lines of messages, as the known implementation counts them.
type Counts struct {
	User        int64 `json:"user"` // results of tools too
	Assistant   int64 `json:"assistant"`
	ToolResults int64 `json:"tool_results"` // blocks
	Images      int64 `json:"images"`
}

// Messages is the number of lines that are messages.
func (c Counts) Messages() int64 { return c.User + c.Assistant }

// Compaction is one that the tool made itself, before and after (papers/cmv, Figure 1).
type Compaction struct {
	Line    int64           `json:"line"`
	At      time.Time       `json:"at,omitzero"`
	Trigger string          `json:"trigger,omitempty"` // "auto" or "manual", where the log says so
	Before  tidemark.Tokens `json:"before"`            // tokens of the context
	After   tidemark.Tokens `json:"after"`
	// Basis says where the two are from: "log" (compactMetadata), "usage" (the next call before, or behind) or
	// "estimate".
	BeforeBasis string  `json:"before_basis"`
	AfterBasis  string  `json:"after_basis"`
	Reduction   float64 `json:"reduction"` // percent
	// MessagesBefore and MessagesAfter are without what stands before the messages.
	MessagesBefore tidemark.Tokens `json:"messages_before"`
	MessagesAfter  tidemark.Tokens `json:"messages_after"`
}

// Built is what the calls cost that made a session what it is, as its log reports them. Logs often hold the output of a
// reply that had just begun: the dollars are a lower bound.
type Built struct {
	Calls    int             `json:"calls"` // side chains included
	Usage    tidemark.Usage  `json:"usage"`
	Hour     tidemark.Tokens `json:"cache_creation_1h,omitempty"` // of the cache writes: to the cache that lives an hour
	Dollars  float64         `json:"dollars"`
	Unpriced int             `json:"unpriced,omitempty"` // calls of models without a price, counted at that of the report
	HitRate  *float64        `json:"hit_rate"`           // of the main chain; null when the log does not tell
	Models   []ModelCalls    `json:"models,omitempty"`
	TTL      time.Duration   `json:"-"` // of the cache that most writes went to
}

// ModelCalls are the calls of one model; "" are those that name none.
type ModelCalls struct {
	Model string `json:"model"`
	Calls int    `json:"calls"`
}

// Contents is what one reading of a log finds.
type Contents struct {
	Bytes     int64 // of the whole log
	LiveFrom  int64 // offset of the line of the last compaction; 0 when there is none
	LiveBytes int64 // from there on, line ends left out
	Lines     int64

	Composition Composition
	Live        Counts // of the live part
	All         Counts // of the log
	Side        int64  // lines of side chains
	Compactions []Compaction

	// Estimate is the size of the context by the estimator of papers/cmv §4.2: what the last call reported and a
	// quarter of the characters since; without a report a quarter of all and 20,000 for what stands before them.
	Estimate tidemark.Tokens
	// Context is that size by usage and Tidemark's own estimator, images by their pixels; Prefix what stands before
	// the messages, as the first calls of the log and behind each compaction tell; Weight the estimate of the messages alone, which is Context less Prefix on another scale.
	Context, Prefix, Weight tidemark.Tokens
	Measured                bool // Context is from usage
	// Same is the weight of the messages that stand before the first change.
	Same tidemark.Tokens

	Built       Built
	First, Last time.Time
	Session     string
	CWD         string
	Title       string
}
