package compaction

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/cleanup"
	"github.com/tidemark-ai/tidemark/paging"
)

// TestPagingLimit: a third of where the first zone begins, since a pager counts bytes.
func TestPagingLimit(t *testing.T) {
	for _, row := range []struct {
		zones        paging.Zones
		window, want tidemark.Tokens
	}{{paging.Zones{}, 200_000, 20_000}, {paging.Zones{Advisory: 10, Involuntary: 20, Aggressive: 30}, 200_000, 6_666}, {paging.Zones{}, 199, 10}, {paging.Zones{}, 0, 0}} {
		if got := (&Paging{Zones: row.zones}).Limit(Budget{Window: row.window}); got != row.want {
			t.Errorf("%v of %d: %d, want %d", row.zones, row.window, got, row.want)
		}
	}
	if (&Paging{}).Name() != "paging" {
		t.Error("it has another name")
	}
}

// TestPagingRequests: a request is all before a reply, with what follows a reply at once; behind a span that was replaced the
// history begins anew, with the request and reply that followed.
func TestPagingRequests(t *testing.T) {
	for _, row := range []struct {
		items string
		from  int
		begun int64
		want  int
	}{
		{"", 0, 0, -1}, {"u", 0, 0, 1}, {"u a u", 0, 0, 1}, {"u u a", 0, 0, 2}, {"u a u", 1, 0, 3}, {"u a", 1, 0, -1}, {"u", 1, 0, -1}, {"a u", 0, 0, 2}, {"u a a u u a", 1, 0, 5}, {"a", 0, 0, -1},
		{"S u a u", 0, 3, 2}, {"S u u u a u", 0, 3, 4}, {"S u u", 0, 3, -1}, {"S a a a u", 0, 3, 2}, {"S a S a u", 0, 2, 1}, {"S u a u", 3, 3, 4}, {"u a", 0, 2, 1}, {"a u", 0, 1, 0},
	} {
		h := &paged{items: scripted(row.items), begun: row.begun}
		if got := h.asks(row.from); got != row.want {
			t.Errorf("%q, begun at %d: the request behind %d ends at %d, want %d", row.items, row.begun, row.from, got, row.want)
		}
	}
}

// TestPagingContinues: a history goes on in a view that has all its entries in their places, and more.
func TestPagingContinues(t *testing.T) {
	for _, row := range []struct {
		ids, items string
		want       bool
	}{{"", "u a", true}, {"e1 e2", "u a", true}, {"e1 e2", "u a u", true}, {"e1 e2", "u", false}, {"e1 e3", "u a u", false}, {"e2", "u a", false}} {
		h := &paged{}
		for id := range strings.FieldsSeq(row.ids) {
			h.ids = append(h.ids, tidemark.EntryID(id))
		}
		if got := h.continues(View{Items: scripted(row.items)}); got != row.want {
			t.Errorf("%q goes on in %q: %v", row.ids, row.items, got)
		}
	}
}

// TestPagingData: stubs of paging are told by their data, and what was reported of a request stands beside the reply, or beside
// a stub of one whose blocks are all out.
func TestPagingData(t *testing.T) {
	const kept = `{"paging":{},"usage":{"input_tokens":7,"output_tokens":2},"wire":900}`
	for data, want := range map[string]bool{kept: true, `{"paging":{}}`: true, `{"paging":null}`: false, `{"paging":`: false, `{"trim":{}}`: false, "": false, `{"pagin`: false} {
		if _, ok := keptOf(Stubbed{Data: []byte(data)}); ok != want {
			t.Errorf("%s is of paging: %v", data, ok)
		}
	}
	edits := []tidemark.Edit{{Block: 1, Data: []byte(`{"paging":{}}`)}, {Block: 1, Data: []byte(`{"trim":{}}`)}, {Data: []byte(`{"paging":{}}`)}, {Block: 2, Data: []byte(`{"paging":{}}`)}}
	if n, bytes := PagedOut(edits); n != 2 || bytes != 0 {
		t.Errorf("%d are out, %d bytes", n, bytes)
	}
	reported, guessed := &tidemark.Call{Reported: true, Usage: tidemark.Usage{Input: 5}}, &tidemark.Call{Usage: tidemark.Usage{Input: 5}}
	for name, row := range map[string]struct {
		it   Item
		want string
	}{
		"a reply":                {Item{Call: reported}, "{5 0 0 0}"},
		"without a report":       {Item{Call: guessed, Stubbed: []Stubbed{{Data: []byte(kept)}}}, "none"},
		"beside a stub":          {Item{Stubbed: []Stubbed{{Data: []byte(`{"paging":{}}`)}, {Data: []byte(kept)}}}, "{7 0 0 2}"},
		"beside one of another":  {Item{Stubbed: []Stubbed{{Data: []byte(`{"trim":{},"usage":{"input_tokens":7}}`)}}}, "none"},
		"what nobody replied to": {Item{}, "none"},
	} {
		got := "none"
		if u := usageOf(&row.it); u != nil {
			got = fmt.Sprint(*u)
		}
		if got != row.want {
			t.Errorf("%s: %s, want %s", name, got, row.want)
		}
	}
}

