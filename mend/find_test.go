package mend

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// api refuses a request with a guilty part in it, one that is larger than it takes, and more than some parts of media.
type api struct {
	parts  []Part
	guilty []int
	weight []int // of the parts
	most   int   // weight that it takes, 0: any
	media  int   // pictures that it takes, -1: any
	down   []int // requests, from 1, that it refuses whatever is in them
	always bool

	asks, taken int
	flaky       float64 // of the requests are refused whatever is in them
	rand        *rand.Rand
	known       bool                                     // it says in known words that a request is too large
	tongues     int                                      // in how many ways it refuses, by turns
	places      func(in []int) (named []int, vague bool) // what it names of the guilty that are in
	fails       int                                      // the request, from 1, that gets no answer
}

var errLost = errors.New("lost")

func (a *api) refuses(out []int, filled bool) (in []int, refused bool) {
	weight, media := 0, 0
	for i := range a.parts {
		gone := slices.Contains(out, i)
		if !gone && slices.Contains(a.guilty, i) {
			in = append(in, i)
		}
		if !gone || filled && !a.parts[i].Medium {
			weight += a.weight[i]
		}
		if !gone && a.parts[i].Medium {
			media++
		}
	}
	return in, a.always || len(in) > 0 || a.most > 0 && weight > a.most || a.media >= 0 && media > a.media
}

func (a *api) ask(out []int, filled bool) (Answer, error) {
	a.asks++
	if a.asks == a.fails {
		return Answer{}, errLost
	}
	in, refused := a.refuses(out, filled)
	if !refused && !slices.Contains(a.down, a.asks) && (a.flaky == 0 || a.rand.Float64() >= a.flaky) {
		a.taken++
		return Answer{Taken: true}, nil
	}
	no := Answer{Large: a.known && len(in) == 0, Other: a.tongues > 0 && a.asks%a.tongues > 0}
	if a.places != nil {
		no.Named, no.Vague = a.places(in)
	}
	return no, nil
}

// before an API are parts of weight 1, of which the last is what a person just said.
func before(n int, guilty ...int) *api {
	a := &api{parts: make([]Part, n), weight: make([]int, n), guilty: guilty, media: -1}
	for i := range a.weight {
		a.weight[i] = 1
	}
	a.parts[n-1].Said = true
	return a
}

func (a *api) find() (Verdict, []int, error) {
	first := Answer{}
	if a.places != nil {
		in, _ := a.refuses(nil, false)
		first.Named, first.Vague = a.places(in)
	}
	return Find(a.parts, first, a.ask)
}

// TestFind: what is found is just what is refused, wherever it stands, whatever is said of it.
func TestFind(t *testing.T) {
	firstIn := func(in []int) ([]int, bool) { return in[:min(len(in), 1)], false }
	for _, c := range []struct {
		name  string
		api   *api
		set   func(*api)
		want  Verdict
		found []int
		asks  int // at most
	}{
		{"the first", before(9, 0), nil, Found, []int{0}, 10},
		{"one of few", before(9, 5), nil, Found, []int{5}, 13},
		{"one of very many", before(1000, 700), nil, Found, []int{700}, 26},
		{"two", before(100, 20, 70), nil, Found, []int{70, 20}, 33},
		{"the only one", before(2, 0), nil, Found, []int{0}, 9},
		{"one that is named", before(100, 70), func(a *api) { a.places = firstIn }, Found, []int{70}, 3},
		{"three that are named one by one", before(100, 20, 70, 90), func(a *api) { a.places = firstIn }, Found, []int{20, 70, 90}, 8},
		{"one among those that are named", before(100, 70), func(a *api) { a.places = func([]int) ([]int, bool) { return []int{60, 70, 80}, true } }, Found, []int{70}, 11},
		{"another is named", before(100, 70), func(a *api) { a.places = func([]int) ([]int, bool) { return []int{3}, false } }, Found, []int{70}, 22},
		{"another is named, and then it", before(100, 70), func(a *api) {
			a.places = func([]int) ([]int, bool) { return []int{3, 70}[min(a.asks, 1):][:1], false }
		}, Found, []int{70}, 5},
		{"always another is named", before(100, 70), func(a *api) { a.places = func([]int) ([]int, bool) { return []int{a.asks}, false } }, Found, []int{70}, 45},
		{"what was just said", before(9, 8), nil, Unknown, nil, 12},
		{"what was just said, as it is named", before(9, 8), func(a *api) { a.places = firstIn }, Found, []int{8}, 3},
		{"what was just said, as one of those that are named", before(9, 8), func(a *api) { a.places = func([]int) ([]int, bool) { return []int{7, 8}, true } }, Found, []int{8}, 11},
		{"something else", before(9), func(a *api) { a.always = true }, Unknown, nil, 2},
		{"an outage", before(9), nil, Passed, nil, 1},
		{"an outage that goes on", before(9), func(a *api) { a.down = []int{1, 2} }, Unknown, nil, 2},
		{"an outage that comes back", before(9), func(a *api) { a.down = []int{1, 3} }, Passed, nil, 8},
		{"its size", before(100), func(a *api) { a.most = 60 }, Size, nil, 18},
		{"its size, by far", before(100), func(a *api) { a.most = 3 }, Size, nil, 18},
		{"its size, by a little", before(100), func(a *api) { a.most = 99 }, Size, nil, 10},
		{"its size, for what was just said", before(3), func(a *api) { a.weight[2], a.most = 100, 50 }, Size, nil, 9},
		{"its size, whatever it names", before(100), func(a *api) {
			a.most, a.places = 60, func([]int) ([]int, bool) { return []int{3}, false }
		}, Size, nil, 19},
		{"its size, in known words", before(100), func(a *api) { a.most, a.known = 60, true }, Size, nil, 3},
		{"its size, in known words behind something else", before(100, 50), func(a *api) { a.most, a.known = 60, true }, Size, nil, 16},
		{"its size, in ever other words", before(100), func(a *api) { a.most, a.tongues = 60, 2 }, Found, nil, 115},
		{"too many pictures", before(40), func(a *api) {
			a.media = 10
			for i := range 30 {
				a.parts[i].Medium = true
			}
		}, Found, []int{19, 18, 17, 16, 15, 14, 13, 12, 11, 10, 9, 0, 1, 2, 3, 4, 5, 6, 7, 8}, 95},
	} {
		if c.set != nil {
			c.set(c.api)
		}
		v, found, err := c.api.find()
		if v != c.want || c.found != nil && !slices.Equal(found, c.found) || err != nil || c.api.asks > c.asks {
			t.Errorf("%s: %v %v, %v after %d requests", c.name, v, found, err, c.api.asks)
		}
	}
}

