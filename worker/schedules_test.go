//go:build !js

package worker_test

import (
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark/agent"
)

// TestSchedules: one is made, changed by what a body names, and forgotten; mistakes are told by their field.
func TestSchedules(t *testing.T) {
	s := serve(t, nil)
	const all, one = "/v1/agents/main/schedules", "/v1/agents/main/schedules/s1"
	made := get[agent.Schedule](s, 201, "POST", all, `{"when":"0 8 * * 1-5","zone":"Europe/Berlin","prompt":"Summarise.","to":"owner","catchUp":"2h"}`)
	if made.ID != "s1" || made.Cron != "0 8 * * 1-5" || made.Zone != "Europe/Berlin" || len(made.Coming) != 3 || made.Next.Hour() != 8 || made.Session != "own" {
		t.Fatalf("%+v", made)
	}
	now := get[agent.Schedule](s, 200, "PATCH", one, `{"every":"2h","name":"two"}`)
	if now.Cron != "" || now.Every != "2h" || now.Name != "two" || now.Prompt != "Summarise." || now.Zone != "Europe/Berlin" || now.To != "owner" {
		t.Errorf("%+v", now)
	}
	now = get[agent.Schedule](s, 200, "PATCH", one, `{"state":"paused"}`)
	if now.State != "paused" || !now.Next.IsZero() || len(now.Coming) != 0 {
		t.Errorf("%+v", now)
	}
	for field, body := range map[string]string{
		`"evry": did you mean`: `{"evry":"2h","prompt":"x"}`,
		"when":                 `{"when":"every 2h","cron":"@daily","prompt":"x"}`,
		"one of at, every":     `{"every":"2h","cron":"@daily","prompt":"x"}`,
		"prompt":               `{"every":"2h"}`,
		"state":                `{"every":"2h","prompt":"x","state":"paused"}`,
		"budget":               `{"every":"2h","prompt":"x","session":"main","budget":5}`,
		"to":                   `{"every":"2h","prompt":"x","to":"whatsapp:+4915112345678"}`,
	} {
		if f := get[fault](s, 400, "POST", all, body); !strings.Contains(f.Error.Message, strings.TrimSuffix(strings.TrimPrefix(strings.Split(field, ":")[0], `"`), `"`)) {
			t.Errorf("%s: %+v", field, f)
		}
	}
	if f := get[fault](s, 400, "PATCH", one, `{"state":"asleep"}`); !strings.Contains(f.Error.Message, "on or paused") {
		t.Errorf("%+v", f)
	}
	get[fault](s, 404, "GET", "/v1/agents/main/schedules/s9", "")
	get[fault](s, 404, "GET", "/v1/agents/main/schedules/everything", "")
	s.text(200, "DELETE", one, "")
	get[fault](s, 404, "DELETE", one, "")
	if got := get[map[string][]agent.Schedule](s, 200, "GET", all, ""); len(got["schedules"]) != 0 {
		t.Errorf("%+v", got)
	}
}
