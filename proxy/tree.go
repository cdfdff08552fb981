package proxy

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/episodes"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/paging"
	"github.com/tidemark-ai/tidemark/proxy/body"
)

// Bounds of one conversation. What is beyond is passed on untouched.
const (
	maxNodes  = 100_000
	maxTracks = 1_000
	maxLinks  = 4 * maxNodes
	maxFresh  = 10_000 // messages that a request may bring: some seconds of work on Workers
)

// node is a message at its place: what stands before it is part of what it is.
type node struct {
	chain   tidemark.Hash
	id      tidemark.EntryID
	parent  *node
	depth   int // messages up to and with it
	at      time.Time
	role    tidemark.Role
	asks    bool              // a person's turn begins with it: of role user, and no results in it
	foreign bool              // it is of a form that is not known: it goes out as it came, and nothing near it moves
	passing bool              // a system message that says how much room is left: it leaves with the exchange that it is of
	owner   *track            // whose log holds it, nil while no request with it was planned
	seq     int64             // its position there, 0 while it is not stored
	msg     paging.Message    // as its track's pager takes it
	fed     bool              // msg is there
	form    form              // of the message as it was fed, which is how the log has it
	sum     [sha256.Size]byte // of its bytes
	raw     []byte            // it, until it is stored: what a pager took and what the log has are the same form
	put     *put              // what the client never saw of it
	putKept bool              // and that is stored
	call    *tidemark.Call    // of a reply

	work     *work           // the message as graphs take it, nil while nobody asked for it
	acts     []*act          // episodes that left with a request that ended here
	reported tidemark.Tokens // of a reply, where episodes may leave: how large the context was with it
}

// link is a message as it came, behind another: most of a request is byte for byte what the one before had, and need
// not be decoded to be known.
type link struct {
	parent *node
	sum    [sha256.Size]byte
}

// track is a leaf of the tree and the requests that led there: the main thread of an agent, a sub-agent, what followed
// a rewind.
type track struct {
	n     int
	name  string // of its branch, "" for the first
	log   string // "" until something is stored
	base  *track // that it forked from,
	after int    // having taken so many of its steps,
	from  *node  // at this message
	steps []*step
	leaf  *node
	pager *paging.Pager // nil: to be made of the steps
	used  int64         // when, in requests of the conversation
	last  paging.Decision
	sum   paging.Sum
	fed   int // steps that it was given

	edits   []edit            // by the model, in order
	owed    []owed            // what it did that is not stored yet
	sour    bool              // the API takes no edited requests of it
	release []string          // what the next step lets go,
	anchor  []string          // and keeps
	shown   map[shownKey]bool // stubs that the log knows of
	memo    map[*paging.Page]memoized
	tools   map[string]bool // that were called
	whole   map[string]bool // whose definitions are sent whole
	works   graphed
	vain    vain
	short   episodes.Shortage
}

// step is what a request added to a track.
type step struct {
	keep     int // with cut: messages that stay
	cut      bool
	release  []string
	anchor   []string
	nodes    []*node
	usage    *tidemark.Usage
	stored   bool
	whole    []string // tools whose definitions are whole from it on
	said     *node    // the answer whose report counts
	answered bool     // somebody has an answer to it
	busy     int      // exchanges that it is of and that have not ended
	line     []byte   // the decision, as a line of a replay
	n        int      // from 0, over the base's
	model    string
	fixed    int // bytes of system and tools
}

// all returns the steps of a track, those before its fork first.
func (t *track) all() []*step {
	if t.base == nil {
		return t.steps
	}
	before := t.base.all()
	return append(before[:min(t.after, len(before)):min(t.after, len(before))], t.steps...)
}

// instructs reports a system message between the others: no strategy touches it.
func (n *node) instructs() bool { return n.role == tidemark.System && !n.foreign }

// bars reports a message over which nothing reaches that leaves: what is around it may belong to it.
func (n *node) bars() bool {
	return n.foreign || n.role != tidemark.User && n.role != tidemark.Assistant && n.role != tidemark.System
}

// instructions lists the system messages of a run of a history that stay when it leaves, by item.
func instructions(path []*node, from, to int) (items []int) {
	for i := from; i <= to; i++ {
		if path[i].instructs() && !path[i].passing {
			items = append(items, i)
		}
	}
	return items
}

// withPassing is the end of a run that leaves with what only counts down behind it. The newest message stays.
func withPassing(path []*node, to int) int {
	for to+2 < len(path) && path[to+1].passing {
		to++
	}
	return to
}

// path returns the messages up to n, oldest first.
func (n *node) path() []*node {
	out := make([]*node, n.depth)
	for at := n; at.depth > 0; at = at.parent {
		out[at.depth-1] = at
	}
	return out
}