// pagedWork is a view in which results, an input and a picture are long ago, and some turns behind them.
func pagedWork(t *testing.T) View {
	t.Helper()
	long := strings.Repeat("one line of it\n", 100)
	image := blockFrom(t, `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"`+strings.Repeat("QUJD", 500)+`"}}`)
	ms := []tidemark.Message{of(tidemark.User, tidemark.Text("go"), image)}
	for i, c := range []tidemark.Block{
		tidemark.ToolUse("c0", "Read", []byte(`{"file_path":"/a/b.go"}`)), tidemark.ToolUse("c1", "Bash", []byte(`{"command":"make"}`)),
		tidemark.ToolUse("c2", "Write", []byte(`{"file_path":"/a/c.go","content":"`+strings.Repeat("x", 3000)+`"}`)),
	} {
		ms = append(ms, of(tidemark.Assistant, tidemark.Text("now"), c), of(tidemark.User, tidemark.ToolResult(fmt.Sprint("c", i), long, false)))
	}
	for range 6 {
		ms = append(ms, tidemark.NewText(tidemark.Assistant, "yes"), tidemark.NewText(tidemark.User, "and on"))
	}
	return saying(ms...)
}

// eagerPaging acts in a window that is nearly empty.
func eagerPaging() *Paging {
	return &Paging{Tau: 1, MinBytes: 100, Zones: paging.Zones{Advisory: 3, Involuntary: 4, Aggressive: 5}}
}

// TestPagingPutOut: what overlays behind a position put out is counted by what it was, as far as it is out in the view.
func TestPagingPutOut(t *testing.T) {
	b := Budget{Window: 8000, Reserve: 500, Keep: 500}
	v := pagedWork(t)
	edits := eagerPaging().Plan(v, b)
	if got := toldAll(edits); got != "e3#1 e5#1 e1#2 e6#2 e7#1" {
		t.Errorf("planned %s", got)
	}
	after, err := Preview(v, edits, b)
	if err != nil {
		t.Fatal(err)
	}
	bytes := 0
	for i := range after.Items {
		for n := range after.Items[i].Stubbed {
			after.Items[i].Stubbed[n].Row = 50
			k, _ := keptOf(after.Items[i].Stubbed[n])
			bytes += k.Wire
		}
	}
	more := saying(tidemark.NewText(tidemark.Assistant, "yes"), tidemark.NewText(tidemark.User, "and on"))
	for i, it := range more.Items {
		it.ID = tidemark.EntryID(fmt.Sprint("f", i))
		it.From, it.To, it.Seq, it.Last = it.ID, it.ID, int64(51+i), int64(51+i)
		after.Items = append(after.Items, it)
	}
	after.Size = after.Tokens()
	p := eagerPaging()
	st := p.State(after, b)
	if st.Stubs != len(edits) || st.StubBytes != bytes || bytes < 7000 {
		t.Errorf("%d stubs of %d bytes, want %d of %d", st.Stubs, st.StubBytes, len(edits), bytes)
	}
	for since, want := range map[int64]PutOut{0: {Reads: 1, Others: 2, Inputs: 1, Images: 1}, 49: {Reads: 1, Others: 2, Inputs: 1, Images: 1}, 50: {}} {
		if got := st.PutOut(since); got != want {
			t.Errorf("behind %d: %+v, want %+v", since, got, want)
		}
	}
	if (PagingState{}).PutOut(0) != (PutOut{}) {
		t.Error("of nothing something is out")
	}
}

