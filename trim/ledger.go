package trim

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"unsafe"

	"github.com/tidemark-ai/tidemark"
)

// ledger decides over the whole live part: which results have a call, which calls have a result, which lines have
// nothing left, and which line follows which. The messages are those that the API gets: lines of one role that follow
// each other are one message, and so are replies of one id, at the place of the first
// (https://docs.anthropic.com/en/api/messages).
type ledger struct {
	room   room
	spill  *spill
	err    error
	chains map[uint64]*chain
	called table[struct{}] // calls, that none comes twice
	ids    table[int32]    // messages by the id of the reply, and the chain
	kept   table[struct{}]
	gone   table[parent]
	added  []added // lines to write, in order
}

// maxChains bounds side chains that are paired apart; lines of further ones are paired together.
const maxChains = 4096

// chain is one conversation.
type chain struct {
	key   uint64
	last  int32      // the last message, from 0; -1 for none
	ends  [2]message // of the last two messages, each at its number modulo 2
	role  flags      // of the last message: isAssistant or 0
	calls map[uint64]call
	open  open
	now   open // while the messages are gone through
}

// message is the last line of a message: of a reply, the last that stands before the reply behind it.
type message struct {
	line, end int64
	uuid      uint64
}

// open says whether a loop of tools is under way, and since which place no person has said anything.
type open struct {
	since int64
	yes   bool
}

// call is a call of a tool in one of the last two messages, that has no result yet.
type call struct {
	id      span
	message int32
}

// openCall is what an open call takes in a map, in bytes.
const openCall = 80

// parent is what a line that goes says of the line before it.
type parent struct {
	hash uint64
	name span
}

// added is a result to write for a call without one, behind a line.
type added struct {
	line, at int64 // the line begins and ends there
	uuid     uint64
	id       span
}

const (
	itemGoes  byte = 0
	itemStays byte = 1
)

func newLedger(s *spill) *ledger { return &ledger{spill: s} }

// decide goes through the plan until the decisions hold.
func (l *ledger) decide(ctx context.Context, chunks []*chunk) error {
	l.openLoops(chunks)
	for try := 1; ; try++ {
		if err := l.pair(ctx, chunks); err != nil {
			return err
		}
		again := false
		for _, c := range l.chains {
			again = again || c.now.yes != c.open.yes
		}
		if !again || try == maxTries {
			break
		}
		for _, c := range l.chains {
			c.open = c.now
		}
	}
	l.answerCalls()
	return l.err
}

// maxTries bounds how often the decisions are made anew: what goes for want of a call may close a loop, whose thinking
// then goes too.
const maxTries = 4

// chainOf returns the conversation that a line belongs to.
func (l *ledger) chainOf(h *head, c *chunk) *chain {
	key := uint64(0)
	if h.flags&isSide != 0 {
		key = h.agent ^ 0x5DEECE66D | 2
	}
	if c.some {
		key = ^key
	}
	ch := l.chains[key]
	if ch == nil && len(l.chains) >= maxChains {
		key = 2
		ch = l.chains[key]
	}
	if ch == nil {
		ch = &chain{key: key, last: -1}
		l.chains[key] = ch
	}
	return ch
}

// mix makes a key of an id that holds for one chain.
func (c *chain) mix(hash uint64) uint64 { return mix(c.key, hash) }

func mix(chain, hash uint64) uint64 { return max(1, hash^chain*0x9E3779B97F4A7C15) }

// thinks reports whether thinking stays in a line: in a loop of tools that is under way the API wants it back
// (https://docs.anthropic.com/en/docs/build-with-claude/extended-thinking).
func (c *chain) thinks(h *head) bool {
	return h.flags&isPinned != 0 || c.open.yes && h.start >= c.open.since && h.flags&isAssistant != 0
}

// walk calls line for every line that has a head, with its ops to be read.
func (l *ledger) walk(ctx context.Context, chunks []*chunk, line func(c *chunk, h *head, ops *decoder) error) error {
	heads, ops := &decoder{}, &decoder{}
	for _, c := range chunks {
		if err := ctx.Err(); err != nil {
			return err
		}
		l.spill.decode(heads, c.heads, c.from, &l.err)
		l.spill.decode(ops, c.ops, c.from, &l.err)
		var h head
		for !heads.done() && l.err == nil {
			heads.head(&h)
			if err := line(c, &h, ops); err != nil {
				return err
			}
		}
	}
	return l.err
}

