// Package stream turns what a model API answers into what a client of the proxy sees. Calls of tools that
// the client does not know of ("phantom tools", "Pichay: Demand Paging for LLM Context Windows", §3.7) and
// cleanup blocks in texts are taken out, several answers are joined to one, and everything else passes
// byte for byte, and at once. It decides nothing about conversations; package proxy does. Begin with [Leg].
//
// Two dialects are known, each as server-sent events and as one JSON: the Messages API
// (https://docs.anthropic.com/en/docs/build-with-claude/streaming) and chat completions
// (https://platform.openai.com/docs/api-reference/chat-streaming). What cannot be read passes untouched.
//
// The package is pure: bytes go in, bytes come out. What it holds is bounded.
package stream

import (
	"fmt"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/cleanup"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// maxAnswer bounds the body of one answer.
const maxAnswer = 32 << 20

// Dialect is the API that answers; the values are those of package body.
type Dialect uint8

// The dialects.
const (
	Messages Dialect = iota // Anthropic's Messages API
	Chat                    // OpenAI's chat completions
)

// Stop reasons, in the words of the Messages API.
const (
	stopEnd     = "end_turn"
	stopTool    = "tool_use"
	stopLength  = "max_tokens"
	stopRefusal = "refusal"
)

// Options say what is done with an answer. The zero value passes on what the Messages API answers in one
// piece.
type Options struct {
	Dialect Dialect
	Phantom func(name string) bool // whether calls of a tool are taken out; nil: none
	Tags    bool                   // cleanup blocks are taken out
	Stream  bool                   // the answer is a stream of events; see Filter.Streams
}

// Leg is one answer of the API.
type Leg struct {
	Message  tidemark.Message // as the model made it: thinking, calls of ours, tags, but no blank text, which the API refuses
	Phantom  []tidemark.Block // the calls of ours in it
	Real     int              // calls of the client's tools
	Stop     string           // in the words of the Messages API; "" where none came
	Usage    tidemark.Usage
	Reported bool
	Whole    bool   // the reason to stop came, no block is open, all of it could be read
	ID       string // of the answer, as the API gave it
	Model    string
}

// Again reports whether the model waits for answers to calls of ours and nothing else: a continuation is
// due.
func (l Leg) Again() bool {
	return l.Whole && len(l.Phantom) > 0 && l.Real == 0 && l.Stop == stopTool
}

// Place says where something stood that the client never saw; body.Insert takes it.
type Place struct {
	Visible  int // so many blocks of Seen that are not thinking stand before it,
	Thinking int // and behind those so many of thinking
	Offset   int // and of the text behind these so many bytes (chat, where the texts of all legs are one)
	Calls    []tidemark.Block
	Blocks   []tidemark.Block // text that was nothing but tags; it stood before Calls
	Split    bool             // the answer ended here, and the next one followed on the results of Calls, which are all of it
}

// Turn is what a client's request came to.
type Turn struct {
	Seen   tidemark.Message // what the client received, as it will send it back
	Legs   []Leg
	Places []Place
	Ops    []cleanup.Op
	Usage  tidemark.Usage // of all legs
	Stop   string         // that the client was told, in the words of the Messages API
	Whole  bool           // of the last leg
}

// Filter takes the answers to one request. It is used by one goroutine. Make one with New.
type Filter struct {
	o    Options
	wide bool // the client is sent a stream
	framer

	out    []byte // for the client
	given  bool   // out was returned
	torn   bool   // what was sent last lacks its empty line
	lf     fate
	lfGate *gate

	leg     leg
	gate    *gate  // of the text that is open
	held    []byte // the end of a leg that calls of ours ended
	holding bool
	n       int  // blocks that began for the client (Messages)
	shifted bool // something was taken
	spoke   bool // the client got a text of ours, for the lack of another
	broken  bool
	err     error

	first    string // id of the first leg
	total    []byte // figures of the legs before
	legs     []Leg
	seen     []tidemark.Block
	words    []byte // chat: text that the client received
	ops      []cleanup.Op
	places   []Place
	last     int // places of the legs before
	blocks   int // of seen that are not thinking
	behind   int // blocks of thinking behind those
	chatText int // chat: bytes of the text so far
}

// leg is an answer in the making.
type leg struct {
	parts   []*part
	gate    *gate // chat
	id      string
	model   string
	stop    string
	usage   []byte
	head    []byte // chat: what a chunk says beside its choices
	failed  bool   // an error came within the answer
	streams bool
	pass    bool // what is left passes unread
	odd     bool // something could not be read
	ended   bool
	size    int
	body    []byte // not a stream
}

// fate is where the line feed goes that may follow on a frame's last carriage return.
type fate uint8

const (
	toNone fate = iota
	toOut
	toQueue
	toHeld
)

// New returns a filter for the answers to one request.
func New(o Options) *Filter {
	f := &Filter{o: o, wide: o.Stream}
	f.eol, f.name = "\n", o.Dialect == Messages
	f.leg.streams = o.Stream
	f.begin()
	return f
}

// Streams says whether the answer that comes next is a stream, by its content type. A continuation must
// come in the form in which the first answer came: Feed returns ErrInvalid if it does not.
func (f *Filter) Streams(is bool) {
	f.leg.streams = is
	if len(f.legs) == 0 {
		f.wide = is
	} else if is != f.wide {
		f.err = fmt.Errorf("read continuation: it is a stream where the answer is none, or the other way: %w", tidemark.ErrInvalid)
	}
}

// Feed takes bytes of the answer's body as they come and returns what the client gets now, valid until the
// next call. Of an answer in one piece it returns nothing: Finish does. It returns ErrTooLarge for what is
// beyond a bound, and every time then.
func (f *Filter) Feed(p []byte) ([]byte, error) {
	f.fresh()
	if f.leg.size += len(p); f.leg.size > maxAnswer && f.err == nil {
		f.err = fmt.Errorf("read answer: over %d bytes: %w", maxAnswer, tidemark.ErrTooLarge)
	}
	if f.err != nil {
		return f.give(), f.err
	}
	if !f.leg.streams {
		f.leg.body = append(f.leg.body, p...)
		return f.give(), nil
	}
	f.frames(p)
	return f.give(), f.err
}

// EndLeg is told that the answer's body ended, be it whole or not. What was held back of it comes with the
// next Feed, or with Finish.
func (f *Filter) EndLeg() Leg {
	f.fresh()
	if f.leg.ended {
		return f.legs[len(f.legs)-1]
	}
	f.leg.ended = true
	if f.leg.streams {
		f.rest()
		for _, p := range f.leg.parts {
			f.shut(p.gate)
		}
	} else {
		f.readWhole()
	}
	l := f.collect()
	f.legs = append(f.legs, l)
	return l
}

// Next is told that the bytes to come are of a continuation.
func (f *Filter) Next() {
	f.EndLeg()
	f.split()
	f.total = addUsage(f.total, f.leg.usage)
	f.held, f.holding, f.gate, f.lf = nil, false, nil, toNone
	f.leg = leg{streams: f.leg.streams}
	f.begin()
}

// begin prepares for a leg.
func (f *Filter) begin() {
	if f.o.Dialect != Chat {
		return
	}
	g := &gate{plain: !f.o.Tags, started: true}
	if n := len(f.words); n > 0 && f.words[n-1] != '\n' {
		g.lead = between
	}
	g.part = &part{kind: words, gate: g}
	f.leg.gate, f.leg.parts = g, []*part{g.part}
	f.gate = g
}

// Finish returns what was held back, which is all where nothing streams, and what the request came to.
// Where calls of ours ended the last leg, the client is told that the turn ended. It never gets a message without content
// because of what was taken: a few words stand in the place of nothing.
func (f *Filter) Finish() (out []byte, t Turn) {
	f.EndLeg()
	last := f.legs[len(f.legs)-1]
	if ends := !f.wide && last.Whole || f.wide && f.holding; ends && !f.broken && f.err == nil && f.mute() {
		if f.spoke = true; f.wide {
			f.speak()
		}
	}
	if f.spoke {
		f.spoken()
	}
	t = Turn{Legs: f.legs, Places: f.placed(), Ops: f.ops, Stop: last.Stop, Whole: last.Whole && !f.broken && f.err == nil}
	if last.Again() || f.holding {
		t.Stop = stopEnd
	}
	for _, l := range f.legs {
		t.Usage = t.Usage.Add(l.Usage)
	}
	t.Seen = tidemark.Message{Role: tidemark.Assistant, Content: f.seen}
	if f.o.Dialect == Chat && len(f.words) > 0 {
		t.Seen.Content = append([]tidemark.Block{tidemark.Text(string(f.words))}, f.seen...)
	}
	switch {
	case f.broken || f.err != nil:
	case !f.wide:
		f.put(f.assemble(t))
	case f.holding:
		f.put(f.held)
	}
	f.held, f.holding = nil, false
	return f.give(), t
}

// Break returns an error in the form of the dialect, behind what the client was still owed. The answer
// has no other end.
func (f *Filter) Break(kind, message string) []byte {
	f.EndLeg()
	f.broken = true
	inner := json.AppendString([]byte(`{"type":`), kind)
	inner = append(json.AppendString(append(inner, `,"message":`...), message), '}')
	whole := append([]byte(`{"type":"error","error":`), inner...)
	if f.o.Dialect == Chat {
		whole = append([]byte(`{"error":`), inner...)
	}
	whole = append(whole, '}')
	if f.wide {
		whole = f.event("error", whole)
	}
	f.put(whole)
	return f.give()
}

// phantom says whether calls of a tool are ours.
func (o *Options) phantom(name string) bool { return o.Phantom != nil && o.Phantom(name) }

// fresh makes room for what is given next.
func (f *Filter) fresh() {
	if f.given {
		f.out, f.given = f.out[:0], false
	}
}

func (f *Filter) give() []byte {
	f.given = true
	return f.out
}

// put sends bytes that are frames.
func (f *Filter) put(raw []byte) {
	if len(raw) == 0 {
		return
	}
	f.mend()
	f.out = append(f.out, raw...)
	f.lf = toOut
}

// mend ends an event that lacks its empty line, before something follows.
func (f *Filter) mend() {
	if f.torn {
		f.out = append(append(f.out, f.eol...), f.eol...)
		f.torn = false
	}
}

// emit sends a frame with edits.
func (f *Filter) emit(fr frame, edits ...edit) {
	f.mend()
	f.out = render(f.out, fr, edits...)
	f.lf = toOut
}

// hold keeps a frame for the end.
func (f *Filter) hold(fr frame, edits ...edit) {
	f.held = render(f.held, fr, edits...)
	f.holding, f.lf = true, toHeld
}

// drop takes a frame out, but for its comments.
func (f *Filter) drop(fr frame) {
	eachLine(fr.raw, func(line span, end int) {
		if fr.raw[line.From] == ':' {
			f.put(fr.raw[line.From:end])
		}
	})
	f.lf = toNone
}

// lineFeed puts the line feed where the frame went that ended in a carriage return.
func (f *Filter) lineFeed() {
	switch f.lf {
	case toOut:
		f.out = append(f.out, '\n')
	case toHeld:
		f.held = append(f.held, '\n')
	case toQueue:
		if n := len(f.lfGate.queue); n > 0 {
			e := &f.lfGate.queue[n-1]
			e.raw = append(e.raw, '\n')
			f.lfGate.size++
		}
	}
}

// letPass lets what is left of the leg pass unread.
func (f *Filter) letPass() {
	for _, p := range f.leg.parts {
		if p.gate != nil && !p.gate.done {
			f.force(p.gate)
			f.shut(p.gate)
		}
	}
	f.leg.pass, f.leg.odd = true, true
}

// frame takes one event, or a comment.
func (f *Filter) frame(fr frame) {
	switch {
	case !fr.has:
		f.pass(fr)
	case f.o.Dialect == Chat:
		f.chatFrame(fr)
	default:
		f.messagesFrame(fr)
	}
}

// event is an event of our own, in the manner of those that came.
func (c *framer) event(name string, data []byte) []byte {
	var out []byte
	if c.name {
		out = append(append(append(out, "event: "...), name...), c.eol...)
	}
	out = append(append(out, "data: "...), data...)
	return append(append(out, c.eol...), c.eol...)
}
