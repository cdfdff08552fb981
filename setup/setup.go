// Package setup turns a configuration into what sessions, agents and models are opened with, the
// same on every host. A host adds its ports.
package setup

import (
	"net/http"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/agent"
	"github.com/tidemark-ai/tidemark/config"
	"github.com/tidemark-ai/tidemark/memory"
	"github.com/tidemark-ai/tidemark/provider"
	"github.com/tidemark-ai/tidemark/reset"
	"github.com/tidemark-ai/tidemark/session"
)

// memoryShare bounds what memory takes of a prompt when the window is too small for
// memory.promptTokens: a quarter.
const memoryShare = 4

// Provider wires the model that a resolved configuration names. Retry only bounds a call in time: the
// session itself tries again.
func Provider(c *config.Config, rt tidemark.Runtime, network http.RoundTripper) tidemark.Provider {
	var p tidemark.Provider
	switch m := c.Model; m.Provider {
	case config.Anthropic:
		p = &provider.Anthropic{Key: c.Secrets.Anthropic.Reveal(), BaseURL: m.BaseURL, Model: m.ID, Transport: network, Runtime: rt, MaxTokens: m.MaxTokens}
	case config.OpenAI:
		p = &provider.OpenAI{Key: c.Secrets.OpenAI.Reveal(), BaseURL: m.BaseURL, Model: m.ID, Transport: network, Runtime: rt, MaxTokens: m.MaxTokens}
	case config.WorkersAI:
		w := provider.NewWorkersAI(m.ID, binding(network), rt)
		w.MaxTokens = m.MaxTokens
		p = w
	default:
		return provider.Offline{}
	}
	return &provider.Retry{Provider: p, Runtime: rt, Tries: 1, Total: milliseconds(c.Timeouts.LLMMs)}
}

// Messages is the base URL of the Messages API that requests without a conversation are passed on to, empty
// for Anthropic's own.
func Messages(c *config.Config) string {
	if c.Model.Provider == config.Anthropic {
		return c.Model.BaseURL
	}
	return ""
}

// binding gives the way to Workers AI, nil on a host that has none: the provider then says so.
func binding(network http.RoundTripper) http.RoundTripper {
	if t, ok := network.(interface {
		AI(binding string) http.RoundTripper
	}); ok {
		return t.AI("AI")
	}
	return nil
}

// Agent returns what an agent is opened with; the host adds the ports.
func Agent(c *config.Config, name string) (agent.Config, error) {
	zone, err := c.Agent(name).Zone()
	if err != nil {
		return agent.Config{}, err
	}
	return agent.Config{Name: name, Zone: zone, Sharing: memory.Sharing(c.Memory.Sharing),
		Budget: min(c.Memory.PromptTokens, c.Model.ContextWindow/memoryShare)}, nil
}

// Session returns the settings of a session.
func Session(c *config.Config, key tidemark.Key) (session.Settings, error) {
	a := c.Agent(key.Agent())
	zone, err := a.Zone()
	if err != nil {
		return session.Settings{}, err
	}
	p := c.Reset(key)
	policy, err := reset.Parse(reset.Settings{Mode: p.Mode, AtHour: p.AtHour, IdleMinutes: p.IdleMinutes, Zone: p.Zone}, zone)
	if err != nil {
		return session.Settings{}, err
	}
	return session.Settings{
		Model: c.Model.ID, Window: c.Model.ContextWindow, MaxTokens: c.Model.MaxTokens, System: a.SystemPrompt,
		Reserve: c.Compaction.ReserveTokens, Keep: c.Compaction.KeepRecent,
		NoCompaction: !c.Compaction.Enabled, NoMemories: !c.Compaction.ExtractMemories, SummaryModel: c.Compaction.Model,
		Reset: policy, Zone: zone, MaxRounds: c.Session.MaxRounds,
		ToolTimeout: milliseconds(c.Timeouts.ToolMs), TurnTimeout: milliseconds(c.Timeouts.TurnMs),
	}, nil
}

func milliseconds(n int) time.Duration { return time.Duration(n) * time.Millisecond }
