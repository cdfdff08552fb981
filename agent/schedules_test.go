package agent_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/agent"
	"github.com/tidemark-ai/tidemark/schedule"
)

// TestNoSchedules: an agent that never had one has no alarm but that of the night.
func TestNoSchedules(t *testing.T) {
	p := plannerOn(newAlone(t))
	night := p.wake()
	if list, err := p.Schedules(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("%v, %v", list, err)
	}
	made := p.add(agent.Schedule{Spec: schedule.Spec{Every: "1h"}})
	if next := p.wake(); !next.Equal(made.Next) || !next.Before(night) {
		t.Errorf("next %s, want %s", next, made.Next)
	}
	if _, err := p.ChangeSchedule(t.Context(), made.ID, func(s *agent.Schedule) error { s.State = agent.SchedulePaused; return nil }); err != nil {
		t.Fatal(err)
	}
	p.restart()
	if next := p.wake(); !next.Equal(night) {
		t.Errorf("paused, it wakes at %s, not at %s", next, night)
	}
}

// TestScheduleRuns: it is given at its time, in its session, with what it may use, and its end comes back once.
func TestScheduleRuns(t *testing.T) {
	p := newPlanner(t)
	s := p.add(agent.Schedule{Spec: schedule.Spec{Cron: "0 15 * * *", Zone: "UTC"}, Name: "tea", Model: "small", Budget: 900, Rounds: 3, Tools: []string{"memory_*"}})
	p.at(21, 14, 59)
	if p.homes.ids() != "" {
		t.Fatal(p.homes.ids())
	}
	p.at(21, 15, 0)
	p.wake()
	if got, want := p.homes.ids(), "schedule:s1:"+utc(21, 15, 0); got != want || s.ID != "s1" {
		t.Fatalf("%s, want %s", got, want)
	}
	e, key := p.homes.given[0], p.homes.keys[0]
	if l := e.Limits; key != "agent:main:schedule:dm:s1" || l.Model != "small" || l.Budget != 900 || l.Rounds != 3 || fmt.Sprint(l.Tools) != "[memory_*]" || !e.Origin.Owner || e.Origin.From != tidemark.FromSystem {
		t.Errorf("%s: %+v", key, e)
	}
	if want := "[Schedule s1 \"tea\", due Sat 2026-11-21 15:00 UTC]\n\nLook around."; e.Text != want {
		t.Errorf("%q", e.Text)
	}
	p.end(tidemark.Outcome{Text: "Fine.", Usage: tidemark.Usage{Input: 10, Output: 2}})
	got := p.state("s1")
	if r := got.Last; r == nil || r.State != agent.RunOK || r.Text != "Fine." || r.Usage.Input != 10 || r.Session != key || r.Finished.IsZero() {
		t.Errorf("%+v", r)
	}
	if next := p.wake(); got.Next.UTC().Day() != 22 || next.After(got.Next) {
		t.Errorf("next %s, woken at %s", got.Next, next)
	}
}

