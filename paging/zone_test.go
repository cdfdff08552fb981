package paging

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
)

func TestZones(t *testing.T) {
	for _, row := range []struct {
		zones        Zones
		size, window tidemark.Tokens
		want         string
	}{
		{Zones{}, 59_999, 200_000, "normal"}, {Zones{}, 60_000, 200_000, "advisory"}, {Zones{}, 99_999, 200_000, "advisory"},
		{Zones{}, 100_000, 200_000, "involuntary"}, {Zones{}, 120_000, 200_000, "aggressive"}, {Zones{}, 900_000, 200_000, "aggressive"},
		{Zones{}, 900_000, 0, "normal"}, {Zones{10, 20, 30}, 9, 99, "normal"}, {Zones{10, 20, 30}, 10, 99, "advisory"},
		{Zones{10, 20, 30}, 20, 99, "involuntary"}, {Zones{10, 20, 100}, 98, 99, "involuntary"}, {Zones{10, 20, 100}, 99, 99, "aggressive"},
	} {
		if got := row.zones.Of(row.size, row.window).String(); got != row.want {
			t.Errorf("%v: %d of %d is %s, want %s", row.zones, row.size, row.window, got, row.want)
		}
	}
	if got := Zone(9).String(); got != "zone 9" {
		t.Errorf("got %s", got)
	}
}

func TestZonesValid(t *testing.T) {
	for _, row := range []struct {
		zones Zones
		want  string
	}{
		{Zones{}, ""}, {DefaultZones, ""}, {Zones{1, 2, 100}, ""},
		{Zones{0, 50, 60}, "zone advisory 0: want 1 to 100"}, {Zones{30, 50, 101}, "zone aggressive 101"},
		{Zones{30, 30, 60}, "zone involuntary 30: want more than advisory, which is 30"}, {Zones{30, 50, 40}, "zone aggressive 40: want more than involuntary"},
	} {
		_, err := New(Options{Window: 1, Zones: row.zones})
		if row.want == "" && err != nil || row.want != "" && (!errors.Is(err, tidemark.ErrInvalid) || !strings.Contains(err.Error(), row.want)) {
			t.Errorf("%v: got %v, want %q", row.zones, err, row.want)
		}
	}
	if _, err := New(Options{Window: -1}); !errors.Is(err, tidemark.ErrInvalid) {
		t.Errorf("a window of -1: %v", err)
	}
}

// reported gives some requests of a session a report, which need not be near the estimate. All was read from the
// cache: what else the policy cost makes of a report hangs on the requests that were, also on those that are cut.
func reported(s Session, seed uint64) Session {
	rng := rand.New(rand.NewPCG(seed, 2))
	for i := range s.Steps {
		if rng.IntN(3) == 0 {
			s.Steps[i].Usage = &tidemark.Usage{CacheRead: tidemark.Tokens(rng.IntN(14000)), Output: tidemark.Tokens(rng.IntN(3) * 50)}
		}
	}
	return s
}

// afreshReported is afresh with the reports of the requests that are left; where the reply was cut, it is not counted.
func afreshReported(steps []Step) []Step {
	var left []Step
	total := 0
	for n, st := range steps {
		if st.Cut && st.Keep < total {
			sum := 0
			for i := range left {
				if sum += len(left[i].Append); sum == st.Keep && left[i].Usage != nil {
					u := *left[i].Usage
					u.Output = 0
					left[i].Usage = &u
				}
			}
			total = st.Keep
		}
		next := afresh(steps[:n+1])
		for i := range next[:len(next)-1] {
			next[i].Usage = left[i].Usage
		}
		next[len(next)-1].Usage = st.Usage
		left = next
		total += len(st.Append)
	}
	return left
}

// zoneLaws: decisions, zones and sizes are those of a fresh run over what is left, in Normal nothing leaves, and
// the size is that of the request.
func zoneLaws(t *testing.T, o Options, s Session) (seen [4]int) {
	t.Helper()
	p, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	for n, st := range s.Steps {
		d, err := p.Step(st)
		if err != nil {
			t.Fatal(err)
		}
		p.Reported(st.Usage)
		seen[d.Zone]++
		if d.Zone == Normal && len(d.Evict)+len(d.GC) > 0 {
			t.Fatalf("%v request %d: something leaves though the window has room", o, n)
		}
		got := fmt.Sprint(told(d, p.Stubs()), d.Zone, d.Size)
		q, _ := New(o)
		var last Decision
		for _, st := range afreshReported(s.Steps[:n+1]) {
			if last, err = q.Step(st); err != nil {
				t.Fatal(err)
			}
			q.Reported(st.Usage)
		}
		if want := fmt.Sprint(told(last, q.Stubs()), last.Zone, last.Size); got != want {
			t.Fatalf("%v request %d: got\n%s\nafresh\n%s", o, n, got, want)
		}
		if p.report() == 0 && p.Size() != o.Fixed+tidemark.EstimateChars(d.Out) {
			t.Fatalf("request %d: size %d of %d bytes", n, p.Size(), d.Out)
		}
		names(t, p)
	}
	return seen
}

func TestZonesRandom(t *testing.T) {
	var all [4]int
	for seed := range uint64(40) {
		for _, name := range Policies() {
			o := Options{Policy: name, Tau: int(seed % 5), MinBytes: 400, Window: tidemark.Tokens(6000 + 4000*(seed%6)), Fixed: 500}
			for z, n := range zoneLaws(t, o, reported(random(t, seed, 25), seed)) {
				all[z] += n
			}
			o.Fixed = 0
			zoneLaws(t, o, random(t, seed, 15))
		}
	}
	for z, n := range all {
		if n < 100 {
			t.Errorf("only %d requests in %s", n, Zone(z))
		}
	}
}