// TestPagingState: of a view that surely has room nothing is asked; of any other it is told how full it was when it was decided.
func TestPagingState(t *testing.T) {
	small := saying(tidemark.NewText(tidemark.User, "hello"))
	p := &Paging{}
	if s := p.State(small, Budget{Window: 8000}); s.Size != small.Size || s.pager != nil || s.Tau != 0 || s.Stubs != 0 || p.Advice(small, Budget{Window: 8000}) != "" {
		t.Errorf("of a small view: %+v", s)
	}
	at := scriptedView("u=800")
	if s := p.State(at, Budget{Window: 8000}); s.pager != nil { // 80*30/3
		t.Errorf("at the limit: %+v", s)
	}
	at.Size++
	if s := p.State(at, Budget{Window: 8000}); s.pager == nil || s.Tau != paging.DefaultTau {
		t.Errorf("above it: %+v", s)
	}
	if s := (&Paging{Policy: "none"}).State(at, Budget{Window: 8000}); s.pager != nil || s.Size != at.Size {
		t.Errorf("without a pager: %+v", s)
	}
	v := pagedWork(t)
	b := Budget{Window: 8000, Reserve: 500, Keep: 500}
	s := eagerPaging().State(v, b)
	if s.Zone != s.Decision.Zone || s.Size != s.Decision.Size || s.Zone != paging.Aggressive || s.Size == v.Size {
		t.Errorf("decided in zone %s at %d tokens: %+v", s.Zone, s.Size, s.Decision)
	}
	answered := v
	answered.Items = append(answered.Items[:len(answered.Items):len(answered.Items)], saying(tidemark.NewText(tidemark.Assistant, "so")).Items...)
	if s := eagerPaging().State(answered, b); s.Zone != paging.Normal || s.Size != answered.Size {
		t.Errorf("behind a reply nothing is asked: zone %s at %d tokens", s.Zone, s.Size)
	}
	full := Budget{Window: 1000}
	with, without := (&Paging{}).Advice(v, full), (&Paging{Alone: true}).Advice(v, full)
	if !strings.Contains(with, cleanup.Grammar) || strings.Contains(without, "<memory_cleanup>") || without == "" {
		t.Errorf("with tags:\n%s\nwithout:\n%s", with, without)
	}
}

// TestPagingRowBound: the edits of an act come to a MiB, to the byte, which fits into a row; the rest goes with the next.
func TestPagingRowBound(t *testing.T) {
	const pages = 2100
	view := func(longer int) View { // so many of the pages have a name that is longer by a byte
		ms := []tidemark.Message{tidemark.NewText(tidemark.User, "go")}
		for i := range pages {
			id, n := fmt.Sprint("c", i), 165
			if i < longer {
				n++
			}
			ms = append(ms, of(tidemark.Assistant, tidemark.ToolUse(id, "Read", fmt.Appendf(nil, `{"file_path":"/%s/%d.go"}`, strings.Repeat("d", n), i))),
				of(tidemark.User, tidemark.ToolResult(id, fmt.Sprint(i, strings.Repeat(" line of it", 70)), false)))
		}
		for range 6 {
			ms = append(ms, tidemark.NewText(tidemark.Assistant, "yes"), tidemark.NewText(tidemark.User, "and on"))
		}
		return saying(ms...)
	}
	b := Budget{Window: 8000}
	act := func(v View) (edits []tidemark.Edit, size int) {
		edits = eagerPaging().Plan(v, b)
		for _, e := range edits {
			size += len(e.Data) + len(e.Blocks[0].AppendJSON(nil))
		}
		return edits, size
	}
	first, size := act(view(0))
	full, now := act(view(1<<20 - size))
	if len(full) != len(first) || now != 1<<20 {
		t.Errorf("%d edits of %d bytes, and with names that are longer %d of %d", len(first), size, len(full), now)
	}
	if less, now := act(view(1<<20 - size + 1)); len(less) != len(first)-1 {
		t.Errorf("where there is no room for a byte more %d edits of %d bytes", len(less), now)
	}
	after, err := Preview(view(0), first, b)
	if err != nil {
		t.Fatal(err)
	}
	if rest, _ := act(after); len(first)+len(rest) != pages {
		t.Errorf("%d of %d pages left, and then %d", len(first), pages, len(rest))
	}
}

