// Package snapshot holds what a snapshot of a conversation is: its place in the tree of all snapshots and branches, how
// the tree is drawn, and the file that carries a snapshot with its lineage to another machine (papers/cmv §2). Where
// snapshots are kept is for packages session and claude, trimming for package trim. Begin with [Node].
//
// A node is known by its id, a name is a label. Any set of nodes gives a tree, with lost parents and circles reported and
// not followed. Memory of a file that is read or written is bounded.
package snapshot

import (
	"time"

	"github.com/tidemark-ai/tidemark"
)

// Kinds of nodes.
const (
	KindSnapshot = "snapshot"
	KindBranch   = "branch" // a session that began at a snapshot
)

// Where the conversation of a node is kept.
const (
	OfSession = "session" // of Tidemark
	OfClaude  = "claude"  // a session log of Claude Code
)

// Node is a snapshot, or a branch that was made of one.
type Node struct {
	ID      string `json:"id"`
	Kind    string `json:"kind"`    // snapshot or branch
	Of      string `json:"of"`      // session or claude
	Name    string `json:"name"`    // a label; two may have the same
	Session string `json:"session"` // key or id of the session: for a snapshot the one it is of, for a branch its own
	// Parent is the snapshot that a branch was made of; for a snapshot, the one that its session was branched from. ""
	// for a root.
	Parent      string          `json:"parent,omitempty"`
	Description string          `json:"description,omitempty"`
	Tags        []string        `json:"tags,omitempty"`
	Created     time.Time       `json:"created_at"`
	Messages    int             `json:"message_count"`     // from the beginning on, also those that a compaction took from the model
	Tokens      tidemark.Tokens `json:"tokens,omitempty"`  // of the context there, system prompt and tools too: as last reported, else estimated
	Hash        tidemark.Hash   `json:"hash,omitempty"`    // of the content: the chain of a session, or SHA-256 of a log
	Trimmed     bool            `json:"trimmed,omitempty"` // of a branch
	Gone        bool            `json:"gone,omitempty"`    // it was removed: what a session tells its agent, in no list
}

// Bounds of what people say of a snapshot.
const (
	MaxName        = 100 // characters
	MaxDescription = 2000
	MaxTags        = 20
	MaxTag         = 50
)
