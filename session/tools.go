package session

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/episodes"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/paging"
	"github.com/tidemark-ai/tidemark/room"
	"github.com/tidemark-ai/tidemark/skill"
)

// States of a call.
const (
	callRegistered  = "registered"
	callStarted     = "started"
	callDone        = "done"
	callInterrupted = "interrupted"
)

// Bounds of tools.
const (
	maxParallel = 8
	maxCalls    = 128 // in one reply
	maxLeftOut  = 10  // things that are named where the API does not take them
)

// tools lists what the model may call: the session's own, the agent's, and those of others.
func (s *Session) tools(ctx context.Context) ([]tidemark.Tool, error) {
	var others []tidemark.Tool
	if o, ok := room.Find[room.Offerer](s.rooms); ok { // behind system, which makes the prompt anew
		var err error
		if others, err = o.Offer(ctx); err != nil {
			return nil, err
		}
	}
	out := append(s.rooms.Tools(s.pointing()), s.Agent.Tools(s.Scope())...)
	for _, t := range others {
		if !slices.ContainsFunc(out, func(o tidemark.Tool) bool { return o.Name == t.Name }) { // ours come first
			out = append(out, t)
		}
	}
	return unrefused(s.permitted(out), *s.refusedTools.Load(), s.windows.Name(s.settings().Model), s.Runtime.Now()), nil
}

// tellLeftOut tells of what the model does not have since its API does not take it: tools that are too many, once in a life, and
// what came in this turn and is no picture, say, or too large a one.
func (s *Session) tellLeftOut(ctx context.Context, r *run, reply tidemark.Reply) error {
	var lines []string
	if names := reply.LeftOut; len(names) > 0 && s.leftOut.Swap(int64(len(names))) != int64(len(names)) {
		lines = append(lines, fmt.Sprintf("The model's API takes no more tools. It goes without %d of them: %s.", len(names), listed(names, ", ")))
	}
	if len(reply.Unfit) > 0 {
		lines = append(lines, listed(reply.Unfit, "\n"))
	}
	if len(lines) == 0 {
		return nil
	}
	return s.tellPeople(ctx, r, strings.Join(lines, "\n"))
}

// listed joins some words, of many the first.
func listed(words []string, sep string) string {
	if len(words) > maxLeftOut {
		words = append(slices.Clone(words[:maxLeftOut]), "…")
	}
	return strings.Join(words, sep)
}

// callStmts registers all calls of a reply before the first runs.
func (s *Session) callStmts(r *run, m tidemark.Message, offered []tidemark.Tool) []tidemark.Stmt {
	idempotent := map[string]bool{}
	for _, t := range offered {
		idempotent[t.Name] = t.Idempotent
	}
	var stmts []tidemark.Stmt
	for _, b := range m.Content {
		if b.Type != tidemark.TypeToolUse {
			continue
		}
		state, result := callRegistered, ""
		if len(stmts) >= maxCalls {
			state, result = callDone, string(tidemark.ToolResult(b.ID, fmt.Sprintf("not run: a reply may make %d calls", maxCalls), true).AppendJSON(nil))
		}
		stmts = append(stmts, tidemark.Stmt{
			SQL:  `INSERT INTO calls(run, round, n, id, call, idempotent, state, result) VALUES(?, ?, ?, ?, ?, ?, ?, ?)`,
			Args: []any{r.ID, r.Round, len(stmts), b.ID, string(b.AppendJSON(nil)), idempotent[b.Name], state, result}, Want: 1})
	}
	return stmts
}

// call is a registered tool call.
type call struct {
	N          int
	ID         string
	Block      tidemark.Block
	Idempotent bool
	State      string
	Result     tidemark.Block

	told  tidemark.Block // result that was decided before it runs
	waits bool           // for the owner's decision

	left *roundRoom // of the results of its round
}

