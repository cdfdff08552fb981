package recall

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestScore has the table of the paper's implementation, point by point.
func TestScore(t *testing.T) {
	task := Task{ID: "a", Goals: []string{"ship"}, Constraints: []string{"never on Fridays"}, Phase: Executing}
	ours := task.Premise()
	in := func(p Phase) Task { c := task; c.Phase = p; return c }
	for _, row := range []struct {
		name string
		task Task
		e    Known
		want float64 // of a base of 0.4
	}{
		{"a match", task, Known{Kind: UserMessage, Premise: ours, Task: "a"}, 0.4},
		{"an unknown premise", task, Known{Kind: UserMessage}, 0.2},
		{"another premise", task, Known{Kind: UserMessage, Premise: "x"}, 0.16},
		{"another task", task, Known{Kind: UserMessage, Premise: ours, Task: "b"}, 0.12},
		{"superseded", task, Known{Kind: UserMessage, Premise: ours, Superseded: true}, 0.04},
		{"a constraint", task, Known{Kind: UserMessage, Premise: ours, Superseded: true, Constraint: true}, 0.3},
		{"a call while executing", task, Known{Kind: ToolCall, Premise: ours}, 0.6},
		{"a result while executing", task, Known{Kind: ToolResult, Premise: ours}, 0.6},
		{"a result while planning", in(Planning), Known{Kind: ToolResult, Premise: ours}, 0.2},
		{"a message while planning", in(Planning), Known{Kind: AgentMessage, Premise: ours}, 0.4},
		{"a call while debugging", in(Debugging), Known{Kind: ToolCall, Premise: ours}, 0.6},
		{"a result while debugging", in(Debugging), Known{Kind: ToolResult, Premise: ours}, 0.8},
		{"a message while reviewing", in(Reviewing), Known{Kind: AgentMessage, Premise: ours}, 0.6},
		{"a call while reviewing", in(Reviewing), Known{Kind: ToolCall, Premise: ours}, 0.12},
		{"a result while reviewing", in(Reviewing), Known{Kind: ToolResult, Premise: ours}, 0.2},
		{"idle", in(Idle), Known{Kind: UserMessage, Premise: ours}, 0.2},
		{"no phase", in(""), Known{Kind: UserMessage, Premise: ours}, 0.2},
	} {
		if got := row.task.score(0.4, 1, row.e); math.Abs(got-row.want) > 1e-9 {
			t.Errorf("%s: %.3f, want %.3f", row.name, got, row.want)
		}
	}
	if got := in(Debugging).score(0.9, 1, Known{Kind: ToolResult, Premise: ours}); got != 1 {
		t.Errorf("the cap: %.3f", got)
	}
	if !task.States("We agreed: NEVER on Fridays.") || task.States("on Fridays") || (Task{Constraints: []string{"short"}}).States("short") {
		t.Error("what states a constraint")
	}
	if !(Task{}).Zero() || task.Zero() {
		t.Error("a task without anything")
	}
}

// TestDiverse: what repeats the first goes behind what says something else, and nothing is lost.
func TestDiverse(t *testing.T) {
	x := New([]Doc{{ID: "a", Pos: 1, Text: "the staging port is 8080 on host alpha"}, {ID: "b", Pos: 5, Text: "the staging port is 8080 on host alpha"},
		{ID: "c", Pos: 9, Text: "staging moved behind the gateway, port 9090"}}, nil)
	hits := []Hit{{Doc: 0, Normalized: 0.8}, {Doc: 1, Normalized: 0.79}, {Doc: 2, Normalized: 0.6}}
	got := x.Diverse(hits)
	if len(got) != 3 || got[0].Doc != 0 || got[1].Doc != 2 || got[2].Doc != 1 {
		t.Errorf("%+v", got)
	}
	var docs []Doc
	var many []Hit
	for i := range 120 {
		docs = append(docs, Doc{ID: fmt.Sprint(i), Pos: int64(2 * i), Text: fmt.Sprint("word", i)})
		many = append(many, Hit{Doc: i, Normalized: 1 - float64(i)/200})
	}
	if got := New(docs, nil).Diverse(many); !slices.Equal(got, many) {
		t.Error("texts that are not alike keep their order")
	}
}

// TestPack states its laws on random sizes.
func TestPack(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		sizes := make([]int, rng.IntN(30))
		for i := range sizes {
			sizes[i] = 1 + rng.IntN(100)
		}
		budget, most := rng.IntN(600), 1+rng.IntN(20)
		taken, over := Pack(sizes, budget, most)
		sum := 0
		for _, i := range taken {
			sum += sizes[i]
		}
		if sum > budget || len(taken) > most || !slices.IsSorted(taken) || !slices.IsSorted(over) {
			t.Fatalf("%v within %d, at most %d: %v, %v", sizes, budget, most, taken, over)
		}
		for _, o := range over { // none was passed over that fitted beside the better ones
			before := 0
			for _, i := range taken {
				if i < o {
					before += sizes[i]
				}
			}
			if before+sizes[o] <= budget {
				t.Fatalf("%v within %d: %d fits and was passed over", sizes, budget, o)
			}
		}
	}
	if taken, over := Pack([]int{90, 20, 5}, 30, 5); !slices.Equal(taken, []int{1, 2}) || !slices.Equal(over, []int{0}) {
		t.Errorf("the next is tried: %v %v", taken, over)
	}
}

// TestRescore: equal scores stand by id, whatever the order was.
func TestRescore(t *testing.T) {
	x := New([]Doc{{ID: "b", Pos: 1}, {ID: "a", Pos: 2}, {ID: "c", Pos: 3}}, nil)
	hits := []Hit{{Doc: 0, Normalized: 0.5}, {Doc: 2, Normalized: 0.5}, {Doc: 1, Normalized: 0.5}}
	x.Rescore(hits, Task{ID: "t"}, func(id string) Known { return Known{Superseded: id == "c"} })
	if hits[0].Doc != 1 || hits[1].Doc != 0 || hits[2].Doc != 2 {
		t.Errorf("%+v", hits)
	}
}
