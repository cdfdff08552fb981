package probe

import (
	"math"
	"sort"
)

// waste says what the calls of a session sent, by what it was for.
func (f *fold) waste(s *stream, row *SessionReport) {
	prefix := int64(0)
	for _, d := range f.c.o.Definitions {
		prefix += d.Bytes
	}
	if tokens := f.before(s); tokens >= 0 {
		prefix = max(prefix, int64(math.Round(tokens*f.perTok)))
	}
	own := make([]int32, len(s.calls)) // the first call from there on that counts here
	total := int64(0)
	for i := len(s.calls) - 1; i >= 0; i-- {
		own[i] = int32(i)
		c := s.calls[i]
		if c.shared && i+1 < len(s.calls) {
			own[i] = own[i+1]
		} else if c.shared {
			own[i] = int32(len(s.calls))
		}
		if c.shared {
			continue
		}
		total += c.sent + prefix
		unused := min(c.stubs, prefix)
		row.Parts[Definitions] += unused
		row.Parts[Doubled] += c.dup
		if i > 0 {
			row.Parts[Static] += prefix - unused
		}
	}
	for _, p := range s.pieces {
		if p.kind == Result && p.made < p.end {
			repeated, dead := s.idle(p, own[p.made])
			row.Parts[Repeated] += repeated * (p.size - p.dup)
			row.Parts[Dead] += dead * (p.size - p.dup)
		}
	}
	row.Parts[InUse] = total
	for _, n := range row.Parts[:InUse] {
		row.Parts[InUse] -= n
	}
}

// idle says in how many calls, from call own on, a result was carried beside a newer copy of it, and in how many it
// was dead. The first call that carries a result has use of it.
func (s *stream) idle(p piece, own int32) (repeated, dead int64) {
	from, newer := max(p.made+1, own), p.end
	if p.newer > 0 {
		newer = min(newer, max(p.newer, from))
		repeated = int64(max(0, p.end-newer))
	}
	if p.fails || p.size < deadSize {
		return repeated, 0
	}
	old := int32(sort.Search(len(s.calls), func(i int) bool { return s.calls[i].turn >= p.turn+deadAge }))
	return repeated, int64(max(0, newer-max(from, old, p.used)))
}

// project makes the paper's table 6 of what was sent.
func (f *fold) project() Projection {
	p := Projection{Input: int64(effective(f.usage)) + int64(math.Round(f.guessed)), Basis: "usage"}
	switch {
	case f.known == 0:
		p.Basis = "estimated"
	case f.guessed > 0:
		p.Basis = "usage, and estimated where there is none"
	}
	before := "what usage tells beyond the log's messages"
	if f.told == 0 {
		before = "not known: the logs have no usage"
	}
	stubs := "the paper's 18 definitions of 3,505 bytes; " + before
	if f.c.o.Definitions != nil {
		stubs = "the definitions given"
	}
	for _, row := range []struct {
		name, basis string
		parts       []Part
	}{
		{"tool stubs", stubs, []Part{Definitions}},
		{"skill and reminder deduplication", "the log; logs hold few reminders", []Part{Doubled}},
		{"static re-send", before, []Part{Static}},
		{"supersede repeated reads", "the log", []Part{Repeated}},
		{"evict dead results", "the log", []Part{Dead}},
	} {
		p.Rows = append(p.Rows, f.saving(row.name, row.basis, p.Input, row.parts...))
	}
	p.Table6 = f.saving("table 6", "the first three", p.Input, Definitions, Doubled, Static)
	p.All = f.saving("all", "all rows", p.Input, Definitions, Doubled, Static, Repeated, Dead)
	return p
}

func (f *fold) saving(name, basis string, input int64, of ...Part) Saving {
	bytes := int64(0)
	for _, k := range of {
		bytes += f.sent[k]
	}
	tokens := math.Round(float64(bytes) / f.perTok)
	return Saving{name, int64(tokens), ratio(tokens, float64(input)), ratio(tokens, float64(f.calls)), basis}
}
