package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/approval"
	"github.com/tidemark-ai/tidemark/internal/clip"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/room"
)

// States of a question.
const (
	askWaiting = "waiting"
	askAllowed = "allowed"
	askDenied  = "denied"
	askClosed  = "closed" // its turn has ended
)

// Bounds of questions.
const (
	DefaultApprovalExpiry = time.Hour
	maxWaiting            = maxCalls // of one conversation that are listed
	maxAskedInput         = 2000     // bytes of the arguments that are shown
	maxAskedTold          = 400      // the same, over a channel
	keepApprovals         = 30 * 24 * time.Hour
)

// Approval is a tool call that waits for the owner's decision.
type Approval struct {
	Code    string       `json:"code"` // that the answer names
	Session tidemark.Key `json:"session"`
	Tool    string       `json:"tool"`
	Input   string       `json:"input"` // the beginning of its JSON
	Asked   time.Time    `json:"asked"`
	Expires time.Time    `json:"expires"`

	run      string
	round, n int
	state    string
}

// same reports whether two questions are about one call.
func (a Approval) same(b Approval) bool { return a.run == b.run && a.round == b.round && a.n == b.n }

// errParked ends the work on a run whose calls wait for a decision. The run is not over: it goes on with the
// decision, or when the time for it has passed.
var errParked = errors.New("a tool call waits for the owner's decision")

// Approvals lists the calls that wait for the owner's decision, oldest first.
func (s *Session) Approvals(ctx context.Context) ([]Approval, error) {
	return s.approvals(ctx, `state = 'waiting' AND expires > ? ORDER BY asked, n LIMIT ?`, s.Runtime.Now().UnixMilli(), maxWaiting)
}

// approvals reads questions; none where nothing was ever asked.
func (s *Session) approvals(ctx context.Context, where string, args ...any) ([]Approval, error) {
	out := []Approval{}
	if there, err := s.made.Has(ctx, approvalTables); err != nil || !there {
		return out, err
	}
	rows, err := s.DB.Query(ctx, `SELECT code, tool, input, state, asked, expires, run, round, n FROM approvals WHERE key = ? AND `+where, append([]any{string(s.Key)}, args...)...)
	if err != nil {
		return nil, fmt.Errorf("read approvals: %w", err)
	}
	for _, r := range rows {
		out = append(out, Approval{Session: s.Key, Code: r.Text(0), Tool: r.Text(1), Input: r.Text(2), state: r.Text(3), Asked: time.UnixMilli(r.Int(4)).UTC(), Expires: time.UnixMilli(r.Int(5)).UTC(),
			run: r.Text(6), round: int(r.Int(7)), n: int(r.Int(8))})
	}
	return out, nil
}

// approvalOf returns the question of a code, whatever its state; ErrNotFound for none.
func (s *Session) approvalOf(ctx context.Context, code string) (Approval, error) {
	list, err := s.approvals(ctx, `code = ? LIMIT 1`, strings.ToUpper(code))
	if err != nil || len(list) == 0 {
		return Approval{}, errors.Join(err, fmt.Errorf("no call of %s waits under the code %.20q: %w", s.Key, code, tidemark.ErrNotFound))
	}
	return list[0], nil
}

