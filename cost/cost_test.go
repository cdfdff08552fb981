package cost

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// at returns the model at a price of the table.
func at(tb testing.TB, model string, h float64) Model {
	tb.Helper()
	p, err := DefaultPrices().Find(model)
	if err != nil {
		tb.Fatal(err)
	}
	m := Model{p, h}
	if err := m.Check(); err != nil {
		tb.Fatal(err)
	}
	return m
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(1, math.Abs(a), math.Abs(b)) }

func TestBreakEvenOfThePaper(t *testing.T) {
	want := map[tidemark.Tokens]Turns{5: 92, 10: 44, 12: 36, 20: 20, 30: 12, 39: 8, 46: 6, 60: 4, 86: 1, 0: Never, 100: 0}
	for percent, turns := range want {
		for _, model := range DefaultPrices().Models[:4] { // those with the ratios 1.25 and 0.1 (the rest has others)
			if model.Model == "opus-5-5" {
				continue
			}
			for _, pre := range []tidemark.Tokens{1_000, 84_000, 200_000, 1_000_000} {
				m := Model{model, DefaultHitRate}
				if got := m.Paper(pre, pre-pre*percent/100).BreakEven; got != turns {
					t.Errorf("%s, %d tokens less %d %%: break-even %s, want %s", model.Model, pre, percent, got, turns)
				}
			}
		}
	}
}

// The formula, worked out: ⌈(1.25r − c)/(c(1−r))⌉ + 1 with c = 0.1h + 1.25(1−h) for the kept share r.
func TestBreakEvenClosedForm(t *testing.T) {
	for _, h := range []float64{0, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1} {
		m := at(t, "opus", h)
		c := 0.1*h + 1.25*(1-h)
		for percent := 1; percent < 100; percent++ {
			r := 1 - float64(percent)/100
			exact := (1.25*r - c) / (c * (1 - r))
			got := m.Paper(100_000, tidemark.Tokens(100_000-1000*percent)).BreakEven
			if d := float64(got-1) - exact; d < -1e-6 || d >= 1 {
				t.Errorf("h %v, %d %%: break-even %s, the formula gives %v + 1", h, percent, got, exact)
			}
		}
	}
	if got := at(t, "opus", 0).Paper(84_000, 51_240).BreakEven; got != 0 {
		t.Errorf("without a cache a trim pays at once: break-even %s, want 0", got)
	}
}

func TestPaperFigures(t *testing.T) {
	m := at(t, "opus", DefaultHitRate)
	got := m.Paper(84_000, 67_200)
	if !near(got.Reduction, 20) || !near(got.Penalty, 0.42-0.0903) || !near(got.Savings, 0.01806) || got.BreakEven != 20 {
		t.Errorf("84k less 20 %%: %+v", got)
	}
	small := m.Paper(84_000, 11_760)
	if small.Penalty >= 0 {
		t.Errorf("a turn over what remains of 86 %% less costs less than one before: penalty %v", small.Penalty)
	}
	b := m.Branch(84_000)
	if !near(b.First, 0.525) || !near(b.Later, 0.042) {
		t.Errorf("a branch of 84k: %+v, papers/cmv §4.4 has $0.53 and $0.04", b)
	}
}

func TestTurnCosts(t *testing.T) {
	if a, b := at(t, "opus", 0.99).Turn(100_000), at(t, "opus", 0.5).Turn(100_000); a >= b {
		t.Errorf("more from the cache costs more: %v at 0.99, %v at 0.5", a, b)
	}
	last := math.Inf(1)
	for _, model := range []string{"opus-4", "opus", "sonnet", "haiku"} {
		c := at(t, model, DefaultHitRate).Turn(100_000)
		if c >= last {
			t.Errorf("a turn of %s costs %v, not less than one of the model before, %v", model, c, last)
		}
		last = c
	}
	m := at(t, "opus", 1)
	if m.Turn(0) != 0 || m.Cold(0) != 0 {
		t.Error("nothing costs something")
	}
	if !near(at(t, "opus", 0).Turn(1e6), 6.25) || !near(m.Turn(1e6), 0.5) || !near(m.Cold(1e6), 6.25) {
		t.Error("the bounds of a turn are the prices of reading and of writing")
	}
}

