package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/mend"
	"github.com/tidemark-ai/tidemark/refusal"
	"github.com/tidemark-ai/tidemark/room"
)

// Bounds of mending.
const (
	maxMends   = 6         // searches of one turn
	maxPassed  = 2         // of them that found nothing, since the request was taken when it was made again
	maxWaits   = 3         // for an API that is busy, of one request
	leastReply = 1_000     // tokens that are asked for, to see whether their room was too much
	manyItems  = 20        // messages, of which an API may take no more
	leastBytes = 512 << 10 // of a request that a gate may find too large
)

// mend finds out what a model API refused of a request, by asking it, and takes that out: a block reads as a note from now
// on, a tool is offered no more. It reports whether the call may be made again; large is the refusal where its size is why. The
// providers make valid what is known to be refused; this is for what nobody has thought of, so that nothing makes every later
// turn fail. The log keeps the originals, and the overlay can be lifted.
func (s *Session) mend(ctx context.Context, r *run, v View, refused tidemark.APIError) (again bool, large *tidemark.APIError, err error) {
	if r.mends++; r.mends > maxMends || r.passed >= maxPassed {
		return false, nil, nil
	}
	from, err := s.turnFrom(ctx, r)
	if err != nil {
		return false, nil, err
	}
	p := probe{s: s, r: r, view: v, q: mend.Request{View: v.View, Tools: v.Tools, Pack: v.Pack, Memory: s.memoryIn(v.System)}, first: refused, last: refused, works: mend.AnsweredIn(v.Items) >= 0}
	p.parts = p.q.Parts(from)
	named, vague := p.q.Named(p.parts, v.Messages(), refused.Place)
	ask := func(out []int, filled bool) (mend.Answer, error) { return p.ask(ctx, out, filled) }
	var verdict mend.Verdict
	var found []int
	if r.begun && !slices.ContainsFunc(p.parts, func(q mend.Part) bool { return q.Left }) {
		return false, nil, nil // it broke off in an answer, for the first time
	}
	if large := refusal.TooManyBytes(refused); large && p.bytes() > leastBytes {
		verdict, err = mend.Large(p.parts, ask)
	} else {
		verdict, found, err = mend.Find(p.parts, mend.Answer{Named: named, Vague: vague}, ask)
	}
	var api *tidemark.APIError
	switch {
	case errors.As(err, &api): // nothing was learned
		s.warn("look for what was refused", err)
		return false, nil, nil
	case err != nil:
		return false, nil, err
	}
	r.Attempt = 0 // it is another request
	switch verdict {
	case mend.Unknown: // it may have too many messages: that is of no part
		verdict, err := p.alone(ctx, from)
		if verdict == mend.Size {
			r.trial.bytes, r.trial.sized, large = true, &refused, &refused
		}
		return verdict == mend.Passed, large, err
	case mend.Passed:
		r.passed++
		return true, nil, nil
	}
	out := pick(p.parts, found)
	switch {
	case verdict == mend.Size && refusal.OverTokens(p.last):
		return false, &p.last, nil
	case verdict == mend.Size:
		r.trial.sized, r.trial.bytes = &refused, refusal.TooManyBytes(refused)
		return false, &refused, nil
	case len(out) == 1 && out[0].Reply:
		s.mostReply.Store(int64(max(cmp.Or(s.request(v).MaxTokens, compaction.UsualReply)/2, leastReply)))
		return true, nil, nil
	}
	_, err = s.takeOut(ctx, r, v, p.last, out)
	return err == nil, nil, err
}

func pick(parts []mend.Part, at []int) (out []mend.Part) {
	for _, i := range at {
		out = append(out, parts[i])
	}
	return out
}

// probe asks a model API what it takes.
type probe struct {
	s     *Session
	r     *run
	view  View
	q     mend.Request // of that
	parts []mend.Part
	first tidemark.APIError
	last  tidemark.APIError // how it refused the last time
	works bool              // it has answered before
	asked int
}

