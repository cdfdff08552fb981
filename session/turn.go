package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/blocks"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/refusal"
	"github.com/tidemark-ai/tidemark/room"
)

// turn is the path of a message: take up what waits, compute the view, compact it if it is over
// the budget, ask the model, commit its reply, run its tools, again. Its state is in the database
// before each wait, so a turn that was killed goes on here, at the state it had.
func (s *Session) turn(ctx context.Context, r *run) error {
	defer func() {
		if err := s.useWindow(s.life, 0); err != nil {
			s.warn("give up a window that was tried", err)
		}
	}()
	pack := s.packing(r)
	for {
		switch r.State {
		case stateCalling:
			if done, err := s.take(ctx, r); done || err != nil { // inputs, a command, a reset that is due
				return err
			}
			if err := s.withinBudget(ctx, r); err != nil {
				return err
			}
			s.windows.Refresh(ctx)
			before := s.settings().Window
			view, err := s.light(ctx, r)
			if err != nil {
				return err
			}
			if view, err = s.fitted(ctx, r, view); err != nil {
				return err
			}
			sent := pack(ctx, view)
			if s.settings().Window < before { // another conversation met a smaller one
				continue
			}
			sent = s.advised(r, sent)
			reply, err := s.ask(ctx, r, sent)
			if refused := err; refused != nil || reply.Call.Declined() {
				again, err := s.answerRefusal(ctx, r, view, sent, reply.Call, refused)
				if err != nil {
					return err
				}
				if again && refused == nil { // its words were read
					s.hub.send(Notice{Type: NoticeRestart, Run: r.ID, Text: "The model declined, as it did before. It is asked without what it declined."})
				}
				if again {
					continue
				}
			}
			if err := errors.Join(s.took(ctx, r, view, reply.Call.Usage), s.tellLeftOut(ctx, r, reply)); err != nil {
				return err
			}
			r.releaseView()
			if r.scale.refused {
				r.scale = scale{} // the reply says better how large it was
			}
			if err := s.commit(ctx, r, view, reply); err != nil {
				return err
			}
		case stateTools:
			if err := s.runTools(ctx, r); err != nil {
				return err
			}
		default:
			return nil
		}
	}
}

// packing returns what gives a view of a turn its pack, if there is a room that packs.
func (s *Session) packing(r *run) func(ctx context.Context, v View) View {
	p, ok := room.Find[room.Packer](s.rooms)
	if !ok {
		return func(_ context.Context, v View) View { return v }
	}
	t := room.PackTurn{Started: r.Started, Begun: func(ctx context.Context) (int64, error) { return s.turnFrom(ctx, r) }}
	t.Task, _ = room.Find[room.Pusher](s.rooms)
	t.Find, _ = room.Find[room.Retriever](s.rooms)
	t.Records, _ = room.Find[room.Recorder](s.rooms)
	pack := p.Turn(t)
	return func(ctx context.Context, v View) View {
		v.Pack, v.Size = pack(ctx, v.Seen)
		return v
	}
}

// advised adds to what is pushed what the model is told of a context that fills up. It is not stored, and what it
// takes is counted where there is room for it only: a full window has the word all the same.
func (s *Session) advised(r *run, v View) View {
	text := r.over
	if p, ok := room.Find[room.Pager](s.rooms); ok {
		text = strings.TrimSpace(p.Advice(v.View) + "\n" + text)
	}
	if r.untidy != "" {
		text, r.untidy = strings.TrimSpace(text+"\n"+r.untidy), ""
	}
	if text == "" {
		return v
	}
	v.Size += tidemark.EstimateText(text)
	if v.Pack != "" {
		text = v.Pack + "\n\n" + text
	}
	v.Pack = text
	return v
}

