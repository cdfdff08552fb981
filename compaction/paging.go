package compaction

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/cleanup"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/paging"
)

// Paging is demand paging (papers/pichay §3): results of tools that nobody needs leave the view, and large inputs
// and images with them; a stub stands for each, and recall brings it back word for word. What leaves and when is
// decided by a [paging.Pager] over the items of the view, as in a replay of the same session: a request is all
// before a reply. It acts long before the other strategies do, in the zones of the window, and writes nothing but
// edits of blocks.
//
// Its zero value has the paper's figures. It keeps what it decided for the next plan of the same conversation, so
// each session has one of its own; without that, or behind an edit of the history, it decides anew, and the same.
type Paging struct {
	Policy   string // of [paging.Policies], "" for the first
	Tau      int    // age from which a result may go, 0 for paging.DefaultTau
	MinBytes int    // size from which it may go, 0 for paging.DefaultMinBytes
	Zones    paging.Zones
	Tools    paging.Tools // what tools do, nil for paging.DefaultTools
	Alone    bool         // the model is not told of cleanup tags, and they are text

	memo atomic.Pointer[paged]
}

var _ Strategy = (*Paging)(nil)

// Name is "paging".
func (*Paging) Name() string { return "paging" }

// pagedBytes bounds the edits of one act, whose row has to fit into any database; the rest goes with the next.
const pagedBytes = 1 << 20

// surely is how many times larger paging may take a context to be than the view does: it counts bytes, of which a
// character that is one for the estimate may have three.
const surely = 3

// Limit is the size below which the window is surely in the zone Normal, where nothing leaves.
func (p *Paging) Limit(b Budget) tidemark.Tokens {
	z := p.Zones
	if z == (paging.Zones{}) {
		z = paging.DefaultZones
	}
	return b.Window / 100 * tidemark.Tokens(z.Advisory) / surely
}

// Plan returns a stub for each block that is out by decision and not yet in the view. What a person brought back or
// pinned stays, and so do the stubs of others.
func (p *Paging) Plan(v View, b Budget) []tidemark.Edit {
	h := p.paged(v, b)
	if h == nil {
		return nil
	}
	defer p.memo.Store(h)
	return h.edits()
}

// PagingState is what paging knows of the request that a view makes.
type PagingState struct {
	Zone      paging.Zone
	Size      tidemark.Tokens // of the context when it was decided
	Decision  paging.Decision // of this request
	Tau       int             // the age that is asked for now
	Stubs     int             // pages that are out in the view
	StubBytes int             // of what they stand for

	of    *paged
	pager *paging.Pager
	items []Item
}

// PutOut counts pages by what they were.
type PutOut struct{ Reads, Others, Inputs, Images int }

// PutOut is what overlays behind a position of the log put out, as far as it is out in the view.
func (s PagingState) PutOut(since int64) (n PutOut) {
	if s.of == nil {
		return n
	}
	for _, g := range s.pager.Stubs() {
		switch st := s.of.stub(g); {
		case st == nil || st.Row <= since:
		case g.Part == paging.Input:
			n.Inputs++
		case g.Part == paging.Image:
			n.Images++
		case g.Read:
			n.Reads++
		default:
			n.Others++
		}
	}
	return n
}

// State tells of the request that a view makes, as far as it was planned or can be.
func (p *Paging) State(v View, b Budget) PagingState {
	var s PagingState
	for i := range v.Items {
		for _, st := range v.Items[i].Stubbed {
			if k, ok := keptOf(st); ok {
				s.Stubs++
				s.StubBytes += k.Wire
			}
		}
	}
	if s.Size = v.Size; v.Size <= p.Limit(b) && s.Stubs == 0 {
		return s
	}
	h := p.paged(v, b)
	if h == nil {
		return s
	}
	defer p.memo.Store(h)
	s.Tau, s.of, s.pager, s.items = h.pager.Tau(), h, h.pager, h.items
	if h.asked > 0 && h.asked == len(v.Items) { // the newest request is this one
		s.Decision, s.Zone, s.Size = h.last, h.last.Zone, h.last.Size
	}
	return s
}

