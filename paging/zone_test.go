package paging

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
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
	var done []Step
	for n, st := range s.Steps {
		done = append(done, plainly(p, st))
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
		for _, st := range afreshReported(done) {
			if last, err = q.Step(st); err != nil {
				t.Fatal(err)
			}
			q.Reported(st.Usage)
		}
		if want := fmt.Sprint(told(last, q.Stubs()), last.Zone, last.Size); got != want {
			t.Fatalf("%v request %d: got\n%s\nafresh\n%s", o, n, got, want)
		}
		if p.report() == 0 && p.Size() != o.Fixed+p.inline.estimate(d.Out) {
			t.Fatalf("request %d: size %d of %d bytes", n, p.Size(), d.Out)
		}
		names(t, p)
	}
	return seen
}

func TestZonesRandom(t *testing.T) {
	var all [4]int
	for seed := range uint64(40) {
		for _, name := range some(t, Policies()) {
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

// TestZonePolicies has a row for what a zone changes. A result of "v" has 600 bytes, some 250 tokens with its call.
func TestZonePolicies(t *testing.T) {
	const pin = "begin; read /a v; say; say; read /a v; say; say; " // fifo pins the second copy at tau 2
	const pinned = "3: evict t1; 4: fault t2 of t1; 6: pin t2"
	big := "read /a " + strings.Repeat("v", 30) // 9300 bytes, 2800 tokens
	other := strings.Replace(big, "/a", "/b", 1)
	for _, row := range []struct {
		name, policy string
		window       tidemark.Tokens
		tau          int
		lines, want  string
	}{
		{"room: nothing leaves", "fifo", 100_000, 1, "begin; bash x; say; say", ""},
		{"room: nothing leaves", "lru", 100_000, 1, "begin; bash x; say; say", ""},
		{"room: nothing leaves", "batch", 100_000, 1, "begin; bash x; say; say", ""},
		{"room: nothing leaves, also what is superseded", "cost", 100_000, 1, "begin; read /a v + edit /a; say; say", ""},
		{"what was held goes when the room ends", "fifo", 9000, 1, "begin; bash x; say; bash y as y; " + big, "4: gc t1; 4: gc y"},
		{"what was held goes when the room ends", "lru", 9000, 1, "begin; bash x; say; bash y as y; " + big, "4: gc t1"},
		{"what was held goes when the room ends", "cost", 5000, 1, "begin; bash x; say; bash y as y; " + big, "4: gc t1; 4: gc y"},
		{"advisory: age as without", "fifo", 1000, 3, "begin; bash x; bash y; say; say; say", "4: gc t1; 5: gc t2"},
		{"involuntary: what is ripe does not wait for the price", "cost", 1800, 3, "begin; bash x; bash y; bash z; bash x", "4: gc t1; 4: gc t2"},
		{"without a window it waits", "cost", 0, 3, "begin; bash x; bash y; bash z; bash x", ""},
		{"involuntary: too little to break the prefix for", "cost", 16_400, 3, "begin; bash x; " + other + "; " + strings.Replace(big, "/a", "/c", 1) + "; " + big, ""},
		{"aggressive: less is worth a break", "cost", 5000, 3, "begin; bash x; bash y short; " + other, "3: gc t1"},
		{"aggressive: half the age", "fifo", 100, 4, "begin; bash x; say; say", "3: gc t1"},
		{"aggressive: half the age", "lru", 100, 4, "begin; bash x; say; say", "3: gc t1"},
		{"aggressive: half the age", "batch", 100, 4, "begin; bash x; say; say", "3: gc t1"},
		{"aggressive: half the age, at least 1", "fifo", 100, 1, "begin; bash x; say; say", "2: gc t1"},
		{"normal: pins are told", "fifo", 0, 2, pin + "say", pinned},
		{"aggressive: pins end", "pins", 3300, 2, pin + other, pinned + "; 7: unpin t2; 7: evict t2"},
		{"aggressive: what the newest turn names stays pinned", "pins", 3300, 2, strings.ReplaceAll(pin, "/a", "/src/a.go") + "say look at a.go; " + other, pinned},
		{"aggressive: what a turn before named does not", "pins", 3300, 2, strings.ReplaceAll(pin, "/a", "/src/a.go") + "say look at b.go; " + other, pinned + "; 8: unpin t2; 8: evict t2"},
	} {
		t.Run(row.policy+", "+row.name, func(t *testing.T) {
			o := Options{Policy: row.policy, Tau: row.tau, Window: row.window}
			if row.policy == "pins" { // fifo, but for the end of the window as in Advisory
				o.Policy, o.Zones = "fifo", Zones{1, 90, 95}
			}
			if got := run(t, o, strings.Split(row.lines, "; ")); got != row.want {
				t.Errorf("got  %s\nwant %s", got, row.want)
			}
		})
	}
}

// TestSize adds up a session of three requests by hand.
func TestSize(t *testing.T) {
	u := func(in, out tidemark.Tokens) *tidemark.Usage {
		return &tidemark.Usage{Input: in, CacheRead: 700, CacheCreation: 200, Output: out}
	}
	user, reply := Message{Role: tidemark.User, Bytes: 100, Typed: true}, Message{Role: tidemark.Assistant, Bytes: 50}
	for _, row := range []struct {
		name  string
		o     Options
		usage *tidemark.Usage
		next  Step
		want  tidemark.Tokens
	}{
		{"no report", Options{Fixed: 7}, nil, Step{Append: []Message{reply, user}}, 7 + tidemark.EstimateChars(100+50+100+4)},
		{"a report, and what came since", Options{Fixed: 7}, u(100, 40), Step{Append: []Message{reply, user}}, 1040 + tidemark.EstimateChars(101)},
		{"a report without output", Options{}, u(100, 0), Step{Append: []Message{reply, user}}, 1000 + tidemark.EstimateChars(51+101)},
		{"a report of nothing sent is none", Options{}, &tidemark.Usage{Output: 9}, Step{Append: []Message{reply, user}}, tidemark.EstimateChars(100 + 50 + 100 + 4)},
		{"no reply came", Options{}, u(100, 40), Step{Append: []Message{user}}, 1000 + tidemark.EstimateChars(101)},
		{"a cut behind the report takes it", Options{Fixed: 7}, u(100, 40), Step{Cut: true, Append: []Message{user}}, 7 + tidemark.EstimateChars(102)},
		{"a whole report of a request with all in", Options{Whole: true}, u(100, 40), Step{Append: []Message{reply, user}}, 1040 + tidemark.EstimateChars(101)},
	} {
		p, err := New(row.o)
		if err != nil {
			t.Fatal(err)
		}
		for _, st := range []Step{{Append: []Message{user}}, row.next} {
			if _, err := p.Step(st); err != nil {
				t.Fatal(err)
			}
			if p.Len() == 1 && !st.Cut {
				p.Reported(row.usage)
			}
		}
		if got := p.Size(); got != row.want {
			t.Errorf("%s: %d, want %d", row.name, got, row.want)
		}
	}
}

// TestSizeCut: where the cut takes the reply, what was sent still counts, and the reply's output does not.
func TestSizeCut(t *testing.T) {
	p, _ := New(Options{})
	user, reply := Message{Role: tidemark.User, Bytes: 100, Typed: true}, Message{Role: tidemark.Assistant, Bytes: 50}
	for i, st := range []Step{{Append: []Message{user}}, {Append: []Message{reply, user}}, {Cut: true, Keep: 1, Append: []Message{{Role: tidemark.Assistant, Bytes: 80}, user}}} {
		if _, err := p.Step(st); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			p.Reported(&tidemark.Usage{Input: 1000, Output: 40})
		}
	}
	if got, want := p.Size(), 1000+tidemark.EstimateChars(81+101); got != want {
		t.Errorf("%d, want %d", got, want)
	}
}

// TestSizeWhole: where a session without paging reported of its requests, what is out here is taken off by its share.
func TestSizeWhole(t *testing.T) {
	var s script
	for _, l := range []string{"begin", "bash x", "say", "say"} {
		s.request(l)
	}
	sc := Scanner{Tools: DefaultTools()}
	session, err := sc.Session([]byte(`{"session":"s","system":"0123456789","tools":[{"name":"a"}, null],"steps":[` + s.b.String() + `]}`))
	if err != nil {
		t.Fatal(err)
	}
	if session.Fixed != 12+len(`[{"name":"a"},null]`) {
		t.Errorf("%d bytes go with each request", session.Fixed)
	}
	for _, whole := range []bool{false, true} {
		p, _ := New(Options{Policy: "fifo", Tau: 1, Whole: whole})
		for _, st := range session.Steps {
			d, err := p.Step(st)
			if err != nil {
				t.Fatal(err)
			}
			p.Reported(&tidemark.Usage{Input: tidemark.Tokens(d.In)})
			want := tidemark.Tokens(d.In)
			if whole {
				want = tidemark.Tokens(d.Out)
			}
			if got := p.Size(); got != want {
				t.Errorf("whole %t: %d, want %d", whole, got, want)
			}
		}
	}
}

// TestSizeImages: an image counts as the estimator counts it, whatever its bytes, by itself and in a result, and also
// when it leaves.
func TestSizeImages(t *testing.T) {
	const png = `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"`
	big := strings.Repeat("QUJD", 50_000)
	for _, row := range []struct{ name, message string }{
		{"by itself", `{"role":"user","content":[{"type":"text","text":"look"},` + png + big + `"}}]}`},
		{"in a result", `{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"here"},` + png + big + `"}},` + png + `QUJD"}}]}]}`},
		{"by its address", `{"role":"user","content":[{"type":"image","source":{"type":"url","url":"https://example.org/a.png"}}]}`},
		{"a document", `{"role":"user","content":[{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"` + big + `"}}]}`},
		{"a document of text", `{"role":"user","content":[{"type":"document","source":{"type":"text","media_type":"text/plain","data":"` + big + `"}}]}`},
		{"text", `{"role":"user","content":[{"type":"text","text":"` + big + `"}]}`},
	} {
		sc := Scanner{Tools: DefaultTools()}
		m, err := sc.Message([]byte(row.message))
		if err != nil {
			t.Fatal(err)
		}
		var as tidemark.Message
		if err := json.Unmarshal([]byte(row.message), &as); err != nil {
			t.Fatal(err)
		}
		p, _ := New(Options{Policy: "lru", Tau: -1, Whole: true})
		if _, err := p.Step(Step{Append: []Message{m}, Idle: true}); err != nil {
			t.Fatal(err)
		}
		if got, want := p.Size(), tidemark.Estimate(as); got < want || got > want+1 { // the brackets of the list
			t.Errorf("%s: %d tokens, want %d", row.name, got, want)
		}
		p.Reported(&tidemark.Usage{Input: 5000})
		before := p.Size()
		if before != 5000 {
			t.Errorf("%s: %d tokens, though nothing is out of the 5000 that are reported", row.name, before)
		}
		for len(p.Stubs()) == 0 && p.Len() < 6 {
			if _, err := p.Step(Step{Append: []Message{{Role: tidemark.User, Bytes: 100, Typed: true}}}); err != nil {
				t.Fatal(err)
			}
		}
		if n := len(p.Stubs()); n > 0 && (p.Size() >= before || p.Size() < before-2*tidemark.ImageTokens-100) && p.Stubs()[0].inline.images > 0 {
			t.Errorf("%s: %d tokens with the image, %d without", row.name, before, p.Size())
		}
	}
}

// TestWorthImages: what an image frees is what it counts, so a large one alone is not worth a break of the prefix.
func TestWorthImages(t *testing.T) {
	sc := Scanner{Tools: DefaultTools()}
	m, err := sc.Message([]byte(`{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + strings.Repeat("QUJD", 100_000) + `"}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	text := Message{Role: tidemark.Assistant, Bytes: 40_000}
	for window, want := range map[tidemark.Tokens]int{100_000: 0, 20_000: 1} { // a twentieth of it is more than the image, and less
		p, err := New(Options{Tau: 3, Window: window, Zones: Zones{1, 2, 99}})
		if err != nil {
			t.Fatal(err)
		}
		for _, st := range []Step{{Append: []Message{m}}, {Append: []Message{text, {Role: tidemark.User, Bytes: 9, Typed: true}}}, {Append: []Message{{Role: tidemark.Assistant, Bytes: 9}, {Role: tidemark.User, Bytes: 9, Typed: true}}}} {
			if _, err := p.Step(st); err != nil {
				t.Fatal(err)
			}
		}
		if got := len(p.Stubs()); got != want {
			t.Errorf("%d images leave a window of %d, want %d", got, window, want)
		}
	}
}

// TestLowWater: near the end of the window the policy cost goes far enough that the next request need not act again,
// and below the mark where the session lets it.
func TestLowWater(t *testing.T) {
	for _, name := range some(t, Profiles()) {
		for _, window := range []tidemark.Tokens{20_000, 40_000, 80_000} {
			sc := Scanner{Tools: DefaultTools()}
			s, err := sc.Session(Profile(name, 80, 6000))
			if err != nil {
				t.Fatal(err)
			}
			p, err := New(Options{Window: window})
			if err != nil {
				t.Fatal(err)
			}
			acts, twice, above, last := 0, 0, 0, -9
			for n, st := range s.Steps {
				d, err := p.Step(st)
				if err != nil {
					t.Fatal(err)
				}
				if d.Zone != Aggressive || len(d.Evict)+len(d.GC)+len(d.Input) == 0 {
					continue
				}
				if acts++; n == last+1 {
					twice++
				}
				if last = n; p.Size() > p.lowWater() {
					above++
				}
			}
			if twice > 1 {
				t.Errorf("%s, %d tokens: %d of %d acts follow one another", name, window, twice, acts)
			}
			if name == "scan" && window > 20_000 && above > 0 || name == "rescan" && window == 80_000 && (acts == 0 || above > 0) {
				t.Errorf("%s, %d tokens: %d of %d acts stop above the mark", name, window, above, acts)
			}
		}
	}
}