func TestProject(t *testing.T) {
	m := at(t, "opus", DefaultHitRate)
	p := m.Project(100_000, 54_000)
	if len(p) != 4 || p[0].Turns != 5 || p[1].Turns != 10 || p[2].Turns != 20 || p[3].Turns != 50 {
		t.Fatalf("projections at %+v, want 5, 10, 20 and 50", p)
	}
	even := m.Paper(100_000, 54_000).BreakEven
	around := m.Project(100_000, 54_000, even-1, even, 0)
	if !(around[0].With > around[0].Without) || !(around[1].With <= around[1].Without) {
		t.Errorf("break-even at %s, but turn by turn it is %+v", even, around)
	}
	if around[2].With != 0 || around[2].Without != 0 {
		t.Errorf("no turn costs %+v", around[2])
	}
}

func TestTurns(t *testing.T) {
	for _, tc := range []struct {
		n       Turns
		json    string
		text    string
		capped  Turns
		verdict Verdict
	}{
		{0, "0", "0", 0, Worth},
		{5, "5", "5", 5, Worth},
		{6, "6", "6", 6, LongRun},
		{15, "15", "15", 15, LongRun},
		{16, "16", "16", 16, NotNeeded},
		{92, "92", "92", 60, NotNeeded},
		{Never, "null", "never", 60, NotNeeded},
	} {
		raw, err := json.Marshal(Trim{BreakEven: tc.n})
		if err != nil || !strings.Contains(string(raw), `"break_even":`+tc.json+"}") {
			t.Errorf("%d: JSON %s, %v", tc.n, raw, err)
		}
		if tc.n.String() != tc.text || tc.n.Capped() != tc.capped || tc.n.Verdict() != tc.verdict {
			t.Errorf("%d: %q, capped %d, %q", tc.n, tc.n, tc.n.Capped(), tc.n.Verdict())
		}
	}
}

// The break-even of 84k to 67k tokens, by what stays in the cache (reference figures, worked out independently).
func TestLive(t *testing.T) {
	m := at(t, "opus", DefaultHitRate)
	const pre, post = 84_000, 67_200
	for _, tc := range []struct {
		name string
		c    Change
		want Turns
	}{
		{"nothing stays: the paper", Change{Pre: pre, Post: post}, 20},
		{"system prompt and tools stay", Change{Pre: pre, Post: post, Same: 20_000}, 13},
		{"first change at a quarter of the messages kept", Change{Pre: pre, Post: post, Same: 31_800}, 10},
		{"at half", Change{Pre: pre, Post: post, Same: 43_600}, 6},
		{"at three quarters", Change{Pre: pre, Post: post, Same: 55_400}, 2},
		{"nothing is removed", Change{Pre: pre, Post: pre, Same: pre}, Never},
		{"cold anyway", Change{Pre: pre, Post: post, Same: 20_000, Pause: 6 * time.Minute}, 1},
		{"still warm for an hour", Change{Pre: pre, Post: post, Pause: 6 * time.Minute, TTL: time.Hour}, 0},
		{"it grows", Change{Pre: post, Post: pre}, Never},
	} {
		l := m.Live(tc.c)
		if tc.c.TTL == LongTTL { // writing costs twice the input there
			hour := m
			hour.Price.CacheWrite = 10
			tc.want = hour.Paper(pre, post).BreakEven
		}
		if l.BreakEven != tc.want {
			t.Errorf("%s: break-even %s, want %s (%+v)", tc.name, l.BreakEven, tc.want, l)
		}
		if l.Penalty < 0 || l.Same < 0 || l.Same > tc.c.Pre || l.Same > tc.c.Post {
			t.Errorf("%s: %+v", tc.name, l)
		}
	}
}

