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
	"github.com/tidemark-ai/tidemark/internal/json"
)

// Children are the conversations that one may delegate to, wherever they live. Its methods may be called at once.
type Children interface {
	// Work gives a conversation an errand and waits for what comes of it; the same id again joins it. A failed turn
	// is an Outcome with an Error.
	Work(ctx context.Context, key tidemark.Key, e tidemark.Errand) (tidemark.Outcome, error)
	// Drop ends an errand; what was said stays. One that is not there is no error.
	Drop(ctx context.Context, key tidemark.Key, id string) error
	// Read returns a page of the text of a message there, from an offset in bytes on.
	Read(ctx context.Context, key tidemark.Key, entry tidemark.EntryID, offset int) (string, error)
}

// Delegation bounds what the model may hand to conversations of its own. Zero fields are the defaults.
type Delegation struct {
	Off         bool
	MaxDepth    int             // conversations above one another, default 1, at most [MaxDepth]
	MaxChildren int             // in one turn, default 8
	Timeout     time.Duration   // of one, default 10 min
	Budget      tidemark.Tokens // of one, default 100,000
}

// Defaults of Delegation.
const (
	DefaultDepth                          = 1
	DefaultChildren                       = 8
	DefaultDelegateTime                   = 10 * time.Minute
	DefaultDelegateBudget tidemark.Tokens = 100_000
	MinDelegateBudget     tidemark.Tokens = 2_000 // system text, tools and one answer
	delegateSlack                         = 30 * time.Second
	delegateName                          = "delegate"
	maxAtOnce                             = 4        // children that a conversation waits for
	maxTask                               = 64 << 10 // bytes of a task
	delegateBytes                         = 8 << 10  // bytes of an answer that the parent is shown at once
	dropTime                              = 5 * time.Second
	childTries                            = 5           // times that a child which cannot be reached is asked
	childLong                             = time.Minute // behind which a cut is the first one again
	keptShare                             = 4           // of what is left of a budget, a part stays with the parent
)

func (d Delegation) withDefaults() Delegation {
	d.MaxDepth = min(cmp.Or(d.MaxDepth, DefaultDepth), MaxDepth)
	d.MaxChildren = cmp.Or(d.MaxChildren, DefaultChildren)
	d.Timeout = cmp.Or(d.Timeout, DefaultDelegateTime)
	d.Budget = cmp.Or(d.Budget, DefaultDelegateBudget)
	return d
}

// childSystem is what a conversation is told that was delegated to.
const childSystem = "Another agent delegated the task in the first message to you. Your last message is the answer that it reads, and it reads nothing else: " +
	"say what you found, what you did and what is left open. Nobody answers questions: decide yourself, and say what you assumed."

// delegateTool hands a task to a conversation with a context of its own, where the model may do that.
func (s *Session) delegateTool() (tidemark.Tool, bool) {
	return tidemark.Tool{
		Name: delegateName,
		Description: "Give a task to a sub-agent with a context of its own and read its answer: for long searches and work that stands alone. Calls run side by side. " +
			"It sees nothing of this conversation, so say all that it must know.",
		InputSchema: []byte(`{"type":"object","properties":{"task":{"type":"string"},"tools":{"type":"array","items":{"type":"string"},"description":"globs: fewer than you have"},"budget":{"type":"integer","description":"tokens"}},"required":["task"]}`),
		Idempotent:  true, // the conversation and its errand are named by the call's place in its run
		// It may wait for those before it. Its own time is less, so that it ends in words of its own.
		Timeout: 2*s.settings().Delegation.Timeout + delegateSlack,
	}, s.delegates()
}

// depth is how many conversations stand above this one.
func (s *Session) depth() int {
	depth := s.settings().limits.Depth
	if s.Key.Channel() == tidemark.ChannelDelegate {
		depth = max(depth, 1)
	}
	return depth
}

// delegates reports whether the model may delegate here. In conversations of others it may not: a child is the
// owner's, and could do what they may not.
func (s *Session) delegates() bool {
	d := s.settings().Delegation
	return s.Children != nil && !d.Off && s.Scope().Owner && s.depth() < d.MaxDepth
}

// toolTime is how long a call of a tool may take.
func (s *Session) toolTime(name string) time.Duration {
	if t, ok := s.frozenTool(name); ok && t.Timeout > 0 {
		return t.Timeout
	}
	for _, t := range s.offeredTools() {
		if t.Name == name && t.Timeout > 0 {
			return t.Timeout
		}
	}
	return s.settings().ToolTimeout
}

