package probe

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"iter"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/paging"
	"github.com/tidemark-ai/tidemark/transcript"
)

// DefaultMinSize is the size of a log's file, in bytes, from which it counts: the paper's min_size, which leaves
// out stubs of sessions that never began ("Corpus"; docs/corpus_protocol.md of its repository).
const DefaultMinSize = 10_000

// Constants of the paper for what logs do not hold ("Interventions", "API-Level Waste Taxonomy").
const (
	PaperTools = 18   // definitions that Claude Code sent with each call
	PaperSaved = 3425 // bytes that a stub saves of one: 3,505 on the mean, less 80
	stubBytes  = 80
)

// What a result must be to be dead: the paper's age and minimum size ("Interventions").
const (
	deadAge  = paging.DefaultTau
	deadSize = paging.DefaultMinBytes
)

// Bounds of what is kept.
const (
	maxPieces = 1 << 22 // blocks of one log: 250 MB
	maxNames  = 1024    // names of tools; further ones are OtherTool
	maxName   = 64      // bytes of a name
)

// Names that stand for others.
const (
	UnknownTool = "(unknown)" // of results whose call is not in the log
	OtherTool   = "(other)"   // of tools beyond the bound
)

// Class is what a session was for.
type Class string

// The classes, as the paper names them ("Corpus").
const (
	Main       Class = "main"       // a person talks with the model
	Subagent   Class = "subagent"   // a task that a session gave away
	Compact    Class = "compact"    // it wrote the summary of another, or begins with one
	Suggestion Class = "suggestion" // it guessed what the person would type next
	Other      Class = "other"      // no model answered
)

// Classes lists them in the order of reports.
var Classes = []Class{Main, Subagent, Compact, Suggestion, Other}

// Definition is what is known of a tool's definition.
type Definition struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"` // of its JSON
}

// Options direct a corpus. The zero value is the paper's protocol.
type Options struct {
	MinSize     int64        // bytes of a log that counts; 0 is DefaultMinSize, below 0 every log counts
	Definitions []Definition // of the tools, which logs do not hold; nil takes the paper's constants
	Date        time.Time    // of the report; zero is the newest message
}

// Log is one file.
type Log struct {
	Name  string // of the file: those of Claude Code say what a subagent was for
	Size  int64
	Sum   [sha256.Size]byte // of its bytes: equal ones are read once; zero is not known
	Items iter.Seq2[transcript.Item, error]
}

// hash stands for what was said, and for ids.
type hash [16]byte

func hashOf(parts ...string) hash {
	h := sha256.New()
	for _, p := range parts {
		h.Write([]byte(p))
		h.Write([]byte{0xff}) // no byte of UTF-8
	}
	return hash(h.Sum(nil)[:16])
}

// Corpus takes logs and adds them up. It is for one goroutine.
type Corpus struct {
	o       Options
	tools   paging.Tools
	sums    map[[sha256.Size]byte]bool
	streams []*stream
	names   []string
	index   map[string]int32
	found   Files
	newest  time.Time
}

// New returns an empty corpus.
func New(o Options) *Corpus {
	if o.MinSize == 0 {
		o.MinSize = DefaultMinSize
	}
	o.MinSize = max(o.MinSize, 0)
	c := &Corpus{o: o, tools: paging.DefaultTools(), sums: map[[sha256.Size]byte]bool{}, index: map[string]int32{}}
	for _, d := range o.Definitions {
		c.name(d.Name)
	}
	return c
}