func (s *Session) calls(ctx context.Context, r *run) ([]call, error) {
	rows, err := s.DB.Query(ctx, `SELECT n, id, call, idempotent, state, result FROM calls WHERE run = ? AND round = ? ORDER BY n LIMIT 10000`, r.ID, r.Round)
	if err != nil {
		return nil, fmt.Errorf("read calls: %w", err)
	}
	out := make([]call, len(rows))
	for i, row := range rows {
		c := call{N: int(row.Int(0)), ID: row.Text(1), Idempotent: row.Int(3) != 0, State: row.Text(4)}
		if err := json.Unmarshal(row.Bytes(2), &c.Block); err != nil {
			return nil, fmt.Errorf("read call %s: %w", c.ID, err)
		}
		if c.State == callDone {
			if err := json.Unmarshal(row.Bytes(5), &c.Result); err != nil {
				return nil, fmt.Errorf("read result of %s: %w", c.ID, err)
			}
			if c.Result, err = s.keptResult(ctx, c.Result); err != nil {
				return nil, fmt.Errorf("read result of %s: %w", c.ID, err)
			}
		}
		out[i] = c
	}
	left := roomOf(s.settings().ViewBytes, out)
	for i := range out {
		out[i].left = left
	}
	return out, nil
}

// runTools runs the calls of the round, some at a time, and appends their results in the order of
// the calls, in one transaction with the move to the next model call.
func (s *Session) runTools(ctx context.Context, r *run) error {
	calls, err := s.calls(ctx, r)
	if err != nil {
		return err
	}
	if r.Round+1 >= s.settings().MaxRounds {
		return fmt.Errorf("the turn made %d model calls, which is the bound (session.maxRounds): %w", r.Round+1, tidemark.ErrTooLarge)
	}
	answerer, err := s.answerFirst(ctx, r, calls)
	if err != nil {
		return err
	}
	results, err := s.runAll(ctx, r, calls)
	if err != nil {
		return err
	}
	stmts, err := s.resultStmts(ctx, r, calls, results)
	if err != nil {
		return err
	}
	r.Round++
	if err := s.step(ctx, r, stateCalling, stmts...); err != nil {
		r.Round--
		return fmt.Errorf("commit results: %w", err)
	}
	for _, c := range calls { // not before: who hears of a result looks for it in the log
		s.hub.send(Notice{Type: NoticeResult, Run: r.ID, Text: c.Block.Name})
	}
	if answerer != nil {
		answerer.Answered(ctx, r.Log)
	}
	return nil
}

// runAll runs the calls, some at a time, those first that wait for nobody. While any waits for the owner the
// others are done already, and the run rests.
func (s *Session) runAll(ctx context.Context, r *run, calls []call) ([]tidemark.Block, error) {
	results := make([]tidemark.Block, len(calls))
	for {
		if err := s.judge(ctx, r, calls); err != nil {
			return nil, err
		}
		for at := 0; at < len(calls); at += maxParallel {
			if err := s.runSome(ctx, r, calls[at:min(at+maxParallel, len(calls))], results[at:]); err != nil {
				return nil, err
			}
		}
		if !slices.ContainsFunc(calls, func(c call) bool { return c.waits }) {
			return results, nil
		}
		if err := s.park(ctx, r, calls); err != nil {
			return nil, err
		}
	}
}

// runSome runs a few calls side by side and waits for all of them.
func (s *Session) runSome(ctx context.Context, r *run, calls []call, results []tidemark.Block) error {
	type done struct {
		i      int
		result tidemark.Block
		err    error
	}
	out := make(chan done, len(calls))
	running := 0
	for i, c := range calls {
		if c.waits || results[i].Type != "" {
			continue
		}
		running++
		s.Runtime.Go(func() {
			d := done{i: i, err: fmt.Errorf("tool %s panicked: %w", c.Block.Name, tidemark.ErrUnavailable)}
			defer func() { out <- d }()
			d.result, d.err = s.runCall(ctx, r, c)
		})
	}
	var failed error
	for range running {
		var d done
		select {
		case d = <-out:
		case <-ctx.Done(): // a tool that does not heed its context is not waited for
			return context.Cause(ctx)
		}
		if d.err != nil {
			failed = d.err
		}
		results[d.i] = d.result
	}
	return failed
}

