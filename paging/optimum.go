package paging

import "math"

// The least cost is sought over all sets of results: up to so many results, and in a stretch of up to so
// many requests. That takes 0.2 ms and 8 KB a request at most (BenchmarkOptimum: all of it in 0.6 s).
const (
	exactResults  = 12
	exactRequests = 4000
)

// best is the least cost of a stretch, the request with which each result goes (-1 for never), and whether
// that is exact.
func (s *stretch) best() (cost float64, leave []int, exact bool) {
	if len(s.may) <= exactResults && len(s.asks) <= exactRequests {
		cost, leave = s.search()
		return cost, leave, true
	}
	cost, leave = s.relax()
	return cost, leave, false
}

// search finds the least cost by going over the requests and keeping, for each set of results that may be
// out, the least cost with which it is reached. What a request costs hangs on the set that is out and on the
// first result that went with it, so the best set before is a minimum over all that differ behind that
// one: it is carried along result by result, from the last to the first, and not sought for each pair of sets.
func (s *stretch) search() (float64, []int) {
	n := len(s.may)
	sets := 1 << n
	saved := make([]int, sets)
	for set := 1; set < sets; set++ {
		low := bits0(set)
		saved[set] = saved[set&(set-1)] + s.may[low].saved()
	}
	cost := make([]float64, sets)
	for set := 1; set < sets; set++ {
		cost[set] = math.Inf(1)
	}
	from := make([][]uint16, len(s.asks))
	near, by := make([]float64, sets), make([]uint16, sets)
	for k, a := range s.asks {
		ripe, kept := 0, 0
		for i := range s.may {
			if s.may[i].ready <= k {
				ripe |= 1 << i
			}
			if s.may[i].message < a.kept {
				kept |= 1 << i
			}
		}
		copy(near, cost)
		was := make([]uint16, sets)
		for set := range sets {
			by[set], was[set] = uint16(set), uint16(set) //nolint:gosec // at most 2^12 sets
			if set&^ripe != 0 {
				cost[set] = math.Inf(1)
				continue
			}
			cost[set] += Cost(a.in-saved[set], a.same-saved[set&kept])
		}
		for i := n - 1; i >= 0; i-- {
			bit := 1 << i
			if ripe&bit == 0 {
				continue // near is as it was: no set with it has been reached
			}
			c := &s.may[i]
			for set := bit; set < sets; set = (set + 1) | bit {
				if set&^ripe != 0 {
					continue
				}
				same := a.same - saved[set&kept]
				if kept&bit != 0 && k > 0 {
					same = min(same, c.from+c.common-saved[set&(bit-1)])
				}
				if v := near[set^bit] + Cost(a.in-saved[set], same); v < cost[set] {
					cost[set], was[set] = v, by[set^bit]
				}
				if near[set^bit] < near[set] {
					near[set], by[set] = near[set^bit], by[set^bit]
				}
			}
		}
		from[k] = was
	}
	return s.path(cost, from)
}

// path goes back from the best set at the end.
func (s *stretch) path(cost []float64, from [][]uint16) (float64, []int) {
	leave := make([]int, len(s.may))
	for i := range leave {
		leave[i] = -1
	}
	best := 0
	for set := range cost {
		if cost[set] < cost[best] {
			best = set
		}
	}
	set := best
	for k := len(from) - 1; k >= 0; k-- {
		was := int(from[k][set])
		for i := range leave {
			if (set&^was)>>i&1 == 1 {
				leave[i] = k
			}
		}
		set = was
	}
	return cost[best], leave
}

// bits0 is the number of the lowest bit that is set.
func bits0(set int) (n int) {
	for set&1 == 0 {
		set >>= 1
		n++
	}
	return n
}

// relax gives a cost that none can be below: each result goes when that is best for it alone, and of what is
// written anew behind it pays only its share, as though all that could go with that request went. Results
// that do go together pay no more than the whole, so the sum is never above what a plan costs.
func (s *stretch) relax() (total float64, leave []int) {
	n := len(s.may)
	leave = make([]int, n)
	best, later := make([]float64, n), make([]float64, n)
	share := make([]float64, n)
	for i := range leave {
		leave[i] = -1
	}
	for k := len(s.asks) - 1; k >= 0; k-- {
		a := s.asks[k]
		total += Cost(a.in, a.same)
		s.shares(k, share)
		for i := range s.may {
			c := &s.may[i]
			if c.ready > k {
				continue
			}
			gain := -WrittenPrice * float64(c.saved())
			broken := 0.0
			if c.message < a.kept {
				gain = -CachedPrice * float64(c.saved())
				broken = share[i]
			}
			if v := later[i] + gain + broken; v < best[i] {
				best[i], leave[i] = v, k
			}
			later[i] += gain
		}
	}
	for i := range best {
		total += best[i]
	}
	return total, leave
}

// shares says what each result pays at least when it goes with request k: of each piece behind it, as small
// as it can be, its part among all that could go before that piece.
func (s *stretch) shares(k int, share []float64) {
	a := s.asks[k]
	could, end := 0, len(s.may)
	for i := range s.may {
		c := &s.may[i]
		share[i] = 0
		if c.message >= a.kept {
			end = i
			break
		}
	}
	if k == 0 { // a stretch begins with what the one before had, or with nothing
		return
	}
	type piece struct{ own, all float64 }
	pieces := make([]piece, end)
	for i := range end {
		c := &s.may[i]
		size, own := c.wire, 0
		if c.ready <= k {
			could++
			size, own = c.short, c.short-c.common
		}
		stop := a.same
		if i+1 < len(s.may) {
			stop = min(stop, s.may[i+1].from)
		}
		gap := max(stop-c.from-c.wire, 0)
		if could > 0 {
			each := (WrittenPrice - CachedPrice) / float64(could)
			pieces[i] = piece{each * float64(gap+own), each * float64(gap+size)}
		}
	}
	behind := 0.0
	for i := end - 1; i >= 0; i-- {
		share[i] = behind + pieces[i].own
		behind += pieces[i].all
	}
}
