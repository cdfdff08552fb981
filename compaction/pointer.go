package compaction

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// Pointer is pointer compaction: what leaves the view leaves a pointer, never a summary, and is brought
// back word for word by recall. Papers/total-recall §5, Annex A.2. Large results and inputs of tools
// become pointers first, oldest first; then whole exchanges of tools go under a marker, and dialogue last.
// Its zero value has the defaults.
type Pointer struct {
	Tail     int             // turns of a person at the end that stay, default 10
	Headroom tidemark.Tokens // freed below the limit when it acts, default a fifth of the limit
	Large    tidemark.Tokens // a block over it becomes a pointer by itself, default 320: 1,024 characters
	Stay     []string        // tools whose newest exchange never leaves, default DefaultStay
}

// DefaultStay is the tool that keeps the state of the task. Papers/total-recall, Table A.
const DefaultStay = "task_state"

// Defaults of Pointer.
const (
	DefaultTail                  = 10
	DefaultLarge tidemark.Tokens = 320
	leastLarge   tidemark.Tokens = 160  // a pointer takes half of it
	maxPointers                  = 2000 // of one act, whose row has to fit into any database: then markers do the rest
)

// How soon a kind leaves the view, of 1 (papers/total-recall, Table A); what stands at 0 never does. The
// exchange of a tool whose result is a pointer goes by its call: the pointer would be all that is left.
const (
	weightResult   = 1.0
	weightCall     = 0.8
	weightMessage  = 0.5
	weightArtifact = 0.3
)

var _ Strategy = Pointer{}

// Name is "pointer".
func (Pointer) Name() string { return "pointer" }

// Plan frees what is needed for the low-water mark in one act, or as much as it can. It takes no more than
// that, and takes whole exchanges, so that a call keeps its result. What must stay is left out before
// anything is chosen.
func (p Pointer) Plan(v View, b Budget) []tidemark.Edit {
	legal := Cuts(v.Items) // blocks that become pointers change none of them
	tail := p.tail(v, b, legal)
	stay := p.Stay
	if stay == nil {
		stay = []string{DefaultStay}
	}
	keep := held(v.Items, legal, stay)
	edits, left := p.blocks(v, b, tail, keep)
	need := p.need(left, b)
	if need <= 0 {
		return edits
	}
	covered, gain := choose(left.Items, exchanges(left.Items, legal, tail, keep), max(need, b.minGain()))
	if gain < b.minGain() {
		if v.Size-left.Size < b.minGain() { // not worth the cached prefix
			return nil
		}
		return edits
	}
	covered = withMarkers(left.Items, covered)
	e := spanOver(left.Items, covered)
	m := markerOf(v.Items, covered) // of what was said, not of the pointers to it
	e.Messages, e.Data = []tidemark.Message{m.Message()}, m.data()
	return append(outside(edits, left.Items, covered), e)
}

// urge returns the budget for a view that is to be made smaller though it is not over the limit: as much
// as if it had just come over.
func (p Pointer) urge(v View, b Budget) Budget {
	if !b.Over(v) {
		b.Window = v.Size + b.Reserve
	}
	return b
}

// need is how much of the estimate must go.
func (p Pointer) need(v View, b Budget) tidemark.Tokens {
	headroom := p.Headroom
	if headroom == 0 {
		headroom = b.Limit() / 5
	}
	return v.estimated(v.Size - max(b.Limit()-headroom, 0))
}

// tail returns the index of the first item that stays: the newest turns, as many as there is room for, and
// the newest exchange in any case.
func (p Pointer) tail(v View, b Budget, legal []bool) int {
	turns, most := p.Tail, b.verbatim(v)
	if turns == 0 {
		turns = DefaultTail
	}
	cut := len(v.Items)
	var size tidemark.Tokens
	for i := len(v.Items) - 1; i >= 0 && turns > 0; i-- {
		if size += v.Items[i].Tokens; size > most && cut < len(v.Items) {
			break
		}
		if personTurn(&v.Items[i]) {
			turns--
		}
		if legal[i] {
			cut = i
		}
	}
	if turn := lastTurn(v.Items); turn >= 0 && turn < cut && turn == len(v.Items)-1 {
		cut = turn
	}
	return cut
}

