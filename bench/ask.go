package bench

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark/recall"
	"github.com/tidemark-ai/tidemark/room/search"
)

// Question is what is asked about a log: the text that one of the first results must hold, or nothing for
// what the log does not know.
type asked struct {
	kind, query, want string
}

// asker is who answers: a session of this process, or one of a server.
type asker func(ctx context.Context, query string) (search.Recalled, error)

// answers is what came of some questions.
type answers struct {
	count, found, first map[string]int // by kind; of absent ones, those that were judged so
	sure                map[string]int // found first, and told as sure
	wrong               int            // told as sure, and something else was first
	took                []time.Duration
}

// put asks each question.
func put(ctx context.Context, ask asker, questions []asked) (answers, error) {
	a := answers{count: map[string]int{}, found: map[string]int{}, first: map[string]int{}, sure: map[string]int{}}
	for _, q := range questions {
		begun := time.Now()
		r, err := ask(ctx, q.query)
		if err != nil {
			return a, err
		}
		a.took = append(a.took, time.Since(begun))
		a.add(q, r)
	}
	return a, nil
}

func (a *answers) add(q asked, r search.Recalled) {
	a.count[q.kind]++
	right := q.want != "" && len(r.Results) > 0 && strings.Contains(r.Results[0].Text, q.want)
	switch {
	case r.Verdict != recall.Confident:
	case right:
		a.sure[q.kind]++
	default:
		a.wrong++
	}
	if q.want == "" {
		a.found[q.kind] += count(r.Verdict != recall.Confident)
		return
	}
	for i, x := range r.Results[:min(len(r.Results), recallAt)] {
		if strings.Contains(x.Text, q.want) {
			a.found[q.kind]++
			a.first[q.kind] += count(i == 0)
			return
		}
	}
}

// shares are parts of the questions of each kind.
func (a *answers) shares(of map[string]int) map[string]float64 {
	out := map[string]float64{}
	for kind, n := range a.count {
		out[kind] = digits(float64(of[kind]) / float64(n))
	}
	return out
}

// mean and p99 are how long a question took, in milliseconds.
func (a *answers) mean() float64 { return milliseconds(meanOf(a.took)) }

func (a *answers) p99() float64 {
	if len(a.took) == 0 {
		return 0
	}
	slices.Sort(a.took)
	return milliseconds(a.took[(len(a.took)-1)*99/100])
}

func meanOf(took []time.Duration) time.Duration {
	var sum time.Duration
	for _, d := range took {
		sum += d
	}
	return sum / time.Duration(max(1, len(took)))
}

// each is the share of each of n, in milliseconds.
func each(sum time.Duration, n int) float64 { return milliseconds(sum / time.Duration(max(1, n))) }

// digits keeps four of them.
func digits(f float64) float64 { return float64(int64(f*10_000+0.5)) / 10_000 }
