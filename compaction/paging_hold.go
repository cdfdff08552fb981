package compaction

import (
	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/paging"
)

// RecallBytes bounds what recall gives back in one piece, as JSON: images and documents, which have no pages as text
// has.
const RecallBytes = 256 << 10

// recallFrame is what the result of recall has beside them: its fields, and the id of its call.
const recallFrame = 1 << 10

// Recallable reports whether recall can give a block of a message back: text at any size, since it goes in pieces,
// and the images and documents that the result of a tool may hold, up to [RecallBytes]
// (platform.claude.com/docs/en/agents-and-tools/tool-use/handle-tool-calls).
func Recallable(b tidemark.Block) bool {
	parts := b.Content
	switch b.Type {
	case tidemark.TypeText, tidemark.TypeToolUse:
		return true
	case tidemark.TypeToolResult:
	default:
		parts = []tidemark.Block{b}
	}
	size, media := recallFrame, false
	for i := range parts {
		switch parts[i].Type {
		case tidemark.TypeText:
			size += len(parts[i].Text)
		case tidemark.TypeImage, tidemark.TypeDocument:
			if media = true; parts[i].Source != nil {
				size += parts[i].Source.Bytes
			}
		default:
			return false
		}
	}
	if !media {
		return true
	}
	if size <= RecallBytes { // of what is surely too large nothing is written
		size = recallFrame + len(b.AppendJSON(nil))
	}
	return size <= RecallBytes
}

// stays reports whether a page whose block stands in the view cannot leave it: recall could not give it back, or the
// stub, which names the way back, would be no shorter. A pager measures stubs without that name, as a replay does, and
// would take such a page to be gone.
func (h *paged) stays(it *Item, g *paging.Page) bool {
	at := h.standing(g)
	if at < 0 {
		return true
	}
	b := it.Message.Content[at]
	return !Recallable(b) || !h.scan.Shorter(b, g, sayHandle(Handle(it.ID, h.block(g))))
}