// judge says of each registered call whether it may run: by the rules, and by what the owner decided. A call that may
// not is told so, one that waits for a decision is marked.
func (s *Session) judge(ctx context.Context, r *run, calls []call) error {
	said := map[int]Approval{}
	asked, err := s.approvals(ctx, `run = ? AND round = ? LIMIT ?`, r.ID, r.Round, maxCalls)
	if err != nil {
		return err
	}
	for _, a := range asked {
		said[a.n] = a
	}
	now := s.Runtime.Now()
	for i := range calls {
		c := &calls[i]
		c.waits = false
		if c.State != callRegistered || c.told.Type != "" {
			continue
		}
		if a, asked := said[c.N]; asked {
			c.waits = a.state == askWaiting && a.Expires.After(now)
			if c.told = s.refusalOf(c.ID, a, now); c.told.Type == "" && !c.waits && s.anew(ctx, c.Block.Name) {
				c.told = changedTool(c.ID)
			}
			continue
		}
		if why := unreadable(c.Block.Input); why != "" {
			c.told = tidemark.ToolResult(c.ID, "not run: "+why+". Call it again with all of them.", true)
			continue
		}
		if s.anew(ctx, c.Block.Name) {
			c.told = changedTool(c.ID)
			continue
		}
		switch action, rule := s.settings().Approval.Decide(c.Block.Name, c.Block.Input, !s.builtin(c.Block.Name)); {
		case action == approval.Deny:
			c.told = tidemark.ToolResult(c.ID, "not run: "+deniedBy(rule), true)
		case action == approval.Ask && !s.mayAsk(ctx, r, c.Block.Name):
			c.told = tidemark.ToolResult(c.ID, fmt.Sprintf("not run: you have no tool %.80q in this turn.", c.Block.Name), true)
		case action == approval.Ask:
			c.waits = true
		}
	}
	return nil
}

func changedTool(id string) tidemark.Block {
	return tidemark.ToolResult(id, "not run: the tool was changed by its server since you were told of it. Read its definition, which is made anew, before you call it.", true)
}

func deniedBy(rule int) string {
	if rule == 0 {
		return "toolApproval.default denies tools that no rule allows"
	}
	return fmt.Sprintf("rule %d of toolApproval.rules denies this call", rule)
}

// refusalOf is the result of a call that the owner did not allow, nothing for one that may run or waits.
func (s *Session) refusalOf(id string, a Approval, now time.Time) tidemark.Block {
	switch {
	case a.state == askDenied:
		return tidemark.ToolResult(id, "not run: the owner was asked and said no. Do not try it again in another way; ask what they want instead.", true)
	case a.state == askWaiting && !a.Expires.After(now):
		return tidemark.ToolResult(id, fmt.Sprintf("not run: the owner was asked and did not answer until %s.", a.Expires.In(s.settings().Zone).Format("15:04 MST")), true)
	case a.state == askClosed:
		return tidemark.ToolResult(id, "not run: the turn that asked was stopped.", true)
	}
	return tidemark.Block{}
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
	_, ours := own(name)
	return ours || name == room.TaskTool || name == helpTool || s.agents(name)
}

// park asks the owner about the calls that wait and lets the run rest. Nothing is asked twice.
func (s *Session) park(ctx context.Context, r *run, calls []call) error {
	if err := s.made.Open(ctx, approvalTables); err != nil {
		return err
	}
	now := s.Runtime.Now()
	next := now.Add(s.approvalExpiry())
	var stmts []tidemark.Stmt
	var fresh []Approval
	for _, c := range calls {
		if !c.waits {
			continue
		}
		a := Approval{Session: s.Key, Code: approval.Code(r.ID, fmt.Sprint(r.Round, c.N)), Tool: c.Block.Name, Input: shownInput(c.Block.Input, maxAskedInput),
			Asked: now.UTC(), Expires: now.Add(s.approvalExpiry()).UTC(), run: r.ID, round: r.Round, n: c.N, state: askWaiting}
		old, err := s.approvalOf(ctx, a.Code)
		for err == nil && !old.same(a) { // another call's, by chance
			a.Code = approval.Code(a.Code)
			old, err = s.approvalOf(ctx, a.Code)
		}
		switch {
		case err == nil: // asked by an earlier life, or before another call of the reply was decided
			stmts = append(stmts, tidemark.Stmt{SQL: `UPDATE approvals SET state = state WHERE key = ? AND code = ? AND state = 'waiting'`, Args: []any{string(s.Key), old.Code}, Want: 1})
			next = minTime(next, old.Expires)
			continue
		case !errors.Is(err, tidemark.ErrNotFound):
			return err
		}
		fresh, next = append(fresh, a), minTime(next, a.Expires)
		stmts = append(stmts, tidemark.Stmt{SQL: `INSERT INTO approvals(key, code, run, round, n, tool, input, state, asked, expires) VALUES(?, ?, ?, ?, ?, ?, ?, 'waiting', ?, ?)`,
			Args: []any{string(s.Key), a.Code, a.run, a.round, a.n, a.Tool, a.Input, a.Asked.UnixMilli(), a.Expires.UnixMilli()}, Want: 1})
	}
	asks, err := s.askStmts(ctx, r, fresh)
	if err != nil {
		return err
	}
	// Behind its time the run is taken up by the alarm that looks after runs; till then it costs nothing.
	stmts = append(append(stmts, asks...), s.dueStmt(dueRun, next, ""))
	err = s.step(ctx, r, stateTools, stmts...)
	if errors.Is(err, tidemark.ErrConflict) && r.mark == "" {
		if err := s.why(r, nil); err != nil { // it was stopped
			return err
		}
		if s.nothingDecided(ctx, r.ID) { // another life has the run
			return fmt.Errorf("ask the owner: %w", err)
		}
		return nil // one was decided a moment ago: the caller looks again
	}
	if err != nil {
		return fmt.Errorf("ask the owner: %w", err)
	}
	s.noticeApprovals(ctx, r.ID)
	s.dispatch()
	return errParked
}

