package worker

import (
	"cmp"
	"net/http"

	"github.com/tidemark-ai/tidemark/agent"
	"github.com/tidemark-ai/tidemark/skill"
)

// skillFile is the path within a skill that a route names, its main file when it names none.
func (c *request) skillFile() string { return cmp.Or(c.r.PathValue("file"), skill.Main) }

// listSkills lists the skills, and what is none with the reason.
func listSkills(c *request, a *agent.Agent) (any, error) {
	list, more, err := a.Skills(c.r.Context())
	return struct {
		Skills []agent.Skill `json:"skills"`
		More   bool          `json:"more,omitempty"`
	}{listed(list), more}, err
}

// getSkill gives a file of a skill as it is.
func getSkill(c *request, a *agent.Agent) (any, error) {
	return c.markdown(a.SkillFile(c.r.Context(), c.r.PathValue("name"), c.skillFile()))
}

// putSkill writes a file of a skill.
func putSkill(c *request) (any, error) {
	return c.putFile(skill.MaxFile, func(raw []byte, match string) (f agent.File, err error) {
		a, err := c.agent()
		if err != nil {
			return f, err
		}
		return a.PutSkill(c.r.Context(), c.r.PathValue("name"), c.skillFile(), raw, match)
	})
}

// deleteSkill removes a skill, or a file of it.
func deleteSkill(c *request, a *agent.Agent) (any, error) {
	return response{status: http.StatusNoContent}, a.DeleteSkill(c.r.Context(), c.r.PathValue("name"), c.r.PathValue("file"))
}
