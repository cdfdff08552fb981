package session

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/tidemark-ai/tidemark"
)

// maxKept is how many bytes the result of a tool may have; more is cut before it is kept. What is kept reaches the model
// whole where the window has room for it.
const maxKept = 8 << 20

// answering makes sure that a result answers its call and may be kept, of which a reply has so much room left.
func answering(id string, b tidemark.Block, left *roundRoom) tidemark.Block {
	if b.Type != tidemark.TypeToolResult || b.ToolUseID != id {
		return tidemark.ToolResult(id, "the tool gave no result", true)
	}
	raw := len(b.AppendJSON(nil))
	most := left.take(raw)
	if raw <= most {
		return b
	}
	text := resultWords(b)
	if len(text) <= most/2 { // it is the images
		return tidemark.ToolResult(id, fmt.Sprintf("%s\n[The result has %d bytes, and at most %d are kept: its images and documents are left out.]", text, raw, most), b.IsError)
	}
	head, tail := most/8, most/16
	return tidemark.ToolResult(id, fmt.Sprintf("[The result had %d bytes: %d of its middle are left out and kept nowhere. Ask the tool for less.]\n%s\n[…]\n%s",
		len(text), len(text)-head-tail, strings.ToValidUTF8(text[:head], ""), strings.ToValidUTF8(text[len(text)-tail:], "")), b.IsError)
}

// resultWords is the text of a result.
func resultWords(b tidemark.Block) string {
	var out strings.Builder
	for _, c := range b.Content {
		out.WriteString(c.Text)
	}
	return out.String()
}

// roundRoom is how many bytes of results a round of calls may keep still: they stand in a view together, and half of what that
// may weigh is left for the rest.
type roundRoom struct {
	most int64 // of one
	left atomic.Int64
}

// roomOf is the room of a round of which some results are kept already.
func roomOf(view int64, calls []call) *roundRoom {
	r := &roundRoom{most: min(maxKept, view/4)}
	r.left.Store(view / 2)
	for _, c := range calls {
		if c.State == callDone {
			r.left.Add(-int64(len(c.Result.AppendJSON(nil))))
		}
	}
	return r
}

// take returns how much of a result is kept: all of it where there is room. A little has room always.
func (r *roundRoom) take(bytes int) int {
	const least = 32 << 10
	left := r.left.Add(-int64(bytes)) + int64(bytes)
	most := min(r.most, max(least, left))
	if most < int64(bytes) {
		r.left.Add(int64(bytes) - most)
	}
	return int(most)
}

// keepResult is the form in which a result stands in the table of calls: a large one stands in the bucket.
func (s *Session) keepResult(ctx context.Context, b tidemark.Block) (string, error) {
	m, err := s.blocks.Spill(ctx, tidemark.Message{Role: tidemark.User, Content: []tidemark.Block{b}})
	if err != nil {
		return "", fmt.Errorf("store result of %s: %w", b.ToolUseID, err)
	}
	return string(m.Content[0].AppendJSON(nil)), nil
}

// keptResult is what keepResult kept. One that is lost is said to be.
func (s *Session) keptResult(ctx context.Context, b tidemark.Block) (tidemark.Block, error) {
	stored := tidemark.Message{Role: tidemark.User, Content: []tidemark.Block{b}}
	m, err := s.blocks.Read(ctx, stored)
	if err != nil {
		return b, err
	}
	m, _ = s.blocks.Noted(stored, m, "the result of "+b.ToolUseID)
	return m.Content[0], nil
}
