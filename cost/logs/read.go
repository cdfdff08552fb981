package logs

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/cost"
	"github.com/tidemark-ai/tidemark/transcript"
)

const (
	maxCalls       = 1 << 20 // calls of one log whose usage is added up
	maxCompactions = 1 << 14
)

// reader reads a log once, from its first line to its last.
type reader struct {
	prices   cost.Prices
	fallback cost.Price
	changes  []int64 // offsets at which trimming changes the log, ascending; those behind the first that counts are of no use

	context tidemark.Tokens // of a log without a report, where it is known; else 0

	more bool // there are changes behind those, which nobody kept

	c     Contents
	calls map[string]call
	known map[string]*cost.Price // of models, nil for those without

	live    livePart
	pending *Compaction // the last one, until the call behind it tells its size
}

// livePart is what is known of the part behind the last compaction.
type livePart struct {
	parts   [7]weight // in the order of Composition.Parts
	all     weight
	paper   int64 // characters as the known implementation counts them
	sent    tidemark.Tokens
	at      int64  // paper at that call
	atAll   weight // all at that call
	changed bool
	same    tidemark.Tokens // weight before the first change
}

// call is a request to the model, by its message id.
type call struct {
	usage tidemark.Usage
	hour  tidemark.Tokens
	model string
	side  bool
}

// Read reads a log: what it is made of, and what its calls cost by their models' prices; fallback is that of models
// without one.
func Read(ctx context.Context, r io.Reader, prices cost.Prices, fallback cost.Price) (Contents, error) {
	rd := reader{prices: prices, fallback: fallback}
	return rd.read(ctx, r)
}

func (r *reader) read(ctx context.Context, in io.Reader) (Contents, error) {
	r.calls, r.known = map[string]call{}, map[string]*cost.Price{}
	for l, err := range transcript.Lines(in, transcript.Options{}) {
		if err == nil {
			err = ctx.Err()
		}
		if err == nil {
			err = r.line(l)
		}
		if err != nil {
			return r.c, fmt.Errorf("measure log: %w", err)
		}
	}
	r.end()
	return r.c, nil
}

// Places in Composition.Parts.
const (
	inResults = iota
	inSignatures
	inHistory
	inRequests
	inConversation
	inCopies
	inOther
)

func (r *reader) count(part int, bytes, count int64) {
	p := r.c.Composition.Parts()[part]
	p.Bytes += bytes
	p.Count += count
}

// line counts one line.
func (r *reader) line(l transcript.Line) error {
	r.c.Lines, r.c.Bytes = l.Number, l.Offset+l.Size
	if l.Blank() {
		return nil
	}
	size := int64(len(bytes.TrimSuffix(l.Raw, []byte{'\n'})))
	switch typ := l.Type(); {
	case l.Err != nil:
		r.count(inOther, size, 1)
	case l.EndsContext():
		return r.boundary(l, size)
	case typ == "file-history-snapshot":
		r.count(inHistory, size, 1)
	case typ == "queue-operation":
		r.count(inOther, size, 1)
	default:
		r.facts(l, typ)
		return r.message(l, typ, size)
	}
	return nil
}

// boundary begins the live part anew.
func (r *reader) boundary(l transcript.Line, size int64) error {
	c := &r.c
	r.settle()
	if len(c.Compactions) == maxCompactions {
		return fmt.Errorf("more than %d compactions: %w", maxCompactions, tidemark.ErrTooLarge)
	}
	k := Compaction{Line: l.Number, At: l.Time(), BeforeBasis: "usage", Before: r.live.sent}
	if since := r.live.since(); r.live.sent > 0 {
		k.Before += since
	} else {
		k.Before, k.BeforeBasis = r.prefix()+r.live.all.tokens(), "estimate"
	}
	if n, trigger := metadata(l); n > 0 {
		k.Before, k.BeforeBasis, k.Trigger = n, "log", trigger
	}
	r.pending = &k
	c.Composition, c.Live, c.LiveFrom, r.live = Composition{}, Counts{}, l.Offset, livePart{}
	text, ok := l.Field("summary")
	if !ok {
		text, _ = l.Field("content")
	}
	if text.Kind != transcript.String {
		r.count(inOther, size, 1)
		return nil
	}
	n := textUnits(l, text)
	r.count(inConversation, size, 1)
	r.live.paper = n
	if l.Type() == "summary" { // else it says only that there was a compaction, and the summary is a message
		r.live.weigh(inConversation, weight{chars: n})
	}
	return nil
}