// paged is a pager with the history that it has seen.
type paged struct {
	pager   *paging.Pager
	scan    paging.Scanner
	options paging.Options
	ids     []tidemark.EntryID // of the items that are its messages
	begun   int64              // position of the newest overlay that replaced a span
	before  int                // of them, those of the requests before the newest
	asked   int                // items of the newest request
	last    paging.Decision    // of that

	items []Item // of the present view
	held  map[tidemark.EntryID][]int
	moved map[int][]int // by message, for those that were read when some block was out: of which block each of theirs is, from 0
	rows  []int64       // overlays of the stubs in it, one for each stub, in order
	left  int           // how many of them were put out
}

func (p *Paging) options(v View, b Budget) paging.Options {
	return paging.Options{Policy: p.Policy, Tau: p.Tau, MinBytes: p.MinBytes, Window: b.Window, Zones: p.Zones, Fixed: v.Fixed}
}

// paged brings the pager up to the view. It is nil for a view that no pager can take.
func (p *Paging) paged(v View, b Budget) *paged {
	o := p.options(v, b)
	h := p.memo.Swap(nil) // who plans at the same time decides anew
	begun := int64(0)
	for i := range v.Items {
		begun = max(begun, v.Items[i].Row)
	}
	if h != nil {
		o.Fixed = h.options.Fixed // a new system prompt is no other history
	}
	if h == nil || h.options != o || h.begun != begun || !h.continues(v) {
		o.Fixed = v.Fixed
		pager, err := paging.New(o)
		if err != nil { // the settings were checked
			return nil
		}
		tools := p.Tools
		if tools == nil {
			tools = paging.DefaultTools()
		}
		h = &paged{pager: pager, options: o, begun: begun, scan: paging.Scanner{Tools: tools}}
	}
	h.items, h.held, h.rows = v.Items, v.Back, nil
	for i := range v.Items {
		for _, s := range v.Items[i].Stubbed {
			if ours(s) {
				h.rows = append(h.rows, s.Row)
			}
		}
	}
	slices.Sort(h.rows)
	h.pager.Hold(h.holds)
	if err := h.catchUp(); err != nil {
		return nil
	}
	return h
}

// continues reports whether a view goes on where the history ends, and nothing is out that was brought back.
func (h *paged) continues(v View) bool {
	if len(v.Items) < len(h.ids) {
		return false
	}
	for i, id := range h.ids {
		if v.Items[i].ID != id {
			return false
		}
	}
	if len(v.Back) == 0 {
		return true
	}
	for _, g := range h.pager.Stubs() {
		if it := &v.Items[g.Message]; slices.Contains(v.Back[it.ID], h.block(g)+1) && it.stubbed(h.block(g)+1) == nil {
			return false
		}
	}
	return true
}

// catchUp gives the pager the requests that came since. A reply ends a request; what follows a reply at once is of
// the same one. The items that stood there when a span was replaced begin a history, and the request behind that has
// no step: what was done then stands.
func (h *paged) catchUp() error {
	for {
		from, to := len(h.ids), h.asks(len(h.ids))
		if to < 0 || to == from {
			return nil
		}
		var step paging.Step
		if from > 0 && h.items[from].Message.Role != tidemark.Assistant { // the newest request got no reply: it was none
			step.Cut, step.Keep = true, h.before
			from, h.ids = h.before, h.ids[:h.before]
		}
		h.before = from
		for i := from; i < to; i++ {
			m, err := h.message(&h.items[i])
			if err != nil {
				return fmt.Errorf("paging: entry %s: %w", h.items[i].ID, err)
			}
			if !h.move(i) {
				m.Handle = string(h.items[i].ID) // memory_release and recall name it so
			}
			step.Append = append(step.Append, m)
			h.ids = append(h.ids, h.items[i].ID)
		}
		if from > 0 && !step.Cut {
			if u := usageOf(&h.items[from]); u != nil {
				h.pager.Reported(u)
			}
			h.leave(h.items[from].Seq)
		}
		step.Idle = from == 0 && h.begun > 0
		d, err := h.pager.Step(step)
		if err != nil {
			return err
		}
		if step.Idle {
			h.leave(h.begun)
		}
		h.last, h.asked = d, to
	}
}

