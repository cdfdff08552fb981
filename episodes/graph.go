package episodes

import (
	"fmt"
	"sort"

	"github.com/tidemark-ai/tidemark"
)

// Message is a message of a log, in its place.
type Message struct {
	ID      tidemark.EntryID
	Seq     int64 // grows along a log, from 1
	Tokens  tidemark.Tokens
	Content tidemark.Message
}

// Graph is the episodes of one log: typed, without cycles, and it only grows (papers/cwl §4.3). It is made by adding the
// messages of the log in order. It is not safe for use by several goroutines.
type Graph struct {
	tools     Tools
	list      []*Episode          // by place; the number of one is its index and 1
	names     map[string]*Episode // those with a name
	inherited map[string]bool
	active    *Episode // open, with a name
	run       *Episode // unmarked work that goes on
	pending   *reply   // whose calls are not all answered yet
	upto      int64
}

// Unmarked work is cut where somebody speaks once it has so many tokens, so that not each short answer is a piece, and anyhow
// at so many, so that not all of it leaves at once.
const (
	leastRun = 500
	mostRun  = 2_000
)

// New returns the graph of an empty log.
func New(tools Tools) *Graph {
	if !tools.Known() {
		tools = DefaultTools(nil)
	}
	return &Graph{tools: tools, names: map[string]*Episode{}, inherited: map[string]bool{}}
}

// Load returns a graph of episodes that were saved, in order, for a log that was read up to a position.
func Load(tools Tools, rows []Episode, upto int64) *Graph {
	g := New(tools)
	for _, e := range rows {
		g.put(&e)
		e.dirty = false
	}
	g.upto = upto
	return g
}

// put takes in an episode that comes next.
func (g *Graph) put(e *Episode) {
	g.list = append(g.list, e)
	e.N, e.rests, e.dirty = len(g.list), nil, true
	if e.Type == Unmarked {
		if e.Open {
			g.run = e
		}
		return
	}
	if g.names[e.Name] = e; e.Open {
		g.active = e
	}
	for _, name := range e.Dependencies {
		if d := g.names[name]; d != nil {
			d.rests = append(d.rests, e)
		}
	}
}

// Clone returns a copy that may go on by itself.
func (g *Graph) Clone() *Graph {
	rows := make([]Episode, len(g.list))
	for i, e := range g.list {
		rows[i] = e.copied()
	}
	c := Load(g.tools, rows, g.upto)
	c.Inherit(g.heirlooms())
	c.pending = g.pending.copied()
	return c
}

// heirlooms are the names that were inherited, in no order.
func (g *Graph) heirlooms() []string {
	names := make([]string, 0, len(g.inherited))
	for name := range g.inherited {
		names = append(names, name)
	}
	return names
}

// Until returns the graph as far as the log up to a position decides it, and up to where the log is in it: what follows
// is to be added again. It is for a branch, whose log shares a beginning with this one.
func (g *Graph) Until(seq int64) *Graph {
	if g.upto <= seq {
		return g.Clone()
	}
	last := int64(0) // reply up to the position; what those before it came to is known there
	for _, e := range g.list {
		if e.From.Seq > seq {
			break
		}
		if last = e.From.Seq; e.To.Seq <= seq {
			last = e.To.Seq
		}
	}
	// An episode is over when a later one, in a message of its own, has begun for certain.
	n := sort.Search(len(g.list), func(i int) bool { return g.list[i].From.Seq >= last }) - 1
	for n > 0 && g.list[n].From.Seq == g.list[n-1].To.Seq {
		n--
	}
	rows, upto := make([]Episode, max(n, 0)), int64(0)
	for i := range rows {
		rows[i], upto = g.list[i].copied(), g.list[i].To.Seq
	}
	c := Load(g.tools, rows, upto)
	c.Inherit(g.heirlooms())
	return c
}

// Inherit names explorations of histories that this one came from, as after a client summed its own up: an action may
// depend on them still.
func (g *Graph) Inherit(names []string) {
	for _, n := range names {
		g.inherited[n] = true
	}
}

// Save returns the episodes that changed since the last Save, and up to where the log is in them.
func (g *Graph) Save() (changed []Episode, upto int64) {
	for _, e := range g.list {
		if e.dirty {
			e.dirty = false
			changed = append(changed, *e)
		}
	}
	return changed, g.settled()
}

// settled is the position up to which the log is in the episodes.
func (g *Graph) settled() int64 {
	if g.pending != nil {
		return g.pending.Seq - 1
	}
	return g.upto
}

// Upto is the position of the newest message that was added.
func (g *Graph) Upto() int64 { return g.upto }

