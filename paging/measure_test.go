package paging

import (
	"testing"

	"github.com/tidemark-ai/tidemark"
)

// TestEmptyRequest: the sizes of requests at the bounds of a list: what two share ends with the bracket of the shorter one.
func TestEmptyRequest(t *testing.T) {
	p := bare(t, Options{})
	m := Message{Role: tidemark.User, Bytes: 10, Typed: true}
	for i, row := range []struct {
		st                   Step
		in, out, same, same2 int
	}{
		{Step{}, 2, 2, 0, 0},
		{Step{}, 2, 2, 2, 2},
		{Step{Append: []Message{m}}, 12, 12, 1, 1},
		{Step{Append: []Message{m}}, 23, 23, 11, 11},
		{Step{}, 23, 23, 23, 23},
		{Step{Cut: true, Keep: 2}, 23, 23, 23, 23},
		{Step{Cut: true, Keep: 1}, 12, 12, 11, 11},
		{Step{Cut: true, Keep: 1, Append: []Message{m, m}}, 34, 34, 11, 11},
		{Step{Cut: true, Keep: 1, Append: []Message{m}, Shared: 7}, 23, 23, 12 + 7, 12 + 7},
		{Step{Cut: true, Append: []Message{m}}, 12, 12, 1, 1},
		{Step{Cut: true}, 2, 2, 1, 1},
	} {
		d, err := p.Step(row.st)
		if err != nil || d.In != row.in || d.Out != row.out || d.Same != row.same || d.SameIn != row.same2 || d.Size != 0 || d.Zone != Normal {
			t.Errorf("request %d: %d and %d bytes, %d and %d as before, %v; want %+v", i, d.In, d.Out, d.Same, d.SameIn, err, row)
		}
	}
}

// TestFirstChange: what differs first is the first byte of the first message that stays in which something went or came back.
func TestFirstChange(t *testing.T) {
	p := bare(t, Options{})
	p.changed = map[place]change{{2, 50}: {was: true}, {2, 30}: {is: true}, {2, 70}: {is: true}, {1, 90}: {was: true, is: true}, {0, 5}: {}, {4, 1}: {is: true}, {3, 2}: {was: true}}
	for m, want := range map[int]place{5: {2, 30}, 3: {2, 30}, 2: {}, 1: {}} {
		for range 30 { // a map has no order
			if got, ok := p.firstChange(m); got != want || ok != (want != place{}) {
				t.Fatalf("of %d messages: %v, %v; want %v", m, got, ok, want)
			}
		}
	}
	delete(p.changed, place{2, 30})
	delete(p.changed, place{2, 50})
	if got, ok := p.firstChange(5); !ok || got != (place{2, 70}) {
		t.Errorf("%v, %v", got, ok)
	}
}

// TestOffset: where a value begins in a request hangs on what is out before it, also in its own message.
func TestOffset(t *testing.T) {
	p := bare(t, Options{})
	p.messages = make([]Message, 3)
	for _, n := range []int{100, 1000, 500} {
		p.out = p.out.push(n)
	}
	p.pages = []*Page{{Message: 0, at: 20, wire: 70, short: 10, stub: true}, {Message: 1, at: 30, wire: 100, short: 60, stub: true}, {Message: 1, at: 200, wire: 90, short: 60}, {Message: 1, at: 400, wire: 90, short: 40, stub: true},
		{Message: 2, at: 7, wire: 90, short: 40, stub: true}}
	p.first = []int{0, 1, 4}
	for at, want := range map[place]int{{0, 20}: 21, {1, 30}: 100 + 2 + 30, {1, 200}: 100 + 2 + 200 - 40, {1, 400}: 100 + 2 + 400 - 40, {1, 500}: 100 + 2 + 500 - 40 - 50, {2, 7}: 1100 + 3 + 7, {2, 8}: 1100 + 3 + 8 - 50} {
		if got := p.offset(at); got != want {
			t.Errorf("%v begins at %d, want %d", at, got, want)
		}
	}
}