// tree has the messages of all histories of a conversation, and the tracks that they belong to.
type tree struct {
	key    tidemark.Key
	now    func() time.Time
	root   *node // before the first message
	nodes  map[tidemark.Hash]*node
	links  map[link]*node
	leaves map[*node]*track
	tracks []*track
	uses   int64 // requests so far
}

func newTree(c Config) *tree {
	return &tree{key: c.Key, now: func() time.Time { return c.Runtime.Now() }, root: &node{}, nodes: map[tidemark.Hash]*node{}, links: map[link]*node{}, leaves: map[*node]*track{}}
}

// entryID names a message by its chain: the same message at the same place is the same entry, after a restart and on
// any host, so a handle that a model was told holds and nothing is stored twice.
func (tr *tree) entryID(chain tidemark.Hash) tidemark.EntryID {
	sum := sha256.Sum256([]byte(string(tr.key) + "\x00" + string(chain)))
	return tidemark.EntryID(base32.StdEncoding.EncodeToString(sum[:10]))
}

// place finds the messages of a request in the tree and makes those that are new. sums are the hashes of their bytes.
func (tr *tree) place(r *body.Request) (path []*node, sums [][sha256.Size]byte, err error) {
	if len(tr.links) > maxLinks {
		tr.links = map[link]*node{}
	}
	at, fresh := tr.root, 0
	sums = make([][sha256.Size]byte, len(r.Items))
	for i, it := range r.Items {
		sums[i] = sha256.Sum256(it.Raw)
		by := link{at, sums[i]}
		next := tr.links[by]
		if next == nil {
			if fresh++; fresh > maxFresh {
				return nil, nil, fmt.Errorf("it has more than %d messages that were never seen: %w", maxFresh, tidemark.ErrTooLarge)
			}
			if next, err = tr.grow(at, it); err != nil {
				return nil, nil, fmt.Errorf("messages[%d]: %w", i, err)
			}
			tr.links[by] = next
		}
		path, at = append(path, next), next
	}
	return path, sums, nil
}

// grow returns the message behind another one, which is made if it is not there.
func (tr *tree) grow(parent *node, it body.Item) (*node, error) {
	m, read, err := messageOf(it)
	if err != nil {
		return nil, err
	}
	n, err := tr.join(parent, m)
	if err == nil {
		n.foreign, n.passing = it.Fixed() || !read, m.Countdown()
	}
	return n, err
}

// unnamed is the role in the log of a message that came without one.
const unnamed tidemark.Role = "unknown"

// messageOf decodes a message as the log takes it. One that cannot be decoded, which is for the API to judge, is kept whole
// as a block without a type; then read is false.
func messageOf(it body.Item) (m tidemark.Message, read bool, err error) {
	if json.Unmarshal(it.Raw, &m) == nil {
		return m, true, nil
	}
	m = tidemark.Message{Role: it.Role, Content: make([]tidemark.Block, 1)}
	if m.Role == "" {
		m.Role = unnamed
	}
	err = json.Unmarshal(append(append([]byte(`{"unread":`), it.Raw...), '}'), &m.Content[0])
	return m, false, err
}

func (tr *tree) join(parent *node, m tidemark.Message) (*node, error) {
	chain := tidemark.Chain(parent.chain, m)
	if n := tr.nodes[chain]; n != nil {
		return n, nil
	}
	if len(tr.nodes) >= maxNodes {
		return nil, fmt.Errorf("the conversation has %d messages, at most so many are kept: %w", len(tr.nodes), tidemark.ErrTooLarge)
	}
	n := &node{chain: chain, id: tr.entryID(chain), parent: parent, depth: parent.depth + 1, at: tr.now(), role: m.Role,
		asks: m.Role == tidemark.User && len(m.Results()) == 0}
	tr.nodes[chain] = n
	return n, nil
}

// trackOf returns the track that a request goes on with, and how many of its messages that has: the longest history
// that the request contains. Where the request leaves a track in its middle (another answer, an edit, a rewind) it
// is a track of its own.
func (tr *tree) trackOf(path []*node) (*track, int, error) {
	known := len(path)
	for known > 0 && path[known-1].owner == nil {
		known--
	}
	if known > 0 {
		if t := tr.leaves[path[known-1]]; t != nil {
			return t, known, nil
		}
	}
	var base *track
	at := tr.root
	if known > 0 {
		at = path[known-1]
		base = at.owner
	}
	t, err := tr.fork(base, taken(base, at), at)
	return t, known, err
}

