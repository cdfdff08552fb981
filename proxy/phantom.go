package proxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/episodes"
	"github.com/tidemark-ai/tidemark/internal/clip"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/paging"
)

// phantom is the definition of a tool of ours, which the client never sees ("phantom tools", papers/pichay §3.7). It
// goes with every request that has tools, from the first on, since the list of tools begins the cached prefix.
func phantom(name string, marks bool) []byte {
	const (
		begin  = `"input_schema":{"type":"object","properties":{"paths":{"type":"array","items":{"type":"string"},"description":"`
		end    = `"}},"required":["paths"]}}`
		schema = begin + `Paths of files, or handles such as ABCDEFGHIJKLMNOP#0.` + end
	)
	switch {
	case name == episodes.ToolName:
		out := json.AppendString([]byte(`{"name":"`+episodes.ToolName+`","description":`), episodes.Description)
		return append(out, `,"input_schema":`+episodes.Schema+`}`...)
	case name == paging.ReleaseTool:
		return []byte(`{"name":"` + paging.ReleaseTool + `","description":"Tell the memory manager that you are done with files or tool results: they leave the context before their age, and stay readable by ` + paging.FaultTool + `.",` + schema)
	case marks:
		return []byte(`{"name":"` + paging.FaultTool + `","description":"Read back what left the context (\"[Evicted …]\"), as it was stored, without running the tools again. For a file that may have changed since, read the file.",` +
			begin + `Evicted episodes such as episode:NAME, paths of files, or handles such as ABCDEFGHIJKLMNOP#0.` + end)
	}
	return []byte(`{"name":"` + paging.FaultTool + `","description":"Read back what left the context (\"[Paged out: …]\"), as it was stored, without running the tool again. For a file that may have changed since, read the file.",` + schema)
}

// Bounds of what one call gives back.
const (
	maxGiven     = 512 << 10 // bytes
	maxNamed     = paging.MaxHandles
	shownName    = 200
	storedLayout = "2006-01-02 15:04:05 MST"
)

// answer carries out a call of one of our tools.
func (x *Exchange) answer(ctx context.Context, call tidemark.Block) tidemark.Block {
	var in struct {
		Paths   []string `json:"paths"`
		Handles []string `json:"handles"`
	}
	if err := json.Unmarshal(call.Input, &in); err != nil {
		return tidemark.ToolResult(call.ID, `want {"paths":["PATH or HANDLE"]}: `+oneLine(err.Error()), true)
	}
	names := append(in.Paths, in.Handles...)
	if len(names) == 0 || len(names) > maxNamed {
		return tidemark.ToolResult(call.ID, fmt.Sprintf(`%d names: want {"paths":["PATH or HANDLE"]} with 1 to %d`, len(names), maxNamed), true)
	}
	if call.Name == paging.ReleaseTool {
		return x.let(call.ID, names)
	}
	return x.giveBack(ctx, call.ID, names)
}

// let acknowledges a release. The pager reads the call itself with the next request, in which it stands.
func (x *Exchange) let(id string, names []string) tidemark.Block {
	x.c.mu.Lock()
	defer x.c.mu.Unlock()
	var known, unknown []string
	for _, name := range names {
		if x.pager() != nil && len(x.pager().Find(name)) > 0 {
			known = append(known, clipped(name))
		} else {
			unknown = append(unknown, clipped(name))
		}
	}
	var out []string
	if len(known) > 0 {
		out = append(out, "Released: "+strings.Join(known, ", ")+". They leave with the next batch; "+paging.FaultTool+" reads them back.")
	}
	if len(unknown) > 0 {
		out = append(out, "Not in this conversation: "+strings.Join(unknown, ", ")+".")
	}
	return tidemark.ToolResult(id, strings.Join(out, "\n"), len(known) == 0)
}

// pager is that of the exchange's track, nil while there is none. It is called with the lock held.
func (x *Exchange) pager() *paging.Pager {
	if x.track == nil {
		return nil
	}
	return x.track.pager
}

// given is what a name stands for.
type given struct {
	node  *node
	block int
	page  *paging.Page
}

// giveBack answers with stored copies, the newest of what a path names.
func (x *Exchange) giveBack(ctx context.Context, id string, names []string) tidemark.Block {
	var content []tidemark.Block
	found, left := 0, maxGiven
	for _, name := range names {
		if blocks, size, ok := x.recalled(ctx, name, left); ok {
			found, left = found+1, left-size
			content = append(content, blocks...)
			continue
		}
		list := x.named(name)
		if len(list) == 0 {
			content = append(content, tidemark.Text(clipped(name)+" is not in this conversation, or nothing of it left the context."))
		}
		for _, g := range list {
			handle := handleOf(g.node, g.block)
			if x.given[handle] {
				content, found = append(content, tidemark.Text(handle+" stands in an answer above.")), found+1
				continue
			}
			blocks, err := x.copyOf(ctx, g)
			if err != nil {
				content = append(content, tidemark.Text(clipped(name)+" cannot be read now: "+tell(err)+"."))
				continue
			}
			size := 0
			for _, b := range blocks {
				size += len(b.AppendJSON(nil))
			}
			if size > left {
				content = append(content, tidemark.Text(fmt.Sprintf("%s has %d bytes, more than one answer holds beside the rest; ask for it alone, or read the file in parts.", clipped(name), size)))
				continue
			}
			found, left = found+1, left-size
			x.given[handle] = true
			content = append(content, blocks...)
		}
	}
	return resultOf(id, content, found == 0)
}

