// Package mend finds what a model API refuses of a request. APIs say it in words without number, and some not at all, so the
// API itself is asked: the request without some of its parts, by halves, until what is left out is just what is refused
// (delta debugging: A. Zeller, "Yesterday, my program worked. Today, it does not. Why?", ESEC/FSE 1999). It decides and
// never acts: views go in, parts and edits come out, and the requests are the caller's.
package mend

import (
	"cmp"
	"errors"
	"slices"
)

// Bounds of a search.
const (
	maxTaken = 20  // requests that an API takes: they cost
	maxAsks  = 120 // and with those that it refuses
	maxFound = 10  // parts that are each looked for by themselves
	maxNamed = 12  // places that an API names one after the other
	certain  = 3   // times that what a search rests on is refused: an API may refuse at random
)

// Verdict is what a request is refused for.
type Verdict int

// Verdicts.
const (
	Unknown Verdict = iota // nothing that can be left out: what was just said, a parameter, an outage
	Passed                 // nothing: asked again, it is taken
	Size                   // it is too large
	Found                  // some parts of it
)

// Answer is what an API says of a request.
type Answer struct {
	Taken bool
	Named []int // the parts that it names, where it refuses
	Vague bool  // it is one of these
	Large bool  // it says that the request is too large
	Other bool  // it refuses in other words than at first
}

// Ask makes a request without some parts, by their index; filled, other words of the same size stand in it for those that
// are words. An error says that nothing was learned.
type Ask func(out []int, filled bool) (Answer, error)

// What ends a search, or begins it anew.
var (
	errSpent = errors.New("asked as often as a search may")
	errLarge = errors.New("nothing else can be found before the request is smaller")
	errNamed = errors.New("the API named another part")
)

type search struct {
	parts   []Part
	request Ask
	places  [][]int // what the API named exactly, place by place: it is out while the rest is looked for
	vague   []int   // parts of which it named one
	order   []int   // the other parts, what is suspected most first
	asks    int
	taken   int
}

// Find returns what a request is refused for; refused names parts of it, where the API did. Parts is sorted by suspicion. The
// request is taken without all that are found, unless the search was long, and refused with any of them, unless they are many. All
// that was just said is never found unless the API named it: people read its words.
func Find(parts []Part, refused Answer, ask Ask) (Verdict, []int, error) {
	s := &search{parts: parts, request: ask}
	if a, err := ask(nil, false); err != nil || a.Taken { // it may have been an outage
		return Passed, nil, err
	}
	if refused.Vague {
		s.vague = refused.Named
	} else if len(refused.Named) > 0 {
		s.places = [][]int{refused.Named}
	}
	for {
		switch v, found, err := s.find(); {
		case errors.Is(err, errNamed):
		case errors.Is(err, errLarge):
			return Size, nil, nil
		case errors.Is(err, errSpent) && len(s.places) > 0: // what an API names is evidence, and another search begins with less
			return Found, slices.Concat(s.places...), nil
		case errors.Is(err, errSpent):
			return Unknown, nil, nil
		case err != nil:
			return Unknown, nil, err
		default:
			return v, found, nil
		}
	}
}

// Large returns whether a request is refused for its size, where an API says so in words that a gate on the way may have said:
// as it is, once more, and taken without any of its parts.
func Large(parts []Part, ask Ask) (Verdict, error) {
	if a, err := ask(nil, false); err != nil || a.Taken {
		return Passed, err
	}
	all := make([]int, len(parts))
	for i := range all {
		all[i] = i
	}
	if a, err := ask(all, false); err != nil || !a.Taken {
		return Unknown, err
	}
	return Size, nil
}

// ask makes a request without some parts. A place that is named is out from then on.
func (s *search) ask(out []int) (Answer, error) {
	if s.asks >= maxAsks || s.taken >= maxTaken {
		return Answer{}, errSpent
	}
	s.asks++
	a, err := s.request(out, false)
	switch {
	case err != nil:
		return a, err
	case a.Large:
		return a, errLarge
	case a.Taken:
		s.taken++
		return a, nil
	case a.Vague:
		s.vague = append(s.vague, a.Named...)
		return a, nil
	case len(s.places) >= maxNamed:
		return a, nil
	}
	known := append(slices.Concat(s.places...), out...)
	if next := slices.DeleteFunc(slices.Clone(a.Named), func(i int) bool { return slices.Contains(known, i) }); len(next) > 0 {
		s.places = append(s.places, next)
		return a, errNamed
	}
	return a, nil
}

func (s *search) find() (Verdict, []int, error) {
	named := slices.Concat(s.places...)
	if len(named) > 0 {
		if a, err := s.ask(named); err != nil {
			return Unknown, nil, err
		} else if a.Taken {
			return s.proven(nil)
		}
	}
	s.arrange(named)
	if a, err := s.ask(slices.Concat(named, s.order)); err != nil || !a.Taken {
		return Unknown, nil, err
	}
	n, err := s.prefix(named, len(s.order))
	switch {
	case err != nil:
		return Unknown, nil, err
	case n == 0 && len(named) == 0:
		return Passed, nil, nil
	}
	if large, err := s.large(slices.Concat(named, s.order[:n])); err != nil || large {
		return Size, nil, err
	}
	found, err := s.needed(named, n)
	if err != nil || !s.leavesSaid(named, found) {
		return Unknown, nil, err
	}
	if found, err = s.older(named, found); err != nil && !errors.Is(err, errSpent) {
		return Unknown, nil, err
	}
	return s.proven(found)
}

