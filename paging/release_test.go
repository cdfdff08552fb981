package paging

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// TestRelease has a row for what a model changes that takes part.
func TestRelease(t *testing.T) {
	told, full := Zones{1, 98, 99}, Zones{1, 2, 99}           // advisory, and involuntary
	const faulted = "begin; read /a v; say; say; read /a v; " // at tau 2 t2 is going to be pinned
	for _, row := range []struct {
		name, policy string
		zones        Zones // of a window of 2,000 tokens, which is 0 without
		tau          int
		lines, want  string
	}{
		{"before its age", "lru", Zones{}, 9, "begin; bash x; release t1 short; say", "2: gc t1"},
		{"before its age", "cost", full, 9, "begin; bash x; release t1 short", "2: gc t1"},
		{"without, it is too young", "cost", full, 9, "begin; bash x; bash y short", ""},
		{"not before that pays", "cost", Zones{}, 9, "begin; bash x; read /a v; read /b v; read /c v; release t1 short", ""},
		{"an error", "cost", full, 9, "begin; bash x fail; release t1 short", "2: gc t1"},
		{"what is used", "lru", Zones{}, 9, "begin; read /a v; edit /a; release t1 short", "3: evict t1"},
		{"what the newest turn names stays", "lru", Zones{}, 9, "begin; read /src/a.go v; say look at a.go; release t1 short; say", "4: evict t1"},
		{"a list and unknown handles", "lru", Zones{}, 9, "begin; bash x; bash y; release t9,t1,,t2 short", "3: gc t1; 3: gc t2"},
		{"in the same message as its call", "lru", Zones{}, 9, "begin; bash x as q + release q short; say", ""},
		{"a fresh read stays", "lru", Zones{}, 9, "begin; read /a v; release t1 short + read /a v; say", "2: evict t1"},
		{"of what is out", "fifo", told, 2, "begin; read /a v; say; say; release t1 short; read /a v", "3: evict t1; 5: fault t3 of t1"},
		{"equal ids: the newest", "lru", Zones{}, 9, "begin; bash x as d; bash y as d; release d short", "3: gc d"},
		{"a pin ends", "fifo", told, 2, faulted + "say; say; release t2 short", "3: evict t1; 4: fault t2 of t1; 6: pin t2; 7: unpin t2; 7: evict t2"},
		{"no pin begins", "fifo", told, 2, faulted + "release t2 short; say; say; say", "3: evict t1; 4: fault t2 of t1; 5: evict t2"},
		{"fifo has nobody to ask without a window", "fifo", Zones{}, 9, "begin; bash x; release t1 short; say", ""},
		{"batch has nobody to ask without a window", "batch", Zones{}, 9, "begin; bash x; release t1 short; say", ""},
		{"batch with one", "batch", full, 9, "begin; bash x; release t1 short; say", "2: gc t1"},
		{"once only", "fifo", told, 2, "begin; bash x; release t1 short; say; say", "2: gc t1"},
		{"once only", "batch", Zones{25, 26, 99}, 2, "begin; bash x; release t1 short; say; bash y", "4: gc t1"},
		{"not while there is room", "lru", Zones{30, 98, 99}, 9, "begin; bash x; release t1 short; bash y; bash z", "4: gc t1"},
		{"cut away", "lru", Zones{}, 9, "begin; bash x; release t1 short; keep 3 say; say", "2: gc t1"},
		{"recall is a fault", "fifo", Zones{}, 1, "begin; read /a v; say; recall t1 short", "2: evict t1; 3: fault t2 of t1"},
		{"recall and a read count once", "fifo", Zones{}, 1, "begin; read /a v; say; recall t1 short; read /a v short", "2: evict t1; 3: fault t2 of t1"},
		{"twice counts once", "fifo", Zones{}, 1, "begin; read /a v; say; recall t1 short + recall t1 short; recall t1 short", "2: evict t1; 3: fault t2 of t1"},
		{"of what is there", "fifo", Zones{}, 5, "begin; read /a v; say; recall t1 short", ""},
		{"of what goes only now", "fifo", Zones{}, 1, "begin; read /a v; recall t1 short", "2: evict t1"},
		{"of garbage", "fifo", Zones{}, 1, "begin; bash x; say; recall t1 short", "2: gc t1"},
		{"of nothing known", "fifo", Zones{}, 1, "begin; bash x; say; recall zz short", "2: gc t1"},
		{"a path", "lru", Zones{}, 9, "begin; read /a v; read /a 1-50 w; read /b v; release-path /a short; say", "4: evict t1; 4: evict t2"},
		{"a path as another names it", "lru", Zones{}, 9, "begin; read /a v; release-path /x/../a/ short; say", "2: evict t1"},
		{"a path and a handle", "lru", Zones{}, 9, "begin; read /a v; bash x; release-path /a,t2 short; say", "3: evict t1; 3: gc t2"},
		{"a path, never a fresh read", "lru", Zones{}, 9, "begin; read /a v; release-path /a short + read /a v; read /a v; say", "2: evict t1"},
		{"a path, never a fresh read", "cost", full, 9, "begin; read /a v; release-path /a short; read /a v; read /a v", "2: evict t1; 3: fault t3 of t1; 4: pin t3"},
		{"a path that was written", "lru", Zones{}, 9, "begin; write /a v; release-path /a short; say", "2: input t1"},
		{"small, if its stub is shorter", "lru", Zones{}, 9, "begin; read /a v; bash x tiny; bash x short; release t1,t2,t3 short; say", "4: evict t1; 4: gc t2"},
		{"small, if its stub is shorter", "cost", full, 9, "begin; read /a v; bash x tiny; bash x short; release t1,t2,t3 short", "4: evict t1; 4: gc t2"},
		{"small, if its stub is shorter", "fifo", told, 9, "begin; read /a v; bash x tiny; bash x short; release t1,t2,t3 short; say", "4: evict t1; 4: gc t2"},
		{"by a path", "fifo", Zones{}, 1, "begin; read /a v; say; fault /a short", "2: evict t1; 3: fault t2 of t1"},
		{"by a path, each range", "fifo", Zones{}, 1, "begin; read /a v + read /a 1-50 v; say; fault /a short", "2: evict t1; 2: evict t2; 3: fault t3 of t1; 3: fault t3 of t2"},
		{"by a path of which a copy is there", "fifo", Zones{}, 2, "begin; read /a v; say; read /a v; fault /a short", "3: evict t1"},
		{"by a handle", "fifo", Zones{}, 1, "begin; read /a v; say; fault t1 short", "2: evict t1; 3: fault t2 of t1"},
		{"by a path of nothing known", "fifo", Zones{}, 1, "begin; read /a v; say; fault /b short", "2: evict t1"},
		{"what was written is no fault", "lru", Zones{}, 1, "begin; write /a v; say; say; fault /a short", "2: input t1"},
		{"it arms a pin", "fifo", Zones{}, 1, "begin; read /a v; say; recall t1 short; read /a v; say", "2: evict t1; 3: fault t2 of t1; 5: pin t3"},
	} {
		t.Run(row.policy+", "+row.name, func(t *testing.T) {
			o := Options{Policy: row.policy, Tau: row.tau, Zones: row.zones}
			if row.zones != (Zones{}) {
				o.Window = 2000
			}
			if got := run(t, o, strings.Split(row.lines, "; ")); got != row.want {
				t.Errorf("got  %s\nwant %s", got, row.want)
			}
		})
	}
}

