package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/room"
)

// errParked ends the work on a run whose calls wait for a decision. The run is not over: it goes on with the
// decision, or when the time for it has passed.
var errParked = errors.New("a tool call waits for the owner's decision")

// judge says of each registered call whether it may run: by what the owner decided, and by the rules. A call that may
// not is told so, one that waits for a decision is marked.
func (s *Session) judge(ctx context.Context, r *run, calls []call) error {
	said, err := s.rooms.Gate().Asked(ctx, r.ID, r.Round)
	if err != nil {
		return err
	}
	for i := range calls {
		c := &calls[i]
		c.waits = false
		if c.State != callRegistered || c.told.Type != "" {
			continue
		}
		ruling, asked := said[c.N]
		switch why := unreadable(c.Block.Input); {
		case asked:
		case why != "":
			ruling.Refused = why + ". Call it again with all of them."
		case s.rooms.Changed(ctx, c.Block.Name):
			ruling.Refused = changedTool
		default:
			ruling = s.rooms.Gate().Judge(c.Block.Name, c.Block.Input, !s.builtin(c.Block.Name))
			if ruling.Waits && !s.mayAsk(ctx, r, c.Block.Name) {
				ruling = room.Ruling{Refused: fmt.Sprintf("you have no tool %.80q in this turn.", c.Block.Name)}
			}
		}
		if asked && ruling == (room.Ruling{}) && s.rooms.Changed(ctx, c.Block.Name) {
			ruling.Refused = changedTool
		}
		if c.waits = ruling.Waits; ruling.Refused != "" {
			c.told = tidemark.ToolResult(c.ID, "not run: "+ruling.Refused, true)
		}
	}
	return nil
}

const changedTool = "the tool was changed by its server since you were told of it. Read its definition, which is made anew, before you call it."

// unreadable says what is wrong with arguments that a provider could not read: it puts what came into an object of its own,
// which no tool was meant to have. Empty for others.
func unreadable(input []byte) string {
	var in struct {
		Invalid *string `json:"_invalid"`
		Reason  string  `json:"_reason"`
	}
	if json.Unmarshal(input, &in) != nil || in.Invalid == nil {
		return ""
	}
	return cmp.Or(in.Reason, "the arguments are no JSON")
}

// mayAsk reports whether a call could run at all: nobody is asked about one that could not, and no stranger has the
// owner asked about a tool of the owner's.
func (s *Session) mayAsk(ctx context.Context, r *run, name string) bool {
	if !s.permits(name) || s.Scope().Owner && !byOwner(r.origins...) && !s.builtin(name) {
		return false
	}
	offered, err := s.tools(ctx)
	return err != nil || slices.ContainsFunc(offered, func(t tidemark.Tool) bool { return t.Name == name })
}

// helpTool is the toolbox's own, which tells of others.
const helpTool = "tool_help"

// builtin reports a tool of ours: rules may name it, the default is for tools of others.
func (s *Session) builtin(name string) bool {
	return roomTool(name) || name == room.DelegateTool || name == helpTool || s.agents(name)
}

// park has a room ask about the calls that wait and lets the run rest.
func (s *Session) park(ctx context.Context, r *run, calls []call) error {
	var waiting []room.Waiting
	for _, c := range calls {
		if c.waits {
			waiting = append(waiting, room.Waiting{N: c.N, Tool: c.Block.Name, Input: c.Block.Input})
		}
	}
	asking, until, err := s.rooms.Gate().Ask(ctx, r.turn(), waiting)
	if err != nil {
		return err
	}
	// Behind its time the run is taken up by the alarm that looks after runs; till then it costs nothing.
	err = s.step(ctx, r, stateTools, append(asking.Stmts, s.dueStmt(dueRun, until, ""))...)
	if errors.Is(err, tidemark.ErrConflict) && r.mark == "" {
		if err := s.why(r, nil); err != nil { // it was stopped
			return err
		}
		if decided, e := s.decidedSince(ctx, r); e == nil && decided {
			return nil // a moment ago: the caller looks again
		}
		return fmt.Errorf("ask the owner: %w", err) // another life has the run
	}
	if err != nil {
		return fmt.Errorf("ask the owner: %w", err)
	}
	if asking.Then != nil {
		asking.Then()
	}
	s.rooms.Teller().Dispatch()
	return errParked
}

// decidedSince reports whether a call of a parked run was decided since it was looked at.
func (s *Session) decidedSince(ctx context.Context, r *run) (bool, error) {
	said, err := s.rooms.Gate().Asked(ctx, r.ID, r.Round)
	if err != nil {
		return false, err
	}
	calls, err := s.calls(ctx, r)
	return slices.ContainsFunc(calls, func(c call) bool {
		ruling, asked := said[c.N]
		return c.State == callRegistered && asked && !ruling.Waits
	}), err
}

