package session

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/mend"
)

// Bounds of mending.
const (
	maxMends = 8 // searches of one turn
	maxTold  = 5 // parts that people are told of by name
)

// unexplained reports a refusal that may be for anything in a request: a server has words of its own for it, or none. After an
// overloaded one (500) a request was made some times; one for its bytes (413) may be of a gate on the way.
func unexplained(api tidemark.APIError) bool {
	switch api.Class {
	case tidemark.ClassBadRequest, tidemark.ClassRefusal:
		return true
	case tidemark.ClassOverloaded:
		return api.Status == http.StatusInternalServerError
	}
	return tooManyBytes(api)
}

// tooManyBytes reports a refusal that is for the bytes of a request, which says nothing of tokens.
func tooManyBytes(api tidemark.APIError) bool {
	return api.Class == tidemark.ClassOverflow && api.Status == http.StatusRequestEntityTooLarge && api.Limit == 0
}

// overflown reports a refusal for the tokens of a request, in words that are known.
func overflown(api tidemark.APIError) bool {
	return api.Class == tidemark.ClassOverflow && !tooManyBytes(api)
}

// mend finds out what a model API refused of a request, by asking it, and takes that out: a block reads as a note from now
// on, a tool is offered no more. It reports whether the call may be made again; large is the refusal where its size is why. The
// providers make valid what is known to be refused; this is for what nobody has thought of, so that nothing makes every later
// turn fail. The log keeps the originals, and the overlay can be lifted.
func (s *Session) mend(ctx context.Context, r *run, v View, refused tidemark.APIError) (again bool, large *tidemark.APIError, err error) {
	if r.mends++; r.mends > maxMends {
		return false, nil, nil
	}
	from, err := s.turnFrom(ctx, r)
	if err != nil {
		return false, nil, err
	}
	p := probe{s: s, r: r, view: v, parts: mend.Parts(v.View, v.Tools, v.Pack, from), first: refused, last: refused}
	named, vague := mend.Named(v.View, p.parts, v.Messages(), refused.Place)
	verdict, found, err := mend.Find(p.parts, mend.Answer{Named: named, Vague: vague}, func(out []int, filled bool) (mend.Answer, error) { return p.ask(ctx, out, filled) })
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
	case mend.Unknown:
		return false, nil, nil
	case mend.Passed:
		return true, nil, nil
	}
	out := pick(p.parts, found)
	switch {
	case overflown(p.last):
		return false, &p.last, nil
	case verdict == mend.Size || tooManyBytes(refused) || len(out) == 1 && out[0].Reply:
		r.trial.sized = &refused
		return false, &refused, nil
	}
	return true, nil, s.takeOut(ctx, r, v, p.last, out)
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
	parts []mend.Part
	first tidemark.APIError
	last  tidemark.APIError // how it refused the last time
}

// ask makes a request without some parts, until it is answered or refused. One that is refused in other words than at first is
// made again: that may have been a moment's.
func (p *probe) ask(ctx context.Context, out []int, filled bool) (mend.Answer, error) {
	left, v := pick(p.parts, out), p.view
	v.View, v.Tools = mend.Without(v.View, left, p.first.Message), mend.WithoutTools(v.Tools, left)
	if slices.ContainsFunc(left, func(q mend.Part) bool { return q.Pack }) {
		v.Pack = ""
	}
	if filled {
		v.Pack += mend.Filler(p.view.View, p.view.Tools, p.view.Pack, left)
	}
	req := p.s.request(v)
	if slices.ContainsFunc(left, func(q mend.Part) bool { return q.Reply }) {
		if req.MaxTokens == 0 || req.MaxTokens > leastSize {
			req.MaxTokens = leastSize
		}
	}
	for again := false; ; again = true {
		spent := tidemark.Usage{}
		err := p.s.taken(ctx, req)
		if err == nil {
			spent.Input = v.Fixed + v.View.Tokens()
		}
		if e := p.s.step(ctx, p.r, stateCalling, p.s.dueStmt(dueRun, p.s.Runtime.Now().Add(heartbeat), ""), spendStmt(p.r, spent)); e != nil {
			return mend.Answer{}, fmt.Errorf("look for what was refused: %w", e)
		}
		var api *tidemark.APIError
		switch {
		case err == nil:
			return mend.Answer{Taken: true}, nil
		case ctx.Err() != nil:
			return mend.Answer{}, context.Cause(ctx)
		case !errors.As(err, &api) || !unexplained(*api) && api.Class != tidemark.ClassOverflow:
			return mend.Answer{}, err
		}
		if alike := mend.Alike(*api, p.first); again || alike {
			p.last = *api
			named, vague := mend.Named(p.view.View, p.parts, req.Messages, api.Place)
			return mend.Answer{Named: named, Vague: vague, Large: overflown(*api), Other: !alike}, nil
		}
	}
}

