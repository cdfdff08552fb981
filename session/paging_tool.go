package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/clip"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/paging"
)

// releaseTool is how the model says that it is done with results. What it names leaves with the next batch: the pager
// reads the call from the history, so there is nothing to carry out.
var releaseTool = tidemark.Tool{
	Name: paging.ReleaseTool,
	Description: "Say which results, inputs or images of this conversation you are done with, by file or by handle: they leave the context soon, a short note stands for each, " +
		"and memory_fault, or recall with {\"entry\":\"HANDLE\"}, brings one back. Handles are told when the context fills up.",
	InputSchema: []byte(`{"type":"object","properties":{"paths":{"type":"array","items":{"type":"string"},"maxItems":64},"reason":{"type":"string"}},"required":["paths"]}`),
	Idempotent:  true,
}

// callRelease answers a call of memory_release: which of what it names is something here. "handles" is what paths were
// called before there were any.
func (s *Session) callRelease(ctx context.Context, r *run, c call) tidemark.Block {
	var in struct {
		Handles []string `json:"handles"`
		Paths   []string `json:"paths"`
		Reason  string   `json:"reason"`
	}
	err := json.Unmarshal(c.Block.Input, &in)
	in.Handles = append(in.Handles, in.Paths...) // in the order in which the pager reads them
	switch {
	case err != nil:
		err = fmt.Errorf("input: want {\"paths\":[\"FILE or HANDLE\"]}: %w", tidemark.ErrInvalid)
	case len(in.Handles) == 0:
		err = fmt.Errorf("paths: want at least one, a file or a handle such as recall takes for entry: %w", tidemark.ErrInvalid)
	}
	given := len(in.Handles)
	in.Handles = in.Handles[:min(given, paging.MaxHandles)] // as the pager reads them
	var v *View
	var known, unknown []string
	for _, h := range in.Handles {
		if err != nil {
			break
		}
		id, block := readBlockID(h)
		there := false
		if len(h) <= maxID {
			there, err = s.hasBlock(ctx, id, block)
		}
		if !there && err == nil {
			there, err = s.hasPath(ctx, r, &v, h)
		}
		if there {
			known = append(known, h)
		} else {
			unknown = append(unknown, clip.Line(h, faultedName))
		}
	}
	if err != nil {
		return tidemark.ToolResult(c.ID, err.Error(), true)
	}
	var lines []string
	if len(known) > 0 {
		lines = append(lines, "Released, they leave with the next batch: "+strings.Join(known, ", ")+".")
	}
	if len(unknown) > 0 {
		lines = append(lines, "Not known here: "+strings.Join(unknown, ", ")+".")
	}
	if given > paging.MaxHandles {
		lines = append(lines, fmt.Sprintf("%d are given, of which the first %d count: name the others in another call.", given, paging.MaxHandles))
	}
	return tidemark.ToolResult(c.ID, strings.Join(lines, " "), len(known) == 0)
}

// hasPath reports whether calls in the view are of a file. The view is read for the first one that asks.
func (s *Session) hasPath(ctx context.Context, r *run, v **View, file string) (bool, error) {
	t := s.tidier()
	if t == nil || len(file) > maxFaultPath {
		return false, nil
	}
	if *v == nil {
		now, err := s.view(ctx, r.Log)
		if err != nil {
			return false, err
		}
		*v = &now
	}
	return len(t.Copies((*v).View, s.Budget(), file)) > 0, nil
}

// hasBlock reports whether an entry of this conversation is a message with a block that can leave, or whether the one
// that is meant, from 0, can.
func (s *Session) hasBlock(ctx context.Context, id tidemark.EntryID, block int) (bool, error) {
	seqs, err := s.log.Seqs(ctx, []tidemark.EntryID{id})
	if err != nil || len(seqs) == 0 {
		return false, err
	}
	m, err := s.entry(ctx, id)
	if errors.Is(err, tidemark.ErrNotFound) {
		return false, nil
	}
	if err != nil || block >= len(m.Content) {
		return false, err
	}
	if block >= 0 {
		m.Content = m.Content[block : block+1]
	}
	return slices.ContainsFunc(m.Content, func(b tidemark.Block) bool {
		switch b.Type {
		case tidemark.TypeToolResult, tidemark.TypeToolUse, tidemark.TypeImage, tidemark.TypeDocument:
			return true
		}
		return false
	}), nil
}

