package worker

import (
	"cmp"
	"errors"
	"net/http"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/agent"
	"github.com/tidemark-ai/tidemark/skill"
)

// skillOf returns what the path of a route about one skill names.
func (c *call) skillOf() (a *agent.Agent, name, file string, err error) {
	a, _, err = c.agentOf()
	return a, c.r.PathValue("name"), c.r.PathValue("file"), err
}

// listSkills lists the skills, and what is none with the reason.
func (c *call) listSkills() error {
	a, _, err := c.agentOf()
	if err != nil {
		return err
	}
	list, more, err := a.Skills(c.r.Context())
	if err != nil {
		return err
	}
	return c.reply(http.StatusOK, struct {
		Skills []agent.Skill `json:"skills"`
		More   bool          `json:"more,omitempty"`
	}{listed(list), more})
}

// getSkill gives a file of a skill as it is.
func (c *call) getSkill() error {
	a, name, file, err := c.skillOf()
	if err != nil {
		return err
	}
	f, err := a.SkillFile(c.r.Context(), name, cmp.Or(file, skill.Main))
	if err != nil {
		return err
	}
	return c.markdown(f)
}

// putSkill writes a file of a skill under a condition, if the client has one.
func (c *call) putSkill() error {
	match, held, err := condition(c.r.Header)
	if err != nil {
		return err
	}
	raw, err := readBody(c.w, c.r, skill.MaxFile)
	if err != nil {
		return err
	}
	a, name, file, err := c.skillOf()
	if err != nil {
		return err
	}
	f, err := a.PutSkill(c.r.Context(), name, cmp.Or(file, skill.Main), raw, match)
	if held && errors.Is(err, tidemark.ErrConflict) {
		return &refused{http.StatusPreconditionFailed, "changed", "the file is not what the condition says: read it again"}
	}
	if err != nil {
		return err
	}
	c.w.Header().Set("ETag", `"`+f.ETag+`"`)
	return c.reply(http.StatusOK, f)
}

// deleteSkill removes a skill, or a file of it.
func (c *call) deleteSkill() error {
	a, name, file, err := c.skillOf()
	if err != nil {
		return err
	}
	if err := a.DeleteSkill(c.r.Context(), name, file); err != nil {
		return err
	}
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}
