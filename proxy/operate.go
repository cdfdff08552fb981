package proxy

import (
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/cleanup"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/paging"
	"github.com/tidemark-ai/tidemark/proxy/body"
)

// edit is what the model made of a part of the conversation by a cleanup tag: a block that reads otherwise, or turns
// that one text stands for. It holds wherever its messages are in the history.
type edit struct {
	from, to *node
	block    int    // -1: all of the messages
	raw      []byte // the block, or the message
}

// by is the strategy that overlays of tags are of.
const by = "cooperation"

// operate carries out the operations of a reply. What does not fit is told in the record and changes nothing: the
// newest turn stays, and so does what is not known. It is called with the lock held.
func (x *Exchange) operate(t *track, ops []cleanup.Op) (done []edit, refused []string) {
	for _, op := range ops {
		e, err := x.one(t, op)
		if err != nil {
			refused = append(refused, op.Verb+": "+err.Error())
		}
		if e != nil {
			t.edits = append(t.edits, *e)
			done = append(done, *e)
		}
	}
	return done, refused
}

// one decides one operation. Pages are for the pager, with the next request; texts are edits of ours.
func (x *Exchange) one(t *track, op cleanup.Op) (*edit, error) {
	path := x.path
	switch op.Verb {
	case cleanup.Release:
		t.release = append(t.release, op.Paths...)
		return nil, nil
	case cleanup.Collapse:
		return x.collapse(t, op)
	}
	n, block, err := find(slices.Values(path), op.Handle)
	if err != nil {
		return nil, err
	}
	handle := handleOf(n, block)
	if op.Verb == cleanup.Anchor {
		t.anchor = append(t.anchor, handle)
		return nil, nil
	}
	if n.instructs() {
		return nil, fmt.Errorf("%s is of a system message, which stays", handle)
	}
	if n.depth > lastAsked(path) {
		return nil, fmt.Errorf("%s is of the newest turn, which stays", handle)
	}
	at, ok := x.at(n.depth-1, block)
	if !ok {
		return nil, fmt.Errorf("%s is no block of this request", handle)
	}
	if op.Verb == cleanup.Drop && t.pager != nil && len(t.pager.Find(handle)) > 0 {
		t.release = append(t.release, handle)
		return nil, nil
	}
	raw, err := rewrite(x.req.Items[n.depth-1].Block(at), handle, op)
	if err != nil {
		return nil, err
	}
	t.release = append(t.release, handle) // to the pager it is out, too
	return &edit{n, n, block, raw}, nil
}

// find returns the block that a handle names among messages; the number may be left out of a message of one block.
func find(among iter.Seq[*node], handle string) (*node, int, error) {
	id, number, ok := strings.Cut(strings.TrimPrefix(handle, "block:"), "#")
	block := 0
	if ok {
		var err error
		if block, err = strconv.Atoi(number); err != nil || block < 0 {
			return nil, 0, fmt.Errorf("%s is no handle", clipped(handle))
		}
	}
	for n := range among {
		if string(n.id) == id {
			return n, block, nil
		}
	}
	return nil, 0, fmt.Errorf("%s is not in this conversation", clipped(handle))
}

// lastAsked is how many messages stand before the newest turn of a person.
func lastAsked(path []*node) int {
	for i := len(path) - 1; i >= 0; i-- {
		if path[i].asks {
			return i
		}
	}
	return 0
}

// rewrite is a block as an operation leaves it: a line that says what stood there and how to have it back. It must be
// shorter than the block was.
func rewrite(raw []byte, handle string, op cleanup.Op) ([]byte, error) {
	var b tidemark.Block
	if err := json.Unmarshal(raw, &b); err != nil {
		return nil, fmt.Errorf("%s cannot be read", handle)
	}
	say := fmt.Sprintf("[Dropped by you: %d bytes. %s]", len(raw), sayHandle(handle))
	if op.Verb == cleanup.Summarize {
		say = fmt.Sprintf("[Your summary of %d bytes: %s %s]", len(raw), op.Text, sayHandle(handle))
	}
	var out tidemark.Block
	switch b.Type {
	case tidemark.TypeText:
		out = tidemark.Text(say)
	case tidemark.TypeToolResult:
		out = tidemark.ToolResult(b.ToolUseID, say, b.IsError)
	default:
		return nil, fmt.Errorf("%s is a block of type %s, which stays", handle, clipped(b.Type))
	}
	short := out.AppendJSON(nil)
	if len(short) >= len(raw) {
		return nil, fmt.Errorf("%s has %d bytes, a note would be no shorter", handle, len(raw))
	}
	return short, nil
}

