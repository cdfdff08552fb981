package proxy

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/cleanup"
	"github.com/tidemark-ai/tidemark/episodes"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/paging"
	"github.com/tidemark-ai/tidemark/proxy/body"
)

// memoized is the stub of a page for one form of its message.
type memoized struct {
	of  [sha256.Size]byte // of the item
	raw []byte
}

// shownKey is a block of an entry that reads otherwise in the log's view.
type shownKey struct {
	id    tidemark.EntryID
	block int
}

// plan is what is done with one request.
type plan struct {
	change   body.Change
	decision paging.Decision
	stubs    []stubbed
	tools    []string // of ours, that are offered
	trimmed  int
	episodes episodes.Account
}

// offered reports whether a tool of ours goes with the request.
func (p *plan) offered(name string) bool { return slices.Contains(p.tools, name) }

// ours is the size of their definitions, in bytes.
func (p *plan) ours() (n int) {
	for _, raw := range p.change.Tools {
		n += len(raw)
	}
	return n
}

// stubbed is a block that a stub stands for, for the log.
type stubbed struct {
	node  *node
	block int
	raw   []byte
	page  *paging.Page
}

// takeStep gives the track what the request adds. A request that adds nothing to the last one, which got no answer or
// whose answer the client threw away, is that one again.
func (x *Exchange) takeStep(t *track) *step {
	path, r := x.path, x.req
	all := t.all()
	have := 0
	for _, s := range all {
		if s.cut {
			have = s.keep
		}
		have += len(s.nodes)
	}
	s := &step{n: len(all), model: r.Model, fixed: r.Fixed}
	keep := have
	if len(t.steps) == 0 && t.base != nil {
		keep = min(have, t.from.depth)
	}
	if keep < have {
		s.cut, s.keep = true, keep
	} else if keep == len(path) && len(t.steps) > 0 && !t.steps[len(t.steps)-1].answered && len(t.release)+len(t.anchor) == 0 {
		return t.steps[len(t.steps)-1]
	}
	s.nodes = slices.Clone(path[min(keep, len(path)):]) // not all of the path for each
	s.release, s.anchor, t.release, t.anchor = t.release, t.anchor, nil, nil
	x.feed(keep)
	t.steps = append(t.steps, s)
	return s
}

// feed makes what pagers take of the messages from a place on.
func (x *Exchange) feed(from int) {
	scan := paging.Scanner{Tools: x.c.Settings.Tools}
	for i := from; i < len(x.path); i++ {
		if n := x.path[i]; !n.fed {
			n.feed(&scan, x.req.Items[i])
		}
	}
}

// feed makes what pagers take of a message. What a pager cannot read is a message without anything to let go.
func (n *node) feed(scan *paging.Scanner, it body.Item) {
	raw := n.whole(it)
	if !utf8.Valid(raw) { // as the log has it
		raw = []byte(string([]rune(string(raw))))
	}
	m, err := scan.Message(raw)
	if err != nil {
		m = paging.Message{Role: n.role, Bytes: len(it.Raw)}
	}
	m.Handle = string(n.id)
	n.msg, n.fed, n.form, n.sum = m, true, formOf(it), sha256.Sum256(it.Raw)
	if n.seq == 0 {
		n.raw = it.Raw
	}
}

// catchUp brings the pager of a track up to its steps and returns what was decided with the last one.
func (c *Conversation) catchUp(t *track) (paging.Decision, error) {
	var d paging.Decision
	all := t.all()
	if t.pager == nil {
		o := c.Settings.Paging

		o.Window, o.Fixed = c.Settings.Window, tidemark.EstimateChars(all[0].fixed)
		p, err := paging.New(o)
		if err != nil {
			return d, err
		}
		t.pager, t.fed = p, 0
	}
	for ; t.fed < len(all); t.fed++ {
		s := all[t.fed]
		if t.fed > 0 {
			t.pager.Reported(all[t.fed-1].usage)
		}
		one, err := t.pager.Step(s.step())
		if err != nil {
			t.pager = nil
			return d, fmt.Errorf("track %d, request %d: %w", t.n, t.fed, err)
		}
		d = one
		if t.fed >= len(all)-len(t.steps) && s.line == nil {
			s.line = t.pager.AppendDecision(nil, t.fed, &d)
		}
		t.last = d
	}
	return t.last, nil
}

// step is the request as the pager takes it.
func (s *step) step() paging.Step {
	out := paging.Step{Cut: s.cut, Keep: s.keep, Stay: s.cut, Release: s.release, Anchor: s.anchor}
	for _, n := range s.nodes {
		out.Append = append(out.Append, n.msg)
	}
	return out
}

