package session_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/room/errand"
	"github.com/tidemark-ai/tidemark/session"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// given is an errand that another conversation gave.
func given(id, text string, l tidemark.Limits) tidemark.Errand {
	return tidemark.Errand{ID: id, Text: text, Origin: tidemark.Origin{From: tidemark.FromAgent}, Limits: l}
}

// errands is the room of a session that does them.
func errands(s *session.Session) *errand.Room {
	r, ok := session.Room[*errand.Room](s)
	if !ok {
		panic("the session has no room for errands")
	}
	return r
}

// Start, Work and Drop are of that room.
func (h *harness) Start(ctx context.Context, e tidemark.Errand) error {
	return errands(h.Session).Start(ctx, e)
}

// Work works.
func (h *harness) Work(ctx context.Context, e tidemark.Errand) (tidemark.Outcome, error) {
	return errands(h.Session).Work(ctx, e)
}

// Drop drops.
func (h *harness) Drop(ctx context.Context, id string) error { return errands(h.Session).Drop(ctx, id) }

// uses calls tools as long as it is asked.
func uses(tools ...string) func(int, tidemark.Request) (tidemark.Message, error) {
	return func(n int, _ tidemark.Request) (tidemark.Message, error) {
		m := tidemark.Message{Role: tidemark.Assistant}
		for i, name := range tools {
			m.Content = append(m.Content, tidemark.ToolUse(fmt.Sprint("c", n, "-", i), name, nil))
		}
		return m, nil
	}
}

// work does an errand and wants no error.
func (h *harness) work(e tidemark.Errand) tidemark.Outcome {
	h.t.Helper()
	ctx, stop := context.WithTimeout(h.t.Context(), tidemarktest.Patience)
	defer stop()
	out, err := h.Work(ctx, e)
	if err != nil {
		h.t.Fatal(err)
	}
	return out
}

// TestWork: an errand is one turn however often it is asked for, one after another or at once, and in a later life.
func TestWork(t *testing.T) {
	h := newHarness(t, session.Settings{})
	h.model.usage = tidemark.Usage{Input: 100, Output: 20}
	h.model.hold, h.model.entered = make(chan struct{}), make(chan struct{}, 9)
	e := given("e1", "count the boats", tidemark.Limits{})
	outs := make([]tidemark.Outcome, 5)
	var all sync.WaitGroup
	for i := range outs {
		all.Go(func() {
			var err error
			if outs[i], err = h.Work(t.Context(), e); err != nil {
				t.Error(err)
			}
		})
	}
	<-h.model.entered
	close(h.model.hold)
	all.Wait()
	h.stop()
	h.open() // a later life tells the same
	h.model.entered = nil
	for i, out := range append(outs, h.work(e)) {
		if out.Text != "ok 1" || out.Error != "" || out.Entry == "" || out.Usage.Input != 100 || out.Spent != 120 {
			t.Errorf("%d: %+v", i, out)
		}
	}
	if n := h.model.count(); n != 1 {
		t.Errorf("%d calls of the model", n)
	}
	if got, err := h.Reader.Message(t.Context(), outs[0].Entry); got.PlainText() != "ok 1" || err != nil {
		t.Errorf("entry reads %q, %v", got.PlainText(), err)
	}
	if _, err := h.Work(t.Context(), given("e1", "count the gulls", tidemark.Limits{})); !errors.Is(err, tidemark.ErrConflict) {
		t.Errorf("the same id for another errand: %v", err)
	}
	if _, err := h.Work(t.Context(), given("", "count the gulls", tidemark.Limits{})); !errors.Is(err, tidemark.ErrInvalid) {
		t.Errorf("no id: %v", err)
	}
}