// leave puts out what was out in the view before a position, whatever the pager decided: by an act of other settings,
// of another branch, or of an older history. What was put out later is for the requests to come, which decide it
// anew.
func (h *paged) leave(until int64) {
	n, _ := slices.BinarySearch(h.rows, until+1)
	if n == h.left { // no more than the last time
		return
	}
	h.left = n
	h.pager.Leave(func(g *paging.Page) bool {
		s := h.stub(g)
		return s != nil && s.Row <= until
	})
}

// asks returns where the request ends that begins behind item from, or -1 when none has been made.
func (h *paged) asks(from int) int {
	n := len(h.items)
	i := from
	if from == 0 && h.begun > 0 { // the history as the span left it, and the request and reply that followed
		for i < n && (h.items[i].Span() || h.items[i].Seq < h.begun) {
			i++
		}
		for i < n && h.items[i].Message.Role != tidemark.Assistant {
			i++
		}
		if i == n {
			return -1
		}
		return i
	}
	for i < n && h.items[i].Message.Role == tidemark.Assistant {
		i++
	}
	for i < n && h.items[i].Message.Role != tidemark.Assistant {
		i++
	}
	if i == from || h.items[i-1].Message.Role == tidemark.Assistant {
		return -1 // nothing was asked since
	}
	return i
}

// move notes which blocks of the entry a message has that the pager reads, and reports whether they have other numbers
// there. The pager knows no handle of such a message, since it would count wrong.
func (h *paged) move(i int) bool {
	it := &h.items[i]
	delete(h.moved, i)
	if !it.shifted() {
		return false
	}
	if h.moved == nil {
		h.moved = map[int][]int{}
	}
	blocks := make([]int, len(it.Message.Content))
	for at := range blocks {
		blocks[at] = it.Block(at) - 1
	}
	h.moved[i] = blocks
	return true
}

// block returns which block of its entry a page is, from 0: for handles and edits.
func (h *paged) block(g *paging.Page) int {
	if blocks := h.moved[g.Message]; g.Block < len(blocks) {
		return blocks[g.Block]
	}
	return g.Block
}

// standing returns where the block of a page stands in the content, -1 where something else does, or nothing.
func (h *paged) standing(g *paging.Page) int {
	it, block := &h.items[g.Message], h.block(g)+1
	if at, many := it.Place(block); many == 1 && it.stubbed(block) == nil {
		return at
	}
	return -1
}

// message is an item as the pager wants it: with what the stubs of paging stand for.
func (h *paged) message(it *Item) (paging.Message, error) {
	var kept map[int]paging.Kept
	for _, s := range it.Stubbed {
		if s.Many != 1 { // blocks do not stand where they did, see move
			return h.scan.Of(it.Message)
		}
		if k, ok := keptOf(s); ok {
			if kept == nil {
				kept = map[int]paging.Kept{}
			}
			kept[s.At] = k.Kept
		}
	}
	return h.scan.Original(it.Message, kept)
}

// pagedOut is the data of an edit.
type pagedOut struct {
	Paging *struct{}       `json:"paging"` // {}: that it is one of ours
	Usage  *tidemark.Usage `json:"usage,omitempty"`
	paging.Kept
}

// ours reports whether a stub is one of paging.
func ours(s Stubbed) bool {
	return strings.HasPrefix(string(s.Data[:min(len(s.Data), 10)]), `{"paging":`)
}

// keptOf reads what was stored beside a stub, if it is one of paging.
func keptOf(s Stubbed) (k pagedOut, ok bool) {
	if !ours(s) {
		return k, false
	}
	err := json.Unmarshal(s.Data, &k)
	return k, err == nil && k.Paging != nil
}

