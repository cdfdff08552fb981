package paging

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// random makes a session out of a seed: reads of a few ranges, changes, failures, cuts.
func random(t testing.TB, seed uint64, requests int) Session {
	sc := Scanner{Tools: DefaultTools()}
	session, err := sc.Session(randomLine(seed, requests))
	if err != nil {
		t.Fatal(err)
	}
	return session
}

// randomLine is such a session as JSON.
func randomLine(seed uint64, requests int) []byte {
	rng := rand.New(rand.NewPCG(seed, 1))
	var s script
	s.request("begin")
	length := 1
	for range requests {
		var calls []string
		for range 1 + rng.IntN(3) {
			c := []string{"read /%c v%d", "read /%c 1-50 v%d", "read /%c 10-20 v%d", "edit /%c%.0d", "bash %c%d", "orphan %c%d", "write /%c v%d"}[rng.IntN(7)]
			c = fmt.Sprintf(c, 'a'+rune(rng.IntN(3)), rng.IntN(2))
			c += []string{"", "", "", " fail", " short", " none", " list", fmt.Sprint(" as d", rng.IntN(3))}[rng.IntN(8)]
			calls = append(calls, c)
		}
		line := strings.Join(calls, " + ")
		if rng.IntN(6) == 0 {
			line = []string{"say", "say", "say", "show png", "show pdf", "show url", "say read /a again"}[rng.IntN(7)]
		}
		added := 2
		if line[0] != 's' && !strings.Contains(line, "write") && !strings.Contains(line, "read") && !strings.Contains(line, "edit") && !strings.Contains(line, "bash") {
			added = 1
		}
		if rng.IntN(6) == 0 {
			length = max(0, length-rng.IntN(9))
			line = fmt.Sprintf("keep %d %s", length, line)
		}
		length += added
		s.request(line)
	}
	return []byte(`{"session":"s","steps":[` + s.b.String() + `]}`)
}

// told is a decision as a text, without what depends on the request before.
func told(d Decision, stubs []*Page) string {
	var b strings.Builder
	for _, l := range [][]*Page{d.Evict, d.GC, d.Input, d.Image, d.Pin, d.Unpin} {
		for _, g := range l {
			fmt.Fprint(&b, g.Message, ":", g.ID, " ")
		}
		b.WriteByte('|')
	}
	for _, f := range d.Fault {
		fmt.Fprint(&b, f.ID, ">", f.Of.ID, " ")
	}
	b.WriteByte('|')
	for _, g := range stubs {
		fmt.Fprint(&b, g.Message, ":", g.ID, " ")
	}
	return fmt.Sprint(b.String(), d.In, "/", d.Out)
}

// afresh is the history of a session up to step n in the requests that are left of it: one that was
// cut into goes with the request that cut it.
func afresh(steps []Step) (left []Step) {
	for _, st := range steps {
		var rest []Message
		if st.Cut {
			n, keep := 0, 0
			for keep < len(left) && n+len(left[keep].Append) <= st.Keep {
				n += len(left[keep].Append)
				keep++
			}
			if keep < len(left) {
				rest = left[keep].Append[:st.Keep-n]
			}
			left = left[:keep:keep]
		}
		left = append(left, Step{Append: append(rest[:len(rest):len(rest)], st.Append...)})
	}
	return left
}

// plainly is a step with what comes beside its messages in the first of them: of what stays out, the places where
// that stands before the step.
func plainly(p *Pager, st Step) Step {
	a := &asked{release: st.Release, anchor: st.Anchor}
	if st.Cut && st.Stay {
		for _, g := range p.Stubs() {
			if g.Message < st.Keep {
				a.stay = append(a.stay, &stayed{at: place{g.Message, g.at}})
			}
		}
	}
	if len(st.Append) == 0 { // there is nothing to put it into
		if len(a.stay)+len(a.release)+len(a.anchor) > 0 {
			panic("a step without messages can not be told plainly")
		}
		return st
	}
	st.Append = slices.Clone(st.Append)
	st.Append[0].asked = a
	st.Stay, st.Release, st.Anchor = false, nil, nil
	return st
}

