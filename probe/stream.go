package probe

import (
	"crypto/sha256"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/paging"
	"github.com/tidemark-ai/tidemark/transcript"
)

// piece is one block, or a part of one.
type piece struct {
	size, dup int64 // dup bytes of it stand in the context already
	kind      Kind
	fails     bool
	tool      int32
	turn      int32 // messages of role user before and with it
	made      int32 // the call that wrote it, or the first that carries it
	end       int32 // the first call that no longer carries it
	used      int32 // the first call behind its last use
	newer     int32 // the first call that carries a newer copy, 0 for none
}

// call is one request.
type call struct {
	key     hash
	usage   tidemark.Usage
	known   bool  // usage was reported
	image   bool  // something with an image came since the call before
	shared  bool  // it counts in another session
	stretch int32 // of the session
	turn    int32
	sent    int64 // bytes of the messages in the context
	dup     int64 // of those, what stood there twice
	guess   int64 // what the estimator says of sent
	wrote   int64 // bytes that it gave
	stubs   int64 // bytes that stubs of unused definitions would save
}

// use is what a call of a tool asked for.
type use struct {
	tool  int32
	kind  paging.Kind
	key   hash // of the path, else of tool and input
	span  paging.Range
	index int // of the piece, in the list of results
}

// stream is one session.
type stream struct {
	c     *Corpus
	class Class
	id    hash
	chain hash // over all that was said since the last compaction

	pieces []piece
	calls  []call

	// The stretch.
	stretch    int32
	firstPiece int
	sent, dup  int64
	guess      int64
	results    map[hash][]use // results that are in the context, by what was asked for
	reminders  map[hash]bool  // reminders and names of skills that are in it

	// Only while the log is read.
	said    bool // a message came
	asked   bool // the last one was of role user
	image   bool
	turn    int32
	pending map[hash]use  // calls of tools by id
	lines   map[hash]bool // user lines that came
	tools   map[int32]bool
	hint    bool // a request for a suggestion was made
}

func newStream(c *Corpus, class Class) *stream {
	return &stream{c: c, class: class, results: map[hash][]use{}, reminders: map[hash]bool{},
		pending: map[hash]use{}, lines: map[hash]bool{}, tools: map[int32]bool{}}
}

// cut begins a new stretch.
func (s *stream) cut() {
	if len(s.pieces) == s.firstPiece {
		return
	}
	s.endStretch()
	s.stretch++
	s.sent, s.dup, s.guess, s.chain = 0, 0, 0, hash{}
	s.results, s.reminders = map[hash][]use{}, map[hash]bool{}
}

func (s *stream) endStretch() {
	for i := s.firstPiece; i < len(s.pieces); i++ {
		s.pieces[i].end = int32(len(s.calls))
	}
	s.firstPiece = len(s.pieces)
}

// finish forgets what only reading needs.
func (s *stream) finish() {
	s.endStretch()
	switch {
	case len(s.calls) == 0:
		s.class = Other
	case s.hint && s.class != Compact:
		s.class = Suggestion
	}
	h := sha256.New()
	for _, k := range s.keys() {
		h.Write(k[:])
	}
	s.id = hash(h.Sum(nil)[:16])
	s.results, s.reminders, s.pending, s.lines, s.tools = nil, nil, nil, nil, nil
}

// keys name what was asked of a model here, or all that was said where nothing was.
func (s *stream) keys() []hash {
	if len(s.calls) == 0 {
		return []hash{s.chain}
	}
	keys := make([]hash, len(s.calls))
	for i, c := range s.calls {
		keys[i] = c.key
	}
	return keys
}

// share marks the calls that count elsewhere, with those before them in their stretch.
func (s *stream) share(elsewhere func(hash) bool) {
	last := false
	for i := len(s.calls) - 1; i >= 0; i-- {
		if i+1 < len(s.calls) && s.calls[i].stretch != s.calls[i+1].stretch {
			last = false
		}
		last = last || elsewhere(s.calls[i].key)
		s.calls[i].shared = last
	}
}

// shared reports whether nothing here is the session's own.
func (s *stream) shared(seen map[hash]bool) bool {
	if len(s.calls) == 0 {
		return seen[s.chain]
	}
	for _, c := range s.calls {
		if !c.shared {
			return false
		}
	}
	return true
}

// counts reports whether a piece is the session's own.
func (s *stream) counts(p piece) bool {
	return int(p.made) >= len(s.calls) || p.made == p.end || !s.calls[p.made].shared
}

