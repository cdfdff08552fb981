package approvals

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/approval"
	"github.com/tidemark-ai/tidemark/room"
)

// Decide takes up what the owner decided of a call that waits, and lets its turn go on.
//
// # Errors
//
// ErrNotFound for a code that nothing waits under, ErrForbidden for anybody but the owner, ErrConflict for a question
// that is decided already, or whose time has passed: nothing changes then.
func (s *Room) Decide(ctx context.Context, d tidemark.Decision) error {
	done, err := s.decided(ctx, d)
	if err != nil {
		return err
	}
	if err := s.DB.Tx(ctx, done.Stmts); err != nil {
		if errors.Is(err, tidemark.ErrConflict) {
			return fmt.Errorf("the call %s was decided at the same moment, or its turn has ended: %w", d.Code, err)
		}
		return fmt.Errorf("decide %s: %w", d.Code, err)
	}
	done.Then()
	return nil
}

// decided is a decision: what writes it down, and the run that goes on with it.
func (s *Room) decided(ctx context.Context, d tidemark.Decision) (room.Done, error) {
	a, err := s.find(ctx, d.Code)
	if err != nil {
		return room.Done{}, err
	}
	now := s.Runtime.Now()
	switch {
	case !d.By.Owner:
		return room.Done{}, fmt.Errorf("only the owner decides about tool calls: %w", tidemark.ErrForbidden)
	case a.state == askAllowed, a.state == askDenied:
		return room.Done{}, fmt.Errorf("the call %s was %s already: %w", a.Code, a.state, tidemark.ErrConflict)
	case a.state == askClosed:
		return room.Done{}, fmt.Errorf("the turn that asked under %s has ended; nothing was run: %w", a.Code, tidemark.ErrConflict)
	case !a.Expires.After(now):
		return room.Done{}, fmt.Errorf("the time to decide about %s was over at %s; nothing was run: %w", a.Code, s.clock(a.Expires), tidemark.ErrConflict)
	}
	state := askDenied
	if d.Allow {
		state = askAllowed
	}
	event := tidemark.Event{Type: "approval", Text: said(d, a.Question) + ".", Data: []byte(room.JSON(map[string]any{"code": a.Code, "allow": d.Allow, "by": d.By.Channel}))}
	log, stmts, err := s.GoOn(ctx, a.run)
	stmts = append(stmts, tidemark.Stmt{SQL: `UPDATE approvals SET state = ? WHERE key = ? AND code = ? AND state = 'waiting'`, Args: []any{state, string(s.Key), a.Code}, Want: 1}, s.Event(log, event))
	return room.Done{Run: a.run, Stmts: append(stmts, s.closed(a)...), Then: func() {
		s.Happened(a.run, tidemark.Event{Type: event.Type, Text: event.Text})
		s.tellWaiting(s.Life, a.run)
		s.Resume()
	}}, err
}

// said is a decision in words.
func said(d tidemark.Decision, q tidemark.Question) string {
	word := "Denied"
	if d.Allow {
		word = "Allowed"
	}
	return fmt.Sprintf("%s: the tool %s (%s)", word, q.Tool, q.Code)
}

// ofModels is the channel of programs whose model writes what they send: it decides about no tool call, whoever's token it
// has.
const ofModels = "mcp"

// Reads reads what was said as the answer to a question of this conversation, or, in one of the owner's, of another one of the
// agent. What is none stays the message that it is.
func (s *Room) Reads(ctx context.Context, text string, o tidemark.Origin) (line string, err error) {
	code, allow, ok := approval.Answer(text)
	if person := o.From == "" || o.From == tidemark.FromPerson; !ok || !person || o.Channel == ofModels {
		return "", nil
	}
	_, err = s.find(ctx, code)
	if to, ok := s.Agent.(questioner); ok && errors.Is(err, tidemark.ErrNotFound) && s.Key.Scope().Owner && o.Owner {
		var there bool
		if there, err = to.Asked(ctx, code); err == nil && !there {
			return "", nil
		}
	}
	if errors.Is(err, tidemark.ErrNotFound) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("find the question %s: %w", code, err)
	}
	if allow {
		return tidemark.CommandApprove + " " + code, nil
	}
	return tidemark.CommandDeny + " " + code, nil
}

// Ahead says what waits when the owner writes over a channel: theirs comes behind it.
func (s *Room) Ahead(ctx context.Context, o tidemark.Origin) string {
	if !o.Owner || !s.Made.Here(tables) {
		return ""
	}
	list, err := s.Waiting(ctx)
	if err != nil {
		s.Warn("read what waits", err)
	}
	return question(list, maxAskedTold)
}

// Commands implements room.Commander.
func (s *Room) Commands() []string { return []string{tidemark.CommandApprove, tidemark.CommandDeny} }

// Command decides, not behind the run that waits for it: whoever decided reads the answer of that. What cannot be decided is
// answered in words.
func (s *Room) Command(ctx context.Context, word, code string, o tidemark.Origin) (room.Done, error) {
	d := tidemark.Decision{Code: code, Allow: word == tidemark.CommandApprove, By: o}
	done, err := s.decided(ctx, d)
	if errors.Is(err, tidemark.ErrNotFound) && s.Key.Scope().Owner && d.By.Owner {
		done.Text, err = s.elsewhere(ctx, d)
	}
	if errors.Is(err, tidemark.ErrNotFound) || errors.Is(err, tidemark.ErrForbidden) || errors.Is(err, tidemark.ErrConflict) {
		return room.Done{Text: strings.TrimSuffix(err.Error(), ": "+tidemark.Sentinel(err).Error())}, nil
	}
	return done, err
}

// elsewhere carries a decision to the conversation of the agent that asked.
func (s *Room) elsewhere(ctx context.Context, d tidemark.Decision) (string, error) {
	to, ok := s.Agent.(questioner)
	if !ok {
		return "", fmt.Errorf("no call waits under the code %.20q: %w", d.Code, tidemark.ErrNotFound)
	}
	q, err := to.Answer(ctx, d)
	return fmt.Sprintf("%s in %s.", said(d, q), q.Session), err
}

// Relay asks the owner here, in their main session, what another conversation of the agent asks: an event of the log, and a
// message to where they wrote from last. The same twice is one.
func (s *Room) Relay(ctx context.Context, q tidemark.Question) error {
	list := []tidemark.Question{{Session: q.Session, Code: q.Code, Tool: q.Tool, Input: q.Input, Asked: q.Asked, Expires: q.Expires}}
	text := fmt.Sprintf("In %s: %s", q.Session, question(list, maxAskedTold))
	event := tidemark.Event{Type: "approval", Text: text, Data: []byte(room.JSON(list))}
	if err := s.Say(ctx, "question/"+q.Code+"/"+string(q.Session), q.To, text, &event); err != nil {
		return fmt.Errorf("relay question %s: %w", q.Code, err)
	}
	return nil
}
