package proxy

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/episodes"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/paging"
	"github.com/tidemark-ai/tidemark/proxy/body"
	"github.com/tidemark-ai/tidemark/proxy/stream"
)

type item = body.Item

// badRequest is the status of a request that the API cannot read.
const badRequest = 400

// maxLegs bounds how often the API is called for one request, while the model calls nothing but our tools.
const maxLegs = 8

// Exchange is one request of a client and its answer, which may take several calls of the API. It is for one
// goroutine.
type Exchange struct {
	c         *Conversation
	ask       Ask
	treatment string
	why       string // it is sent as it came, since
	whyKind   string // what sort of reason that is
	refused   bool   // the API did not take it with our edits
	busy      bool   // counted among those in work

	req    *body.Request       // nil for what cannot be read
	sums   [][sha256.Size]byte // of the messages
	forms  map[int]form        // of those that do not stand here as they do in the log
	path   []*node
	track  *track // that the answer belongs to
	of     *track // that the step belongs to: another one where somebody else went on meanwhile
	step   *step
	plan   plan
	out    []byte // to be sent now
	sent   int    // bytes of the first call
	zone   paging.Zone
	size   tidemark.Tokens
	tau    int
	filter *stream.Filter

	status  int
	legs    int
	tail    [][]byte                  // of the calls so far: what the model said and what we answered
	results map[string]tidemark.Block // answers of ours, by call
	phantom int
	given   map[string]bool // handles whose copies were given back
	marks   *episodes.Graph // with the calls of the legs so far, nil while there is none of the tool of episodes
	act     *act            // what left with this request

	kept  int // messages of it that it stored
	reply *node
}

// Body is what is to be sent now.
func (x *Exchange) Body() []byte { return x.out }

// Treatment is what is to be done with the request. See [Exchange.Untouched].
func (x *Exchange) Treatment() string { return x.treatment }

// Answer takes the head of the API's first answer: its status, and whether it is a stream of events. Where it is false all
// that follows goes to the client as it comes, and nothing is fed. While the API answers, what the client sent is stored.
func (x *Exchange) Answer(ctx context.Context, status int, streams bool) bool {
	x.status = status
	if x.legs == 0 {
		x.sent = len(x.out)
	}
	if x.track == nil || x.ask.Count || status < 200 || status > 299 {
		return false
	}
	if x.why != "" { // it is logged all the same
		x.track.sour = x.track.sour || x.refused
		x.filter = stream.New(stream.Options{Dialect: stream.Dialect(x.req.Dialect), Stream: x.req.Stream})
	}
	x.legs++
	x.filter.Streams(streams)
	ctx = context.WithoutCancel(ctx)
	x.c.Runtime.Go(func() { x.store(ctx) })
	return true
}

// store keeps what the client sent; what fails is tried once more at the end.
func (x *Exchange) store(ctx context.Context) {
	x.c.mu.Lock()
	defer x.c.mu.Unlock()
	if err := x.c.keep(ctx, x); err != nil {
		x.c.Logger.Warn("a proxied request is not stored yet", "key", x.c.Key, "err", err)
	}
}

// Refused is asked when the API refuses a request as invalid: whether Body is to be sent once more, now as it came. If it
// was our edits that the API does not take, the client is not to suffer for them.
func (x *Exchange) Refused(status int) bool {
	if status != badRequest || x.why != "" || x.legs > 0 || bytes.Equal(x.out, x.ask.Body) {
		return false
	}
	x.why, x.whyKind = errRefused.Error(), Refused
	x.out, x.plan, x.refused = x.ask.Body, plan{}, true
	x.c.mu.Lock()
	defer x.c.mu.Unlock()
	x.undo()
	return true
}

// Feed takes bytes of the answer as they come and returns what the client is sent now. A whole answer, that is no
// stream, comes with Finish.
func (x *Exchange) Feed(p []byte) ([]byte, error) { return x.filter.Feed(p) }

// Next is asked at the end of an answer's body: whether Body is to be sent again, with what the model asked us and
// what we say to that.
func (x *Exchange) Next(ctx context.Context) bool {
	leg := x.filter.EndLeg()
	var results [][]byte
	var said []tidemark.Block
	marks := x.delimit(leg.Message)
	for _, call := range leg.Phantom {
		if a, ok := marks[call.ID]; ok {
			x.results[call.ID] = a.Result(call.ID)
		} else {
			x.results[call.ID] = x.answer(ctx, call)
		}
		said = append(said, x.results[call.ID])
		results = append(results, x.results[call.ID].AppendJSON(nil))
		x.phantom++
	}
	x.delimited(said)
	if !leg.Again() || x.legs >= maxLegs {
		return false
	}
	x.tail = append(x.tail, leg.Message.AppendJSON(nil), message(tidemark.User, results))
	change := x.plan.change
	change.Append = x.tail
	out, err := x.req.Apply(change)
	if err != nil {
		x.c.Logger.Warn("a continuation cannot be made", "key", x.c.Key, "err", err)
		return false
	}
	x.out = out
	x.legs++
	x.filter.Next()
	return true
}

