//go:build !js

package worker_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/session"
	"github.com/tidemark-ai/tidemark/worker"
)

// TestHealth: whoever may come in hears what the settings are worth, a stranger that the server answers.
func TestHealth(t *testing.T) {
	const ok, alive = `{"ok":true,"version":"test","status":"ok"}`, `{"ok":true,"version":"test"}`
	const mistake = `"problems":[{"setting":"model.provider","message":"m","fix":"f"}]`
	problems := []worker.Problem{{Setting: "model.provider", Message: "m", Fix: "f"}}
	for _, tc := range []struct {
		name, token string
		health      worker.Health
		path        string
		headers     []string
		want        string
	}{
		{"nothing to say", "secret", worker.Health{}, "/healthz", []string{"x-tidemark-token", "secret"}, ok},
		{"model", "", worker.Health{Model: "offline", Warnings: []string{"w"}}, "/healthz", nil, `{"ok":true,"version":"test","status":"ok","model":"offline","warnings":["w"]}`},
		{"channels", "", worker.Health{Channels: []worker.Channel{{Channel: "whatsapp", On: true, Access: "pairing", Agent: "main", Text: "WhatsApp (pairing, agent main)"}, {Channel: "telegram", Text: "Telegram off"}}}, "/healthz", nil,
			`{"ok":true,"version":"test","status":"ok","channels":[{"channel":"whatsapp","on":true,"access":"pairing","agent":"main","text":"WhatsApp (pairing, agent main)"},{"channel":"telegram","on":false,"text":"Telegram off"}]}`},
		{"a mistake, the last good ones hold", "", worker.Health{Problems: problems}, "/healthz", nil, `{"ok":true,"version":"test","status":"settings",` + mistake + `}`},
		{"a mistake", "", worker.Health{Problems: problems, Down: true}, "/healthz", nil, `{"ok":false,"version":"test","status":"settings",` + mistake + `}`},
		{"token in the path", "secret", worker.Health{Problems: problems}, "/t/secret/healthz", nil, `{"ok":true,"version":"test","status":"settings",` + mistake + `}`},
		{"stranger", "secret", worker.Health{Model: "offline", Channels: []worker.Channel{{Text: "WhatsApp off"}}, Problems: problems, Down: true}, "/healthz", nil, alive},
		{"no token in a header of another scheme", "secret", worker.Health{Problems: problems}, "/healthz", []string{"Authorization", "Basic x"}, alive},
		{"a token where none is wanted", "", worker.Health{}, "/healthz", []string{"x-tidemark-token", "other"}, ok},
		{"page of another origin with a wrong token", "secret", worker.Health{}, "/healthz", []string{"Origin", "https://evil.example", "x-tidemark-token", "other"}, alive},
		{"page of another origin", "", worker.Health{Problems: problems}, "/healthz", []string{"Origin", "https://evil.example"}, alive},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := serve(t, func(c *worker.Config, _ *actors) {
				c.Token, c.Health = tc.token, func(context.Context) worker.Health { return tc.health }
			})
			if got := s.text(200, "GET", tc.path, "", tc.headers...); got != tc.want+"\n" {
				t.Errorf("got  %swant %s", got, tc.want)
			}
		})
	}
	for _, tc := range []struct{ name, path, header, value string }{
		{"own header", "/healthz", "x-tidemark-token", "other"},
		{"bearer", "/healthz", "Authorization", "Bearer other"},
		{"path", "/t/other/healthz", "X-Tidemark-Token", "secret"},
	} {
		t.Run("wrong token, "+tc.name, func(t *testing.T) {
			s := serve(t, func(c *worker.Config, _ *actors) { c.Token = "secret" })
			if got := s.text(401, "GET", tc.path, "", tc.header, tc.value); !strings.Contains(got, `"type":"unauthorized","message":"wrong token`) {
				t.Errorf("got %s", got)
			}
		})
	}
	s := serve(t, func(c *worker.Config, _ *actors) { c.Loopback, c.TokenHelp = false, "do this" })
	if got, want := s.text(200, "GET", "/healthz", ""), `{"ok":false,"version":"test","status":"settings","problems":[{"setting":"TIDEMARK_TOKEN","message":"is not set: nobody is let in","fix":"do this"}]}`+"\n"; got != want {
		t.Errorf("without a token: %s", got)
	}
}

