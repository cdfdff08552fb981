package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"slices"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/room/approvals"
	"github.com/tidemark-ai/tidemark/session"
)

// dialect says what happens with one input in the words of one kind of client. There is one follower
// and a dialect for each door; a dialect knows whether its client wants a stream or only the end. One
// goroutine uses it. An error of any method ends the following; the turn goes on.
type dialect interface {
	// open is told of the receipt before anything else.
	open(session.Receipt) error
	// tell says what has happened, in the order of the session.
	tell(session.Notice) error
	// ping is a sign of life for a client that listens.
	ping() error
	// end says what the turn came to.
	end(outcome) error
	// fail says why there is no outcome. While nothing was sent it may return the error as it is: the
	// door answers it with a status.
	fail(error) error
}

// plain is the dialect of the native API: each notice an event of its name.
type plain struct {
	*request
	live bool // the client listens

	stream *stream
}

var _ dialect = (*plain)(nil)

// wireReceipt is a receipt as an event.
type wireReceipt struct {
	Type string `json:"type"`
	session.Receipt
}

func (p *plain) open(r session.Receipt) error {
	if !p.live {
		return nil
	}
	p.stream = p.begin()
	return p.stream.event("receipt", wireReceipt{"receipt", r})
}

func (p *plain) tell(n session.Notice) error {
	if !p.live {
		return nil
	}
	return p.stream.event(n.Type, n)
}

func (p *plain) ping() error {
	if !p.live {
		return nil
	}
	return p.stream.ping()
}

func (p *plain) end(out outcome) error {
	if !p.live {
		return p.reply(http.StatusOK, out)
	}
	defer p.stream.end()
	return p.stream.event(out.Type, out)
}

func (p *plain) fail(err error) error {
	if p.stream == nil {
		return err
	}
	defer p.stream.end()
	return p.stream.fail(native, err)
}

// follower follows one input for one client.
type follower struct {
	*request
	*watch
	s   *session.Session
	sub *session.Subscription
	to  dialect
}

// say makes an input durable and follows it. It listens before it posts, so that no notice is missed;
// what is missed all the same is in the log.
func (c *request) say(s *session.Session, in session.Input, to dialect) error {
	f := &follower{request: c, s: s, to: to}
	var err error
	if f.sub, err = s.Subscribe(); err != nil {
		return err
	}
	defer func() { f.sub.Close() }()
	receipt, err := s.Post(c.r.Context(), in)
	c.end() // what is large stands in the bucket now, and the turn asks for itself
	if err != nil {
		return err
	}
	ctx, cancel := c.Runtime.WithTimeout(c.r.Context(), cmp.Or(c.patience, c.Wait))
	defer cancel()
	return f.follow(ctx, receipt)
}

// follow ends with the turn, or earlier: when the client leaves, the turn goes on without it.
func (f *follower) follow(ctx context.Context, receipt session.Receipt) error {
	f.w.input = receipt.ID
	f.watch = newWatch(receipt.ID)
	f.out.Duplicate = receipt.Duplicate
	err := f.pass(ctx, receipt)
	if err == nil {
		err = f.watch.err
	}
	if err != nil && context.Cause(ctx) != nil && f.r.Context().Err() == nil {
		err = &refused{http.StatusGatewayTimeout, "timeout", "the turn goes on; send the same id again to read its answer"}
	}
	if err == nil {
		info, e := f.s.Info(f.r.Context())
		if err = e; err == nil {
			return f.to.end(f.watch.outcome(info))
		}
	}
	if errors.Is(err, errLeft) {
		return err
	}
	return f.to.fail(err)
}