// TestPagingReported: the size of a request is what the provider reported of the one before, and what came since.
func TestPagingReported(t *testing.T) {
	said := func(reports ...*tidemark.Usage) tidemark.Tokens {
		ms := []tidemark.Message{tidemark.NewText(tidemark.User, "go")}
		for range reports {
			ms = append(ms, tidemark.NewText(tidemark.Assistant, "yes"), tidemark.NewText(tidemark.User, "and on"))
		}
		v := saying(ms...)
		for i, u := range reports {
			if u != nil {
				v.Items[2*i+1].Call = &tidemark.Call{Reported: true, Usage: *u}
			}
		}
		v.Size = 9000
		return (&Paging{}).State(v, Budget{Window: 8000}).Size
	}
	none := said(nil)
	if got := said(&tidemark.Usage{Input: 5000, Output: 10}); none > 100 || got < 5010 || got > 5010+none {
		t.Errorf("of a first request of 5,010 tokens the next has %d, without a report %d", got, none)
	}
	if got := said(&tidemark.Usage{Input: 5000, Output: 10}, &tidemark.Usage{Input: 3000, Output: 10}); got < 3010 || got > 3010+none {
		t.Errorf("of a second of 3,010 the next has %d", got)
	}
	if got := said(&tidemark.Usage{Input: 5000, Output: 10}, nil); got < 5010 || got > 5010+2*none {
		t.Errorf("of a second without a report the next has %d", got)
	}
}

// TestPagingAdviceNames: the model is told of what stands there and what is out, by handles; not of what another strategy took.
func TestPagingAdviceNames(t *testing.T) {
	v := pagedWork(t)
	b := Budget{Window: 1000}
	before := (&Paging{Tau: 1000}).Advice(v, b)
	took, err := Preview(v, []tidemark.Edit{{From: "e6", Block: 2, Blocks: []tidemark.Block{tidemark.ToolUse("c2", "Write", []byte(`{"evicted":"9 tokens"}`))}}}, b)
	if err != nil {
		t.Fatal(err)
	}
	after := (&Paging{Tau: 1000}).Advice(took, b)
	out, err := Preview(v, eagerPaging().Plan(v, Budget{Window: 8000}), b)
	if err != nil {
		t.Fatal(err)
	}
	gone := eagerPaging().Advice(out, b)
	for _, row := range []struct {
		name, text string
		named      bool
	}{{"as it came", before, true}, {"where another strategy took it", after, false}, {"where paging put it out", gone, true}} {
		if strings.Contains(row.text, "\n- e6#1 Write /a/c.go: 3,036 bytes") != row.named {
			t.Errorf("%s:\n%s", row.name, row.text)
		}
	}
}

// TestPagingHolds: what somebody pinned or brought back stays, and so does what another strategy put there, what stands for a
// span and what recall could not give back. A stub of ours is out, whoever holds its block.
func TestPagingHolds(t *testing.T) {
	b := Budget{Window: 8000}
	ours, trims := []byte(`{"paging":{}}`), []byte(`{"trim":{}}`)
	for name, row := range map[string]struct {
		do   func(it *Item)
		back []int
		want bool
	}{
		"as it came":             {func(*Item) {}, nil, false},
		"pinned":                 {func(it *Item) { it.Pinned = true }, nil, true},
		"brought back":           {func(*Item) {}, []int{1}, true},
		"another block was":      {func(*Item) {}, []int{0, 2}, false},
		"a span":                 {func(it *Item) { it.Overlay = "o" }, nil, true},
		"ours":                   {func(it *Item) { it.Stubbed, it.Stubs = []Stubbed{{Block: 1, Many: 1, Data: ours}}, 1 }, nil, false},
		"ours, and pinned":       {func(it *Item) { it.Stubbed, it.Stubs, it.Pinned = []Stubbed{{Block: 1, Many: 1, Data: ours}}, 1, true }, nil, false},
		"ours, and brought back": {func(it *Item) { it.Stubbed, it.Stubs = []Stubbed{{Block: 1, Many: 1, Data: ours}}, 1 }, []int{1}, false},
		"another strategy's":     {func(it *Item) { it.Stubbed, it.Stubs = []Stubbed{{Block: 1, Many: 1, Data: trims}}, 1 }, nil, true},
		"of another block":       {func(it *Item) { it.Stubbed, it.Stubs = []Stubbed{{Block: 2, At: 1, Many: 1, Data: trims}}, 1 }, nil, false},
		"what cannot come back":  {func(it *Item) { it.Message.Content[0].Content = []tidemark.Block{{Type: "odd"}} }, nil, true},
	} {
		v := pagedWork(t)
		h := eagerPaging().paged(v, b)
		pages := h.pager.Find("e3#0")
		if len(pages) != 1 {
			t.Fatalf("%d pages are e3#0", len(pages))
		}
		h.held = map[tidemark.EntryID][]int{"e3": row.back}
		row.do(&h.items[2])
		if got := h.holds(pages[0]); got != row.want {
			t.Errorf("%s: it stays: %v", name, got)
		}
	}
}

