package session

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/approval"
)

// Decide takes up what the owner decided of a call that waits, and lets its turn go on.
//
// # Errors
//
// ErrNotFound for a code that nothing waits under, ErrForbidden for anybody but the owner, ErrConflict for a question
// that is decided already, or whose time has passed: nothing changes then.
func (s *Session) Decide(ctx context.Context, d tidemark.Decision) error {
	a, err := s.approvalOf(ctx, d.Code)
	if err != nil {
		return err
	}
	stmts, text, err := s.decisionStmts(ctx, a, d)
	if err != nil {
		return err
	}
	if err := s.DB.Tx(ctx, stmts); err != nil {
		if errors.Is(err, tidemark.ErrConflict) {
			return fmt.Errorf("the call %s was decided at the same moment, or its turn has ended: %w", a.Code, err)
		}
		return fmt.Errorf("decide %s: %w", a.Code, err)
	}
	s.tellDecision(a, text)
	return nil
}

// decisionStmts write a decision down; text says it in words.
func (s *Session) decisionStmts(ctx context.Context, a Approval, d tidemark.Decision) ([]tidemark.Stmt, string, error) {
	now := s.Runtime.Now()
	switch {
	case !d.By.Owner:
		return nil, "", fmt.Errorf("only the owner decides about tool calls: %w", tidemark.ErrForbidden)
	case a.state == askAllowed, a.state == askDenied:
		return nil, "", fmt.Errorf("the call %s was %s already: %w", a.Code, a.state, tidemark.ErrConflict)
	case a.state == askClosed:
		return nil, "", fmt.Errorf("the turn that asked under %s has ended; nothing was run: %w", a.Code, tidemark.ErrConflict)
	case !a.Expires.After(now):
		return nil, "", fmt.Errorf("the time to decide about %s was over at %s; nothing was run: %w", a.Code, a.Expires.In(s.settings().Zone).Format("15:04 MST"), tidemark.ErrConflict)
	}
	h, err := s.head(ctx)
	if err != nil {
		return nil, "", err
	}
	state, word := askDenied, "Denied"
	if d.Allow {
		state, word = askAllowed, "Allowed"
	}
	text := fmt.Sprintf("%s: the tool %s (%s).", word, a.Tool, a.Code)
	return []tidemark.Stmt{
		{SQL: `UPDATE approvals SET state = ? WHERE key = ? AND code = ? AND state = 'waiting'`, Args: []any{state, string(s.Key), a.Code}, Want: 1},
		{SQL: `UPDATE runs SET updated = updated WHERE id = ? AND state = 'tools' AND error = ''`, Args: []any{a.run}, Want: 1}, // and nobody stopped it
		s.closedStmt(a), s.dueStmt(dueRun, now, ""), s.dueStmt(dueOutbox, now, ""),
		s.eventStmt(h.Log, tidemark.Event{Type: "approval", Text: text, Data: []byte(mustJSON(map[string]any{"code": a.Code, "allow": d.Allow, "by": d.By.Channel}))}),
	}, text, nil
}

// closedStmt has the agent know that a question is no more.
func (s *Session) closedStmt(a Approval) tidemark.Stmt {
	q := tidemark.Question{Code: a.Code, Session: s.Key, Tool: a.Tool, Asked: a.Asked, Expires: a.Expires, Closed: true}
	return s.outboxStmt("question-closed:"+a.Code+":"+a.run, outQuestion, q)
}

// tellDecision tells those who listen and lets the run go on.
func (s *Session) tellDecision(a Approval, text string) {
	s.hub.send(Notice{Type: NoticeEvent, Run: a.run, Event: &tidemark.Event{Type: "approval", Text: text}})
	s.noticeApprovals(s.life, a.run)
	s.Runtime.Go(s.goOn)
}

// ofModels is the channel of programs whose model writes what they send: it decides about no tool call, whoever's token it
// has.
const ofModels = "mcp"

