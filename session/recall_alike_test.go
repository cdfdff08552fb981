package session_test

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/recall"
	"github.com/tidemark-ai/tidemark/room/search"
	"github.com/tidemark-ai/tidemark/session"
)

// alikes is how many messages a series has that differ by their numbers alone.
const alikes = 75

// hashOf is what a message of a series says of its number.
func hashOf(n int) string {
	h := fnv.New32a()
	fmt.Fprint(h, "build", n)
	return fmt.Sprintf("%08x", h.Sum32())
}

// alike are series in which each message has the numbers of others beside other words.
var alike = []struct {
	name, query string
	text        func(i int) string
}{
	{"its number alone", "hash of build %d", func(i int) string { return fmt.Sprintf("The hash of build %d is %s.", i, hashOf(i)) }},
	{"numbers behind", "hash of build %d", func(i int) string {
		return fmt.Sprintf("Build %d took %d seconds, %d tests ran, the hash is %s.", i, i*7%alikes+1, i*11%alikes+1, hashOf(i))
	}},
	{"numbers before", "What is the hash of build %d?", func(i int) string {
		return fmt.Sprintf("With %d warnings and %d seconds: the hash of build %d is %s.", i*7%alikes+1, i*11%alikes+1, i, hashOf(i))
	}},
	{"a long text with all numbers", "build %d hash", func(i int) string {
		var b strings.Builder
		for j := 1; j <= alikes; j++ {
			fmt.Fprintf(&b, "step %d ok, build goes on\n", j)
		}
		return fmt.Sprintf("%sThe hash of build %d is %s.", b.String(), i, hashOf(i))
	}},
	{"ids", "hash of ticket AB-%d", func(i int) string {
		return fmt.Sprintf("Ticket AB-%d follows AB-%d; its hash is %s.", i, i*7%alikes+1, hashOf(i))
	}},
}

// alikeLog is a series among other talk, in a conversation that is read whole and in one that is not.
func alikeLog(filler int, text func(i int) string) (log []tidemark.Message) {
	fill := func(n int) {
		for i := range n {
			log = append(log, spoken(2, func(int) string { return fmt.Sprintf("Step %d: fine weather, %d degrees.", i, i%40) })...)
		}
	}
	fill(filler / 2)
	for i := 1; i <= alikes; i++ {
		log = append(log, tidemark.NewText(tidemark.User, text(i)), tidemark.NewText(tidemark.Assistant, "Noted."))
	}
	fill(filler / 2)
	return log
}

// TestRecallAlike: each message of a series is found by its number, first and told as sure of itself, though the number
// stands in others beside other words; a number that only stands there is not answered. A neighbour in the same database
// with the same series keeps its rows and its answers.
func TestRecallAlike(t *testing.T) {
	for _, row := range alike {
		for _, filler := range []int{0, 600} {
			h := newHarness(t, session.Settings{})
			beside := &harness{t: h.t, db: h.db, blobs: h.blobs, model: &model{}, agent: &fakeAgent{}, rt: h.rt, key: "agent:main:second"}
			beside.open()
			beside.told(alikeLog(filler, func(i int) string { return strings.ReplaceAll(row.text(i), hashOf(i), "elsewhere") })...)
			before := neighbourFinds(t, beside, row.query)
			h.told(alikeLog(filler, row.text)...)
			var missed []int
			step := 1
			if testing.Short() { // make soak asks for each
				step = 15
			}
			for i := 1; i <= alikes; i += step {
				got, err := h.Recall(t.Context(), search.Wanted{Query: fmt.Sprintf(row.query, i)})
				if err != nil || len(got.Results) == 0 || !strings.Contains(got.Results[0].Text, hashOf(i)) {
					missed = append(missed, i)
				}
			}
			if len(missed) > 0 {
				t.Errorf("%s, %d others: %d of %d not found: %v", row.name, filler, len(missed), alikes, missed)
			}
			if after := neighbourFinds(t, beside, row.query); !slices.Equal(before, after) {
				t.Errorf("%s, %d others: the neighbour finds %v, found %v", row.name, filler, after, before)
			}
		}
	}
}

// neighbourFinds is what a conversation finds for each number.
func neighbourFinds(t *testing.T, h *harness, query string) (out []string) {
	t.Helper()
	for i := 1; i <= alikes; i += 12 {
		got, err := h.Recall(t.Context(), search.Wanted{Query: fmt.Sprintf(query, i)})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range got.Results {
			out = append(out, fmt.Sprint(r.ID, r.Score))
		}
	}
	return out
}

// TestRecallNumberElsewhere: a number of the question is not answered by messages where it stands beside other words,
// and asking again takes nothing from these.
func TestRecallNumberElsewhere(t *testing.T) {
	h := newHarness(t, session.Settings{})
	h.told(alikeLog(600, func(i int) string {
		return fmt.Sprintf("Build %d took %d seconds, the hash is %s.", i, i+alikes, hashOf(i))
	})...)
	for n := alikes + 1; n <= 2*alikes; n += 7 {
		got, err := h.Recall(t.Context(), search.Wanted{Query: fmt.Sprintf("hash of build %d", n)})
		if err != nil || got.Verdict == recall.Confident || got.Reformulated != "" {
			t.Errorf("build %d, which was never: %s, second %q, %d results, %v", n, got.Verdict, got.Reformulated, len(got.Results), err)
		}
	}
}

// TestRecallOften: of more messages with a word than are read, the one that says it most is among those, though it is the
// oldest.
func TestRecallOften(t *testing.T) {
	h := newHarness(t, session.Settings{})
	const answer = "Quokka, quokka, quokka: the quokka of the island has a quokka mother."
	h.told(spoken(1400, func(i int) string {
		switch {
		case i == 10:
			return answer
		case i%4 == 0:
			return fmt.Sprintf("On page %d somebody has drawn a quokka beside a tree and a house.", i)
		}
		return fmt.Sprintf("line %d about gardening", i)
	})...)
	got, err := h.Recall(t.Context(), search.Wanted{Query: "quokka"})
	if err != nil || !slices.ContainsFunc(got.Results, func(r search.Recollection) bool { return r.Text == answer }) {
		t.Errorf("%d results without it, %v", len(got.Results), err)
	}
}