// take appends what waits in the queue before a call. A command at its head is carried out, and a
// reset that is due is done first; then the input that triggered it begins the new session. done
// is true when the run has nothing left to answer.
func (s *Session) take(ctx context.Context, r *run) (done bool, err error) {
	q, err := s.waiting(ctx)
	if err == nil {
		q, err = s.amendOwn(ctx, r, q)
	}
	if err != nil {
		return false, err
	}
	if r.Attempt >= maxAttempts {
		return false, nil // it is about to fail, and what waits was never asked: that is for the next run
	}
	fresh := r.Round == 0 && len(r.took) == 0
	if fresh && len(q) > 0 {
		if q[0].Kind != InputMessage {
			if err := s.load(ctx, q[:1]); err != nil {
				return false, err
			}
			return true, s.command(ctx, r, q[0])
		}
		if err := s.resetIfDue(ctx, r, q[0]); err != nil {
			return false, err
		}
	}
	if q = batch(q, s.settings().Window); len(q) == 0 {
		if !fresh {
			return false, nil
		}
		err := s.step(ctx, r, stateDone, s.restStmt())
		if err == nil { // who was told that it began
			s.hub.send(Notice{Type: NoticeDone, Run: r.ID})
		}
		return true, err
	}
	q, amended, err := s.late(ctx, q)
	if err != nil || len(amended) > 0 && !fresh { // it has a run of its own, and this one has others to answer
		return false, err
	}
	if err := s.load(ctx, q); err != nil {
		return false, err
	}
	chain, err := s.log.Chain(ctx, r.Log)
	if err != nil {
		return false, err
	}
	held, err := s.holdStmts(ctx, r, q)
	if err != nil {
		return false, err
	}
	stmts, err := s.takeStmts(ctx, r, q, chain)
	if !fresh && errors.Is(err, blocks.ErrDamaged) {
		return false, nil // for the next run, which waits for it; this one has others to answer
	}
	if err != nil {
		return false, err
	}
	people := slices.ContainsFunc(q, func(in queued) bool { return ofPeople(in.Origin) })
	stmts = slices.Concat(held, stmts, matchStmts(amended), s.peopleStmts(people), []tidemark.Stmt{{SQL: `UPDATE heads SET active = ?, messages = messages + ? WHERE key = ?`,
		Args: []any{s.Runtime.Now().UnixMilli(), len(q), string(s.Key)}, Want: 1}})
	silent := fresh && !slices.ContainsFunc(q, func(in queued) bool { return !wantsNoAnswer(in) })
	if silent && len(amended) == 0 {
		return true, s.endUnanswered(ctx, r, q, stmts)
	}
	if err := s.step(ctx, r, stateCalling, stmts...); err != nil {
		return false, fmt.Errorf("take inputs: %w", err)
	}
	for _, in := range q {
		if r.took = append(r.took, in.ID); !wantsNoAnswer(in) { // it asks for nothing, with nobody's rights
			r.origins = append(r.origins, in.Origin)
		}
	}
	r.typing(r.origins)
	s.hub.send(Notice{Type: NoticeTaken, Run: r.ID, Inputs: r.took})
	if _, err := s.amendOwn(ctx, r, amended); err != nil { // nobody is asked by its old words
		return false, err
	}
	if silent {
		return true, s.endUnanswered(ctx, r, nil, nil)
	}
	return false, nil
}

// command carries out a queued command and ends the run.
func (s *Session) command(ctx context.Context, r *run, q queued) error {
	r.took, r.origins, r.command = append(r.took, q.ID), append(r.origins, q.Origin), &q
	r.typing(r.origins)
	var text string
	if err := jsonText(q.Payload, &text); err != nil {
		return err
	}
	var err error
	switch {
	case q.Kind == InputAsk:
		err = s.answer(ctx, r, text)
	case q.Kind == inputAmend:
		err = s.amend(ctx, r, q)
	case !s.mayChange(q.Origin):
		err = s.answerWith(ctx, r, q.Kind, s.notYours())
	case q.Kind == InputCompact:
		err = s.compactNow(ctx, r, text)
	case q.Kind == InputReset:
		err = s.resetNow(ctx, r, text)
	case q.Kind == inputAgain:
		err = s.summarizeAgain(ctx, r, tidemark.EntryID(text))
	}
	if err != nil && !errors.Is(err, tidemark.ErrNoGain) {
		err = s.why(r, err)
		if errors.Is(err, tidemark.ErrConflict) || errors.Is(err, tidemark.ErrDead) {
			return err // another life carries it out
		}
		// A command that failed is over: it must not block the queue. What it began is durable.
		if tx := s.step(s.life, r, stateCalling, commandDone(r, q)); tx != nil {
			return errors.Join(err, tx)
		}
		return err
	}
	if r.State != stateDone { // it had nothing to do
		if err := s.last(ctx, r); err != nil {
			return fmt.Errorf("finish /%s: %w", q.Kind, err)
		}
	}
	s.hub.send(Notice{Type: NoticeDone, Run: r.ID, Inputs: r.took})
	return nil
}