// runCall runs one call, or answers it from what the table says of an earlier life.
func (s *Session) runCall(ctx context.Context, r *run, c call) (tidemark.Block, error) {
	switch {
	case c.State == callDone:
		return c.Result, nil
	case c.State == callStarted && !c.Idempotent:
		return tidemark.ToolResult(c.ID, "interrupted, may have run", true), nil
	}
	if c.told.Type != "" { // it is not run, in no life
		return c.told, s.mark(ctx, r, c, callDone, string(c.told.AppendJSON(nil)))
	}
	if err := s.mark(ctx, r, c, callStarted, ""); err != nil {
		return tidemark.Block{}, err
	}
	most := s.toolTime(c.Block.Name)
	limited, stop := s.Runtime.WithTimeout(ctx, most)
	defer stop()
	result := s.resultOf(limited, r, c)
	if err := context.Cause(limited); err != nil && ctx.Err() == nil {
		result = tidemark.ToolResult(c.ID, fmt.Sprintf("the tool did not answer within %s", most), true)
	}
	if ctx.Err() != nil {
		return tidemark.Block{}, context.Cause(ctx)
	}
	result = answering(c.ID, result, c.left)
	kept, err := s.keepResult(ctx, result)
	if err != nil {
		return tidemark.Block{}, err
	}
	return result, s.mark(ctx, r, c, callDone, kept)
}

// toolTime is how long a call of a tool may take.
func (s *Session) toolTime(name string) time.Duration {
	if t, ok := s.rooms.Offered(name); ok && t.Timeout > 0 {
		return t.Timeout
	}
	for _, t := range s.rooms.Tools(s.pointing()) {
		if t.Name == name && t.Timeout > 0 {
			return t.Timeout
		}
	}
	return s.settings().ToolTimeout
}

// resultOf has a call carried out: by a room, by others, or by the agent.
func (s *Session) resultOf(ctx context.Context, r *run, c call) tidemark.Block {
	name := c.Block.Name
	if !s.permits(name) {
		return notPermitted(c)
	}
	for _, x := range s.rooms {
		if t, ok := x.(room.Tools); ok && carries(t, name) {
			return t.Call(ctx, s.callOf(r, c))
		}
	}
	if s.Tools != nil && !s.agents(name) {
		scope := s.Scope()
		scope.Owner = scope.Owner && byOwner(r.origins...) // others may talk in the owner's conversation
		return s.Tools.Call(ctx, scope, c.Block)
	}
	if name == scheduleTool && !ownersTurn(r.origins) {
		return tidemark.ToolResult(c.ID, "not run: schedules are the owner's, and it is not the owner who speaks in this turn.", true)
	}
	return s.Agent.Call(ctx, s.Scope(), c.Block)
}

// carries reports whether a room carries out calls of a tool.
func carries(t room.Tools, name string) bool {
	c, ok := t.(room.Carrier)
	return ok && c.Carries(name) || slices.ContainsFunc(t.Tools(true), func(tool tidemark.Tool) bool { return tool.Name == name })
}

// scheduleTool is the agent's tool that has work done later, as the owner's.
const scheduleTool = "schedule"

// ownersTurn reports whether a turn answers the owner and nobody and nothing else: no schedule, no task, no stranger.
func ownersTurn(origins []tidemark.Origin) bool {
	return len(origins) > 0 && !slices.ContainsFunc(origins, func(o tidemark.Origin) bool {
		return !o.Owner || o.Occasion != nil || o.From != "" && o.From != tidemark.FromPerson
	})
}

// agents reports whether a tool is one of the agent's.
func (s *Session) agents(name string) bool {
	return slices.ContainsFunc(s.Agent.Tools(s.Scope()), func(t tidemark.Tool) bool { return t.Name == name })
}