// TestPagingUnread: what no model has read yet does not leave, whatever is decided; it does when one has.
func TestPagingUnread(t *testing.T) {
	long := strings.Repeat("one line of it\n", 200)
	v := saying(tidemark.NewText(tidemark.User, "go"), of(tidemark.Assistant, tidemark.ToolUse("c", "Read", []byte(`{"file_path":"/a"}`))), of(tidemark.User, tidemark.ToolResult("c", long, false)))
	b := Budget{Window: 1000}
	made := func() *Paging {
		return &Paging{Policy: "fifo", Tau: -1, MinBytes: -1, Zones: paging.Zones{Advisory: 3, Involuntary: 4, Aggressive: 5}}
	}
	if got := toldAll(made().Plan(v, b)); got != "" || made().Out(v, b) != 1 {
		t.Errorf("%s leaves, %d are out", got, made().Out(v, b))
	}
	write := saying(tidemark.NewText(tidemark.User, "go"), of(tidemark.Assistant, tidemark.ToolUse("c", "Write", []byte(`{"file_path":"/a","content":"`+strings.Repeat("x", 3000)+`"}`))), of(tidemark.User, tidemark.ToolResult("c", "ok", false)))
	cost := made()
	cost.Policy = "cost"
	if got := toldAll(cost.Plan(write, b)); got != "" || cost.Out(write, b) != 1 {
		t.Errorf("%s leaves of an input, %d are out", got, cost.Out(write, b))
	}
	read := saying(v.Items[0].Message, v.Items[1].Message, v.Items[2].Message, tidemark.NewText(tidemark.Assistant, "so"), tidemark.NewText(tidemark.User, "on"))
	if got := toldAll(made().Plan(read, b)); got != "e3#1" {
		t.Errorf("%q leaves when it was read", got)
	}
}

// TestPagingBroughtBack: a history does not go on where what it put out stands in the view again, since somebody brought it back.
func TestPagingBroughtBack(t *testing.T) {
	v, b := pagedWork(t), Budget{Window: 8000}
	h := eagerPaging().paged(v, b)
	out, err := Preview(v, eagerPaging().Plan(v, b), b)
	if err != nil {
		t.Fatal(err)
	}
	for name, row := range map[string]struct {
		v    View
		back map[tidemark.EntryID][]int
		want bool
	}{
		"nothing":                  {v, nil, true},
		"a block that is out":      {v, map[tidemark.EntryID][]int{"e3": {1}}, false},
		"another of its entry":     {v, map[tidemark.EntryID][]int{"e3": {0, 2}}, true},
		"the second of its entry":  {v, map[tidemark.EntryID][]int{"e6": {2}}, false},
		"one that was never out":   {v, map[tidemark.EntryID][]int{"e2": {1}}, true},
		"one that left once again": {out, map[tidemark.EntryID][]int{"e3": {1}, "e6": {2}}, true},
	} {
		row.v.Back = row.back
		if got := h.continues(row.v); got != row.want {
			t.Errorf("%s: it goes on: %v", name, got)
		}
	}
}

