package room

import (
	"context"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/paging"
)

// Recorder is a room that keeps a record of each call of the model.
type Recorder interface {
	// Record records a call, one that failed too.
	Record(ctx context.Context, c Sent) error
	// Usage is what the calls of a run cost, as far as the newest records tell.
	Usage(ctx context.Context, run string) (tidemark.Usage, error)
	// Pushed is how much was pushed beside the messages of the newest call, 0 where that was of another log, or failed.
	Pushed(ctx context.Context, log string) (tidemark.Tokens, error)
}

// Sent is a call of the model that was made.
type Sent struct {
	Seen        Seen
	Run         string
	Attempt     int  // from 1
	Compactions int  // of the conversation before it
	Pushed      bool // something stood beside the messages
	Last, Until int64
	Prompt      string // hash of a system text that is kept
	Request     tidemark.Request
	Call        tidemark.Call
	Failed      string // why it did
}

// Records is what a call is recorded with, and built again from.
type Records struct {
	// Base is what a system prompt begins with, before what the agent says.
	Base func() string
	// Keep returns what stores a text under its hash, once; Kept reads it, tidemark.ErrNotFound where it is gone.
	Keep func(hash, text string) tidemark.Stmt
	Kept func(ctx context.Context, hash string) (string, error)
	// AsOf gives the view of a log as it was when its newest entry had a position to use, while there is memory for it.
	AsOf func(ctx context.Context, log string, until int64, use func(compaction.View) error) error
	// Paged and Divided are what rooms say of a view, nil where there are none: see Pager and EpisodeReader.
	Paged   func(v compaction.View, again bool, since int64, before *paging.Account) *paging.Account
	Divided func(ctx context.Context, v Seen) *Divided
}