// Where nothing changes, the next turn costs what the one before did.
func TestLiveUnchanged(t *testing.T) {
	m := at(t, "opus", DefaultHitRate)
	l := m.Live(Change{Pre: 84_000, Post: 84_000, Same: 84_000})
	if turn := m.Turn(84_000); !near(l.First, turn) || !near(l.FirstWithout, turn) || l.Penalty != 0 || l.Savings != 0 {
		t.Errorf("%+v, a turn costs %v", l, turn)
	}
	// As much as before, but other: what is behind the change is written again.
	if l := m.Live(Change{Pre: 84_000, Post: 84_000, Same: 20_000}); !near(l.First, m.Branch(20_000).Later+m.Cold(64_000)) || l.Penalty <= 0 {
		t.Errorf("changed: %+v", l)
	}
}

// Whatever is asked, the truer model never finds a trim dearer than the paper does.
func FuzzLive(f *testing.F) {
	f.Add(int64(84_000), int64(67_200), int64(20_000), int64(0), 0.9)
	f.Add(int64(0), int64(10), int64(-5), int64(1e12), 0.0)
	f.Fuzz(func(t *testing.T, pre, post, same, pause int64, h float64) {
		const most = 1 << 40
		if pre < 0 || post < 0 || pre > most || post > most || !(h >= 0 && h <= 1) {
			t.Skip("no sizes of a context, or no share")
		}
		m := at(t, "opus", h)
		l := m.Live(Change{Pre: tidemark.Tokens(pre), Post: tidemark.Tokens(post), Same: tidemark.Tokens(same), Pause: time.Duration(pause)})
		p := m.Paper(tidemark.Tokens(pre), tidemark.Tokens(post))
		if !near(l.Savings, p.Savings) {
			t.Errorf("a turn saves %v, %v by the paper", l.Savings, p.Savings)
		}
		if l.Penalty > max(0, p.Penalty)*(1+1e-9)+1e-9 {
			t.Errorf("penalty %v, %v by the paper", l.Penalty, p.Penalty)
		}
		if _, err := json.Marshal(l); err != nil {
			t.Error(err)
		}
	})
}

func TestHitRate(t *testing.T) {
	for _, tc := range []struct {
		name  string
		u     tidemark.Usage
		want  float64
		known bool
	}{
		{"nothing", tidemark.Usage{}, 0, false},
		{"a provider that tells nothing of its cache", tidemark.Usage{Input: 10, Output: 5}, 0, false},
		{"all written", tidemark.Usage{CacheCreation: 10}, 0, true},
		{"nine of ten", tidemark.Usage{Input: 5, CacheCreation: 5, CacheRead: 90, Output: 99}, 0.9, true},
	} {
		if got, known := HitRate(tc.u); got != tc.want || known != tc.known {
			t.Errorf("%s: %v, %v", tc.name, got, known)
		}
	}
}

func TestPrices(t *testing.T) {
	p := DefaultPrices()
	if _, err := time.Parse(time.DateOnly, p.Date); err != nil || !strings.HasPrefix(p.Source, "https://") {
		t.Errorf("prices of %q from %q", p.Date, p.Source)
	}
	for _, want := range []Price{ // papers/cmv Table 1, and those of the known implementation
		{Model: "opus", Input: 5, CacheWrite: 6.25, CacheRead: 0.50, Output: 25},
		{Model: "opus-4", Input: 15, CacheWrite: 18.75, CacheRead: 1.50, Output: 75},
		{Model: "sonnet", Input: 3, CacheWrite: 3.75, CacheRead: 0.30, Output: 15},
		{Model: "haiku", Input: 1, CacheWrite: 1.25, CacheRead: 0.10, Output: 5},
	} {
		got, err := p.Find(want.Model)
		if err != nil || got.Input != want.Input || got.CacheWrite != want.CacheWrite || got.CacheRead != want.CacheRead || got.Output != want.Output {
			t.Errorf("%s: %+v, %v", want.Model, got, err)
		}
		if !near(got.CacheWrite, 1.25*got.Input) || !near(got.CacheRead, 0.1*got.Input) || !near(got.HourWrite(), 2*got.Input) {
			t.Errorf("%s: the ratios to the input are not 1.25, 2 and 0.1: %+v", want.Model, got)
		}
	}
	u := tidemark.Usage{Input: 1e6, CacheCreation: 1e6, CacheRead: 1e6, Output: 1e6}
	if opus, _ := p.Find("opus"); !near(opus.Usage(u), 36.75) || !near(opus.HourMore(1e6), 3.75) {
		t.Errorf("a million of each costs %v, and %v more for an hour", opus.Usage(u), opus.HourMore(1e6))
	}
}

