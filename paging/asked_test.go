package paging

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// TestAsked has a row for what a step asks for beside its calls. tau is 2 where nothing else is said.
func TestAsked(t *testing.T) {
	full := Zones{1, 2, 99} // involuntary
	for _, row := range []struct {
		name, policy string
		window       bool
		tau          int
		lines, want  string
	}{
		{"a release", "lru", false, 9, "begin; bash x; release=t1 say", "2: gc t1"},
		{"of a path", "lru", false, 9, "begin; read /a v; release=/a say; read /a v; say", "2: evict t1; 3: fault t2 of t1"},
		{"of what comes with it", "lru", false, 9, "begin; release=t1,/a read /a v; say; say", ""},
		{"fifo has nobody to ask without a window", "fifo", false, 9, "begin; bash x; release=t1 say", ""},
		{"a cut takes the release", "lru", false, 9, "begin; bash x; release=t1 say; keep 3 say", "2: gc t1"},
		{"its answer stays, and it", "lru", false, 9, "begin; bash x; release=t1 say; keep 4 say again", "2: gc t1; 3: gc t1"},
		{"the answer goes, and it", "cost", true, 9, "begin; bash x; release=t1 say; keep 3 say; say", "2: gc t1"},
		{"an anchor", "fifo", false, 2, "begin; bash x; anchor=t1 say; say; say; say", ""},
		{"of a path", "fifo", false, 2, "begin; read /a v; anchor=/a say; read /a v; say; say", "5: evict t2"},
		{"an anchor with cost", "cost", true, 1, "begin; bash x; anchor=t1 bash y; say; say", "3: gc t2"},
		{"an anchor with batch", "batch", true, 1, "begin; bash x; anchor=t1 bash y; say; say", "3: gc t2"},
		{"a release ends an anchor", "lru", false, 2, "begin; bash x; anchor=t1 say; say; say; release=t1 say", "5: gc t1"},
		{"an anchor counts over a release", "lru", false, 2, "begin; bash x; release=t1 anchor=t1 say; say", ""},
		{"a cut takes the anchor", "fifo", false, 2, "begin; bash x; anchor=t1 say; say; keep 3 say; say; say", "5: gc t1"},
		{"of what is out", "fifo", false, 2, "begin; read /a v; say; say; anchor=t1 read /a v", "3: evict t1; 4: fault t2 of t1"},
		{"no stay", "fifo", false, 2, "begin; bash x; say; say; keep 4 say; say", "3: gc t1; 5: gc t1"},
		{"stay", "fifo", false, 2, "begin; bash x; say; say; keep 4 stay say; say", "3: gc t1"},
		{"stay, of what is taken again", "fifo", false, 2, "begin; bash x; say; say; keep 3 stay say; say; say", "3: gc t1"},
		{"a read of it is a fault", "fifo", false, 2, "begin; read /a v; say; say; keep 4 stay read /a v", "3: evict t1; 4: fault t2 of t1"},
		{"what was cut does not stay", "fifo", false, 2, "begin; bash x; bash y; say; say; keep 3 stay say; say", "3: gc t1; 4: gc t2"},
		{"stay twice", "fifo", false, 2, "begin; bash x; say; say; keep 4 stay say; keep 4 stay say; say", "3: gc t1"},
		{"then no more", "fifo", false, 2, "begin; bash x; say; say; keep 4 stay say; keep 3 say; say", "3: gc t1; 6: gc t1"},
		{"stay though anchored in what was cut", "fifo", false, 2, "begin; bash x; say; say; anchor=t1 say; keep 4 stay say", "3: gc t1"},
	} {
		t.Run(row.policy+", "+row.name, func(t *testing.T) {
			o := Options{Policy: row.policy, Tau: row.tau}
			if row.window {
				o.Window, o.Zones = 2000, full
			}
			if got := run(t, o, strings.Split(row.lines, "; ")); got != row.want {
				t.Errorf("got  %s\nwant %s", got, row.want)
			}
		})
	}
}

