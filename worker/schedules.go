package worker

import (
	"cmp"
	"fmt"
	"net/http"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/agent"
	"github.com/tidemark-ai/tidemark/schedule"
)

// decodeSchedule changes the fields of a schedule that a body names. One that says when replaces all that did.
func decodeSchedule(raw []byte, s *agent.Schedule) error {
	const text, number = "a string", "a number"
	var when string
	var given schedule.Spec
	fields := func(spec *schedule.Spec, to *agent.Schedule) []field {
		return []field{
			{"when", `a time or a rhythm in one line, such as "every 2h"`, &when}, {"at", text, &spec.At}, {"every", text, &spec.Every}, {"anchor", text, &spec.Anchor},
			{"cron", text, &spec.Cron}, {"heartbeat", text, &spec.Heartbeat}, {"active", text, &spec.Active}, {"zone", text, &spec.Zone},
			{"name", text, &to.Name}, {"prompt", text, &to.Prompt}, {"session", "own, fresh, main or a key", &to.Session}, {"to", "owner, platform:peer or nothing", &to.To},
			{"catchUp", "a duration", &to.CatchUp}, {"model", text, &to.Model}, {"budget", "a number of tokens", &to.Budget}, {"maxRounds", number, &to.Rounds},
			{"tools", "a list of globs", &to.Tools}, {"state", "on or paused", &to.State},
		}
	}
	if err := decodeBody(raw, fields(&given, &agent.Schedule{})...); err != nil {
		return err
	}
	if when != "" {
		if given.At != "" || given.Every != "" || given.Cron != "" || given.Heartbeat != "" {
			return fmt.Errorf("when: it stands in the place of at, every, cron and heartbeat; give one of these: %w", tidemark.ErrInvalid)
		}
		words := schedule.Words(when)
		given.At, given.Every, given.Cron = words.At, words.Every, words.Cron
	}
	if given.At != "" || given.Every != "" || given.Cron != "" || given.Heartbeat != "" {
		given.Zone = cmp.Or(given.Zone, s.Zone)
		s.Spec = given
	}
	return decodeBody(raw, fields(&s.Spec, s)...)
}

// listSchedules lists those of an agent.
func listSchedules(c *request, a *agent.Agent) (any, error) {
	list, err := a.Schedules(c.r.Context())
	return map[string]any{"schedules": list}, err
}

// postSchedule makes one.
func postSchedule(c *request) (any, error) {
	raw, err := c.body()
	if err != nil {
		return nil, err
	}
	s := agent.Schedule{State: agent.ScheduleOn}
	if err := decodeSchedule(raw, &s); err != nil {
		return nil, err
	}
	if s.State != agent.ScheduleOn {
		return nil, fmt.Errorf("state: a new schedule is on; pause it when it is there: %w", tidemark.ErrInvalid)
	}
	a, err := c.agent()
	if err != nil {
		return nil, err
	}
	if s, err = a.AddSchedule(c.r.Context(), s); err != nil {
		return nil, err
	}
	return response{http.StatusCreated, s}, nil
}

// getSchedule gives one.
func getSchedule(c *request, a *agent.Agent) (any, error) {
	return a.Schedule(c.r.Context(), c.r.PathValue("id"))
}

// patchSchedule changes one.
func patchSchedule(c *request) (any, error) {
	raw, err := c.body()
	if err != nil {
		return nil, err
	}
	a, err := c.agent()
	if err != nil {
		return nil, err
	}
	return a.ChangeSchedule(c.r.Context(), c.r.PathValue("id"), func(s *agent.Schedule) error { return decodeSchedule(raw, s) })
}

// deleteSchedule forgets one.
func deleteSchedule(c *request, a *agent.Agent) (any, error) {
	id := c.r.PathValue("id")
	if err := a.RemoveSchedule(c.r.Context(), id); err != nil {
		return nil, err
	}
	return map[string]any{"id": id, "removed": true}, nil
}

// postScheduleRun begins a run now.
func postScheduleRun(c *request, a *agent.Agent) (any, error) {
	run, err := a.RunSchedule(c.r.Context(), c.r.PathValue("id"))
	return response{http.StatusAccepted, run}, err
}

// getScheduleRuns lists what became of one.
func getScheduleRuns(c *request) (any, error) {
	limit := c.limit()
	a, err := c.agent()
	if err != nil {
		return nil, err
	}
	runs, err := a.ScheduleRuns(c.r.Context(), c.r.PathValue("id"), limit)
	return map[string]any{"runs": listed(runs)}, err
}

// ofSchedules are their rows in the table of routes.
func ofSchedules() []route {
	const all = "/v1/agents/{agent}/schedules"
	return []route{
		{"GET " + all, "", false, in((*request).agent, listSchedules)},
		{"POST " + all, "", false, postSchedule},
		{"GET " + all + "/{id}", "", false, in((*request).agent, getSchedule)},
		{"PATCH " + all + "/{id}", "", false, patchSchedule},
		{"DELETE " + all + "/{id}", "", false, in((*request).agent, deleteSchedule)},
		{"POST " + all + "/{id}/run", "", false, in((*request).agent, postScheduleRun)},
		{"GET " + all + "/{id}/runs", "limit", false, getScheduleRuns},
	}
}