func TestFindPrice(t *testing.T) {
	p := DefaultPrices()
	for id, want := range map[string]string{
		"opus": "opus", " Opus ": "opus", "claude-opus-4-6": "opus", "claude-opus-4-5-20251101": "opus",
		"claude-opus-4-1-20250805": "opus-4", "claude-opus-4-20250514": "opus-4", "claude-opus-4-0": "opus-4", "claude-3-opus-latest": "opus-4",
		"claude-opus-5": "opus", "claude-opus-5-5": "opus-5-5", "anthropic/claude-opus-4.6": "opus", "us.anthropic.claude-opus-4-6-v1:0": "opus",
		"claude-sonnet-4-5@20250929": "sonnet", "claude-3-7-sonnet-20250219": "sonnet", "claude-sonnet-5-5[1m]": "sonnet-5-5",
		"claude-haiku-4-5-20251001": "haiku", "claude-3-5-haiku-20241022": "haiku-3-5", "claude-fable-5-1": "fable", "claude-fable-5": "fable-5",
		"claude-opus-4-9": "", "claude-opus-45": "", "claude-opus-6": "", "gpt-5": "", "": "", "claude-": "", "<synthetic>": "",
	} {
		got, err := p.Find(id)
		if got.Model != want || (err == nil) != (want != "") {
			t.Errorf("%q is %q (%v), want %q", id, got.Model, err, want)
		}
		if err != nil && (!errors.Is(err, tidemark.ErrNotFound) || !strings.Contains(err.Error(), "opus, opus-4")) {
			t.Errorf("%q: %v", id, err)
		}
	}
}

func TestParsePrices(t *testing.T) {
	one := func(fields string) string {
		return `{"date":"2026-01-01","source":"here","models":[{"model":"m","input":1,"output":1,"cache_write":1,"cache_read":1` + fields + `}]}`
	}
	if p, err := ParsePrices([]byte(one(""))); err != nil || p.Models[0].HourWrite() != 2 {
		t.Errorf("a table of one: %+v, %v", p, err)
	}
	for name, bad := range map[string]string{
		"no JSON":             `{`,
		"no date":             `{"source":"here","models":[{"model":"m"}]}`,
		"no models":           `{"date":"d","source":"s","models":[]}`,
		"no name":             `{"date":"d","source":"s","models":[{"input":1}]}`,
		"a name twice":        `{"date":"d","source":"s","models":[{"model":"m"},{"model":"m"}]}`,
		"below zero":          one(`,"input":-1`),
		"writing below reads": one(`,"cache_read":3`),
		"a text":              one(`,"input":"5"`),
	} {
		if _, err := ParsePrices([]byte(bad)); !errors.Is(err, tidemark.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestModelCheck(t *testing.T) {
	m := at(t, "opus", DefaultHitRate)
	for _, h := range []float64{-0.1, 1.1, math.NaN(), math.Inf(1)} {
		m.HitRate = h
		if err := m.Check(); !errors.Is(err, tidemark.ErrInvalid) {
			t.Errorf("hit rate %v: %v", h, err)
		}
	}
}

func FuzzParsePrices(f *testing.F) {
	f.Add(embedded)
	f.Add([]byte(`{"date":"d","source":"s","models":[{"model":"m","ids":[""]}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := ParsePrices(data)
		if err != nil {
			return
		}
		for _, m := range p.Models {
			if err := (Model{m, DefaultHitRate}).Check(); err != nil {
				t.Errorf("a table with a price that is none: %v", err)
			}
		}
		_, _ = p.Find("claude-opus-4-6")
	})
}