// TestHandles: what a handle names, and what is not of the form that the tools ask for.
func TestHandles(t *testing.T) {
	long := strings.Repeat("a", maxHandle)
	for _, row := range []struct {
		tool, input string
		release     []string
		recall      string
	}{
		{"memory_release", `{"handles":["a","b#2"],"reason":"done"}`, []string{"a", "b#2"}, ""},
		{"memory_release", `{"handles":"a"}`, []string{"a"}, ""},
		{"mcp__tidemark__memory_release", `{"handles":["\u0061"]}`, []string{"a"}, ""},
		{"memory_release", `{"handles":["",1,null,{"a":["b"]},"` + long + `a","` + long + `"]}`, []string{long}, ""},
		{"memory_release", `{"handles":{"a":"b"}}`, nil, ""}, {"memory_release", `{"handles":null}`, nil, ""}, {"memory_release", `{}`, nil, ""},
		{"memory_release", `[]`, nil, ""}, {"memory_release", ``, nil, ""}, {"Bash", `{"handles":["a"],"entry":"b"}`, nil, ""},
		{"recall", `{"entry":"b"}`, nil, "b"}, {"recall", `{"query":"b"}`, nil, ""}, {"recall", `{"entry":["a","b"]}`, nil, ""}, {"recall", `{"entry":7}`, nil, ""},
	} {
		c := DefaultTools().Call(row.tool, []byte(row.input))
		if !reflect.DeepEqual(c.Release, row.release) || c.Recall != row.recall {
			t.Errorf("%s %s: got %q and %q, want %q and %q", row.tool, row.input, c.Release, c.Recall, row.release, row.recall)
		}
	}
	many := `{"handles":["` + strings.Repeat(`a","`, 3*MaxHandles) + `a"]}`
	if n := len(DefaultTools().Call(ReleaseTool, []byte(many)).Release); n != MaxHandles {
		t.Errorf("%d handles of one call, want at most %d", n, MaxHandles)
	}
}

