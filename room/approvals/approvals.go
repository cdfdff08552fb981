// Package approvals is the room that asks the owner about calls of tools, as the rules of package approval say, and keeps
// what waits for an answer. Begin with Room, Ask and Decide.
package approvals

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
	DefaultExpiry = time.Hour
	maxWaiting    = 128  // of one conversation that are listed, which is as many calls as a reply may make
	maxAskedInput = 2000 // bytes of the arguments that are shown
	maxAskedTold  = 400  // the same, over a channel
	keepApprovals = 30 * 24 * time.Hour
	ofSchedules   = 5 * time.Hour // an agent gives up a run of which it hears nothing for longer
)

// kind of what the agent is told: a tidemark.Question.
const kind = "question"

// tables keep what the owner is asked. They are made with the first question.
var tables = room.Tables{Space: "session_approvals", Own: true, Steps: []string{
	`CREATE TABLE approvals(key TEXT NOT NULL, code TEXT NOT NULL, run TEXT NOT NULL, round INTEGER NOT NULL, n INTEGER NOT NULL, tool TEXT NOT NULL,
		input TEXT NOT NULL, state TEXT NOT NULL, asked INTEGER NOT NULL, expires INTEGER NOT NULL, PRIMARY KEY(key, code)) WITHOUT ROWID`,
}}

// Config says what is asked. Its zero value asks about nothing.
type Config struct {
	Policy approval.Policy
	Expiry time.Duration // how long a question waits for its answer, default an hour
	Errand time.Duration // the same of a conversation that was delegated to, at most; 0: as others
}

// Room asks about the calls of one conversation.
type Room struct {
	room.Self
	room.Mail
	room.Voice
	room.Channels
	room.Turns
	Config
}

// Make returns what makes the room.
func Make(c Config) room.Maker {
	return func(p room.Ports) any { return &Room{p.Self, p.Mail, p.Voice, p.Channels, p.Turns, c} }
}

var (
	_ room.Tabler    = (*Room)(nil)
	_ room.Gate      = (*Room)(nil)
	_ room.Commander = (*Room)(nil)
	_ room.Hearer    = (*Room)(nil)
	_ room.Ender     = (*Room)(nil)
	_ room.Reporter  = (*Room)(nil)
)

// Tables implements room.Tabler.
func (s *Room) Tables() room.Tables { return tables }

// asked is a question, of which call it is, and what became of it.
type asked struct {
	tidemark.Question
	run      string
	round, n int
	state    string
}

// same reports whether two questions are about one call.
func (a asked) same(b asked) bool { return a.run == b.run && a.round == b.round && a.n == b.n }

// Waiting lists the calls that wait for the owner's decision, oldest first.
func (s *Room) Waiting(ctx context.Context) ([]tidemark.Question, error) {
	list, err := s.waiting(ctx)
	return questions(list), err
}

func (s *Room) waiting(ctx context.Context) ([]asked, error) {
	return s.read(ctx, `state = 'waiting' AND expires > ? ORDER BY asked, n LIMIT ?`, s.Runtime.Now().UnixMilli(), maxWaiting)
}

func questions(list []asked) []tidemark.Question {
	out := make([]tidemark.Question, len(list))
	for i, a := range list {
		out[i] = a.Question
	}
	return out
}

// Parked implements room.Gate.
func (s *Room) Parked(ctx context.Context) (run string, err error) {
	list, err := s.waiting(ctx)
	if err != nil || len(list) == 0 {
		return "", err
	}
	return list[0].run, nil
}

// read returns questions; none where nothing was ever asked.
func (s *Room) read(ctx context.Context, where string, args ...any) ([]asked, error) {
	rows, err := s.Made.Query(ctx, tables, `SELECT code, tool, input, state, asked, expires, run, round, n FROM approvals WHERE key = ? AND `+where, append([]any{string(s.Key)}, args...)...)
	if err != nil {
		return nil, fmt.Errorf("read approvals: %w", err)
	}
	out := make([]asked, len(rows))
	for i, r := range rows {
		out[i] = asked{Question: tidemark.Question{Session: s.Key, Code: r.Text(0), Tool: r.Text(1), Input: r.Text(2), Asked: time.UnixMilli(r.Int(4)).UTC(), Expires: time.UnixMilli(r.Int(5)).UTC()},
			state: r.Text(3), run: r.Text(6), round: int(r.Int(7)), n: int(r.Int(8))}
	}
	return out, nil
}