// TestHealthOfStalled: while a conversation cannot go on, health and metrics say so, until it does or nothing is heard
// of it any more.
func TestHealthOfStalled(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	m := worker.NewMetrics(func() time.Time { return now })
	s := serve(t, func(c *worker.Config, _ *actors) { c.Metrics = m })
	ask := func(name, health string, gauge float64) {
		t.Helper()
		if got := s.text(200, "GET", "/healthz", ""); !strings.Contains(got, health) {
			t.Errorf("%s: %s", name, got)
		}
		if got := scrape(t, s)["tidemark_stalled"]; got != gauge {
			t.Errorf("%s: the metric is %v, want %v", name, got, gauge)
		}
	}
	const fine = `{"ok":true,"version":"test","status":"ok"}`
	const full = `{"ok":false,"version":"test","status":"storage","problems":[{"setting":"storage","message":"conversations wait: the disk is full","fix":"mend`
	ask("none yet", fine, 0)
	first, second := m.Probe(), m.Probe()
	first.Observe(session.Notice{Type: session.NoticeStalled, Text: "the disk is full", Count: 10})
	second.Observe(session.Notice{Type: session.NoticeStalled, Text: "the disk is full", Count: 600})
	ask("both", full, 1)
	first.Observe(session.Notice{Type: session.NoticeStalled})
	ask("one goes on", full, 1)
	second.Observe(session.Notice{Type: session.NoticeStalled})
	ask("both go on", fine, 0)
	first.Observe(session.Notice{Type: session.NoticeStalled, Text: "the disk is full", Count: 10})
	now = now.Add(2 * time.Minute)
	ask("one is not heard of any more", fine, 0)
}

// TestHealthOfRefused: from a write that the disk refused until one that it takes, health and metrics say so.
func TestHealthOfRefused(t *testing.T) {
	m := worker.NewMetrics(time.Now)
	s := serve(t, func(c *worker.Config, _ *actors) { c.Metrics = m })
	disk := &flaky{}
	db := m.DB(disk, host.TryWrite)
	full := fmt.Errorf("store input x: disk is full: %w", tidemark.ErrUnavailable)
	const fine = `{"ok":true,"version":"test","status":"ok"}`
	const told = `{"ok":false,"version":"test","status":"storage","problems":[{"setting":"storage","message":"the last write was refused: store input x: disk is full`
	for _, tc := range []struct {
		err   error
		want  string
		gauge float64
	}{{nil, fine, 0}, {full, told, 1}, {tidemark.ErrConflict, told, 1}, {context.Canceled, told, 1}, {nil, fine, 0}, {tidemark.ErrConflict, fine, 0}} {
		if disk.err = tc.err; !errors.Is(db.Tx(t.Context(), nil), tc.err) {
			t.Fatal(tc.err)
		}
		if got := s.text(200, "GET", "/healthz", ""); !strings.Contains(got, tc.want) {
			t.Errorf("behind %v: %s", tc.err, got)
		}
		if got := scrape(t, s)["tidemark_stalled"]; got != tc.gauge {
			t.Errorf("behind %v: the metric is %v", tc.err, got)
		}
	}
}

// flaky is a database that answers writes with an error, and counts them.
type flaky struct {
	tidemark.DB
	err   error
	count int
}

func (f *flaky) Tx(context.Context, []tidemark.Stmt) error { f.count++; return f.err }

// TestHealthRecovers: a database that refused a write is tried when somebody asks, every few seconds at most, so that
// health needs nobody to write; one that cannot be tried is believed for a minute. Another's writes say nothing of it.
func TestHealthRecovers(t *testing.T) {
	full := fmt.Errorf("disk is full: %w", tidemark.ErrUnavailable)
	for name, tries := range map[string]bool{"tried": true, "only heard": false} {
		t.Run(name, func(t *testing.T) {
			now := time.Unix(1_800_000_000, 0)
			m := worker.NewMetrics(func() time.Time { return now })
			s := serve(t, func(c *worker.Config, _ *actors) { c.Metrics = m })
			disk, other := &flaky{err: full}, &flaky{}
			storage := func(want bool) {
				t.Helper()
				if got := s.text(200, "GET", "/healthz", ""); strings.Contains(got, `"status":"storage"`) != want || strings.Contains(got, `"ok":true`) == want {
					t.Errorf("at %s: %s", now.Format("05"), got)
				}
			}
			storage(false)
			if tries {
				if err := m.DB(disk, host.TryWrite).Tx(t.Context(), nil); !errors.Is(err, tidemark.ErrUnavailable) {
					t.Fatal(err)
				}
			} else {
				m.Refused(full)
			}
			if err := m.DB(other, host.TryWrite).Tx(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			for range 3 {
				storage(true)
			}
			disk.err = nil
			storage(true) // it is not asked again so soon
			now = now.Add(6 * time.Second)
			storage(!tries)
			now = now.Add(time.Minute)
			storage(false)
			if want := map[bool]int{true: 3, false: 0}[tries]; disk.count != want {
				t.Errorf("%d writes, want %d", disk.count, want)
			}
		})
	}
}
