package search

import (
	"cmp"
	"slices"
	"strings"
)

// excerpt cuts a long text to what stands around a place, unless that is below 0, and around the terms, the rarest
// first, in the order of the text.
func excerpt(text string, place int, terms []string, most int) string {
	if len(text) <= most {
		return text
	}
	const side = 160
	lower := strings.ToLower(text)
	if len(lower) != len(text) { // places in one are not places in the other
		lower = text
	}
	type span struct{ from, to int }
	var spans []span
	left := most
	if place >= 0 {
		s := span{max(0, place-side), min(len(text), place+2*side)}
		spans, left = append(spans, s), left-(s.to-s.from)
	}
	for _, t := range terms {
		at := strings.Index(lower, t)
		if at < 0 || slices.ContainsFunc(spans, func(s span) bool { return s.from <= at && at+len(t) <= s.to }) {
			continue
		}
		s := span{max(0, at-side), min(len(text), at+len(t)+2*side)}
		if s.to-s.from > left {
			if len(spans) > 0 {
				break
			}
			s.to = s.from + left // the rarest is shown as far as there is room
		}
		spans, left = append(spans, s), left-(s.to-s.from)
	}
	if left > side {
		spans = append(spans, span{0, min(left, len(text))})
	}
	slices.SortStableFunc(spans, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	var b strings.Builder
	end := 0
	for _, s := range spans {
		if s.from > end && end > 0 {
			b.WriteString(" … ")
		}
		if s.to > end {
			b.WriteString(text[max(s.from, end):s.to])
			end = s.to
		}
	}
	return strings.ToValidUTF8(b.String(), "")
}

// snippet returns the part of a text where most of the terms stand together, the longest counting most: a
// name whole is worth more than its parts elsewhere.
func snippet(text string, terms []string, around int) string {
	lower := strings.ToLower(text)
	if len(lower) != len(text) { // places in one are not places in the other
		lower = text
	}
	return snippetAt(text, max(0, densest(lower, terms, around)), around)
}

// snippetAt is the text around a place.
func snippetAt(text string, at, around int) string {
	from, to := max(0, at-around), min(len(text), at+around)
	out := strings.ToValidUTF8(text[from:to], "")
	if from > 0 {
		out = "…" + out
	}
	if to < len(text) {
		out += "…"
	}
	return out
}

// densest returns where a term stands about which most of them do, or -1. A long term counts more, and one
// that stands everywhere less.
func densest(lower string, terms []string, around int) int {
	const mostTerms, mostPlaces = 12, 16 // that are looked at
	type term struct {
		text  string
		worth float64
	}
	var list []term
	for _, t := range terms {
		if n := strings.Count(lower, t); n > 0 && t != "" {
			list = append(list, term{t, float64(len(t)) / float64(n)})
		}
	}
	slices.SortStableFunc(list, func(a, b term) int { return cmp.Compare(b.worth, a.worth) })
	list = list[:min(len(list), mostTerms)]
	best, most := -1, 0.0
	for _, t := range list {
		for from, n := 0, 0; n < mostPlaces; n++ {
			i := strings.Index(lower[from:], t.text)
			if i < 0 {
				break
			}
			i += from
			part, sum := lower[max(0, i-around):min(len(lower), i+around)], 0.0
			for _, o := range list {
				if strings.Contains(part, o.text) {
					sum += o.worth
				}
			}
			if sum > most {
				best, most = i, sum
			}
			from = i + len(t.text)
		}
	}
	return best
}
