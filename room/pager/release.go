package pager

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/internal/clip"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/paging"
	"github.com/tidemark-ai/tidemark/room"
)

// maxID bounds the id of an entry, in bytes, so that no other text is told back.
const maxID = 100

// ReleaseTool is how the model says that it is done with results. What it names leaves with the next batch: the pager
// reads the call from the history, so there is nothing to carry out.
var ReleaseTool = tidemark.Tool{
	Name: paging.ReleaseTool,
	Description: "Say which results, inputs or images of this conversation you are done with, by file or by handle: they leave the context soon, a short note stands for each, " +
		"and memory_fault, or recall with {\"entry\":\"HANDLE\"}, brings one back. Handles are told when the context fills up.",
	InputSchema: []byte(`{"type":"object","properties":{"paths":{"type":"array","items":{"type":"string"},"maxItems":64},"reason":{"type":"string"}},"required":["paths"]}`),
	Idempotent:  true,
}

// release answers a call of memory_release: which of what it names is something here. "handles" is what paths were
// called before there were any.
func (s *Room) release(ctx context.Context, c room.Call) tidemark.Block {
	var in struct {
		Handles []string `json:"handles"`
		Paths   []string `json:"paths"`
		Reason  string   `json:"reason"`
	}
	err := json.Unmarshal(c.Input, &in)
	in.Handles = append(in.Handles, in.Paths...) // in the order in which the pager reads them
	switch {
	case err != nil:
		err = fmt.Errorf("input: want {\"paths\":[\"FILE or HANDLE\"]}: %w", tidemark.ErrInvalid)
	case len(in.Handles) == 0:
		err = fmt.Errorf("paths: want at least one, a file or a handle such as recall takes for entry: %w", tidemark.ErrInvalid)
	}
	given := len(in.Handles)
	in.Handles = in.Handles[:min(given, paging.MaxHandles)] // as the pager reads them
	var v *room.Seen
	var known, unknown []string
	for _, h := range in.Handles {
		if err != nil {
			break
		}
		id, block := compaction.ReadHandle(h)
		there := false
		if len(h) <= maxID {
			there, err = s.hasBlock(ctx, id, block)
		}
		if !there && err == nil {
			there, err = s.hasPath(ctx, c.Log, &v, h)
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

// maxPath bounds a path that is looked for.
const maxPath = 4096

// hasPath reports whether calls in the view are of a file. The view is read for the first one that asks.
func (s *Room) hasPath(ctx context.Context, log string, v **room.Seen, file string) (bool, error) {
	p := s.strategy()
	if p == nil || len(file) > maxPath {
		return false, nil
	}
	if *v == nil {
		now, err := s.Seen(ctx, log)
		if err != nil {
			return false, err
		}
		*v = &now
	}
	return len(p.Copies((*v).View, s.Budget(), file)) > 0, nil
}

// hasBlock reports whether an entry of this conversation is a message with a block that can leave, or whether the one
// that is meant, from 0, can.
func (s *Room) hasBlock(ctx context.Context, id tidemark.EntryID, block int) (bool, error) {
	m, err := s.Entry(ctx, id)
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