// usageOf is what the provider reported of the request that an item answers. Of one whose blocks all are out it
// stands beside a stub.
func usageOf(it *Item) *tidemark.Usage {
	if it.Call != nil {
		if it.Call.Reported {
			return &it.Call.Usage
		}
		return nil
	}
	for _, s := range it.Stubbed {
		if k, ok := keptOf(s); ok && k.Usage != nil {
			return k.Usage
		}
	}
	return nil
}

// stub is what stands for a page in the view, nil where it stands there itself or another strategy put something in
// its place.
func (h *paged) stub(g *paging.Page) *Stubbed {
	if s := h.items[g.Message].stubbed(h.block(g) + 1); s != nil && ours(*s) {
		return s
	}
	return nil
}

// holds reports whether a page stays whatever is decided: what a person pinned or brought back, what replaced a span,
// what another strategy put there, and what could not be given back or would take no less room.
func (h *paged) holds(g *paging.Page) bool {
	it := &h.items[g.Message]
	block := h.block(g) + 1
	if it.Pinned || it.Span() || it.stubbed(block) != nil || slices.Contains(h.held[it.ID], block) {
		return h.stub(g) == nil
	}
	return h.stays(it, g)
}

// edits returns an edit for each page that is out and whose block stands in the view; what no model has read leaves
// when one has.
func (h *paged) edits() []tidemark.Edit {
	var out []tidemark.Edit
	size := 0
	from, _ := unread(h.items)
	for _, g := range h.pager.Stubs() {
		it := &h.items[g.Message]
		if g.Message >= from || h.standing(g) < 0 || h.holds(g) {
			continue
		}
		if e, ok := h.edit(it, g); ok {
			if size += len(e.Data) + len(e.Blocks[0].AppendJSON(nil)); size > pagedBytes {
				break
			}
			out = append(out, e)
		}
	}
	return out
}

// edit puts the stub of a page in the place of its block. ok is false where the stub would be no shorter, and where
// the block does not stand there.
func (h *paged) edit(it *Item, g *paging.Page) (e tidemark.Edit, ok bool) {
	at := h.standing(g)
	if at < 0 {
		return e, false
	}
	b := it.Message.Content[at]
	stub, err := h.scan.Replace(b, g, sayHandle(Handle(it.ID, h.block(g))))
	if err != nil || len(stub.AppendJSON(nil)) >= len(b.AppendJSON(nil)) {
		return e, false
	}
	m, err := h.message(it)
	if err != nil {
		return e, false
	}
	k, ok := m.Kept(at)
	if !ok {
		return e, false
	}
	data, err := json.Marshal(pagedOut{Paging: &struct{}{}, Usage: usageOf(it), Kept: k})
	if err != nil {
		return e, false
	}
	return tidemark.Edit{From: it.From, Block: h.block(g) + 1, Blocks: []tidemark.Block{stub}, Data: data}, true
}

// Handle names a block of an entry, from 0, as recall and memory_release take it.
func Handle(id tidemark.EntryID, block int) string { return string(id) + "#" + strconv.Itoa(block) }

// sayHandle is how a stub names the way back.
func sayHandle(handle string) string {
	return string(json.AppendString([]byte(`recall with {"entry": `), handle)) + "} reads it."
}

// Advice is what the model is told of a context that fills up, "" while there is room.
func (p *Paging) Advice(v View, b Budget) string {
	s := p.State(v, b)
	if s.pager == nil {
		return ""
	}
	f := s.pager.Fill(func(g *paging.Page) string {
		if !g.Out() && s.of.standing(g) < 0 { // another strategy took it
			return ""
		}
		return Handle(s.items[g.Message].ID, s.of.block(g))
	})
	f.Recall, f.Tags = true, !p.Alone
	if f.Tags {
		f.Grammar, f.Turn = cleanup.Grammar, len(Turns(v.Items))
	}
	return paging.Advice(f)
}

// PagedOut returns how many edits are stubs of paging, and the bytes that they stand for.
func PagedOut(edits []tidemark.Edit) (n, bytes int) {
	for _, e := range edits {
		if k, ok := keptOf(Stubbed{Data: e.Data}); ok && e.Block > 0 {
			n++
			bytes += k.Wire
		}
	}
	return n, bytes
}