// readBlockID reads how a stub names an entry, or a block of it from 0: "ID" or "ID#3". block is -1 for none.
func readBlockID(handle string) (id tidemark.EntryID, block int) {
	if name, number, ok := strings.Cut(handle, "#"); ok {
		if n, err := strconv.Atoi(number); err == nil && n >= 0 {
			return tidemark.EntryID(name), n
		}
	}
	return tidemark.EntryID(handle), -1
}

// entry returns a message of this conversation whole.
func (s *Session) entry(ctx context.Context, id tidemark.EntryID) (tidemark.Message, error) {
	e, err := s.log.Entry(ctx, id)
	if err != nil {
		return tidemark.Message{}, err
	}
	ours, err := s.reaches(ctx, e)
	if err != nil || !ours || e.Kind != tidemark.KindMessage {
		return tidemark.Message{}, errors.Join(err, fmt.Errorf("entry %s: %w", id, tidemark.ErrNotFound)) // of another conversation
	}
	return s.blocks.Message(ctx, e)
}

// blockOf returns what is in one block of an entry: the text of a result, the input of a call as JSON, and images and
// documents as such.
func (s *Session) blockOf(ctx context.Context, id tidemark.EntryID, block int) (text string, media []tidemark.Block, err error) {
	m, err := s.entry(ctx, id)
	if err != nil {
		return "", nil, err
	}
	if block >= len(m.Content) {
		return "", nil, fmt.Errorf("entry %s#%d: it has %d blocks, counted from 0: %w", id, block, len(m.Content), tidemark.ErrInvalid)
	}
	b := m.Content[block]
	switch b.Type {
	case tidemark.TypeToolUse:
		text = string(b.Input)
	case tidemark.TypeToolResult:
		for _, c := range b.Content {
			if c.Type == tidemark.TypeText {
				text += c.Text
			} else {
				media = append(media, c)
			}
		}
	case tidemark.TypeText:
		text = b.Text
	default:
		media = []tidemark.Block{b}
	}
	return text, media, nil
}

// readBlock answers a call that asks for one block of an entry, which a stub named: to the byte, in pages.
func (s *Session) readBlock(ctx context.Context, call string, id tidemark.EntryID, block, offset int) (tidemark.Block, error) {
	text, media, err := s.blockOf(ctx, id, block)
	if err != nil {
		return tidemark.Block{}, err
	}
	if offset < 0 || offset > len(text) {
		return tidemark.Block{}, fmt.Errorf("offset %d: the block has %d bytes: %w", offset, len(text), tidemark.ErrInvalid)
	}
	left := ""
	if len(media) > 0 && offset == 0 {
		out, err := withMedia(call, text, media)
		if err == nil || text == "" || !errors.Is(err, tidemark.ErrTooLarge) {
			return out, err
		}
		left = fmt.Sprintf("\n[What else is in it, %d images or documents, is too large to be brought back: ask the person to send it again.]", len(media))
	}
	page := text[offset:min(offset+toolPage, len(text))]
	if end := offset + len(page); end < len(text) {
		page = wholeRunes(page)
		end = offset + len(page)
		page += fmt.Sprintf("\n[%d of %d bytes; go on with offset %d]", len(page), len(text), end)
	}
	return tidemark.ToolResult(call, page+left, false), nil
}

// withMedia is a result that brings images and documents back as they were.
func withMedia(call, text string, media []tidemark.Block) (tidemark.Block, error) {
	content := media
	if text != "" {
		content = append([]tidemark.Block{tidemark.Text(strings.ToValidUTF8(text, string(utf8.RuneError)))}, media...)
	}
	for _, b := range media {
		if b.Type != tidemark.TypeImage && b.Type != tidemark.TypeDocument {
			return tidemark.Block{}, fmt.Errorf("a block of type %.40s is no result of a tool; a person can read the entry: %w", b.Type, tidemark.ErrInvalid)
		}
	}
	out := tidemark.Block{Type: tidemark.TypeToolResult, ToolUseID: call, Content: content}
	if n := len(out.AppendJSON(nil)); n > maxResult {
		return tidemark.Block{}, fmt.Errorf("the block has %d bytes, at most %d are brought back: ask the person to send it again: %w", n, maxResult, tidemark.ErrTooLarge)
	}
	return out, nil
}