// TestWorkOutlivesWhoWaits: when the one who waits leaves, the turn goes on, and who comes later has its end.
func TestWorkOutlivesWhoWaits(t *testing.T) {
	h := newHarness(t, session.Settings{})
	h.model.hold, h.model.entered = make(chan struct{}), make(chan struct{}, 9)
	ctx, leave := context.WithCancelCause(t.Context())
	left := make(chan error)
	e := given("e1", "count the boats", tidemark.Limits{})
	go func() { _, err := h.Work(ctx, e); left <- err }()
	<-h.model.entered
	leave(tidemark.ErrTimeout)
	if err := <-left; !errors.Is(err, tidemark.ErrTimeout) {
		t.Errorf("left with %v", err)
	}
	close(h.model.hold)
	if out := h.work(e); out.Text != "ok 1" {
		t.Errorf("%+v", out)
	}
}

// TestWorkInALaterLife: a life that ends tells who waits there, and the next one takes the turn up.
func TestWorkInALaterLife(t *testing.T) {
	h := newHarness(t, session.Settings{})
	h.model.hold, h.model.entered = make(chan struct{}), make(chan struct{}, 9)
	e := given("e1", "count the boats", tidemark.Limits{})
	first := make(chan error)
	old := h.Session
	go func() { _, err := errands(old).Work(context.Background(), e); first <- err }()
	<-h.model.entered
	if h.Idle() {
		t.Error("a host may forget a session that somebody waits for")
	}
	h.stop()
	if err := <-first; !errors.Is(err, tidemark.ErrDead) {
		t.Errorf("the first life: %v", err)
	}
	close(h.model.hold)
	h.model.hold = nil
	h.open()
	if out := h.work(e); out.Text != "ok 2" || out.Error != "" {
		t.Errorf("%+v", out)
	}
}

// TestWorkFails: what ends without an answer says so.
func TestWorkFails(t *testing.T) {
	h := newHarness(t, session.Settings{})
	h.model.set(func(int, tidemark.Request) (tidemark.Message, error) {
		return tidemark.Message{}, &tidemark.APIError{Class: tidemark.ClassAuth, Message: "no such key"}
	})
	out := h.work(given("e1", "count the boats", tidemark.Limits{}))
	if !strings.Contains(out.Error, "no such key") || out.Text != "" {
		t.Errorf("%+v", out)
	}
	h.model.set(nil)
	if out = h.work(given("e2", "count the boats", tidemark.Limits{})); out.Text == "" || out.Error != "" {
		t.Errorf("the next one: %+v", out)
	}
}

// TestWorkBeforeAReset: what was answered in a log that was reset since is told still.
func TestWorkBeforeAReset(t *testing.T) {
	h := newHarness(t, session.Settings{})
	e := given("e1", "count the boats", tidemark.Limits{Budget: 50_000})
	before := h.work(e)
	h.post(session.Input{Kind: session.InputReset})
	after := h.work(e)
	if before.Text != "ok 1" || after.Text != "ok 1" || after.Entry != before.Entry || after.Spent != before.Spent {
		t.Errorf("before %+v, after %+v", before, after)
	}
}

