package paging

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/tidemark-ai/tidemark"
)

// The paper's figures, used in all its experiments.
const (
	DefaultTau      = 4
	DefaultMinBytes = 500
)

// Options direct a [Pager]. The zero value is the default policy with the paper's figures.
type Options struct {
	Policy   string // "" is [DefaultPolicy]
	Tau      int    // age from which a result may go; 0 is DefaultTau, -1 is none
	MinBytes int    // size from which a result may go; 0 is DefaultMinBytes, -1 is none

	Window tidemark.Tokens // of the model; 0 is none: there are no zones, and the policy acts at any size
	Zones  Zones           // where they begin
	Fixed  tidemark.Tokens // the system prompt and the schemas of the tools, which no message holds
	Whole  bool            // what is reported is of requests with nothing replaced: of a session that had no paging
}

// Policies are the names of the policies, the default first.
//
//   - cost lets results go in batches, when one pays
//   - lru lets go what was not used for a while
//   - fifo is the paper unadorned
//   - batch is the simple rule that cost is measured by: all that is old goes once it is 30 % of the context
func Policies() []string { return []string{"cost", "lru", "fifo", "batch"} }

// key is a page in the sense of the paper: a range of a file, of which there may be many copies.
type key struct {
	file     *file
	span     Range
	evicted  *Page // the newest that went
	full     int   // copies in the context that are as the file is, if seen is the file's epoch
	seen     int
	armed    *Page   // a fault: the next copy equal to this one is pinned
	armedAt  int     // epoch of the file then
	pinnedAt int     // request
	live     []*Page // copies that no newer one stands for
	pinned   []*Page // copies that stay; the first is the one that was pinned
}

// file is what is known of a path.
type file struct {
	path  string
	epoch int // changes so far
	used  int // the clock when it was last read or changed
	keys  []*key
	pins  []*key
}

// Fault is a read of what had been evicted.
type Fault struct {
	ID    string // the call that reads
	Of    *Page
	Again bool // told before, in a part of the history that was cut since
}

// Decision is what becomes of a request.
type Decision struct {
	Evict, GC  []*Page // results that leave with this request, in the order of the history; for good
	Input      []*Page // inputs of calls that do
	Image      []*Page // images and inline documents that do
	Fault      []Fault // calls since the request before
	Pin, Unpin []*Page
	Tau        int // not 0: much of what went is read again, or no longer, or that was cut: tau is so from now on
	Kept       int // of the stubs of the request before, the first so many are still stubs; those above are added
	In, Out    int // bytes of all messages as a compact JSON list, before and after substitution
	Same       int // of Out, the first bytes that are those of the request before
	SameIn     int // the same of In, had nothing been substituted

	All, Freed tidemark.Tokens // estimates: of all messages as they came, and of what of it does not go

	// With a window only:
	Zone Zone            // how full it was before anything left with this request
	Size tidemark.Tokens // the size that says so
}

// Step is what a request adds to a history.
//
// What the model asks for beside its calls, as tags in its answer do, belongs to the first message of Append, that
// answer: a cut which takes the one takes the other, too. It is of what stood there before, as all that a model asks.
type Step struct {
	Cut     bool // first the history is cut to Keep messages
	Keep    int
	Stay    bool     // what is out before the cut, of the part that stays, stays out: what was sent of it stands in a cache
	Release []string // handles and paths that the model is done with, as with [ReleaseTool]
	Anchor  []string // those of what stays in from now on, until it is released
	Append  []Message

	Idle   bool            // nothing is decided: it is what stood there before
	Shared int             // first bytes that Append[0] shares with the message that it stands in the place of, 0 for unknown
	Usage  *tidemark.Usage // what the provider reported of this request, for [Pager.Reported]
}

// stageMessages is how many messages lie between two such states, at most so many are taken again by a cut.
const stageMessages = 16

// Pager decides for one history, request after request: it takes what each adds, and asks its policy what leaves. It is not
// for use by several goroutines.
type Pager struct {
	policy
	inputs map[string]*Page // of the newest call of an id, where it may leave
	told   int              // tau as the newest decision that names it says
	ahead  *hindsight       // of a policy that knows the session
}

