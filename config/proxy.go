package config

import "github.com/tidemark-ai/tidemark"

// Proxy says what becomes of requests of clients that keep their history themselves.
type Proxy struct {
	Treatment string // off, observe, trim, page, page+trim, episodes, episodes+trim
	Cooperate bool
	Window    tidemark.Tokens
	Upstream  string // of the Messages API; empty: where the model is, else Anthropic's own
	Chat      string // of chat completions; empty: where the model is, else OpenAI's own
}

func proxyKeys() []Key {
	return []Key{
		{Name: "proxy.treatment", Type: Choice, Default: `"page"`, Values: "off observe trim page page+trim episodes episodes+trim", at: func(c *Config, _ string) any { return &c.Proxy.Treatment },
			Doc: "What is done with requests of clients that keep their history themselves, where a request does not say so (docs/proxy.md): off passes them on and keeps nothing, observe changes nothing and logs all, trim shortens definitions of tools that are not used and what is repeated, page lets old results of tools leave and come back, as compaction.paging says, and episodes what the model marked as done, as compaction.episodes says."},
		{Name: "proxy.cooperate", Type: Switch, Default: "true", at: func(c *Config, _ string) any { return &c.Proxy.Cooperate },
			Doc: "With page: the model has two tools of ours, which let go of results and bring them back, and may clean up by tags. With episodes: it has one to mark what it does and one to bring that back. The client sees none of it."},
		{Name: "proxy.window", Type: Number, Default: "200000", Min: 1000, Max: maxTokens, at: func(c *Config, _ string) any { return &c.Proxy.Window },
			Doc: "Context window of the models that clients name, in tokens."},
		{Name: "proxy.upstream", Type: URL, at: func(c *Config, _ string) any { return &c.Proxy.Upstream },
			Doc: "Where requests of the Messages API go on to, in front of /v1/messages. When it is not set: model.baseUrl of the provider anthropic, else Anthropic's own. ANTHROPIC_API_KEY, for clients that have no key, is not sent there."},
		{Name: "proxy.chatUpstream", Type: URL, at: func(c *Config, _ string) any { return &c.Proxy.Chat },
			Doc: "The same for chat completions, in front of /chat/completions. When it is not set: model.baseUrl of the provider openai, else OpenAI's own. OPENAI_API_KEY is not sent there."},
	}
}