// metadata reads what a compaction says of itself.
func metadata(l transcript.Line) (before tidemark.Tokens, trigger string) {
	f, ok := l.Field("compactMetadata")
	if !ok {
		return 0, ""
	}
	for m := range l.Members(f) {
		switch m.Name {
		case "preTokens":
			before = number(l, m)
		case "trigger":
			trigger = l.Text(m)
		}
	}
	return before, trigger
}

// number reads a whole number that is not negative; anything else is none.
func number(l transcript.Line, f transcript.Field) tidemark.Tokens {
	const digits = 15
	if f.Kind != transcript.Number || f.Size() > digits {
		return 0
	}
	n, err := strconv.ParseInt(string(l.Bytes(f)), 10, 64)
	if err != nil {
		return 0
	}
	return tidemark.Tokens(max(n, 0))
}

// facts takes what a line says of its session.
func (r *reader) facts(l transcript.Line, typ string) {
	c := &r.c
	if t := l.Time(); !t.IsZero() {
		if c.First.IsZero() || t.Before(c.First) {
			c.First = t
		}
		if t.After(c.Last) {
			c.Last = t
		}
	}
	keep := func(to *string, s string) {
		if s != "" {
			*to = strings.Clone(s)
		}
	}
	if l.Flag("isSidechain") {
		return
	}
	keep(&c.Session, l.Get("sessionId"))
	keep(&c.CWD, l.Get("cwd"))
	switch typ {
	case "summary":
		keep(&c.Title, l.Get("summary"))
	case "custom-title":
		keep(&c.Title, l.Get("customTitle"))
	case "ai-title":
		keep(&c.Title, l.Get("aiTitle"))
	}
}

// message counts a line that may be one.
func (r *reader) message(l transcript.Line, typ string, size int64) error {
	role := l.Get("role")
	if role == "" {
		role = typ
	}
	if !human(role) && role != "assistant" {
		r.count(inOther, size, 1)
		return nil
	}
	side := l.Flag("isSidechain")
	if role == "assistant" {
		if err := r.call(l, side); err != nil {
			return err
		}
	}
	if side { // a subagent's: its context is another
		r.c.Side++
		r.count(inOther, size, 1)
		return nil
	}
	if role == "assistant" {
		r.c.Live.Assistant++
		r.c.All.Assistant++
	} else {
		r.c.Live.User++
		r.c.All.User++
	}
	if f, ok := l.Field("toolUseResult"); ok {
		r.count(inCopies, f.Size(), 1)
		size -= f.Size()
	}
	content, ok := l.MessageField("content")
	if !ok {
		content, _ = l.Field("content")
	}
	r.count(inConversation, max(0, size-r.content(l, content)), 1)
	return nil
}

// content counts the blocks of a message, and says how many of its bytes are no conversation.
func (r *reader) content(l transcript.Line, content transcript.Field) (accounted int64) {
	switch content.Kind {
	case transcript.String:
		n := textUnits(l, content)
		r.touch(l, content)
		r.live.weigh(inConversation, weight{chars: n})
		r.live.paper += n
	case transcript.Array:
		for f := range l.Members(content) {
			b := readBlock(l, f, 0)
			r.touch(l, f)
			accounted += r.block(b)
		}
	}
	return accounted
}