// Episodes returns all episodes by place, to be read only.
func (g *Graph) Episodes() []*Episode { return g.list }

// Active is the episode that is open, nil for none.
func (g *Graph) Active() *Episode { return g.active }

// Find returns the episode of a name, nil for none.
func (g *Graph) Find(name string) *Episode { return g.names[name] }

// Prologue reports whether unmarked work before the first episode is at most so large, and with that part of the prologue.
// The paper protects all of it; but an agent that begins to mark late would so protect most of its history for ever.
func (g *Graph) Prologue(most tidemark.Tokens) bool {
	var early tidemark.Tokens
	for _, e := range g.list {
		if !e.Early {
			break
		}
		early += e.Tokens
	}
	return len(g.names) > 0 && early <= most
}

// Owner returns the episode that a block of the assistant is of, nil for one before all work, or in a reply whose calls
// are not answered. A result is its call's.
func (g *Graph) Owner(at Place) *Episode {
	n := sort.Search(len(g.list), func(i int) bool { return at.before(g.list[i].From) })
	if n == 0 || g.list[n-1].To.before(at) {
		return nil
	}
	return g.list[n-1]
}

// Add takes the next message of the log. One that was added already is left out. Results may come in several messages,
// with words of somebody among them, as the APIs take neighbours of one role for one message.
func (g *Graph) Add(m Message) {
	if m.Seq <= g.upto {
		return
	}
	g.upto = m.Seq
	if m.Content.Role != tidemark.User && m.Content.Role != tidemark.Assistant {
		return // instructions are neither work nor words of somebody
	}
	if m.Content.Role == tidemark.Assistant {
		g.answered()
		if r := replyOf(&m); len(r.open) > 0 {
			g.pending = r
		} else {
			g.settle(r)
		}
		return
	}
	results := false
	for _, b := range m.Content.Content {
		if b.Type == tidemark.TypeToolResult {
			if results = true; g.pending != nil {
				g.pending.take(b)
			}
		}
	}
	switch r := g.pending; {
	case r == nil && !results:
		g.pause()
	case r == nil: // of nothing that is known
	case results:
		if r.tokens += m.Tokens; len(r.open) == 0 {
			g.answered()
		}
	default:
		r.said = true
	}
}

// answered adds the pending reply with the answers that there are.
func (g *Graph) answered() {
	r := g.pending
	if r == nil {
		return
	}
	g.pending = nil
	if g.settle(r); r.said {
		g.pause()
	}
}

// Answer says what the calls of the tool in the newest message are told, by call. Calls of one message are taken in their
// order, each as if those before it had been carried out.
func (g *Graph) Answer() map[string]Answer {
	out := map[string]Answer{}
	if g.pending == nil {
		return out
	}
	next := g.Clone()
	for i, b := range g.pending.Content.Content {
		if b.Type != tidemark.TypeToolUse || b.Name != ToolName {
			continue
		}
		e, c, err := next.carryOut(g.pending.Message, b, Place{g.pending.Seq, i})
		if err != nil {
			out[b.ID] = Answer{err.Error(), true}
		} else {
			out[b.ID] = Answer{tell(c, e), false}
		}
	}
	return out
}

// carryOut does what a call of the tool asks for; from is where an episode that it starts begins.
func (g *Graph) carryOut(m *Message, b tidemark.Block, from Place) (*Episode, call, error) {
	c, err := readCall(b.Input)
	if err == nil {
		err = g.refusal(c)
	}
	if err != nil {
		return nil, c, err
	}
	if c.Action == "end" {
		e := g.active
		e.Open, e.dirty, e.Description = false, true, c.Description
		g.active = nil
		return e, c, nil
	}
	e := &Episode{Name: c.Name, Type: c.Type, Open: true, From: from, To: from, Entry: m.ID, Last: m.ID}
	if r := g.run; r != nil && r.Vain { // what was refused led to it, and is no work by itself
		e.From, e.Entry, e.Tokens = r.From, r.Entry, r.Tokens
		*r, e = *e, r
		g.list, g.run = g.list[:len(g.list)-1], nil
	}
	g.endRun()
	if c.Type == Action {
		for _, name := range c.Dependencies {
			e.depend(name)
		}
	}
	g.put(e)
	return e, c, nil
}

