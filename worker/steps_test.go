//go:build !js

package worker_test

import (
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/paging"
)

// TestExportSteps: a conversation is exported as a replay reads it: each call a request, with what was said since the one
// before, the names of the entries, and what the provider reported.
func TestExportSteps(t *testing.T) {
	s := serve(t, nil)
	if got := s.text(200, "PATCH", "/v1/sessions/walk", `{"title":"x"}`); !strings.Contains(got, `"title":"x"`) {
		t.Fatal(got)
	}
	if got := s.text(200, "GET", "/v1/sessions/walk/log?format=steps", ""); got != "" {
		t.Errorf("of nothing: %q", got)
	}
	for _, text := range []string{"the gate is red", "what colour is the gate?", "thanks\nand bye"} {
		s.say("walk", text)
	}
	var log struct {
		Entries []struct{ ID, Kind string }
	}
	if err := json.Unmarshal([]byte(s.text(200, "GET", "/v1/sessions/walk/log", "")), &log); err != nil {
		t.Fatal(err)
	}
	if got := s.text(400, "GET", "/v1/sessions/walk/log?format=decisions", ""); !strings.Contains(got, "conversations of clients") {
		t.Errorf("decisions of a conversation of ours: %s", got)
	}
	lines := strings.SplitAfter(s.text(200, "GET", "/v1/sessions/walk/log?format=steps", ""), "\n")
	if len(lines) != 2 || lines[1] != "" {
		t.Fatalf("%d lines: %q", len(lines), lines)
	}
	var scan paging.Scanner
	got, err := scan.Session([]byte(lines[0]))
	if err != nil {
		t.Fatalf("%v: %s", err, lines[0])
	}
	if !strings.HasPrefix(got.ID, "agent:main:local:dm:walk@") || strings.Contains(lines[0], `"model":"",`) || len(got.Steps) != 3 {
		t.Errorf("session %q has %d steps: %.200s", got.ID, len(got.Steps), lines[0])
	}
	at := len(log.Entries) // newest first
	for i, st := range got.Steps {
		want := min(i+1, 2) // the reply of the one before, and what was said
		if len(st.Append) != want {
			t.Errorf("step %d has %d messages, want %d", i, len(st.Append), want)
		}
		for _, m := range st.Append {
			for at--; log.Entries[at].Kind != "message"; at-- {
			}
			if m.Handle != log.Entries[at].ID {
				t.Errorf("step %d names %q, want %q", i, m.Handle, log.Entries[at].ID)
			}
		}
		if st.Usage == nil {
			t.Errorf("step %d has no usage", i)
		}
	}

	// A line a session.
	s.text(200, "POST", "/v1/sessions/walk/reset", "")
	s.say("walk", "again")
	if n := strings.Count(s.text(200, "GET", "/v1/sessions/walk/log?format=steps", ""), "\n"); n != 1 {
		t.Errorf("%d lines behind a reset", n)
	}
	if n := strings.Count(s.text(200, "GET", "/v1/sessions/walk/log?format=steps&all=1", ""), "\n"); n != 2 {
		t.Errorf("%d lines with the session before", n)
	}
}
