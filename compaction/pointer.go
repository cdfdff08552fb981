package compaction

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/episodes"
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
	keep, pinned := held(v.Items, legal, stay), held(v.Items, legal, nil)
	for i, stays := range whole(v, b) {
		keep[i], pinned[i] = keep[i] || stays, pinned[i] || stays
	}
	d := newDraft(v)
	_, calls := newestCalls(v.Items, stay)
	p.blocks(d, b, tail, keep, pinned, calls)
	need := p.need(d, b)
	if need <= 0 {
		return d.edits(nil)
	}
	need = max(need, b.minGain(v))
	behind, marks := spans(v.Items, false)
	covered, gain := choose(len(v.Items), exchanges(d, behind, legal, tail, keep), need)
	if gain < need { // what stands before the line of an episode is to leave, too, and the lines between with it
		if first, all := spans(v.Items, true); first < behind {
			marks = all
			covered, gain = choose(len(v.Items), exchanges(d, first, legal, tail, keep), need)
		}
	}
	if gain < b.minGain(v) {
		if v.Size-d.size < b.minGain(v) { // not worth the cached prefix
			return nil
		}
		return d.edits(nil)
	}
	covered = withMarkers(v.Items, covered, marks)
	return append(d.edits(covered), markerOf(v.Items, covered).Put(spanOver(v.Items, covered)))
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
func (p Pointer) need(d *draft, b Budget) tidemark.Tokens {
	headroom := p.Headroom
	if headroom == 0 {
		headroom = b.Limit() / 5
	}
	return scaled(d.size-max(b.Limit()-headroom, 0), d.sum, d.size-d.fixed)
}

// tail returns the index of the first item that stays: the newest turns, as many as there is room for, and
// what no model has read in any case.
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
	from, _ := unread(v.Items)
	return min(cut, from)
}

// blocks plans pointers for large results, then for large inputs, oldest first, until enough is freed. What is pinned or sent
// [whole] stays, and of what else is kept the calls for whose sake it is. What was called beside them need not: it may fill the window.
func (p Pointer) blocks(d *draft, b Budget, tail int, keep, pinned []bool, calls map[string]bool) {
	large := p.Large
	if large == 0 {
		large = DefaultLarge
	}
	large = max(large, leastLarge)
	before, need := d.sum, p.need(d, b)
	shown := previewed(b)
	if need > 0 {
		need += tidemark.Tokens(shown) * previewTokens
	}
	for _, kind := range []string{tidemark.TypeToolResult, tidemark.TypeToolUse} { // in the order of their weights
		for i := range tail {
			if need <= 0 || len(d.stubs) >= maxPointers {
				break
			}
			if d.tokens[i] <= large || pinned[i] || d.items[i].Span() || !has(d.items[i].Message, kind) {
				continue
			}
			was := d.tokens[i]
			var stay map[string]bool
			if keep[i] {
				stay = calls
			}
			d.point(i, kind, large, stay)
			need -= was - d.tokens[i]
		}
	}
	for n := len(d.stubs) - 1; n >= 0 && shown > 0; n-- { // the newest, since the older ones are the next to leave
		if d.preview(&d.stubs[n]) {
			shown--
		}
	}
	if len(d.stubs) > 0 {
		d.size = resized(d.size, d.fixed, before, d.sum)
	}
}

// previewed is how many pointers of a plan show some lines of what they stand for: they take up to 3 % of
// the view, and the time to find them is bounded.
func previewed(b Budget) int {
	const most, share = 8, 2000
	return int(min(most, b.Limit()/share))
}

// exchange is what stands between two cut points, and goes or stays as a whole.
type exchange struct {
	from, to int // items, to excluded
	tokens   tidemark.Tokens
	weight   float64
}

// exchanges lists what may leave, oldest first: no marker, no summary, nothing that is to stay and nothing
// of the tail.
func exchanges(d *draft, behind int, legal []bool, tail int, keep []bool) []exchange {
	var out []exchange
	for from := behind; from < tail; {
		to := from + 1
		for to < tail && !legal[to] {
			to++
		}
		x := exchange{from: from, to: to}
		for i := from; i < to; i++ {
			x.tokens += d.tokens[i]
			x.weight = max(x.weight, weightOf(d.item(i)))
		}
		if x.weight > 0 && legal[to] && !slices.Contains(keep[from:to], true) {
			out = append(out, x)
		}
		from = to
	}
	return out
}

// mark is a marker of a view: its item, and the compactions that it stands for; or the line of an episode.
type mark struct {
	at, cycles int
	line       bool
}

// spans returns the index of the first item that is behind every span which is no marker, since a span of ours
// must not cut one, nor lie around it, and the markers from there on, the newest first. With lines those of episodes are
// among them.
func spans(items []Item, lines bool) (behind int, marks []mark) {
	var last int64
	for i := len(items) - 1; i >= 0; i-- {
		it := &items[i]
		if !it.Span() {
			continue
		}
		if m, ok := markerAt(it); ok {
			marks = append(marks, mark{at: i, cycles: m.Cycles})
		} else if lines && episodes.LineOf(it.Data) != nil {
			marks = append(marks, mark{at: i, line: true})
		} else {
			last = max(last, it.Last)
		}
	}
	for _, m := range slices.Backward(marks) { // what one keeps that is not taken in lies within its span
		if it := &items[m.at]; it.Seq <= last {
			last = max(last, it.Last)
		}
	}
	for i := len(items) - 1; i >= 0; i-- {
		if items[i].Seq <= last {
			behind = i + 1
			break
		}
	}
	for len(marks) > 0 && marks[len(marks)-1].at < behind {
		marks = marks[:len(marks)-1]
	}
	return behind, marks
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
func choose(items int, list []exchange, need tidemark.Tokens) (covered []bool, gain tidemark.Tokens) {
	covered = make([]bool, items)
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
func withMarkers(items []Item, covered []bool, marks []mark) []bool {
	cycles := 1
	from, to := reach(items, covered)
	for k := 0; k < len(marks); k++ {
		m, it := marks[k], &items[marks[k].at]
		if covered[m.at] || !(it.Seq <= to && it.Last >= from) && (m.line || level(m.cycles) != level(cycles)) {
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
	const room = 192 // for ids as long as ours
	text := append(make([]byte, 0, room), pointerMark+what+" of "...)
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
		return bytes.HasPrefix(b.Input, []byte(`{"evicted":`))
	}
	return b.Type == tidemark.TypeToolResult && len(b.Content) == 1 && strings.HasPrefix(b.Content[0].Text, pointerMark)
}
