package bench

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/episodes"
)

// history is a log of an agent in the making, with the graph of its episodes, as a session keeps both. Of what left the
// context it keeps nothing: that stands in the log of a session, and here nobody reads it again.
type history struct {
	entries []compaction.Visible // those that are shown
	graph   *episodes.Graph
	fixed   tidemark.Tokens // system prompt and tools
	seq     int64
	shown   []compaction.Placed
	edits   map[int64][]tidemark.Edit // of rows with an edit that is shown
}

func newHistory(fixed tidemark.Tokens) *history {
	return &history{graph: (&compaction.Episodes{}).NewGraph(), fixed: fixed, edits: map[int64][]tidemark.Edit{}}
}

// add appends a message.
func (h *history) add(m tidemark.Message, source string) {
	h.seq++
	id := tidemark.EntryID(fmt.Sprintf("e%07d", h.seq))
	s := tidemark.Skeleton{ID: id, Seq: h.seq, Kind: tidemark.KindMessage, Role: m.Role, Tokens: tidemark.Estimate(m), Blocks: len(m.Content), Calls: m.Calls(), Results: m.Results(),
		At: time.UnixMilli(1_772_000_000_000 + h.seq*1000)}
	h.entries = append(h.entries, compaction.Visible{Skeleton: s, Message: m, Source: source})
	h.graph.Add(episodes.Message{ID: id, Seq: h.seq, Tokens: s.Tokens, Content: m})
}

// position is where an entry stands: its id says it.
func position(id tidemark.EntryID) (int64, bool) {
	n, err := strconv.ParseInt(string(id[1:]), 10, 64)
	return n, err == nil
}

// act appends edits as one overlay, as a session does, and drops what nobody sees any more.
func (h *history) act(edits []tidemark.Edit) error {
	h.seq++
	row := compaction.Row{ID: tidemark.EntryID(fmt.Sprintf("o%07d", h.seq)), Seq: h.seq, Overlay: tidemark.Overlay{Edits: edits}}
	placed, err := compaction.Place([]compaction.Row{row}, position)
	if err != nil {
		return err
	}
	if err := compaction.CheckOverlay(h.shown, placed); err != nil {
		return err
	}
	l := compaction.Lay(append(slices.Clone(h.shown), placed...))
	h.shown, h.edits[row.Seq] = l.Shown, edits
	rows := map[int64]bool{}
	for _, p := range h.shown {
		rows[p.Row] = true
	}
	for n := range h.edits {
		if !rows[n] {
			delete(h.edits, n)
		}
	}
	gaps, kept := l.Gaps(1, h.seq), h.entries[:0]
	for _, e := range h.entries {
		for len(gaps) > 0 && gaps[0].To < e.Seq {
			gaps = gaps[1:]
		}
		if len(gaps) > 0 && gaps[0].From <= e.Seq {
			kept = append(kept, e)
		}
	}
	clear(h.entries[len(kept):])
	h.entries = kept
	return nil
}

// view is what a model would see now.
func (h *history) view() (compaction.View, error) {
	shown := make([]compaction.Replacement, len(h.shown))
	for i, p := range h.shown {
		shown[i] = compaction.Replacement{Placed: p, Edit: h.edits[p.Row][p.N]}
	}
	v, err := compaction.Assemble(h.entries, shown)
	v.Graph, v.Fixed, v.Size = h.graph, h.fixed, v.Size+h.fixed
	return v, err
}