// ask makes a request without some parts, until it is answered or refused. One that is refused in other words than at first is
// made again: that may have been a moment's.
func (p *probe) ask(ctx context.Context, out []int, filled bool) (mend.Answer, error) {
	left, v := pick(p.parts, out), p.view
	q := p.q.Without(left)
	if q.Memory != p.q.Memory {
		v.System = strings.TrimSuffix(v.System, p.q.Memory)
	}
	if filled {
		q.View.Items = append(p.q.Filler(left), q.View.Items...)
	}
	v.View, v.Tools, v.Pack = q.View, q.Tools, q.Pack
	req := p.s.request(v)
	if slices.ContainsFunc(left, func(q mend.Part) bool { return q.Reply }) {
		if req.MaxTokens == 0 || req.MaxTokens > leastReply {
			req.MaxTokens = leastReply
		}
	}
	return p.send(ctx, v, req)
}

// bytes are those of what is said in the request.
func (p *probe) bytes() (n int) {
	for i := range p.view.Items {
		for _, b := range p.view.Items[i].Message.Content {
			n += len(b.AppendJSON(nil))
		}
	}
	return n
}

// alone asks for an answer to the turn in work, which begins at a position, without what was said before: Size where that is taken,
// and the whole is refused once more; Passed where it is not.
func (p *probe) alone(ctx context.Context, from int64) (mend.Verdict, error) {
	v := p.view
	v.Items = slices.DeleteFunc(slices.Clone(v.Items), func(it compaction.Item) bool { return it.Seq < from })
	if len(v.Items) == 0 || len(p.view.Items)-len(v.Items) < manyItems {
		return mend.Unknown, nil
	}
	verdict := mend.Unknown
	a, err := p.send(ctx, v, p.s.request(v))
	if err == nil && a.Taken {
		verdict = mend.Size
		if a, err = p.ask(ctx, nil, false); a.Taken {
			verdict = mend.Passed
		}
	}
	var api *tidemark.APIError
	if errors.As(err, &api) {
		return mend.Unknown, nil
	}
	return verdict, err
}

// send makes a request and tells what came of it.
func (p *probe) send(ctx context.Context, v View, req tidemark.Request) (mend.Answer, error) {
	if p.asked++; p.asked == 2 { // it was no outage
		p.s.hub.send(Notice{Type: NoticeRestart, Run: p.r.ID, Text: "The model's API refused the request. It is asked which part of it."})
	}
	for again, waits := false, 0; ; {
		if err := p.s.withinBudget(ctx, p.r); err != nil {
			return mend.Answer{}, err
		}
		spent := tidemark.Usage{}
		err := p.s.taken(ctx, req, p.r.begun)
		if err == nil { // nobody says how much it was: the answer is not read to its end
			spent.Input = v.Fixed + v.View.Tokens()
		}
		if e := p.s.step(ctx, p.r, stateCalling, p.s.dueStmt(dueRun, p.s.Runtime.Now().Add(heartbeat), ""), p.s.addUsage(spent), spendStmt(p.r, spent)); e != nil {
			return mend.Answer{}, fmt.Errorf("look for what was refused: %w", e)
		}
		var api *tidemark.APIError
		switch {
		case err == nil:
			return mend.Answer{Taken: true}, nil
		case ctx.Err() != nil:
			return mend.Answer{}, context.Cause(ctx)
		case errors.As(err, &api) && api.Transient() && !refusal.Unexplained(*api, p.works) && waits < maxWaits:
			waits++
			if err := p.s.Runtime.Sleep(ctx, refusal.Backoff(waits, api.RetryAfter)); err != nil {
				return mend.Answer{}, err
			}
			continue
		case api == nil || !refusal.Unexplained(*api, p.works) && api.Class != tidemark.ClassOverflow:
			return mend.Answer{}, err
		}
		alike := refusal.Alike(*api, p.first)
		if again || alike {
			p.last = *api
			named, vague := p.q.Named(p.parts, req.Messages, api.Place)
			return mend.Answer{Named: named, Vague: vague, Large: refusal.OverTokens(*api), Other: !alike}, nil
		}
		again = true
	}
}

// taken makes a request and hangs up when the answer begins, unless the whole of it is asked for. The error is nil for one that
// begins; else that of the provider, or ErrInvalid for messages that cannot be sent.
func (s *Session) taken(ctx context.Context, req tidemark.Request, whole bool) error {
	if err := tidemark.Check(req.Messages); err != nil {
		return fmt.Errorf("the view cannot be sent: %w: %w", err, tidemark.ErrInvalid)
	}
	for _, err := range s.Provider.Stream(ctx, req) {
		if err != nil || !whole {
			return err
		}
	}
	return nil
}