// taken is how many steps of a track one takes over that begins behind a message of it: all but those at its end that are
// not stored and added something else. Nobody ever answered these, or somebody is about to; nothing stands on them.
func taken(base *track, at *node) (n int) {
	if base == nil {
		return 0
	}
	all, path := base.all(), at.path()
	for n < len(all) {
		s := all[n]
		for _, m := range s.nodes {
			if !s.stored && (m.depth > len(path) || path[m.depth-1] != m) {
				return n
			}
		}
		n++
	}
	return n
}

// maxForks bounds how many tracks may hang one on another: each is made of the steps of all before it.
const maxForks = 64

// fork makes a track behind a message. It takes over what its base had let go there, so that what was sent of the
// shared part stays as it was sent.
func (tr *tree) fork(base *track, after int, at *node) (*track, error) {
	if len(tr.tracks) >= maxTracks {
		return nil, fmt.Errorf("the conversation has %d tracks, at most so many are kept: %w", len(tr.tracks), tidemark.ErrTooLarge)
	}
	depth := 0
	for b := base; b != nil; b = b.base {
		depth++
	}
	t := newTrack(len(tr.tracks))
	t.from, t.leaf = at, at
	if depth < maxForks {
		t.base, t.after = base, after
	}
	if base != nil {
		t.sour = base.sour
		for _, e := range base.edits {
			if e.to.depth <= at.depth && at.path()[e.to.depth-1] == e.to {
				t.edits = append(t.edits, e)
			}
		}
	}
	tr.tracks = append(tr.tracks, t)
	if at.depth > 0 && tr.leaves[at] == nil {
		tr.leaves[at] = t
	}
	return t, nil
}

func newTrack(n int) *track {
	t := &track{n: n, shown: map[shownKey]bool{}, memo: map[*paging.Page]memoized{}, tools: map[string]bool{}, whole: map[string]bool{}}
	if n > 0 {
		t.name = fmt.Sprintf("t%d", n+1)
	}
	return t
}

// maxPagers bounds the tracks of one conversation whose pagers are in memory: those of others are made again of their steps.
const maxPagers = 16

// rest notes that a track is used and lets go of the pager that was used least lately.
func (tr *tree) rest(t *track) {
	tr.uses++
	t.used = tr.uses
	var oldest *track
	n := 0
	for _, o := range tr.tracks {
		if o.pager == nil {
			continue
		}
		if n++; oldest == nil || o.used < oldest.used {
			oldest = o
		}
	}
	if n > maxPagers && oldest != t {
		oldest.pager, oldest.memo, oldest.works = nil, map[*paging.Page]memoized{}, graphed{}
	}
}

// moveTo makes a message the newest of a track.
func (tr *tree) moveTo(t *track, leaf *node) {
	if tr.leaves[t.leaf] == t {
		delete(tr.leaves, t.leaf)
	}
	t.leaf = leaf
	tr.leaves[leaf] = t
	for n := leaf; n.depth > 0 && n.owner == nil; n = n.parent {
		n.owner = t
	}
}

// takeBack forgets the step of a request that the API refused, if nothing stands on it.
func (tr *tree) takeBack(x *Exchange) {
	t, s := x.track, x.step
	n := len(t.steps)
	if n == 0 || t.steps[n-1] != s || s.stored || s.busy > 1 || t.leaf != x.path[len(x.path)-1] || s.usage != nil {
		return
	}
	for _, other := range tr.tracks {
		if other.base == t && other.after > s.n {
			return
		}
	}
	t.steps, t.pager = t.steps[:n-1], nil
	defer tr.forget(x, t)
	t.release, t.anchor = append(s.release, t.release...), append(s.anchor, t.anchor...)
	delete(tr.leaves, t.leaf)
	at, stay := t.leaf, t.from.depth
	for _, before := range t.steps { // what these added is of the track still
		if k := len(before.nodes); k > 0 {
			stay = max(stay, before.nodes[k-1].depth)
		}
	}
	for at.depth > stay && at.owner == t && at.seq == 0 {
		at.owner = nil
		at = at.parent
	}
	t.leaf = at
	if at.depth > 0 && tr.leaves[at] == nil {
		tr.leaves[at] = t
	}
}

// forget drops the messages that only a refused request had, and a track that was made for it.
func (tr *tree) forget(x *Exchange, t *track) {
	for i := len(x.path) - 1; i >= 0 && x.path[i].owner == nil && x.path[i].seq == 0; i-- {
		delete(tr.nodes, x.path[i].chain)
		delete(tr.links, link{x.path[i].parent, x.sums[i]})
	}
	if n := len(tr.tracks); t.n == n-1 && len(t.steps) == 0 && t.log == "" {
		for _, other := range tr.tracks {
			if other.base == t {
				return
			}
		}
		tr.tracks = tr.tracks[:n-1]
		if tr.leaves[t.leaf] == t {
			delete(tr.leaves, t.leaf)
		}
	}
}
