package proxy

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/paging"
	"github.com/tidemark-ai/tidemark/proxy/body"
)

// still is a runtime whose time stands.
type still struct{ tidemark.Runtime }

func (still) Now() time.Time { return time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC) }

// chainOf are messages one behind the other in a tree, each with its link.
func chainOf(t *testing.T, tr *tree, texts ...string) (path []*node, sums [][sha256.Size]byte) {
	t.Helper()
	at := tr.root
	for i, s := range texts {
		n, err := tr.join(at, tidemark.NewText([]tidemark.Role{tidemark.User, tidemark.Assistant}[i%2], s))
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256([]byte(s))
		tr.links[link{at, sum}] = n
		path, sums, at = append(path, n), append(sums, sum), n
	}
	return path, sums
}

// TestBoundsOfTree: a conversation has so many messages and no more, of which those that are there go on; a request brings so many
// that were never seen; and what only makes the work faster is forgotten beyond a bound.
func TestBoundsOfTree(t *testing.T) {
	tr := newTree(Config{Key: "k", Runtime: still{}})
	for i := range maxNodes - 1 {
		tr.nodes[tidemark.Hash(fmt.Sprint(i))] = nil
	}
	last, err := tr.join(tr.root, tidemark.NewText(tidemark.User, "a"))
	if err != nil {
		t.Fatalf("the last one that there is room for: %v", err)
	}
	if _, err := tr.join(tr.root, tidemark.NewText(tidemark.User, "b")); !errors.Is(err, tidemark.ErrTooLarge) {
		t.Errorf("one more: %v", err)
	}
	if again, err := tr.join(tr.root, tidemark.NewText(tidemark.User, "a")); again != last || err != nil {
		t.Errorf("one that is there: %v", err)
	}

	it, err := body.NewItem([]byte(`{"role":"user","content":"q"}`))
	if err != nil {
		t.Fatal(err)
	}
	for more, want := range []error{nil, tidemark.ErrTooLarge} {
		r := &body.Request{Items: make([]body.Item, maxFresh+more)}
		for i := range r.Items {
			r.Items[i] = it
		}
		tr := newTree(Config{Key: "k", Runtime: still{}})
		path, sums, err := tr.place(r)
		if !errors.Is(err, want) || want == nil && (len(path) != maxFresh || len(sums) != maxFresh || path[maxFresh-1].depth != maxFresh) {
			t.Errorf("%d messages: %d are placed, %v", len(r.Items), len(path), err)
		}
	}

	tr = newTree(Config{Key: "k", Runtime: still{}})
	for i := range maxLinks {
		tr.links[link{sum: [sha256.Size]byte{byte(i), byte(i >> 8), byte(i >> 16)}}] = last
	}
	for _, want := range []int{maxLinks + 1, 1} {
		if _, _, err := tr.place(&body.Request{Items: []body.Item{it}}); err != nil || len(tr.links) != want {
			t.Errorf("%d links are left, want %d, %v", len(tr.links), want, err)
		}
	}
}

// TestRunsOfPath: what only counts down goes with the run that it stands behind, but for the newest message; other system
// messages of the run stay.
func TestRunsOfPath(t *testing.T) {
	path := func(s string) (out []*node) {
		for i := range s {
			n := &node{role: tidemark.User}
			if s[i] != 'u' {
				n = &node{role: tidemark.System, passing: s[i] == 'p', foreign: s[i] == 'f'}
			}
			out = append(out, n)
		}
		return out
	}
	for _, row := range []struct {
		path   string
		to, at int
	}{{"upu", 0, 1}, {"up", 0, 0}, {"uppu", 0, 2}, {"upp", 0, 1}, {"uuu", 0, 0}, {"usu", 0, 0}, {"upuu", 1, 1}, {"u", 0, 0}} {
		if at := withPassing(path(row.path), row.to); at != row.at {
			t.Errorf("%s to %d: %d, want %d", row.path, row.to, at, row.at)
		}
	}
	for _, row := range []struct {
		from, to int
		want     []int
	}{{0, 6, []int{1, 4, 6}}, {1, 4, []int{1, 4}}, {2, 3, nil}, {4, 4, []int{4}}} {
		if got := instructions(path("uspfsus"), row.from, row.to); !slices.Equal(got, row.want) {
			t.Errorf("of %d to %d %v stay, want %v", row.from, row.to, got, row.want)
		}
	}
	for role, want := range map[tidemark.Role][2]bool{tidemark.User: {}, tidemark.Assistant: {}, tidemark.System: {true, false}, "oracle": {false, true}} {
		if n := (&node{role: role}); n.instructs() != want[0] || n.bars() != want[1] {
			t.Errorf("%s instructs %t, bars %t", role, n.instructs(), n.bars())
		}
		if n := (&node{role: role, foreign: true}); n.instructs() || !n.bars() {
			t.Errorf("%s of an unknown form instructs %t, bars %t", role, n.instructs(), n.bars())
		}
	}
}