// message is a message of blocks.
func message(role tidemark.Role, blocks [][]byte) []byte {
	return fmt.Appendf(nil, `{"role":%s,"content":[%s]}`, json.AppendString(nil, string(role)), bytes.Join(blocks, []byte{','}))
}

// Finish ends the exchange: it returns the rest for the client and writes down what was said. What cannot be written
// is logged: the client has its answer, and the history.
func (x *Exchange) Finish(ctx context.Context) ([]byte, error) {
	if x.legs == 0 {
		x.fail(ctx, "")
		return nil, nil
	}
	rest, turn := x.filter.Finish()
	x.c.mu.Lock()
	defer x.c.mu.Unlock()
	defer x.done()
	event := x.take(turn)
	if err := x.c.record(ctx, x, x.recordOf(turn), event); err != nil {
		x.c.Logger.Error("a proxied answer is not stored", "key", x.c.Key, "err", err)
		x.c.loaded = x.c.loaded && !errors.Is(err, tidemark.ErrConflict) // somebody else wrote: read it anew
	} else if h, ok := x.c.Home.(Teller); ok {
		h.Told(tidemark.Event{Type: "proxy", Text: fmt.Sprintf("%d messages, zone %s, %d stubs", len(x.path), x.zone, len(x.plan.stubs))})
	}
	return rest, nil
}

// done counts the exchange out. It is called with the lock held.
func (x *Exchange) done() {
	if x.busy {
		x.busy = false
		x.c.busy--
		if x.step != nil {
			x.step.busy--
		}
	}
}

// take puts a reply into the tree and does what it asks for by tags. A reply that was broken off is no message of the
// history: the client may have thrown it away. It is kept as an event.
func (x *Exchange) take(turn stream.Turn) *tidemark.Event {
	c, t := x.c, x.track
	last := x.path[len(x.path)-1]
	if turn.Usage != (tidemark.Usage{}) && t.leaf == last && x.asDecided() {
		x.step.usage = stepUsage(turn)
	}
	x.step.answered = true
	if !turn.Whole {
		raw, _ := json.Marshal(turn.Seen)
		return &tidemark.Event{Type: "cut", Text: "an answer that was broken off", Data: raw}
	}
	if len(turn.Seen.Content) == 0 && len(turn.Places) == 0 {
		return nil
	}
	n, err := c.tree.join(last, turn.Seen)
	if err != nil {
		return &tidemark.Event{Type: "cut", Text: "an answer that there was no room for: " + oneLine(err.Error())}
	}
	n.call = &tidemark.Call{Requested: x.req.Model, Stop: turn.Stop}
	if k := len(turn.Legs); k > 0 { // a context is that of one call; what all cost is in the record
		last := turn.Legs[k-1]
		n.call.Model, n.call.RequestID, n.call.Usage, n.call.Reported = last.Model, last.ID, last.Usage, last.Reported
	}
	if n.seq == 0 && !n.fed {
		n.put = putOf(turn, x.results)
		scan := paging.Scanner{Tools: c.Settings.Tools}
		it := logged(turn.Seen)
		if n.feed(&scan, it); c.marks {
			n.work = workOf(n, it)
		}
	}
	x.report(turn, n)
	x.reply = n
	if n.owner != nil && n.owner != t { // the same was answered before, and stands in that log
		return nil
	}
	if t.leaf != last { // somebody else went on from here: this answer is a track of its own
		if n.owner != nil {
			return nil
		}
		other, err := c.tree.fork(t, x.step.n+1, last)
		if err != nil {
			return &tidemark.Event{Type: "cut", Text: oneLine(err.Error())}
		}
		x.track, t = other, other
	}
	c.tree.moveTo(t, n)
	release, anchor := len(t.release), len(t.anchor)
	edits, refused := x.operate(t, turn.Ops)
	if len(edits)+len(t.release)+len(t.anchor) > release+anchor {
		t.owed = append(t.owed, owed{edits, editRow{Step: t.newest(), Release: t.release[release:], Anchor: t.anchor[anchor:], Edits: rowsOf(edits)}})
	}
	if len(refused) > 0 {
		raw, _ := json.Marshal(refused)
		return &tidemark.Event{Type: "tags", Text: fmt.Sprintf("%d operations by tags were not carried out", len(refused)), Data: raw}
	}
	return nil
}

