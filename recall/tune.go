package recall

// Weight is what a rule counts.
type Weight struct {
	Rule  string
	Value float64
}

// Weights returns the weights of the rules, in their order.
func Weights() []Weight {
	out := make([]Weight, len(rules))
	for i, r := range rules {
		out[i] = Weight{r.name, r.weight}
	}
	return out
}

// Figures returns the hits of a query, as [Index.Search] orders them, and for each rule what it says of each hit: a score
// is the sum of these times the weights, so that other weights can be tried without a search.
func (x *Index) Figures(q Query, s Stats) (hits []Hit, figures [][]float64) {
	hits = x.Search(q, s)
	m := x.match(q, s)
	for _, r := range rules {
		all, of := r.of(m), make([]float64, len(hits))
		for i, h := range hits {
			of[i] = all[h.Doc]
		}
		figures = append(figures, of)
	}
	return hits, figures
}
