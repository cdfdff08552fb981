package main

import (
	"cmp"
	"hash/fnv"
	"math"
	"slices"
)

// What packs a module remembers the last 32 KB, some 40 functions, so that like functions should stand
// near each other. They are ordered by what they have in common, runs of instructions: the list is cut
// in two so that each half has as few kinds of runs as can be, and so is each half, again and again
// (Dhulipala et al., Compressing Graphs and Indexes with Recursive Graph Bisection, 2016, for which a
// function is a document and a run a term).

const (
	runLength  = 4  // instructions; 3 to 5 pack alike, 12 worse by 2 %
	mostCommon = 10 // a run that is in more than one function of so many tells nothing
	smallGroup = 12 // functions whose order among themselves does not matter
	exchanges  = 25 // rounds in which the halves give each other what fits better there
)

// A likeness has for each function the numbers of its runs.
type likeness struct {
	runs   [][]int32
	number []int32 // of a run in the group at hand, or none; by its number
	log    []int64 // the logarithm of each number of functions
}

// likeOrder gives the numbers of functions in an order that packs.
func likeOrder(functions [][][]byte) []int {
	l := likeness{runs: runs(functions), log: logs(len(functions))}
	most := int32(-1)
	order := make([]int, len(functions))
	for i, r := range l.runs {
		order[i] = i
		for _, run := range r {
			most = max(most, run)
		}
	}
	l.number = make([]int32, most+1)
	l.part(order)
	return order
}

// logs gives logarithms without fractions, so that each machine orders alike.
func logs(n int) []int64 {
	out := make([]int64, n+2)
	for i := range out[1:] {
		out[i+1] = int64(math.Round(math.Log2(float64(i+1)) * (1 << 16)))
	}
	return out
}

// runs gives the runs of each function that another has, too.
func runs(functions [][][]byte) [][]int32 {
	var (
		numbers = map[uint64]int32{}
		in      []int
		out     = make([][]int32, len(functions))
	)
	for i, ops := range functions {
		for j := 0; j+runLength <= len(ops); j++ {
			h := fnv.New64a()
			for _, op := range ops[j : j+runLength] {
				_, _ = h.Write(op)
			}
			n, ok := numbers[h.Sum64()]
			if !ok {
				n = int32(len(in))
				numbers[h.Sum64()], in = n, append(in, 0)
			}
			out[i] = append(out[i], n)
		}
		slices.Sort(out[i])
		out[i] = slices.Compact(out[i])
		for _, n := range out[i] {
			in[n]++
		}
	}
	for i := range out {
		out[i] = slices.DeleteFunc(out[i], func(n int32) bool { return in[n] == 1 || in[n] > len(functions)/mostCommon })
	}
	return out
}

// part orders a group.
func (l *likeness) part(group []int) {
	slices.Sort(group)
	if len(group) <= smallGroup {
		return
	}
	half := len(group) / 2
	h := l.halves(group)
	for range exchanges {
		if !h.exchange(l.log) {
			break
		}
	}
	var first, second []int
	for i, f := range group {
		if h.second[i] {
			second = append(second, f)
		} else {
			first = append(first, f)
		}
	}
	copy(group, first)
	copy(group[half:], second)
	l.part(group[:half])
	l.part(group[half:])
}

// halves are the two of a group, by the places of functions in it.
type halves struct {
	runs   [][]int32  // numbered anew
	second []bool     // it is in the second half
	in     [2][]int32 // how many functions of each half have a run
	gains  [2][]int64 // what a run gains when a function that has it leaves the half
}

// halves cuts a group in the middle. Of runs only those count that some of it have and some have not.
func (l *likeness) halves(group []int) *halves {
	const none = -1
	for _, f := range group {
		for _, run := range l.runs[f] {
			l.number[run] = 0
		}
	}
	for _, f := range group {
		for _, run := range l.runs[f] {
			l.number[run]++
		}
	}
	h := &halves{runs: make([][]int32, len(group)), second: make([]bool, len(group))}
	kinds := int32(0)
	for i, f := range group {
		for _, run := range l.runs[f] {
			if n := l.number[run]; n > 1 && int(n) < len(group) {
				h.runs[i] = append(h.runs[i], run)
			}
		}
	}
	for _, runs := range h.runs {
		for _, run := range runs {
			l.number[run] = none
		}
	}
	for i, runs := range h.runs {
		for j, run := range runs {
			if l.number[run] == none {
				l.number[run], kinds = kinds, kinds+1
			}
			runs[j] = l.number[run]
		}
		h.second[i] = i >= len(group)/2
	}
	for side := range h.in {
		h.in[side], h.gains[side] = make([]int32, kinds), make([]int64, kinds)
	}
	for i, runs := range h.runs {
		for _, run := range runs {
			h.in[h.side(i)][run]++
		}
	}
	return h
}

func (h *halves) side(i int) int {
	if h.second[i] {
		return 1
	}
	return 0
}

// exchange moves those that gain by it into the other half, as many of each; it is false when there are none.
func (h *halves) exchange(log []int64) bool {
	even := func(a, b int32) int64 { return -int64(a)*log[a+1] - int64(b)*log[b+1] }
	for run := range h.in[0] {
		a, b := h.in[0][run], h.in[1][run]
		if a > 0 {
			h.gains[0][run] = even(a, b) - even(a-1, b+1)
		}
		if b > 0 {
			h.gains[1][run] = even(a, b) - even(a+1, b-1)
		}
	}
	type move struct {
		i    int
		gain int64
	}
	var moves [2][]move
	for i, runs := range h.runs {
		side, gain := h.side(i), int64(0)
		for _, run := range runs {
			gain += h.gains[side][run]
		}
		moves[side] = append(moves[side], move{i, gain})
	}
	for _, m := range moves {
		slices.SortFunc(m, func(a, b move) int { return cmp.Or(cmp.Compare(b.gain, a.gain), cmp.Compare(a.i, b.i)) })
	}
	moved := 0
	for k := range min(len(moves[0]), len(moves[1])) {
		if moves[0][k].gain+moves[1][k].gain <= 0 {
			break
		}
		h.change(moves[0][k].i)
		h.change(moves[1][k].i)
		moved++
	}
	return moved > 0
}

// change moves a function into the other half.
func (h *halves) change(i int) {
	from := h.side(i)
	for _, run := range h.runs[i] {
		h.in[from][run]--
		h.in[1-from][run]++
	}
	h.second[i] = !h.second[i]
}