// TestSaidIsLeft: of several messages that were just said those that are refused are found while another is left; all of them are
// only where the API named each.
func TestSaidIsLeft(t *testing.T) {
	for _, c := range []struct {
		name   string
		guilty []int
		named  []int // exactly
		want   Verdict
	}{
		{"one of three", []int{8}, nil, Found}, {"two of three", []int{7, 8}, nil, Found}, {"all of them", []int{7, 8, 9}, nil, Unknown},
		{"the last is left, and another was named", []int{7, 8}, []int{7}, Found}, {"none is left, of which one was named", []int{7, 8, 9}, []int{7}, Unknown},
	} {
		a := before(10, c.guilty...)
		a.parts[7].Said, a.parts[8].Said = true, true
		v, found, err := Find(a.parts, Answer{Named: c.named}, a.ask)
		slices.Sort(found)
		if v != c.want || err != nil || v == Found && !slices.Equal(found, c.guilty) {
			t.Errorf("%s: %v %v, %v", c.name, v, found, err)
		}
	}
}

// TestOlderMedia: where an API takes so many pictures, the oldest leave, and what is new stays; a new one that is refused itself
// does not.
func TestOlderMedia(t *testing.T) {
	for _, guilty := range [][]int{nil, {0}} {
		a := before(20, guilty...)
		for i := range 6 {
			a.parts[i].Medium, a.parts[i].rank = true, rankMedium
			a.parts[i].item = 10 + i
		}
		a.parts[0].rank, a.parts[0].item = rankUnread, 30
		want := []int{0}
		if guilty == nil {
			a.media, want = 5, []int{1}
		}
		if v, found, err := a.find(); v != Found || !slices.Equal(found, want) || err != nil {
			t.Errorf("%v is refused: %v %v, %v", guilty, v, found, err)
		}
	}
}

// TestWithKind: where very many of a kind are found, the rest of that kind goes, too, and nothing else.
func TestWithKind(t *testing.T) {
	s := &search{parts: []Part{{Tool: "a"}, {}, {Medium: true}, {Tool: "b"}, {Medium: true}}, order: []int{0, 1, 2, 3, 4}}
	for _, c := range []struct{ found, want []int }{{[]int{3}, []int{3, 0}}, {[]int{4}, []int{4, 2}}, {[]int{1}, []int{1}}, {[]int{3, 4}, []int{3, 4}}} {
		if got := s.withKind(c.found, 3); !slices.Equal(got, c.want) {
			t.Errorf("with %v: %v, want %v", c.found, got, c.want)
		}
	}
}