// each calls visit for the ops of a line that count in it.
func (d *decoder) each(h *head, visit func(o *op)) {
	if h.flags&hasOps == 0 {
		return
	}
	skip := false
	o := &d.now
	for {
		d.op(o)
		switch {
		case o.kind == opEnd:
			return
		case o.kind == opOpen:
			skip = !h.counts(part(o.what))
		case o.kind == opClose:
			skip = false
		case !skip:
			visit(o)
		}
	}
}

// counts reports whether a part of the line counts.
func (h *head) counts(p part) bool {
	switch p {
	case partCopy:
		return h.flags&(hasWhole|isProgress) != hasWhole
	case partData:
		return h.flags&(hasWhole|isProgress) == isProgress
	}
	return p == h.list
}

// openLoops finds out which conversations end within a loop of tools, as the log stands.
func (l *ledger) openLoops(chunks []*chunk) {
	l.chains = map[uint64]*chain{}
	_ = l.walk(context.Background(), chunks, func(c *chunk, h *head, ops *decoder) error {
		text, result, calls := h.flags&hasString != 0, false, false
		ops.each(h, func(o *op) {
			text = text || o.kind == opKept
			result = result || o.kind == opResult
			calls = calls || o.kind == opCall
		})
		if h.flags&isMessage != 0 {
			l.chainOf(h, c).now.add(h, text, result, calls)
		}
		return nil
	})
	for _, c := range l.chains {
		c.open = c.now
	}
}

// add goes on over one line, of which is told what it holds that stays.
func (o *open) add(h *head, text, result, calls bool) {
	switch {
	case h.flags&isAssistant != 0 && calls:
		o.yes = true
	case h.flags&isAssistant != 0 && text:
		o.yes = false
	case h.flags&isAssistant == 0 && text && h.flags&isMeta == 0:
		o.yes, o.since = false, h.end()
	case h.flags&isAssistant == 0 && result:
		o.yes = true
	}
}

// pair goes through the messages in order.
func (l *ledger) pair(ctx context.Context, chunks []*chunk) error {
	l.room, l.called, l.ids, l.kept, l.gone = room{}, table[struct{}]{}, table[int32]{}, table[struct{}]{}, table[parent]{}
	l.added = l.added[:0]
	for _, c := range l.chains {
		c.last, c.role, c.now, c.calls = -1, 0, open{}, map[uint64]call{}
	}
	for _, c := range chunks {
		c.lines, c.items = c.lines[:0], c.items[:0]
	}
	return l.walk(ctx, chunks, func(c *chunk, h *head, ops *decoder) error {
		var up parent
		goes := h.flags&(isHistory|isQueue) != 0
		if h.flags&isMessage != 0 {
			stays := l.message(c, h, ops, &up)
			c.lines = append(c.lines, stays)
			goes = stays == itemGoes
		} else {
			ops.each(h, func(o *op) { up.note(o) })
		}
		if cap(c.items) > maxItems {
			return fmt.Errorf("line at byte %d: more than %d results and calls: %w", h.start, maxItems, tidemark.ErrTooLarge)
		}
		if h.uuid == 0 || l.err != nil {
			return l.err
		}
		if goes {
			return l.room.take(l.gone.put(h.uuid, up), 8+int(unsafe.Sizeof(up)))
		}
		return l.room.take(l.kept.put(h.uuid, struct{}{}), 8)
	})
}

// maxItems bounds the results and calls of one chunk of the log.
const maxItems = 4 << 20

func (p *parent) note(o *op) {
	if o.kind == opLink && link(o.what) == linkParent {
		p.hash, p.name = o.hash, o.span
	}
}

