package proxy

import (
	"context"
	"fmt"
	"slices"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/episodes"
	"github.com/tidemark-ai/tidemark/proxy/body"
	"github.com/tidemark-ai/tidemark/proxy/stream"
)

// leave takes out of the request what left, and puts back what the client never saw and what stands still.
func (x *Exchange) leave(l *left) {
	ch := &x.plan.change
	hidden := l.hidden()
	for _, s := range l.spans {
		to := withPassing(x.path, s.To)
		c := body.SpanChange{From: s.From, To: to, Keep: instructions(x.path, s.From, to)}
		if s.Text != "" {
			c.Messages = [][]byte{tidemark.NewText(tidemark.User, s.Text).AppendJSON(nil)}
		}
		ch.Spans = append(ch.Spans, c)
	}
	pending := false // results of ours go to the front of the next message
	for i, n := range x.path {
		if hidden[i] {
			pending = false
			continue
		}
		gone := l.blocks[i]
		if len(gone) > 0 {
			x.without(i, gone, pending)
		}
		pending = false
		for k, at := range n.put.places() {
			in := at.insert(i, nil)
			x.strip(&in, i, k, gone)
			if len(in.Blocks)+len(in.Calls) > 0 {
				ch.Inserts = append(ch.Inserts, in)
				pending = len(in.Calls) > 0 && !in.Split || pending && !in.Split
			}
		}
	}
}

// without takes blocks of the client's out of an item, or the whole of it where nothing is left but reminders.
func (x *Exchange) without(i int, gone map[place]leftBlock, pending bool) {
	f, n := x.formAt(i), x.path[i]
	var changes []body.BlockChange
	stays := 0
	for _, u := range f.units(n.put) {
		off, ok := gone[u.place]
		switch {
		case u.own < 0:
			continue
		case !ok:
			stays++
			continue
		}
		c := body.BlockChange{Item: i, Block: u.own}
		if off.Text != "" {
			c.Raw = tidemark.Text(off.Text).AppendJSON(nil)
			stays++
		}
		changes = append(changes, c)
	}
	ch := &x.plan.change
	if stays == 0 && n.role == tidemark.User && !pending {
		ch.Spans = append(ch.Spans, body.SpanChange{From: i, To: withPassing(x.path, i)})
		return
	}
	ch.Blocks = append(ch.Blocks, changes...)
}

// strip takes calls of ours that left, with their results, out of what is put back at a place.
func (x *Exchange) strip(in *body.Insert, i, place int, gone map[place]leftBlock) {
	if len(gone) == 0 {
		return
	}
	in.Blocks, in.Calls, in.Results = nil, nil, nil
	for _, u := range x.formAt(i).units(x.path[i].put) {
		if u.own >= 0 || u.put != place {
			continue
		}
		off, out := gone[u.place]
		switch {
		case out && off.Text != "":
			in.Blocks = append(in.Blocks, tidemark.Text(off.Text).AppendJSON(nil))
		case out:
		case u.result == nil:
			in.Blocks = append(in.Blocks, u.raw)
		default:
			in.Calls, in.Results = append(in.Calls, u.raw), append(in.Results, u.result)
		}
	}
	in.Split = in.Split && len(in.Calls) > 0
}

// overlay is an act as the log has it, so that its view shows what was sent. What the client never saw is not in the log.
func (a *act) overlay(path []*node) tidemark.Overlay {
	o := tidemark.Overlay{By: []string{Episodes}, Reason: "threshold"}
	for _, s := range a.Spans {
		to := withPassing(path, s.To)
		e := tidemark.Edit{From: path[s.From].id, To: path[to].id, Data: s.Data()}
		for _, i := range instructions(path, s.From, to) {
			e.Keep = append(e.Keep, path[i].id)
		}
		if s.Text != "" {
			e.Messages = []tidemark.Message{tidemark.NewText(tidemark.User, s.Text)}
		}
		o.Edits = append(o.Edits, e)
	}
	for _, b := range a.Blocks {
		n := path[b.Item]
		for _, u := range n.form.units(n.put) {
			if u.place != b.place || u.own < 0 {
				continue
			}
			e := tidemark.Edit{From: n.id, Block: u.own + 1, Data: episodes.Line{}.Data()}
			if b.Text != "" {
				e.Blocks = []tidemark.Block{tidemark.Text(b.Text)}
			}
			o.Edits = append(o.Edits, e)
		}
	}
	return o
}

// keepAct stores what left with the request as soon as its messages are stored: it was sent so.
func (c *Conversation) keepAct(ctx context.Context, x *Exchange) error {
	a, t := x.act, x.of
	if a == nil || a.stored || x.ask.Count {
		return nil
	}
	if err := c.open(ctx, t); err != nil {
		return err
	}
	stmts, err := c.overlays(t.log, a.overlay(x.path))
	if err != nil {
		return err
	}
	stmts = append(stmts, c.editStmt(t, editRow{Step: t.newest(), Act: a}))
	if err := c.DB.Tx(ctx, stmts); err != nil {
		return fmt.Errorf("store what left: %w", err)
	}
	a.stored = true
	return nil
}

// undo takes back what left with a request that the API did not take, unless the same was sent by another one. It is called
// with the lock held.
func (x *Exchange) undo() {
	if x.act == nil || x.act.stored || x.step.busy > 1 {
		return
	}
	n := x.path[len(x.path)-1]
	n.acts = slices.DeleteFunc(n.acts, func(a *act) bool { return a == x.act })
	x.act = nil
}

// report keeps how large the context was with an answer: of several calls as the last one had it, which is what the next
// request begins with.
func (x *Exchange) report(turn stream.Turn, reply *node) {
	if k := len(turn.Legs); k > 0 && episodic(x.treatment) && x.why == "" && turn.Legs[k-1].Reported && reply.reported == 0 {
		reply.reported = turn.Legs[k-1].Usage.Context()
		x.step.said = reply
	}
}

// overlays append an overlay to a log, in rows of no more than so many edits.
func (c *Conversation) overlays(log string, o tidemark.Overlay) (stmts []tidemark.Stmt, err error) {
	for len(o.Edits) > 0 {
		n := min(len(o.Edits), maxEdits)
		more, err := c.note(log, tidemark.KindOverlay, tidemark.Overlay{By: o.By, Reason: o.Reason, Edits: o.Edits[:n]})
		if err != nil {
			return nil, err
		}
		stmts, o.Edits = append(stmts, more...), o.Edits[n:]
	}
	return stmts, nil
}