// TestScheduleSessions: each kind of session, and what goes with it.
func TestScheduleSessions(t *testing.T) {
	for session, want := range map[string]string{
		"": "agent:main:schedule:dm:s1", "own": "agent:main:schedule:dm:s1", "fresh": "agent:main:schedule:dm:s1." + utc(21, 15, 0),
		"main": "agent:main:main", "agent:main:local:dm:garden": "agent:main:local:dm:garden",
	} {
		p := newPlanner(t)
		p.add(agent.Schedule{Spec: schedule.Spec{Cron: "0 15 * * *", Zone: "UTC"}, Session: session})
		p.at(21, 15, 0)
		if len(p.homes.keys) != 1 || string(p.homes.keys[0]) != want {
			t.Errorf("%q: %v", session, p.homes.keys)
		}
	}
	p := newPlanner(t)
	for name, s := range map[string]agent.Schedule{
		"another agent": {Session: "agent:work:main"}, "a budget for all": {Session: "main", Budget: 5}, "a client's history": {Session: "agent:main:proxy:dm:x"},
		"no channel": {To: "whatsapp:+491"}, "too long": {Prompt: strings.Repeat("x", 9000)}, "late": {CatchUp: "never"},
	} {
		s.Every = "5m"
		s.Prompt += "x"
		if _, err := p.AddSchedule(t.Context(), s); !errors.Is(err, tidemark.ErrInvalid) && !errors.Is(err, tidemark.ErrTooLarge) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestScheduleKills: a life ends behind each step, and the next one finishes without asking twice.
func TestScheduleKills(t *testing.T) {
	spec := agent.Schedule{Spec: schedule.Spec{Cron: "0 15 * * *", Zone: "UTC"}}
	id := "schedule:s1:" + utc(21, 15, 0)
	t.Run("before the errand is given", func(t *testing.T) {
		p := newPlanner(t)
		p.add(spec)
		p.homes.fail = tidemark.ErrUnavailable
		p.at(21, 15, 0)
		p.restart()
		if p.homes.fail = nil; p.homes.ids() != "" {
			t.Fatal(p.homes.ids())
		}
		p.at(21, 15, 1)
		if p.homes.ids() != id || p.runs("s1") != "running" {
			t.Errorf("%s: %s", p.homes.ids(), p.runs("s1"))
		}
	})
	t.Run("before that is noted", func(t *testing.T) {
		p := newPlanner(t)
		p.add(spec)
		p.homes.cut = tidemark.ErrUnavailable
		p.at(21, 15, 0)
		p.restart()
		p.homes.cut = nil
		p.at(21, 15, 1)
		if p.homes.ids() != id || p.runs("s1") != "running" {
			t.Errorf("%s: %s", p.homes.ids(), p.runs("s1"))
		}
	})
	t.Run("its end comes first", func(t *testing.T) {
		p := newPlanner(t)
		p.add(spec)
		p.homes.cut = tidemark.ErrUnavailable
		p.at(21, 15, 0)
		p.restart()
		p.end(tidemark.Outcome{Text: "Fine."})
		p.homes.cut = nil
		p.at(21, 15, 1)
		if p.homes.ids() != id || p.runs("s1") != "ok" {
			t.Errorf("%s: %s", p.homes.ids(), p.runs("s1"))
		}
	})
	t.Run("before its end is told", func(t *testing.T) {
		p := newPlanner(t)
		p.add(spec)
		p.at(21, 15, 0)
		p.restart()
		p.at(21, 15, 5)
		p.end(tidemark.Outcome{Text: "Fine."})
		p.restart()
		p.at(21, 15, 6)
		if p.homes.ids() != id || p.runs("s1") != "ok" {
			t.Errorf("%s: %s", p.homes.ids(), p.runs("s1"))
		}
	})
}

// TestScheduleWokenAtOnce: wakes at the same time begin one run.
func TestScheduleWokenAtOnce(t *testing.T) {
	p := newPlanner(t)
	for range 3 {
		p.add(agent.Schedule{Spec: schedule.Spec{Cron: "0 15 * * *", Zone: "UTC"}})
	}
	p.clock.move(time.Date(2026, 11, 21, 15, 0, 0, 0, time.UTC).Sub(p.clock.Now()))
	other, err := agent.New(p.cfg)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for _, a := range []*agent.Agent{p.Agent, other, p.Agent, other} {
		wg.Go(func() {
			if _, err := a.Wake(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, id := range []string{"s1", "s2", "s3"} {
		if got := p.runs(id); got != "running" {
			t.Errorf("%s: %s", id, got)
		}
	}
	if got := len(strings.Fields(p.homes.ids())); got != 3 {
		t.Errorf("%d errands: %s", got, p.homes.ids())
	}
}

// TestScheduleMissed: what was missed is one run, with its count; what is too old is none.
func TestScheduleMissed(t *testing.T) {
	for _, row := range []struct {
		name string
		s    agent.Schedule
		want string // runs
		ids  string
	}{
		{"hourly, for a day", agent.Schedule{Spec: schedule.Spec{Cron: "0 * * * *", Zone: "UTC"}}, "running+25", "schedule:s1:" + utc(22, 15, 0)},
		{"every, for a day", agent.Schedule{Spec: schedule.Spec{Every: "6h"}}, "running+3", "schedule:s1:" + utc(22, 13, 30)},
		{"once, within a day", agent.Schedule{Spec: schedule.Spec{At: "2026-11-21 16:00", Zone: "UTC"}}, "running", "schedule:s1:" + utc(21, 16, 0)},
		{"once, long ago", agent.Schedule{Spec: schedule.Spec{At: "2026-11-21 14:00", Zone: "UTC"}, CatchUp: "1h"}, "missed", ""},
		{"daily, too late", agent.Schedule{Spec: schedule.Spec{Cron: "0 14 * * *", Zone: "UTC"}, CatchUp: "30m"}, "missed+1", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			p := newPlanner(t)
			p.add(row.s)
			p.restart()
			p.at(22, 15, 10)
			p.wake()
			if got := p.runs("s1"); got != row.want || p.homes.ids() != row.ids {
				t.Errorf("%s: %s, want %s: %s", got, p.homes.ids(), row.want, row.ids)
			}
			if s := p.state("s1"); !s.Next.IsZero() && !s.Next.After(p.clock.Now()) {
				t.Errorf("next %s", s.Next)
			}
		})
	}
}

// TestScheduleClockBack: nothing runs twice when the clock goes back, and what was planned for far ahead is planned
// again.
func TestScheduleClockBack(t *testing.T) {
	p := newPlanner(t)
	p.add(agent.Schedule{Spec: schedule.Spec{Cron: "*/10 * * * *", Zone: "UTC"}})
	p.at(21, 15, 0)
	p.end(tidemark.Outcome{})
	p.at(21, 14, 45) // back
	p.at(21, 15, 0)
	p.at(21, 15, 1)
	if got := strings.Fields(p.homes.ids()); len(got) != 1 {
		t.Errorf("%v", got)
	}
	p.at(21, 15, 10)
	p.end(tidemark.Outcome{})
	if got := strings.Fields(p.homes.ids()); len(got) != 2 {
		t.Errorf("%v", got)
	}
	p.clock.move(365 * 24 * time.Hour) // a clock that is wrong
	p.wake()
	p.end(tidemark.Outcome{})
	p.at(21, 15, 15) // and is set right
	if s := p.state("s1"); !s.Next.Equal(time.Date(2026, 11, 21, 15, 20, 0, 0, time.UTC)) {
		t.Errorf("next %s", s.Next)
	}
	p.at(21, 15, 20)
	if got := strings.Fields(p.homes.ids()); len(got) != 4 || got[3] != "schedule:s1:"+utc(21, 15, 20) {
		t.Errorf("%v", got)
	}
}

// TestScheduleOverlap: one run at a time; and so many of an agent at once.
func TestScheduleOverlap(t *testing.T) {
	p := newPlanner(t)
	p.add(agent.Schedule{Spec: schedule.Spec{Cron: "*/10 * * * *", Zone: "UTC"}})
	p.at(21, 14, 0)
	p.at(21, 14, 10)
	p.at(21, 14, 20)
	if got := p.runs("s1"); got != "skippedx2 running+2" {
		t.Errorf("%s", got)
	}
	if _, err := p.RunSchedule(t.Context(), "s1"); !errors.Is(err, tidemark.ErrBusy) {
		t.Errorf("run by hand: %v", err)
	}
	p.at(21, 20, 0) // nobody ever heard of it
	if got := p.runs("s1"); !strings.HasSuffix(got, "failed+2") {
		t.Errorf("%s", got)
	}

	q := newPlanner(t)
	for range 6 {
		q.add(agent.Schedule{Spec: schedule.Spec{Cron: "0 15 * * *", Zone: "UTC"}})
	}
	next := q.at(21, 15, 0)
	if got := len(strings.Fields(q.homes.ids())); got != agent.DefaultRunning {
		t.Errorf("%d run at once", got)
	}
	if next.Before(q.clock.Now().Add(time.Minute)) {
		t.Errorf("it wakes at %s for what cannot begin", next)
	}
	q.end(tidemark.Outcome{Text: "Fine."})
	if at := q.Soonest(q.clock.Now().Add(time.Hour)); at.After(q.clock.Now()) {
		t.Errorf("an end does not wake for what waits: %s", at)
	}
	q.wake()
	if got := len(strings.Fields(q.homes.ids())); got != agent.DefaultRunning+1 {
		t.Errorf("%d were begun", got)
	}
}

// TestScheduleFailures: what fails again and again comes ever more rarely, and is paused in the end, of which the owner
// is told once. What cannot be begun is tried again.
func TestScheduleFailures(t *testing.T) {
	p := newPlanner(t)
	p.homes.person = tidemark.Origin{To: &tidemark.Address{Platform: "whatsapp", Peer: "49151"}}
	p.add(agent.Schedule{Spec: schedule.Spec{Every: "1m"}, Name: "build"})
	begun := p.clock.Now()
	for p.state("s1").State == agent.ScheduleOn && p.clock.Now().Sub(begun) < 100*24*time.Hour {
		before := len(p.homes.given)
		p.clock.move(p.state("s1").Next.Sub(p.clock.Now()))
		p.wake()
		if len(p.homes.given) == before {
			t.Fatalf("nothing began at %s: %s", p.clock.Now(), p.runs("s1"))
		}
		p.end(tidemark.Outcome{Error: "the build is red"})
	}
	s := p.state("s1")
	if s.State != agent.SchedulePaused || s.Fails != 10 || !strings.Contains(s.Reason, "the build is red") || len(p.homes.given) != 10 {
		t.Fatalf("%+v after %d", s, len(p.homes.given))
	}
	if took := p.clock.Now().Sub(begun); took < 10*time.Hour {
		t.Errorf("ten failures within %s", took)
	}
	p.wake()
	p.restart()
	p.wake()
	if next := p.wake(); len(p.homes.said) != 1 || !strings.Contains(p.homes.said[0], "Schedule s1 (build) is paused") || next.Sub(p.clock.Now()) < 2*time.Minute {
		t.Errorf("%q, woken again at %v", p.homes.said, next)
	}
	if _, err := p.ChangeSchedule(t.Context(), "s1", func(s *agent.Schedule) error { s.State = agent.ScheduleOn; return nil }); err != nil {
		t.Fatal(err)
	}
	if s := p.state("s1"); s.State != agent.ScheduleOn || s.Fails != 0 || s.Reason != "" || s.Next.Sub(p.clock.Now()) > time.Minute {
		t.Errorf("%+v", s)
	}

	q := newPlanner(t)
	q.homes.fail = tidemark.ErrUnavailable
	q.add(agent.Schedule{Spec: schedule.Spec{At: "in 5m"}})
	for range 10 {
		next := q.wake()
		if q.state("s1").State == agent.ScheduleDone {
			break
		}
		q.clock.move(next.Sub(q.clock.Now()))
	}
	if s := q.state("s1"); s.State != agent.ScheduleDone || q.runs("s1") != "failed" || !strings.Contains(s.Last.Reason, "could not be begun") {
		t.Errorf("%+v: %+v", s, s.Last)
	}
	if took := q.clock.Now().Sub(noon); took < 12*time.Minute || took > time.Hour {
		t.Errorf("given up after %s", took)
	}
}

// TestHeartbeatRules: when a heartbeat does nothing, and what it asks when it does.
func TestHeartbeatRules(t *testing.T) {
	p := newPlanner(t)
	p.homes.person = tidemark.Origin{Peer: "ann", To: &tidemark.Address{Platform: "whatsapp", Account: "1", Peer: "49151"}}
	p.add(agent.Schedule{Spec: schedule.Spec{Heartbeat: "30m", Active: "8-22", Zone: "UTC"}, To: agent.ToOwner})
	file := func(text string) {
		if _, err := p.blobs.Put(t.Context(), "agents/main/HEARTBEAT.md", strings.NewReader(text), int64(len(text)), tidemark.PutOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	p.at(21, 14, 0)
	file("# Heartbeat\n\n- \n<!-- nothing yet -->\n## Later\n")
	p.at(21, 14, 30)
	if got := p.runs("s1"); got != "skippedx2" || p.homes.ids() != "" {
		t.Fatalf("%s: %s", got, p.homes.ids())
	}
	file("# Heartbeat\n- is the boiler on?\n")
	p.at(21, 15, 0)
	e := p.homes.given[0]
	if o := e.Origin.Occasion; !strings.Contains(e.Text, "is the boiler on?") || o.Quiet != "HEARTBEAT_OK" || len(o.Said) != 0 || e.Origin.To == nil || e.Origin.To.Peer != "49151" || e.Origin.Peer != "ann" {
		t.Errorf("%+v %+v", e, o)
	}
	p.end(tidemark.Outcome{Text: "The boiler is off."})
	p.at(21, 15, 30)
	if o := p.homes.given[1].Origin.Occasion; o.Delivers("The boiler is off.") || !o.Delivers("The boiler is on.") || p.homes.keys[0] == p.homes.keys[1] {
		t.Errorf("%+v in %s", o, p.homes.keys)
	}
	p.end(tidemark.Outcome{Text: "HEARTBEAT_OK"})
	p.at(22, 3, 0) // late, by a host that slept: outside of active hours
	if got := p.runs("s1"); !strings.HasPrefix(got, "skipped+") {
		t.Errorf("%s", got)
	}
	if next := p.state("s1").Next.UTC(); next.Hour() != 8 || next.Day() != 22 {
		t.Errorf("next %s", next)
	}
	p.at(22, 16, 0) // a day later it may be said again
	if o := p.homes.given[2].Origin.Occasion; !o.Delivers("The boiler is off.") {
		t.Errorf("%+v", o)
	}
	q := newPlanner(t)
	q.homes.busy = true
	q.add(agent.Schedule{Spec: schedule.Spec{Heartbeat: "30m", Zone: "UTC"}, Prompt: "Is all well?", Session: "main"})
	q.at(21, 14, 0)
	if got := q.runs("s1"); got != "skipped" {
		t.Errorf("while the session is at work: %s", got)
	}
}

// TestScheduleToOwner: what was the owner's number gets nothing any more.
func TestScheduleToOwner(t *testing.T) {
	for name, row := range map[string]struct {
		now  tidemark.Origin
		err  error
		want bool
	}{
		"the owner's":         {tidemark.Origin{Owner: true}, nil, true},
		"a friend's by now":   {tidemark.Origin{}, nil, false},
		"nobody's":            {tidemark.Origin{}, tidemark.ErrForbidden, false},
		"its channel is off":  {tidemark.Origin{}, tidemark.ErrInvalid, true},
		"never over channels": {tidemark.Origin{}, tidemark.ErrNotFound, false},
	} {
		p := newPlanner(t)
		p.homes.person = tidemark.Origin{Peer: "ann", To: &tidemark.Address{Platform: "whatsapp", Peer: "49151"}}
		if errors.Is(row.err, tidemark.ErrNotFound) {
			p.homes.person = tidemark.Origin{}
		}
		p.cfg.Address = func(_ context.Context, to string) (tidemark.Origin, error) {
			if to != "whatsapp:49151" {
				t.Errorf("asked for %s", to)
			}
			return row.now, row.err
		}
		p.restart()
		p.add(agent.Schedule{Spec: schedule.Spec{Cron: "0 15 * * *", Zone: "UTC"}, To: agent.ToOwner})
		p.at(21, 15, 0)
		if len(p.homes.given) != 1 || (p.homes.given[0].Origin.To != nil) != row.want {
			t.Errorf("%s: %+v", name, p.homes.given)
		}
	}
}

// TestScheduleBounds: so many of an agent, and so many runs of each.
func TestScheduleBounds(t *testing.T) {
	p := newPlanner(t)
	for range agent.MaxSchedules {
		p.add(agent.Schedule{Spec: schedule.Spec{Every: "1d"}})
	}
	if _, err := p.AddSchedule(t.Context(), agent.Schedule{Spec: schedule.Spec{Every: "1d"}, Prompt: "x"}); !errors.Is(err, tidemark.ErrTooLarge) {
		t.Errorf("%v", err)
	}
	if err := p.RemoveSchedule(t.Context(), "s1"); err != nil {
		t.Fatal(err)
	}
	if s := p.add(agent.Schedule{Spec: schedule.Spec{Every: "1d"}}); s.ID != "s201" {
		t.Errorf("an id is used again: %s", s.ID)
	}
	for range agent.MaxScheduleRuns + 20 {
		p.clock.move(time.Second)
		if _, err := p.RunSchedule(t.Context(), "s2"); err != nil {
			t.Fatal(err)
		}
		p.end(tidemark.Outcome{Text: "x"})
	}
	if n := len(strings.Fields(p.runs("s2"))); n != agent.MaxScheduleRuns {
		t.Errorf("%d runs are kept", n)
	}
	if err := p.Ran(t.Context(), tidemark.Ran{Schedule: "s1", Due: 5, Session: "agent:main:main"}); err != nil {
		t.Errorf("the end of one that is gone: %v", err)
	}
	if err := p.Ran(t.Context(), tidemark.Ran{Schedule: "s2", Due: 5, Session: "agent:work:main"}); !errors.Is(err, tidemark.ErrInvalid) {
		t.Errorf("the end of another agent's: %v", err)
	}
}

// TestScheduleTool: the model makes one in the owner's conversations only; the same call twice is one.
func TestScheduleTool(t *testing.T) {
	p := newPlanner(t)
	call := func(key string, in map[string]any) (string, bool) {
		return p.call(scope(t, key), agent.ToolSchedule, in)
	}
	add := map[string]any{"do": "add", "when": "tomorrow 09:00", "prompt": "Tell the owner: dentist."}
	for range 2 {
		if text, ok := call("main", add); !ok || text != "Schedule s1: at 2026-11-22 09:00 CET, next Sun 2026-11-22 09:00 CET." {
			t.Fatalf("%t %s", ok, text)
		}
	}
	if s := p.state("s1"); s.Session != "agent:main:main" || s.To != agent.ToOwner {
		t.Errorf("%+v", s)
	}
	if text, ok := call("garden", map[string]any{"do": "list"}); !ok || !strings.Contains(text, "dentist") {
		t.Errorf("%t %s", ok, text)
	}
	for key, in := range map[string]map[string]any{"agent:main:whatsapp:dm:+491": add, "agent:main:schedule:dm:s1": add, "main": {"do": "explode"}} {
		if text, ok := call(key, in); ok {
			t.Errorf("%s: %s", key, text)
		}
	}
	if text, ok := call("main", map[string]any{"do": "add", "when": "soon", "prompt": "x"}); ok || !strings.Contains(text, "want a time") {
		t.Errorf("%t %s", ok, text)
	}
	if text, ok := call("main", map[string]any{"do": "remove", "id": "s1"}); !ok {
		t.Errorf("%s", text)
	}
	p.cfg.NoSchedules = true
	p.restart()
	if text, ok := call("main", add); ok || slices.ContainsFunc(p.Tools(scope(t, "main")), func(t tidemark.Tool) bool { return t.Name == agent.ToolSchedule }) {
		t.Errorf("it is off: %s", text)
	}
}
