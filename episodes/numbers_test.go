package episodes_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark/episodes"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// TestNumbers: rows are stored as pairs, in few bytes however long, and what was stored before there were pairs is read as it was.
func TestNumbers(t *testing.T) {
	row := make(episodes.Numbers, episodes.MaxEpisodes)
	for i := range row {
		row[i] = i + 1
	}
	for _, c := range []struct {
		name, text string
		list       episodes.Numbers
	}{
		{"one", `[7]`, episodes.Numbers{7}},
		{"two in a row", `[7,8]`, episodes.Numbers{7, 8}},
		{"three in a row", `[[7,9]]`, episodes.Numbers{7, 8, 9}},
		{"rows and others", `[1,[3,6],8,9,11]`, episodes.Numbers{1, 3, 4, 5, 6, 8, 9, 11}},
		{"all of a log", `[[1,20000]]`, row},
	} {
		got, err := json.Marshal(c.list)
		if err != nil || string(got) != c.text {
			t.Errorf("%s is stored as %.100s, want %s: %v", c.name, got, c.text, err)
		}
		for _, text := range []string{c.text, mustMarshal(t, []int(c.list)), strings.NewReplacer("[", " [ ", ",", " ,\n").Replace(c.text)} {
			var back episodes.Numbers
			if err := json.Unmarshal([]byte(text), &back); err != nil || !slices.Equal(back, c.list) {
				t.Errorf("%s: %.100s is read as %.100v: %v", c.name, text, back, err)
			}
		}
	}
	line := episodes.Line{Lines: []int{2}}
	if got := mustMarshal(t, line); got != `{"lines":[2]}` {
		t.Errorf("none folded is stored as %s", got)
	}
}

// TestNumbersOdd: what is no list of numbers is refused, and nothing makes more of them than a log may have.
func TestNumbersOdd(t *testing.T) {
	for _, text := range []string{`7`, `[-1]`, `[1.5]`, `["1"]`, `[[1]]`, `[[1,2,3]]`, `[[]]`, `[[5,1]]`, `[[[1,2]]]`, `{}`, `[1e9]`, `[99999999999999999999999999]`, `[[1,9000000]]`,
		`[` + strings.Repeat(`[1,90000],`, 9) + `[1,90000]]`} {
		var list episodes.Numbers
		if err := json.Unmarshal([]byte(text), &list); err == nil {
			t.Errorf("%s is read as %d numbers", text, len(list))
		}
	}
}

// TestNumbersBack: whatever the numbers, they are read as they were stored, and take no more than one by one.
func TestNumbersBack(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 8))
	for range 500 {
		var list episodes.Numbers
		for n, often := 0, 1+rng.IntN(9); n < 300; n++ {
			if rng.IntN(10) < often {
				list = append(list, n)
			}
		}
		text, plain := mustMarshal(t, list), mustMarshal(t, []int(list))
		var back episodes.Numbers
		if err := json.Unmarshal([]byte(text), &back); err != nil || !slices.Equal(back, list) {
			t.Fatalf("%v is stored as %s and read as %v: %v", list, text, back, err)
		}
		if len(list) > 0 && len(text) > len(plain) {
			t.Fatalf("%s takes more than %s", text, plain)
		}
	}
}

func mustMarshal(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