// find returns the question of a code, whatever its state; ErrNotFound for none.
func (s *Room) find(ctx context.Context, code string) (asked, error) {
	list, err := s.read(ctx, `code = ? LIMIT 1`, strings.ToUpper(code))
	if err == nil && len(list) == 0 {
		err = fmt.Errorf("no call of %s waits under the code %.20q: %w", s.Key, code, tidemark.ErrNotFound)
	}
	if err != nil {
		return asked{}, err
	}
	return list[0], nil
}

// Asked implements room.Gate.
func (s *Room) Asked(ctx context.Context, run string, round int) (map[int]room.Ruling, error) {
	list, err := s.read(ctx, `run = ? AND round = ? LIMIT ?`, run, round, maxWaiting)
	out := map[int]room.Ruling{}
	for _, a := range list {
		out[a.n] = s.ruling(a, s.Runtime.Now())
	}
	return out, err
}

// ruling is what became of a question.
func (s *Room) ruling(a asked, now time.Time) room.Ruling {
	switch {
	case a.state == askDenied:
		return room.Ruling{Refused: "the owner was asked and said no. Do not try it again in another way; ask what they want instead."}
	case a.state == askClosed:
		return room.Ruling{Refused: "the turn that asked was stopped."}
	case a.state == askWaiting && !a.Expires.After(now):
		return room.Ruling{Refused: fmt.Sprintf("the owner was asked and did not answer until %s.", s.clock(a.Expires))}
	}
	return room.Ruling{Waits: a.state == askWaiting}
}

func (s *Room) clock(at time.Time) string { return at.In(s.Zone()).Format("15:04 MST") }

// Judge implements room.Gate, by the rules.
func (s *Room) Judge(tool string, input []byte, others bool) room.Ruling {
	action, rule := s.Policy.Decide(tool, input, others)
	switch {
	case action == approval.Deny && rule == 0:
		return room.Ruling{Refused: "toolApproval.default denies tools that no rule allows"}
	case action == approval.Deny:
		return room.Ruling{Refused: fmt.Sprintf("rule %d of toolApproval.rules denies this call", rule)}
	}
	return room.Ruling{Waits: action == approval.Ask}
}

// Ask implements room.Gate. Nothing is asked twice.
func (s *Room) Ask(ctx context.Context, t room.Turn, calls []room.Waiting) (done room.Done, until time.Time, err error) {
	if err := s.Made.Open(ctx, tables); err != nil {
		return done, until, err
	}
	now := s.Runtime.Now()
	expires := now.Add(s.expiry())
	until = expires
	var stmts []tidemark.Stmt
	var fresh []asked
	for _, c := range calls {
		a := asked{Question: tidemark.Question{Session: s.Key, Code: approval.Code(t.Run, fmt.Sprint(t.Round, c.N)), Tool: c.Tool, Input: shownInput(c.Input, maxAskedInput),
			Asked: now.UTC(), Expires: expires.UTC()}, run: t.Run, round: t.Round, n: c.N, state: askWaiting}
		old, err := s.find(ctx, a.Code)
		for err == nil && !old.same(a) { // another call's, by chance
			a.Code = approval.Code(a.Code)
			old, err = s.find(ctx, a.Code)
		}
		switch {
		case err == nil: // asked by an earlier life, or before another call of the reply was decided
			stmts = append(stmts, tidemark.Stmt{SQL: `UPDATE approvals SET state = state WHERE key = ? AND code = ? AND state = 'waiting'`, Args: []any{string(s.Key), old.Code}, Want: 1})
			if old.Expires.Before(until) {
				until = old.Expires
			}
			continue
		case !errors.Is(err, tidemark.ErrNotFound):
			return done, until, err
		}
		fresh = append(fresh, a)
		stmts = append(stmts, tidemark.Stmt{SQL: `INSERT INTO approvals(key, code, run, round, n, tool, input, state, asked, expires) VALUES(?, ?, ?, ?, ?, ?, ?, 'waiting', ?, ?)`,
			Args: []any{string(s.Key), a.Code, a.run, a.round, a.n, a.Tool, a.Input, a.Asked.UnixMilli(), a.Expires.UnixMilli()}, Want: 1})
	}
	more, err := s.askStmts(ctx, t, fresh)
	return room.Done{Stmts: append(stmts, more...), Then: func() { s.tellWaiting(ctx, t.Run) }}, until, err
}