// policy says what may leave, and when.
type policy struct {
	history
	rule     string // its name
	tau, min int
	head     int     // pages before it have been looked at
	waited   int     // of lru: changes up to the newest of costs.due in this request, 0 for none
	waitedAt int     // the tick of that
	again    []*Page // were pinned: to be looked at once more
	late     []*Page // would be out, but the window has room
	tight    []*key  // were pinned, in that order; some no longer are
	anchors  int     // pages that are anchored
	hold     func(*Page) bool
	costs    costs
}

// history is what stands there: messages, their pages, what of them is out, and how much all that is. Its newest request
// can be taken back.
type history struct {
	messages []Message
	first    []int // the first page of each message
	pages    []*Page
	stubs    []*Page // in the order in which they became ones
	out      sums    // bytes of the messages as sent
	in       []int   // bytes of the messages up to each
	keys     map[string]*key
	files    map[string]*file
	calls    map[string]*Call
	byHandle map[string]int     // the newest message of a handle
	results  map[string]*Page   // the newest result of a call
	paths    map[string][]*Page // all pages whose call names a path
	newest   map[string]*Page   // result of a tool, and of a program behind "$"
	pictures []*Page            // that are or hold images
	users    int                // messages of role user
	clock    int                // in ticks
	marks    []mark
	stages   []stage // of requests with more than stageMessages
	undo     []func()
	sent     int // messages of the request before
	changed  map[place]change
	now      Decision
	counted  map[*Page]bool

	window, fixed tidemark.Tokens
	zones         Zones
	whole         bool
	inline        inline // of the messages as sent
	wholly        inline // and as they came
}

// place is where a substituted value stands: its message and its first byte in that.
type place struct{ message, at int }

type change struct {
	was, is bool
	common  int
}

// New returns a pager for an empty history.
func New(o Options) (*Pager, error) {
	if o.Policy != "" && !slices.Contains(Policies(), o.Policy) {
		return nil, fmt.Errorf("policy %q: want one of %v: %w", o.Policy, Policies(), tidemark.ErrInvalid)
	}
	if o.Window < 0 || o.Fixed < 0 {
		return nil, fmt.Errorf("window %d, fixed %d: want 0 or more tokens: %w", o.Window, o.Fixed, tidemark.ErrInvalid)
	}
	if err := o.Zones.Valid(); err != nil {
		return nil, err
	}
	return newPager(o), nil
}

func newPager(o Options) *Pager {
	h := history{sent: -1, newest: map[string]*Page{}, keys: map[string]*key{}, files: map[string]*file{}, calls: map[string]*Call{}, byHandle: map[string]int{}, results: map[string]*Page{}, paths: map[string][]*Page{},
		window: o.Window, fixed: o.Fixed, zones: o.Zones, whole: o.Whole}
	p := &Pager{inputs: map[string]*Page{}, policy: policy{history: h,
		rule: cmp.Or(o.Policy, Policies()[0]), tau: orDefault(o.Tau, DefaultTau), min: orDefault(o.MinBytes, DefaultMinBytes),
		costs: costs{errors: map[[sha256.Size]byte]*Page{}, due: map[int][]*Page{}, hit: 1}}}
	p.told = p.tau
	return p
}

func orDefault(n, usual int) int {
	if n == 0 {
		return usual
	}
	return max(n, 0)
}

// Len is how many messages the history has.
func (h *history) Len() int { return len(h.messages) }

// Tau is the age that is asked for now: that of the options, or what thrashing raised it to.
func (p *policy) Tau() int { return p.tau * max(p.costs.slow, 1) }

// Stubs are the pages that are out, in the order in which they went. The list is the pager's own.
func (h *history) Stubs() []*Page { return h.stubs }

