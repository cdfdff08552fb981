package recall

// rule is one thing that speaks for a document. Its weight is a step of one half, found on conversations
// and held against others that it was not found on.
type rule struct {
	name   string
	weight float64
	why    string
	of     func(m *match) []float64 // 0 to 1 for each document, below 0 where something speaks against it
}

var rules = []rule{
	{"words", 0.5, "it says what is asked, rare words above all", func(m *match) []float64 { return m.turn }},
	{"neighbours", 0.5, "what is asked is said around it", func(m *match) []float64 { return m.near }},
	{"characters", 1, "it says it in another form, or mistyped", func(m *match) []float64 { return m.grams }},
	{"passage", 1, "the passage is about it", func(m *match) []float64 { return m.wide }},
	{"sitting", 0.5, "the sitting is about it", func(m *match) []float64 { return m.day }},
	{"best of the sitting", 0.5, "somebody said it in that sitting", func(m *match) []float64 { return m.best }},
	{"coverage", 0.5, "all that is asked is there together", func(m *match) []float64 { return m.cover }},
	{"echo", 0.5, "who speaks goes on with what they began two turns before", func(m *match) []float64 { return m.shift(m.turn, -2) }},
	{"answer", 1, "the answer stands behind its question", func(m *match) []float64 { return m.asked }},
	{"no question", 0.5, "who asks does not answer", func(m *match) []float64 {
		return m.each(func(i int) float64 { return -one(m.x.asks[i]) })
	}},
	{"only asked", 1, "what has the words in its questions alone does not state them; people who are named tell things by asking", func(m *match) []float64 {
		return m.each(func(i int) float64 { return -m.mere[i] * one(m.x.docs[i].Speaker == "") })
	}},
	{"who", 0.5, "the one who is named says it", func(m *match) []float64 {
		return m.each(func(i int) float64 { return one(m.named != "" && m.x.docs[i].Speaker == m.named) })
	}},
	{"of themselves", 0.5, "and says it of themselves", func(m *match) []float64 { return m.each(m.self) }},
	{"kind", 1, "it has a time, a number, a place or a name, where that is asked", func(m *match) []float64 { return m.each(m.cue) }},
	{"date", 1.5, "it was said when the query says", func(m *match) []float64 { return m.when }},
	{"name", 2, "it names what the query names, whole or as part of a longer name", func(m *match) []float64 { return m.names() }},
	{"number", 2, "a number stands beside what it stands beside in the query", func(m *match) []float64 { return m.each(m.numberFits) }},
	{"news", 1, "it tells something new", func(m *match) []float64 { return m.x.fresh }},
}

// talk reports a rule that holds for talk between people, and may say nothing elsewhere.
func (r rule) talk() bool {
	return oneOf(r.name, "echo", "answer", "no question", "only asked", "who", "of themselves", "kind", "news")
}

// most is about what a document reaches that everything speaks for.
func most() float64 {
	sum := 0.0
	for _, r := range rules {
		if !oneOf(r.name, "date", "name", "number", "no question", "only asked") {
			sum += r.weight
		}
	}
	return sum
}

func (m *match) each(f func(i int) float64) []float64 {
	out := make([]float64, len(m.x.docs))
	for i := range out {
		out[i] = f(i)
	}
	return out
}

// shift gives each document the figure of a neighbour.
func (m *match) shift(v []float64, by int) []float64 {
	return m.each(func(i int) float64 {
		if m.x.near(i, i+by) {
			return v[i+by]
		}
		return 0
	})
}

func (m *match) self(i int) float64 {
	switch m.named {
	case "":
		return m.x.self[i] / 2
	case m.x.docs[i].Speaker:
		return m.x.self[i]
	}
	return 0
}

func (m *match) cue(i int) float64 {
	x, q := m.x, m.q
	return one(q.when && x.time[i]) + one(q.many && x.number[i]) + one(q.where && x.place[i]) +
		one(q.who && x.proper[i])/2 + one(q.title && (x.quote[i] || x.proper[i]))/2
}

func (m *match) numberFits(i int) float64 {
	if m.fits == nil {
		return 0
	}
	return m.fits[i]
}

func one(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