// takeOut has notes read in the place of parts, and leaves out tools until their definitions are others. What was pushed is
// left out until it is another. It returns the overlay, none where no block was taken out.
func (s *Session) takeOut(ctx context.Context, r *run, v View, api tidemark.APIError, parts []mend.Part, more ...tidemark.Stmt) (overlay tidemark.EntryID, err error) {
	var lines []string
	why := refusal.Quoted(api.Message)
	if edits := mend.Edits(v.View, v.Shown, parts); len(edits) > 0 {
		var stmts []tidemark.Stmt
		if overlay, stmts, err = s.overlayStmts(r.Log, tidemark.FromSystem, tidemark.Overlay{By: []string{"session"}, Reason: "refused", Edits: edits}); err != nil {
			return "", err
		}
		more = append(more, stmts...)
		what := "a part"
		if len(edits) > 1 {
			what = fmt.Sprintf("%d parts of what is said, the first", len(edits))
		}
		lines = append(lines, fmt.Sprintf("The model's API refused %s of entry %s (%s). The model reads a note in its place from now on; the log keeps it.", what, edits[0].From, why))
	}
	var tools []tidemark.Tool
	var names []string
	for _, p := range parts {
		switch {
		case p.Pack:
			if pack, ok := room.Find[room.Packer](s.rooms); ok {
				pack.Refused(v.Pack)
			}
			lines = append(lines, fmt.Sprintf("The model's API refused what was found for this turn, or is new in memory (%s). It goes without.", why))
		case p.Memory:
			more = append(more, s.withoutMemory()...)
			lines = append(lines, fmt.Sprintf("The model's API refused what the system prompt says from memory (%s). It goes without until it is made anew, with the next day, compaction or reset.", why))
		}
		if i := slices.IndexFunc(v.Tools, func(t tidemark.Tool) bool { return t.Name == p.Tool }); i >= 0 {
			tools, names = append(tools, v.Tools[i]), append(names, p.Tool)
		}
	}
	switch len(names) {
	case 0:
	case 1:
		lines = append(lines, fmt.Sprintf("The model's API refused the tool %s (%s). It is left out until its definition is another one.", names[0], why))
	default:
		lines = append(lines, fmt.Sprintf("The model's API refused %d tools (%s). Each is left out until its definition is another one: %s.", len(names), why, listed(names, ", ")))
	}
	stmts, kept := s.refuse(tools, why)
	more = append(more, stmts...)
	if err := s.tellPeople(ctx, r, strings.Join(lines, "\n"), more...); err != nil {
		return "", err
	}
	kept()
	return overlay, nil
}

// reconsider calls a second time where a model declined in words, and had done so the time before: it may go on declining
// whatever is said, until it no longer sees what it declined (https://docs.anthropic.com/en/docs/test-and-evaluate/strengthen-guardrails/handle-streaming-refusals).
// Where it declines all the same, what was taken out is back.
func (s *Session) reconsider(ctx context.Context, r *run, v View, c tidemark.Call) (bool, error) {
	if r.declined != "" {
		o := tidemark.Overlay{By: []string{"session"}, Lifts: []tidemark.EntryID{r.declined}, Reason: "refused all the same"}
		_, stmts, err := s.overlayStmts(r.Log, tidemark.FromSystem, o)
		if err != nil {
			return false, err
		}
		r.declined = ""
		return false, s.tellPeople(ctx, r, "What was taken out was not why. It is in view as before.", stmts...)
	}
	from, err := s.turnFrom(ctx, r)
	if err != nil {
		return false, err
	}
	left := slices.DeleteFunc(mend.Request{View: v.View}.Parts(from), func(p mend.Part) bool { return !p.Left })
	if len(left) == 0 || r.mends >= maxMends {
		return false, nil
	}
	r.mends++
	r.Attempt = 0 // it is another request
	r.declined, err = s.takeOut(ctx, r, v, tidemark.APIError{Message: "the model declined to answer"}, left, s.addUsage(c.Usage), spendStmt(r, c.Usage))
	return err == nil, err
}