// mark writes how far a call is. What a call has done is kept also of a run that was stopped meanwhile.
func (s *Session) mark(ctx context.Context, r *run, c call, state, result string) error {
	err := s.DB.Tx(ctx, []tidemark.Stmt{
		{SQL: `UPDATE runs SET updated = ? WHERE id = ? AND owner = ? AND state = 'tools' AND log = ? AND (error = ? OR ? = 'done')`,
			Args: []any{s.Runtime.Now().UnixMilli(), r.ID, r.owner, r.Log, r.mark, state}, Want: 1},
		{SQL: `UPDATE calls SET state = ?, result = ? WHERE run = ? AND round = ? AND n = ?`, Args: []any{state, result, r.ID, r.Round, c.N}, Want: 1},
	})
	if err != nil {
		return fmt.Errorf("mark call %s %s: %w", c.ID, state, err)
	}
	return nil
}

// resultStmts appends the results as one message of the user.
func (s *Session) resultStmts(ctx context.Context, r *run, calls []call, results []tidemark.Block) ([]tidemark.Stmt, error) {
	if len(results) == 0 {
		return nil, nil
	}
	chain, err := s.log.Chain(ctx, r.Log)
	if err != nil {
		return nil, err
	}
	now := s.Runtime.Now()
	m := tidemark.Message{Role: tidemark.User, Content: results}
	e := tidemark.Entry{ID: tidemark.EntryID(tidemark.NewID(now)), Kind: tidemark.KindMessage, At: now, Tokens: tidemark.Estimate(m), Origin: tidemark.Origin{From: tidemark.FromTool}}
	if !slices.ContainsFunc(calls, func(c call) bool { return !retold(c.Block.Name) }) {
		e.Origin.Own = true
		if slices.ContainsFunc(calls, func(c call) bool { return c.Block.Name == room.RecallTool || c.Block.Name == paging.FaultTool }) {
			e.Origin = tidemark.Origin{From: tidemark.FromRecall}
		}
	}
	stmts, err := s.entryStmts(ctx, r.Log, &e, m, chain)
	if err != nil {
		return nil, err
	}
	return append(stmts, s.countStmt()), nil
}

// countStmt counts a message that is neither an input nor a whole reply.
func (s *Session) countStmt() tidemark.Stmt {
	return tidemark.Stmt{SQL: `UPDATE heads SET messages = messages + 1 WHERE key = ?`, Args: []any{string(s.Key)}, Want: 1}
}

// closeCalls answers what a failed or stopped run leaves open, so that no call stays without a
// result.
func (s *Session) closeCalls(ctx context.Context, r *run, why error) ([]tidemark.Stmt, error) {
	calls, err := s.calls(ctx, r)
	if err != nil {
		return nil, err
	}
	s.cancelCalls(ctx, r, calls)
	results := make([]tidemark.Block, len(calls))
	for i, c := range calls {
		switch c.State {
		case callDone:
			results[i] = c.Result
		case callStarted:
			results[i] = tidemark.ToolResult(c.ID, "interrupted, may have run: "+Explain(why), true)
		default:
			results[i] = tidemark.ToolResult(c.ID, "not run: "+Explain(why), true)
		}
	}
	stmts, err := s.resultStmts(ctx, r, calls, results)
	if err != nil {
		return nil, err
	}
	closed, err := s.rooms.Gate().Close(ctx, r.ID)
	if err != nil {
		return nil, err
	}
	stmts = append(stmts, closed...)
	return append(stmts, tidemark.Stmt{SQL: `UPDATE calls SET state = ? WHERE run = ? AND round = ? AND state <> 'done'`, Args: []any{callInterrupted, r.ID, r.Round}}), nil
}

// roomTool reports whether a tool is of a room, offered or not: what it answers stands in the log already, or on a card.
func roomTool(name string) bool {
	switch name {
	case room.RecallTool, room.TaskTool, paging.ReleaseTool, paging.FaultTool, episodes.ToolName:
		return true
	}
	return false
}

// retold reports whether a tool answers with what stands elsewhere: then that is found there, and no memory of this
// conversation.
func retold(name string) bool {
	return roomTool(name) || name == skill.Tool
}

// pointing reports whether what leaves the view leaves pointers.
func (s *Session) pointing() bool { return pointing(s.strategies()) }

func pointing(list []compaction.Strategy) bool {
	return slices.ContainsFunc(list, func(x compaction.Strategy) bool { return x.Name() == compaction.Pointer{}.Name() })
}
