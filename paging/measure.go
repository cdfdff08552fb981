package paging

// measure takes sizes of the request, and how much of it is as the one before sent it, of which keep
// messages are left.
func (p *Pager) measure(keep, shared int) {
	d, n := &p.now, len(p.messages)
	if n > 0 {
		d.In = p.in[n-1] + n + 1 // brackets and commas
		d.Out = p.out.upTo(n) + n + 1
	} else {
		d.In, d.Out = 2, 2
	}
	if p.sent < 0 {
		return
	}
	m := min(keep, p.sent)
	sumIn := 0
	if m > 0 {
		sumIn = p.in[m-1]
	}
	switch {
	case m == p.sent && m == n:
		d.Same, d.SameIn = d.Out, d.In
	default:
		extra := m + 1 // the bracket, and a comma behind each
		if m == p.sent || m == n {
			extra = max(m, 1) // one list ends where the other has a comma
		} else {
			extra += shared
		}
		d.Same, d.SameIn = p.out.upTo(m)+extra, sumIn+extra
	}
	if at, ok := p.firstChange(m); ok {
		d.Same = min(d.Same, p.offset(at)+p.changed[at].common)
	}
}

// firstChange is the first place in the first m messages where something else stands than before. No later one begins
// before what is common there ends, so only one is measured.
func (p *Pager) firstChange(m int) (first place, ok bool) {
	for at, c := range p.changed {
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
func (p *Pager) offset(at place) int {
	n := p.out.upTo(at.message) + at.message + 1 + at.at
	for i := p.first[at.message]; i < len(p.pages) && p.pages[i].Message == at.message; i++ {
		if g := p.pages[i]; g.stub && g.at < at.at {
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