// taken makes a request and hangs up when the answer begins. The error is nil for one that begins.
func (s *Session) taken(ctx context.Context, req tidemark.Request) error {
	if err := tidemark.Check(req.Messages); err != nil {
		return fmt.Errorf("the view cannot be sent: %w: %w", err, tidemark.ErrInvalid)
	}
	for _, err := range s.Provider.Stream(ctx, req) {
		return err
	}
	return nil
}

// takeOut has notes read in the place of parts, and leaves out tools until their definitions are others. What was pushed is
// left out for the turn.
func (s *Session) takeOut(ctx context.Context, r *run, v View, api tidemark.APIError, parts []mend.Part, more ...tidemark.Stmt) error {
	var lines []string
	why := mend.Quoted(api.Message)
	if edits := mend.Edits(v.View, parts, api.Message); len(edits) > 0 {
		id, stmts, err := s.overlayStmts(r.Log, tidemark.FromSystem, tidemark.Overlay{By: []string{"session"}, Reason: "refused", Edits: edits})
		if err != nil {
			return err
		}
		r.refused, more = id, append(more, stmts...)
		what := "a part"
		if len(edits) > 1 {
			what = fmt.Sprintf("%d parts of what is said, the first", len(edits))
		}
		lines = append(lines, fmt.Sprintf("The model's API refused %s of entry %s (%s). The model reads a note in its place from now on; the log keeps it.", what, edits[0].From, why))
	}
	var tools []tidemark.Tool
	for _, p := range parts {
		r.bare = r.bare || p.Pack
		if i := slices.IndexFunc(v.Tools, func(t tidemark.Tool) bool { return t.Name == p.Tool }); i >= 0 {
			tools = append(tools, v.Tools[i])
			lines = append(lines, fmt.Sprintf("The model's API refused the tool %s (%s). It is left out until its definition is another one.", p.Tool, why))
		}
	}
	stmts, kept := s.refuse(tools, why)
	more = append(more, stmts...)
	line := strings.Join(lines[:min(len(lines), maxTold)], "\n")
	if len(lines) > maxTold {
		line += fmt.Sprintf("\nSo it did %d more.", len(lines)-maxTold)
	}
	told, err := s.teller().Lines(ctx, r.Log, r.origins, line)
	if err != nil {
		return err
	}
	if err := s.announce(ctx, r, line, append(more, told...)...); err != nil {
		return err
	}
	kept()
	return nil
}

// reconsider calls a second time where a model declined in words, and had done so the time before: it may go on declining
// whatever is said, until it no longer sees what it declined (https://docs.anthropic.com/en/docs/test-and-evaluate/strengthen-guardrails/handle-streaming-refusals).
// Where it declines all the same, what was taken out is back.
func (s *Session) reconsider(ctx context.Context, r *run, v View, c tidemark.Call) (bool, error) {
	if r.refused != "" {
		o := tidemark.Overlay{By: []string{"session"}, Lifts: []tidemark.EntryID{r.refused}, Reason: "refused all the same"}
		_, stmts, err := s.overlayStmts(r.Log, tidemark.FromSystem, o)
		if err != nil {
			return false, err
		}
		r.refused = ""
		return false, s.step(ctx, r, stateCalling, append(stmts, s.eventStmt(r.Log, tidemark.Event{Type: "notice", Text: "What was taken out was not why. It is in view as before."}))...)
	}
	from, err := s.turnFrom(ctx, r)
	if err != nil {
		return false, err
	}
	left := slices.DeleteFunc(mend.Parts(v.View, nil, "", from), func(p mend.Part) bool { return !p.Left })
	if len(left) == 0 || r.mends >= maxMends {
		return false, nil
	}
	r.mends++
	return true, s.takeOut(ctx, r, v, tidemark.APIError{Message: "the model declined to answer"}, left, s.addUsage(c.Usage), spendStmt(r, c.Usage))
}