func commandDone(r *run, q queued) tidemark.Stmt {
	state := "done"
	if r.unmet {
		state = "unmet"
	}
	return tidemark.Stmt{SQL: `UPDATE inputs SET state = ?, run = ? WHERE n = ?`, Args: []any{state, r.ID, q.N}}
}

// ask makes one call of the model. Attempts are counted before they are made; a stream that is cut
// begins again, and says so.
func (s *Session) ask(ctx context.Context, r *run, view View) (tidemark.Reply, error) {
	for {
		if r.Attempt++; r.Attempt > maxAttempts {
			return tidemark.Reply{}, fmt.Errorf("this answer was begun %d times and cut off each time: %w", maxAttempts, tidemark.ErrUnavailable)
		}
		if err := s.step(ctx, r, stateCalling, s.dueStmt(dueRun, s.Runtime.Now().Add(heartbeat), "")); err != nil {
			return tidemark.Reply{}, fmt.Errorf("count attempt: %w", err)
		}
		reply, said, err := s.stream(ctx, r, view)
		var api *tidemark.APIError
		switch {
		case err == nil:
			return reply, nil
		case ctx.Err() != nil:
			r.partial = said
			return reply, err
		case errors.As(err, &api) && api.Transient() && r.Attempt < maxAttempts:
			s.hub.send(Notice{Type: NoticeRestart, Run: r.ID, Text: Explain(err)})
			if err := s.Runtime.Sleep(ctx, refusal.Backoff(r.Attempt, api.RetryAfter)); err != nil {
				return reply, err
			}
		default:
			return reply, err
		}
	}
}

// stream makes the call and passes on what arrives. said is the text so far, for an abort.
func (s *Session) stream(ctx context.Context, r *run, view View) (reply tidemark.Reply, said string, err error) {
	tidier, tidies := room.Find[room.Tidier](s.rooms)
	text := tags{on: tidies && tidier.Cooperates()}
	sent := false
	r.asked, r.begun = compaction.Wishes{}, false
	req := s.request(view)
	defer func() {
		said = text.said.String()
		if sent { // a call that failed was a call
			s.recordCall(r, view, req, reply.Call, err)
		}
	}()
	if err := tidemark.Check(req.Messages); err != nil { // the view repairs what it can; this would be a mistake of ours
		return reply, "", fmt.Errorf("the view cannot be sent: %w: %w", err, tidemark.ErrInvalid)
	}
	sent = true
	for d, err := range s.Provider.Stream(ctx, req) {
		if err != nil {
			return reply, "", err
		}
		r.begun = true
		switch {
		case d.Reply != nil:
			reply = *d.Reply
		case d.Text != "":
			s.pass(r, text.push(d.Text))
		case d.Thinking != "":
			s.hub.send(Notice{Type: NoticeThinking, Run: r.ID, Text: d.Thinking})
		case d.Tool != "":
			s.hub.send(Notice{Type: NoticeTool, Run: r.ID, Text: d.Tool})
		}
	}
	if len(reply.Message.Content) == 0 {
		return reply, "", &tidemark.APIError{Class: tidemark.ClassNetwork, Type: tidemark.EmptyReply, Message: "no block"}
	}
	reply.Call.Requested = req.Model
	s.pass(r, text.end())
	if text.on {
		if reply.Message, r.asked = compaction.Untagged(reply.Message); len(r.asked.Blocks) > 0 && text.said.Len() == 0 && reply.Message.PlainText() == compaction.TidyOnly {
			s.pass(r, compaction.TidyOnly)
		}
	}
	return reply, "", nil
}