// block counts one block of a message, and says how many of its bytes are no conversation.
func (r *reader) block(b block) (accounted int64) {
	part := inConversation
	switch b.typ {
	case tidemark.TypeToolResult:
		part, accounted = inResults, b.size
		r.c.Live.ToolResults++
		r.c.All.ToolResults++
		r.count(part, b.size, 1)
	case tidemark.TypeToolUse:
		part, accounted = inRequests, b.size
		r.count(part, b.size, 1)
	case tidemark.TypeThinking, "redacted_thinking":
		part = inSignatures
		if accounted = b.signature; accounted > 0 {
			r.count(part, accounted, 1)
		}
	}
	r.c.Live.Images += b.images
	r.c.All.Images += b.images
	r.live.weigh(part, b.text)
	r.live.paper += b.paper
	return accounted
}

// touch notes what stands before the first change that trimming makes to what the model sees: f is to be counted next.
func (r *reader) touch(l transcript.Line, f transcript.Field) {
	if r.live.changed {
		return
	}
	from, to := l.Offset+f.Start, l.Offset+f.End
	for len(r.changes) > 0 && r.changes[0] < to {
		if r.changes[0] >= from {
			r.live.changed, r.live.same = true, r.live.all.tokens()
			return
		}
		r.changes = r.changes[1:]
	}
	if len(r.changes) == 0 && r.more { // it may be this one: rather too early than too late
		r.live.changed, r.live.same = true, r.live.all.tokens()
	}
}

func (v *livePart) weigh(part int, w weight) {
	v.parts[part].add(w)
	v.all.add(w)
}

// since is what came behind the last call that reported.
func (v *livePart) since() tidemark.Tokens {
	return weight{v.all.chars - v.atAll.chars, v.all.vision - v.atAll.vision}.tokens()
}

// prefix is what stands before the messages: what the first call sent beyond them, else what the paper assumes.
func (r *reader) prefix() tidemark.Tokens {
	if r.c.Prefix > 0 {
		return r.c.Prefix
	}
	return transcript.TypicalPrefix
}

// end works out what only the whole log tells.
func (r *reader) end() {
	c, v := &r.c, &r.live
	r.settle()
	c.LiveBytes = c.Composition.bytes()
	c.Composition.shares()
	for i, p := range c.Composition.Parts() {
		p.Tokens = v.parts[i].tokens()
	}
	const quarter = 4
	rounded := func(chars int64) tidemark.Tokens { return tidemark.Tokens((chars + quarter/2) / quarter) }
	c.Estimate = rounded(v.paper) + transcript.TypicalPrefix
	c.Prefix, c.Weight = r.prefix(), v.all.tokens()
	c.Context = c.Prefix + c.Weight
	if v.sent > 0 {
		c.Estimate = v.sent + rounded(v.paper-v.at)
		c.Context, c.Measured = v.sent+v.since(), true
	} else if r.context > 0 {
		c.Context = r.context
	}
	c.Prefix = transcript.Prefix(c.Prefix, c.Context, c.Weight)
	if c.Same = c.Weight; v.changed {
		c.Same = v.same
	}
	for i := range c.Compactions {
		k := &c.Compactions[i]
		k.MessagesBefore, k.MessagesAfter = max(0, k.Before-c.Prefix), max(0, k.After-c.Prefix)
	}
	r.built()
}

// settle says how large the context was behind the last compaction.
func (r *reader) settle() {
	k := r.pending
	if k == nil {
		return
	}
	r.pending = nil
	if k.After == 0 {
		k.After, k.AfterBasis = r.prefix()+r.live.all.tokens(), "estimate"
	}
	if k.Before > 0 {
		k.Reduction = 100 * float64(k.Before-k.After) / float64(k.Before)
	}
	r.c.Compactions = append(r.c.Compactions, *k)
}

// ttl is how long the cache lives that most was written to.
func ttl(hour, all tidemark.Tokens) time.Duration {
	if 2*hour > all {
		return cost.LongTTL
	}
	return cost.ShortTTL
}
