package pager

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/internal/clip"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/paging"
	"github.com/tidemark-ai/tidemark/room"
)

// FaultTool brings back what left the context as it was stored, by the name of the file.
var FaultTool = tidemark.Tool{
	Name: paging.FaultTool,
	Description: "Read back what left the context, as it was stored, by file or by handle, without running the tool again. " +
		"It says if the file was changed since.",
	InputSchema: []byte(`{"type":"object","properties":{"paths":{"type":"array","items":{"type":"string"},"maxItems":64}},"required":["paths"]}`),
	Idempotent:  true,
}

// Bounds of what it answers.
const (
	faultBytes  = 2 * room.ToolPage // of all texts together
	faultCopies = 8
	faultScan   = 4000 // later messages that are looked at for changes of a file
)

// fault answers a call of memory_fault.
func (s *Room) fault(ctx context.Context, c room.Call) tidemark.Block {
	var in struct {
		Paths []string `json:"paths"`
	}
	err := json.Unmarshal(c.Input, &in)
	if err != nil || len(in.Paths) == 0 {
		err = fmt.Errorf("input: want {\"paths\":[\"FILE or HANDLE\"]}: %w", errors.Join(err, tidemark.ErrInvalid))
	} else {
		err = c.May(ctx, false)
	}
	var v room.Seen
	if err == nil {
		v, err = s.Seen(ctx, c.Log)
	}
	if err != nil {
		return tidemark.ToolResult(c.ID, err.Error(), true)
	}
	out := faulted{left: faultBytes}
	for _, name := range in.Paths[:min(len(in.Paths), paging.MaxHandles)] {
		if err := s.faultOne(ctx, v, name, &out); err != nil {
			return tidemark.ToolResult(c.ID, err.Error(), true)
		}
	}
	if n := len(in.Paths) - paging.MaxHandles; n > 0 {
		out.say(fmt.Sprintf("%d more are given: name them in another call.", n))
	}
	return out.result(c.ID)
}

// faulted is an answer in the making.
type faulted struct {
	content []tidemark.Block
	left    int // bytes that are left
	copies  int
	media   int // bytes of images and documents
}

func (f *faulted) say(text string) {
	if n := len(f.content); n > 0 && f.content[n-1].Type == tidemark.TypeText {
		f.content[n-1] = tidemark.Text(f.content[n-1].Text + "\n\n" + text)
		return
	}
	f.content = append(f.content, tidemark.Text(text))
}

func (f *faulted) result(call string) tidemark.Block {
	if len(f.content) == 1 {
		return tidemark.ToolResult(call, f.content[0].Text, f.copies == 0)
	}
	return tidemark.Block{Type: tidemark.TypeToolResult, ToolUseID: call, Content: f.content, IsError: f.copies == 0}
}

// faultOne adds what the log has of one name.
func (s *Room) faultOne(ctx context.Context, v room.Seen, name string, out *faulted) error {
	copies, err := s.copies(ctx, v, name)
	if err != nil {
		return err
	}
	shown := clip.Line(name, maxTold)
	if len(copies) == 0 {
		out.say(fmt.Sprintf("%s: nothing of that name left the context. Read the file, or recall with a query.", shown))
		return nil
	}
	for _, k := range copies {
		handle := compaction.Handle(k.Entry, k.Block)
		if out.copies == faultCopies || out.left < 1000 {
			out.say(fmt.Sprintf("%s (%s): no room left in this answer, ask for it alone.", shown, handle))
			continue
		}
		if err := s.faultCopy(ctx, v.Log, shown, k, out); err != nil {
			if ctx.Err() != nil {
				return err
			}
			out.say(fmt.Sprintf("%s (%s): %s", shown, handle, err))
		}
	}
	return nil
}

// maxTold bounds a name that is told back.
const maxTold = 200