// pass hands a piece of an answer to who listens.
func (s *Session) pass(r *run, text string) {
	if text != "" {
		s.hub.send(Notice{Type: NoticeText, Run: r.ID, Text: text})
	}
}

// wordless is what people read of an answer that has no text: they see nothing else of a turn.
const wordless = room.Wordless

// Answer is what people read of a reply: its text, or that it has none. A reply that calls tools need not have any.
func Answer(m tidemark.Message) string {
	if text := m.PlainText(); strings.TrimSpace(text) != "" || len(m.Calls()) > 0 {
		return text
	}
	return wordless
}

// commit appends a reply with its tool calls, its usage and what the model asked for in it in one transaction. Without
// calls the turn is over.
func (s *Session) commit(ctx context.Context, r *run, view View, reply tidemark.Reply) error {
	chain, err := s.log.Chain(ctx, r.Log)
	if err != nil {
		return err
	}
	now := s.Runtime.Now()
	e := tidemark.Entry{ID: tidemark.EntryID(tidemark.NewID(now)), Kind: tidemark.KindMessage, At: now, Tokens: tidemark.Estimate(reply.Message),
		Call: &reply.Call, Origin: tidemark.Origin{From: tidemark.FromModel}}
	stmts, err := s.entryStmts(ctx, r.Log, &e, reply.Message, chain)
	if err != nil {
		return err
	}
	stmts = append(stmts, s.usageStmts(r, reply.Call)...)
	tidied, event, err := s.tidyStmts(ctx, r, view, e.ID)
	if err != nil {
		return fmt.Errorf("tidy: %w", err)
	}
	stmts = append(stmts, tidied...)
	// Also what the model says before it calls tools: it stands in the log as said to them, and they wait.
	said, final := Answer(reply.Message), len(reply.Message.Calls()) == 0
	lines, err := s.rooms.Teller().Lines(ctx, r.Log, tidemark.Audience(r.origins, reply.Message.PlainText(), final), said)
	if err != nil {
		return err
	}
	stmts = append(stmts, lines...)
	next := stateDone
	if calls := s.callStmts(r, reply.Message, view.Tools); len(calls) > 0 {
		next = stateTools
		stmts = append(stmts, calls...)
	} else {
		decided, err := s.rooms.Skipper().DecideStmts(ctx, r.ID, r.Log, e)
		if err != nil {
			return err
		}
		stmts = append(append(stmts, decided...), s.rooms.OutcomeStmts(ctx, r.turn(), tidemark.Outcome{Text: reply.Message.PlainText(), Entry: e.ID})...)
		stmts = append(append(stmts, s.endStmts(outboxRetry)...), doneStmt(r),
			tidemark.Stmt{SQL: `UPDATE runs SET reply = ? WHERE id = ?`, Args: []any{string(e.ID), r.ID}, Want: 1})
	}
	attempt := r.Attempt
	r.Attempt = 0
	if err := s.step(ctx, r, next, stmts...); err != nil {
		r.Attempt = attempt
		return fmt.Errorf("commit reply: %w", err)
	}
	if next == stateDone {
		s.rooms.Skipper().EndWait(r.ID) // whoever is told of the end may look for the turn
	}
	if said == wordless {
		s.pass(r, wordless)
	}
	s.rooms.Teller().Dispatch()
	if event != nil {
		s.hub.send(Notice{Type: NoticeEvent, Run: r.ID, Event: event})
	}
	s.hub.send(Notice{Type: NoticeReply, Run: r.ID, Inputs: r.took, Entry: e.ID, Message: &reply.Message, Call: &reply.Call})
	if next == stateDone {
		s.hub.send(Notice{Type: NoticeDone, Run: r.ID, Inputs: r.took, Entry: e.ID})
	}
	return nil
}

// jsonText decodes a JSON string.
func jsonText(raw []byte, s *string) error {
	if err := json.Unmarshal(raw, s); err != nil {
		return fmt.Errorf("read command: %w", err)
	}
	return nil
}
