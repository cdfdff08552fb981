//go:build !js

package e2e

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// scheduled is a schedule as its routes give it, as far as is looked at.
type scheduled struct {
	ID, Session, State string
	Next               time.Time
	Coming             []time.Time
	Runs               []ranOnce
}

type ranOnce struct {
	State, Reason, Text, Session string
	Due                          time.Time
	Usage                        struct {
		Input int `json:"input_tokens"`
	}
}

// known is a talk with an agent that is there: on Workers, one that a session told of itself.
func known(t *testing.T, s *site) *talk {
	t.Helper()
	k := begin(t, s, "web", "a")
	k.say("Hello.")
	eventually(t, s, func() string {
		res, raw := s.fetch(t, "GET", k.agent("/schedules"), nil)
		if res.StatusCode != 200 {
			return raw
		}
		return ""
	})
	return k
}

// plan makes a schedule whose runs ask the model of the talk.
func (k *talk) plan(body map[string]any) scheduled {
	k.t.Helper()
	body["model"] = k.modelName()
	return ask[scheduled](k, 201, "POST", k.agent("/schedules"), body)
}

// outcome waits for the newest run of a schedule to end.
func (k *talk) outcome(id string) ranOnce {
	k.t.Helper()
	var last ranOnce
	eventually(k.t, k.s, func() string {
		runs := ask[scheduled](k, 200, "GET", k.agent("/schedules/"+id+"/runs"), nil).Runs
		if len(runs) == 0 {
			return "nothing ran"
		}
		if last = runs[0]; last.State == "begun" || last.State == "running" {
			return "the run is " + last.State
		}
		return ""
	})
	return last
}

// TestSchedules: a run comes by itself at its time, in a session of its own, with its own model; it is answered once,
// and its outcome is there to read. One that is run by hand goes on in the same session.
func TestSchedules(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		k := known(t, s)
		k.model.Push(tidemarktest.Step{Text: "All is quiet."}, tidemarktest.Step{Text: "Still quiet."})
		at := time.Now().Add(2 * time.Second)
		made := k.plan(map[string]any{"at": at.UTC().Format(time.RFC3339), "prompt": "Look around.", "session": "own"})
		if made.State != "on" || len(made.Coming) != 1 || made.Coming[0].Unix() != at.Unix() {
			t.Fatalf("%+v", made)
		}
		got := k.outcome(made.ID)
		if got.State != "ok" || got.Text != "All is quiet." || got.Usage.Input == 0 || got.Due.Unix() != at.Unix() {
			t.Fatalf("%+v", got)
		}
		if now := ask[scheduled](k, 200, "GET", k.agent("/schedules/"+made.ID), nil); now.State != "done" || !now.Next.IsZero() {
			t.Errorf("%+v", now)
		}
		by := ask[ranOnce](k, 202, "POST", k.agent("/schedules/"+made.ID+"/run"), map[string]any{})
		if again := k.outcome(made.ID); again.State != "ok" || again.Text != "Still quiet." || again.Session != by.Session || again.Session != got.Session {
			t.Errorf("%+v after %+v", again, got)
		}
		log := decodeLines(t, k.text("/v1/sessions/"+url.PathEscape(got.Session)+"/log?format=jsonl"))
		if said := people(log); len(log) != 4 || !strings.Contains(said[0], "[Schedule "+made.ID) || !strings.HasSuffix(said[0], "Look around.") {
			t.Errorf("%q", said)
		}
	})
}

// TestSchedulesRefused: what cannot be is told by its field, and leaves nothing behind.
func TestSchedulesRefused(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		k := known(t, s)
		for field, body := range map[string]map[string]any{
			"cron":   {"cron": "30 2 31 2 *", "prompt": "x"},
			"zone":   {"every": "5m", "zone": "Nowhere/Land", "prompt": "x"},
			"every":  {"every": "5s", "prompt": "x"},
			"prompt": {"every": "5m"},
			"to":     {"every": "5m", "prompt": "x", "to": "carrier pigeon"},
		} {
			if res, raw := s.fetch(t, "POST", k.agent("/schedules"), body); res.StatusCode != 400 || !strings.Contains(raw, field) {
				t.Errorf("%s: %d %s", field, res.StatusCode, raw)
			}
		}
		if res, raw := s.fetch(t, "GET", k.agent("/schedules"), nil); res.StatusCode != 200 || strings.TrimSpace(raw) != `{"schedules":[]}` {
			t.Errorf("%d %s", res.StatusCode, raw)
		}
	})
}

// TestHeartbeat: without a file nothing is asked of the model; with one, it is; and its all-clear is no news.
func TestSchedulesHeartbeat(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		k := known(t, s)
		made := k.plan(map[string]any{"heartbeat": "24h"}) // none of its own comes between, as at each half hour
		if res, raw := s.fetch(t, "POST", k.agent("/schedules/"+made.ID+"/run"), map[string]any{}); res.StatusCode != 400 || !strings.Contains(raw, "HEARTBEAT.md") {
			t.Errorf("%d %s", res.StatusCode, raw)
		}
		if err := s.bucket().put("agents/"+strings.Split(k.key, ":")[1]+"/HEARTBEAT.md", []byte("# Look after\n\n- the boiler\n")); err != nil {
			t.Fatal(err)
		}
		k.model.Push(tidemarktest.Step{Text: "HEARTBEAT_OK"}, tidemarktest.Step{Text: "HEARTBEAT_OK"})
		ask[ranOnce](k, 202, "POST", k.agent("/schedules/"+made.ID+"/run"), map[string]any{})
		first := k.outcome(made.ID)
		ask[ranOnce](k, 202, "POST", k.agent("/schedules/"+made.ID+"/run"), map[string]any{})
		second := k.outcome(made.ID)
		if first.State != "ok" || second.State != "ok" || first.Session == second.Session || !strings.Contains(k.model.Calls()[1].LastText(), "the boiler") {
			t.Errorf("%+v, then %+v", first, second)
		}
	})
}

// TestSchedulesMissed: what was due while the host was down is done once when it is back.
func TestSchedulesMissed(t *testing.T) {
	eachOwn(t, nil, func(t *testing.T, s *site) {
		k := known(t, s)
		k.model.Push(tidemarktest.Step{Text: "Late, but done."})
		at := time.Now().Add(3 * time.Second)
		made := k.plan(map[string]any{"at": at.UTC().Format(time.RFC3339), "prompt": "Water the garden."})
		if err := s.halt(gracefully); err != nil {
			t.Fatal(err)
		}
		eventually(t, s, func() string {
			if time.Now().Before(at) {
				return "it is not due"
			}
			return ""
		})
		if err := s.run(); err != nil {
			t.Fatal(err)
		}
		if got := k.outcome(made.ID); got.State != "ok" || got.Text != "Late, but done." {
			t.Errorf("%+v", got)
		}
		if runs := ask[scheduled](k, 200, "GET", k.agent("/schedules/"+made.ID+"/runs"), nil).Runs; len(runs) != 1 || len(k.model.Calls()) != 2 {
			t.Errorf("%d runs, %d calls", len(runs), len(k.model.Calls()))
		}
	})
}