// TestTaken: a track that begins in another takes over the steps that its history has, and those that are stored, up to the first
// that is neither.
func TestTaken(t *testing.T) {
	tr := newTree(Config{Key: "k", Runtime: still{}})
	path, _ := chainOf(t, tr, "a", "b", "c", "d")
	other, _ := chainOf(t, tr, "a", "instead")
	base := newTrack(0)
	base.steps = []*step{{nodes: path[:1], stored: true}, {nodes: path[1:3]}, {nodes: path[3:], stored: true}, {nodes: other[1:]}}
	for _, row := range []struct {
		base *track
		at   *node
		want int
	}{{nil, path[3], 0}, {base, tr.root, 1}, {base, path[0], 1}, {base, path[1], 1}, {base, path[2], 3}, {base, path[3], 3}, {base, other[1], 1}} {
		if got := taken(row.base, row.at); got != row.want {
			t.Errorf("at depth %d: %d, want %d", row.at.depth, got, row.want)
		}
	}
	base.steps[1].stored = true
	if got := taken(base, other[1]); got != 4 {
		t.Errorf("where all else is stored: %d", got)
	}
}

// TestFork: a track takes over what was made of the messages that it shares, and not more; those that hang one on another too deep
// begin anew. It does not take the place of who ends there already.
func TestFork(t *testing.T) {
	tr := newTree(Config{Key: "k", Runtime: still{}})
	path, _ := chainOf(t, tr, "a", "b", "c", "d")
	base, err := tr.fork(nil, 0, tr.root)
	if err != nil || base.base != nil || base.n != 0 || base.name != "" || len(tr.leaves) != 0 {
		t.Fatalf("the first: %+v, %v", base, err)
	}
	tr.moveTo(base, path[3])
	other, _ := chainOf(t, tr, "a", "b", "instead")
	base.sour = true
	base.edits = []edit{{from: path[0], to: path[0]}, {from: path[1], to: path[1]}, {from: path[0], to: path[2]}, {from: other[2], to: other[2]}}
	for _, row := range []struct {
		at    *node
		edits []int // by their last message
	}{{path[0], []int{0}}, {path[1], []int{0, 1}}, {other[2], []int{0, 1, 3}}, {path[3], []int{0, 1, 2}}} {
		n := len(tr.tracks)
		f, err := tr.fork(base, 5, row.at)
		if err != nil || f.base != base || f.after != 5 || f.from != row.at || f.leaf != row.at || !f.sour || f.n != n || f.name != fmt.Sprint("t", n+1) || tr.tracks[n] != f {
			t.Errorf("at depth %d: %+v, %v", row.at.depth, f, err)
		}
		var want []edit
		for _, i := range row.edits {
			want = append(want, base.edits[i])
		}
		if !slices.EqualFunc(f.edits, want, func(a, b edit) bool { return a.from == b.from && a.to == b.to }) {
			t.Errorf("at depth %d it has %d edits, want %v", row.at.depth, len(f.edits), row.edits)
		}
		if owner := tr.leaves[row.at]; (owner == f) != (row.at != path[3]) {
			t.Errorf("at depth %d ends track %d", row.at.depth, owner.n)
		}
	}
	at := base
	for deep := 1; deep <= maxForks; deep++ {
		if at, err = tr.fork(at, 0, path[0]); err != nil || (at.base == nil) != (deep == maxForks) {
			t.Fatalf("%d deep: on another %t, %v", deep, at.base != nil, err)
		}
	}
}

