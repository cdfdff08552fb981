// Package order sorts, with one copy of the algorithm for all types: slices.SortFunc compiles one for each
// type of element, 12 KB of WASM apiece.
package order

import "sort"

// By sorts a list by a comparison as slices.SortStableFunc does: equal elements keep their order.
func By[S ~[]E, E any](list S, cmp func(a, b E) int) {
	place := make([]int, len(list))
	for i := range place {
		place[i] = i
	}
	sort.Sort(&places{place, func(i, j int) int { return cmp(list[i], list[j]) }})
	sorted := make(S, len(list))
	for i, p := range place {
		sorted[i] = list[p]
	}
	copy(list, sorted)
}

// places is an order of the elements of a list: where each comes from.
type places struct {
	from []int
	cmp  func(i, j int) int
}

func (p *places) Len() int      { return len(p.from) }
func (p *places) Swap(i, j int) { p.from[i], p.from[j] = p.from[j], p.from[i] }

func (p *places) Less(i, j int) bool {
	a, b := p.from[i], p.from[j]
	c := p.cmp(a, b)
	return c < 0 || c == 0 && a < b
}
