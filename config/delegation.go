package config

import "github.com/tidemark-ai/tidemark"

// Delegation bounds what an agent may hand to conversations of its own.
type Delegation struct {
	Enabled     bool
	MaxDepth    int
	MaxChildren int // in one turn
	TimeoutMs   int
	Budget      tidemark.Tokens // of each
}

func delegationKeys() []Key {
	return []Key{
		{Name: "delegation.enabled", Type: Switch, Default: "true", at: func(c *Config, _ string) any { return &c.Delegation.Enabled },
			Doc: "Offer the model a tool, delegate, that has a conversation of its own do a task (docs/delegation.md). In conversations of the owner's only."},
		{Name: "delegation.maxDepth", Type: Number, Default: "1", Min: 1, Max: 3, at: func(c *Config, _ string) any { return &c.Delegation.MaxDepth },
			Doc: "How many conversations may delegate one to the next: with 1, one that was delegated to does not delegate."},
		{Name: "delegation.maxChildren", Type: Number, Default: "8", Min: 1, Max: 64, at: func(c *Config, _ string) any { return &c.Delegation.MaxChildren },
			Doc: "How often one turn may delegate. Four are in work at once."},
		{Name: "delegation.timeoutMs", Type: Number, Default: "600000", Min: 1_000, Max: 3_600_000, at: func(c *Config, _ string) any { return &c.Delegation.TimeoutMs },
			Doc: "How long one may take; then it is stopped, and the model that delegated is told so. timeouts.turnMs bounds both turns beside it."},
		{Name: "delegation.budget", Type: Number, Default: "100000", Min: 2_000, Max: maxTokens, at: func(c *Config, _ string) any { return &c.Delegation.Budget },
			Doc: "Tokens that one may spend, input and output of all its calls; the model may ask for less."},
	}
}
