package paging

// measure takes sizes of the request, and how much of it is as the one before sent it, of which keep
// messages are left.
func (h *history) measure(keep, shared int) {
	d, n := &h.now, len(h.messages)
	if n > 0 {
		d.In = h.in[n-1] + n + 1 // brackets and commas
		d.Out = h.out.upTo(n) + n + 1
	} else {
		d.In, d.Out = 2, 2
	}
	if h.sent < 0 {
		return
	}
	m := min(keep, h.sent)
	sumIn := 0
	if m > 0 {
		sumIn = h.in[m-1]
	}
	switch {
	case m == h.sent && m == n:
		d.Same, d.SameIn = d.Out, d.In
	default:
		extra := m + 1 // the bracket, and a comma behind each
		if m == h.sent || m == n {
			extra = max(m, 1) // one list ends where the other has a comma
		} else {
			extra += shared
		}
		d.Same, d.SameIn = h.out.upTo(m)+extra, sumIn+extra
	}
	if at, ok := h.firstChange(m); ok {
		d.Same = min(d.Same, h.offset(at)+h.changed[at].common)
	}
}

// firstChange is the first place in the first m messages where something else stands than before. No later one begins
// before what is common there ends, so only one is measured.
func (h *history) firstChange(m int) (first place, ok bool) {
	for at, c := range h.changed {
		if c.was == c.is || at.message >= m {
			continue
		}
		if !ok || at.message < first.message || at.message == first.message && at.at < first.at {
			first, ok = at, true
		}
	}
	return first, ok
}

// offset is where a substituted value begins in the list as it is sent.
func (h *history) offset(at place) int {
	n := h.out.upTo(at.message) + at.message + 1 + at.at
	for i := h.first[at.message]; i < len(h.pages) && h.pages[i].Message == at.message; i++ {
		if g := h.pages[i]; g.stub && g.at < at.at {
			n += g.short - g.wire
		}
	}
	return n
}

// sums holds figures whose running total is wanted while they change: a Fenwick tree.
type sums []int

// push adds a figure behind the last.
func (s sums) push(v int) sums {
	i := len(s) + 1
	for j, low := i-1, i&-i; j > i-low; j -= j & -j {
		v += s[j-1]
	}
	return append(s, v)
}

// add changes figure i by d.
func (s sums) add(i, d int) {
	for i++; i <= len(s); i += i & -i {
		s[i-1] += d
	}
}

// upTo is the sum of the first n figures.
func (s sums) upTo(n int) (sum int) {
	for ; n > 0; n -= n & -n {
		sum += s[n-1]
	}
	return sum
}
