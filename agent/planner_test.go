package agent_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/agent"
	"github.com/tidemark-ai/tidemark/recall"
)

// homes are conversations that take errands and do them when they are told to.
type homes struct {
	agent.Delegates // nobody delegates here

	mu     sync.Mutex // guards the following
	given  []tidemark.Errand
	keys   []tidemark.Key
	fail   error           // of Start, before it is durable
	cut    error           // of Start, behind that
	most   int             // errands that are taken, 0 for all
	busy   bool            // what Occupied says
	person tidemark.Origin // what Correspondent says; without To there is none
	said   []string
}

func (h *homes) Recall(context.Context, tidemark.Key, recall.Ask) (recall.Answer, error) {
	return recall.Answer{}, nil
}

func (h *homes) Start(_ context.Context, key tidemark.Key, e tidemark.Errand) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.fail != nil {
		return h.fail
	}
	if h.most > 0 && len(h.given) == h.most {
		return tidemark.ErrUnavailable
	}
	same := func(i int) bool { return h.given[i].ID == e.ID && h.keys[i] == key }
	for i := range h.given {
		if same(i) { // the same twice is one
			return h.cut
		}
	}
	h.given, h.keys = append(h.given, e), append(h.keys, key)
	return h.cut
}

func (h *homes) Work(context.Context, tidemark.Key, tidemark.Errand) (tidemark.Outcome, error) {
	return tidemark.Outcome{}, tidemark.ErrUnavailable
}

func (h *homes) Decide(context.Context, tidemark.Key, tidemark.Decision) error {
	return tidemark.ErrNotFound
}

func (h *homes) Relay(_ context.Context, _ tidemark.Key, q tidemark.Question) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.said = append(h.said, "asked "+q.Code)
	return nil
}

func (h *homes) Occupied(context.Context, tidemark.Key) (bool, error) { return h.busy, nil }

func (h *homes) Correspondent(context.Context, tidemark.Key) (tidemark.Origin, error) {
	if h.person.To == nil {
		return tidemark.Origin{}, tidemark.ErrNotFound
	}
	return h.person, nil
}

func (h *homes) Say(_ context.Context, _ tidemark.Key, id string, _ tidemark.Address, text string) error {
	if !slices.Contains(h.said, id+": "+text) {
		h.said = append(h.said, id+": "+text)
	}
	return nil
}

// ids are the inputs that were given so far.
func (h *homes) ids() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []string
	for _, e := range h.given {
		out = append(out, e.ID)
	}
	return strings.Join(out, " ")
}

// planner is a world whose agent has conversations.
type planner struct {
	*world
	homes *homes
}

func newPlanner(t *testing.T) *planner {
	t.Helper()
	return plannerOn(newWorld(t))
}

func plannerOn(w *world) *planner {
	w.t.Helper()
	p := &planner{world: w, homes: &homes{}}
	p.cfg.Sessions = p.homes
	p.restart()
	return p
}

// add makes a schedule.
func (p *planner) add(s agent.Schedule) agent.Schedule {
	p.t.Helper()
	if s.Prompt == "" && s.Heartbeat == "" {
		s.Prompt = "Look around."
	}
	made, err := p.AddSchedule(p.t.Context(), s)
	if err != nil {
		p.t.Fatal(err)
	}
	return made
}

// at moves the clock to a time of a day of November and wakes the agent.
func (p *planner) at(day, hour, minute int) time.Time {
	p.t.Helper()
	p.clock.mu.Lock()
	p.clock.now = time.Date(2026, 11, day, hour, minute, 0, 0, time.UTC)
	p.clock.mu.Unlock()
	return p.wake()
}

func (p *planner) wake() time.Time {
	p.t.Helper()
	next, err := p.Wake(p.t.Context())
	if err != nil {
		p.t.Fatal(err)
	}
	return next
}

// end tells the agent of the end of the errand that was given last.
func (p *planner) end(out tidemark.Outcome) {
	p.t.Helper()
	p.homes.mu.Lock()
	e, key := p.homes.given[len(p.homes.given)-1], p.homes.keys[len(p.homes.keys)-1]
	p.homes.mu.Unlock()
	ran := tidemark.Ran{Schedule: e.Origin.Occasion.Schedule, Due: e.Origin.Occasion.Due, Session: key, At: p.clock.Now(), Outcome: out,
		Said: tidemark.SaidHash(out.Text), Delivered: e.Origin.To != nil && e.Origin.Occasion.Delivers(out.Text)}
	for range 2 { // the same twice is one
		if err := p.Ran(p.t.Context(), ran); err != nil {
			p.t.Fatal(err)
		}
	}
}

// runs are the states of a schedule's runs, the newest first.
func (p *planner) runs(id string) string {
	p.t.Helper()
	list, err := p.ScheduleRuns(p.t.Context(), id, 1000)
	if err != nil {
		p.t.Fatal(err)
	}
	var out []string
	for _, r := range list {
		line := r.State
		if r.Times > 1 {
			line += fmt.Sprintf("x%d", r.Times)
		}
		if r.Missed > 0 {
			line += fmt.Sprintf("+%d", r.Missed)
		}
		out = append(out, line)
	}
	return strings.Join(out, " ")
}

func (p *planner) state(id string) agent.Schedule {
	p.t.Helper()
	s, err := p.Schedule(p.t.Context(), id)
	if err != nil {
		p.t.Fatal(err)
	}
	return s
}

func utc(day, hour, minute int) string {
	return fmt.Sprint(time.Date(2026, 11, day, hour, minute, 0, 0, time.UTC).UnixMilli())
}