func laws(t *testing.T, o Options, s Session) {
	t.Helper()
	p, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	var all Totals
	var done []Step
	for n, st := range s.Steps {
		done = append(done, plainly(p, st))
		d, err := p.Step(st)
		if err != nil {
			t.Fatal(err)
		}
		all.add(&d)
		got := told(d, p.Stubs())
		q, _ := New(o)
		var last Decision
		for _, st := range afresh(done) {
			if last, err = q.Step(st); err != nil {
				t.Fatal(err)
			}
		}
		if want := told(last, q.Stubs()); got != want {
			t.Fatalf("%v request %d: got\n%s\nafresh\n%s", o, n, got, want)
		}
		names(t, p)
		if d.Same > d.Out || d.SameIn > d.In || d.Same < 0 {
			t.Fatalf("request %d: %d of %d bytes as before, of %d of %d", n, d.Same, d.Out, d.SameIn, d.In)
		}
	}
	if all.Faults > all.Evictions || all.FaultRate < 0 || all.FaultRate > 1 {
		t.Fatalf("%d faults of %d evictions", all.Faults, all.Evictions)
	}
	again := Replay{Options: o, Keep: true}
	twice := Replay{Options: o, Keep: true}
	if err := again.Run(s); err != nil {
		t.Fatal(err)
	}
	_ = twice.Run(s)
	if string(again.Line) != string(twice.Line) || !reflect.DeepEqual(again.Totals, twice.Totals) {
		t.Fatal("two runs differ")
	}
}

// names checks that what is out is a result of the history, and that the sizes add up.
func names(t *testing.T, p *Pager) {
	t.Helper()
	out := 0
	for _, m := range p.messages {
		out += m.Bytes
	}
	for _, g := range p.Stubs() {
		found := false
		for _, b := range p.messages[g.Message].Blocks {
			found = found || b.ID == g.ID && b.at == g.at && b.index == g.Block && (b.Size == g.Size || b.decoded == g.Size)
		}
		if !found || g.Err && p.rule == "fifo" {
			t.Fatalf("no original of stub %s, or it is an error", g.ID)
		}
		out += g.short - g.wire
	}
	if got := p.out.upTo(len(p.messages)); got != out {
		t.Fatalf("%d bytes go out, want %d", got, out)
	}
}

// some is a list that a test goes through, which must not be empty.
func some(t testing.TB, list []string) []string {
	t.Helper()
	if len(list) < 2 {
		t.Fatalf("of %q there are too few", list)
	}
	return list
}

func TestRandom(t *testing.T) {
	for seed := range uint64(60) {
		for _, name := range some(t, Policies()) {
			laws(t, Options{Policy: name, Tau: int(seed % 5), MinBytes: 400}, random(t, seed, 25))
		}
	}
}

func FuzzPager(f *testing.F) {
	f.Add(uint64(1), 10, 3)
	f.Fuzz(func(t *testing.T, seed uint64, requests, tau int) {
		for _, name := range Policies() {
			laws(t, Options{Policy: name, Tau: max(tau%7, -1)}, random(t, seed, min(max(requests, 0), 40)))
		}
	})
}

// FuzzSession: what is not a session is an error, and what is one never panics.
func FuzzSession(f *testing.F) {
	f.Add([]byte(`{"session":"s","steps":[{"append":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"\u00e9"}]}]}]},{"keep":0,"append":[]}]}`))
	f.Add([]byte(`{"session":"s","steps":[{"keep":2,"append":[{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"Read","input":{"file_path":"a","view_range":[1,-1]}}]}]}]}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		s := Scanner{Tools: DefaultTools()}
		session, err := s.Session(line)
		if err != nil {
			return
		}
		r := Replay{Options: Options{Tau: 1, MinBytes: 1}, Keep: true}
		if err := r.Run(session); err != nil {
			t.Fatal(err)
		}
	})
}