// Step takes what a request adds and decides. A Keep beyond the history is tidemark.ErrInvalid, and
// nothing is changed.
func (p *Pager) Step(s Step) (Decision, error) {
	p.now, p.changed = Decision{Kept: len(p.stubs)}, nil
	keep := len(p.messages)
	if s.Cut {
		if s.Keep < 0 || s.Keep > keep {
			return Decision{}, fmt.Errorf("keep %d: the history has %d messages: want 0 to %d: %w", s.Keep, keep, keep, tidemark.ErrInvalid)
		}
		keep = s.Keep
	}
	p.begin(s, keep)
	p.zoned()
	if !s.Idle {
		p.decide()
	}
	if t := p.Tau(); t != p.told {
		p.told, p.now.Tau = t, t
	}
	p.measure(keep, s.Shared)
	p.now.All, p.now.Freed = p.wholly.estimate(p.now.In), p.wholly.plus(p.inline, -1).estimate(p.now.In-p.now.Out)
	p.marks = append(p.marks, mark{messages: len(p.messages), pages: len(p.pages), stubs: len(p.stubs), undo: len(p.undo),
		out: p.now.Out, same: p.now.Same, report: p.report(), inline: p.inline, whole: p.wholly})
	p.sent = len(p.messages)
	return p.now, nil
}

// Reported tells what the provider reported of the newest request. One that counts nothing sent tells no size.
func (h *history) Reported(u *tidemark.Usage) {
	if n := len(h.marks); n > 0 {
		m := &h.marks[n-1]
		if m.usage, m.report = u, n; u == nil || u.Context() <= u.Output {
			m.report = 0
			if n > 1 {
				m.report = h.marks[n-2].report
			}
		}
	}
}

// decide lets the policy act.
func (p *Pager) decide() {
	if p.ahead != nil {
		p.ahead.decide(p)
		return
	}
	switch p.rule {
	case "fifo":
		p.fifo()
	case "lru":
		p.lru()
	case "batch":
		p.again = nil
		p.simple()
	default:
		p.release()
		p.cost()
	}
}

// take adds a message to the history: calls may fault, results become pages.
func (p *Pager) take(m Message) {
	p.divide()
	if m.asked != nil {
		p.ask(m.asked)
	}
	p.first = append(p.first, len(p.pages))
	p.messages = append(p.messages, m)
	p.out = p.out.push(m.Bytes)
	total := m.Bytes
	if n := len(p.in); n > 0 {
		total += p.in[n-1]
	}
	p.in = append(p.in, total)
	p.name(m.Handle)
	if m.Role == tidemark.User {
		set(&p.history, &p.users, p.users+1)
		ticks := roundTicks
		if m.Typed {
			ticks = turnTicks
			set(&p.history, &p.costs.names, m.Names)
			set(&p.history, &p.costs.said, m.said)
			set(&p.history, &p.costs.turn, len(p.messages)-1)
		}
		set(&p.history, &p.clock, p.clock+ticks)
	}
	for i := range m.Blocks {
		if in := m.Blocks[i].inline; in != (inline{}) {
			set(&p.history, &p.inline, p.inline.plus(in, 1))
			set(&p.history, &p.wholly, p.wholly.plus(in, 1))
		}
		switch b := &m.Blocks[i]; b.what {
		case called:
			p.call(b)
		case answered:
			p.result(b)
		case pictured:
			p.image(b)
		}
	}
}

func (p *Pager) call(b *Block) {
	put(&p.history, p.calls, b.ID, &b.Call)
	p.input(b)
	if f := p.files[b.Call.Path]; f != nil && b.Call.Kind != Looks {
		set(&p.history, &f.used, p.clock)
	}
	if b.Call.Kind == Reads {
		p.read(b)
	}
	p.recalled(b)
	p.letAll(b.Call.Release)
}

// read decides whether a read is a fault: of what had been evicted, decided when no full copy of
// that range stood in the request. Messages are taken before the evictions of their request, so what
// is out now was out when the model decided.
func (p *Pager) read(b *Block) {
	k := p.keys[keyName(b.Call)]
	if k == nil || k.evicted == nil || k.evicted.faulted || p.full(k) {
		return
	}
	p.fault(b.ID, k.evicted)
}

