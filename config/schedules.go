package config

// Schedules holds what agents may do by themselves, at times.
type Schedules struct {
	Enabled bool
}

func scheduleKeys() []Key {
	return []Key{
		{Name: "schedules.enabled", Type: Switch, Default: "true", at: func(c *Config, _ string) any { return &c.Schedules.Enabled },
			Doc: "Agents do work by themselves, at times. Off, no schedule is taken and none runs; those that there are stay."},
	}
}