// TestPagersRest: of many tracks the pager that was used least lately is let go, and no other.
func TestPagersRest(t *testing.T) {
	tr := newTree(Config{Key: "k", Runtime: still{}})
	for i := range maxPagers + 3 {
		tr.tracks = append(tr.tracks, newTrack(i))
	}
	wake := func(i int) {
		o := tr.tracks[i]
		p, err := paging.New(paging.Options{})
		if err != nil {
			t.Fatal(err)
		}
		o.pager, o.memo[&paging.Page{}], o.works.known = p, memoized{}, 1
		tr.rest(o)
	}
	asleep := func() (out []int) {
		for i, o := range tr.tracks {
			if (o.pager == nil) != (len(o.memo) == 0) || (o.pager == nil) != (o.works.known == 0) {
				t.Errorf("track %d has a part of it: %+v", i, o)
			}
			if o.pager == nil {
				out = append(out, i)
			}
		}
		return out
	}
	for i := range maxPagers {
		wake(i)
	}
	tr.rest(tr.tracks[0]) // it is used again
	if got := asleep(); !slices.Equal(got, []int{16, 17, 18}) {
		t.Errorf("without a pager are %v", got)
	}
	wake(17)
	wake(16)
	if got := asleep(); !slices.Equal(got, []int{1, 2, 18}) {
		t.Errorf("without a pager are %v", got)
	}
}

// TestMoveTo: a track ends at its newest message, and has those behind the last one that has an owner.
func TestMoveTo(t *testing.T) {
	tr := newTree(Config{Key: "k", Runtime: still{}})
	path, _ := chainOf(t, tr, "a", "b", "c")
	one, two := newTrack(0), newTrack(1)
	one.leaf, two.leaf = tr.root, path[0]
	tr.moveTo(one, path[0])
	tr.moveTo(two, path[2])
	if tr.leaves[path[0]] != one || tr.leaves[path[2]] != two || len(tr.leaves) != 2 || path[0].owner != one || path[1].owner != two || path[2].owner != two || two.leaf != path[2] {
		t.Errorf("%v", tr.leaves)
	}
	if tr.moveTo(one, path[2]); tr.leaves[path[2]] != one || len(tr.leaves) != 1 || path[2].owner != two {
		t.Errorf("%v", tr.leaves)
	}
}

// TestTakeBack: a request that the API refused is forgotten with the messages that only it had, unless something stands on it.
func TestTakeBack(t *testing.T) {
	for _, row := range []struct {
		name   string
		change func(tr *tree, x *Exchange, path []*node)
		stays  bool // all of it
		leaf   int  // else the messages that the track has then
	}{
		{"nothing stands on it", func(*tree, *Exchange, []*node) {}, false, 2},
		{"one of two at once ended", func(_ *tree, x *Exchange, _ []*node) { x.step.busy = 1 }, false, 2},
		{"two are at once", func(_ *tree, x *Exchange, _ []*node) { x.step.busy = 2 }, true, 0},
		{"it is stored", func(_ *tree, x *Exchange, _ []*node) { x.step.stored = true }, true, 0},
		{"it was answered", func(_ *tree, x *Exchange, _ []*node) { x.step.usage = &tidemark.Usage{} }, true, 0},
		{"another came behind", func(_ *tree, x *Exchange, _ []*node) { x.track.steps = append(x.track.steps, &step{}) }, true, 0},
		{"the track went on", func(_ *tree, x *Exchange, path []*node) { x.track.leaf = path[1] }, true, 0},
		{"the track has none", func(_ *tree, x *Exchange, _ []*node) { x.track.steps = nil }, true, 0},
		{"a track stands on it", func(tr *tree, x *Exchange, _ []*node) { tr.tracks = append(tr.tracks, &track{base: x.track, after: 2}) }, true, 0},
		{"a track stands before it", func(tr *tree, x *Exchange, _ []*node) { tr.tracks = append(tr.tracks, &track{base: x.track, after: 1}) }, false, 2},
		{"another's track stands elsewhere", func(tr *tree, _ *Exchange, _ []*node) { tr.tracks = append(tr.tracks, &track{after: 9}) }, false, 2},
		{"a message of it is stored", func(_ *tree, _ *Exchange, path []*node) { path[2].seq = 7 }, false, 3},
		{"a message of it is another's", func(_ *tree, _ *Exchange, path []*node) { path[2].owner = &track{} }, false, 3},
	} {
		tr := newTree(Config{Key: "k", Runtime: still{}})
		path, sums := chainOf(t, tr, "a", "b", "c", "d")
		base, err := tr.fork(nil, 0, tr.root)
		if err != nil {
			t.Fatal(err)
		}
		tr.moveTo(base, path[3])
		before, s := &step{nodes: path[:2]}, &step{n: 1, nodes: path[2:], release: []string{"r1"}, anchor: []string{"a1"}}
		base.steps, base.release, base.anchor, base.pager = []*step{before, s}, []string{"r2"}, []string{"a2"}, &paging.Pager{}
		x := &Exchange{track: base, step: s, path: path, sums: sums}
		row.change(tr, x, path)
		steps := len(base.steps)
		tr.takeBack(x)
		if row.stays {
			if len(base.steps) != steps || base.pager == nil || len(base.release) != 1 || len(tr.nodes) != 4 || len(tr.links) != 4 || path[3].owner != base {
				t.Errorf("%s: %d steps, %d messages", row.name, len(base.steps), len(tr.nodes))
			}
			continue
		}
		if !slices.Equal(base.steps, []*step{before}) || base.pager != nil || fmt.Sprint(base.release, base.anchor) != "[r1 r2] [a1 a2]" || tr.leaves[path[3]] != nil {
			t.Errorf("%s: %d steps, lets go %v, keeps %v", row.name, len(base.steps), base.release, base.anchor)
		}
		if base.leaf != path[row.leaf-1] || tr.leaves[base.leaf] != base || len(tr.nodes) != row.leaf || len(tr.links) != row.leaf || path[3].owner != nil || path[1].owner != base {
			t.Errorf("%s: %d messages, the newest is %d", row.name, len(tr.nodes), base.leaf.depth)
		}
	}
}