// copies are what a handle names, or what of a path is out of the view, else its newest copy.
func (s *Room) copies(ctx context.Context, v room.Seen, name string) ([]compaction.Copy, error) {
	if len(name) <= maxID {
		id, block := compaction.ReadHandle(strings.TrimPrefix(name, "block:"))
		m, err := s.Entry(ctx, id)
		if err != nil && !errors.Is(err, tidemark.ErrNotFound) {
			return nil, err
		}
		if err == nil && block < len(m.Content) {
			e, err := s.Log.Entry(ctx, id)
			if err != nil {
				return nil, err
			}
			var out []compaction.Copy
			for n := range m.Content {
				if block < 0 || n == block {
					out = append(out, compaction.Copy{Entry: id, Block: n, Seq: e.Seq, At: e.At, Path: s.fileOf(v, m.Content[n]), Out: true})
				}
			}
			return out, nil
		}
	}
	p := s.strategy()
	if p == nil || name == "" || len(name) > maxPath {
		return nil, nil
	}
	return p.Copies(v.View, s.Budget(), name), nil
}

// fileOf returns the file that a call, or the call of a result, names.
func (s *Room) fileOf(v room.Seen, b tidemark.Block) string {
	id := b.ID
	if b.Type == tidemark.TypeToolResult {
		id = b.ToolUseID
	}
	p := s.strategy()
	if id == "" || p == nil {
		return ""
	}
	for i := range v.Items {
		for _, c := range v.Items[i].Message.Content {
			if c.Type == tidemark.TypeToolUse && c.ID == id {
				files, _ := p.Path(c)
				return files[0]
			}
		}
	}
	return ""
}

// faultCopy adds one copy: first whether it is old, then when it was stored, then what it is.
func (s *Room) faultCopy(ctx context.Context, log, name string, k compaction.Copy, out *faulted) error {
	m, err := s.Entry(ctx, k.Entry)
	if err != nil {
		return err
	}
	text, media, err := compaction.BlockOf(k.Entry, m, k.Block)
	if err == nil {
		_, err = compaction.WithMedia("", "", media)
	}
	if err != nil {
		return err
	}
	var head string
	if k.Path != "" {
		later, whole, err := s.changedSince(ctx, log, k.Path, k.Seq)
		if err != nil {
			return err
		}
		switch {
		case later != "":
			head = fmt.Sprintf("OUT OF DATE: %s was changed after this copy was stored (%s). Read the file for what it is now.\n", clip.Line(k.Path, maxTold), later)
		case !whole:
			head = fmt.Sprintf("Perhaps out of date: much happened since, and only %d later messages were looked at.\n", faultScan)
		}
	}
	head += fmt.Sprintf("%s (%s), stored %s", name, compaction.Handle(k.Entry, k.Block), k.At.In(s.Zone()).Format("2006-01-02 15:04:05 MST"))
	if !k.Out {
		head += "; it is in the context still"
	}
	if most := min(out.left, room.ToolPage); len(text) > most {
		page := clip.Runes(text[:most])
		text = page + fmt.Sprintf("\n[%d of %d bytes; recall with {\"entry\": %q, \"offset\": %d} reads on]", len(page), len(text), compaction.Handle(k.Entry, k.Block), len(page))
	}
	size := 0
	for _, m := range media {
		size += len(m.AppendJSON(nil))
	}
	if out.media += size; size > 0 && out.media > compaction.RecallBytes/2 {
		return fmt.Errorf("its images have no room beside the others, ask for it alone: %w", tidemark.ErrTooLarge)
	}
	out.say(head + ":\n" + text)
	out.content = append(out.content, media...)
	out.left -= len(text)
	out.copies++
	return nil
}

// changedSince says which call changed a file behind a position of the log; whole is false when not all of it was
// looked at.
func (s *Room) changedSince(ctx context.Context, log, file string, seq int64) (by string, whole bool, err error) {
	p := s.strategy()
	if p == nil {
		return "", true, nil
	}
	n := 0
	for e, err := range s.Messages(ctx, log, host.Range{From: seq + 1, To: host.LogEnd}) {
		if err != nil {
			return "", false, err
		}
		if n++; n > faultScan {
			return by, by != "", nil
		}
		m, err := e.Message()
		if err != nil {
			return "", false, err
		}
		for _, b := range m.Content {
			if b.Type != tidemark.TypeToolUse {
				continue
			}
			files, changes := p.Path(b)
			if changes && slices.Contains(files, path.Clean(file)) {
				by = fmt.Sprintf("%s at %s", clip.Line(b.Name, faultedName), e.At.In(s.Zone()).Format("2006-01-02 15:04:05 MST"))
			}
		}
	}
	return by, true, nil
}