// TestStay: whatever is out before a cut and stands in what stays is out behind it, no decision tells it, its faults
// count once, and what is sent of it begins as before.
func TestStay(t *testing.T) {
	stayed, longer := 0, 0
	for seed := range uint64(80) {
		rng := rand.New(rand.NewPCG(seed, 5))
		for _, name := range some(t, Policies()) {
			s := random(t, seed, 30)
			p, _ := New(Options{Policy: name, Tau: 1 + int(seed%3), MinBytes: 300})
			q, _ := New(Options{Policy: name, Tau: 1 + int(seed%3), MinBytes: 300})
			var all Totals
			for n, st := range s.Steps {
				if st.Cut && rng.IntN(3) == 0 {
					st.Append = nil
				}
				if st.Cut {
					st.Keep = rng.IntN(p.Len() + 1)
				}
				bare := st
				st.Stay = st.Cut
				var want []place
				for _, g := range p.Stubs() {
					if st.Cut && g.Message < st.Keep {
						want = append(want, place{g.Message, g.at})
					}
				}
				d, err := p.Step(st)
				if err != nil {
					t.Fatal(err)
				}
				other, err := q.Step(bare)
				if err != nil {
					t.Fatal(err)
				}
				all.add(&d)
				var got []place
				now := slices.Concat(d.Evict, d.GC, d.Input, d.Image)
				for _, g := range p.Stubs() {
					if !slices.Contains(now, g) {
						got = append(got, place{g.Message, g.at})
					}
				}
				if st.Cut && !reflect.DeepEqual(got, want) {
					t.Fatalf("seed %d %s request %d: %v stay out, want %v", seed, name, n, got, want)
				}
				if stayed += len(want); st.Cut && d.Same > other.Same {
					longer++
				}
				if st.Cut && len(now) == 0 && d.Same < p.out.upTo(st.Keep) {
					t.Fatalf("seed %d %s request %d: nothing left, and %d bytes are as before of %d that stay", seed, name, n, d.Same, p.out.upTo(st.Keep))
				}
			}
			if all.Faults > all.Evictions {
				t.Fatalf("seed %d %s: %d faults of %d evictions", seed, name, all.Faults, all.Evictions)
			}
		}
	}
	if stayed < 500 || longer < 50 {
		t.Errorf("%d stayed out, %d requests had more in the cache for it: too few to show anything", stayed, longer)
	}
}

// TestAlone: what comes with no message is done at once, and undone with the message before it.
func TestAlone(t *testing.T) {
	p, _ := New(Options{Policy: "lru", Tau: 9})
	step := func(st Step, want int) {
		t.Helper()
		if d, err := p.Step(st); err != nil || len(d.GC) != want {
			t.Fatalf("%d results left, %v: want %d", len(d.GC), err, want)
		}
	}
	s := scripted(t, "begin; bash x")
	step(s.Steps[0], 0)
	step(s.Steps[1], 0)
	step(Step{Anchor: []string{"t1"}}, 0)
	step(Step{Release: []string{"t1"}}, 1)
	step(Step{Cut: true, Keep: 3, Append: s.Steps[0].Append}, 0)
	if n := len(p.Stubs()); n != 1 {
		t.Errorf("%d are out, want that of the release, which came with what stays", n)
	}
	step(Step{Cut: true, Keep: 1, Append: s.Steps[1].Append}, 0)
	if len(p.Stubs()) != 0 || p.anchors != 0 {
		t.Error("a release or an anchor is left of what was cut")
	}
}