// askStmts tell the owner of questions: an event of the log, a message over the channel that they write from, and the
// agent, which has all questions of its conversations, and asks in the owner's main session where the owner is not here.
func (s *Room) askStmts(ctx context.Context, t room.Turn, fresh []asked) ([]tidemark.Stmt, error) {
	if len(fresh) == 0 {
		return nil, nil
	}
	list := questions(fresh)
	text := question(list, maxAskedTold)
	stmts := []tidemark.Stmt{s.Event(t.Log, tidemark.Event{Type: "approval", Text: text, Data: []byte(room.JSON(list))})}
	var to []tidemark.Origin
	for _, o := range t.Origins { // in the run of a schedule nobody is there, whoever made it
		if o.Owner && o.Occasion == nil && o.Channel != ofModels {
			to = append(to, o)
		}
	}
	lines, err := s.Lines(ctx, t.Log, to, text)
	if err != nil {
		return nil, err
	}
	stmts = append(stmts, lines...)
	var where tidemark.Key
	if i := slices.IndexFunc(t.Origins, func(o tidemark.Origin) bool { return o.From == tidemark.FromAgent }); i >= 0 {
		where = tidemark.Key(t.Origins[i].Peer)
	}
	for _, a := range fresh {
		a.Where, a.Elsewhere = where, len(to) == 0
		stmts = append(stmts, s.Outbox(kind+":"+a.Code+":"+a.run, kind, a.Question, 0)...)
	}
	return stmts, nil
}

// question is what the owner is asked, in words. What the model wrote stands in it as it is, in one line each, behind
// words of ours, so that it cannot look like them.
func question(list []tidemark.Question, most int) string {
	var b strings.Builder
	for _, a := range list {
		fmt.Fprintf(&b, "May the tool %s run with %s?\nAnswer: yes %s, or no %s.\n", a.Tool, clip.Line(shownInput([]byte(a.Input), most), most+1), a.Code, a.Code)
	}
	if len(list) > 0 {
		fmt.Fprintf(&b, "Until %s nothing else happens here.", list[0].Expires.Format("15:04 MST"))
	}
	return b.String()
}

// Resting returns what waits for the owner while nothing works here, and what those who follow the turn read of it: the
// question is for the owner alone.
func (s *Room) Resting(ctx context.Context) (list []tidemark.Question, text string, err error) {
	if s.Active() != "" {
		return nil, "", nil
	}
	return s.shown(ctx)
}

func (s *Room) shown(ctx context.Context) (list []tidemark.Question, text string, err error) {
	list, err = s.Waiting(ctx)
	if !s.Key.Scope().Owner && len(list) > 0 {
		return list, "This waits until the owner of the assistant has decided about it.", err
	}
	return list, question(list, maxAskedInput), err
}

// tellWaiting tells those who listen what waits now.
func (s *Room) tellWaiting(ctx context.Context, run string) {
	list, text, err := s.shown(ctx)
	if err != nil {
		s.Warn("read approvals", err)
		return
	}
	s.Rests(run, list, text)
}

// expiry is how long a question waits: no longer than whoever waits for its turn.
func (s *Room) expiry() time.Duration {
	d := cmp.Or(s.Expiry, DefaultExpiry)
	switch s.Key.Channel() {
	case tidemark.ChannelDelegate:
		return min(d, cmp.Or(s.Errand, d))
	case tidemark.ChannelSchedule:
		return min(d, ofSchedules)
	}
	return d
}

// Close implements room.Gate.
func (s *Room) Close(ctx context.Context, run string) ([]tidemark.Stmt, error) {
	list, err := s.read(ctx, `run = ? AND state = 'waiting' LIMIT ?`, run, maxWaiting)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	stmts := []tidemark.Stmt{
		{SQL: `UPDATE approvals SET state = 'closed' WHERE key = ? AND run = ? AND state = 'waiting'`, Args: []any{string(s.Key), run}},
	}
	for _, a := range list {
		stmts = append(stmts, s.closed(a)...)
	}
	return stmts, nil
}

// closed has the agent know that a question is no more.
func (s *Room) closed(a asked) []tidemark.Stmt {
	a.Input, a.Closed = "", true
	return s.Outbox(kind+"-closed:"+a.Code+":"+a.run, kind, a.Question, 0)
}

// EndStmts drop what was asked long ago.
func (s *Room) EndStmts() []tidemark.Stmt {
	if !s.Made.Here(tables) {
		return nil
	}
	return []tidemark.Stmt{{SQL: `DELETE FROM approvals WHERE key = ? AND expires < ?`, Args: []any{string(s.Key), s.Runtime.Now().Add(-keepApprovals).UnixMilli()}}}
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

// Reports implements room.Reporter.
func (s *Room) Reports() string { return kind }

// Report hands a question to the agent.
func (s *Room) Report(ctx context.Context, raw []byte) error {
	var q tidemark.Question
	if err := json.Unmarshal(raw, &q); err != nil {
		return fmt.Errorf("decode: %w: %w", err, tidemark.ErrInvalid)
	}
	if to, ok := s.Agent.(questioner); ok {
		return to.Question(ctx, q)
	}
	return nil
}
