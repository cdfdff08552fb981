package bench

import (
	"errors"
	"slices"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/recall"
)

// TestLeaveOneOut: each conversation is judged by weights that were chosen on the others, and only on them.
func TestLeaveOneOut(t *testing.T) {
	var list []Conversation
	for _, name := range []string{"7", "8", "9"} {
		c, err := ReadLocomo(name+".json", []byte(talk))
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, c)
	}
	// Here the weights are of no use: nothing asks for what is there.
	list[2].Questions = []Question{{N: 4, Text: "Kiwi", Category: 3, Evidence: []string{"D2:2"}}}
	var told []string
	got, rankings, err := LeaveOneOut(t.Context(), list, func(f Fold) { told = append(told, f.Conversation) })
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(told, []string{"7", "8", "9"}) || len(got.Folds) != 3 || got.Questions != 5 || len(rankings) != 5 {
		t.Fatalf("told %q: %+v", told, got)
	}
	if got.ByCategory["temporal"]["5"] != 1 || got.ByFile["7"]["questions"] != 2 || got.ByFile["9"]["questions"] != 1 {
		t.Errorf("measured %+v", got.Locomo)
	}
	for _, f := range got.Folds {
		if len(f.Weights) != len(recall.Weights()) || f.Tries == 0 {
			t.Errorf("%+v", f)
		}
	}
	// What a conversation asks for changes what the others are judged by, and not what it is judged by itself.
	held := list[2].Questions
	list[2].Questions = []Question{{N: 4, Text: "Congratulations", Category: 3, Evidence: []string{"D2:2"}}}
	again, _, err := LeaveOneOut(t.Context(), list, nil)
	if err != nil || again.Folds[2].Found != got.Folds[2].Found || !equalWeights(again.Folds[2], got.Folds[2]) || again.Folds[0].Found == got.Folds[0].Found {
		t.Errorf("with other questions than %v: %+v and %+v, %v", held, again.Folds, got.Folds, err)
	}
	if _, _, err := LeaveOneOut(t.Context(), list[:1], nil); !errors.Is(err, tidemark.ErrInvalid) {
		t.Errorf("one conversation: %v", err)
	}
}

func equalWeights(a, b Fold) bool {
	for rule, w := range a.Weights {
		if b.Weights[rule] != w {
			return false
		}
	}
	return true
}

// TestTrials: with the weights as they are the order is that of a search; with none it is that of the talk turned round.
func TestTrials(t *testing.T) {
	c, err := ReadLocomo("7.json", []byte(talk))
	if err != nil {
		t.Fatal(err)
	}
	var now []float64
	for _, w := range recall.Weights() {
		now = append(now, w.Value)
	}
	stem := &recall.Stemmer{}
	x := recall.New(c.Turns, stem)
	for i, trial := range trialsOf(c) {
		var want []string
		for _, h := range x.Search(recall.Parse(c.Questions[i].Text, stem), recall.Stats{}) {
			want = append(want, x.Docs()[h.Doc].ID)
		}
		trial.weigh(now)
		var got []string
		for _, d := range trial.order() {
			got = append(got, d.ID)
		}
		if !slices.Equal(got, want) || len(got) == 0 {
			t.Errorf("%s: %q, want %q", c.Questions[i].Text, got, want)
		}
		before := slices.Clone(trial.score)
		copy(trial.was, trial.score)
		trial.shift(0, 1)
		copy(trial.was, trial.score)
		trial.shift(0, -1)
		for j := range before {
			if d := before[j] - trial.score[j]; d > 1e-12 || d < -1e-12 {
				t.Errorf("a weight there and back: %v, want %v", trial.score[j], before[j])
			}
		}
		trial.weigh(make([]float64, len(now)))
		if !slices.IsSortedFunc(trial.order(), func(a, b recall.Doc) int { return int(b.Pos - a.Pos) }) {
			t.Errorf("without weights: %v", trial.order())
		}
	}
}
