package provider

import (
	"strings"
	"testing"

	tidemark "github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// TestLowered: what chat completions allow goes to the Messages API in the shape that it demands, and what has it
// goes as it is.
func TestLowered(t *testing.T) {
	const (
		hi     = `{"role":"user","content":"hi"}`
		system = `{"role":"system","content":"Be short."}`
		hello  = `{"role":"assistant","content":"Hello."}`
		call   = `{"role":"assistant","content":[{"type":"tool_use","id":"call_0","name":"f","input":{"n":1.0}}]}`
		call2  = `{"role":"assistant","content":[{"type":"tool_use","id":"call_0_2","name":"f","input":{}},{"type":"tool_use","id":"call_0","name":"g","input":{}}]}`
		result = `{"role":"user","content":[{"type":"tool_result","tool_use_id":"call_0","content":"x"}]}`
		both   = `{"role":"user","content":[{"type":"tool_result","tool_use_id":"call_0","content":"x"},{"type":"tool_result","tool_use_id":"call_0_2","is_error":true,"content":"y"}]}`
	)
	for _, row := range []struct {
		name     string
		system   string
		messages []string
		want     []string // words in the messages that are sent, in order; nil: as they are
		native   bool     // the model takes system messages between the others
	}{
		{"a conversation", "Be kind.", []string{hi, hello, hi}, nil, false},
		{"a round of tools", "", []string{hi, call, result}, nil, false},
		{"the system alone", "Write a poem.", nil, []string{"Write a poem."}, false},
		{"a greeting first", "", []string{hello, hi}, []string{greeted, "Hello.", "hi"}, false},
		{"the greeting alone", "", []string{hello}, []string{greeted, "Hello."}, false},
		{"an id again", "", []string{hi, call, result, call, result, call, result}, []string{`"id":"call_0"`, `"tool_use_id":"call_0"`,
			`"id":"call_0_2"`, `{"n":1.0}`, `"tool_use_id":"call_0_2"`, `"id":"call_0_3"`, `"tool_use_id":"call_0_3"`}, false},
		{"an id that looks like ours", "", []string{hi, call, result, call2, both}, []string{`"id":"call_0_2"`, `"id":"call_0_3"`,
			`"tool_use_id":"call_0_3"`, `"tool_use_id":"call_0_2"`, `"is_error":true`}, false},
		{"instructions for a model that takes them", "", []string{hi, system, hello, hi}, nil, true},
		{"instructions for one that does not", "", []string{hi, system, hello, hi}, []string{`"hi"`, "system-reminder", "Be short.", "Hello.", "hi"}, false},
		{"instructions behind results", "", []string{hi, call, result, system}, []string{`"tool_result"`, "system-reminder", "Be short."}, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			req := tidemark.Request{System: row.system}
			for _, m := range row.messages {
				req.Messages = append(req.Messages, mustMessage(t, m))
			}
			before, err := json.Marshal(req.Messages)
			if err != nil {
				t.Fatal(err)
			}
			beta := []string(nil)
			if row.native {
				beta = []string{midSystem}
			}
			got := (&Anthropic{Beta: beta}).valid(req).Request
			if err := tidemark.Check(got.Messages); err != nil {
				t.Error(err)
			}
			raw, err := json.Marshal(got.Messages)
			if err != nil {
				t.Fatal(err)
			}
			if row.want == nil && (string(raw) != string(before) || got.System != req.System) {
				t.Errorf("it is changed to %s", raw)
			}
			rest := string(raw)
			for _, w := range row.want {
				_, after, ok := strings.Cut(rest, w)
				if !ok {
					t.Fatalf("no %s in %s of %s", w, rest, raw)
				}
				rest = after
			}
			if after, err := json.Marshal(req.Messages); err != nil || string(after) != string(before) {
				t.Errorf("the caller's messages are %s now, %v", after, err)
			}
		})
	}
}
