package paging

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// The tools with which a model takes part: it lets pages go, and has them back.
const (
	ReleaseTool = "memory_release" // {"handles":["HANDLE",…],"reason":"…"}
	RecallTool  = "recall"         // {"entry":"HANDLE"}; its other uses are none of paging's
)

// MaxHandles bounds what one call names; what stands behind is not read.
const MaxHandles = 64

const maxHandle = 200 // bytes; a longer one names nothing

var plainRelease, plainRecall = plain(ReleaseTool), plain(RecallTool)

// cooperate reads the handles of a call with which the model takes part, also where the tool is that of an MCP
// server. What is not of the form that the tools ask for names nothing.
func (c *Call) cooperate(name string, input []byte) {
	if strings.HasPrefix(name, "mcp__") {
		name = name[strings.LastIndex(name, "__")+2:]
	}
	switch plain(name) {
	case plainRelease:
		c.Release = handles(fields(input).get("handles"))
	case plainRecall:
		if entry := handles(fields(input).get("entry")); len(entry) == 1 {
			c.Recall = entry[0]
		}
	}
}

// handles reads a handle or a list of some.
func handles(raw []byte) (out []string) {
	c := &cursor{data: raw}
	take := func() {
		if s := c.str(); c.err == nil && len(s) <= 6*maxHandle {
			if text, ok := unquote(nil, s); ok && len(text) > 0 && len(text) <= maxHandle {
				out = append(out, string(text))
			}
		}
	}
	if c.peek() == '"' {
		take()
		return out
	}
	if !c.open('[') {
		return nil
	}
	for c.more(']') && len(out) < MaxHandles {
		if c.peek() == '"' {
			take()
		} else {
			c.skip()
		}
	}
	return out
}

// name notes under which name the newest message is known to the model.
func (p *Pager) name(handle string) {
	if handle == "" {
		return
	}
	if p.byHandle == nil {
		p.byHandle = map[string]int{}
	}
	put(p, p.byHandle, handle, len(p.messages)-1)
}

// put changes a map so that [Pager.cut] can take it back.
func put[K comparable, V any](p *Pager, m map[K]V, k K, v V) {
	old, had := m[k]
	p.undo = append(p.undo, func() {
		if m[k] = old; !had {
			delete(m, k)
		}
	})
	m[k] = v
}

// find returns what a handle names, and none for one that is not known: a message by [Message.Handle], a block of it
// behind "#", counted from 0. In a history whose messages have none the id of a call names its newest result.
func (p *Pager) find(handle string) []*Page {
	if m, ok := p.byHandle[handle]; ok {
		return p.within(m)
	}
	if at := strings.LastIndexByte(handle, '#'); at > 0 {
		n, err := strconv.Atoi(handle[at+1:])
		if m, ok := p.byHandle[handle[:at]]; ok && err == nil {
			pages := p.within(m)
			i, found := slices.BinarySearchFunc(pages, n, func(g *Page, n int) int { return cmp.Compare(g.Block, n) })
			if !found {
				return nil
			}
			return pages[i : i+1 : i+1]
		}
	}
	if g := p.results[handle]; g != nil && len(p.byHandle) == 0 {
		return []*Page{g}
	}
	return nil
}

// within returns the pages of a message, in the order of its blocks.
func (p *Pager) within(message int) []*Page {
	from, to := p.first[message], len(p.pages)
	if message+1 < len(p.first) {
		to = p.first[message+1]
	}
	return p.pages[from:to:to]
}

// recalled notes that the model asks for pages by their handle. One that reads a file and was out is a fault as
// a read of its range is, also where another copy stands: the model wants this one. Garbage never is a fault.
func (p *Pager) recalled(b *Block) {
	for _, g := range p.find(b.Call.Recall) {
		if g.stub && g.Read && !g.faulted {
			p.fault(b.ID, g)
		}
	}
}

// released lets pages go that the model says it is done with: before their age, also when they are pinned or would be,
// with the next batch. Only what stood there when it decided can go, never what came since. fifo and batch do as they
// do without a window, where nobody asks the model.
func (p *Pager) released(b *Block) {
	if p.window == 0 && (p.policy == "fifo" || p.policy == "batch" || p.policy == belady) {
		return
	}
	for _, h := range b.Call.Release {
		for _, g := range p.find(h) {
			if !g.stub && !p.open(g) && (g.Part != Result || g.Size >= p.min) {
				p.let(g)
			}
		}
	}
}

// let lets one page go before its age.
func (p *Pager) let(g *Page) {
	if k := g.key; k != nil {
		if slices.Contains(k.pinned, g) {
			p.unpin(k)
		}
		if k.armed != nil && k.armed.Hash == g.Hash {
			set(p, &k.armed, nil)
		}
	}
	switch p.policy {
	case optimal:
		set(p, &g.ripe, true)
	case "fifo", "lru":
		if !g.released {
			set(p, &g.released, true)
			set(p, &p.late, append(p.late, g))
		}
	default:
		p.ready(g)
	}
}
