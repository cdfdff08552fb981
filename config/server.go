package config

func serverKeys() []Key {
	return []Key{
		{Name: "server.listen", Type: Address, Default: `"127.0.0.1:8787"`, at: func(c *Config, _ string) any { return &c.Server.Listen },
			Doc: "Address to serve at. Any but loopback needs TIDEMARK_TOKEN."},
		{Name: "server.origins", Type: Origins, Default: `[]`, at: func(c *Config, _ string) any { return &c.Server.Origins },
			Doc: "Pages of other origins that may call, each as the browser sends it in Origin. Others get 403; the server's own pages need no entry."},
		{Name: "server.graceSeconds", Type: Number, Default: "10", Max: 3600, at: func(c *Config, _ string) any { return &c.Server.GraceSeconds },
			Doc: "How long turns in work may go on at shutdown. What is unfinished then goes on at the next start."},
		{Name: "server.pingSeconds", Type: Number, Default: "15", Min: 1, Max: 3600, at: func(c *Config, _ string) any { return &c.Server.PingSeconds },
			Doc: "Between signs of life on a stream that is silent. A proxy must not close a stream sooner. On Workers it is read from the variable only."},
		{Name: "server.maxSessions", Type: Number, Default: "1000", Min: 1, Max: 1_000_000, at: func(c *Config, _ string) any { return &c.Server.MaxSessions },
			Doc: "Sessions that are kept in memory at once; others are opened when they are asked for."},
		{Name: "server.idleMinutes", Type: Number, Default: "5", Min: 1, Max: yearMins, at: func(c *Config, _ string) any { return &c.Server.IdleMinutes },
			Doc: "After how long a quiet session leaves memory. Nothing of it is lost."},
		{Name: "timeouts.llmMs", Type: Number, Default: "900000", Min: 1000, Max: 24 * 3600_000, at: func(c *Config, _ string) any { return &c.Timeouts.LLMMs },
			Doc: "Longest model call, in milliseconds."},
		{Name: "timeouts.toolMs", Type: Number, Default: "60000", Min: 1000, Max: 24 * 3600_000, at: func(c *Config, _ string) any { return &c.Timeouts.ToolMs },
			Doc: "Longest call of a tool, in milliseconds."},
		{Name: "timeouts.turnMs", Type: Number, Default: "1800000", Min: 1000, Max: 24 * 3600_000, at: func(c *Config, _ string) any { return &c.Timeouts.TurnMs },
			Doc: "Longest turn, with all its calls, in milliseconds."},
		{Name: "log.level", Type: Choice, Default: `"info"`, Values: "debug info warn error", at: func(c *Config, _ string) any { return &c.Log.Level },
			Doc: "What is logged, to standard error. Content never is."},
		{Name: "log.format", Type: Choice, Default: `"text"`, Values: "text json", at: func(c *Config, _ string) any { return &c.Log.Format },
			Doc: "How lines of the log are written."},
	}
}