// askStmts tell the owner of questions: an event of the log, a message over the channel that they write from, and the
// agent, which has all questions of its conversations, and asks in the owner's main session where the owner is not here.
func (s *Session) askStmts(ctx context.Context, r *run, fresh []Approval) ([]tidemark.Stmt, error) {
	if len(fresh) == 0 {
		return nil, nil
	}
	stmts := []tidemark.Stmt{s.eventStmt(r.Log, tidemark.Event{Type: "approval", Text: question(fresh, maxAskedTold), Data: []byte(mustJSON(fresh))})}
	here, to := false, []tidemark.Origin(nil)
	for _, o := range r.origins { // in the run of a schedule nobody is there, whoever made it
		if o.Owner && o.Occasion == nil && o.Channel != ofModels {
			here, to = true, append(to, o)
		}
	}
	lines, err := s.tellStmts(ctx, r.Log, to, question(fresh, maxAskedTold))
	if err != nil {
		return nil, err
	}
	stmts = append(stmts, lines...)
	var where tidemark.Key
	if i := slices.IndexFunc(r.origins, func(o tidemark.Origin) bool { return o.From == tidemark.FromAgent }); i >= 0 {
		where = tidemark.Key(r.origins[i].Peer)
	}
	for _, a := range fresh {
		q := tidemark.Question{Where: where, Code: a.Code, Session: s.Key, Tool: a.Tool, Input: a.Input, Asked: a.Asked, Expires: a.Expires, Elsewhere: !here}
		stmts = append(stmts, s.outboxStmt("question:"+a.Code+":"+a.run, outQuestion, q))
	}
	return append(stmts, s.dueStmt(dueOutbox, s.Runtime.Now(), "")), nil
}

// question is what the owner is asked, in words. What the model wrote stands in it as it is, in one line each, behind
// words of ours, so that it cannot look like them.
func question(list []Approval, most int) string {
	var b strings.Builder
	for _, a := range list {
		fmt.Fprintf(&b, "May the tool %s run with %s?\nAnswer: yes %s, or no %s.\n", a.Tool, clip.Line(shownInput([]byte(a.Input), most), most+1), a.Code, a.Code)
	}
	if len(list) > 0 {
		fmt.Fprintf(&b, "Until %s nothing else happens here.", list[0].Expires.Format("15:04 MST"))
	}
	return b.String()
}

// questionHere is what those who follow a turn read of what waits: the question is for the owner alone.
func (s *Session) questionHere(list []Approval) string {
	if !s.Scope().Owner && len(list) > 0 {
		return "This waits until the owner of the assistant has decided about it."
	}
	return question(list, maxAskedInput)
}

// Resting returns what waits for the owner while nothing works here, and what they are asked, in words.
func (s *Session) Resting(ctx context.Context) (list []Approval, text string, err error) {
	if s.activeRun() != "" {
		return nil, "", nil
	}
	list, err = s.Approvals(ctx)
	return list, s.questionHere(list), err
}

