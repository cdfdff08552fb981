package compaction

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/cleanup"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/paging"
)

// Tidied is what the operations of a model come to.
type Tidied struct {
	Edits  []tidemark.Edit
	Pins   []tidemark.EntryID
	Done   []Tidy // one for each operation, in their order
	Last   int64  // position of the last message that leaves the view whole; 0 for none
	Pruned int    // such messages
}

// Tidy is an operation and what became of it.
type Tidy struct {
	Op  cleanup.Op `json:"op"`
	Why string     `json:"why,omitempty"` // it was not done; "" when it was
}

// Refuse takes back whole turns, or everything: why says for what reason.
func (t *Tidied) Refuse(all bool, why string) {
	for i := range t.Done {
		if t.Done[i].Why == "" && (all || t.Done[i].Op.Verb == cleanup.Collapse) {
			t.Done[i].Why = why
		}
	}
	t.Edits = slices.DeleteFunc(t.Edits, func(e tidemark.Edit) bool { return all || e.Block == 0 })
	t.Last, t.Pruned = 0, 0
	if all {
		t.Pins = nil
	}
}

// Turns returns where the turns of a view begin. A turn is a message that a person typed and what followed, and turns
// are counted from 1 in the view as it is sent: what was summed up is none any more.
func Turns(items []Item) (begins []int) {
	for i := range items {
		if personTurn(&items[i]) {
			begins = append(begins, i)
		}
	}
	return begins
}

// Cooperates reports whether the model's operations are carried out.
func (p *Paging) Cooperates() bool { return !p.Alone }

// Tidy decides on the operations that a model wrote into its answer to a view. Each is done whole or not at all, and
// all of them are of the view that the model saw. Nothing that a person pinned or brought back leaves, and the newest
// thing that a person said stays as it is.
func (p *Paging) Tidy(v View, b Budget, ops []cleanup.Op) Tidied {
	h := p.paged(v, b)
	if h != nil {
		defer p.memo.Store(h)
	}
	t := tidying{v: v, h: h, legal: Cuts(v.Items), begins: Turns(v.Items), pins: map[tidemark.EntryID]bool{}, taken: map[string]bool{}}
	t.items = slices.Clone(v.Items)
	done := make([]Tidy, len(ops))
	// What is to stay stays also in turns that leave, and of what leaves with its turn no block need leave.
	for _, verbs := range [][]string{{cleanup.Anchor}, {cleanup.Collapse}, {cleanup.Drop, cleanup.Summarize, cleanup.Release}} {
		for i, op := range ops {
			if slices.Contains(verbs, op.Verb) {
				done[i] = Tidy{op, t.do(op)}
			}
		}
	}
	t.out.Done = done
	return t.out
}

// tidying is what is decided so far.
type tidying struct {
	v      View
	h      *paged // nil when no pager can take the view
	items  []Item // of the view, with what the model pins
	legal  []bool
	begins []int
	pins   map[tidemark.EntryID]bool
	taken  map[string]bool // blocks that have an edit, by handle
	spans  [][2]int        // items that leave whole
	out    Tidied
}

// do decides one operation; why says why it is not done.
func (t *tidying) do(op cleanup.Op) (why string) {
	switch op.Verb {
	case cleanup.Collapse:
		return t.collapse(op)
	case cleanup.Release:
		for _, name := range op.Paths {
			why = cmp.Or(why, t.release(name))
		}
		return why
	}
	i, block, why := t.find(op.Handle)
	if why != "" {
		return why
	}
	if op.Verb == cleanup.Anchor {
		return t.anchor(i)
	}
	return t.rewrite(i, block, op)
}

// find returns the item and the block of its entry, from 0, that a handle names: a block of an entry, an entry of one
// block, or a call by its id, which is its result.
func (t *tidying) find(handle string) (item, block int, why string) {
	id, number, numbered := strings.Cut(handle, "#")
	for i := range t.items {
		it := &t.items[i]
		if it.Span() {
			continue
		}
		if string(it.ID) == id {
			n := 0
			if numbered {
				var err error
				if n, err = strconv.Atoi(number); err != nil || strconv.Itoa(n) != number {
					return 0, 0, "it is no handle"
				}
			} else if it.Blocks() != 1 {
				return 0, 0, "its message has several blocks: name one, as in ID#0"
			}
			if n < 0 || n >= it.Blocks() {
				return 0, 0, "its message has no such block"
			}
			return i, n, ""
		}
		for n := range it.Message.Content {
			if b := &it.Message.Content[n]; b.Type == tidemark.TypeToolResult && b.ToolUseID == handle {
				return i, it.Block(n) - 1, ""
			}
		}
	}
	return 0, 0, "it is not in the context"
}

