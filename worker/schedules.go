package worker

import (
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
		given.Zone = or(given.Zone, s.Zone)
		s.Spec = given
	}
	return decodeBody(raw, fields(&s.Spec, s)...)
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// listSchedules lists those of an agent.
func (c *call) listSchedules() error {
	a, _, err := c.agentOf()
	if err != nil {
		return err
	}
	list, err := a.Schedules(c.r.Context())
	if err != nil {
		return err
	}
	return c.reply(http.StatusOK, map[string]any{"schedules": list})
}

// postSchedule makes one.
func (c *call) postSchedule() error {
	raw, err := c.body()
	if err != nil {
		return err
	}
	s := agent.Schedule{State: agent.ScheduleOn}
	if err := decodeSchedule(raw, &s); err != nil {
		return err
	}
	if s.State != agent.ScheduleOn {
		return fmt.Errorf("state: a new schedule is on; pause it when it is there: %w", tidemark.ErrInvalid)
	}
	a, _, err := c.agentOf()
	if err != nil {
		return err
	}
	if s, err = a.AddSchedule(c.r.Context(), s); err != nil {
		return err
	}
	return c.reply(http.StatusCreated, s)
}

// getSchedule gives one.
func (c *call) getSchedule() error {
	a, _, err := c.agentOf()
	if err != nil {
		return err
	}
	s, err := a.Schedule(c.r.Context(), c.r.PathValue("id"))
	if err != nil {
		return err
	}
	return c.reply(http.StatusOK, s)
}

// patchSchedule changes one.
func (c *call) patchSchedule() error {
	raw, err := c.body()
	if err != nil {
		return err
	}
	a, _, err := c.agentOf()
	if err != nil {
		return err
	}
	s, err := a.ChangeSchedule(c.r.Context(), c.r.PathValue("id"), func(s *agent.Schedule) error { return decodeSchedule(raw, s) })
	if err != nil {
		return err
	}
	return c.reply(http.StatusOK, s)
}

// deleteSchedule forgets one.
func (c *call) deleteSchedule() error {
	a, _, err := c.agentOf()
	if err != nil {
		return err
	}
	id := c.r.PathValue("id")
	if err := a.RemoveSchedule(c.r.Context(), id); err != nil {
		return err
	}
	return c.reply(http.StatusOK, map[string]any{"id": id, "removed": true})
}

// postScheduleRun begins a run now.
func (c *call) postScheduleRun() error {
	a, _, err := c.agentOf()
	if err != nil {
		return err
	}
	run, err := a.RunSchedule(c.r.Context(), c.r.PathValue("id"))
	if err != nil {
		return err
	}
	return c.reply(http.StatusAccepted, run)
}

// getScheduleRuns lists what became of one.
func (c *call) getScheduleRuns() error {
	limit, err := c.limit()
	if err != nil {
		return err
	}
	a, _, err := c.agentOf()
	if err != nil {
		return err
	}
	runs, err := a.ScheduleRuns(c.r.Context(), c.r.PathValue("id"), limit)
	if err != nil {
		return err
	}
	return c.reply(http.StatusOK, map[string]any{"runs": listed(runs)})
}

// ofSchedules are their rows in the table of routes.
func ofSchedules() []route {
	const all = "/v1/agents/{agent}/schedules"
	return []route{
		{"GET " + all, "", false, (*call).listSchedules},
		{"POST " + all, "", false, (*call).postSchedule},
		{"GET " + all + "/{id}", "", false, (*call).getSchedule},
		{"PATCH " + all + "/{id}", "", false, (*call).patchSchedule},
		{"DELETE " + all + "/{id}", "", false, (*call).deleteSchedule},
		{"POST " + all + "/{id}/run", "", false, (*call).postScheduleRun},
		{"GET " + all + "/{id}/runs", "limit", false, (*call).getScheduleRuns},
	}
}