// collapse makes one message of turns: from what a person asked to before what they asked next. Calls and their
// results stand between, so none is parted; where a person's words stand with results, no turn begins.
func (x *Exchange) collapse(t *track, op cleanup.Op) (*edit, error) {
	path := x.path
	var begins []int
	for i, n := range path {
		if n.asks {
			begins = append(begins, i)
		}
	}
	if op.From < 1 || op.From > op.To || op.To >= len(begins) {
		return nil, fmt.Errorf("turns %d-%d: there are turns 1 to %d that may go, the newest stays", op.From, op.To, len(begins)-1)
	}
	from, to := path[begins[op.From-1]], path[begins[op.To]-1]
	size := 0
	var handles []string
	for i := from.depth - 1; i < to.depth; i++ {
		if path[i].bars() {
			return nil, fmt.Errorf("turns %d-%d: there is a message in them that stays", op.From, op.To)
		}
		if path[i].instructs() {
			continue
		}
		size += path[i].msg.Bytes
		handles = append(handles, string(path[i].id))
	}
	for _, e := range t.edits {
		if e.block < 0 && overlaps(e, from, to) && !within(e, from, to) && !(e.from.depth <= from.depth && e.to.depth >= to.depth) {
			return nil, fmt.Errorf("turns %d-%d: a part of them stands in another summary", op.From, op.To)
		}
	}
	say := fmt.Sprintf("[Turns %d-%d, %d messages, as you summed them up: %s Their words: %s with the handles %s#0 to %s#0.]",
		op.From, op.To, to.depth-from.depth+1, op.Text, paging.FaultTool, from.id, to.id)
	raw := tidemark.NewText(tidemark.User, say).AppendJSON(nil)
	if len(raw) >= size {
		return nil, fmt.Errorf("turns %d-%d have %d bytes, a note would be no shorter", op.From, op.To, size)
	}
	t.release = append(t.release, handles...)
	return &edit{from, to, -1, raw}, nil
}

func overlaps(e edit, from, to *node) bool {
	return e.from.depth <= to.depth && e.to.depth >= from.depth
}

// within reports whether an edit is of messages among those from one to another.
func within(e edit, from, to *node) bool {
	return e.from.depth >= from.depth && e.to.depth <= to.depth
}

// holds reports whether the messages of an edit are in a history.
func (e edit) holds(path []*node) bool {
	return e.to.depth <= len(path) && path[e.to.depth-1] == e.to && path[e.from.depth-1] == e.from
}

// collapsed puts in place what stands for whole turns, of several the outermost, and returns the items that are
// not sent themselves.
func (x *Exchange) collapsed(t *track) map[int]bool {
	p, path := &x.plan, x.path
	hidden := map[int]bool{}
	spans := slices.Clone(t.edits)
	slices.SortStableFunc(spans, func(a, b edit) int { return (b.to.depth - b.from.depth) - (a.to.depth - a.from.depth) })
	for _, e := range spans {
		if e.block >= 0 || !e.holds(path) || e.to.depth > lastAsked(path) || hidden[e.from.depth-1] || hidden[e.to.depth-1] {
			continue
		}
		for j := e.from.depth - 1; j < e.to.depth; j++ {
			hidden[j] = true
		}
		p.change.Spans = append(p.change.Spans, body.SpanChange{From: e.from.depth - 1, To: e.to.depth - 1, Messages: [][]byte{e.raw},
			Keep: instructions(path, e.from.depth-1, e.to.depth-1)})
	}
	return hidden
}

// rewritten puts in place what stands for single blocks; over a stub it is the newer word.
func (x *Exchange) rewritten(t *track, hidden map[int]bool) {
	p, path := &x.plan, x.path
	type place struct{ item, block int }
	at := map[place]int{}
	for i, b := range p.change.Blocks {
		at[place{b.Item, b.Block}] = i
	}
	for _, e := range t.edits {
		item := e.from.depth - 1
		if e.block < 0 || !e.holds(path) || hidden[item] {
			continue
		}
		block, ok := x.at(item, e.block)
		if !ok {
			continue
		}
		by := place{item, block}
		if i, ok := at[by]; ok {
			p.change.Blocks[i].Raw = e.raw
			continue
		}
		at[by] = len(p.change.Blocks)
		p.change.Blocks = append(p.change.Blocks, body.BlockChange{Item: item, Block: block, Raw: e.raw})
	}
}

// overlay is the edits as the log has them, so that its view shows what was sent.
func overlay(edits []edit, verbs string) (tidemark.Overlay, error) {
	o := tidemark.Overlay{By: []string{by}, Reason: verbs}
	for _, e := range edits {
		out := tidemark.Edit{From: e.from.id}
		if e.block >= 0 {
			var b tidemark.Block
			if err := json.Unmarshal(e.raw, &b); err != nil {
				return o, err
			}
			out.Block, out.Blocks = e.block+1, []tidemark.Block{b}
		} else {
			var m tidemark.Message
			if err := json.Unmarshal(e.raw, &m); err != nil {
				return o, err
			}
			out.To, out.Messages = e.to.id, []tidemark.Message{m}
			for n := e.to; n.depth > e.from.depth; n = n.parent {
				if n.instructs() && !n.passing {
					out.Keep = append(out.Keep, n.id)
				}
			}
			slices.Reverse(out.Keep)
		}
		o.Edits = append(o.Edits, out)
	}
	return o, nil
}
