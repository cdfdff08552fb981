package recall

// characters ranks by n-grams: they find other forms of a word, and words that were mistyped.
func (m *match) characters(terms []string) {
	x, n := m.x, len(m.x.docs)
	tf, size := m.gramCounts(terms)
	own, wide, days := widths(size), widths(x.windows(size, 2)), widths(x.sums(size))
	m.grams, m.wide = make([]float64, n), make([]float64, n)
	day := make([]float64, len(days))
	around, group := make([]float64, n), make([]float64, len(days)) // of one gram
	for _, counts := range tf {
		if counts == nil {
			continue
		}
		addBM25(m.grams, counts, own, rarityOf(counts))
		addBM25(m.wide, x.slide(around, counts, 2), wide, rarityOf(around))
		addBM25(day, x.sumInto(group, counts), days, rarityOf(group))
	}
	m.day = x.spread(day)
}

// gramCounts returns how often each document has each n-gram of some terms, nil for one that none has, and how long
// the documents are.
func (m *match) gramCounts(terms []string) (tf [][]float64, size []float64) {
	at := map[uint32]int{}
	var may [64]uint64 // bits of those in at: most of a text is not, and a map takes ten times as long to say so
	for _, t := range terms {
		p := string(rune(gramMark)) + t + string(rune(gramMark))
		for i := 0; i+gramSize <= len(p); i++ {
			if g := gram(p[i:]); at[g] == 0 {
				at[g] = len(at) + 1
				may[gramBit(g)/64] |= 1 << (gramBit(g) % 64)
			}
		}
	}
	const rows = 16 // of one block
	n := len(m.x.docs)
	var free []float64
	tf, size = make([][]float64, len(at)), make([]float64, n)
	for d, text := range m.x.text {
		size[d] = float64(len(text))
		g := uint32(0)
		for i := range len(text) {
			g = g<<8 | uint32(text[i])
			if i+1 < gramSize || may[gramBit(g)/64]>>(gramBit(g)%64)&1 == 0 {
				continue
			}
			if k := at[g]; k > 0 {
				if tf[k-1] == nil {
					if len(free) == 0 {
						free = make([]float64, rows*n)
					}
					tf[k-1], free = free[:n], free[n:]
				}
				tf[k-1][d]++
			}
		}
	}
	return tf, size
}
