package paging

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
)

// TestRipe has a row for what becomes of a page of age with the policy cost: it may go, or stays, or is pinned.
func TestRipe(t *testing.T) {
	for _, row := range []struct {
		name string
		with func(p *Pager, g *Page)
		want string
	}{
		{"a result", func(*Pager, *Page) {}, "may go"},
		{"of the least size", func(_ *Pager, g *Page) { g.Size = 500 }, "may go"},
		{"a byte smaller", func(_ *Pager, g *Page) { g.Size = 499 }, "stays"},
		{"its stub is as long", func(_ *Pager, g *Page) { g.short = 900 }, "stays"},
		{"its stub is a byte shorter", func(_ *Pager, g *Page) { g.short = 899 }, "may go"},
		{"its stub is as long, but it has an image", func(_ *Pager, g *Page) { g.short, g.inline = 900, inline{images: 1} }, "stays"},
		{"an image that counts less than its stub", func(_ *Pager, g *Page) { g.Part, g.inline = Image, inline{data: 900} }, "stays"},
		{"an input, whatever its size", func(_ *Pager, g *Page) { g.Part, g.Size, g.answered = Input, 1, true }, "may go"},
		{"of a call that has no result", func(_ *Pager, g *Page) { g.Part = Input }, "stays"},
		{"it may already", func(_ *Pager, g *Page) { g.ripe = true }, "stays"},
		{"it is out", func(_ *Pager, g *Page) { g.stub = true }, "stays"},
		{"an error", func(_ *Pager, g *Page) { g.Err = true }, "may go"},
		{"the newest of equal errors", func(p *Pager, g *Page) { g.Err, p.costs.errors[g.Hash] = true, g }, "stays"},
		{"equal to an error, but none", func(p *Pager, g *Page) { p.costs.errors[g.Hash] = g }, "may go"},
		{"of a range", func(_ *Pager, g *Page) { g.key = &key{file: &file{}} }, "may go"},
		{"of a range that was a fault", func(_ *Pager, g *Page) { g.key = &key{file: &file{}, armed: &Page{}} }, "is pinned"},
		{"of another text then", func(_ *Pager, g *Page) { g.key = &key{file: &file{}, armed: &Page{Hash: [32]byte{1}}} }, "may go"},
		{"of a file that changed since", func(_ *Pager, g *Page) { g.key = &key{file: &file{epoch: 1}, armed: &Page{}} }, "may go"},
		{"near the end of the window", func(p *Pager, g *Page) { p.now.Zone, g.key = Aggressive, &key{file: &file{}, armed: &Page{}} }, "may go"},
		{"of a range that is pinned", func(_ *Pager, g *Page) { g.key = &key{file: &file{}, pinned: []*Page{{}}} }, "stays"},
	} {
		p := bare(t, Options{})
		g := &Page{ID: "g", Message: 3, Size: 900, wire: 900, short: 60}
		p.marks = make([]mark, 5)
		row.with(p, g)
		was := g.ripe
		p.ripe(g)
		got := "stays"
		switch {
		case len(p.now.Pin) == 1 && p.now.Pin[0] == g && slices.Equal(p.costs.pins, []*key{g.key}) && g.key.pinnedAt == 5 && g.key.armed == nil:
			got = "is pinned"
		case !was && g.ripe && slices.Equal(p.costs.ready, []*Page{g}) && p.costs.saved == g.frees() && p.costs.first == g:
			got = "may go"
		case g.ripe != was || len(p.costs.ready) > 0 || p.costs.saved != 0 || len(p.now.Pin) > 0:
			got = "in disorder"
		}
		if got != row.want {
			t.Errorf("%s: it %s, want %s", row.name, got, row.want)
		}
		if k := g.key; k != nil && (row.want == "is pinned" || len(k.pinned) > 0) && k.pinned[len(k.pinned)-1] != g {
			t.Errorf("%s: it is not among those that are pinned", row.name)
		}
	}
}

// TestLetGo: what the model is done with goes if its stub is shorter, by a byte at least.
func TestLetGo(t *testing.T) {
	for _, policy := range []string{"fifo", "lru", "cost", "batch", optimal} {
		for short, want := range map[int]bool{899: true, 900: false, 901: false} {
			p := newPager(Options{Policy: policy})
			g := &Page{Size: 1, wire: 900, short: short, inline: inline{images: 1}, anchored: true}
			p.anchors = 1
			p.let(g)
			p.let(g)
			if got := g.ripe || g.released; got != want || len(p.late)+len(p.costs.ready) > 1 || (p.anchors == 0) != want || g.anchored == want {
				t.Errorf("%s, a stub of %d bytes for 900: it goes %v, held %d, ready %d, anchored %v", policy, short, got, len(p.late), len(p.costs.ready), g.anchored)
			}
		}
	}
}

