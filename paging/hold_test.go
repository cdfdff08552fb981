package paging

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
)

// holding is a pager of which one page is held, with reads of files that nothing reads again.
type holding struct {
	*testing.T
	p    *Pager
	all  []Message
	held bool
}

func newHolding(t *testing.T, o Options) *holding {
	t.Helper()
	h := &holding{T: t, held: true}
	h.p = h.pager(o)
	return h
}

func (h *holding) pager(o Options) *Pager {
	h.Helper()
	p, err := New(o)
	if err != nil {
		h.Fatal(err)
	}
	p.Hold(func(g *Page) bool { return h.held && g.ID == "r2" })
	return p
}

// reads makes requests that read a file each.
func (h *holding) reads(from, n int) {
	h.Helper()
	s := &Scanner{Tools: DefaultTools()}
	for i := from; i < from+n; i++ {
		var st Step
		text := strings.Repeat("tide ", 300)
		if i == 2 {
			text = strings.Repeat(text, 4) // alone, it is worth a break of the prefix
		}
		for _, raw := range []string{
			fmt.Sprintf(`{"role":"assistant","content":[{"type":"tool_use","id":"r%d","name":"Read","input":{"file_path":"f%d"}}]}`, i, i),
			fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"r%d","content":"%s%d"}]}`, i, text, i),
		} {
			m, err := s.Message([]byte(raw))
			if err != nil {
				h.Fatal(err)
			}
			st.Append = append(st.Append, m)
		}
		h.all = append(h.all, st.Append...)
		if _, err := h.p.Step(st); err != nil {
			h.Fatal(err)
		}
	}
}

func outOf(p *Pager) (ids []string) {
	for _, g := range p.Stubs() {
		ids = append(ids, g.ID)
	}
	return ids
}

// TestHeldLeavesLater: what its owner held leaves soon after he no longer does, by each policy, as it does with a pager
// that was built anew from what is out. tau is 2.
func TestHeldLeavesLater(t *testing.T) {
	for _, policy := range some(t, Policies()) {
		for _, window := range []tidemark.Tokens{0, 12_000} {
			t.Run(fmt.Sprintf("%s window %d", policy, window), func(t *testing.T) {
				o := Options{Policy: policy, Tau: 2, Window: window}
				h := newHolding(t, o)
				h.reads(0, 40)
				if out := outOf(h.p); slices.Contains(out, "r2") || len(out) < 20 {
					t.Fatalf("out while r2 is held: %q", out)
				}
				was := outOf(h.p)
				anew := &holding{T: t, held: true}
				anew.p = anew.pager(o)
				if _, err := anew.p.Step(Step{Append: h.all, Idle: true}); err != nil {
					t.Fatal(err)
				}
				anew.p.Leave(func(g *Page) bool { return slices.Contains(was, g.ID) })
				for _, l := range []*holding{h, anew} {
					l.held = false
					l.reads(40, 30)
					if out := outOf(l.p); !slices.Contains(out, "r2") {
						t.Errorf("30 requests later r2 is still in, out are %d", len(out))
					}
				}
			})
		}
	}
}

// TestOutIsSettled: what is out is none of what may go, and saves nothing any more.
func TestOutIsSettled(t *testing.T) {
	h := newHolding(t, Options{Tau: 2})
	h.p.Hold(func(*Page) bool { return true })
	h.reads(0, 10)
	c := &h.p.costs
	if len(c.ready) < 3 {
		t.Fatalf("%d may go, want some beside the one that went", len(c.ready))
	}
	out := c.ready[0]
	out.stub = true
	h.p.settle()
	saved := 0
	for _, g := range c.ready {
		saved += g.frees()
	}
	if slices.Contains(c.ready, out) || c.saved != saved || c.first == out {
		t.Errorf("%d may go and save %d, want %d", len(c.ready), c.saved, saved)
	}
}

// TestHeldDoesNotCount: a page that stays is none that went, makes no batch pay, and is not told as one that leaves.
func TestHeldDoesNotCount(t *testing.T) {
	h := newHolding(t, Options{Tau: 2})
	h.reads(0, 40)
	if c, out := &h.p.costs, len(h.p.Stubs()); c.gone != out {
		t.Errorf("%d went, %d count", out, c.gone)
	}
	if !slices.ContainsFunc(h.p.costs.ready, func(g *Page) bool { return g.ID == "r2" }) {
		t.Fatal("what is held does not wait")
	}
	if ready, first, saved := h.p.free(); slices.ContainsFunc(ready, func(g *Page) bool { return g.ID == "r2" }) || first != nil && first.ID == "r2" || saved >= h.p.costs.saved {
		t.Errorf("of what may go %d are free, the first %v, and free %d bytes", len(ready), first, saved)
	}
	for _, b := range h.p.Fill(nil).Blocks {
		if b.Handle == "r2" && b.Next {
			t.Error("what is held is told as leaving next")
		}
	}
	h.p.Hold(func(*Page) bool { return true })
	out, acted := len(h.p.Stubs()), h.p.costs.acted
	h.reads(40, 40)
	if len(h.p.Stubs()) != out || h.p.costs.acted != acted {
		t.Errorf("with all held %d went, and the batch of request %d came", len(h.p.Stubs())-out, h.p.costs.acted)
	}
}