func (t *tidying) anchor(i int) string {
	it := &t.items[i]
	if !t.pins[it.ID] {
		t.pins[it.ID], it.Pinned = true, true
		t.out.Pins = append(t.out.Pins, it.ID)
	}
	return ""
}

// held says why a block stays.
func (t *tidying) held(i, block int) string {
	it := &t.items[i]
	switch {
	case it.Pinned:
		return "it is pinned"
	case slices.Contains(t.v.Back[it.ID], block+1):
		return "a person brought it back"
	case t.taken[Handle(it.ID, block)]:
		return "another operation is of it"
	case len(t.begins) > 0 && i == t.begins[len(t.begins)-1]:
		return "it is what was asked last"
	}
	return ""
}

// hidden reports whether an item leaves with its turn.
func (t *tidying) hidden(i int) bool {
	return slices.ContainsFunc(t.spans, func(s [2]int) bool { return s[0] <= i && i < s[1] })
}

// bareBytes is what a message grows by when its content, a string, becomes a list.
const bareBytes = 32

// rewrite puts a note in the place of a block of the entry, from 0.
func (t *tidying) rewrite(i, block int, op cleanup.Op) string {
	it := &t.items[i]
	if t.hidden(i) {
		if op.Verb == cleanup.Drop {
			return ""
		}
		return "its turn is collapsed"
	}
	if why := t.held(i, block); why != "" {
		return why
	}
	if op.Verb == cleanup.Drop {
		if s := it.stubbed(block + 1); s != nil {
			return "" // it is out
		}
		if g := t.page(i, block); g != nil {
			return t.evict(i, g)
		}
	}
	at, many := it.Place(block + 1)
	switch {
	case many == 0:
		return "it left the context"
	case many > 1: // a note would stand for all of them, of which it says nothing
		return "several blocks stand in its place"
	}
	b := it.Message.Content[at]
	raw := b.AppendJSON(nil)
	handle := Handle(it.ID, block)
	say := fmt.Sprintf("[Dropped by the assistant: %d bytes. %s]", len(raw), sayHandle(handle))
	if op.Verb == cleanup.Summarize {
		say = fmt.Sprintf("[The assistant's own summary of %d bytes: %s\nWhat stood here: %s]", len(raw), op.Text, sayHandle(handle))
	}
	var note tidemark.Block
	switch b.Type {
	case tidemark.TypeText, tidemark.TypeImage, tidemark.TypeDocument:
		note = tidemark.Text(say)
	case tidemark.TypeToolResult:
		note = tidemark.ToolResult(b.ToolUseID, say, b.IsError)
	default:
		return fmt.Sprintf("a block of type %.40s stays", b.Type)
	}
	if !Recallable(b) {
		return "it could not be recalled"
	}
	if it.stubbed(block+1) == nil && len(note.AppendJSON(nil))+bareBytes >= len(raw) {
		return "a note would be no shorter"
	}
	t.put(handle, tidemark.Edit{From: it.From, Block: block + 1, Blocks: []tidemark.Block{note}, Data: tidyData(op, 0)})
	return ""
}

func (t *tidying) put(handle string, e tidemark.Edit) {
	t.taken[handle] = true
	t.out.Edits = append(t.out.Edits, e)
}

// page is what paging knows of a block, nil where it knows nothing.
func (t *tidying) page(i, block int) *paging.Page {
	if t.h == nil {
		return nil
	}
	for _, g := range t.h.pager.Find(Handle(t.items[i].ID, block)) {
		if g.Message == i && t.h.block(g) == block {
			return g
		}
	}
	return nil
}

// evict puts a page out as paging does.
func (t *tidying) evict(i int, g *paging.Page) string {
	it := &t.items[i]
	at := t.h.standing(g)
	if at < 0 {
		return "it left the context"
	}
	if !Recallable(it.Message.Content[at]) {
		return "it could not be recalled"
	}
	e, ok := t.h.edit(it, g)
	if !ok {
		return "a stub would be no shorter"
	}
	t.put(Handle(it.ID, t.h.block(g)), e)
	return ""
}

// release lets go of what a handle names, or of all that calls did with a path.
func (t *tidying) release(name string) string {
	if i, block, why := t.find(name); why == "" {
		return t.rewrite(i, block, cleanup.Op{Verb: cleanup.Drop, Handle: name})
	}
	if t.h == nil {
		return "it is not in the context"
	}
	pages := t.h.pager.Find(name)
	why := ""
	if len(pages) == 0 {
		why = "nothing of it is in the context"
	}
	for _, g := range pages {
		it := &t.items[g.Message]
		if it.Span() || t.hidden(g.Message) || it.stubbed(t.h.block(g)+1) != nil {
			continue
		}
		if w := t.held(g.Message, t.h.block(g)); w != "" {
			why = w
		} else if w := t.evict(g.Message, g); w != "" && g.Part == paging.Result {
			why = w // an input that is short stays, and that is no failure
		}
	}
	return why
}