// noticeApprovals tells those who listen what waits now.
func (s *Session) noticeApprovals(ctx context.Context, run string) {
	list, err := s.Approvals(ctx)
	if err != nil {
		s.warn("read approvals", err)
		return
	}
	s.hub.send(Notice{Type: NoticeApproval, Run: run, Approvals: list, Text: s.questionHere(list)})
}

// approvalExpiry is how long a question waits: no longer than whoever waits for its turn.
func (s *Session) approvalExpiry() time.Duration {
	const ofSchedules = 5 * time.Hour // an agent gives up a run of which it hears nothing for longer
	d := cmp.Or(s.settings().ApprovalExpiry, DefaultApprovalExpiry)
	switch s.Key.Channel() {
	case tidemark.ChannelDelegate:
		d = min(d, cmp.Or(s.settings().Delegation.Timeout, d))
	case tidemark.ChannelSchedule:
		d = min(d, ofSchedules)
	}
	return d
}

func minTime(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// nothingDecided reports whether no call of a parked run was decided since it was looked at.
func (s *Session) nothingDecided(ctx context.Context, run string) bool {
	rows, err := s.DB.Query(ctx, `SELECT 1 FROM approvals a JOIN calls c ON c.run = a.run AND c.round = a.round AND c.n = a.n
		WHERE a.key = ? AND a.run = ? AND a.state <> 'waiting' AND c.state = 'registered' LIMIT 1`, string(s.Key), run)
	return err != nil || len(rows) == 0
}

// closeApprovals are what ends the questions of a run that ends before they are answered.
func (s *Session) closeApprovals(ctx context.Context, r *run) ([]tidemark.Stmt, error) {
	list, err := s.approvals(ctx, `run = ? AND state = 'waiting' LIMIT ?`, r.ID, maxWaiting)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	stmts := []tidemark.Stmt{
		{SQL: `UPDATE approvals SET state = 'closed' WHERE key = ? AND run = ? AND state = 'waiting'`, Args: []any{string(s.Key), r.ID}},
	}
	for _, a := range list {
		stmts = append(stmts, s.closedStmt(a))
	}
	return stmts, nil
}

// tellQuestion hands a question to the agent.
func (s *Session) tellQuestion(ctx context.Context, raw []byte) error {
	var q tidemark.Question
	if err := json.Unmarshal(raw, &q); err != nil {
		return fmt.Errorf("decode: %w: %w", err, tidemark.ErrInvalid)
	}
	to, ok := s.Agent.(questioner)
	if !ok {
		return nil
	}
	return to.Question(ctx, q)
}

// questioner is an agent that knows what its conversations ask the owner.
type questioner interface {
	// Question stores a question, or takes it back; the same twice is one.
	Question(ctx context.Context, q tidemark.Question) error
	// Asked reports whether a conversation ever asked under a code, also one that was decided since.
	Asked(ctx context.Context, code string) (bool, error)
	// Answer carries a decision to the conversation that asked. A code that nobody asked under is ErrNotFound.
	Answer(ctx context.Context, d tidemark.Decision) (tidemark.Question, error)
}

// parked is behind the work on a run that was parked. A decision that came while it was still in work found nobody to go
// on with it, so that is looked for once more.
func (s *Session) parked(r *run) {
	s.report(s.life)
	s.setAlarm(s.life)
	if !s.nothingDecided(s.life, r.ID) {
		s.Runtime.Go(s.goOn)
	}
}

// waitsBefore lists the calls that wait when their owner writes over a channel: theirs comes behind them.
func (s *Session) waitsBefore(ctx context.Context, in Input) []Approval {
	if in.Kind != InputMessage || in.Origin.To == nil || !in.Origin.Owner || !s.made.Here(approvalTables) {
		return nil
	}
	list, err := s.Approvals(ctx)
	if err != nil {
		s.warn("read what waits", err)
	}
	return list
}

// sayWaits tells who wrote what waits before it.
func (s *Session) sayWaits(ctx context.Context, in Input, list []Approval) {
	if len(list) == 0 {
		return
	}
	if err := s.Say(ctx, "waits/"+in.ID, *in.Origin.To, "Your message is kept and comes next. First: "+question(list, maxAskedTold)); err != nil {
		s.warn("tell what waits", err)
	}
}