// decision reads an input as the answer to a question of this conversation, or, in one of the owner's, of another one of the
// agent. What is none stays the message that it is.
func (s *Session) decision(ctx context.Context, in Input) (Input, error) {
	if in.Kind != InputMessage || len(in.Message.Content) != 1 || in.Message.Content[0].Type != tidemark.TypeText {
		return in, nil
	}
	code, allow, ok := approval.Answer(in.Message.Content[0].Text)
	person := in.Origin.From == "" || in.Origin.From == tidemark.FromPerson
	if !ok || !person || in.Origin.Channel == ofModels {
		return in, nil
	}
	_, err := s.approvalOf(ctx, code)
	if errors.Is(err, tidemark.ErrNotFound) && s.Scope().Owner && in.Origin.Owner {
		if to, ok := s.Agent.(questioner); ok {
			var asked bool
			if asked, err = to.Asked(ctx, code); err == nil && !asked {
				return in, nil
			}
		}
	}
	if errors.Is(err, tidemark.ErrNotFound) {
		return in, nil
	}
	if err != nil {
		return in, fmt.Errorf("find the question %s: %w", code, err)
	}
	word := tidemark.CommandDeny
	if allow {
		word = tidemark.CommandApprove
	}
	return Input{ID: in.ID, Kind: InputAsk, Text: word + " " + code, Origin: in.Origin}, nil
}

// isDecision reads a command that decides.
func isDecision(in Input) (d tidemark.Decision, ok bool) {
	word, code, _ := strings.Cut(in.Text, " ")
	ok = in.Kind == InputAsk && (word == tidemark.CommandApprove || word == tidemark.CommandDeny)
	return tidemark.Decision{Code: code, Allow: word == tidemark.CommandApprove, By: in.Origin}, ok
}

// decideInput carries a decision out at once, not behind the run that waits for it: stmts are those of the input. It joins
// the run that it lets go on, so whoever decided reads the answer. What cannot be decided is answered in words.
func (s *Session) decideInput(ctx context.Context, in Input, d tidemark.Decision, stmts []tidemark.Stmt) (state string, err error) {
	stmts = stmts[:len(stmts):len(stmts)]
	a, err := s.approvalOf(ctx, d.Code)
	if err == nil {
		var more []tidemark.Stmt
		var text string
		if more, text, err = s.decisionStmts(ctx, a, d); err == nil {
			stmts = append(append(stmts, tidemark.Stmt{SQL: `UPDATE inputs SET state = 'taken', run = ?, payload = '' WHERE key = ? AND id = ? AND state = 'new'`,
				Args: []any{a.run, string(s.Key), in.ID}, Want: 1}), more...)
			if err = s.DB.Tx(ctx, stmts); err == nil {
				s.hub.send(Notice{Type: NoticeTaken, Run: a.run, Inputs: []string{in.ID}})
				s.tellDecision(a, text)
				return "taken", nil
			}
			return "", s.decidedAgain(ctx, in, err)
		}
	}
	text := ""
	if errors.Is(err, tidemark.ErrNotFound) && s.Scope().Owner && d.By.Owner {
		text, err = s.decideElsewhere(ctx, d)
	}
	if err != nil {
		if !refusedDecision(err) {
			return "", err
		}
		text = strings.TrimSuffix(err.Error(), ": "+tidemark.Sentinel(err).Error())
	}
	h, err := s.head(ctx)
	if err != nil {
		return "", err
	}
	done := tidemark.Stmt{SQL: `UPDATE inputs SET state = 'done' WHERE key = ? AND id = ?`, Args: []any{string(s.Key), in.ID}}
	return "done", s.answerNow(ctx, in, h.Log, append(stmts, done), text, func() {})
}