// TestLittleGoes: where nothing is behind what may go, it goes at once, however little that frees.
func TestLittleGoes(t *testing.T) {
	p := bare(t, Options{MinBytes: -1, Tau: 1})
	p.messages, p.out, p.in, p.first = make([]Message, 1), sums(nil).push(100), []int{100}, []int{0}
	p.pages, p.clock = []*Page{{ID: "g", wire: 65, short: 60}}, 1
	if p.cost(); len(p.now.GC) != 1 {
		t.Error("it stays")
	}
}

// TestSecondRequest: what the request before had sent is behind what may go, also when that was the first.
func TestSecondRequest(t *testing.T) {
	p := bare(t, Options{Tau: 1})
	m := scan(t, `{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"`+strings.Repeat("x", 900)+`"}]}`)
	text, user := Message{Role: tidemark.Assistant, Bytes: 100_000}, Message{Role: tidemark.User, Bytes: 9, Typed: true}
	for i, st := range []Step{{Append: []Message{m, text, user}, Idle: true}, {Append: []Message{user}}, {Cut: true}, {Append: []Message{m, text, user}}} {
		d, err := p.Step(st)
		if err != nil || len(d.GC) != i/3 {
			t.Errorf("request %d: %d results leave, %v", i, len(d.GC), err)
		}
	}
}

// TestReadyFirst: of those that may go it is known what they free and which stands first.
func TestReadyFirst(t *testing.T) {
	p := bare(t, Options{})
	a, b, c := &Page{Message: 5, at: 9, wire: 300, short: 60}, &Page{Message: 5, at: 3, wire: 400, short: 60}, &Page{Message: 6, wire: 500, short: 60}
	for _, row := range []struct {
		g, first *Page
		saved    int
	}{{a, a, 240}, {c, a, 680}, {b, b, 1020}} {
		if p.ready(row.g); p.costs.first != row.first || p.costs.saved != row.saved {
			t.Errorf("%d bytes, want %d", p.costs.saved, row.saved)
		}
	}
}

// TestBatchOf: with a batch goes what is worth it from some page on; the rest waits, in the order of the history, and counts on.
func TestBatchOf(t *testing.T) {
	p := bare(t, Options{})
	p.messages, p.out, p.in, p.marks = make([]Message, 9), nil, nil, make([]mark, 30)
	for i := range p.messages {
		p.out, p.in, p.first = p.out.push(2000), append(p.in, 2000*(i+1)), append(p.first, 0)
	}
	page := func(id string, message int) *Page {
		return &Page{ID: id, Message: message, Size: 900, wire: 900, short: 60, tick: -99, ripe: true}
	}
	front, from, held, out, read, last := page("front", 1), page("from", 2), page("held", 3), page("out", 4), page("read", 5), page("last", 6)
	held.anchored, out.stub, out.Read, read.Read = true, true, true, true
	read.key, out.key = &key{file: &file{}}, &key{file: &file{}}
	c := &p.costs
	c.ready, c.saved, c.first, c.regret, c.gone, c.missed, c.faults, c.evicted = []*Page{last, held, from, out, read, front}, 1, out, 7, 10, 3, 2, 9
	p.anchors = 1
	p.batch(from)
	if got := strings.Join(idsOf(p.now.Evict), " ") + "; " + strings.Join(idsOf(p.now.GC), " ") + "; " + strings.Join(idsOf(c.ready), " "); got != "read; from last; front held" {
		t.Errorf("went and wait: %s", got)
	}
	if c.saved != 2*840 || c.first != front || c.regret != 0 || c.acted != 30 || c.gone != 11 || c.missed != 5 || c.evicted != 1 || c.faults != 0 {
		t.Errorf("%+v", c)
	}
}

// TestSimpleRule: the policy batch acts when what may go is 30 % of the context, without what is held.
func TestSimpleRule(t *testing.T) {
	for _, row := range []struct {
		context  int
		anchored bool
		want     string
	}{
		{1000, false, "a b; "}, {4000, false, "a b; "}, {4001, false, "; a b"},
		{1000, true, "a; b"}, {1001, true, "; a b"},
	} {
		p := bare(t, Options{Policy: "batch"})
		p.messages, p.out = make([]Message, 1), sums(nil).push(row.context)
		a, b := &Page{ID: "a", wire: 300, short: 60}, &Page{ID: "b", wire: 900, short: 60, anchored: row.anchored}
		if row.anchored {
			p.anchors = 1
		}
		p.costs.ready, p.costs.saved = []*Page{a, b}, 1200
		p.simple()
		left := 0
		for _, g := range p.costs.ready {
			left += g.wire
		}
		if got := strings.Join(idsOf(p.now.GC), " ") + "; " + strings.Join(idsOf(p.costs.ready), " "); got != row.want || p.costs.saved != left {
			t.Errorf("%+v: %s, %d bytes are left", row, got, p.costs.saved)
		}
	}
}

