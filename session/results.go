package session

import (
	"context"
	"fmt"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
)

// Bounds of the result of a tool. What is logged is whole; what is shown of a long one is its beginning and end, by an
// overlay of the same transaction, and recall reads the rest by the id of the entry.
const (
	maxKept   = 8 << 20                // bytes of one result in the log; more is cut before it is kept
	maxResult = compaction.RecallBytes // bytes of its text that the model is shown
	maxMedia  = 4 << 20                // bytes of its images and documents that the model is shown

	maxShortened = 800 << 10 // bytes of all that is shown of the long results of a reply: their overlay is one row
)

// answering makes sure that a result answers its call and may be kept.
func answering(id string, b tidemark.Block, most int) tidemark.Block {
	if b.Type != tidemark.TypeToolResult || b.ToolUseID != id {
		return tidemark.ToolResult(id, "the tool gave no result", true)
	}
	raw := len(b.AppendJSON(nil))
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

// mostKept is how large each of some results may be: those of one reply stand in memory together, and a view bounds that.
func (s *Session) mostKept(calls int) int {
	const least = 64 << 10
	view := s.settings().ViewBytes
	return int(min(maxKept, view/4, max(least, view/int64(max(calls, 1)))))
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

// shortResult is a result as the model is shown it first; ok is false for one that is shown whole.
func shortResult(entry tidemark.EntryID, b tidemark.Block, most int) (out tidemark.Block, ok bool) {
	text, media, files := 0, 0, 0
	for _, c := range b.Content {
		if c.Type == tidemark.TypeText {
			text += len(c.Text)
			continue
		}
		media, files = media+len(c.AppendJSON(nil)), files+1
	}
	if text <= maxResult && media <= maxMedia {
		return b, false
	}
	if text <= most { // it is the images
		most = text
	}
	short, _ := compaction.Excerpt(resultWords(b), most*2/3, most/3, string(entry))
	if files > 0 { // an overlay is a row, which holds none
		short += fmt.Sprintf("\n[%d images or documents of this result are left out here. They stand in entry %s.]", files, entry)
	}
	return tidemark.ToolResult(b.ToolUseID, strings.TrimSpace(short), b.IsError), true
}

// shortenStmts have the long results of an entry read shortened from the beginning.
func (s *Session) shortenStmts(log string, e tidemark.Entry, results []tidemark.Block) ([]tidemark.Stmt, error) {
	o := tidemark.Overlay{By: []string{"session"}, Reason: "result"}
	most := min(maxResult*3/8, maxShortened/max(len(results), 1))
	for i, b := range results {
		if short, ok := shortResult(e.ID, b, most); ok {
			o.Edits = append(o.Edits, tidemark.Edit{From: e.ID, Block: i + 1, Blocks: []tidemark.Block{short}})
		}
	}
	if len(o.Edits) == 0 {
		return nil, nil
	}
	return s.log.AppendStmts(log, tidemark.Entry{ID: tidemark.EntryID(tidemark.NewID(e.At)), Kind: tidemark.KindOverlay, At: e.At,
		Payload: []byte(mustJSON(o)), Origin: tidemark.Origin{From: tidemark.FromSystem}})
}