// TestFind: a message by its handle or one block of it; where messages have none, the newest result of a call.
func TestFind(t *testing.T) {
	var s script
	for _, l := range []string{"begin", "read /a v as x + bash v as y", "bash w as x"} {
		s.request(l)
	}
	sc := Scanner{Tools: DefaultTools()}
	session, err := sc.Session([]byte(`{"session":"s","steps":[` + s.b.String() + `]}`))
	if err != nil {
		t.Fatal(err)
	}
	named, _ := New(Options{Tau: 9})
	bare, _ := New(Options{Tau: 9})
	for i, st := range session.Steps {
		if _, err := bare.Step(st); err != nil {
			t.Fatal(err)
		}
		st.Append = slices.Clone(st.Append)
		for j := range st.Append {
			st.Append[j].Handle = fmt.Sprintf("m%d%d", i, j)
		}
		if _, err := named.Step(st); err != nil {
			t.Fatal(err)
		}
	}
	found := func(p *Pager, handle string) (got string) {
		for _, g := range p.find(handle) {
			got += fmt.Sprint(g.Message, ":", g.ID, " ")
		}
		return got
	}
	for handle, want := range map[string]string{"x": "4:x ", "y": "2:y ", "m11": "", "": ""} {
		if got := found(bare, handle); got != want {
			t.Errorf("without handles %q names %q, want %q", handle, got, want)
		}
	}
	for _, row := range []struct{ handle, want string }{
		{"m11", "2:x 2:y "}, {"m11#1", "2:y "}, {"m11#0", "2:x "}, {"m11#7", ""}, {"m11#-1", ""}, {"m11#x", ""}, {"m11#", ""}, {"m00", ""},
		{"x", ""}, {"y", ""}, {"y#0", ""}, {"#0", ""}, {"", ""}, {"m99", ""},
	} {
		if got := found(named, row.handle); got != row.want {
			t.Errorf("%q names %q, want %q", row.handle, got, row.want)
		}
	}
}