// child is the conversation that a call delegates to, and its errand.
type child struct {
	key    tidemark.Key
	errand tidemark.Errand
}

// childOf names what a call delegates to: the same call of the same run has the same child, in every life.
func (s *Session) childOf(r *run, c call) child {
	id := string(tidemark.HashOf(fmt.Appendf(nil, "%s\n%s\n%d\n%d\n%s", s.Key, r.ID, r.Round, c.N, c.ID)))[:24]
	return child{key: tidemark.Key("agent:" + s.Key.Agent() + ":" + tidemark.ChannelDelegate + ":dm:" + id),
		errand: tidemark.Errand{ID: id, Origin: tidemark.Origin{From: tidemark.FromAgent, Channel: tidemark.ChannelDelegate, Peer: string(s.Key)}}}
}

// callDelegate answers a call of delegate.
func (s *Session) callDelegate(ctx context.Context, r *run, c call) tidemark.Block {
	ch, err := s.begetting(ctx, r, c)
	if err != nil {
		return tidemark.ToolResult(c.ID, "Not delegated: "+inWords(err), true)
	}
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-ctx.Done():
		return tidemark.ToolResult(c.ID, "Not delegated: others were in work all the time.", true)
	}
	if ch.errand.Limits.Budget, err = s.grant(ctx, r, c, ch.errand.Limits.Budget); err != nil {
		return tidemark.ToolResult(c.ID, "Not delegated: "+inWords(err), true)
	}
	most := s.settings().Delegation.Timeout
	limited, stop := s.Runtime.WithTimeout(ctx, most)
	defer stop()
	out, err := s.workOf(limited, ch)
	late := err != nil && limited.Err() != nil
	switch {
	case ctx.Err() != nil: // the turn was stopped, and its end drops the child; or this life ended, and the next one asks again
		return tidemark.ToolResult(c.ID, "Stopped.", true)
	case late:
		s.drop(ctx, ch)
		return tidemark.ToolResult(c.ID, fmt.Sprintf("%s did not answer within %s and was stopped. Recall with scope agent finds what was said there.", ch.key, most), true)
	case err != nil:
		if mayPass(err) {
			s.drop(ctx, ch) // it may work, where it cannot be reached
		} else if err := s.spendOn(ctx, r, c, 0); err != nil { // it was refused
			s.warn("note what was delegated", err)
		}
		return tidemark.ToolResult(c.ID, fmt.Sprintf("%s could not be asked: %s", ch.key, inWords(err)), true)
	}
	if err := s.spendOn(ctx, r, c, out.Spent); err != nil {
		s.warn("note what was delegated", err)
	}
	return answerOf(c.ID, ch.key, out)
}

// begetting reads a call and says what it delegates, if it may.
func (s *Session) begetting(ctx context.Context, r *run, c call) (child, error) {
	var in struct {
		Task   string          `json:"task"`
		Tools  []string        `json:"tools"`
		Budget tidemark.Tokens `json:"budget"`
	}
	err := json.Unmarshal(c.Block.Input, &in)
	switch {
	case err != nil || strings.TrimSpace(in.Task) == "":
		return child{}, fmt.Errorf(`want {"task": what is to be done}: %w`, errors.Join(err, tidemark.ErrInvalid))
	case len(in.Task) > maxTask:
		return child{}, fmt.Errorf("the task has %d bytes, at most %d: %w", len(in.Task), maxTask, tidemark.ErrInvalid)
	case in.Budget != 0 && in.Budget < MinDelegateBudget:
		return child{}, fmt.Errorf("budget %d: want %d tokens or more, or none: %w", in.Budget, MinDelegateBudget, tidemark.ErrInvalid)
	case slices.ContainsFunc(r.origins, func(o tidemark.Origin) bool { return !s.mayChange(o) }):
		return child{}, fmt.Errorf("this turn answers somebody else, and only the owner's turns delegate: %w", tidemark.ErrForbidden)
	}
	rows, err := s.DB.Query(ctx, `SELECT count(*) FROM calls WHERE run = ? AND (round < ? OR round = ? AND n < ?) AND json_extract(call, '$.name') = ?`, r.ID, r.Round, r.Round, c.N, delegateName)
	if err != nil {
		return child{}, fmt.Errorf("count what was delegated: %w", err)
	}
	if d := s.settings().Delegation; rows[0].Int(0) >= int64(d.MaxChildren) {
		return child{}, fmt.Errorf("this turn delegated %d times, which is the most (delegation.maxChildren): %w", d.MaxChildren, tidemark.ErrInvalid)
	}
	ch := s.childOf(r, c)
	ch.errand.Text = in.Task
	ch.errand.Limits = s.limitsOf(in.Budget)
	ch.errand.Limits.Tools, err = s.toolsOf(ctx, in.Tools)
	return ch, err
}