// resultOf is a result of several blocks.
func resultOf(id string, content []tidemark.Block, failed bool) tidemark.Block {
	list := make([][]byte, len(content))
	for i, b := range content {
		list[i] = b.AppendJSON(nil)
	}
	end := ""
	if failed {
		end = `,"is_error":true`
	}
	var b tidemark.Block
	if err := json.Unmarshal(fmt.Appendf(nil, `{"type":"tool_result","tool_use_id":%s,"content":[%s]%s}`, json.AppendString(nil, id), bytes.Join(list, []byte{','}), end), &b); err != nil {
		return tidemark.ToolResult(id, "the stored copy cannot be shown", true)
	}
	return b
}

// named finds what a model means: a handle of this conversation, or what left of a path; of a path of which nothing
// left, its newest copy.
func (x *Exchange) named(name string) (out []given) {
	x.c.mu.Lock()
	defer x.c.mu.Unlock()
	if n, block, err := find(maps.Values(x.c.tree.nodes), name); err == nil && strings.Contains(name, "#") {
		return []given{{n, block, x.pageOf(n, block)}}
	}
	p := x.pager()
	if p == nil {
		return nil
	}
	pages := p.Gone(name)
	if len(pages) == 0 {
		if all := p.Find(name); len(all) > 0 {
			pages = all[len(all)-1:]
		}
	}
	path := x.path
	for _, g := range pages {
		if g.Message < len(path) {
			out = append(out, given{path[g.Message], g.Block, g})
		}
	}
	return out
}

// pageOf is the page of a block, nil where it is none.
func (x *Exchange) pageOf(n *node, block int) *paging.Page {
	if p := x.pager(); p != nil && n.depth <= len(x.path) && x.path[n.depth-1] == n {
		for _, g := range p.Find(handleOf(n, block)) {
			return g
		}
	}
	return nil
}

// copyOf is a stored block with the line that says what it is. Where the file was changed later that stands first.
func (x *Exchange) copyOf(ctx context.Context, g given) ([]tidemark.Block, error) {
	b, err := x.original(ctx, g)
	if err != nil {
		return nil, err
	}
	what, path := b.Type, ""
	if g.page != nil && g.page.Call.Tool != "" {
		what, path = g.page.Call.Tool, g.page.Call.Path
	}
	head := fmt.Sprintf("%s (%s, stored %s):", handleOf(g.node, g.block), strings.TrimSpace(clipped(what)+" "+clipped(path)), g.node.at.UTC().Format(storedLayout))
	if tool, at := x.changedSince(g, path); tool != "" {
		head = fmt.Sprintf("%s was changed after this copy was stored (%s, %s): read the file for what it holds now. The copy:\n%s", clipped(path), tool, at.UTC().Format(storedLayout), head)
	}
	out := []tidemark.Block{tidemark.Text(head)}
	switch b.Type {
	case tidemark.TypeToolResult:
		out = append(out, b.Content...)
	case tidemark.TypeToolUse:
		out = append(out, tidemark.Text(string(b.Input)))
	case tidemark.TypeText, tidemark.TypeImage, tidemark.TypeDocument:
		out = append(out, b)
	default:
		out = append(out, tidemark.Text(string(b.AppendJSON(nil))))
	}
	return slices.DeleteFunc(out, func(b tidemark.Block) bool { return b.Type == tidemark.TypeText && b.Text == "" }), nil
}

// original is a block as the client sent it: of this request, or else of the log.
func (x *Exchange) original(ctx context.Context, g given) (b tidemark.Block, err error) {
	if i := g.node.depth - 1; i < len(x.path) && x.path[i] == g.node {
		it := x.req.Items[i]
		var raw []byte
		if at, ok := x.at(i, g.block); ok {
			raw = it.Block(at)
		} else if extra := g.node.extra(); g.block >= len(g.node.form) && g.block-len(g.node.form) < len(extra) {
			raw = extra[g.block-len(g.node.form)]
		}
		if raw != nil {
			err = json.Unmarshal(raw, &b)
			return b, err
		}
	}
	m, err := x.c.message(ctx, g.node.id)
	if err != nil {
		return b, err
	}
	if g.block >= len(m.Content) {
		return b, fmt.Errorf("block %d: %w", g.block, tidemark.ErrNotFound)
	}
	return m.Content[g.block], nil
}

// changedSince finds the newest call behind a copy that changed its file. One that failed changed nothing.
func (x *Exchange) changedSince(g given, path string) (tool string, at time.Time) {
	if path == "" {
		return "", at
	}
	x.c.mu.Lock()
	defer x.c.mu.Unlock()
	failed := map[string]bool{}
	for i := len(x.path) - 1; i >= 0 && x.path[i].depth > g.node.depth; i-- {
		for _, b := range x.path[i].msg.Blocks {
			if b.Err {
				failed[b.ID] = true
			}
			if b.Call.Kind == paging.Changes && !failed[b.ID] && (b.Call.Path == path || slices.Contains(b.Call.More, path)) {
				return clipped(b.Call.Tool), x.path[i].at
			}
		}
	}
	return "", at
}

// tell is an error for a model.
func tell(err error) string {
	if errors.Is(err, tidemark.ErrNotFound) {
		return "it was not found"
	}
	return "the store does not answer"
}

// clipped is a name on one line.
func clipped(s string) string {
	return clip.To(oneLine(s), shownName)
}

func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, s)
}
