package paging

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// stepped is a pager that has taken all steps of a session.
func stepped(t testing.TB, o Options, s Session) *Pager {
	t.Helper()
	p, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	for _, st := range s.Steps {
		if _, err := p.Step(st); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// ranges is a session of reads of different ranges of one file, with edits of it between, which are uses of them all.
func ranges(t testing.TB, requests int) Session {
	t.Helper()
	var s script
	s.request("begin")
	for q := range requests {
		if q%2 == 1 {
			s.request("edit /a")
			continue
		}
		s.request(fmt.Sprintf("read /a %d-%d v", 10*q+1, 10*q+9))
	}
	return s.session(t)
}

// session is what was written so far.
func (s *script) session(t testing.TB) Session {
	t.Helper()
	sc := Scanner{Tools: DefaultTools()}
	session, err := sc.Session([]byte(`{"session":"s","steps":[` + s.b.String() + `]}`))
	if err != nil {
		t.Fatal(err)
	}
	return session
}

// TestLinearLru: the changes that a cut would take back are some for each request, and not some for each range that waits.
func TestLinearLru(t *testing.T) {
	for _, requests := range []int{200, 1600} {
		s := ranges(t, requests)
		p := stepped(t, Options{Policy: "lru"}, s)
		waiting := 0
		for _, g := range p.pages {
			if !g.stub {
				waiting++
			}
		}
		if waiting < requests/2 {
			t.Fatalf("%d requests: %d pages wait: too few to show anything", requests, waiting)
		}
		if n := len(p.undo); n > 50*requests {
			t.Errorf("%d requests: %d changes to take back", requests, n)
		}
	}
}

// joined is a session in which some steps at a time are one.
func joined(s Session, some int) (out Session) {
	out.ID = s.ID
	for i, st := range s.Steps {
		if st.Cut || i < 2 || i%some == 0 {
			out.Steps = append(out.Steps, st)
			continue
		}
		last := &out.Steps[len(out.Steps)-1]
		last.Append = append(last.Append[:len(last.Append):len(last.Append)], st.Append...)
	}
	return out
}

// cuts is a session of reads, changes and failures, and a long step of all kinds into which cuts go again and again.
func cuts(t testing.TB, seed uint64) Session {
	t.Helper()
	kinds := []string{"read /a v%d", "read /b v%d", "edit /a%.0d", "bash x%d", "bash %d fail", "say%.0d", "release t%d short", "recall t%d short", "show png%.0d"}
	var s script
	s.request("begin")
	for i := range 12 {
		s.request(fmt.Sprintf(kinds[(i*5+int(seed))%len(kinds)], i%3+1))
	}
	early := s.session(t)
	for i := range 60 {
		s.request(fmt.Sprintf(kinds[(i*(int(seed)%7+1)+i/9)%len(kinds)], i%(5+int(seed)%11)+1))
	}
	out := s.session(t)
	long := Step{}
	for _, st := range out.Steps[len(early.Steps):] {
		long.Append = append(long.Append, st.Append...)
	}
	out.Steps = append(out.Steps[:len(early.Steps):len(early.Steps)], long)
	n := 0
	for _, st := range out.Steps {
		n += len(st.Append)
	}
	for i := range 12 {
		n -= 1 + (i*int(seed+3))%9
		out.Steps = append(out.Steps, Step{Cut: true, Keep: n, Append: long.Append[i : i+i%3]})
		n += i % 3
	}
	return out
}

// TestCutLong: a session with long steps that are cut again and again decides as it does without what was cut away.
func TestCutLong(t *testing.T) {
	faults, stages, seeds := 0, 0, tidemarktest.Rounds(4)
	for seed := range uint64(seeds) { //nolint:gosec // a count
		for _, name := range some(t, Policies()) {
			for _, o := range []Options{{Policy: name, Tau: int(seed%4) + 1, MinBytes: 100}, {Policy: name, Tau: 2, MinBytes: 100, Window: 3000}} {
				s := cuts(t, seed)
				laws(t, o, s)
				laws(t, o, joined(random(t, seed, 80), 40))
				p := stepped(t, o, s)
				stages += len(p.stages)
				faults += p.costs.faults + p.costs.missed
			}
		}
	}
	if faults < 4*seeds || stages < 8*seeds {
		t.Errorf("%d faults, %d states amid steps: too few to show anything", faults, stages)
	}
}

// TestLinearCut: a cut into a long step takes few messages again. A page that is taken again is another one.
func TestLinearCut(t *testing.T) {
	var s script
	s.request("begin")
	s.request("bash x short")
	first := s.session(t)
	for range 300 {
		s.request("bash y")
	}
	all := s.session(t)
	long := Step{}
	for _, st := range all.Steps[len(first.Steps):] {
		long.Append = append(long.Append, st.Append...)
	}
	for _, policy := range some(t, Policies()) {
		p := stepped(t, Options{Policy: policy, Tau: 1000}, first)
		if _, err := p.Step(long); err != nil {
			t.Fatal(err)
		}
		for p.Len() > 20 {
			before := append([]*Page(nil), p.pages...)
			keep := p.Len() - 3
			if _, err := p.Step(Step{Cut: true, Keep: keep, Append: long.Append[:1]}); err != nil {
				t.Fatal(err)
			}
			again := 0
			for i, g := range before {
				if g.Message < keep && p.pages[i] != g {
					again++
				}
			}
			if again > stageMessages {
				t.Fatalf("%s: a cut to %d messages took %d pages again", policy, keep, again)
			}
		}
	}
}

// wide is a session in which one message brings many results, and each is released by the id of its call.
func wide(t testing.TB, results int) Session {
	t.Helper()
	var s script
	s.request("begin")
	calls, handles := make([]string, results), make([]string, results)
	for i := range calls {
		calls[i], handles[i] = "bash x", fmt.Sprint("t", i+1)
	}
	s.request(strings.Join(calls, " + "))
	var releases []string
	for len(handles) > 0 {
		n := min(len(handles), MaxHandles)
		releases = append(releases, "release "+strings.Join(handles[:n], ",")+" short")
		handles = handles[n:]
	}
	s.request(strings.Join(releases, " + "))
	s.request("say")
	return s.session(t)
}

// BenchmarkRelease shows that the time for each result of a wide message stays.
func BenchmarkRelease(b *testing.B) {
	for _, n := range []int{1000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) { benchSession(b, "lru", wide(b, n), n) })
	}
}

// BenchmarkLruRanges shows what ranges of one file cost that all wait while it is used.
func BenchmarkLruRanges(b *testing.B) {
	for _, n := range []int{625, 1250, 2500} {
		b.Run(fmt.Sprint(n), func(b *testing.B) { benchSession(b, "lru", ranges(b, n), n) })
	}
}

// BenchmarkCutLong cuts N times into one step of 2N+1 messages.
func BenchmarkCutLong(b *testing.B) {
	for _, n := range []int{100, 200, 400} {
		var s script
		s.request("begin")
		for range n {
			s.request("bash y")
		}
		all, long := s.session(b), Step{}
		for _, st := range all.Steps {
			long.Append = append(long.Append, st.Append...)
		}
		all.Steps = []Step{long}
		for i := range n {
			all.Steps = append(all.Steps, Step{Cut: true, Keep: 2*n - i})
		}
		for _, policy := range Policies() {
			b.Run(fmt.Sprint(policy, "/", n), func(b *testing.B) { benchSession(b, policy, all, n) })
		}
	}
}

func benchSession(b *testing.B, policy string, s Session, n int) {
	b.Helper()
	b.ReportAllocs()
	for b.Loop() {
		stepped(b, Options{Policy: policy}, s)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/part")
}
