package room

import (
	"github.com/tidemark-ai/tidemark/cleanup"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/paging"
)

// Carrier is a room that carries out calls of tools that it does not offer any more: the view may name them still.
type Carrier interface{ Carries(name string) bool }

// Pager is a room that pages a conversation.
type Pager interface {
	// Advice is what the model is told beside a view that fills up, "" while there is room.
	Advice(v compaction.View) string
	// Paged says what paging did with the call that a view makes, nil where it is not in force. A call that is tried again
	// counts once. before is what was said of the call before, and since the position up to which its log was read: what left is
	// counted by the overlays since then, so that a long history which paging finds, as after an import, counts, too.
	Paged(v compaction.View, again bool, since int64, before *paging.Account) *paging.Account
}

// Tidier is a room that lets the model tidy its own context by what it writes between tags, see package cleanup.
type Tidier interface {
	// Cooperates reports whether that is carried out.
	Cooperates() bool
	// Tidy decides on the operations of a reply to a view; ok is false where nothing is in force that could.
	Tidy(v compaction.View, ops []cleanup.Op) (done compaction.Tidied, ok bool)
}
