package paging

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestOrder: what was held and what is looked at again goes in the order of the history.
func TestOrder(t *testing.T) {
	for _, policy := range []string{"fifo", "lru"} {
		p := bare(t, Options{Policy: policy})
		page := func(id string, message, at int) *Page {
			return &Page{ID: id, Message: message, at: at, Size: 900, wire: 900, short: 60}
		}
		p.messages, p.out = make([]Message, 9), nil
		for range p.messages {
			p.out = p.out.push(2000)
		}
		p.again, p.late = []*Page{page("d", 5, 1), page("a", 1, 7), page("c", 3, 4)}, []*Page{page("b", 3, 2), page("e", 6, 0)}
		p.decide()
		if got := strings.Join(idsOf(p.now.GC), " "); got != "a b c d e" || len(p.again)+len(p.late) != 0 {
			t.Errorf("%s: %s, %d are looked at again, %d held", policy, got, len(p.again), len(p.late))
		}
	}
}

// TestHintWaits: with lru what a turn may speak of stays for tau turns from then on, and is not looked at before.
func TestHintWaits(t *testing.T) {
	const want = "5: gc t1"
	if got := run(t, Options{Policy: "lru", Tau: 2}, strings.Split("begin; bash x; say; say what of the bash output; say; say; say", "; ")); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestAnswered: the input of a call that has got its result is looked at, if it was passed over before.
func TestAnswered(t *testing.T) {
	for _, row := range []struct {
		policy string
		waits  bool
		want   string
	}{
		{"cost", false, "ripe false, again 0"}, {"cost", true, "ripe true, again 0"}, {"lru", false, "ripe false, again 0"}, {"lru", true, "ripe false, again 1"}, {optimal, true, "ripe false, again 0"},
	} {
		p := newPager(Options{Policy: row.policy})
		g := &Page{Part: Input, ID: "t", wire: 900, short: 60}
		p.inputs["t"] = g
		for range 2 {
			if row.waits && !p.open(g) || g.waits != row.waits {
				t.Errorf("%s: a call without a result is not open", row.policy)
			}
		}
		for _, id := range []string{"x", "t", "t"} {
			p.answered(id)
		}
		if got := fmt.Sprintf("ripe %v, again %d", g.ripe, len(p.again)); got != row.want || !g.answered || p.open(g) {
			t.Errorf("%s, waits %v: %s, want %s", row.policy, row.waits, got, row.want)
		}
	}
	if p := bare(t, Options{}); p.open(&Page{}) || p.open(&Page{Part: Image}) {
		t.Error("what is no input waits for a result")
	}
}

// TestGoneOrder: of a path the newest copy of each range is brought back, in the order of the history.
func TestGoneOrder(t *testing.T) {
	p := stepped(t, Options{Policy: "lru", Tau: 4}, scripted(t, "begin; read /a v; read /a 1-50 v; read /a v"+says(8)))
	if got := idsOf(p.Gone("/a")); !slices.Equal(got, []string{"t2", "t3"}) || len(p.Stubs()) != 3 {
		t.Errorf("%q come back, %d are out", got, len(p.Stubs()))
	}
}

// TestStayTold: a fault of what stays out behind a cut is told once, also when the cut takes its page anew.
func TestStayTold(t *testing.T) {
	s := scripted(t, "begin; read /a v; say; say; read /a v; say")
	p := bare(t, Options{Policy: "fifo", Tau: 1})
	long := Step{Append: slices.Concat(s.Steps[1].Append, s.Steps[2].Append)}
	read := s.Steps[4].Append
	for i, row := range []struct {
		st    Step
		fault string // with whether it was told before
	}{
		{s.Steps[0], ""}, {long, ""}, {s.Steps[3], ""},
		{Step{Cut: true, Keep: 3, Stay: true, Append: read}, "t2 of t1 false"},
		{Step{Cut: true, Keep: 3, Stay: true, Append: read}, "t2 of t1 true"},
		{Step{Cut: true, Keep: 4, Append: s.Steps[5].Append}, "t2 of t1 true"},
		{s.Steps[5], ""},
	} {
		d, err := p.Step(row.st)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range d.Fault {
			got = append(got, fmt.Sprint(f.ID, " of ", f.Of.ID, " ", f.Again))
		}
		if text := strings.Join(got, ", "); text != row.fault {
			t.Errorf("request %d: %q, want %q", i, text, row.fault)
		}
	}
}

// TestStayCounts: pages of reads that stay out behind a cut are ones that went, by which faults are measured; they are none of what may go.
func TestStayCounts(t *testing.T) {
	p := bare(t, Options{Tau: 1})
	p.Hold(func(*Page) bool { return true })
	for _, st := range scripted(t, "begin; bash x; read /a v + read /b v; edit /a + edit /b").Steps {
		if _, err := p.Step(st); err != nil {
			t.Fatal(err)
		}
	}
	c := &p.costs
	var all []*stayed
	for _, g := range p.pages {
		if !g.stub && g.Size > 500 {
			all = append(all, &stayed{at: place{g.Message, g.at}})
		}
	}
	if len(all) != 3 || len(c.ready) == 0 || len(p.Stubs()) != 0 {
		t.Fatalf("%d are in, %d may go, %d are out", len(all), len(c.ready), len(p.Stubs()))
	}
	gone, evicted := c.gone, c.evicted
	p.stay(append(all, all[0]))
	if len(p.Stubs()) != 3 || c.gone != gone+2 || c.evicted != evicted+2 || len(c.ready) != 0 || c.saved != 0 || c.first != nil {
		t.Errorf("%d are out, %d and %d went, %d may go and save %d", len(p.Stubs()), c.gone-gone, c.evicted-evicted, len(c.ready), c.saved)
	}
	for _, g := range p.Stubs() {
		if !slices.Contains(all, g.stays) {
			t.Errorf("%s does not know that it stays", g.ID)
		}
	}
	p.stay(nil)
	if c.gone != gone+2 {
		t.Error("of nothing something went")
	}
}

// TestPatchedFiles: after a patch no copy of any file that it names is as the file is.
func TestPatchedFiles(t *testing.T) {
	p := stepped(t, Options{Policy: "fifo", Tau: 99}, scripted(t, "begin; read /a v + read /b v + read /c v + read /d v"))
	call := scan(t, `{"role":"assistant","content":[{"type":"tool_use","id":"p","name":"apply_patch","input":{"input":"*** Update File: /a\n*** Update File: /b\n*** Move to: /c\n"}}]}`)
	done := scan(t, `{"role":"user","content":[{"type":"tool_result","tool_use_id":"p","content":"ok"}]}`)
	if _, err := p.Step(Step{Append: []Message{call, done}}); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{"/a": false, "/b": false, "/c": false, "/d": true} {
		if got := p.full(p.keys[path+"\x00"]); got != want {
			t.Errorf("a copy of %s is as the file is: %v", path, got)
		}
	}
}

// TestImageInResult: an image in a result weighs what it counts, and nothing once the result is out.
func TestImageInResult(t *testing.T) {
	p := bare(t, Options{Policy: "lru", Tau: 99})
	m := scan(t, `{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"`+strings.Repeat("QUJD", 500)+`"}}]}]}`)
	if _, err := p.Step(Step{Append: []Message{m}}); err != nil {
		t.Fatal(err)
	}
	if got, want := p.between(0, 1), m.Bytes-2000+5333; got != want {
		t.Errorf("it weighs %d, want %d", got, want)
	}
	p.Leave(func(*Page) bool { return true })
	if got, want := p.between(0, 1), m.Bytes-p.pages[0].wire+p.pages[0].short; got != want {
		t.Errorf("what stands for it weighs %d, want %d", got, want)
	}
}

// TestMature: with the rule that others are measured by what is of age and size may go, once.
func TestMature(t *testing.T) {
	p := bare(t, Options{Policy: "batch", Tau: 4})
	p.users = 10
	for _, g := range []*Page{{ID: "a", Size: 500, born: 1}, {ID: "small", Size: 499, born: 2}, {ID: "error", Size: 500, born: 3, Err: true}, {ID: "ripe", Size: 500, born: 4, ripe: true}, {ID: "out", Size: 500, born: 5, stub: true}, {ID: "b", Size: 900, born: 6}, {ID: "young", Size: 900, born: 7}} {
		g.wire = g.Size + 2
		p.pages = append(p.pages, g)
	}
	for range 2 {
		if p.mature(); strings.Join(idsOf(p.costs.ready), " ") != "a b" || p.costs.saved != 502+902 || p.head != 6 {
			t.Errorf("%q may go and save %d", idsOf(p.costs.ready), p.costs.saved)
		}
	}
	if p.users++; p.pages[0].short == 0 {
		t.Error("a stub is not measured")
	}
	if p.mature(); p.costs.saved != 502+902+902 || p.head != 7 {
		t.Errorf("%q may go and save %d", idsOf(p.costs.ready), p.costs.saved)
	}
}

// TestCutAtState: amid a long request a state is noted each sixteen messages; a cut to one takes nothing again, and one behind it only what
// came since.
func TestCutAtState(t *testing.T) {
	p := bare(t, Options{Policy: "fifo", Tau: 99})
	all := scripted(t, "begin"+strings.Repeat("; bash x", 30))
	first, long := Step{}, Step{}
	for i, st := range all.Steps {
		if i < 20 {
			first.Append = append(first.Append, st.Append...)
		} else {
			long.Append = append(long.Append, st.Append...)
		}
	}
	if _, err := p.Step(first); err != nil {
		t.Fatal(err)
	}
	states := func() (n []int) {
		for _, s := range p.stages {
			n = append(n, s.messages)
		}
		return n
	}
	if got := states(); !slices.Equal(got, []int{16, 32}) {
		t.Errorf("states behind %v messages", got)
	}
	if _, err := p.Step(long); err != nil {
		t.Fatal(err)
	}
	if got := states(); !slices.Equal(got, []int{16, 32, 39 + 16}) {
		t.Errorf("states behind %v messages", got)
	}
	for _, row := range []struct{ keep, again int }{{58, 1}, {55, 0}, {33, 1}, {32, 0}, {31, 8}, {16, 0}} {
		was := slices.Clone(p.pages)
		if _, err := p.Step(Step{Cut: true, Keep: row.keep}); err != nil {
			t.Fatal(err)
		}
		again := 0
		for i, g := range was {
			if g.Message < row.keep && p.pages[i] != g {
				again++
			}
		}
		if again != row.again {
			t.Errorf("a cut to %d messages took %d pages again, want %d", row.keep, again, row.again)
		}
	}
}

// TestCutBehindState: what was decided with a request that ends where a state amid another one was noted stays decided behind a cut.
func TestCutBehindState(t *testing.T) {
	p := bare(t, Options{Policy: "fifo", Tau: 1})
	var long Step
	for _, st := range scripted(t, "begin"+strings.Repeat("; bash x", 20)).Steps {
		long.Append = append(long.Append, st.Append...)
	}
	more := long.Append[1:3]
	for i, row := range []struct {
		st   Step
		kept int
	}{{long, 0}, {Step{Cut: true, Keep: 16}, 0}, {Step{Append: more}, 6}, {Step{Cut: true, Keep: 17}, 6}} {
		d, err := p.Step(row.st)
		if err != nil || d.Kept != row.kept {
			t.Errorf("request %d: %d stubs are those of the request before, want %d; %v", i, d.Kept, row.kept, err)
		}
	}
}

// TestExactBounds: a stretch of up to so many requests and results is sought exactly.
func TestExactBounds(t *testing.T) {
	for _, row := range []struct {
		asks, may int
		want      bool
	}{{exactRequests, 0, true}, {exactRequests + 1, 0, false}, {2, exactResults, true}, {2, exactResults + 1, false}} {
		s := stretch{asks: make([]ask, row.asks), may: make([]candidate, row.may)}
		if _, leave, exact := s.best(); exact != row.want || len(leave) != row.may {
			t.Errorf("%d requests and %d results: exact %v", row.asks, row.may, exact)
		}
	}
}

// TestCopies: how many full copies of a range stand in the request as its file is, through changes and cuts.
func TestCopies(t *testing.T) {
	s := scripted(t, "begin; read /a v; read /a v; edit /a; read /a v; read /a v; edit /a fail; read /a v fail")
	p := bare(t, Options{Policy: "fifo", Tau: 50})
	var got []string
	for _, st := range s.Steps {
		if _, err := p.Step(st); err != nil {
			t.Fatal(err)
		}
		if k := p.keys["/a\x00"]; k != nil {
			got = append(got, fmt.Sprint(k.full, " ", p.full(k)))
		}
	}
	if want := "1 true, 2 true, 2 false, 1 true, 2 true, 2 true, 2 true"; strings.Join(got, ", ") != want {
		t.Errorf("got  %s\nwant %s", strings.Join(got, ", "), want)
	}
	k := p.keys["/a\x00"]
	if _, err := p.Step(Step{Cut: true, Keep: 5}); err != nil || k.full != 2 || !p.full(k) || k.file.epoch != 0 || len(k.live) != 2 {
		t.Errorf("%v: behind the cut there are %d copies, the file changed %d times", err, k.full, k.file.epoch)
	}
	if _, err := p.Step(Step{Cut: true, Keep: 1}); err != nil || len(p.keys)+len(p.files)+len(p.paths)+len(p.results)+len(p.calls) != 0 {
		t.Errorf("%v: %d ranges, %d files, %d paths, %d results and %d calls are left of nothing", err, len(p.keys), len(p.files), len(p.paths), len(p.results), len(p.calls))
	}
}
