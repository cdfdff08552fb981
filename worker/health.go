package worker

import (
	"context"
	"net/http"
	"strconv"
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

// problem says that conversations cannot go on, as far as this process knows, or this isolate.
func (m *Metrics) problem() []Problem {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, why := m.stalls()
	if n == 0 {
		return nil
	}
	return []Problem{{"storage", strconv.Itoa(n) + " conversations wait: " + why,
		"mend what is named; nothing is lost, they go on within ten minutes by themselves, and at once when somebody writes"}}
}

// getHealth answers whoever watches the server. That it answers is status 200 already; to who sends a
// wrong token it says so.
func (c *call) getHealth() error {
	out := struct {
		OK       bool      `json:"ok"` // a turn can be had, as far as the client may know
		Version  string    `json:"version"`
		Status   string    `json:"status,omitempty"` // ok, settings or storage
		Model    string    `json:"model,omitempty"`
		Problems []Problem `json:"problems,omitempty"`
		Warnings []string  `json:"warnings,omitempty"`
		Channels []Channel `json:"channels,omitempty"`
	}{OK: true, Version: c.Version}
	switch {
	case c.w.wrong != nil: // a monitor whose token is not good any more must not see ok
		return c.w.wrong
	case c.Token == "" && !c.Loopback:
		out.OK, out.Status = false, "settings"
		out.Problems = []Problem{{"TIDEMARK_TOKEN", "is not set: nobody is let in", c.TokenHelp}}
	case c.w.known:
		h := c.health(c.r.Context())
		out.Status, out.OK, out.Model, out.Problems, out.Warnings, out.Channels = "ok", !h.Down, h.Model, h.Problems, h.Warnings, h.Channels
		if len(h.Problems) > 0 {
			out.Status = "settings"
		}
		if p := c.Metrics.problem(); p != nil {
			out.OK, out.Status, out.Problems = false, "storage", append(p, out.Problems...)
		}
	}
	return c.reply(http.StatusOK, out)
}

func (d *door) health(ctx context.Context) Health {
	if d.Health == nil {
		return Health{}
	}
	return d.Health(ctx)
}