// asDecided reports whether what the pager takes to be out was: what the provider reports of another request tells it
// nothing.
func (x *Exchange) asDecided() bool {
	return x.why == "" && strings.Contains(x.treatment, Page) || x.of.pager != nil && len(x.of.pager.Stubs()) == 0
}

// newest is the number of a track's newest step, -1 where it has none of its own.
func (t *track) newest() int {
	if n := len(t.steps); n > 0 {
		return t.steps[n-1].n
	}
	return -1
}

// stepUsage is what the provider reported of the request itself: of several calls what the first was sent, since the
// others have more in them than the history that the client sends next, and what all said.
func stepUsage(turn stream.Turn) *tidemark.Usage {
	u := turn.Usage
	if len(turn.Legs) > 0 && turn.Legs[0].Reported {
		u = turn.Legs[0].Usage
		u.Output = turn.Usage.Output
	}
	return &u
}

// Broken ends it early: the API or the client failed in between. It returns what to say on a stream that has begun,
// nil where there is nothing to say it on.
func (x *Exchange) Broken(ctx context.Context, err error) []byte {
	var out []byte
	if x.legs > 0 && err != nil && ctx.Err() == nil {
		out = x.filter.Break("api_error", oneLine(err.Error()))
	}
	x.fail(ctx, tellOf(err))
	return out
}

func tellOf(err error) string {
	if err == nil {
		return ""
	}
	return oneLine(err.Error())
}

// fail notes an exchange without a whole answer. One that the API refused leaves nothing: the client will send another.
func (x *Exchange) fail(ctx context.Context, why string) {
	c := x.c
	c.mu.Lock()
	defer c.mu.Unlock()
	defer x.done()
	if x.legs == 0 || x.track == nil {
		x.undo()
		if x.track == nil && x.why != "" && !x.ask.Count && x.status >= 200 && x.status <= 299 {
			if err := c.noteUntouched(context.WithoutCancel(ctx), x); err != nil {
				c.Logger.Warn("an untouched request is not noted", "key", c.Key, "err", err)
			}
		}
		if x.track != nil && x.status >= 400 && x.status < 500 && x.status != 429 {
			c.tree.takeBack(x)
		}
		return
	}
	_, turn := x.filter.Finish()
	turn.Whole = false
	event := x.take(turn)
	rec := x.recordOf(turn)
	rec.Error = why
	if err := c.record(context.WithoutCancel(ctx), x, rec, event); err != nil {
		c.Logger.Error("a proxied answer is not stored", "key", c.Key, "err", err)
	}
}

// recordOf is what is told of the exchange.
func (x *Exchange) recordOf(turn stream.Turn) Record {
	d := &x.plan.decision
	r := Record{At: x.c.Runtime.Now(), Treatment: x.treatment, Untouched: x.why, Requested: x.req.Model, Legs: x.legs, Messages: len(x.path),
		Window: x.c.Settings.Window, Phantom: x.phantom, Trimmed: x.plan.trimmed,
		Account: paging.Account{Zone: x.zone.String(), Size: x.size, Tau: x.tau, Stubs: len(x.plan.stubs), Inputs: len(d.Input), Images: len(d.Image),
			Pins: len(d.Pin), Evicted: len(d.Evict), Collected: len(d.GC), In: len(x.ask.Body), Sent: x.sent}}
	for _, s := range x.plan.stubs {
		r.Out += s.page.Size
	}
	if episodic(x.treatment) {
		e := x.plan.episodes
		r.Episodes, r.Size = &e, e.Size
	}
	for _, f := range d.Fault {
		r.Faults = append(r.Faults, paging.Faulted{Call: f.ID, Of: f.Of.ID, Path: f.Of.Call.Path})
	}
	sum := &x.track.sum
	*sum = paging.Sum{Calls: sum.Calls + 1, Evicted: sum.Evicted + r.Evicted, Collected: sum.Collected + r.Collected, Inputs: sum.Inputs + r.Inputs, Images: sum.Images + r.Images,
		Faults: sum.Faults + len(r.Faults), Pins: sum.Pins + r.Pins, In: sum.In + int64(r.In), Sent: sum.Sent + int64(r.Sent)}
	r.Totals = *sum
	r.Call = tidemark.Call{Requested: x.req.Model, Stop: turn.Stop, Usage: turn.Usage, Reported: turn.Usage != (tidemark.Usage{})}
	if k := len(turn.Legs); k > 0 {
		r.First, r.Newest = turn.Legs[0].Usage, turn.Legs[k-1].Usage
		r.Call.Model, r.Call.RequestID = turn.Legs[k-1].Model, turn.Legs[k-1].ID
	}
	return r
}
