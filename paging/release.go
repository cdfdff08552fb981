package paging

import (
	"cmp"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/internal/near"
)

// The tools with which a model takes part: it lets pages go, and has them back.
const (
	ReleaseTool = "memory_release" // {"paths":["PATH or HANDLE",…]}, or {"handles":["HANDLE",…],"reason":"…"}
	FaultTool   = "memory_fault"   // {"paths":["PATH or HANDLE",…]}
	RecallTool  = "recall"         // {"entry":"HANDLE"}; its other uses are none of paging's
)

// MaxHandles bounds what one call names; what stands behind is not read.
const MaxHandles = 64

// A longer one, in bytes, names nothing.
const (
	maxHandle = 200
	maxPath   = 4096 // PATH_MAX of Linux
)

var plainRelease, plainFault, plainRecall = near.Plain(ReleaseTool), near.Plain(FaultTool), near.Plain(RecallTool)

// cooperate reads what a call names with which the model takes part, also where the tool is that of an MCP
// server. What is not of the form that the tools ask for names nothing.
func (c *Call) cooperate(name string, input []byte) {
	if strings.HasPrefix(name, "mcp__") {
		name = name[strings.LastIndex(name, "__")+2:]
	}
	switch near.Plain(name) {
	case plainRelease:
		f := fields(input)
		c.Release = append(handles(f.get("handles"), maxHandle), handles(f.get("paths"), maxPath)...)
		c.Release = c.Release[:min(len(c.Release), MaxHandles)]
	case plainFault:
		c.Wants = handles(fields(input).get("paths"), maxPath)
	case plainRecall:
		if entry := handles(fields(input).get("entry"), maxHandle); len(entry) == 1 {
			c.Recall = entry[0]
		}
	}
}

// cooperates reports whether a call is one with which the model takes part.
func (c *Call) cooperates() bool { return len(c.Release)+len(c.Wants) > 0 }

// handles reads a name or a list of some, of at most so many bytes each.
func handles(raw []byte, most int) (out []string) {
	c := over(raw)
	take := func() {
		if text, _ := json.AppendText(nil, c.String()); len(text) > 0 && len(text) <= most {
			out = append(out, bounded(string(text)))
		}
	}
	if c.Peek() == '"' {
		take()
		return out
	}
	if !c.Open('[') {
		return nil
	}
	for c.More() && len(out) < MaxHandles {
		if c.Peek() == '"' {
			take()
		} else {
			c.Skip()
		}
	}
	return out
}

// name notes under which name the newest message is known to the model.
func (h *history) name(handle string) {
	if handle == "" {
		return
	}
	put(h, h.byHandle, handle, len(h.messages)-1)
}

// put changes a map so that [Pager.cut] can take it back.
func put[K comparable, V any](h *history, m map[K]V, k K, v V) {
	old, had := m[k]
	h.undo = append(h.undo, func() {
		if m[k] = old; !had {
			delete(m, k)
		}
	})
	m[k] = v
}

// find returns what a handle names, and none for one that is not known: a message by [Message.Handle], a block of it
// behind "#", counted from 0. In a history whose messages have none the id of a call names its newest result.
func (h *history) find(handle string) []*Page {
	if m, ok := h.byHandle[handle]; ok {
		return h.within(m)
	}
	if at := strings.LastIndexByte(handle, '#'); at > 0 {
		n, err := strconv.Atoi(handle[at+1:])
		if m, ok := h.byHandle[handle[:at]]; ok && err == nil {
			pages := h.within(m)
			i, found := slices.BinarySearchFunc(pages, n, func(g *Page, n int) int { return cmp.Compare(g.Block, n) })
			if !found {
				return nil
			}
			return pages[i : i+1 : i+1]
		}
	}
	if g := h.results[handle]; g != nil && len(h.byHandle) == 0 {
		return []*Page{g}
	}
	return nil
}

// Find returns what a model names: by a handle, or all that calls did with a path. It is empty for what is not known;
// the list is the pager's own.
func (h *history) Find(name string) []*Page {
	if pages := h.find(name); len(pages) > 0 {
		return pages
	}
	return h.paths[bounded(path.Clean(name))]
}

// Gone returns what [FaultTool] brings back of what a model names, in the order of the history: by a handle what of it is
// out; by a path the newest copy of each range that went, unless the context still has all of it as it is. Of a file that was
// written and never read that is what was written last.
func (h *history) Gone(name string) (out []*Page) {
	if pages := h.find(name); len(pages) > 0 {
		for _, g := range pages {
			if g.stub {
				out = append(out, g)
			}
		}
		return out
	}
	name = bounded(path.Clean(name))
	f := h.files[name]
	if f == nil {
		pages := h.paths[name]
		for i := len(pages) - 1; i >= 0; i-- {
			if g := pages[i]; g.Part == Input {
				if g.stub {
					out = append(out, g)
				}
				break
			}
		}
		return out
	}
	for _, k := range f.keys {
		if k.evicted != nil && !h.full(k) {
			out = append(out, k.evicted)
		}
	}
	slices.SortStableFunc(out, inOrder)
	return out
}

// within returns the pages of a message, in the order of its blocks.
func (h *history) within(message int) []*Page {
	from, to := h.first[message], len(h.pages)
	if message+1 < len(h.first) {
		to = h.first[message+1]
	}
	return h.pages[from:to:to]
}

// recalled notes that the model asks for pages by their handle or path. One that reads a file and was out is a fault as
// a read of its range is, by its handle also where another copy stands: the model wants this one. Garbage never is a fault.
func (p *Pager) recalled(b *Block) {
	wanted := p.find(b.Call.Recall)
	for _, name := range b.Call.Wants {
		wanted = append(wanted[:len(wanted):len(wanted)], p.Gone(name)...)
	}
	for _, g := range wanted {
		if g.stub && g.Read && !g.faulted {
			p.fault(b.ID, g)
		}
	}
}

// letAll lets pages go that the model says it is done with: before their age and whatever their size, also when they
// are pinned or would be, with the next batch. Only what stood there when it decided can go, never what came since. fifo
// and batch do as they do without a window, where nobody asks the model.
func (p *Pager) letAll(names []string) {
	if p.window == 0 && (p.rule == "fifo" || p.rule == "batch" || p.rule == belady) {
		return
	}
	for _, name := range names {
		for _, g := range p.Find(name) {
			if working := g.Part == Input && !g.answered; !g.stub && !working {
				p.let(g)
			}
		}
	}
}

// let lets one page go before its age.
func (p *Pager) let(g *Page) {
	if p.shorten(g); g.wire <= g.short {
		return
	}
	if g.anchored {
		set(&p.history, &g.anchored, false)
		set(&p.history, &p.anchors, p.anchors-1)
	}
	if k := g.key; k != nil {
		if slices.Contains(k.pinned, g) {
			p.unpin(k)
		}
		if k.armed != nil && k.armed.Hash == g.Hash {
			set(&p.history, &k.armed, nil)
		}
	}
	switch p.rule {
	case optimal:
		set(&p.history, &g.ripe, true)
	case "fifo", "lru":
		if !g.released {
			set(&p.history, &g.released, true)
			set(&p.history, &p.late, append(p.late, g))
		}
	default:
		p.ready(g)
	}
}