// blocks plans pointers for large results, then for large inputs, oldest first, until enough is freed, and
// returns the view with them.
func (p Pointer) blocks(v View, b Budget, tail int, keep []bool) ([]tidemark.Edit, View) {
	large := p.Large
	if large == 0 {
		large = DefaultLarge
	}
	large = max(large, leastLarge)
	var edits []tidemark.Edit
	var at []int // items of edits
	left, before, need := v, v.Tokens(), p.need(v, b)
	shown := previewed(b)
	if need > 0 {
		need += tidemark.Tokens(shown) * previewTokens
	}
	for _, kind := range []string{tidemark.TypeToolResult, tidemark.TypeToolUse} { // in the order of their weights
		for i := range v.Items[:tail] {
			if need <= 0 || len(edits) >= maxPointers {
				break
			}
			if it := &left.Items[i]; it.Tokens <= large || keep[i] || it.Span() || !has(it.Message, kind) {
				continue
			}
			if len(edits) == 0 {
				left.Items = slices.Clone(v.Items)
			}
			was := left.Items[i].Tokens
			edits = pointers(edits, &left.Items[i], kind, large)
			need -= was - left.Items[i].Tokens
			for len(at) < len(edits) {
				at = append(at, i)
			}
		}
	}
	for n := len(edits) - 1; n >= 0 && shown > 0; n-- { // the newest, since the older ones are the next to leave
		if addPreview(&edits[n], &v.Items[at[n]], &left.Items[at[n]]) {
			shown--
		}
	}
	if len(edits) > 0 {
		left.resize(before)
	}
	return edits, left
}

// previewed is how many pointers of a plan show some lines of what they stand for: they take up to 3 % of
// the view, and the time to find them is bounded.
func previewed(b Budget) int {
	const most, share = 8, 2000
	return int(min(most, b.Limit()/share))
}

// addPreview adds a few lines of a large result to its pointer, when it still frees half of it or more.
func addPreview(e *tidemark.Edit, whole, left *Item) bool {
	blk, stub := whole.Message.Content[e.Block-1], e.Blocks[0]
	if stub.Type != tidemark.TypeToolResult || whole.Tokens < 4*previewTokens {
		return false
	}
	text := longest(blk)
	lines := preview(text, previewTokens, pointerSniff).text
	if lines == "" {
		return false
	}
	with := tidemark.ToolResult(stub.ToolUseID, stub.Content[0].Text+"\n"+lines, stub.IsError)
	if 2*tidemark.EstimateBlock(with) > tidemark.EstimateText(text) {
		return false
	}
	e.Blocks[0] = with
	left.Message.Content[e.Block-1] = with // ours: pointers made it
	left.Tokens = tidemark.Estimate(left.Message)
	return true
}

// longest returns the longest text of a result.
func longest(b tidemark.Block) string {
	text := ""
	for n := range b.Content {
		if c := &b.Content[n]; c.Type == tidemark.TypeText && len(c.Text) > len(text) {
			text = c.Text
		}
	}
	return text
}

// pointers makes pointers of the large blocks of a kind in an item, and adds an edit for each.
func pointers(edits []tidemark.Edit, it *Item, kind string, large tidemark.Tokens) []tidemark.Edit {
	whole := *it
	var content []tidemark.Block
	for n, blk := range whole.Message.Content {
		if blk.Type != kind || isPointer(&whole, blk) {
			continue
		}
		tokens := whole.Tokens
		if len(whole.Message.Content) > 1 {
			tokens = tidemark.EstimateBlock(blk)
		}
		if tokens <= large {
			continue
		}
		stub := []tidemark.Block{pointerTo(&whole, blk, tokens)}
		edits = append(edits, tidemark.Edit{From: it.From, Block: n + 1, Blocks: stub})
		if content == nil {
			content = slices.Clone(whole.Message.Content)
		}
		content[n] = stub[0]
		it.Stubs++
	}
	if content != nil {
		it.Message = tidemark.Message{Role: whole.Message.Role, Content: content}
		it.Tokens = tidemark.Estimate(it.Message)
	}
	return edits
}