// collapse puts one message of the model's in the place of whole turns. What is pinned in them stays, with its exchange.
func (t *tidying) collapse(op cleanup.Op) string {
	if op.To >= len(t.begins) {
		return fmt.Sprintf("there are turns 1 to %d that may leave, the newest stays", max(len(t.begins)-1, 0))
	}
	from, to := t.begins[op.From-1], t.begins[op.To]
	if !t.legal[from] || !t.legal[to] {
		return "a call would be parted from its result"
	}
	for _, s := range t.spans {
		if s[0] < to && from < s[1] {
			return "another operation is of these turns"
		}
	}
	stay := held(t.items, t.legal, nil)
	e := tidemark.Edit{From: t.items[from].From, To: t.items[to-1].To}
	var size tidemark.Tokens
	last, n := int64(0), 0
	for i := from; i < to; i++ {
		it := &t.items[i]
		if last = max(last, it.Last); stay[i] {
			e.Keep = append(e.Keep, it.From)
			continue
		}
		size += it.Tokens
		n++
	}
	turns := fmt.Sprintf("Turns %d to %d", op.From, op.To)
	if op.From == op.To {
		turns = fmt.Sprintf("Turn %d", op.From)
	}
	m := tidemark.NewText(tidemark.User, fmt.Sprintf("[%s, %d messages, as the assistant itself summed them up; no person wrote this:\n%s\nWhat was said, from %s on: %s or by recall with a query.]",
		turns, n, op.Text, t.items[from].At.Format(time.DateTime), strings.TrimSuffix(sayHandle(string(t.items[from].From)), ".")))
	if tidemark.Estimate(m) >= size {
		return "a note would be no shorter"
	}
	e.Messages, e.Data = []tidemark.Message{m}, tidyData(op, n)
	t.spans = append(t.spans, [2]int{from, to})
	t.out.Edits = append(t.out.Edits, e)
	t.out.Last, t.out.Pruned = max(t.out.Last, last), t.out.Pruned+n
	return ""
}

// tidyOf is the data of an edit that a model asked for.
type tidyOf struct {
	Cleanup *struct {
		Verb     string `json:"verb"`
		From     int    `json:"from,omitempty"` // turns
		To       int    `json:"to,omitempty"`
		Messages int    `json:"messages,omitempty"`
	} `json:"cleanup"`
}

func tidyData(op cleanup.Op, n int) json.RawMessage {
	data, err := json.Marshal(map[string]any{"cleanup": map[string]any{"verb": op.Verb, "from": op.From, "to": op.To, "messages": n}})
	if err != nil { // it is made of strings and numbers
		return nil
	}
	return data
}

// Collapsed reports whether an edit put a model's own words in the place of whole turns.
func Collapsed(e tidemark.Edit) bool {
	var d tidyOf
	return e.Block == 0 && json.Unmarshal(e.Data, &d) == nil && d.Cleanup != nil && d.Cleanup.Verb == cleanup.Collapse
}

// Copy is something that the log has of what a model names.
type Copy struct {
	Entry tidemark.EntryID
	Block int // from 0
	Seq   int64
	At    time.Time
	Path  string // "" where it is of no file
	Out   bool   // it is not in the context any more
}

// Copies returns what of a path is in the view or was replaced in it: what is out of it, or else its newest copy.
func (p *Paging) Copies(v View, b Budget, path string) (out []Copy) {
	h := p.paged(v, b)
	if h == nil {
		return nil
	}
	defer p.memo.Store(h)
	pages := h.pager.Gone(path)
	if len(pages) == 0 {
		pages = h.pager.Find(path)
		pages = pages[max(len(pages)-1, 0):]
	}
	for _, g := range pages {
		it := &v.Items[g.Message]
		if !it.Span() {
			block := h.block(g)
			out = append(out, Copy{it.ID, block, it.Seq, it.At, g.Call.Path, it.stubbed(block+1) != nil})
		}
	}
	return out
}

// Path returns the file that a call names, and whether the call changes it or another one.
func (p *Paging) Path(call tidemark.Block) (files []string, changes bool) {
	tools := p.Tools
	if tools == nil {
		tools = paging.DefaultTools()
	}
	c := tools.Call(call.Name, call.Input)
	return append([]string{c.Path}, c.More...), c.Kind == paging.Changes
}
