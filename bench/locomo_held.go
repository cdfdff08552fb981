package bench

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/recall"
)

// Held is what the rules reach on conversations that their weights were not chosen on: each conversation is judged by
// the weights that do best on the others.
type Held struct {
	Locomo
	Folds []Fold `json:"folds"`
}

// Fold is one conversation that was held out.
type Fold struct {
	Conversation string             `json:"conversation"`
	Weights      map[string]float64 `json:"weights"` // of the rules, chosen on the others
	Found        float64            `json:"found"`   // on the others: the mean of recall at 5, 10 and 25
	Tries        int                `json:"tries"`
}

// What a weight may be, and how often all are gone through at most.
const (
	weightStep  = 0.5
	weightMost  = 2.0
	roundsMost  = 12
	weightBegin = 0.5
)

// trial is a question with what each rule says of each hit.
type trial struct {
	question Question
	hits     []recall.Doc // in the order of the weights as they are
	figures  [][]float64  // by rule, then by hit
	wanted   []int        // hits that are evidence
	score    []float64    // by the weights that are tried
	was      []float64    // before the one in work
}

// LeaveOneOut chooses the weights of the rules anew for each conversation on the others, and judges it by them. The search
// begins with one half for every rule, so that nothing of the weights as they are is in it, and changes one weight at a time
// to the step between 0 and 2 that does best, until none does better. The rules themselves are as they are. told, if there is
// one, is called after each conversation.
func LeaveOneOut(ctx context.Context, conversations []Conversation, told func(Fold)) (Held, []Ranking, error) {
	out := Held{Locomo: newLocomo()}
	if len(conversations) < 2 {
		return out, nil, fmt.Errorf("%d conversation: want two or more, to choose on others than the one that is judged: %w", len(conversations), tidemark.ErrInvalid)
	}
	trials := make([][]*trial, len(conversations))
	for i, c := range conversations {
		trials[i] = trialsOf(c)
	}
	var rankings []Ranking
	count := map[string]int{}
	for i, c := range conversations {
		f, weights, err := choose(ctx, slices.Concat(slices.Concat(trials[:i]...), slices.Concat(trials[i+1:]...)))
		if err != nil {
			return out, nil, err
		}
		f.Conversation = c.Name
		for _, t := range trials[i] {
			t.weigh(weights)
			found := t.order()
			rankings = append(rankings, Ranking{Conversation: c.Name, Question: t.question.N, Ranked: ranked(c, found)})
			out.add(c.Name, t.question, found, count)
		}
		out.Folds = append(out.Folds, f)
		if told != nil {
			told(f)
		}
	}
	out.means(count)
	return out, rankings, nil
}

// trialsOf asks the questions of a conversation once.
func trialsOf(c Conversation) []*trial {
	stem := &recall.Stemmer{}
	x := recall.New(c.Turns, stem)
	out := make([]*trial, 0, len(c.Questions))
	for _, q := range c.Questions {
		hits, figures := x.Figures(recall.Parse(q.Text, stem), recall.Stats{})
		t := &trial{question: q, figures: figures, score: make([]float64, len(hits)), was: make([]float64, len(hits))}
		for i, h := range hits {
			d := x.Docs()[h.Doc]
			t.hits = append(t.hits, d)
			if slices.Contains(q.Evidence, d.ID) {
				t.wanted = append(t.wanted, i)
			}
		}
		out = append(out, t)
	}
	return out
}

// choose finds weights by one coordinate after the other. Of weights that do as well the first, which is the smallest,
// stays, but one that was chosen only gives way to a better one.
func choose(ctx context.Context, trials []*trial) (f Fold, weights []float64, err error) {
	rules := recall.Weights()
	weights = make([]float64, len(rules))
	for i := range weights {
		weights[i] = weightBegin
	}
	for _, t := range trials {
		t.weigh(weights)
	}
	best := worth(trials)
	for range roundsMost {
		before := best
		for r := range rules {
			if err := ctx.Err(); err != nil {
				return f, nil, err
			}
			chosen := weights[r]
			for _, t := range trials {
				copy(t.was, t.score)
			}
			for w := 0.0; w <= weightMost; w += weightStep {
				if w == weights[r] {
					continue
				}
				for _, t := range trials {
					t.shift(r, w-weights[r])
				}
				f.Tries++
				if got := worth(trials); got > best+1e-9 {
					best, chosen = got, w
				}
			}
			for _, t := range trials {
				t.shift(r, chosen-weights[r])
			}
			weights[r] = chosen
		}
		if best <= before {
			break
		}
	}
	f.Found, f.Weights = digits(best), map[string]float64{}
	for i, r := range rules {
		f.Weights[r.Rule] = weights[i]
	}
	return f, weights, nil
}

// weigh scores the hits by weights; shift by those that it has with one rule counting so much more.
func (t *trial) weigh(weights []float64) {
	clear(t.score)
	for r, of := range t.figures {
		for i, v := range of {
			t.score[i] += weights[r] * v
		}
	}
}

func (t *trial) shift(rule int, by float64) {
	copy(t.score, t.was)
	for i, v := range t.figures[rule] {
		t.score[i] += by * v
	}
}

// before reports whether one hit stands before another: by the score, of equal ones the later in the talk.
func (t *trial) before(i, j int) bool {
	return cmp.Or(cmp.Compare(t.score[j], t.score[i]), cmp.Compare(t.hits[j].Pos, t.hits[i].Pos)) < 0
}

// worth is the mean of recall at the depths.
func worth(trials []*trial) float64 {
	sum := 0.0
	for _, t := range trials {
		for _, w := range t.wanted {
			rank := 0
			for i := range t.hits {
				if t.before(i, w) {
					rank++
				}
			}
			for _, k := range depths {
				if rank < k {
					sum += 1 / float64(len(t.question.Evidence)*len(depths))
				}
			}
		}
	}
	return sum / float64(max(1, len(trials)))
}

// order returns the hits, best first.
func (t *trial) order() []recall.Doc {
	at := make([]int, len(t.hits))
	for i := range at {
		at[i] = i
	}
	slices.SortFunc(at, func(i, j int) int {
		if t.before(i, j) {
			return -1
		}
		return 1
	})
	out := make([]recall.Doc, len(at))
	for i, j := range at {
		out[i] = t.hits[j]
	}
	return out
}