// exchange is what stands between two cut points, and goes or stays as a whole.
type exchange struct {
	from, to int // items, to excluded
	tokens   tidemark.Tokens
	weight   float64
}

// exchanges lists what may leave, oldest first: no marker, no summary, nothing that is to stay and nothing
// of the tail.
func exchanges(items []Item, legal []bool, tail int, keep []bool) []exchange {
	var out []exchange
	newest := lastTurn(items)
	for from := behindSummaries(items); from < tail; {
		to := from + 1
		for to < tail && !legal[to] {
			to++
		}
		x := exchange{from: from, to: to}
		for i := from; i < to; i++ {
			x.tokens += items[i].Tokens
			x.weight = max(x.weight, weightOf(&items[i]))
		}
		if x.weight > 0 && legal[to] && !slices.Contains(keep[from:to], true) && (newest < from || newest >= to) {
			out = append(out, x)
		}
		from = to
	}
	return out
}

// behindSummaries returns the index of the first item that is behind every span which is no marker: a span
// of ours must not cut one, nor lie around it.
func behindSummaries(items []Item) int {
	var last int64
	for i := range items {
		if it := &items[i]; it.Span() && !isMarker(it) {
			last = max(last, it.Last)
		}
	}
	n := 0
	for i := range items {
		if items[i].Seq <= last {
			n = i + 1
		}
	}
	return n
}

// weightOf is how soon an item goes; replaced spans stay.
func weightOf(it *Item) float64 {
	if it.Span() {
		return 0
	}
	w := weightMessage
	for n := range it.Message.Content {
		switch b := &it.Message.Content[n]; b.Type {
		case tidemark.TypeToolResult:
			if it.Stubs > 0 && isPointer(it, *b) {
				w = max(w, weightArtifact)
			} else {
				w = weightResult
			}
		case tidemark.TypeToolUse:
			w = max(w, weightCall)
		}
	}
	return w
}

// choose marks the exchanges that go: those of tools before dialogue, the oldest first, and no more than
// are needed, with the marker that stands for them.
func choose(items []Item, list []exchange, need tidemark.Tokens) (covered []bool, gain tidemark.Tokens) {
	covered = make([]bool, len(items))
	need += markerTokens
	for _, tools := range []bool{true, false} {
		for _, x := range list {
			if gain >= need {
				break
			}
			if (x.weight > weightMessage) != tools {
				continue
			}
			gain += x.tokens
			for i := x.from; i < x.to; i++ {
				covered[i] = true
			}
		}
	}
	return covered, gain - markerTokens
}

// withMarkers adds the markers that the new one takes in: those that its span would cut, and, like the
// carry of a binary counter, those of its own level, so that after C cycles at most log2(C)+1 stand.
func withMarkers(items []Item, covered []bool) []bool {
	type mark struct{ at, cycles int }
	var marks []mark
	behind := behindSummaries(items)
	for i := len(items) - 1; i >= behind; i-- { // the newest first
		if m, ok := markerAt(&items[i]); ok {
			marks = append(marks, mark{i, m.Cycles})
		}
	}
	cycles := 1
	from, to := reach(items, covered)
	for k := 0; k < len(marks); k++ {
		m, it := marks[k], &items[marks[k].at]
		if covered[m.at] || !(it.Seq <= to && it.Last >= from) && level(m.cycles) != level(cycles) {
			continue
		}
		covered[m.at] = true
		cycles += m.cycles
		from, to = min(from, it.Seq), max(to, it.Last)
		k = -1 // each that is taken in may bring others
	}
	return covered
}

