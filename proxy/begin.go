package proxy

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/episodes"
	"github.com/tidemark-ai/tidemark/paging"
	"github.com/tidemark-ai/tidemark/proxy/body"
	"github.com/tidemark-ai/tidemark/proxy/stream"
)

// Begin takes a request up: it finds its place in the tree, decides what leaves and makes the body that is sent. What
// it cannot read, or has no room for, is sent as it came. An error is only for what the caller asked for wrongly.
func (c *Conversation) Begin(ctx context.Context, a Ask) (*Exchange, error) {
	treatment, err := a.treatment(c)
	if err != nil {
		return nil, err
	}
	x := &Exchange{c: c, ask: a, out: a.Body, treatment: treatment, results: map[string]tidemark.Block{}, given: map[string]bool{}}
	r, err := body.Scan(a.Dialect, a.Body)
	if err != nil {
		return x.untouched(&scanError{err}), nil
	}
	if len(r.Items) == 0 {
		return x.untouched(errEmpty), nil
	}
	x.req = r
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.load(ctx); err != nil {
		return x.untouched(err), nil
	}
	c.marks = c.marks || episodic(treatment) // what is read of the log from now on is read for graphs, too
	path, sums, err := c.tree.place(r)
	if err != nil {
		return x.untouched(err), nil
	}
	x.path, x.sums = path, sums
	if a.Count {
		err = c.count(ctx, x)
	} else {
		err = c.decide(ctx, x)
		c.busy++
		x.busy = true
	}
	if err == nil {
		x.out, err = r.Apply(x.plan.change)
	}
	if err != nil {
		x.plan, x.out = plan{}, a.Body
		return x.untouched(err), nil
	}
	return x, nil
}

// decide finds the track of a request and what is done with it.
func (c *Conversation) decide(ctx context.Context, x *Exchange) error {
	t, _, err := c.tree.trackOf(x.path)
	if err != nil {
		return err
	}
	if err := c.ensure(ctx, t, x.path); err != nil {
		return err
	}
	x.track, x.of = t, t
	x.step = x.takeStep(t)
	x.step.busy++
	c.tree.moveTo(t, x.path[len(x.path)-1])
	if err := c.works(ctx, x); err != nil {
		return err
	}
	d, err := c.catchUp(t)
	if err != nil {
		return err
	}
	c.tree.rest(t)
	x.zone, x.size, x.tau = d.Zone, d.Size, t.pager.Tau()
	x.change(t, d)
	return nil
}

// count does the same for a request whose size is asked for, and leaves no trace: its track is made anew beside the
// one there is.
func (c *Conversation) count(ctx context.Context, x *Exchange) error {
	t := newTrack(0)
	known := len(x.path)
	for known > 0 && x.path[known-1].owner == nil {
		known--
	}
	if known > 0 {
		at := x.path[known-1]
		base := c.tree.leaves[at]
		if base == nil {
			base = at.owner
		}
		if err := c.ensure(ctx, base, x.path); err != nil {
			return err
		}
		t.base, t.after, t.from, t.edits = base, len(base.all()), at, base.edits
		t.tools, t.whole, t.sour = maps.Clone(base.tools), maps.Clone(base.whole), base.sour
		if base.leaf == at {
			t.release, t.anchor = slices.Clone(base.release), slices.Clone(base.anchor)
		}
	} else {
		t.from = c.tree.root
	}
	x.step = x.takeStep(t)
	if err := c.works(ctx, x); err != nil {
		return err
	}
	d, err := c.catchUp(t)
	if err != nil {
		return err
	}
	x.change(t, d)
	return nil
}

// change makes the change of a request of what its treatment asks for.
func (x *Exchange) change(t *track, d paging.Decision) {
	p := &x.plan
	p.decision = d
	if t.sour {
		x.why, x.whyKind = errSour.Error(), Refused
		return
	}
	paged := strings.Contains(x.treatment, Page)
	switch {
	case paged:
		x.offer(true, paging.ReleaseTool, paging.FaultTool)
		x.pageOut(t)
		if len(p.tools) > 0 {
			x.advise(t)
		}
	case episodic(x.treatment):
		x.offer(false, paging.FaultTool, episodes.ToolName)
		x.evict(t)
		x.warn()
	}
	if strings.Contains(x.treatment, Trim) {
		breaks := len(t.all()) == 1 || x.act != nil || !episodic(x.treatment) && len(d.Evict)+len(d.GC)+len(d.Input)+len(d.Image) > 0
		x.trim(t, breaks)
	}
	x.filter = stream.New(stream.Options{Dialect: stream.Dialect(x.req.Dialect), Stream: x.req.Stream, Tags: paged && !x.c.Settings.Alone,
		Phantom: p.offered})
}
