package paging

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
)

// TestTotalsAdd: what several sessions came to adds up, and the shares are those of the sums.
func TestTotalsAdd(t *testing.T) {
	one := Totals{Policy: "lru", Sessions: 1, Requests: 2, Evictions: 30, GC: 4, Inputs: 5, Images: 6, Faults: 9, Pins: 8, Cost: 100, Baseline: 400, BytesIn: 11, BytesOut: 12, Tau: 4, Exact: 13, Relaxed: 14}
	two := Totals{Policy: "cost", Sessions: 100, Requests: 200, Evictions: 10, GC: 400, Inputs: 500, Images: 600, Faults: 1, Pins: 800, Cost: 50, Baseline: 200, BytesIn: 1100, BytesOut: 1200, Tau: 3, Exact: 1300, Relaxed: 1400,
		Zones: &ZoneCounts{1, 2, 3, 4}}
	var sum Totals
	sum.Add(one)
	if sum.Zones != nil || sum.Ratio != 0.25 || sum.FaultRate != 0.3 {
		t.Errorf("of one: %+v", sum)
	}
	sum.Add(two)
	want := Totals{Policy: "cost", Sessions: 101, Requests: 202, Evictions: 40, GC: 404, Inputs: 505, Images: 606, Faults: 10, Pins: 808, Cost: 150, Baseline: 600, Ratio: 0.25, FaultRate: 0.25,
		BytesIn: 1111, BytesOut: 1212, Tau: 4, Exact: 1313, Relaxed: 1414, Zones: &ZoneCounts{1, 2, 3, 4}}
	if !reflect.DeepEqual(sum, want) {
		t.Errorf("got  %+v\nwant %+v", sum, want)
	}
	two.Zones = &ZoneCounts{10, 20, 30, 40}
	if sum.Add(two); *sum.Zones != (ZoneCounts{11, 22, 33, 44}) {
		t.Errorf("zones %+v", sum.Zones)
	}
	if sum.Add(Totals{Tau: 9}); *sum.Zones != (ZoneCounts{11, 22, 33, 44}) || sum.Tau != 9 {
		t.Errorf("zones %+v, tau %d", sum.Zones, sum.Tau)
	}
	var once Totals
	if once.add(&Decision{In: 9, Out: 9, Evict: make([]*Page, 1), Fault: []Fault{{}}}); once.FaultRate != 1 {
		t.Errorf("one fault of one: %v", once.FaultRate)
	}
	if empty := replayed(t, Options{Policy: optimal}, Session{}).Totals; empty.Ratio != 0 || empty.Exact != 1 {
		t.Errorf("of no request: %+v", empty)
	}
	var none Totals
	if none.Add(Totals{Faults: 1, Cost: 1}); none.Ratio != 0 || none.FaultRate != 0 {
		t.Errorf("shares of nothing: %v and %v", none.Ratio, none.FaultRate)
	}
}

// TestTotalsOfRequests: bytes, costs and faults of requests add up; a fault that was told before a cut counts no more.
func TestTotalsOfRequests(t *testing.T) {
	var sum Totals
	sum.add(&Decision{In: 100, Out: 80, SameIn: 60, Same: 40, Evict: make([]*Page, 4), Fault: []Fault{{}, {Again: true}, {}}})
	sum.add(&Decision{In: 200, Out: 100, SameIn: 100, Same: 80})
	if math.Abs(sum.Cost-(4+50+8+25)) > 1e-9 || math.Abs(sum.Baseline-(6+50+10+125)) > 1e-9 || sum.BytesIn != 300 || sum.BytesOut != 180 || sum.Faults != 2 || sum.FaultRate != 0.5 || math.Abs(sum.Ratio-87.0/191) > 1e-9 {
		t.Errorf("%+v", sum)
	}
	for _, z := range []Zone{Normal, Aggressive, Advisory, Involuntary, Advisory, Aggressive, Aggressive, Aggressive, Involuntary, Involuntary} {
		sum.zoned(z)
	}
	if *sum.Zones != (ZoneCounts{1, 2, 3, 4}) {
		t.Errorf("zones %+v", sum.Zones)
	}
}

// TestDecisionLine: all that a line tells of a request, each field in its place.
func TestDecisionLine(t *testing.T) {
	page := func(part Part, id string, at int) *Page {
		return &Page{Part: part, ID: id, Message: at, Block: 1, Call: Call{Path: "/" + id}}
	}
	read, other, input, image := page(Result, "t\"1", 2), page(Result, "t2", 2), page(Input, "t3", 1), page(Image, "", 4)
	second := page(Image, "", 12)
	d := Decision{Evict: []*Page{read}, GC: []*Page{other, other}, Input: []*Page{input}, Image: []*Page{image, second}, Fault: []Fault{{ID: "t8", Of: read}, {ID: "t9", Of: other}},
		Pin: []*Page{other}, Unpin: []*Page{read}, In: 100, Out: 90, Tau: 8, Zone: Advisory, Size: 1234}
	var o outside
	o.add([]*Page{read, input, image, other, second})
	for _, row := range []struct {
		kept  int
		d     Decision
		zones bool
		want  string
	}{
		{5, d, true, `{"n":3,"evict":["t\"1"],"gc":["t2","t2"],"stub":["t\"1","t2"],"fault":[{"id":"t8","of":"t\"1","path":"/t\"1"},{"id":"t9","of":"t2","path":"/t2"}],"pin":["t2"],"unpin":["t\"1"],"bytes":[100,90],` +
			`"input":["t3"],"image":["4:1","12:1"],"stub_input":["t3"],"stub_image":["4:1","12:1"],"tau":8,"zone":"advisory","size":1234}`},
		{3, d, false, `{"n":3,"evict":["t\"1"],"gc":["t2","t2"],"stub":["t\"1"],"fault":[{"id":"t8","of":"t\"1","path":"/t\"1"},{"id":"t9","of":"t2","path":"/t2"}],"pin":["t2"],"unpin":["t\"1"],"bytes":[100,90],` +
			`"input":["t3"],"image":["4:1","12:1"],"stub_input":["t3"],"stub_image":["4:1"],"tau":8}`},
		{2, Decision{}, false, `{"n":3,"evict":[],"gc":[],"stub":["t\"1"],"fault":[],"pin":[],"unpin":[],"bytes":[0,0],"stub_input":["t3"]}`},
		{0, Decision{}, true, `{"n":3,"evict":[],"gc":[],"stub":[],"fault":[],"pin":[],"unpin":[],"bytes":[0,0],"zone":"normal","size":0}`},
	} {
		o.only(row.kept)
		if got := string(o.decision(nil, 3, &row.d, row.zones)); got != row.want {
			t.Errorf("%d are out:\n got %s\nwant %s", row.kept, got, row.want)
		}
	}
}

