package recall

import (
	"strings"

	"github.com/tidemark-ai/tidemark/memory"
)

// separators part the words of a name.
const separators = "_/@.-"

// compound reports a name of several words: a path, a version, an identifier.
func compound(t string) bool { return len(t) > 3 && strings.ContainsAny(t, separators) }

// naming returns the terms that are a name or, where it is one of several words, hold it between two
// separators, as a path holds the name of its file.
func (x *Index) naming(name string) (ids []int32) {
	if id, ok := x.vocab[name]; ok {
		ids = append(ids, id)
	}
	switch {
	case memory.Lone(name):
		for id, t := range x.word {
			if len(t) > len(name) && strings.Contains(t, name) {
				ids = append(ids, int32(id))
			}
		}
	case compound(name):
		for _, t := range x.long {
			if len(t) > len(name) && within(t, name) {
				ids = append(ids, x.vocab[t])
			}
		}
	}
	return ids
}

// within reports whether a name stands in a term, from one separator or end to another.
func within(term, name string) bool {
	for from := 0; ; from++ {
		i := strings.Index(term[from:], name)
		if i < 0 {
			return false
		}
		from += i
		end := from + len(name)
		if (from == 0 || strings.ContainsRune(separators, rune(term[from-1]))) && (end == len(term) || strings.ContainsRune(separators, rune(term[end]))) {
			return true
		}
	}
}

// names gives each document the share of the query's names that it has.
func (m *match) names() []float64 {
	out := make([]float64, len(m.x.docs))
	count := 0.0
	for _, t := range m.q.Terms {
		if !compound(t) {
			continue
		}
		count++
		named := make([]bool, len(m.x.word))
		for _, id := range m.x.naming(t) {
			named[id] = true
		}
		for d, terms := range m.x.terms {
			for _, id := range terms {
				if named[id] {
					out[d]++
					break
				}
			}
		}
	}
	if count > 1 {
		for d := range out {
			out[d] /= count
		}
	}
	return out
}
