package paging

import (
	"crypto/sha256"
	"slices"
	"strconv"

	"github.com/tidemark-ai/tidemark/internal/json"
)

// Page is a part of a message that is, or may be, out of the context. It must not be changed.
type Page struct {
	Part    Part
	ID      string // of the call, "" of an image
	Call    Call   // what is known of it
	Read    bool   // a read that can be repeated; else its result is garbage
	Message int    // where it stands
	Block   int    // of the message's content, from 0
	Hash    [sha256.Size]byte
	Size    int    // bytes: of a result's text, of an input's compact JSON, of an image as decoded (0 where it is a URL)
	Lines   int    // of a result that is text
	Media   string // of an image: its media type, or image or document where that is not told
	Err     bool

	key      *key
	born     int   // messages of role user up to the one that holds it
	epoch    int   // of its file
	stub     bool  // it is out
	answered bool  // of an input: the call has a result
	waits    bool  // for that
	said     *said // the turn of which named tells
	named    bool
	spared   int // 1 more than the turn that kept it for a hint
	codes    *coded
	tick     int  // the clock when it came
	ripe     bool // it may go when that pays
	faulted  bool // its eviction has been a fault
	released bool // of fifo and lru: the model is done with it
	anchored bool // it stays, since the model said so
	stays    *stayed
	at, wire int
	common   int // first bytes of its stub that are as they were
	inline   inline
	short    int // bytes of its stub
}

// Stub is the text that stands for a page that is out; handle says how to get it back, "" for
// nothing but reading again. For a result it is the content, for an image the text of a text block. What
// stands for an input is an object: see [Tools.StubInput]. The names of tools and files cannot end its line or its
// bracket; see StubName.
func (p *Page) Stub(handle string) string {
	if p.Part == Image {
		return p.imageStub(handle)
	}
	what := StubName(p.Call.Tool)
	if what == "" {
		what = "result"
	}
	if p.Read {
		what += " " + StubName(p.Call.Path)
		if r := StubName(p.Call.Range.String()); r != "" {
			what += " " + r
		}
	}
	size := " (" + strconv.Itoa(p.Size) + " bytes, " + strconv.Itoa(p.Lines) + " lines)."
	if handle != "" {
		handle = " " + handle
	}
	if p.Read {
		return pagedHead + what + size + " Re-read if needed." + handle + "]"
	}
	return clearHead + what + size + handle + "]"
}

// unpin lets the copies of a range go. They are looked at again with this request.
func (p *policy) unpin(k *key) {
	p.now.Unpin = append(p.now.Unpin, k.pinned[0])
	p.again = append(p.again, k.pinned...)
	set(&p.history, &k.pinned, nil)
	set(&p.history, &k.armed, nil)
	i := slices.Index(k.file.pins, k)
	set(&p.history, &k.file.pins, slices.Delete(slices.Clone(k.file.pins), i, i+1))
}

// pin keeps a copy of a range; the first one that is kept is told.
func (p *policy) pin(g *Page) {
	k := g.key
	if len(k.pinned) == 0 {
		p.now.Pin = append(p.now.Pin, g)
		set(&p.history, &k.file.pins, append(k.file.pins, k))
		set(&p.history, &p.tight, append(p.tight, k))
		set(&p.history, &k.armed, nil)
	}
	set(&p.history, &k.pinned, append(k.pinned, g))
}

// evict puts a page out by a decision.
func (p *policy) evict(g *Page) {
	if g.stub || p.holds(g) {
		return
	}
	p.leave(g)
	d := &p.now
	switch {
	case g.Part == Input:
		d.Input = append(d.Input, g)
	case g.Part == Image:
		d.Image = append(d.Image, g)
	case g.Read:
		d.Evict = append(d.Evict, g)
	default:
		d.GC = append(d.GC, g)
	}
}

// leave puts a page out.
func (h *history) leave(g *Page) {
	set(h, &g.stub, true)
	h.shorten(g)
	h.out.add(g.Message, g.short-g.wire)
	set(h, &h.inline, h.inline.plus(g.inline, -1))
	h.touch(g, true)
	h.undo = append(h.undo, func() {
		h.out.add(g.Message, g.wire-g.short)
		h.touch(g, false)
	})
	h.stubs = append(h.stubs, g)
	if !g.Read {
		return
	}
	k := g.key
	set(h, &k.evicted, g)
	if g.epoch == k.file.epoch && k.seen == g.epoch {
		set(h, &k.full, k.full-1)
	}
}

// large reports whether a page has the least size from which it may go.
func (p *policy) large(g *Page) bool { return g.Part != Result || g.Size >= p.min }

// shorten measures the stub of a page.
func (h *history) shorten(g *Page) {
	if g.short == 0 {
		g.short = len(json.AppendString(nil, g.Stub("")))
	}
}

// touch notes that a page went out with this request, or came back because the history was cut.
func (h *history) touch(g *Page, stub bool) {
	if h.changed == nil {
		h.changed = map[place]change{}
	}
	at := place{g.Message, g.at}
	c, known := h.changed[at]
	if !known {
		c.was, c.common = !stub, g.common
	}
	c.is = stub
	h.changed[at] = c
}