// TestNextUse: a page is used next by the request behind the present one that reads its range, if no newer copy stands for it.
func TestNextUse(t *testing.T) {
	const never = 1 << 30
	p := newOffline(Options{Policy: belady}, &hindsight{reads: map[string][]int{keyName(Call{Path: "/a"}): {3, 5}}})
	g := &Page{Call: Call{Path: "/a"}}
	g.key = &key{live: []*Page{{}, g}}
	old, garbage, unread := &Page{Call: g.Call, key: &key{live: []*Page{g, {}}}}, &Page{Call: g.Call}, &Page{Call: Call{Path: "/b"}}
	unread.key = &key{live: []*Page{unread}}
	for _, row := range []struct {
		name      string
		g         *Page
		now, want int
	}{{"before both", g, 2, 3}, {"at the first", g, 3, 5}, {"between", g, 4, 5}, {"at the last", g, 5, never}, {"an older copy", old, 2, never}, {"garbage", garbage, 2, never}, {"a range that nobody reads", unread, 2, never}} {
		if got := p.nextUse(row.g, row.now); got != row.want {
			t.Errorf("%s: %d, want %d", row.name, got, row.want)
		}
	}
	s := scripted(t, "begin; read /a v + read /b v; bash x; edit /a; read /a 1-50 v; read /a v fail")
	got := readsOf(s.Steps)
	if want := fmt.Sprint(map[string][]int{"/a\x00": {1, 5}, "/b\x00": {1}, "/a\x00lines 1-50": {4}}); fmt.Sprint(got) != want {
		t.Errorf("%v, want %s", got, want)
	}
}

// TestMay: what any policy could let go: of half of tau, or what something newer stands for.
func TestMay(t *testing.T) {
	for _, row := range []struct {
		name string
		tau  int
		g    Page
		want bool
	}{
		{"half of 4", 4, Page{Size: 500, tick: 8}, true}, {"a round less", 4, Page{Size: 500, tick: 9}, false}, {"half of 5, rounded up", 5, Page{Size: 500, tick: 7}, true}, {"a round less than that", 5, Page{Size: 500, tick: 8}, false},
		{"a byte too small", 4, Page{Size: 499}, false}, {"an input of any size", 4, Page{Part: Input, answered: true}, true}, {"one without a result", 4, Page{Part: Input}, false},
		{"an error", 4, Page{Size: 500, Err: true}, false}, {"one that a newer one stands for", 4, Page{Err: true, tick: 10, ripe: true}, true},
	} {
		p := newOffline(Options{Policy: optimal, Tau: row.tau}, &hindsight{})
		p.clock = 10
		if got := p.may(&row.g); got != row.want {
			t.Errorf("%s: %v", row.name, got)
		}
	}
	p := bare(t, Options{})
	for short, want := range map[int]bool{59: true, 60: false, 61: false} {
		if got := p.worth(&Page{wire: 60, short: short}); got != want {
			t.Errorf("a stub of %d bytes for 60: %v", short, got)
		}
	}
}

// TestReportNewest: the size rests on the newest report that counts what was sent; one of nothing sent leaves the one before.
func TestReportNewest(t *testing.T) {
	user, reply := Message{Role: tidemark.User, Bytes: 100, Typed: true}, Message{Role: tidemark.Assistant, Bytes: 50}
	round := tidemark.EstimateChars(101)
	for _, row := range []struct {
		name   string
		second []*tidemark.Usage
		want   tidemark.Tokens
	}{
		{"none of the second request", nil, 1040 + round},
		{"none is said of it", []*tidemark.Usage{nil}, 1040 + round},
		{"nothing sent", []*tidemark.Usage{{Output: 9}}, 1040 + round},
		{"one token sent", []*tidemark.Usage{{CacheRead: 1, Output: 9}}, 1},
		{"more", []*tidemark.Usage{{Input: 2000, Output: 9}}, 2000},
		{"more, and then nothing", []*tidemark.Usage{{Input: 2000, Output: 9}, {Output: 9}}, 1040 + round},
		{"nothing, and then more", []*tidemark.Usage{{Output: 9}, {Input: 2000}}, 2000},
	} {
		p := bare(t, Options{})
		p.Reported(&tidemark.Usage{Input: 9000}) // of no request
		for i, st := range []Step{{Append: []Message{user}}, {Append: []Message{reply, user}}} {
			if _, err := p.Step(st); err != nil {
				t.Fatal(err)
			}
			if i == 0 {
				p.Reported(&tidemark.Usage{Input: 1000, Output: 40})
			}
		}
		for _, u := range row.second {
			p.Reported(u)
		}
		if got := p.Size(); got != row.want {
			t.Errorf("%s: %d, want %d", row.name, got, row.want)
		}
	}
}

