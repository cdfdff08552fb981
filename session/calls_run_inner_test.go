package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/room"
)

// working is an agent whose tools a test plays.
type working struct {
	hasTools
	calls []string
	slow  time.Duration // how long a call takes
	stop  func()
}

func (w *working) Call(ctx context.Context, _ tidemark.Scope, c tidemark.Block) tidemark.Block {
	w.calls = append(w.calls, c.ID)
	if w.stop != nil {
		w.stop()
	}
	if w.slow > 0 {
		<-ctx.Done()
	}
	return tidemark.ToolResult(c.ID, "brought by "+c.ID, false)
}

// TestCallsRunOnce: a call runs once: one that is done has its result, one that had begun in an earlier life is run again only where
// that does no harm, one that was answered before is not run at all. What it has brought is kept, unless its turn was stopped meanwhile.
func TestCallsRunOnce(t *testing.T) {
	for _, c := range []struct {
		name       string
		state      string
		idempotent bool
		told       bool
		timeout    time.Duration
		stopped    bool

		text string
		ran  bool
		row  string
		err  error
	}{
		{"registered", callRegistered, false, false, time.Minute, false, "brought by c0", true, "done", nil},
		{"begun", callStarted, false, false, time.Minute, false, "interrupted, may have run", false, "started", nil},
		{"begun, and may be run again", callStarted, true, false, time.Minute, false, "brought by c0", true, "done", nil},
		{"done", callDone, false, false, time.Minute, false, "of before", false, "done", nil},
		{"answered before", callRegistered, false, true, time.Minute, false, "not run", false, "done", nil},
		{"too slow", callRegistered, false, false, time.Millisecond, false, "the tool did not answer within 1ms", true, "done", nil},
		{"stopped meanwhile", callRegistered, false, false, time.Minute, true, "", true, "started", tidemark.ErrAborted},
	} {
		agent := &working{}
		s, _ := plain(t, Config{Agent: agent, Settings: Settings{ToolTimeout: c.timeout}})
		r := s.begun(t, "r", stateTools)
		ctx, stop := context.WithCancelCause(t.Context())
		t.Cleanup(func() { stop(nil) })
		if c.stopped {
			agent.stop = func() { stop(tidemark.ErrAborted) }
		}
		if c.timeout < time.Second {
			agent.slow = 1
		}
		s.does(t, `INSERT INTO calls(run, round, n, id, call, idempotent, state) VALUES('r', 0, 0, 'c0', '{}', 0, ?)`, c.state)
		k := call{ID: "c0", Block: tidemark.ToolUse("c0", "send", nil), State: c.state, Idempotent: c.idempotent, Result: tidemark.ToolResult("c0", "of before", false), left: roomOf(1<<20, nil)}
		if c.told {
			k.told = tidemark.ToolResult("c0", "not run", true)
		}
		b, err := s.runCall(ctx, r, k)
		text := ""
		if len(b.Content) > 0 {
			text = b.Content[0].Text
		}
		if text != c.text || (len(agent.calls) > 0) != c.ran || (err == nil) != (c.err == nil) || c.err != nil && !errors.Is(err, c.err) {
			t.Errorf("%s: %q, ran %q, %v", c.name, text, agent.calls, err)
		}
		if got := s.reads(t, `SELECT state FROM calls WHERE run = 'r' LIMIT 1`); got != c.row {
			t.Errorf("%s: its row is %s", c.name, got)
		}
	}
}

// TestRoundsAreBounded: the calls of a round are run, some at a time, and answered in their order; the round that would be one too many
// is not run.
func TestRoundsAreBounded(t *testing.T) {
	for _, c := range []struct {
		round, n int
		runs     bool
	}{{0, 1, true}, {1, 19, true}, {2, 1, false}} {
		agent := &working{}
		s, rt := plain(t, Config{Agent: agent, Settings: Settings{MaxRounds: 3}})
		rt.atOnce = true
		r := s.begun(t, "r", stateTools)
		r.Round = c.round
		var want []string
		for i := range c.n {
			want = append(want, fmt.Sprint("c", i))
			s.does(t, `INSERT INTO calls(run, round, n, id, call, idempotent, state) VALUES('r', ?, ?, ?, ?, 0, 'registered')`, c.round, i, want[i], string(tidemark.ToolUse(want[i], "send", nil).AppendJSON(nil)))
		}
		sub, err := s.Subscribe()
		if err != nil {
			t.Fatal(err)
		}
		err = s.runTools(t.Context(), r)
		heard := heardOf(sub)
		if !c.runs {
			if !errors.Is(err, tidemark.ErrTooLarge) || !strings.Contains(err.Error(), "the turn made 3 model calls") || r.Round != 2 || len(agent.calls) > 0 || len(heard) > 0 {
				t.Errorf("round %d: %v, ran %q", c.round, err, agent.calls)
			}
			continue
		}
		if err != nil || !slices.Equal(agent.calls, want) || r.Round != c.round+1 || r.State != stateCalling || len(heard) != c.n || heard[0] != "result send" {
			t.Errorf("round %d: %v, ran %q, then round %d, told %q", c.round, err, agent.calls, r.Round, heard)
		}
		for e, err := range s.log.Walk(t.Context(), r.Log, 0) {
			m, bad := e.Message()
			if err != nil || bad != nil || !slices.Equal(m.Results(), want) || m.Content[c.n-1].Content[0].Text != "brought by "+want[c.n-1] {
				t.Errorf("round %d: answered %q, %v, %v", c.round, m.Results(), err, bad)
			}
		}
	}
	agent := &working{}
	s, rt := plain(t, Config{Agent: agent})
	rt.atOnce = true
	r := s.begun(t, "r", stateTools)
	s.does(t, `INSERT INTO calls(run, round, n, id, call, idempotent, state) VALUES('r', 0, 0, 'c0', '{"type":"tool_use","id":"c0","name":"send","input":{}}', 0, 'registered')`)
	agent.stop = func() { s.does(t, `UPDATE runs SET log = 'moved' WHERE key = ? AND id = 'r'`, string(s.Key)) }
	if err := s.runTools(t.Context(), r); !errors.Is(err, tidemark.ErrConflict) || r.Round != 0 || r.State != stateTools {
		t.Errorf("the run moved meanwhile: %v, round %d", err, r.Round)
	}
}