// TestTakeBackFork: a track that was made for a refused request goes with it, unless it is stored, or not the last, or another
// stands on it; who ended where it began ends there still.
func TestTakeBackFork(t *testing.T) {
	for _, row := range []struct {
		name   string
		at     int // messages that it shares
		change func(tr *tree, f *track)
		gone   bool
	}{
		{"in the middle", 1, func(*tree, *track) {}, true},
		{"at the end of another", 2, func(*tree, *track) {}, true},
		{"it is stored", 1, func(_ *tree, f *track) { f.log = "log" }, false},
		{"it has a request before", 1, func(_ *tree, f *track) { f.steps = append([]*step{{}}, f.steps...) }, false},
		{"another came behind", 1, func(tr *tree, _ *track) { tr.tracks = append(tr.tracks, newTrack(2)) }, false},
		{"another stands on it", 1, func(tr *tree, f *track) { tr.tracks[0].base = f }, false},
	} {
		tr := newTree(Config{Key: "k", Runtime: still{}})
		path, _ := chainOf(t, tr, "a", "b")
		base, err := tr.fork(nil, 0, tr.root)
		if err != nil {
			t.Fatal(err)
		}
		tr.moveTo(base, path[1])
		path, sums := chainOf(t, tr, append([]string{"a", "b"}[:row.at:row.at], "x", "y")...)
		f, err := tr.fork(base, 0, path[row.at-1])
		if err != nil {
			t.Fatal(err)
		}
		s := &step{nodes: path[row.at:]}
		f.steps = []*step{s}
		row.change(tr, f)
		tr.moveTo(f, path[row.at+1])
		n := len(tr.tracks)
		tr.takeBack(&Exchange{track: f, step: s, path: path, sums: sums})
		if gone := len(tr.tracks) < n; gone != row.gone || slices.Contains(tr.tracks, f) == gone || f.leaf != path[row.at-1] {
			t.Errorf("%s: of %d tracks %d are left, it ends at %d", row.name, n, len(tr.tracks), f.leaf.depth)
		}
		if owner := tr.leaves[path[row.at-1]]; row.at == 2 && owner != base || row.at == 1 && (owner == f) == row.gone || len(tr.nodes) != 2 {
			t.Errorf("%s: there ends %v, of %d messages", row.name, owner, len(tr.nodes))
		}
	}
}