// fault notes that a call needs a page that is out.
func (p *Pager) fault(id string, of *Page) {
	k := of.key
	set(&p.history, &p.costs.faults, p.costs.faults+1)
	set(&p.history, &of.faulted, true)
	set(&p.history, &k.armed, of)
	set(&p.history, &k.armedAt, k.file.epoch)
	p.now.Fault = append(p.now.Fault, Fault{id, of, p.wasTold(of)})
	if p.counted == nil {
		p.counted = map[*Page]bool{}
	}
	if p.counted[of] = true; of.stays != nil {
		of.stays.told = true
	}
}

// wasTold reports whether a fault of this eviction was told before, also of one in a history that was cut since.
func (h *history) wasTold(g *Page) bool { return h.counted[g] || g.stays != nil && g.stays.told }

// full reports whether a copy of all of a range stands in the request, as its file is.
func (h *history) full(k *key) bool {
	for _, other := range k.file.keys {
		if other.full > 0 && other.seen == k.file.epoch && other.span.Covers(k.span) {
			return true
		}
	}
	return false
}

func keyName(c Call) string { return c.Path + "\x00" + c.Range.String() }

// result makes a page of a result. One that reports success of a change makes copies of its file old.
func (p *Pager) result(b *Block) {
	g := &Page{ID: b.ID, Message: len(p.messages) - 1, Block: b.index, Hash: b.Hash, Size: b.Size, Lines: b.Lines, Err: b.Err,
		born: p.users, tick: p.clock, at: b.at, wire: b.wire, common: int(b.clear), inline: b.inline, codes: b.codes}
	if c := p.calls[b.ID]; c != nil {
		g.Call = *c
	}
	p.answered(b.ID)
	p.newer(g)
	p.picture(g)
	put(&p.history, p.results, b.ID, g)
	if b.Err {
		p.failed(g)
	} else {
		switch g.Call.Kind {
		case Reads:
			g.Read, g.common = true, int(b.paged)
			p.copied(g)
		case Changes:
			p.edited(g.Call.Path)
			for _, path := range g.Call.More {
				p.edited(path)
			}
		}
	}
	p.add(g)
}

// add takes a page behind the others.
func (h *history) add(g *Page) {
	h.pages = append(h.pages, g)
	if name := g.Call.Path; name != "" {
		put(h, h.paths, name, append(h.paths[name], g))
	}
}

// copied notes a full copy of a range. One that differs from what was pinned shows that the file has
// changed.
func (p *Pager) copied(g *Page) {
	name := keyName(g.Call)
	k := p.keys[name]
	if k == nil {
		k = p.newKey(name, g.Call)
	}
	g.key, g.epoch = k, k.file.epoch
	if k.seen != k.file.epoch {
		set(&p.history, &k.seen, k.file.epoch)
		set(&p.history, &k.full, 0)
	}
	set(&p.history, &k.full, k.full+1)
	p.older(k)
	set(&p.history, &k.live, append(k.live, g))
	if k.armed != nil && k.armed.Hash != g.Hash {
		set(&p.history, &k.armed, nil)
	}
	if len(k.pinned) > 0 && k.pinned[0].Hash != g.Hash {
		p.unpin(k)
	}
}

func (h *history) newKey(name string, c Call) *key {
	f := h.files[c.Path]
	if f == nil {
		f = &file{path: c.Path, used: h.clock}
		h.files[c.Path] = f
		h.undo = append(h.undo, func() { delete(h.files, f.path) })
	}
	k := &key{file: f, span: c.Range, seen: f.epoch}
	h.keys[name] = k
	h.undo = append(h.undo, func() { delete(h.keys, name) })
	set(h, &f.keys, append(f.keys, k))
	return k
}

// edited notes that a tool changed a file.
func (p *Pager) edited(path string) {
	f := p.files[path]
	if f == nil {
		return // never read
	}
	set(&p.history, &f.epoch, f.epoch+1)
	for _, k := range slices.Clone(f.pins) {
		p.unpin(k)
	}
	if p.safe() {
		for _, k := range f.keys {
			p.older(k)
		}
	}
}