// message takes one line of a conversation and says whether it stays.
func (l *ledger) message(c *chunk, h *head, ops *decoder, up *parent) byte {
	ch := l.chainOf(h, c)
	role := h.flags & isAssistant
	thinks := ch.thinks(h)
	last := ch.last
	at := last
	if last < 0 || ch.role != role {
		at = last + 1
	}
	if h.id != 0 {
		if known := l.ids.get(ch.mix(h.id)); known != nil {
			at = *known
		}
	}
	text, result, calls := h.flags&hasString != 0, false, false
	stays, first := text, len(c.items)
	ops.each(h, func(o *op) {
		up.note(o)
		item := itemGoes
		switch o.kind {
		case opKept:
			text = true
		case opThink:
			stays = stays || thinks
			return
		case opEmpty:
			c.items = append(c.items, item)
		case opResult:
			if role == 0 && l.answers(ch, o.hash, at-1) {
				item, result = itemStays, true
			}
			c.items = append(c.items, item)
		case opCall:
			// A call that was written down when the reply behind its own had begun can have no result at its place.
			if role != 0 && o.hash != 0 && at+1 >= last && l.called.get(ch.mix(o.hash)) == nil {
				item, calls = itemStays, true
				l.take(l.called.put(ch.mix(o.hash), struct{}{}), 8)
				l.take(1, openCall)
				ch.calls[o.hash] = call{o.id, at}
			}
			c.items = append(c.items, item)
		}
	})
	if stays = stays || text || result || calls; !stays && h.flags&isPinned == 0 {
		return itemGoes
	}
	for i := first; i < len(c.items) && !stays; i++ {
		c.items[i] = itemStays
	}
	ch.now.add(h, text, result, calls)
	l.stand(ch, h, at, last)
	return itemStays
}

// answers reports whether a result belongs to a call of a message that has none yet, and gives it. Before the first
// message stands the last of those that a compaction kept, which may have been in the middle of a loop.
func (l *ledger) answers(ch *chain, hash uint64, message int32) bool {
	if hash == 0 {
		return false
	}
	if kept := l.chains[^ch.key]; message < 0 && kept != nil {
		ch, message = kept, kept.last
	}
	c, ok := ch.calls[hash]
	if !ok || c.message != message {
		return false
	}
	l.take(-1, openCall)
	delete(ch.calls, hash)
	return true
}

func (l *ledger) take(n, size int) {
	if err := l.room.take(n, size); err != nil && l.err == nil {
		l.err = err
	}
}

// stand makes the line a part of message at, which may be the one behind the last.
func (l *ledger) stand(ch *chain, h *head, at, last int32) {
	if at > last {
		l.settle(ch, at-1)
		ch.last, ch.role = at, h.flags&isAssistant
	}
	if at+1 >= last {
		ch.ends[at&1] = message{h.start, h.end(), h.uuid}
	}
	if h.id != 0 && l.ids.get(ch.mix(h.id)) == nil {
		l.take(l.ids.put(ch.mix(h.id), max(at, 0)), 12)
	}
}

// settle writes down a result for every call in the messages before one that has none: no further line can bring it.
func (l *ledger) settle(ch *chain, before int32) {
	for hash, c := range ch.calls {
		if c.message >= before {
			continue
		}
		if len(l.added) >= maxAdded && l.err == nil {
			l.err = fmt.Errorf("more than %d calls without a result: %w", maxAdded, tidemark.ErrTooLarge)
		}
		m := ch.ends[c.message&1]
		l.added = append(l.added, added{line: m.line, at: m.end, uuid: m.uuid, id: c.id})
		l.take(-1, openCall)
		delete(ch.calls, hash)
	}
}

// answerCalls lists a result for every call that has none, except those of the last message: the loop may go on.
func (l *ledger) answerCalls() {
	for _, ch := range l.chains {
		l.settle(ch, ch.last)
	}
	slices.SortFunc(l.added, func(a, b added) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.id.from, b.id.from)) })
}

// maxAdded bounds the results that are made.
const maxAdded = 100_000

// ancestor returns the name, as it stands in the log, of the nearest line that stays, going up from a line by its hash.
// It is empty when there is none.
func (l *ledger) ancestor(hash uint64) (uint64, span) {
	for range maxClimb {
		p := l.gone.get(hash)
		if p == nil || p.hash == 0 {
			return 0, span{}
		}
		if l.kept.get(p.hash) != nil {
			return p.hash, p.name
		}
		hash = p.hash
	}
	return 0, span{}
}

// maxClimb bounds the way up, which may be a circle.
const maxClimb = 100_000
