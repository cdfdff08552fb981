package room

import (
	"context"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/blocks"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/memory"
	"github.com/tidemark-ai/tidemark/recall"
)

// Finding is what it takes to find what was said again; see room/search.
type Finding struct {
	Stemmer *recall.Stemmer // makes the words of the index
	// Lineage returns what may be looked into; own leaves out what the logs continue.
	Lineage func(ctx context.Context, own bool) (*host.Lineage, error)
	// Task is what the conversation works on, see Marker, and Near what another room finds, see Finder.
	Task func(ctx context.Context) (recall.Task, error)
	Near func(ctx context.Context, query string, in *host.Lineage) (near map[int64]recall.Stand, told string)
	// Far and Episodes find the rooms that read messages of other conversations, and episodes; ok is false for none.
	Far      func() (r Reader, ok bool)
	Episodes func() (r EpisodeReader, ok bool)
	// Recalled tells who listens how a recall went, see Recaller.
	Recalled func(ctx context.Context, by string, v recall.Verdict, first tidemark.EntryID)
	// Gate decides which turns are left out; nil for none.
	Gate func() memory.Gate
	// Stored reads messages of entries without what is large of them.
	Stored func(entries []tidemark.Entry) ([]blocks.Message, error)
}

// Retriever is a room that finds what left the view and fits what is said in a log at a position. It returns what it can
// rely on, best first, as the model reads it; hidden says of a find whether it is not in view.
type Retriever interface {
	Retrieve(ctx context.Context, log, query string, before int64, hidden func(id tidemark.EntryID, text string, amended bool) bool) ([]string, error)
}

// Indexer is a room that has the words of messages.
type Indexer interface {
	// IndexStmts returns what puts a message into the index, in the transaction that logs it.
	IndexStmts(ctx context.Context, e tidemark.Entry, m tidemark.Message) ([]tidemark.Stmt, error)
	// Came is called when messages are there that came with an archive, behind what has DueIndex due.
	Came()
	// Check looks for an entry that is logged, and puts right what is wrong with its row. fault says how it is not found.
	Check(ctx context.Context, e tidemark.Entry, m tidemark.Message) (checks, repaired int, fault string, err error)
	// Texts gives those of some messages to use that are found, each with its text or the beginning of a long one.
	Texts(ctx context.Context, seqs []int64, use func(e tidemark.Entry, text string)) error
}

// Amender is a room that knows what messages read now that their authors amended.
type Amender interface {
	// AmendStmts returns what has a message read so from now on, and Amended is called when it is written.
	AmendStmts(ctx context.Context, e tidemark.Entry, now string) ([]tidemark.Stmt, error)
	Amended()
	// Reads returns what some entries read now, of those that were amended.
	Reads(ctx context.Context, ids []tidemark.EntryID) (map[tidemark.EntryID]Now, error)
}

// Now is what a message reads now; Gone says that it was taken back.
type Now struct {
	Text string
	Gone bool
}

// TakenBack stands where a person took a message back: what follows it still answers something.
const TakenBack = "[The person took this message back.]"

// Skipper is a room that may leave turns out of what is found, each as a whole.
type Skipper interface {
	// HoldStmts returns what has the words of a turn that begins wait for its end, and Again goes on waiting in one that an
	// earlier life began.
	HoldStmts(ctx context.Context, run, log string) ([]tidemark.Stmt, error)
	Again(ctx context.Context, run string) error
	// DecideStmts decide on a turn that ends with a reply, in the transaction that ends it.
	DecideStmts(ctx context.Context, run, log string, reply tidemark.Entry) ([]tidemark.Stmt, error)
	// EndWait ends the waiting in memory, and Ended settles what was decided.
	EndWait(run string)
	Ended(ctx context.Context, run string)
}

// Leaver is a room that leaves messages out of what is found.
type Leaver interface {
	// Skipped returns which messages between two positions are left out, and Count how many are in all.
	Skipped(ctx context.Context, first, last int64) (map[int64]bool, error)
	Count(ctx context.Context) (int, error)
	// Settled is the position up to which that is decided.
	Settled(ctx context.Context) (int64, error)
}

// DueIndex is the kind of work that makes the index of what was logged before there was one; its data is the position
// from which on it is there.
const DueIndex = "index"

// RecallTool is the name of the tool of room/search: what it answers stands in the log already.
const RecallTool = "recall"