// TestReportOfNothing: a report of a request that had no message counts as it is, also where it is of what nothing was replaced in.
func TestReportOfNothing(t *testing.T) {
	for _, whole := range []bool{false, true} {
		p := bare(t, Options{Whole: whole})
		if _, err := p.Step(Step{}); err != nil {
			t.Fatal(err)
		}
		if p.Reported(&tidemark.Usage{Input: 50}); p.Size() != 50 {
			t.Errorf("%d tokens", p.Size())
		}
	}
}

// TestLeaveBelongsBefore: what an owner put out belongs to the request before: its report is of what was left, and a cut behind that request
// leaves it out.
func TestLeaveBelongsBefore(t *testing.T) {
	p := bare(t, Options{Policy: "lru", Tau: 99})
	s := scripted(t, "begin; show png; bash x; read /a v; say")
	for _, st := range s.Steps[:4] {
		if _, err := p.Step(st); err != nil {
			t.Fatal(err)
		}
	}
	before := p.Len()
	p.Leave(func(g *Page) bool { return g.Part == Image || g.ID == "t2" })
	p.Reported(&tidemark.Usage{Input: 700})
	if p.Size() != 700 || len(p.Stubs()) != 2 {
		t.Fatalf("%d tokens, %d are out: want the 700 that are reported, and two", p.Size(), len(p.Stubs()))
	}
	p.Leave(func(g *Page) bool { return g.ID == "t2" })
	out := p.out.upTo(before) + before // the list ended where it has a comma now
	d, err := p.Step(s.Steps[4])
	if err != nil || d.Kept != 2 || len(p.Stubs()) != 2 || d.Same != out {
		t.Errorf("%v: %d of %d stubs are of the request before, %d bytes as before, want %d", err, d.Kept, len(p.Stubs()), d.Same, out)
	}
	if _, err := p.Step(Step{Cut: true, Keep: before, Append: s.Steps[4].Append}); err != nil || len(p.Stubs()) != 2 || !p.Stubs()[0].Out() {
		t.Errorf("%v: %d are out behind the cut", err, len(p.Stubs()))
	}
	if d, err = p.Step(Step{Cut: true, Keep: before - 1, Append: s.Steps[4].Append}); err != nil || len(p.Stubs()) != 0 {
		t.Errorf("%v: %d are out behind a cut into that request, kept %d", err, len(p.Stubs()), d.Kept)
	}
}

// TestStepRefuses: a step that cuts to what is not there changes nothing.
func TestStepRefuses(t *testing.T) {
	p := bare(t, Options{Policy: "fifo", Tau: 1})
	s := scripted(t, "begin; bash x; say; say")
	for _, st := range s.Steps[:3] {
		if _, err := p.Step(st); err != nil {
			t.Fatal(err)
		}
	}
	for keep, want := range map[int]string{-1: "keep -1: the history has 5 messages: want 0 to 5", 6: "keep 6: the history has 5 messages: want 0 to 5"} {
		if _, err := p.Step(Step{Cut: true, Keep: keep, Append: s.Steps[3].Append}); err == nil || !strings.HasPrefix(err.Error(), want) || p.Len() != 5 || len(p.Stubs()) != 1 || len(p.marks) != 3 {
			t.Errorf("%v: %d messages, %d requests", err, p.Len(), len(p.marks))
		}
	}
	if _, err := New(Options{Fixed: -1}); err == nil || !strings.HasPrefix(err.Error(), "window 0, fixed -1: want 0 or more tokens") {
		t.Errorf("%v", err)
	}
	if _, err := New(Options{Policy: "best"}); err == nil || !strings.HasPrefix(err.Error(), `policy "best": want one of [cost lru fifo batch]`) {
		t.Errorf("%v", err)
	}
	for _, row := range []struct{ n, want int }{{0, 4}, {-1, 0}, {1, 1}, {7, 7}} {
		if got := orDefault(row.n, 4); got != row.want {
			t.Errorf("%d: %d", row.n, got)
		}
	}
}

// TestPartNames: parts and zones have names, also those that there are not.
func TestPartNames(t *testing.T) {
	if got := fmt.Sprint(Result, Input, Image, Part(3), Part(255)); got != "result input image part part" {
		t.Error(got)
	}
	if got := fmt.Sprint(Normal, Advisory, Involuntary, Aggressive, Zone(4)); got != "normal advisory involuntary aggressive zone 4" {
		t.Error(got)
	}
}
