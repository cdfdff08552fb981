package logs

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/cost"
)

func TestStudy(t *testing.T) {
	s := NewStudy(options(t, "opus"))
	add := func(path, text string) {
		t.Helper()
		if err := s.Add(context.Background(), path, strings.NewReader(text), int64(len(text))); err != nil {
			t.Fatal(err)
		}
	}
	add("p/heavy.jsonl", log(heavy(10, 4000)...))
	add("p/plain.jsonl", log(plain(10, 0)...))
	add("p/subagents/agent-1.jsonl", log(heavy(10, 4000)...))
	add("p/agent-2.jsonl", strings.ReplaceAll(log(plain(10, 0)...), `"uuid"`, `"isSidechain":true,"uuid"`))
	add("p/short.jsonl", log(plain(4, 0)...))
	add("p/small.jsonl", log(append(plain(10, 0), spoke("last", 4000, 1))...))
	s.Fail("p/broken.jsonl", errors.New("the disk"))
	f := s.Findings()
	if len(f.Sessions) != 2 || f.Sessions[0].Profile != Mixed || f.Sessions[1].Profile != Conversational {
		t.Fatalf("%d sessions: %+v", len(f.Sessions), f.Sessions)
	}
	k := f.Skipped
	if k.Subagents != 2 || k.Messages != 1 || k.Tokens != 1 || k.Failed != 1 || len(k.Failures) != 1 || k.Failures[0].Path != "p/broken.jsonl" {
		t.Errorf("left out: %+v", k)
	}
	rows := f.Paper.Profiles
	if len(rows) != 3 || rows[0].Sessions != 1 || rows[1].Sessions != 1 || rows[2].Sessions != 2 || rows[2].Reduction != f.Paper.Reduction {
		t.Errorf("rows: %+v", rows)
	}
	if r := f.Paper.Reduction; r.Max != f.Sessions[0].Paper.Reduction || math.Abs(r.Mean-(r.Min+r.Max)/2) > 1e-9 || math.Abs(r.Median-r.Mean) > 1e-9 {
		t.Errorf("reduction: %+v", r)
	}
	if f.Paper.BreakEven.Max != 60 {
		t.Errorf("what never pays counts as 60 turns: %+v", f.Paper.BreakEven)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := s.Add(ctx, "p/next.jsonl", strings.NewReader("{}"), 2); !errors.Is(err, context.Canceled) {
		t.Errorf("given up: %v", err)
	}
	if e := NewStudy(options(t, "opus")).Findings(); e.Sessions == nil || e.Paper.Reduction != (Spread{}) {
		t.Errorf("of nothing: %+v", e)
	}
}

// Tables 2 and 3 over sessions whose figures are known.
func TestTables(t *testing.T) {
	m := options(t, "opus").Model
	var sessions []Session
	for i, percent := range []tidemark.Tokens{0, 5, 12, 39, 86} {
		s := Session{Profile: Conversational, Path: fmt.Sprint(i)}
		if percent >= 39 {
			s.Profile = Mixed
		}
		s.Paper = m.Paper(100_000, 100_000-1000*percent)
		sessions = append(sessions, s)
	}
	got := tables(sessions, func(s *Session) cost.Trim { return s.Paper })
	if r := got.Reduction; r.Min != 0 || r.Median != 12 || r.Max != 86 || math.Abs(r.Mean-28.4) > 1e-9 {
		t.Errorf("reduction %+v", r)
	}
	if b := got.BreakEven; b.Min != 1 || b.Median != 36 || b.Max != 60 || math.Abs(b.Mean-(60+60+36+8+1)/5.0) > 1e-9 { // 92 and never count as 60
		t.Errorf("break-even %+v", b)
	}
	if p := got.Penalty; p.Min >= 0 || p.Max <= 0.5 {
		t.Errorf("penalty %+v", p)
	}
	if mixed := got.Profiles[0]; mixed.Sessions != 2 || mixed.Reduction.Mean != 62.5 || mixed.BreakEven.Mean != 4.5 || mixed.Context != 100_000 {
		t.Errorf("mixed %+v", mixed)
	}
}

func TestSpread(t *testing.T) {
	for _, tc := range []struct {
		of   []float64
		want Spread
	}{
		{nil, Spread{}},
		{[]float64{3}, Spread{3, 3, 3, 3}},
		{[]float64{4, 1}, Spread{1, 2.5, 2.5, 4}},
		{[]float64{9, -3, 0}, Spread{-3, 0, 2, 9}},
	} {
		if got := spread(tc.of); got != tc.want {
			t.Errorf("%v: %+v, want %+v", tc.of, got, tc.want)
		}
	}
}