// TestStepJSON: the fields of a step, and what is wrong with them.
func TestStepJSON(t *testing.T) {
	sc := Scanner{Tools: DefaultTools()}
	const m = `{"role":"user","content":"x"}`
	s, err := sc.Session([]byte(`{"session":"s","steps":[{"append":[` + m + `],"ids":["e0"]},` +
		`{"ids":["","e\u0032"],"keep":1,"stay":true,"release":["e0#1","/a b"],"anchor":["e0"],"append":[` + m + `,` + m + `]},{"stay":false,"release":null,"ids":null,"append":[]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	st := s.Steps[1]
	if !st.Cut || !st.Stay || st.Keep != 1 || !slices.Equal(st.Release, []string{"e0#1", "/a b"}) || !slices.Equal(st.Anchor, []string{"e0"}) {
		t.Errorf("got %+v", st)
	}
	if s.Steps[0].Append[0].Handle != "e0" || st.Append[0].Handle != "" || st.Append[1].Handle != "e2" || s.Steps[2].Stay {
		t.Errorf("got %+v", s.Steps)
	}
	for step, want := range map[string]string{
		`{"append":[` + m + `],"ids":[]}`:                                           "ids: 0 for 1",
		`{"append":[],"ids":["a"]}`:                                                 "ids: 1 for 0",
		`{"append":[],"release":"a"}`:                                               "release: want a list",
		`{"append":[],"anchor":[1]}`:                                                "anchor: want a list",
		`{"append":[],"release":["` + strings.Repeat("a", maxPath+1) + `"]}`:        "release: a name of 4097 bytes",
		`{"append":[],"anchor":["a"` + strings.Repeat(`,"a"`, maxAsks) + `]}`:       "anchor: more than 4096",
		`{"append":[` + m + `],"ids":["` + strings.Repeat("a", maxHandle+1) + `"]}`: "ids: a name of 201 bytes",
	} {
		if _, err := sc.Session([]byte(`{"session":"s","steps":[` + step + `]}`)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s: %v, want %q", step, err, want)
		}
	}
}

// TestGone: what a path and a handle name, and what is brought back of it.
func TestGone(t *testing.T) {
	s := scripted(t, "begin; read /a v + read /a 1-50 v + write /b v; say; say; say; read /a 1-50 v")
	p := stepped(t, Options{Policy: "lru", Tau: 1}, s)
	ids := func(pages []*Page) (out []string) {
		for _, g := range pages {
			out = append(out, g.Part.String()+" "+g.ID)
		}
		return out
	}
	for _, row := range []struct {
		name       string
		find, gone []string
	}{
		{"/a", []string{"result t1", "result t2", "result t4"}, []string{"result t1"}}, // of its lines 1 to 50 a copy is there
		{"/x/../b", []string{"input t3", "result t3"}, []string{"input t3"}},
		{"t2", []string{"result t2"}, []string{"result t2"}},
		{"t4", []string{"result t4"}, nil},
		{"/c", nil, nil}, {"", nil, nil}, {".", nil, nil},
	} {
		if got := ids(p.Find(row.name)); !slices.Equal(got, row.find) {
			t.Errorf("%q names %q, want %q", row.name, got, row.find)
		}
		if got := ids(p.Gone(row.name)); !slices.Equal(got, row.gone) {
			t.Errorf("%q brings back %q, want %q", row.name, got, row.gone)
		}
	}
}

// TestOwnTool: a tool of the client that is called as one of ours is none of ours.
func TestOwnTool(t *testing.T) {
	table := DefaultTools().With(map[string]Tool{ReleaseTool: {}, FaultTool: {}})
	for _, name := range []string{ReleaseTool, FaultTool, "mcp__x__memory_fault"} {
		ours, theirs := DefaultTools().Call(name, []byte(`{"paths":["a"]}`)), table.Call(name, []byte(`{"paths":["a"]}`))
		if !ours.cooperates() || theirs.cooperates() {
			t.Errorf("%s: ours %v, theirs %v", name, ours.cooperates(), theirs.cooperates())
		}
	}
}

// TestGoneWritten: of a file that was written and never read the last text is brought back, and nothing while that is there.
func TestGoneWritten(t *testing.T) {
	for _, row := range []struct {
		lines string
		gone  []string
	}{
		{"begin; write /b v; write /b v; say; say; say", []string{"t2"}},
		{"begin; write /b v; say; say; say; write /b v", nil},
		{"begin; read /b v; keep 1 write /b v; say; say", []string{"t2"}}, // the read was cut
	} {
		p := stepped(t, Options{Policy: "lru", Tau: 1}, scripted(t, row.lines))
		out := 0
		for _, g := range p.Find("/b") {
			if g.Part == Input && g.stub {
				out++
			}
		}
		if out == 0 {
			t.Fatalf("%s: no text is out", row.lines)
		}
		var ids []string
		for _, g := range p.Gone("/b") {
			if ids = append(ids, g.ID); g.Part != Input {
				t.Errorf("%s: a %s", row.lines, g.Part)
			}
		}
		if !slices.Equal(ids, row.gone) {
			t.Errorf("%s: %q, want %q", row.lines, ids, row.gone)
		}
	}
}