// Add reads one log to its end. What is wrong with one line is counted and told in the report; every other error of
// the items is returned, and nothing of that log counts then.
func (c *Corpus) Add(l Log) error {
	c.found.Logs++
	c.found.Bytes += l.Size
	if l.Size < c.o.MinSize {
		c.found.Small++
		return nil
	}
	if l.Sum != ([sha256.Size]byte{}) {
		if c.sums[l.Sum] {
			c.found.Copies++
			return nil
		}
	}
	r := &reader{c: c, base: path.Base(strings.ReplaceAll(l.Name, `\`, "/")), agents: map[string]*stream{}, sides: map[hash]*stream{}}
	for it, err := range l.Items {
		var bad *transcript.LineError
		if errors.As(err, &bad) {
			r.damaged++
			continue
		}
		if err != nil {
			c.found.Unread++
			return err
		}
		if err := r.take(it); err != nil {
			c.found.Unread++
			return err
		}
	}
	c.sums[l.Sum] = true
	c.found.Damaged += r.damaged
	c.streams = append(c.streams, r.finish(l)...)
	if r.newest.After(c.newest) {
		c.newest = r.newest
	}
	return nil
}

// name returns the number of a tool.
func (c *Corpus) name(s string) int32 {
	if len(s) > maxName {
		s = strings.ToValidUTF8(s[:maxName], "") + "…"
	}
	if n, ok := c.index[s]; ok {
		return n
	}
	if len(c.names) >= maxNames && s != OtherTool {
		return c.name(OtherTool)
	}
	s = strings.Clone(s) // it may be a part of a whole message
	n := int32(len(c.names))
	c.names, c.index[s] = append(c.names, s), n
	return n
}

// unique decides which calls count. A call that two sessions hold counts in the longer one: a log that another one
// goes on from is no session, and of a branch only what is its own counts.
func (c *Corpus) unique() (kept []*stream, repeated int) {
	all := slices.Clone(c.streams)
	slices.SortStableFunc(all, func(a, b *stream) int {
		return cmp.Or(cmp.Compare(len(b.calls), len(a.calls)), cmp.Compare(len(b.pieces), len(a.pieces)),
			slices.Compare(a.id[:], b.id[:]), cmp.Compare(a.class, b.class))
	})
	seen := map[hash]bool{}
	for _, s := range all {
		keys := s.keys()
		if s.share(func(k hash) bool { return seen[k] }); s.shared(seen) {
			repeated++
			continue
		}
		for _, k := range keys {
			seen[k] = true
		}
		kept = append(kept, s)
	}
	return kept, repeated
}

// reader takes the items of one log.
type reader struct {
	c       *Corpus
	base    string
	main    *stream
	agents  map[string]*stream // side chains by the id of their agent
	sides   map[hash]*stream   // those without one, by the uuids of their lines
	side    *stream            // of those, the last that spoke
	all     []*stream
	pieces  int
	damaged int
	newest  time.Time
}

func (r *reader) take(it transcript.Item) error {
	if it.At.After(r.newest) {
		r.newest = it.At
	}
	s := r.of(it)
	if it.Boundary && s != r.main && r.main != nil {
		r.main.cut() // a subagent spoke between the compaction and the next message
	} else if it.Boundary || it.Summary {
		s.cut()
	}
	before := len(s.pieces)
	s.take(it)
	if r.pieces += len(s.pieces) - before; r.pieces > maxPieces {
		return tidemark.ErrTooLarge
	}
	return nil
}

// of returns the session in which an item was said.
func (r *reader) of(it transcript.Item) *stream {
	if !it.SideChain {
		if r.main == nil {
			r.main = r.open(Main, it.Agent)
		}
		return r.main
	}
	s := r.agents[it.Agent]
	if it.Agent == "" {
		if it.Parent != "" {
			s = r.sides[hashOf(it.Parent)]
		}
		if s == nil && (it.Parent != "" || it.Message.Role == tidemark.Assistant) {
			s = r.side // it answers a line that is no message
		}
		if s == nil {
			s = r.open(Subagent, "")
		}
		r.side = s
		for _, id := range it.UUIDs {
			if id != "" {
				r.sides[hashOf(id)] = s
			}
		}
	}
	if s == nil {
		s = r.open(Subagent, it.Agent)
	}
	if it.Agent != "" {
		r.agents[it.Agent] = s
	}
	return s
}

func (r *reader) open(class Class, agent string) *stream {
	for _, id := range []string{agent, strings.TrimPrefix(r.base, "agent-")} {
		switch {
		case id == r.base && id != agent: // no file of a subagent
		case strings.HasPrefix(id, "acompact"):
			class = Compact
		case strings.HasPrefix(id, "aprompt_suggestion"):
			class = Suggestion
		case id != agent && class == Main:
			class = Subagent
		}
	}
	s := newStream(r.c, class)
	r.all = append(r.all, s)
	return s
}

// finish ends the sessions of a log. One without messages is a session of class other, as in the paper.
func (r *reader) finish(l Log) []*stream {
	if len(r.all) == 0 {
		s := newStream(r.c, Other)
		s.chain = hashOf("log", string(l.Sum[:]))
		r.all = append(r.all, s)
	}
	for _, s := range r.all {
		s.finish()
	}
	return r.all
}