// settle adds a reply, with the results of its calls that there are. What the assistant says before a call goes
// with that call, what it says behind the last one with that.
func (g *Graph) settle(m *reply) {
	first := 0 // block that is of no episode yet
	var shares []owned
	var last *Episode
	for i, b := range m.Content.Content {
		if b.Type != tidemark.TypeToolUse {
			continue
		}
		last = g.own(m, b, Place{m.Seq, first})
		if last == nil {
			return // there are too many
		}
		last.reach(m.Message, i)
		first, shares = i+1, append(shares, owned{last, i + 1})
	}
	if n := len(m.Content.Content); first < n {
		if last == nil {
			last = g.current(m.Message, Place{m.Seq, first}, false)
		}
		if last == nil {
			return
		}
		if first == 0 { // an answer
			last.Vain = false
		}
		last.reach(m.Message, n-1)
	}
	if last == nil {
		return
	}
	g.weigh(m, shares, last)
	if last == g.run && last.Tokens >= mostRun {
		g.endRun()
	}
}

// owned is the episode of the blocks of a reply up to one.
type owned struct {
	episode *Episode
	to      int
}

// weigh counts a reply and its results for their episodes, what they take beside their blocks for the last.
func (g *Graph) weigh(m *reply, shares []owned, last *Episode) {
	left, at := m.Tokens+m.tokens, 0
	for _, s := range shares {
		for ; at < s.to && s.episode != last; at++ {
			b := m.Content.Content[at]
			n := tidemark.EstimateBlock(b)
			if r := m.result(b.ID); b.Type == tidemark.TypeToolUse && r != nil {
				n += tidemark.EstimateBlock(*r)
			}
			n = min(n, left)
			s.episode.Tokens += n
			left -= n
		}
		at = s.to
	}
	last.Tokens += left
}

// own returns the episode of a call, with what stands before it from a place on.
func (g *Graph) own(m *reply, b tidemark.Block, from Place) *Episode {
	if b.Name == ToolName {
		if r := m.result(b.ID); r != nil && !r.IsError { // else it was refused, or never run since a turn was stopped
			if e, _, err := g.carryOut(m.Message, b, from); err == nil {
				return e
			}
		}
		n := len(g.list)
		e := g.current(m.Message, from, true)
		if len(g.list) > n {
			e.Vain = true
		}
		return e
	}
	e := g.current(m.Message, from, true)
	if e == nil {
		return nil
	}
	e.Vain = false
	e.Calls++
	if g.tools.files != nil {
		changes := g.tools.files.Changes(b.Name, b.Input)
		for _, p := range g.tools.files.Paths(b.Name, b.Input) {
			e.touch(p, changes)
		}
	}
	return e
}

// current is the episode that goes on: the open one, or unmarked work, which begins with the first call of all.
func (g *Graph) current(m *Message, from Place, work bool) *Episode {
	switch {
	case g.active != nil:
		return g.active
	case g.run != nil:
		return g.run
	case !work && len(g.list) == 0 || len(g.list) >= maxWork:
		return nil
	}
	g.put(&Episode{Open: true, Early: len(g.names) == 0, From: from, To: from, Entry: m.ID, Last: m.ID})
	return g.run
}

// pause ends unmarked work where somebody speaks, if it is enough for an episode.
func (g *Graph) pause() {
	if g.run != nil && g.run.Tokens >= leastRun && !g.run.Vain {
		g.endRun()
	}
}

// endRun ends unmarked work.
func (g *Graph) endRun() {
	if g.run != nil {
		g.run.Open, g.run.dirty = false, true
		g.run = nil
	}
}

// reach moves the end of an episode to a block.
func (e *Episode) reach(m *Message, block int) {
	e.To, e.Last, e.dirty = Place{m.Seq, block}, m.ID, true
}

// Check holds the invariants of a graph (papers/cwl §4.3) and returns the first breach: episodes stand in order and apart
// from one another, edges go from a closed exploration to a later action, names are used once, and only the newest may
// be open.
func (g *Graph) Check() error {
	seen := map[string]*Episode{}
	for i, e := range g.list {
		switch {
		case e.N != i+1 || e.To.before(e.From) || i > 0 && !g.list[i-1].To.before(e.From):
			return fmt.Errorf("episode %d, %s, stands from %v to %v", i+1, e, e.From, e.To)
		case e.Open && i < len(g.list)-1:
			return fmt.Errorf("%s is open behind a later episode", e)
		case e.Type != Action && len(e.Dependencies) > 0:
			return fmt.Errorf("%s has dependencies", e)
		case e.Type != Unmarked && (e.Name == "" || seen[e.Name] != nil):
			return fmt.Errorf("%s has no name of its own", e)
		}
		for _, name := range e.Dependencies {
			if d := seen[name]; d == nil && !g.inherited[name] || d != nil && (d.Type != Exploration || d.Open) {
				return fmt.Errorf("%s depends on %q, which is no closed exploration before it", e, name)
			}
		}
		if e.Type != Unmarked {
			seen[e.Name] = e
		}
	}
	return nil
}