// parked is behind the work on a run that was parked. A decision that came while it was still in work found nobody to go
// on with it, so that is looked for once more.
func (s *Session) parked(r *run) {
	s.report(s.life)
	s.setAlarm(s.life)
	if decided, err := s.decidedSince(s.life, r); err == nil && decided {
		s.Runtime.Go(s.goOn)
	}
}

// abortParked stops a run that nobody works on because a call of it waits.
func (s *Session) abortParked(ctx context.Context) bool {
	run, err := s.rooms.Gate().Parked(ctx)
	if err != nil || run == "" {
		return false
	}
	err = s.DB.Tx(ctx, []tidemark.Stmt{{SQL: `UPDATE runs SET error = ? WHERE id = ? AND state = 'tools' AND error = ''`, Args: []any{stopMark + mustJSON(""), run}, Want: 1}})
	if err != nil {
		s.warn("stop what waits", err)
		return false
	}
	s.Runtime.Go(s.goOn)
	return true
}

// goOnStmts make a run due that rests, where it still does and nobody stopped it.
func (s *Session) goOnStmts(ctx context.Context, run string) (log string, stmts []tidemark.Stmt, err error) {
	h, err := s.head(ctx)
	return h.Log, []tidemark.Stmt{{SQL: `UPDATE runs SET updated = updated WHERE id = ? AND state = 'tools' AND error = ''`, Args: []any{run}, Want: 1}, s.dueStmt(dueRun, s.Runtime.Now(), "")}, err
}

// readAsCommand has rooms read a message as a command of theirs.
func (s *Session) readAsCommand(ctx context.Context, in Input) (Input, error) {
	h, ok := room.Find[room.Hearer](s.rooms)
	if !ok || in.Kind != InputMessage || len(in.Message.Content) != 1 || in.Message.Content[0].Type != tidemark.TypeText {
		return in, nil
	}
	line, err := h.Reads(ctx, in.Message.Content[0].Text, in.Origin)
	if err != nil || line == "" {
		return in, err
	}
	return Input{ID: in.ID, Kind: InputAsk, Text: line, Origin: in.Origin}, nil
}

// commandRoom has a room carry out a command at once, not behind a run that may wait for it: stmts are those of the input. It
// joins the run that it lets go on, so whoever gave it reads the answer.
func (s *Session) commandRoom(ctx context.Context, c room.Commander, in Input, word, text string, stmts []tidemark.Stmt) (state string, err error) {
	done, err := c.Command(ctx, word, text, in.Origin)
	if err != nil {
		return "", err
	}
	stmts = append(stmts[:len(stmts):len(stmts)], done.Stmts...)
	then := func() {
		if done.Then != nil {
			done.Then()
		}
	}
	if done.Run == "" {
		h, err := s.head(ctx)
		if err != nil {
			return "", err
		}
		ended := tidemark.Stmt{SQL: `UPDATE inputs SET state = 'done' WHERE key = ? AND id = ?`, Args: []any{string(s.Key), in.ID}}
		return "done", s.answerNow(ctx, in, h.Log, append(stmts, ended), done.Text, then)
	}
	stmts = append(stmts, tidemark.Stmt{SQL: `UPDATE inputs SET state = 'taken', run = ?, payload = '' WHERE key = ? AND id = ? AND state = 'new'`,
		Args: []any{done.Run, string(s.Key), in.ID}, Want: 1})
	err = s.DB.Tx(ctx, stmts)
	if err == nil {
		s.hub.send(Notice{Type: NoticeTaken, Run: done.Run, Inputs: []string{in.ID}})
		then()
		return "taken", nil
	}
	if !errors.Is(err, tidemark.ErrConflict) {
		return "", err
	}
	rows, e := s.DB.Query(ctx, `SELECT 1 FROM inputs WHERE key = ? AND id = ? LIMIT 1`, string(s.Key), in.ID)
	if e != nil || len(rows) > 0 {
		return "", errors.Join(e, tidemark.ErrConflict) // it was received before
	}
	return "", fmt.Errorf("it was decided, or its turn ended, at the same moment; look again: %w", tidemark.ErrBusy)
}

// answerNow ends an input at once with a text: an event of the log, and a message to who wrote it. then is called when
// that is written down, before it is told.
func (s *Session) answerNow(ctx context.Context, in Input, log string, stmts []tidemark.Stmt, text string, then func()) error {
	event := tidemark.Event{Type: "answer", Text: text}
	lines, err := s.rooms.Teller().Lines(ctx, log, []tidemark.Origin{in.Origin}, text)
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
