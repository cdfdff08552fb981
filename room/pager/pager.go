// Package pager is the room of a conversation whose results are paged out by the strategy of package compaction: it has
// the tools with which the model releases what it is done with and reads back what left, says what a context that fills up
// is told, decides on what the model writes to tidy it, and accounts for each call. Begin with Room.
package pager

import (
	"context"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/cleanup"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/internal/clip"
	"github.com/tidemark-ai/tidemark/paging"
	"github.com/tidemark-ai/tidemark/room"
)

// Room pages one conversation. It has no tables: all that it says is read out of the log and the view.
type Room struct {
	room.Self
	room.History
	room.View
}

// Make makes the room.
func Make(p room.Ports) any { return &Room{p.Self, p.History, p.View} }

var (
	_ room.Tools   = (*Room)(nil)
	_ room.Carrier = (*Room)(nil)
	_ room.Pager   = (*Room)(nil)
	_ room.Tidier  = (*Room)(nil)
)

// strategy returns the strategy paging, nil when it is not in force.
func (s *Room) strategy() *compaction.Paging {
	for _, x := range s.Strategies() {
		if p, ok := x.(*compaction.Paging); ok {
			return p
		}
	}
	return nil
}

// Tools implements room.Tools: they are offered while the strategy is in force.
func (s *Room) Tools(bool) []tidemark.Tool {
	if s.strategy() == nil {
		return nil
	}
	return []tidemark.Tool{ReleaseTool, FaultTool}
}

// Carries implements room.Carrier: the view may name the tools when they are not offered any more.
func (s *Room) Carries(name string) bool {
	return name == paging.ReleaseTool || name == paging.FaultTool
}

// Call implements room.Tools.
func (s *Room) Call(ctx context.Context, c room.Call) tidemark.Block {
	if c.Tool == paging.ReleaseTool {
		return s.release(ctx, c)
	}
	return s.fault(ctx, c)
}

// Advice implements room.Pager.
func (s *Room) Advice(v compaction.View) string {
	if p := s.strategy(); p != nil {
		return p.Advice(v, s.Budget())
	}
	return ""
}

// Cooperates implements room.Tidier.
func (s *Room) Cooperates() bool {
	p := s.strategy()
	return p != nil && p.Cooperates()
}

// Tidy implements room.Tidier.
func (s *Room) Tidy(v compaction.View, ops []cleanup.Op) (done compaction.Tidied, ok bool) {
	p := s.strategy()
	if p == nil {
		return done, false
	}
	return p.Tidy(v, s.Budget(), ops), true
}

// Bounds of a record.
const (
	maxFaulted  = 3
	faultedName = 60 // bytes of an id and a path
)

// Paged implements room.Pager.
func (s *Room) Paged(v compaction.View, again bool, since int64, before *paging.Account) *paging.Account {
	p, b := s.strategy(), s.Budget()
	if p == nil {
		return nil
	}
	st := p.State(v, b)
	out := &paging.Account{Zone: st.Zone.String(), Size: st.Size, Tau: st.Tau, Stubs: st.Stubs, Out: st.StubBytes}
	if before != nil {
		out.Totals = before.Totals
	}
	if b.Window > 0 {
		out.Fill = float64(1000*st.Size/b.Window) / 10
	}
	d, left := st.Decision, st.PutOut(since)
	out.Evicted, out.Collected, out.Inputs, out.Images = left.Reads, left.Others, left.Inputs, left.Images
	out.Pins, out.In, out.Sent = len(d.Pin), d.In, d.Out
	for _, f := range d.Fault[max(len(d.Fault)-maxFaulted, 0):] {
		out.Faults = append(out.Faults, paging.Faulted{Call: clip.Line(f.ID, faultedName), Of: clip.Line(f.Of.ID, faultedName), Path: clip.Line(f.Of.Call.Path, faultedName)})
	}
	if t := &out.Totals; !again {
		t.Calls++
		t.Evicted += out.Evicted
		t.Collected += out.Collected
		t.Inputs += out.Inputs
		t.Images += out.Images
		t.Faults += len(d.Fault)
		t.Pins += out.Pins
		t.In += int64(out.In)
		t.Sent += int64(out.Sent)
	}
	return out
}
