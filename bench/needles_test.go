package bench

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/recall"
	"github.com/tidemark-ai/tidemark/room/search"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// TestNeedles holds the bars: exact ones all, markers as many as a binary counter, and the harder kinds.
func TestNeedles(t *testing.T) {
	if testing.Short() {
		t.Skip("make soak")
	}
	n := Needles{Needles: 50, Events: 200, Cycles: 3, Budget: 4000, Headroom: 200, Tail: 3, Plain: testing.Short()}
	got, err := n.Run(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", got)
	if got.Recall != 1 || got.Loss != 0 || got.Cycles != 3 || *got.Needles > 5 || *got.Markers > *got.Most {
		t.Errorf("found %+v", got)
	}
	for what, ms := range map[string]float64{"plan": *got.Compaction, "whole": *got.Whole, "query": got.Query, "p99": got.Slow} {
		if ms <= 0 || ms != float64(int64(ms*1000+0.5))/1000 {
			t.Errorf("%s takes %v ms, want three decimals", what, ms)
		}
	}
	if *got.Compaction >= *got.Whole {
		t.Errorf("%v ms of a plan, %v of a whole compaction", *got.Compaction, *got.Whole)
	}
	least := map[string]float64{kindExact: 1, kindPrefix: 1, kindArtifact: 1, kindMerged: 1, kindNear: 1, kindHalf: 0.98, kindHops: 0.98, kindAbsent: 0.98, kindAbsentNear: 0.98, kindAsked: 0.98}
	for kind, share := range least {
		if n.Plain && kind != kindExact && kind != kindAbsent {
			continue
		}
		if got.ByKind[kind] < share {
			t.Errorf("%s: %.3f, at least %.2f", kind, got.ByKind[kind], share)
		}
		if _, first := got.First[kind]; first && kind != kindHops && got.Sure[kind] < 0.98 { // 2-hop: another needle comes first
			t.Errorf("%s: told as sure %.3f", kind, got.Sure[kind])
		}
	}
	if got.False > 0.02 {
		t.Errorf("false recall %.3f", got.False)
	}
}

// TestCyclesAreExact: as many compactions as were asked for are made, few or many, and no needle is left in the context.
func TestCyclesAreExact(t *testing.T) {
	for _, cycles := range []int{1, 5, tidemarktest.Rounds(40)} {
		var told []string
		n := Needles{Needles: 5, Events: 30, Cycles: cycles, Budget: 4000, Headroom: 200, Tail: 3, Plain: true,
			Told: func(what string, _, _ int) { told = append(told, what) }}
		got, err := n.Run(t.Context(), t.TempDir())
		if err != nil || got.Cycles != cycles || *got.Needles != 0 || *got.Markers > *got.Most || got.Recall != 1 {
			t.Errorf("%d cycles: %+v, %v", cycles, got, err)
		}
		if !slices.Contains(told, "messages played") || !slices.Contains(told, "questions") {
			t.Errorf("told of %q", told)
		}
	}
}

// TestNeedlesAreTold: what is asked stands in one message alone, where a question says it does.
func TestNeedlesAreTold(t *testing.T) {
	sc := Needles{Needles: 30, Events: 100, Cycles: 1, Budget: 4000, Headroom: 200, Tail: 3}.script()
	var texts []string
	for i := 1; i <= sc.least(); i++ {
		for _, m := range sc.event(i) {
			texts = append(texts, plain(m))
		}
	}
	kinds := map[string]int{}
	for _, q := range sc.questions(func(int) bool { return true }) {
		kinds[q.kind]++
		in := 0
		for _, text := range texts {
			if q.want != "" && strings.Contains(text, q.want) {
				in++
			}
		}
		if q.want != "" && in != 1 {
			t.Errorf("%s: %q stands in %d messages", q.kind, q.want, in)
		}
	}
	for _, kind := range []string{kindExact, kindPrefix, kindMerged, kindArtifact, kindNear, kindHalf, kindHops, kindAbsent, kindAbsentNear, kindAsked} {
		if kinds[kind] == 0 {
			t.Errorf("nothing is asked of kind %s", kind)
		}
	}
}

func TestMost(t *testing.T) {
	for cycles, want := range map[int]int{0: 1, 1: 1, 2: 2, 3: 2, 4: 3, 5: 3, 50: 6, 1000: 10, 1024: 11} {
		if got := most(cycles); got != want {
			t.Errorf("%d cycles: %d, want %d", cycles, got, want)
		}
	}
}

func TestNeedlesRefused(t *testing.T) {
	good := Needles{Needles: 2, Events: 10, Cycles: 1, Budget: 4000, Headroom: 200, Tail: 3}
	for flag, change := range map[string]func(*Needles){
		"--needles": func(n *Needles) { n.Needles = 0 }, "--events": func(n *Needles) { n.Events = 2 }, "--cycles": func(n *Needles) { n.Cycles = 0 },
		"--budget": func(n *Needles) { n.Budget = 1 }, "--headroom": func(n *Needles) { n.Headroom = 3000 }, "--tail": func(n *Needles) { n.Tail = 0 },
	} {
		n := good
		change(&n)
		if _, err := n.Run(t.Context(), t.TempDir()); !errors.Is(err, tidemark.ErrInvalid) || !strings.Contains(err.Error(), flag) {
			t.Errorf("%s: %v", flag, err)
		}
	}
}

// TestAnswers: a find counts by what is shown of it, an absent one by its verdict.
func TestAnswers(t *testing.T) {
	ask := func(_ context.Context, q string) (search.Recalled, error) {
		r := search.Recalled{Verdict: recall.Weak, Results: []search.Recollection{{Text: "something else"}, {Text: "it is " + q}}}
		if q == "sure" {
			r.Verdict = recall.Confident
		}
		return r, nil
	}
	a, err := put(t.Context(), ask, []asked{{"a", "x", "it is x"}, {"a", "y", "it was y"}, {"b", "sure", ""}, {"b", "z", ""}})
	if a.add(asked{"c", "sure", "else"}, search.Recalled{Verdict: recall.Confident, Results: []search.Recollection{{Text: "something else"}}}); a.sure["c"] != 1 || a.wrong != 1 {
		t.Errorf("%+v", a)
	}
	if err != nil || a.found["a"] != 1 || a.first["a"] != 0 || a.shares(a.found)["a"] != 0.5 || a.shares(a.found)["b"] != 0.5 || len(a.took) != 4 {
		t.Errorf("%+v, %v", a, err)
	}
}

// TestTable: pointers keep what truncation loses, and the same seed gives the same rows.
func TestTable(t *testing.T) {
	set := Table{Methods: Methods, Hops: []int{1, 2}, Traces: 1, Needles: 6, Flood: 45_000, Window: 10_000, Seed: 7}
	got, err := set.Run(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if want := (2 + 3) * len(askedAfter) * len(forms); len(got.Rows) != want {
		t.Errorf("%d rows, want %d", len(got.Rows), want)
	}
	for _, r := range got.Rows {
		switch {
		case r.Method == "pointer" && (r.Query == formExact && (r.Mean != 1 || r.Sure != 1 || r.Open != 0) || r.Pulls == 0 || r.False > 0.06),
			r.Method == "truncate" && (r.Mean != 0 || r.Pulls != 0),
			r.Method == "summary" && r.Reread == 0,
			r.Context == 0 || r.Context > float64(set.Window):
			t.Errorf("%+v", r)
		}
	}
	if testing.Short() {
		return
	}
	set.Methods = []string{"selfpaging", "truncate"}
	a, err := set.Run(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b, err := set.Run(t.Context(), t.TempDir())
	if err != nil || len(a.Rows) == 0 || a.Rows[0] != b.Rows[0] || a.Rows[len(a.Rows)-1] != b.Rows[len(b.Rows)-1] {
		t.Errorf("%+v and then %+v, %v", a.Rows, b.Rows, err)
	}
}

func TestTableRefused(t *testing.T) {
	good := Table{Methods: Methods, Hops: []int{1}, Traces: 1, Needles: 6, Flood: 45_000, Window: 10_000}
	for flag, change := range map[string]func(*Table){
		"--methods": func(t *Table) { t.Methods = []string{"guess"} }, "--hops": func(t *Table) { t.Hops = []int{3} },
		"--traces": func(t *Table) { t.Traces = 0 }, "--window": func(t *Table) { t.Window = 100 }, "--flood": func(t *Table) { t.Flood = 1 },
	} {
		set := good
		change(&set)
		if _, err := set.Run(t.Context(), t.TempDir()); !errors.Is(err, tidemark.ErrInvalid) || !strings.Contains(err.Error(), flag) {
			t.Errorf("%s: %v", flag, err)
		}
	}
}

// scripted writes one text.
type scripted string

func (s scripted) Stream(context.Context, tidemark.Request) iter.Seq2[tidemark.Delta, error] {
	return func(yield func(tidemark.Delta, error) bool) {
		yield(tidemark.Delta{Reply: &tidemark.Reply{Message: tidemark.NewText(tidemark.Assistant, string(s))}}, nil)
	}
}

// TestRephrase: a model's questions take the place of those by rule, each at its fact, or none do.
func TestRephrase(t *testing.T) {
	tr := newTrace(Table{Needles: 2, Seed: 1}, 0)
	if err := tr.rephrase(t.Context(), scripted("one line")); !errors.Is(err, tidemark.ErrInvalid) {
		t.Errorf("%v", err)
	}
	if err := tr.rephrase(t.Context(), scripted("first?\nsecond?\n")); err != nil {
		t.Fatal(err)
	}
	for _, q := range tr.questions {
		if q.form == formParaphrased && q.want != "" && q.text != map[string]string{tr.facts[0].want: "first?", tr.facts[1].want: "second?"}[q.want] {
			t.Errorf("%+v", q)
		}
	}
}

// TestMark: a question is open when another fact has all that it has of its own.
func TestMark(t *testing.T) {
	tr := trace{facts: []fact{{text: "The hash of the red mail is a1.", want: "a1"}, {text: "The hash of the blue mail is b2.", want: "b2"}}}
	for _, q := range []string{"hash mail", "hash blue mail", "checksum red", "nothing of it"} {
		tr.questions = append(tr.questions, queried{text: q, want: map[bool]string{true: "b2", false: "a1"}[strings.Contains(q, "blue")]})
	}
	tr.questions = append(tr.questions, queried{text: "hash mail"})
	tr.mark()
	for i, want := range []bool{true, false, false, true, false} {
		if tr.questions[i].open != want {
			t.Errorf("%q: open is %v", tr.questions[i].text, !want)
		}
	}
}

// TestRow: means and deviations are over traces, a false recall is of all questions.
func TestRow(t *testing.T) {
	got := row(Row{}, []measured{{questions: 4, absent: 1, found: 4, sure: 2, wrong: 1, open: 1}, {questions: 4, absent: 1, found: 2, sure: 1}})
	if got.Mean != 0.75 || got.SD != 0.25 || got.Sure != 0.375 || got.False != 0.1 || got.FalseSD != 0.1 || got.Open != 0.125 {
		t.Errorf("%+v", got)
	}
}