// TestReplayTotals: of two sessions the second one's cost is its own, and the totals are of both; the bound stands in the place of what its
// plan costs.
func TestReplayTotals(t *testing.T) {
	small, large := scripted(t, "begin; bash x; read /a v"+says(9)), scripted(t, "begin"+strings.Repeat("; bash x", exactResults+1)+says(3))
	for _, o := range []Options{{Policy: "fifo", Tau: 2}, {Policy: "min", Tau: 1}, {Policy: optimal, Tau: 1}} {
		first, second, both := replayed(t, o, small), replayed(t, o, large), Replay{Options: o, Keep: true}
		var lines []string
		for _, s := range []Session{small, large} {
			if err := both.Run(s); err != nil {
				t.Fatal(err)
			}
			lines = append(lines, string(both.Line))
		}
		want := first.Totals
		want.Add(second.Totals)
		got := both.Totals
		if math.Abs(both.Cost-second.Cost) > 1e-6 || math.Abs(got.Cost-want.Cost) > 1e-6 || math.Abs(got.Ratio-want.Ratio) > 1e-9 || both.Exact != second.Exact {
			t.Errorf("%s: cost %v of %v, want %v of %v", o.Policy, both.Cost, got.Cost, second.Cost, want.Cost)
		}
		if want.Cost, want.Baseline, want.Ratio = got.Cost, got.Baseline, got.Ratio; !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\n got %+v\nwant %+v", o.Policy, got, want)
		}
		if got.Sessions != 2 || got.Evictions+got.GC == 0 || o.Policy == optimal && (got.Exact != 1 || got.Relaxed != 1) || o.Policy != optimal && got.Exact+got.Relaxed != 0 {
			t.Errorf("%s: %+v", o.Policy, got)
		}
		alone := Replay{Options: o, Keep: true}
		if err := alone.Run(large); err != nil || string(alone.Line) != lines[1] || !strings.HasPrefix(lines[0], `{"session":"s","requests":[{"n":0,`) {
			t.Errorf("%s: %v, a line of the session before is left in\n%s", o.Policy, err, lines[1])
		}
	}
}

// TestReplayFixed: with a window what a session says of its system prompt and tools counts beside that of the options.
func TestReplayFixed(t *testing.T) {
	s := scripted(t, "begin; say")
	s.Fixed, s.Whole = 101, false
	var sizes, want []tidemark.Tokens
	r := Replay{Options: Options{Window: 1000, Fixed: 7}, Each: func(d *Decision) {
		sizes, want = append(sizes, d.Size), append(want, 7+31+tidemark.EstimateChars(d.In))
	}}
	if err := r.Run(s); err != nil || !reflect.DeepEqual(sizes, want) || len(sizes) != 2 {
		t.Errorf("%v: sizes %v, want %v", err, sizes, want)
	}
	for _, policy := range Bounds() {
		r := Replay{Options: Options{Window: 1000, Policy: policy}}
		if err := r.Run(s); !errors.Is(err, tidemark.ErrInvalid) || !strings.Contains(err.Error(), "policy "+policy+" with a window") || r.Totals.Sessions != 0 {
			t.Errorf("%v", err)
		}
	}
	s.Steps = append(s.Steps, Step{Cut: true, Keep: 99})
	for _, policy := range append(Policies(), Bounds()...) {
		r := Replay{Options: Options{Policy: policy}}
		if err := r.Run(s); !errors.Is(err, tidemark.ErrInvalid) || !strings.HasPrefix(err.Error(), "steps[2]: keep 99: the history has 3 messages") {
			t.Errorf("%s: %v", policy, err)
		}
	}
}

// TestWholeReport: that a session's reports are of requests with nothing replaced is known by the session, or by the options.
func TestWholeReport(t *testing.T) {
	sizes := func(options, session bool) (out []tidemark.Tokens) {
		s := scripted(t, "begin; bash x; say; say; say")
		s.Whole = session
		for i := range s.Steps {
			s.Steps[i].Usage = &tidemark.Usage{Input: 1000}
		}
		r := Replay{Options: Options{Policy: "fifo", Tau: 1, Window: 1200, Whole: options}, Each: func(d *Decision) { out = append(out, d.Size) }}
		if err := r.Run(s); err != nil {
			t.Fatal(err)
		}
		return out
	}
	plain, whole := sizes(false, false), sizes(true, false)
	if reflect.DeepEqual(plain, whole) || !reflect.DeepEqual(whole, sizes(false, true)) || !reflect.DeepEqual(whole, sizes(true, true)) {
		t.Errorf("%v and %v: want those of the session to count as those of the options", plain, whole)
	}
}