// cancelling is a room that ends what a call began.
type cancelling struct{ ended *[]string }

func (c cancelling) Cancel(_ context.Context, k room.Call) { *c.ended = append(*c.ended, k.Place()) }

// TestCallsAreCancelled: what calls began that have no result is ended by their room, where the run is this life's still.
func TestCallsAreCancelled(t *testing.T) {
	for to, want := range map[string][]string{`error = ''`: {"r/0/1", "r/0/3"}, `owner = 'x'`: nil, `state = 'calling'`: nil, `log = 'moved'`: nil, `state = 'failed'`: nil} {
		ended := []string{}
		s, _ := plain(t, Config{Rooms: []room.Maker{func(room.Ports) any { return cancelling{&ended} }}})
		r := s.begun(t, "r", stateTools)
		s.twin(t, r)
		s.does(t, `UPDATE runs SET `+to+` WHERE key = ? AND id = 'r'`, string(s.Key))
		var calls []call
		for n, state := range []string{callDone, callStarted, callRegistered, callStarted} {
			calls = append(calls, call{N: n, State: state})
		}
		s.cancelCalls(t.Context(), r, calls)
		if !slices.Equal(ended, want) {
			t.Errorf("where %s, %q are ended", to, ended)
		}
		if len(want) > 0 && len(calls) != 4 || calls[0].State != callDone {
			t.Errorf("the calls are %+v", calls)
		}
	}
}

// budgeting is a room with a budget, which asks for a count.
type budgeting struct {
	room.Budgeter
	asked int
	n     tidemark.Tokens
	fails error
}

func (b *budgeting) Count(ctx context.Context, _ tidemark.Tokens, count func(context.Context) (tidemark.Tokens, error)) (tidemark.Tokens, bool) {
	b.asked++
	b.n, b.fails = count(ctx)
	if b.fails != nil {
		return 0, true
	}
	return b.n, true
}

// counting is a provider that counts.
type counting struct {
	played
	says  tidemark.Tokens
	fails error
}

func (c *counting) Count(context.Context, tidemark.Request) (tidemark.Tokens, error) {
	return c.says, c.fails
}

// TestCountIsBelieved: what a provider counts is believed once a turn, where it is not far from the estimate.
func TestCountIsBelieved(t *testing.T) {
	for _, c := range []struct {
		says  tidemark.Tokens
		fails error
		off   bool
		twice bool
		want  tidemark.Tokens
	}{{1_000, nil, false, false, 1_000}, {100, nil, false, false, 100}, {99, nil, false, false, 400}, {1_600, nil, false, false, 1_600}, {1_601, nil, false, false, 400}, {500, errKnown, false, false, 400}, {500, nil, true, false, 400}, {500, nil, false, true, 400}} {
		p := &counting{says: c.says, fails: c.fails}
		s, _ := plain(t, Config{Provider: p, Settings: Settings{NoCompaction: c.off}})
		b, r := &budgeting{}, &run{counted: c.twice}
		got := s.countedExactly(t.Context(), r, b, weighing("", 400, 100, 300))
		if asked := !c.off && !c.twice; got.Size != c.want || got.Anchor != (c.want != 400) || (b.asked == 1) != asked || r.counted != (asked || c.twice) {
			t.Errorf("%d: %d, anchored %v, asked %d times", c.says, got.Size, got.Anchor, b.asked)
		}
	}
	s, _ := plain(t, Config{})
	b := &budgeting{}
	if got := s.countedExactly(t.Context(), &run{}, b, weighing("", 400, 100, 300)); got.Size != 400 || b.asked > 0 {
		t.Errorf("a provider that does not count: %d, asked %d times", got.Size, b.asked)
	}
}