// pass hands on notices until the turn has ended.
func (f *follower) pass(ctx context.Context, receipt session.Receipt) error {
	if err := f.to.open(receipt); err != nil {
		return err
	}
	if receipt.Duplicate {
		if err := f.join(ctx, receipt.Run); err != nil || f.ended {
			return err
		}
	}
	if receipt.State == "new" { // it may stand behind a turn that rests
		if err := f.waits(ctx); err != nil {
			return err
		}
	}
	ticking, stop := context.WithCancel(ctx)
	defer stop()
	tick := f.every(ticking, f.Ping)
	for !f.ended {
		select {
		case <-f.sub.Ready:
			if err := f.drain(ctx); err != nil {
				return err
			}
		case <-tick:
			if err := f.to.ping(); err != nil {
				return err
			}
			if err := f.look(ctx); err != nil {
				return err
			}
		case <-f.Stopping:
			return stopping()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// codeStopping is what both refusals of a host that ends are called.
const codeStopping = "stopping"

// stopping ends streams at a host that ends: whoever listens is told, where a cut would look like a broken line.
func stopping() error {
	return &refused{http.StatusServiceUnavailable, codeStopping, "the server is stopping; a turn in work goes on when it is back: send the same id again to read its answer"}
}

// isStopping reports that the host ends.
func isStopping(err error) bool {
	var no *refused
	return errors.As(err, &no) && no.kind == codeStopping
}

// look asks the log whether the turn has ended.
func (f *follower) look(ctx context.Context) error {
	e, failure, ok, err := f.s.Reply(ctx, f.id)
	if err != nil {
		return err
	}
	if !ok {
		return f.waits(ctx)
	}
	if err := f.catchUp(ctx, e.ID); err != nil {
		return err
	}
	f.stored(failure)
	return nil
}

// waits looks whether the turn, or the one before it, rests until the owner decides, and says so.
func (f *follower) waits(ctx context.Context) error {
	r, ok := session.Room[*approvals.Room](f.s)
	if !ok {
		return nil
	}
	list, question, err := r.Resting(ctx)
	if err != nil || len(list) == 0 {
		return err
	}
	f.rests(list, question)
	return f.to.tell(session.Notice{Type: session.NoticeApproval, Run: f.run, Text: question, Approvals: list})
}

// catchUp tells the replies to this input that were not heard, up to one: a turn has one before each round
// of tool calls.
func (f *follower) catchUp(ctx context.Context, last tidemark.EntryID) error {
	if last == "" || last == f.out.Entry {
		return nil
	}
	replies, err := f.s.Replies(ctx, f.id, last)
	if err != nil {
		return fmt.Errorf("read replies: %w", err)
	}
	heard := slices.IndexFunc(replies, func(e tidemark.Entry) bool { return e.ID == f.out.Entry })
	for _, e := range replies[heard+1:] {
		m, err := e.Message()
		if err != nil {
			return fmt.Errorf("read reply %s: %w", e.ID, err)
		}
		n := session.Notice{Type: session.NoticeReply, Run: f.run, Inputs: []string{f.id}, Entry: e.ID, Message: &m, Call: e.Call}
		f.answered(n)
		if err := f.to.tell(n); err != nil {
			return err
		}
	}
	return nil
}

// join takes up an input that was received before: its stored answer, or the run that has it. What began to
// listen while another run was in work hears of its own from the first notice on.
func (f *follower) join(ctx context.Context, run string) error {
	f.run = run
	if err := f.look(ctx); err != nil || f.ended || run == "" || run != f.sub.Run {
		return err
	}
	f.cur = run
	return f.soFar(ctx)
}

// again listens anew after the client fell so far behind that the session cut it off.
func (f *follower) again(ctx context.Context) error {
	sub, err := f.s.Subscribe()
	if err != nil {
		return err
	}
	f.sub.Close()
	f.sub = sub
	if err := f.look(ctx); err != nil || f.ended {
		return err
	}
	if f.run == "" || f.run != sub.Run {
		return nil
	}
	if err := f.to.tell(session.Notice{Type: session.NoticeRestart, Run: f.run}); err != nil {
		return err
	}
	return f.soFar(ctx)
}

// soFar sends what the run has said before this client listened.
func (f *follower) soFar(ctx context.Context) error {
	if err := f.catchUp(ctx, f.sub.Reply); err != nil || f.sub.Partial == "" {
		return err
	}
	return f.to.tell(session.Notice{Type: session.NoticeText, Run: f.sub.Run, Text: f.sub.Partial})
}

// drain hands on what is there to read. Who fell behind begins again with what the log says.
func (f *follower) drain(ctx context.Context) error {
	for n, ok := f.sub.Next(); ok && !f.ended; n, ok = f.sub.Next() {
		for _, p := range f.see(n) {
			if err := f.to.tell(p); err != nil {
				return err
			}
		}
	}
	if f.sub.Behind() && !f.ended {
		return f.again(ctx)
	}
	return nil
}

// step is one of what comes, or why no more does.
type step[T any] struct {
	v   T
	err error
}

// attend hands on what comes, until take is done, and calls ping for each time in which nothing came: workerd
// tells of a client that left a silent stream only when something is written to it. stop makes the source
// end; behind attend nothing reads it any more.
//
// When the host ends, so does attend, as soon as open says that an event of ours would stand between others.
func attend[T any](c *request, from iter.Seq2[T, error], stop func(), take func(T, error) (done bool, err error), open func() bool, ping func() error) error {
	steps, left := make(chan step[T]), make(chan struct{})
	c.Runtime.Go(func() {
		defer close(steps)
		for v, err := range from {
			select {
			case steps <- step[T]{v, err}:
			case <-left:
				return
			}
		}
	})
	ctx, cancel := context.WithCancel(c.r.Context())
	defer func() {
		cancel()
		stop()
		close(left)
		for range steps { // until the reader has ended
		}
	}()
	tick, halt, quiet := c.every(ctx, c.Ping), c.Stopping, true
	for {
		select {
		case <-halt:
			if open() {
				return &refused{http.StatusServiceUnavailable, codeStopping, "the server is stopping; send the request again when it is back"}
			}
			halt = nil
		case s, ok := <-steps:
			if !ok {
				return nil
			}
			halt, quiet = c.Stopping, false
			if done, err := take(s.v, s.err); done || err != nil {
				return err
			}
		case <-tick:
			if quiet && open() {
				if err := ping(); err != nil {
					return err
				}
			}
			quiet = true
		}
	}
}