// pageOut puts stubs in the place of what is out, and puts back what the client never saw.
func (x *Exchange) pageOut(t *track) {
	p, path, sums, r := &x.plan, x.path, x.sums, x.req
	hidden := x.collapsed(t)
	scan := paging.Scanner{Tools: x.c.Settings.Tools}
	results := map[string][]byte{} // of ours, that are out
	for _, g := range t.pager.Stubs() {
		if g.Message >= len(path) || hidden[g.Message] {
			continue
		}
		n, it := path[g.Message], r.Items[g.Message]
		if own := len(n.form); g.Block >= own {
			if extra := n.extra(); g.Block-own < len(extra) {
				raw := extra[g.Block-own]
				if stub, ok := stubOf(&scan, raw, g, sayHandle(handleOf(n, g.Block))); ok {
					results[string(raw)] = stub
				}
			}
			continue
		}
		at, ok := x.at(g.Message, g.Block)
		if !ok {
			continue
		}
		m := t.memo[g]
		if m.of != sums[g.Message] {
			raw, ok := stubOf(&scan, it.Block(at), g, sayHandle(handleOf(n, g.Block)))
			if !ok {
				raw = nil
			}
			m = memoized{sums[g.Message], raw}
			t.memo[g] = m
		}
		if m.raw != nil {
			p.change.Blocks = append(p.change.Blocks, body.BlockChange{Item: g.Message, Block: at, Raw: m.raw})
			p.stubs = append(p.stubs, stubbed{n, g.Block, m.raw, g})
		}
	}
	x.rewritten(t, hidden)
	for i, n := range path {
		if !hidden[i] && !n.foreign {
			for _, at := range n.put.places() {
				p.change.Inserts = append(p.change.Inserts, at.insert(i, results))
			}
		}
	}
}

// stubOf is a block with the stub of a page in the place of what leaves. ok is false where that would be no shorter,
// or the block is not what it was.
func stubOf(scan *paging.Scanner, raw []byte, g *paging.Page, say string) ([]byte, bool) {
	var b tidemark.Block
	if err := json.Unmarshal(raw, &b); err != nil || !scan.Shorter(b, g, say) {
		return nil, false
	}
	out, err := scan.Replace(b, g, say)
	if err != nil {
		return nil, false
	}
	return out.AppendJSON(nil), true
}

// handleOf names a block of a message, from 0, as everything here does: the log, recall, our tools.
func handleOf(n *node, block int) string { return fmt.Sprintf("%s#%d", n.id, block) }

// sayHandle is how a stub names the way back.
func sayHandle(handle string) string {
	return string(json.AppendString([]byte(paging.FaultTool+` with {"paths": [`), handle)) + "]} reads it."
}

// offer adds tools of ours to a request: to one that has tools and lets the model choose. What the client defines under one
// of their names is the client's. With some of them none goes without the others.
func (x *Exchange) offer(all bool, names ...string) {
	r, p := x.req, &x.plan
	if x.c.Settings.Alone || len(r.Tools) == 0 || r.Choice == "none" {
		return
	}
	taken := func(name string) bool {
		return slices.ContainsFunc(r.Tools, func(t body.Tool) bool { return t.Name == name })
	}
	if all && slices.ContainsFunc(names, taken) {
		return
	}
	for _, name := range names {
		if !taken(name) {
			p.tools, p.change.Tools = append(p.tools, name), append(p.change.Tools, phantom(name, episodic(x.treatment)))
		}
	}
}

// advise tells the model how full its context is, behind everything that is cached.
func (x *Exchange) advise(t *track) {
	p, path := &x.plan, x.path
	f := t.pager.Fill(func(g *paging.Page) string {
		if g.Message >= len(path) {
			return ""
		}
		return handleOf(path[g.Message], g.Block)
	})
	f.Grammar, f.Turn = cleanup.Grammar, turns(path)
	p.change.Note = strings.TrimSpace(paging.Advice(f))
}

// turns counts what a person said in a history.
func turns(path []*node) (n int) {
	for _, m := range path {
		if m.asks {
			n++
		}
	}
	return n
}

// trim shortens what stands in every request. A definition whose tool was called is whole again from the next request
// on whose prefix breaks anyway: the list of tools stands first of all.
func (x *Exchange) trim(t *track, breaks bool) {
	p, path, r := &x.plan, x.path, x.req
	for _, n := range path {
		for i := range n.msg.Blocks {
			if name := n.msg.Blocks[i].Call.Tool; name != "" {
				t.tools[name] = true
			}
		}
	}
	if breaks {
		for name := range t.tools {
			if !t.whole[name] {
				t.whole[name], x.step.whole = true, append(x.step.whole, name)
			}
		}
		slices.Sort(x.step.whole)
	}
	p.change.Trim = body.Trimmed(r, p.change, t.whole)
	p.trimmed = p.change.Trim.Bytes
}
