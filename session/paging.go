package session

import (
	"context"
	"slices"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/internal/clip"
	"github.com/tidemark-ai/tidemark/paging"
)

// pager is what a session asks of the strategy paging beside its plan.
type pager interface {
	State(v compaction.View, b compaction.Budget) compaction.PagingState
	Advice(v compaction.View, b compaction.Budget) string
}

var _ pager = (*compaction.Paging)(nil)

// paging is the strategy of that name, nil when it is not active.
func (s *Session) paging() pager {
	for _, x := range s.strategies() {
		if p, ok := x.(pager); ok {
			return p
		}
	}
	return nil
}

// asked returns the strategies that are to plan for a view, none where nothing is to be done. A view within the limit
// is for those with a limit of their own, and so is every view while the summariser rests; rests says that.
func (s *Session) asked(ctx context.Context, v View, mode fitMode, hard bool) (list []compaction.Strategy, rests bool, err error) {
	list = s.strategies()
	if mode != fitAuto {
		return list, false, nil
	}
	if s.settings().NoCompaction || !compaction.Due(list, v.View, s.Budget()) {
		return nil, false, nil
	}
	if !s.Budget().Over(v.View) || hard {
		return list, false, nil
	}
	if rests, err = s.cooling(ctx); !rests || err != nil {
		return list, false, err
	}
	if list = compaction.Early(list); !compaction.Due(list, v.View, s.Budget()) {
		list = nil
	}
	return list, true, nil
}

// Paged is what paging did with a call of the model: a part of [Anatomy].
type Paged = paging.Account

// Bounds of a record.
const (
	maxFaulted  = 3
	faultedName = 60 // bytes of an id and a path
)

// paged tells what paging did with the call that a view makes; before is the record of the call before. A call that is
// tried again counts once. What left is counted by the overlays since that record, so that a long history which paging
// finds, as after an import, counts, too.
func (s *Session) paged(v View, again bool, before Anatomy) *Paged {
	p := s.paging()
	if p == nil {
		return nil
	}
	st := p.State(v.View, s.Budget())
	out := &Paged{Zone: st.Zone.String(), Size: st.Size, Tau: st.Tau, Stubs: st.Stubs, Out: st.StubBytes}
	since := before.Until
	if before.Session != v.Log {
		since = 0
	}
	if before.Paging != nil {
		out.Totals = before.Paging.Totals
	}
	if w := s.settings().Window; w > 0 {
		out.Fill = float64(1000*st.Size/w) / 10
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

// advised adds to what is pushed what the model is told of a context that fills up. It is not stored, and what it
// takes is counted where there is room for it only: a full window has the word all the same.
func (s *Session) advised(r *run, v View) View {
	text := r.over
	if p := s.paging(); p != nil {
		text = strings.TrimSpace(p.Advice(v.View, s.Budget()) + "\n" + text)
	}
	if r.untidy != "" {
		text, r.untidy = strings.TrimSpace(text+"\n"+r.untidy), ""
	}
	if text == "" {
		return v
	}
	v.Size += tidemark.EstimateText(text)
	if v.Pack != "" {
		text = v.Pack + "\n\n" + text
	}
	v.Pack = text
	return v
}

// backOf are the blocks that overlays replaced which are lifted: what a person brought back is not paged out again.
func backOf(rows []compaction.Row) map[tidemark.EntryID][]int {
	lifted := compaction.Lifted(rows)
	var out map[tidemark.EntryID][]int
	for _, r := range rows {
		if !lifted[r.ID] {
			continue
		}
		for _, e := range r.Overlay.Edits {
			if e.Block > 0 && !slices.Contains(out[e.From], e.Block) {
				if out == nil {
					out = map[tidemark.EntryID][]int{}
				}
				out[e.From] = append(out[e.From], e.Block)
			}
		}
	}
	return out
}