// TestPagingMoves: where a block that was taken out of a message is back, the others have their own numbers again.
func TestPagingMoves(t *testing.T) {
	long := func(s string) string { return strings.Repeat(s+" line of it\n", 100) }
	calls := of(tidemark.Assistant, tidemark.ToolUse("c0", "Read", []byte(`{"file_path":"/a"}`)), tidemark.ToolUse("c1", "Read", []byte(`{"file_path":"/b"}`)))
	results := of(tidemark.User, tidemark.Text("see"), tidemark.ToolResult("c0", long("a"), false), tidemark.ToolResult("c1", long("b"), false))
	v := saying(tidemark.NewText(tidemark.User, "go"), calls, results, tidemark.NewText(tidemark.User, "on"))
	carved := saying(v.Items[0].Message, calls, of(tidemark.User, results.Content[1:]...))
	carved.Items[2].Stubbed, carved.Items[2].Stubs = []Stubbed{{Block: 1, At: 0, Many: 0, Row: 4}}, 1
	b := Budget{Window: 8000}
	p := eagerPaging()
	for _, row := range []struct {
		v    View
		path string
		want int
	}{{carved, "/a", 1}, {carved, "/b", 2}, {v, "/a", 1}, {v, "/b", 2}} {
		if got := p.Copies(row.v, b, row.path); len(got) != 1 || got[0].Entry != "e3" || got[0].Block != row.want {
			t.Errorf("%s of %d items: %+v, want block %d", row.path, len(row.v.Items), got, row.want)
		}
	}
}

// TestPagingLeaves: what was put out before a reply is out whatever these settings decide; what was put out later is for the
// requests to come.
func TestPagingLeaves(t *testing.T) {
	v := pagedWork(t)
	first := len(v.Items)
	v.Items = append(v.Items, saying(tidemark.NewText(tidemark.Assistant, "yes"), tidemark.NewText(tidemark.User, "and on"), tidemark.NewText(tidemark.Assistant, "yes"), tidemark.NewText(tidemark.User, "and on")).Items...)
	for i, seq := range []int64{51, 53, 55, 57} {
		it := &v.Items[first+i]
		it.ID = tidemark.EntryID(fmt.Sprint("f", i))
		it.From, it.To, it.Seq, it.Last = it.ID, it.ID, seq, seq
	}
	out := func(p *Paging, window tidemark.Tokens, row int64, edits []tidemark.Edit) PutOut {
		after, err := Preview(v, edits, Budget{Window: window})
		if err != nil {
			t.Fatal(err)
		}
		for i := range after.Items {
			for n := range after.Items[i].Stubbed {
				after.Items[i].Stubbed[n].Row = row
			}
		}
		return p.State(after, Budget{Window: window}).PutOut(0)
	}
	edits := eagerPaging().Plan(v, Budget{Window: 8000})
	all := PutOut{Reads: 1, Others: 2, Inputs: 1, Images: 1}
	for row, want := range map[int64]PutOut{50: all, 51: all, 52: all, 54: all, 55: all, 56: {}} {
		if got := out(&Paging{}, 200_000, row, edits); got != want {
			t.Errorf("put out at %d: %+v, want %+v", row, got, want)
		}
	}
	large := eagerPaging() // which would let go as many others
	large.MinBytes = 2000
	if got := out(large, 8000, 50, edits[:2]); got != (PutOut{Reads: 1, Others: 1}) {
		t.Errorf("two results, beside an input and a picture that these settings let go: %+v", got)
	}
}

// TestPagingBegun: what was put out of a history before a span of it was replaced is out, also before a reply follows.
func TestPagingBegun(t *testing.T) {
	v, b := pagedWork(t), Budget{Window: 8000}
	v, err := Preview(v, eagerPaging().Plan(v, b), b)
	if err != nil {
		t.Fatal(err)
	}
	for i := range v.Items {
		for n := range v.Items[i].Stubbed {
			v.Items[i].Stubbed[n].Row = 50
		}
	}
	span := scripted("L")
	span[0].Seq, span[0].Last, span[0].Row = 0, 0, 60
	v.Items = append(span, v.Items...)
	for i, m := range []tidemark.Message{tidemark.NewText(tidemark.User, "and"), tidemark.NewText(tidemark.Assistant, "so")} {
		it := saying(m).Items[0]
		it.ID = tidemark.EntryID(fmt.Sprint("f", i))
		it.From, it.To, it.Seq, it.Last = it.ID, it.ID, int64(61+i), int64(61+i)
		v.Items = append(v.Items, it)
	}
	if got := (&Paging{}).State(v, Budget{Window: 200_000}).PutOut(0); got != (PutOut{Reads: 1, Others: 2, Inputs: 1, Images: 1}) {
		t.Errorf("%+v", got)
	}
}
