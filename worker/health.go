package worker

import (
	"context"
	"fmt"
)

// Health is what /healthz says of the settings, to those who may come in: a stranger hears only that the
// server answers. It has no secret in it.
type Health struct {
	Model    string    // that answers: its provider and its name
	Problems []Problem // settings that are not obeyed, for a mistake in them
	Down     bool      // no turn can be had until they are mended
	Warnings []string  // what is odd, and obeyed
	Channels []Channel // that there are, on or not
}

// Channel is how a channel is set up.
type Channel struct {
	Channel string `json:"channel"`
	On      bool   `json:"on"`
	Access  string `json:"access,omitempty"` // who may talk
	Agent   string `json:"agent,omitempty"`  // that people reach
	Text    string `json:"text"`             // all of it for people
}

// Problem is a setting that is not obeyed.
type Problem struct {
	Setting string `json:"setting"`
	Message string `json:"message"`
	Fix     string `json:"fix"`
}

// getHealth answers whoever watches the server. That it answers is status 200 already; to who sends a
// wrong token it says so.
func getHealth(c *request) (any, error) {
	out := struct {
		OK       bool       `json:"ok"` // a turn can be had, as far as the client may know
		Version  string     `json:"version"`
		Status   string     `json:"status,omitempty"` // ok, settings or storage
		Model    string     `json:"model,omitempty"`
		Problems []Problem  `json:"problems,omitempty"`
		Warnings []string   `json:"warnings,omitempty"`
		Channels []Channel  `json:"channels,omitempty"`
		Proxy    *Untouched `json:"proxy,omitempty"` // requests that were passed on untouched
	}{OK: true, Version: c.Version}
	switch {
	case c.w.wrong != nil: // a monitor whose token is not good any more must not see ok
		return nil, c.w.wrong
	case c.Token == "" && !c.Loopback:
		out.OK, out.Status = false, "settings"
		out.Problems = []Problem{{"TIDEMARK_TOKEN", "is not set: nobody is let in", c.TokenHelp}}
	case c.w.known:
		c.Metrics.tryWrite(c.r.Context())
		h := c.health(c.r.Context())
		out.Status, out.OK, out.Model, out.Problems, out.Warnings, out.Channels = "ok", !h.Down, h.Model, h.Problems, h.Warnings, h.Channels
		if out.Proxy = c.Metrics.proxied(); out.Proxy != nil {
			out.Warnings = append(out.Warnings[:len(out.Warnings):len(out.Warnings)],
				fmt.Sprintf("of %d proxied requests %d were passed on untouched; the latest because: %s", out.Proxy.Requests, out.Proxy.Untouched, out.Proxy.Why))
		}
		if len(h.Problems) > 0 {
			out.Status = "settings"
		}
		if why := c.Metrics.stall(); why != "" {
			out.OK, out.Status = false, "storage"
			out.Problems = append(out.Problems[:len(out.Problems):len(out.Problems)], Problem{"storage", why, "mend that; nothing is lost, what waits goes on by itself, and at once when somebody writes"})
		}
	}
	return out, nil
}

func (d *door) health(ctx context.Context) Health {
	if d.Health == nil {
		return Health{}
	}
	return d.Health(ctx)
}
