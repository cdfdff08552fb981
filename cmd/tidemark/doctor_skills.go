package main

import (
	"context"
	"fmt"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/agent"
	"github.com/tidemark-ai/tidemark/cmd/cli"
	"github.com/tidemark-ai/tidemark/cmd/node"
	"github.com/tidemark-ai/tidemark/host/native"
	"github.com/tidemark-ai/tidemark/skill"
)

// skillFix is what to do about skills that are none.
const skillFix = "correct what is named, and put it back with `tidemark skill add`; `tidemark skill ls` lists all"

// skillsIn tells of the skills in a bucket of this machine, where there are some.
func (d *doctor) skillsIn(ctx context.Context, blobs tidemark.Blobs) {
	names := []string{node.MainAgent}
	for _, a := range d.cfg.Agents {
		if a.ID != node.MainAgent {
			names = append(names, a.ID)
		}
	}
	for _, name := range names {
		list, more, err := skillsOf(ctx, blobs, name)
		if err != nil {
			d.add("skills", bad, "try again; the bucket answers, as is told above", "agent %s: %s", name, err)
			return
		}
		d.skills(name, list, more)
	}
}

// skillsOf lists what an agent has, whatever its database knows.
func skillsOf(ctx context.Context, blobs tidemark.Blobs, name string) (list []agent.Skill, more bool, err error) {
	db, err := native.OpenDB(":memory:")
	if err != nil {
		return nil, false, err
	}
	defer db.Close()
	a, err := agent.New(agent.Config{Name: name, DB: db, Blobs: blobs, Runtime: native.NewRuntime(nil)})
	if err != nil {
		return nil, false, err
	}
	return a.Skills(ctx)
}

// servedSkills tells of those of a server's main agent. It is silent where there are none, and where it is too old
// to know of any.
func (d *doctor) servedSkills(ctx context.Context, c *client) {
	var out skillList
	if c.Get(ctx, cli.AgentPath(node.MainAgent, "/skills"), &out) == nil {
		d.skills(node.MainAgent, out.Skills, out.More)
	}
}

func (d *doctor) skills(of string, list []agent.Skill, more bool) {
	good := 0
	for _, s := range list {
		if s.Problem == "" {
			good++
			continue
		}
		d.add("skills", odd, skillFix, "%s of agent %s is left out: %s", cli.Safe(s.Name), of, cli.Safe(s.Problem))
	}
	switch {
	case good > skill.MaxListed || more:
		d.add("skills", odd, "remove or join some: the model is told of the first ones by name", "agent %s has %s; a prompt names %d", of, atLeast(good, more), skill.MaxListed)
	case good > 0:
		d.add("skills", fine, "", "agent %s has %s", of, cli.Plural(good, "skill"))
	}
}

func atLeast(n int, more bool) string {
	if more {
		return fmt.Sprintf("over %s", cli.Plural(n, "skill"))
	}
	return cli.Plural(n, "skill")
}
