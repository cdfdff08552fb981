//go:build !js

package worker_test

import (
	"strings"
	"testing"
)

// TestCommandRoute: a typed line is carried out like a command of its own route, and once an id.
func TestCommandRoute(t *testing.T) {
	s := serve(t, nil)
	for _, row := range []struct {
		name, body string
		status     int
		want       string
	}{
		{"status", `{"line":"/status"}`, 200, "Messages: 2"},
		{"model", `{"line":"/model other"}`, 200, "Model from now on: other"},
		{"help", `{"line":"help"}`, 200, "/memory"},
		{"stop", `{"line":"/stop","id":"stop"}`, 200, "There is nothing to stop."},
		{"stop again", `{"line":"/stop","id":"stop"}`, 200, ""},
		{"compact", `{"line":"/compact keep lamps"}`, 200, "Nothing to compact"},
		{"a sentence", `{"line":"/reset the router"}`, 400, "takes nothing behind it"},
		{"no command", `{"line":"/dance"}`, 400, "is no command"},
		{"no line", `{}`, 400, "is no command"},
		{"new", `{"line":"/new"}`, 200, "New session (new)"},
	} {
		if row.name == "status" {
			s.say("main", "hello")
		}
		t.Run(row.name, func(t *testing.T) {
			got := s.text(row.status, "POST", "/v1/sessions/main/commands", row.body)
			if !strings.Contains(got, row.want) {
				t.Errorf("%s, want %q in it", got, row.want)
			}
		})
	}
	s.text(404, "POST", "/v1/sessions/nobody/commands", `{"line":"/status"}`)
	if got := s.text(200, "GET", "/v1/sessions/main/outbound", ""); strings.TrimSpace(got) != `{"outbound":[]}` {
		t.Errorf("outbound %s", got)
	}
}