// TestDrop: an errand that is dropped ends, in work or before, and the same again says so in each life.
func TestDrop(t *testing.T) {
	h := newHarness(t, session.Settings{})
	h.model.hold, h.model.entered = make(chan struct{}), make(chan struct{}, 9)
	first, second := given("e1", "count the boats", tidemark.Limits{}), given("e2", "count the gulls", tidemark.Limits{})
	if err := h.Start(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	<-h.model.entered
	if err := h.Start(t.Context(), second); err != nil { // it waits behind the first
		t.Fatal(err)
	}
	for _, id := range []string{"e2", "e1", "e1", "e2", "none"} {
		if err := h.Drop(t.Context(), id); err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
	check := func() {
		t.Helper()
		if out := h.work(first); out.Error != "Stopped." {
			t.Errorf("in work: %+v", out)
		}
		if out := h.work(second); out.Error != "Stopped before it began." {
			t.Errorf("waiting: %+v", out)
		}
	}
	check()
	h.stop()
	h.open()
	check()
	if n := h.model.count(); n != 1 {
		t.Errorf("%d calls of the model", n)
	}
	h.model.hold = nil
	if out := h.work(given("e3", "count on", tidemark.Limits{})); out.Text != "ok 2" {
		t.Errorf("the next one: %+v", out)
	}
	if err := h.Drop(t.Context(), "e3"); err != nil || h.work(given("e3", "count on", tidemark.Limits{})).Text != "ok 2" {
		t.Errorf("one that has ended: %v", err)
	}
}

// TestBudget: a turn ends before the call that it has no tokens for, says the figures, keeps what tools brought, and
// leaves no call unanswered; a later life has not forgotten what was spent.
func TestBudget(t *testing.T) {
	for _, again := range []bool{false, true} {
		t.Run(fmt.Sprint("crash ", again), func(t *testing.T) {
			h := newHarness(t, session.Settings{})
			h.model.usage = tidemark.Usage{Input: 300, CacheRead: 500, CacheCreation: 100, Output: 100}
			h.model.set(uses("look"))
			runs := 0
			h.agent.call = func(c tidemark.Block) tidemark.Block {
				if runs++; again && runs == 2 {
					h.stop() // the process dies while a tool runs
				}
				return tidemark.ToolResult(c.ID, "three boats", false)
			}
			e := given("e1", "count the boats", tidemark.Limits{Budget: 2_500})
			if again {
				if _, err := h.Work(t.Context(), e); !errors.Is(err, tidemark.ErrDead) {
					t.Fatal(err)
				}
				h.open()
			}
			out := h.work(e)
			if !strings.Contains(out.Error, "3000 tokens") || !strings.Contains(out.Error, "2500") || out.Spent != 3000 {
				t.Errorf("%+v", out)
			}
			if n := h.model.count(); n != 3 {
				t.Errorf("%d calls of the model", n)
			}
			sent := h.sent() // it has the right shape
			if last := sent[len(sent)-1]; len(last.Results()) != 1 || last.Content[0].Content[0].Text != "three boats" {
				t.Errorf("the newest message is %s", last.AppendJSON(nil))
			}
			h.model.set(nil)
			if out := h.work(given("e2", "and now?", tidemark.Limits{Budget: 2_500})); out.Error != "" || out.Spent != 1000 {
				t.Errorf("the next turn has a budget of its own: %+v", out)
			}
		})
	}
}

// TestLimits: tools that are not left are neither offered nor run, rounds and model are the errand's, and what an
// errand sets does not outlive the next.
func TestLimits(t *testing.T) {
	h := newHarness(t, session.Settings{})
	var offered [][]string
	var models []string
	ran := 0
	h.agent.call = func(c tidemark.Block) tidemark.Block { ran++; return tidemark.ToolResult(c.ID, "sent", false) }
	h.model.set(func(n int, req tidemark.Request) (tidemark.Message, error) {
		var names []string
		for _, tool := range req.Tools {
			names = append(names, tool.Name)
		}
		offered, models = append(offered, names), append(models, req.Model)
		if len(req.Messages[len(req.Messages)-1].Results()) > 0 {
			return tidemark.Message{}, nil
		}
		return uses("send")(n, req)
	})
	h.work(given("e1", "look", tidemark.Limits{Tools: []string{"lo*", "rec?ll"}, Model: "small"}))
	if got := fmt.Sprint(offered); got != "[[recall look] [recall look]]" || ran != 0 || models[0] != "small" {
		t.Errorf("offered %s, ran %d, models %v", got, ran, models)
	}
	sent := h.sent()
	if result := sent[2].Content[0]; !result.IsError || !strings.Contains(result.Content[0].Text, "may not use") {
		t.Errorf("the call is answered with %s", result.AppendJSON(nil))
	}
	h.model.set(uses("send"))
	if out := h.work(given("e2", "send", tidemark.Limits{Rounds: 2})); !strings.Contains(out.Error, "2 model calls") || ran != 1 {
		t.Errorf("rounds: %+v, ran %d", out, ran)
	}
	h.model.set(nil)
	h.work(given("e1", "look", tidemark.Limits{Tools: []string{"lo*", "rec?ll"}, Model: "small"})) // again: nothing is set back
	o, err := h.Override(t.Context())
	if err != nil || o.Limits == nil || o.Limits.Rounds != 2 || o.Limits.Tools != nil {
		t.Errorf("in force: %+v, %v", o.Limits, err)
	}
	h.work(given("e3", "go on", tidemark.Limits{}))
	if o, err = h.Override(t.Context()); err != nil || o.Limits != nil {
		t.Errorf("in force: %+v, %v", o.Limits, err)
	}
}

// TestStrategiesOfAnErrand: some of the configured ones, and never one that is not.
func TestStrategiesOfAnErrand(t *testing.T) {
	h := newHarness(t, session.Settings{})
	h.stop()
	h.strategies = []compaction.Strategy{compaction.Pointer{}, compaction.Summary{}}
	h.open()
	v, err := h.View(t.Context())
	if err != nil || !strings.Contains(fmt.Sprint(v.Tools), "task_state") {
		t.Fatalf("with both: %v, %v", v.Tools, err)
	}
	h.work(given("e1", "look", tidemark.Limits{Strategies: []string{"summary"}}))
	if v, err = h.View(t.Context()); err != nil || strings.Contains(fmt.Sprint(v.Tools), "task_state") {
		t.Errorf("with summary: %v, %v", v.Tools, err)
	}
	h.stop()
	h.strategies = []compaction.Strategy{compaction.Pointer{}} // it is not configured any more
	h.open()
	if v, err = h.View(t.Context()); err != nil || !strings.Contains(fmt.Sprint(v.Tools), "task_state") {
		t.Errorf("with one that is gone: %v, %v", v.Tools, err)
	}
}

// TestLimitsRefused: an errand with limits that are none changes nothing.
func TestLimitsRefused(t *testing.T) {
	h := newHarness(t, session.Settings{})
	for name, l := range map[string]tidemark.Limits{
		"limits.strategies":  {Strategies: []string{"summary", "oracle"}},
		"limits.tools":       {Tools: []string{"[a"}},
		"limits.tools: \"\"": {Tools: []string{""}},
		"limits.budget":      {Budget: -1},
		"limits.maxRounds":   {Rounds: 100_000},
		"limits.window":      {Window: 1},
		"limits.depth":       {Depth: 4},
		"limits.model":       {Model: strings.Repeat("m", 999)},
	} {
		err := h.Start(t.Context(), given("e1", "look", l))
		if !errors.Is(err, tidemark.ErrInvalid) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := h.model.count(); n != 0 || len(h.originals()) != 0 {
		t.Errorf("%d calls, log %q", n, h.originals())
	}
}

// TestWorkOfAnotherLife: nobody tells a life what another one does, so it looks.
func TestWorkOfAnotherLife(t *testing.T) {
	h := newHarness(t, session.Settings{})
	h.model.hold, h.model.entered = make(chan struct{}), make(chan struct{}, 9)
	late := make(chan struct{})
	h.rt = &swift{Runtime: h.rt, late: late, of: time.Minute}
	h.open()
	first := h.Session
	h.open() // the first life is there still
	e := given("e1", "count the boats", tidemark.Limits{})
	if err := errands(first).Start(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	<-h.model.entered
	got := make(chan tidemark.Outcome)
	go func() {
		out, err := h.Work(t.Context(), e)
		if err != nil {
			t.Error(err)
		}
		got <- out
	}()
	close(h.model.hold)
	close(late) // either of them may have the run in the end, and the other one waits
	if out, err := errands(first).Work(t.Context(), e); err != nil || out.Text != "ok 1" {
		t.Errorf("%+v, %v", out, err)
	}
	if out := <-got; out.Text != "ok 1" {
		t.Errorf("%+v", out)
	}
}
