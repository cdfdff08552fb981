package trim

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/tidemark-ai/tidemark"
)

// ledger decides over the whole live part: which results have a call, which calls have a result, which lines have
// nothing left, and which line follows which. The messages are those that the API gets: lines of one role that follow
// each other are one message, and so are replies of one id, at the place of the first
// (https://docs.anthropic.com/en/api/messages).
type ledger struct {
	facts  []fact
	chains map[uint64]*chain
	called map[uint64]bool  // calls, that none comes twice
	ids    map[uint64]int32 // messages by the id of the reply, and the chain
	kept   map[uint64]bool
	gone   map[uint64]parent
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
	end  int64
	uuid uint64
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

// added is a result to write for a call without one, behind a line.
type added struct {
	at   int64 // where the line ends
	uuid uint64
	id   span
}

// decide goes through the facts until the decisions hold.
func (l *ledger) decide(ctx context.Context) error {
	l.openLoops()
	for try := 1; ; try++ {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		l.pair()
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
	if len(l.added) > maxAdded {
		return fmt.Errorf("more than %d calls without a result: %w", maxAdded, tidemark.ErrTooLarge)
	}
	return nil
}

// maxTries bounds how often the decisions are made anew: what goes for want of a call may close a loop, whose thinking
// then goes too.
const maxTries = 4

// chainOf returns the conversation that a line belongs to.
func (l *ledger) chainOf(f *fact) *chain {
	key := uint64(0)
	if f.flags&isSide != 0 {
		key = f.agent ^ 0x5DEECE66D | 2
	}
	if f.flags&isKept != 0 {
		key = ^key
	}
	ch := l.chains[key]
	if ch == nil && len(l.chains) >= maxChains {
		key = 2
		ch = l.chains[key]
	}
	if ch == nil {
		ch = &chain{key: key}
		l.chains[key] = ch
	}
	return ch
}

// mix makes a key of an id that holds for one chain.
func (c *chain) mix(hash uint64) uint64 { return mix(c.key, hash) }

func mix(chain, hash uint64) uint64 { return max(1, hash^chain*0x9E3779B97F4A7C15) }

// thinks reports whether thinking stays in a line: in a loop of tools that is under way the API wants it back
// (https://docs.anthropic.com/en/docs/build-with-claude/extended-thinking).
func (c *chain) thinks(f *fact) bool {
	return f.flags&isPinned != 0 || c.open.yes && f.start >= c.open.since && f.flags&isAssistant != 0
}

// openLoops finds out which conversations end within a loop of tools, as the log stands.
func (l *ledger) openLoops() {
	l.chains = map[uint64]*chain{}
	for i := range l.facts {
		f := &l.facts[i]
		if f.flags&isMessage == 0 {
			continue
		}
		text, result, calls := f.flags&hasString != 0, false, false
		for _, it := range f.items {
			text = text || it.kind == opKept
			result = result || it.kind == opResult
			calls = calls || it.kind == opCall
		}
		l.chainOf(f).now.add(f, text, result, calls)
	}
	for _, c := range l.chains {
		c.open = c.now
	}
}

// add goes on over one line, of which is told what it holds that stays.
func (o *open) add(f *fact, text, result, calls bool) {
	switch {
	case f.flags&isAssistant != 0 && calls:
		o.yes = true
	case f.flags&isAssistant != 0 && text:
		o.yes = false
	case f.flags&isAssistant == 0 && text && f.flags&isMeta == 0:
		o.yes, o.since = false, f.end
	case f.flags&isAssistant == 0 && result:
		o.yes = true
	}
}

// pair goes through the messages in order.
func (l *ledger) pair() {
	l.called, l.ids, l.kept, l.gone = map[uint64]bool{}, map[uint64]int32{}, map[uint64]bool{}, map[uint64]parent{}
	l.added = l.added[:0]
	for _, c := range l.chains {
		c.last, c.role, c.now, c.calls = -1, 0, open{}, map[uint64]call{}
	}
	for i := range l.facts {
		f := &l.facts[i]
		f.goes = f.flags&(isHistory|isQueue) != 0
		if f.flags&isMessage != 0 {
			f.goes = !l.message(f)
		}
		switch {
		case f.uuid == 0:
		case f.goes:
			l.gone[f.uuid] = f.up
		default:
			l.kept[f.uuid] = true
		}
	}
}

// message takes one line of a conversation and says whether it stays.
func (l *ledger) message(f *fact) bool {
	ch := l.chainOf(f)
	role, thinks, last := f.flags&isAssistant, ch.thinks(f), ch.last
	at := last
	if last < 0 || ch.role != role {
		at = last + 1
	}
	if known, ok := l.ids[ch.mix(f.id)]; ok {
		at = known
	}
	text, result, calls := f.flags&hasString != 0, false, false
	stays := text
	for i := range f.items {
		it := &f.items[i]
		it.stays = false
		switch it.kind {
		case opKept:
			text = true
		case opThink:
			it.stays = thinks
			stays = stays || thinks
		case opResult:
			if role == 0 && l.answers(ch, it.hash, at-1) {
				it.stays, result = true, true
			}
		case opCall:
			// A call that was written down when the reply behind its own had begun can have no result at its place.
			if role != 0 && it.hash != 0 && at+1 >= last && !l.called[ch.mix(it.hash)] {
				it.stays, calls = true, true
				l.called[ch.mix(it.hash)] = true
				ch.calls[it.hash] = call{it.id, at}
			}
		}
	}
	if stays = stays || text || result || calls; !stays {
		if f.flags&isPinned == 0 {
			return false
		}
		for i := range f.items {
			f.items[i].stays = true
		}
	}
	ch.now.add(f, text, result, calls)
	l.stand(ch, f, at, last)
	return true
}

// answers reports whether a result belongs to a call of a message that has none yet, and gives it. Before the first
// message stands the last of those that a compaction kept, which may have been in the middle of a loop.
func (l *ledger) answers(ch *chain, hash uint64, message int32) bool {
	if kept := l.chains[^ch.key]; message < 0 && kept != nil {
		ch, message = kept, kept.last
	}
	c, ok := ch.calls[hash]
	if !ok || c.message != message {
		return false
	}
	delete(ch.calls, hash)
	return true
}

// stand makes the line a part of message at, which may be the one behind the last.
func (l *ledger) stand(ch *chain, f *fact, at, last int32) {
	if at > last {
		l.settle(ch, at-1)
		ch.last, ch.role = at, f.flags&isAssistant
	}
	if at+1 >= last {
		ch.ends[at&1] = message{f.end, f.uuid}
	}
	if f.id != 0 {
		if _, known := l.ids[ch.mix(f.id)]; !known {
			l.ids[ch.mix(f.id)] = at
		}
	}
}

// settle writes down a result for every call in the messages before one that has none: no further line can bring it.
func (l *ledger) settle(ch *chain, before int32) {
	for hash, c := range ch.calls {
		if c.message >= before {
			continue
		}
		m := ch.ends[c.message&1]
		l.added = append(l.added, added{at: m.end, uuid: m.uuid, id: c.id})
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
		p := l.gone[hash]
		if p.hash == 0 {
			return 0, span{}
		}
		if l.kept[p.hash] {
			return p.hash, p.name
		}
		hash = p.hash
	}
	return 0, span{}
}

// maxClimb bounds the way up, which may be a circle.
const maxClimb = 100_000