// leavesSaid reports whether something that was just said is still there without what was named and found, or the API named all
// of it that is not.
func (s *search) leavesSaid(named, found []int) bool {
	left, unnamed := false, false
	for i, p := range s.parts {
		switch out := slices.Contains(found, i); {
		case !p.Said:
		case !out:
			left = left || !slices.Contains(named, i)
		case !slices.Contains(s.vague, i):
			unnamed = true
		}
	}
	return left || !unnamed
}

// arrange has the parts stand first of which one was named.
func (s *search) arrange(named []int) {
	s.order = nil
	add := func(i int) {
		if !slices.Contains(named, i) && !slices.Contains(s.order, i) {
			s.order = append(s.order, i)
		}
	}
	for _, i := range s.vague {
		add(i)
	}
	for i := range s.parts {
		add(i)
	}
}

// proven is what was found, with those of the places that were named without which the request is refused. Where it is refused
// no more as it is, nothing was.
func (s *search) proven(found []int) (Verdict, []int, error) {
	if a, err := s.ask(nil); err != nil && !errors.Is(err, errSpent) || a.Taken { // once more, at the end
		return Passed, nil, err
	}
	places := s.places
	for i := 0; i < len(places) && len(places)+len(found) > 1; {
		rest := slices.Delete(slices.Clone(places), i, i+1)
		a, err := s.ask(append(slices.Concat(rest...), found...))
		if errors.Is(err, errSpent) {
			break
		}
		if err != nil {
			return Unknown, nil, err
		}
		if a.Taken {
			places = rest
		} else {
			i++
		}
	}
	return Found, append(slices.Concat(places...), found...), nil
}

// prefix is the least number of the first parts without which, and without kept, the request is taken; to is enough. It looks
// among the first ones first. What is refused once may be taken the next time: where a search ends is asked more often.
func (s *search) prefix(kept []int, to int) (int, error) {
	lo, hi, refused := -1, to, certain
	for step := 1; hi-lo > 1 || refused < certain; step *= 2 {
		n := lo + step
		switch {
		case hi-lo <= 1:
			n = lo
		case hi < to || n >= hi:
			n = (lo + hi) / 2
		}
		a, err := s.ask(slices.Concat(kept, s.order[:n]))
		switch {
		case err != nil:
			return hi, err
		case n == lo && (a.Taken || a.Other && n+len(kept) == 0): // and what is below it has to be asked again
			lo, hi, refused = -1, n, certain
		case a.Taken:
			hi = n
		case n == lo:
			refused++
		default:
			lo, refused = n, 1
		}
	}
	return hi, nil
}

// needed are those of the first n parts of which, with kept out, none may be in the request. The last of them is one, or fewer
// would do.
func (s *search) needed(kept []int, n int) (found []int, err error) {
	for n > 0 {
		found = append(found, s.order[n-1])
		if n--; len(found) > maxFound { // as with a bound on how many tools there are: so many have to go; else the next search goes on
			return s.withKind(found, n), nil
		}
		n, err = s.prefix(slices.Concat(kept, found), n)
		if errors.Is(err, errSpent) { // another search begins with less
			return found, nil
		}
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// withKind adds to what was found those of the first n parts that are of its kind, where it is of one: tools, or media.
func (s *search) withKind(found []int, n int) []int {
	tools := func(i int) bool { return s.parts[i].Tool != "" }
	media := func(i int) bool { return s.parts[i].Medium }
	for _, is := range []func(int) bool{tools, media} {
		if !slices.ContainsFunc(found, func(i int) bool { return !is(i) }) {
			for _, i := range s.order[:n] {
				if is(i) {
					found = append(found, i)
				}
			}
			return found
		}
	}
	return found
}

// older are as many media that a model took before, the oldest, in the place of new ones that were found, if the request is taken
// without those as well: then there are too many, and what is new stays.
func (s *search) older(named, found []int) ([]int, error) {
	var old []int
	for _, i := range s.order {
		if p := s.parts[i]; p.Medium && (p.rank == rankMedium || p.rank == rankAddress) && len(old) < len(found) {
			old = append(old, i)
		}
	}
	if len(old) < len(found) || slices.ContainsFunc(found, func(i int) bool { return !s.parts[i].Medium || s.parts[i].rank != rankUnread }) {
		return found, nil
	}
	slices.SortFunc(old, func(a, b int) int {
		return cmp.Or(cmp.Compare(s.parts[a].item, s.parts[b].item), cmp.Compare(s.parts[a].at, s.parts[b].at))
	})
	a, err := s.ask(slices.Concat(named, old))
	if a.Taken {
		return old, nil
	}
	return found, err
}

// large reports whether other words in the places of some parts are refused as the request was: then it is not for what they
// say. Pictures have no size that words could have.
func (s *search) large(out []int) (bool, error) {
	if !slices.ContainsFunc(out, func(i int) bool { return !s.parts[i].Medium }) {
		return false, nil
	}
	for range certain {
		switch a, err := s.request(out, true); {
		case err == nil && a.Large:
			return true, nil
		case err != nil || a.Taken || a.Other:
			return false, err
		}
	}
	return true, nil
}