// TestLarge: a request that is refused twice as it is, and not without all that can be left out, is too large.
func TestLarge(t *testing.T) {
	for _, c := range []struct {
		name string
		api  *api
		want Verdict
	}{{"taken", before(5), Passed}, {"for its size", before(5, 2), Size}} {
		if v, err := Large(c.api.parts, c.api.ask); v != c.want || err != nil || c.api.asks > 2 {
			t.Errorf("%s: %v, %v after %d requests", c.name, v, err, c.api.asks)
		}
	}
	a := before(5)
	a.always = true
	if v, err := Large(a.parts, a.ask); v != Unknown || err != nil {
		t.Errorf("whatever is sent: %v, %v", v, err)
	}
	for fails := 1; fails < 3; fails++ {
		a := before(5, 2)
		a.fails = fails
		if _, err := Large(a.parts, a.ask); !errors.Is(err, errLost) {
			t.Errorf("lost at request %d: %v", fails, err)
		}
	}
}

// TestFindIsLeast: of any parts that an API refuses, up to as many as are looked for, just these are found, with a bound on
// how often it answers; those beyond are found with others, and the request is taken then.
func TestFindIsLeast(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	for range 2000 {
		n := 2 + r.IntN(400)
		a := before(n)
		for range 1 + r.IntN(3) {
			if k := r.IntN(n - 1); !slices.Contains(a.guilty, k) {
				a.guilty = append(a.guilty, k)
			}
		}
		v, found, err := a.find()
		slices.Sort(found)
		slices.Sort(a.guilty)
		if _, refused := a.refuses(found, false); v != Found || err != nil || refused {
			t.Fatalf("%d parts, of which %v are refused: %v %v, %v", n, a.guilty, v, found, err)
		}
		if !slices.Equal(found, a.guilty) || a.asks > maxAsks || a.taken > maxTaken {
			t.Errorf("%d parts, of which %v are refused: %v after %d requests, %d taken", n, a.guilty, found, a.asks, a.taken)
		}
	}
}

// TestFindDespiteFlukes: an API that refuses so many of its requests at random, whatever is in them, has innocent parts taken
// out seldom, and of a request with nothing in it that it refuses otherwise hardly ever.
func TestFindDespiteFlukes(t *testing.T) {
	const runs = 3000
	for _, c := range []struct {
		flaky  float64
		guilty bool
		wrong  int // searches, at most
	}{{0.05, true, 15}, {0.2, true, 180}, {0.2, false, 1}, {0.3, false, 1}, {0.5, false, 45}} {
		wrong, looked := 0, 0
		for i := range runs {
			a := before(200)
			a.flaky, a.rand = c.flaky, rand.New(rand.NewPCG(5, uint64(i)))
			if c.guilty {
				a.guilty = []int{i % 190}
			} else if a.rand.Float64() >= c.flaky {
				continue // it was taken at first
			}
			v, found, err := a.find()
			if err != nil {
				t.Fatal(err)
			}
			if looked++; v == Size || v == Found && !slices.Equal(found, a.guilty) {
				wrong++
			}
		}
		if wrong > c.wrong || looked == 0 {
			t.Errorf("%v at random, guilty %v: %d of %d are wrong", c.flaky, c.guilty, wrong, looked)
		}
	}
}

// TestFindMany: a request that many parts spoil is taken after some searches, each of which begins without what the former found.
func TestFindMany(t *testing.T) {
	for _, n := range []int{maxFound, maxFound + 1, 30} {
		a := before(300)
		for i := range n {
			a.guilty = append(a.guilty, 7*i)
		}
		gone := []int{}
		for range 8 {
			a.asks = 0
			v, found, err := Find(a.parts, Answer{}, func(out []int, filled bool) (Answer, error) { return a.ask(append(slices.Clone(gone), out...), filled) })
			if v == Passed {
				break
			}
			if v != Found || err != nil || len(found) == 0 || a.asks > maxAsks+5 {
				t.Errorf("%d are refused: %v, %d found, %v after %d requests", n, v, len(found), err, a.asks)
			}
			gone = append(gone, found...)
		}
		if _, refused := a.refuses(gone, false); refused || len(gone) > 7*n {
			t.Errorf("%d are refused: %d are out, and it is refused: %v", n, len(gone), refused)
		}
	}
}

// TestFindStops: where an API does not answer, nothing is found, whenever that is.
func TestFindStops(t *testing.T) {
	for _, named := range []bool{false, true} {
		for fails := 1; ; fails++ {
			a := before(50, 20, 40)
			a.fails = fails
			if named {
				a.places = func(in []int) ([]int, bool) { return append([]int{3}, in...)[min(a.asks, 1):][:min(len(in), 1)], false }
			}
			v, found, err := a.find()
			if a.asks < fails { // it was done before
				if v != Found || fmt.Sprint(found) != "[20 40]" && fmt.Sprint(found) != "[40 20]" {
					t.Errorf("%v %v, %v", v, found, err)
				}
				break
			}
			if v == Found && len(found) > 0 || !errors.Is(err, errLost) {
				t.Errorf("lost at request %d: %v %v, %v", fails, v, found, err)
			}
		}
	}
}