// level is the place of a marker in the binary counter.
func level(cycles int) int { return int(math.Log2(float64(max(1, cycles)))) }

// reach returns the positions between which covered items lie.
func reach(items []Item, covered []bool) (from, to int64) {
	from = math.MaxInt64
	for i, c := range covered {
		if c {
			from, to = min(from, items[i].Seq), max(to, items[i].Last)
		}
	}
	return from, to
}

// outside drops the edits of blocks that a span covers: they need none of their own.
func outside(edits []tidemark.Edit, items []Item, covered []bool) []tidemark.Edit {
	if len(edits) == 0 {
		return edits
	}
	gone := make(map[tidemark.EntryID]bool, len(items))
	for i, c := range covered {
		if c {
			gone[items[i].From] = true
		}
	}
	return slices.DeleteFunc(edits, func(e tidemark.Edit) bool { return gone[e.From] })
}

// pointerMark begins the text of every pointer.
const pointerMark = "[Evicted: "

// pointerTo returns the block that stands for a large one: what it was, and how to have it back.
func pointerTo(it *Item, b tidemark.Block, tokens tidemark.Tokens) tidemark.Block {
	if b.Type == tidemark.TypeToolUse {
		raw := fmt.Appendf(nil, `{"evicted":"%d tokens"`, tokens)
		raw = appendIdentity(raw, b.Input)
		return tidemark.ToolUse(b.ID, b.Name, fmt.Appendf(raw, `,"recall":{"entry":%q}}`, it.ID))
	}
	what := "result"
	if b.IsError {
		what = "error"
	}
	text := append(make([]byte, 0, 160), pointerMark+what+" of "...)
	text = append(strconv.AppendInt(text, int64(tokens), 10), " tokens, "...)
	text = append(it.At.AppendFormat(text, stampLayout), ". recall with {\"entry\": "...)
	text = append(json.AppendString(text, string(it.ID)), "} reads it.]"...)
	return tidemark.ToolResult(b.ToolUseID, string(text), b.IsError)
}

// identity lists the arguments that tell one call of a tool from another, the best first.
var identity = []string{"path", "file_path", "file", "url", "uri", "query", "pattern", "command", "cmd", "name", "title", "id"}

// appendIdentity adds the first of them that a call has, bounded, and one more.
func appendIdentity(dst []byte, input json.RawMessage) []byte {
	const most, args = 120, 2
	var fields map[string]json.RawMessage
	if json.Unmarshal(input, &fields) != nil {
		return dst
	}
	found := 0
	for _, key := range identity {
		raw, ok := fields[key]
		if !ok || found == args {
			continue
		}
		var s string
		if json.Unmarshal(raw, &s) != nil { // a number says itself; lists and objects are no names
			if s = string(raw); len(s) > most || !isNumber(s) {
				continue
			}
		}
		if len(s) > most {
			s = s[:runeFloor(s, most)] + "…"
		}
		if s == "" {
			continue
		}
		dst = append(json.AppendString(append(dst, ','), key), ':')
		dst = json.AppendString(dst, s)
		found++
	}
	return dst
}

// argsOf returns what the pointer of a call says of its input.
func argsOf(input json.RawMessage) []byte {
	_, args, _ := strings.Cut(string(input), ",")
	args, _, _ = strings.Cut(args, `"recall":{"entry":`)
	return []byte(args)
}

func isNumber(s string) bool { return s != "" && (s[0] == '-' || s[0] >= '0' && s[0] <= '9') }

// isPointer reports a block that stands for a large one: of an item in which blocks were replaced, since a
// tool may print what looks like one.
func isPointer(it *Item, b tidemark.Block) bool {
	if it.Stubs == 0 {
		return false
	}
	if b.Type == tidemark.TypeToolUse {
		return strings.HasPrefix(string(b.Input[:min(len(b.Input), 11)]), `{"evicted":`)
	}
	return b.Type == tidemark.TypeToolResult && len(b.Content) == 1 && strings.HasPrefix(b.Content[0].Text, pointerMark)
}