// helped has the model of a random session take part: it names results, messages and blocks, also such as are not there.
func helped(s Session, seed uint64) Session {
	rng := rand.New(rand.NewPCG(seed, 3))
	next := 0
	some := func(i int) (names []string) {
		for range rng.IntN(3) {
			names = append(names, []string{fmt.Sprint("t", max(1, 2*i-rng.IntN(20))), fmt.Sprint("m", rng.IntN(30)), fmt.Sprintf("/%c", 'a'+rune(rng.IntN(3)))}[rng.IntN(3)])
		}
		return names
	}
	for i := range s.Steps {
		st := &s.Steps[i]
		if st.Stay = st.Cut && rng.IntN(3) > 0; rng.IntN(3) == 0 {
			st.Release = some(i)
		}
		if rng.IntN(8) == 0 {
			st.Anchor = some(i)
		}
		for j := range s.Steps[i].Append {
			m := &s.Steps[i].Append[j]
			m.Handle = fmt.Sprint("m", rng.IntN(30))
			if m.Role != tidemark.Assistant || rng.IntN(2) == 0 {
				continue
			}
			var names []string
			for range 1 + rng.IntN(4) {
				names = append(names, []string{fmt.Sprint("t", max(1, 2*i-rng.IntN(20))), fmt.Sprint("m", rng.IntN(30)), fmt.Sprint("m", rng.IntN(30), "#", rng.IntN(3)), fmt.Sprint("d", rng.IntN(3))}[rng.IntN(4)])
			}
			c := Call{Tool: ReleaseTool, Release: names}
			switch rng.IntN(4) {
			case 0:
				c = Call{Tool: RecallTool, Recall: names[0]}
			case 1:
				c = Call{Tool: FaultTool, Wants: append(names, fmt.Sprintf("/%c", 'a'+rune(rng.IntN(3))))}
			case 2:
				c.Release = append(c.Release, fmt.Sprintf("/%c", 'a'+rune(rng.IntN(3))))
			}
			next++
			m.Blocks = append(m.Blocks, Block{what: called, ID: fmt.Sprint("h", next), Call: c, index: 99})
		}
	}
	return s
}

// TestReleaseRandom: what a model asks for is undone by a cut as all else is, each fault is of its own eviction,
// and what came after a release does not go with it.
func TestReleaseRandom(t *testing.T) {
	faults, seeds := 0, tidemarktest.Rounds(20)
	for seed := range uint64(seeds) { //nolint:gosec // a count
		for _, name := range some(t, Policies()) {
			s := helped(random(t, seed, 25), seed)
			o := Options{Policy: name, Tau: int(seed % 5), MinBytes: 400}
			laws(t, o, s)
			r := Replay{Options: o}
			if err := r.Run(s); err != nil {
				t.Fatal(err)
			}
			faults += r.Totals.Faults
			o.Window = tidemark.Tokens(6000 + 4000*(seed%6))
			zoneLaws(t, o, reported(s, seed))
		}
	}
	if faults < 2*seeds {
		t.Errorf("only %d faults", faults)
	}
}

// TestReleaseBound: no plan of cost is below the least cost, also where the model lets pages go before their age.
func TestReleaseBound(t *testing.T) {
	compared := 0
	for seed := range uint64(40) {
		s := helped(random(t, seed, 9), seed)
		cost := map[string]float64{}
		exact := false
		for _, name := range []string{"cost", "cost-optimal"} {
			r := Replay{Options: Options{Policy: name, Tau: 2, MinBytes: 400}}
			if err := r.Run(s); err != nil {
				t.Fatal(err)
			}
			cost[name] = r.Cost
			exact = r.Exact
		}
		if exact && cost["cost"] < cost["cost-optimal"]-0.001 {
			t.Errorf("seed %d: cost %v is below the least cost %v", seed, cost["cost"], cost["cost-optimal"])
		}
		if exact && cost["cost-optimal"] > 0 {
			compared++
		}
	}
	if compared < 10 {
		t.Errorf("only %d sessions have a least cost", compared)
	}
}