// take adds a message.
func (s *stream) take(it transcript.Item) {
	m := it.Message
	if m.Role == tidemark.User {
		if s.repeats(it.UUIDs) {
			return
		}
		if it.Summary && !s.said && s.class == Main {
			s.class = Compact
		}
		if !s.asked {
			s.turn++
		}
	}
	asks := m.Role == tidemark.Assistant && it.Model != "<synthetic>" && !it.APIError
	if asks {
		s.call(it)
	}
	s.said, s.asked = true, m.Role == tidemark.User
	raws := make(map[hash]bool, len(m.Content))
	chain := []string{string(s.chain[:]), string(m.Role)}
	for _, b := range m.Content {
		raw := b.AppendJSON(nil)
		h := hashOf(string(raw))
		if raws[h] {
			continue // a line that was written twice
		}
		raws[h] = true
		chain = append(chain, string(h[:]))
		was := s.sent
		s.block(it, b, raw)
		s.guess += int64(tidemark.EstimateChars(tidemark.UTF16Len(raw))) * (s.sent - was) / int64(len(raw))
		if asks {
			s.calls[len(s.calls)-1].wrote += s.sent - was
		}
	}
	s.chain = hashOf(chain...)
	if asks && it.ID == "" {
		s.calls[len(s.calls)-1].key = s.chain
	}
}

// repeats reports whether a line was there before, as some logs have it after a session was resumed.
func (s *stream) repeats(uuids []string) bool {
	if len(uuids) != 1 || uuids[0] == "" {
		return false
	}
	h := hashOf(uuids[0])
	was := s.lines[h]
	s.lines[h] = true
	return was
}

// call adds a request: all that was said before it.
func (s *stream) call(it transcript.Item) {
	c := call{stretch: s.stretch, turn: s.turn, sent: s.sent, dup: s.dup, guess: s.guess, image: s.image, stubs: s.stubs()}
	s.image = false
	if it.ID != "" {
		c.key = hashOf("call", it.ID)
	}
	if u := it.Usage; u != nil && max(u.Input, u.CacheRead, u.CacheCreation, u.Output) <= maxTokens {
		c.usage, c.known = *u, true
	}
	s.calls = append(s.calls, c)
}

// maxTokens bounds what a log may say that one call took: a thousand times the largest windows.
const maxTokens = 1 << 30

// stubs is what stubs of the tools that were not used until now would save of a call.
func (s *stream) stubs() (saved int64) {
	if s.c.o.Definitions == nil {
		return int64(max(0, PaperTools-len(s.tools))) * PaperSaved
	}
	for _, d := range s.c.o.Definitions {
		if !s.tools[s.c.name(d.Name)] {
			saved += max(0, d.Bytes-stubBytes)
		}
	}
	return saved
}

// now is the call that carries, or writes, what is added.
func (s *stream) now(role tidemark.Role) int32 {
	if role == tidemark.Assistant && len(s.calls) > 0 && s.calls[len(s.calls)-1].stretch == s.stretch {
		return int32(len(s.calls) - 1)
	}
	return int32(len(s.calls))
}

// block adds one block of a message.
func (s *stream) block(it transcript.Item, b tidemark.Block, raw []byte) {
	size := int64(len(raw))
	p := piece{size: size, made: s.now(it.Message.Role), tool: -1}
	switch b.Type {
	case tidemark.TypeText:
		s.text(it, b.Text, p)
		return
	case tidemark.TypeThinking, tidemark.TypeRedactedThinking:
		p.kind = Thinking
	case tidemark.TypeImage, tidemark.TypeDocument:
		p.kind = Image
	case tidemark.TypeToolUse:
		p.kind, p.tool = Input, s.ask(b)
	case tidemark.TypeToolResult:
		s.result(b, p)
		return
	default:
		p.kind = Unknown
	}
	s.add(p)
}

// add puts a piece into the context.
func (s *stream) add(p piece) {
	p.turn = s.turn
	p.dup = min(p.dup, p.size)
	if p.kind == Image {
		s.image = true
	} else {
		s.sent += p.size
		s.dup += p.dup
	}
	s.pieces = append(s.pieces, p)
}

// text adds words; reminders among them, and what the tool wrote in a person's name, are of kind system.
func (s *stream) text(it transcript.Item, text string, p piece) {
	if it.Message.Role == tidemark.Assistant {
		if p.kind = Reply; it.Model == "<synthetic>" || it.APIError {
			p.kind = System
		}
		s.add(p)
		return
	}
	s.hint = strings.HasPrefix(text, suggestionHead)
	told, dup := s.remind(text)
	if it.Meta || it.Summary || told > 0 && told >= int64(len(strings.TrimSpace(text))) {
		told = p.size
	}
	told = min(told, p.size)
	if told > 0 {
		s.add(piece{size: told, dup: dup, kind: System, made: p.made, tool: -1})
	}
	if p.size -= told; p.size > 0 {
		p.kind = Person
		s.add(p)
	}
}

// suggestionHead is how Claude Code begins the request for what a person may type next.
const suggestionHead = "[SUGGESTION MODE"