// limitsOf are those of a child: what this conversation has set for itself, and one step deeper.
func (s *Session) limitsOf(asked tidemark.Tokens) tidemark.Limits {
	now := s.settings()
	l := tidemark.Limits{Budget: now.Delegation.Budget, Rounds: now.limits.Rounds, Strategies: now.limits.Strategies, Depth: s.depth() + 1}
	if asked > 0 {
		l.Budget = min(l.Budget, asked)
	}
	if now.Model != s.Settings.Model {
		l.Model = now.Model
	}
	if now.set != cmp.Or(s.Settings.Window, DefaultWindow) {
		l.Window = now.set
	}
	return l
}

// toolsOf are the globs of a child. They narrow what is offered here: where that is narrowed already, they are the
// names that are left.
func (s *Session) toolsOf(ctx context.Context, globs []string) ([]string, error) {
	mine := s.settings().limits.Tools
	if len(globs) == 0 {
		return mine, nil
	}
	if err := validGlobs("tools", globs); err != nil {
		return nil, err
	}
	var left, have []string
	offered, err := s.tools(ctx)
	if err != nil {
		return nil, err
	}
	for _, t := range offered {
		have = append(have, t.Name)
		if approval.Any(globs, t.Name) {
			left = append(left, t.Name)
		}
	}
	switch {
	case len(left) == 0:
		return nil, fmt.Errorf("tools: none of yours is named so; you have %.1000s: %w", strings.Join(have, ", "), tidemark.ErrInvalid)
	case len(mine) == 0:
		return globs, nil
	case len(left) > maxGlobs:
		return nil, fmt.Errorf("tools: %d are named, at most %d: %w", len(left), maxGlobs, tidemark.ErrInvalid)
	}
	return left, nil
}

// workOf waits for a child. Where it was cut off, as by a host that moves it, it is asked again and joins.
func (s *Session) workOf(ctx context.Context, ch child) (out tidemark.Outcome, err error) {
	for try := 1; ; try++ {
		began := s.Runtime.Now()
		out, err = s.Children.Work(ctx, ch.key, ch.errand)
		if !mayPass(err) || ctx.Err() != nil || s.life.Err() != nil {
			return out, err
		}
		if s.Runtime.Now().Sub(began) >= childLong {
			try = 1
		}
		if try == childTries || s.Runtime.Sleep(ctx, backoff(try, 0)) != nil {
			return out, err
		}
	}
}

// mayPass reports whether to ask again may help.
func mayPass(err error) bool {
	return errors.Is(err, tidemark.ErrUnavailable) || errors.Is(err, tidemark.ErrDead) || errors.Is(err, tidemark.ErrBusy)
}

// drop ends what is in work of a child. One that cannot be reached ends at its own bounds.
func (s *Session) drop(ctx context.Context, ch child) {
	limited, stop := s.Runtime.WithTimeout(ctx, dropTime)
	defer stop()
	if err := s.Children.Drop(limited, ch.key, ch.errand.ID); err != nil {
		s.warn("stop what was delegated", err)
	}
}

// dropChildren ends what a run delegated, before it ends itself: whichever life ends it comes by here.
func (s *Session) dropChildren(ctx context.Context, r *run, calls []call) {
	if s.Children == nil {
		return
	}
	started := slices.DeleteFunc(slices.Clone(calls), func(c call) bool { return c.State != callStarted || c.Block.Name != delegateName })
	if len(started) == 0 {
		return
	}
	rows, err := s.DB.Query(ctx, `SELECT 1 FROM runs WHERE id = ? AND owner = ? AND state = 'tools' AND log = ? LIMIT 1`, r.ID, r.owner, r.Log)
	if err != nil || len(rows) == 0 {
		return // another life has the run, and waits for them
	}
	for _, c := range started {
		s.drop(ctx, s.childOf(r, c))
	}
}

// inWords is an error as a model reads it.
func inWords(err error) string {
	text := err.Error()
	if kind := tidemark.Sentinel(err); kind != nil {
		text = strings.TrimSuffix(text, ": "+kind.Error())
	}
	return text
}