// decidedAgain tells a conflict of the input's own id from one of the decision.
func (s *Session) decidedAgain(ctx context.Context, in Input, err error) error {
	if !errors.Is(err, tidemark.ErrConflict) {
		return err
	}
	rows, e := s.DB.Query(ctx, `SELECT 1 FROM inputs WHERE key = ? AND id = ? LIMIT 1`, string(s.Key), in.ID)
	if e != nil || len(rows) > 0 {
		return errors.Join(e, tidemark.ErrConflict) // it was received before
	}
	return fmt.Errorf("it was decided, or its turn ended, at the same moment; look again: %w", tidemark.ErrBusy)
}

func refusedDecision(err error) bool {
	return errors.Is(err, tidemark.ErrNotFound) || errors.Is(err, tidemark.ErrForbidden) || errors.Is(err, tidemark.ErrConflict)
}

// decideElsewhere carries a decision to the conversation of the agent that asked.
func (s *Session) decideElsewhere(ctx context.Context, d tidemark.Decision) (string, error) {
	to, ok := s.Agent.(questioner)
	if !ok {
		return "", fmt.Errorf("no call waits under the code %.20q: %w", d.Code, tidemark.ErrNotFound)
	}
	q, err := to.Answer(ctx, d)
	if err != nil {
		return "", err
	}
	word := "Denied"
	if d.Allow {
		word = "Allowed"
	}
	return fmt.Sprintf("%s: the tool %s (%s) in %s.", word, q.Tool, q.Code, q.Session), nil
}

// answerNow ends an input at once with a text: an event of the log, and a message to who wrote it. then is called when
// that is written down, before it is told.
func (s *Session) answerNow(ctx context.Context, in Input, log string, stmts []tidemark.Stmt, text string, then func()) error {
	event := tidemark.Event{Type: "answer", Text: text}
	lines, err := s.tellStmts(ctx, log, []tidemark.Origin{in.Origin}, text)
	if err != nil {
		return err
	}
	if err := s.DB.Tx(ctx, append(append(stmts, s.eventStmt(log, event)), lines...)); err != nil {
		return err
	}
	then()
	name := "now:" + in.ID // whoever waits for the input sees a run of its own
	s.hub.send(Notice{Type: NoticeEvent, Run: name, Event: &event})
	s.hub.send(Notice{Type: NoticeDone, Run: name, Inputs: []string{in.ID}})
	return nil
}

// Relay asks the owner here, in their main session, what another conversation of the agent asks: an event of the log, and a
// message to where they wrote from last. The same twice is one.
func (s *Session) Relay(ctx context.Context, q tidemark.Question) error {
	h, err := s.head(ctx)
	if err != nil {
		return err
	}
	a := Approval{Session: q.Session, Code: q.Code, Tool: q.Tool, Input: q.Input, Asked: q.Asked, Expires: q.Expires}
	text := fmt.Sprintf("In %s: %s", q.Session, question([]Approval{a}, maxAskedTold))
	id := "say:question/" + q.Code + "/" + string(q.Session)
	stmts := []tidemark.Stmt{{
		SQL:  `INSERT INTO inputs(key, id, kind, state, at, origin, payload, hash) VALUES(?, ?, 'say', 'done', ?, '{}', '', ?) ON CONFLICT(key, id) DO NOTHING`,
		Args: []any{string(s.Key), id, s.Runtime.Now().UnixMilli(), inputHash("say", q.Code)}, Want: 1}}
	event := tidemark.Event{Type: "approval", Text: text, Data: []byte(mustJSON([]Approval{a}))}
	lines, err := s.tellStmts(ctx, h.Log, []tidemark.Origin{{To: q.To}}, text)
	if err != nil {
		return err
	}
	err = s.DB.Tx(ctx, append(append(stmts, s.eventStmt(h.Log, event)), lines...))
	if errors.Is(err, tidemark.ErrConflict) {
		return nil // asked before
	}
	if err != nil {
		return fmt.Errorf("relay question %s: %w", q.Code, err)
	}
	s.hub.send(Notice{Type: NoticeEvent, Event: &event})
	s.setAlarm(ctx)
	s.dispatch()
	return nil
}
