package tidemark_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// list decodes messages; without the checks of a door, so that bad ones can be made.
func list(t *testing.T, s string) []tidemark.Message {
	t.Helper()
	var out []tidemark.Message
	if err := json.Unmarshal([]byte("["+s+"]"), &out); err != nil {
		t.Fatalf("decode %s: %v", s, err)
	}
	return out
}

const (
	system  = `{"role":"system","content":"Be short."}`
	callA   = `{"type":"tool_use","id":"a","name":"n","input":{}}`
	callB   = `{"type":"tool_use","id":"b","name":"n","input":{}}`
	resultA = `{"type":"tool_result","tool_use_id":"a","content":"x"}`
	resultB = `{"type":"tool_result","tool_use_id":"b","content":"x"}`
	words   = `{"type":"text","text":"w"}`
)

func TestCheck(t *testing.T) {
	hi := user(`"hi"`)
	for _, tc := range []struct {
		name, list string
		index      int    // of the message at fault
		rule       string // empty: none is broken
	}{
		{"one question", hi, 0, ""},
		{"question and answer", hi + "," + reply(`"yes"`), 0, ""},
		{"two of the same role", hi + "," + hi + "," + reply(`"yes"`) + "," + reply(`"and"`), 0, ""},
		{"call and result", hi + "," + reply("["+callA+"]") + "," + user("["+resultA+"]"), 0, ""},
		{"results in another order, then words", hi + "," + reply("["+words+","+callA+","+callB+"]") + "," + user("["+resultB+","+resultA+","+words+"]"), 0, ""},
		{"result without content", hi + "," + reply("["+callA+"]") + "," + user(`[{"type":"tool_result","tool_use_id":"a"}]`), 0, ""},
		{"image alone", user(`[{"type":"image","source":{"type":"url","url":"u"}}]`), 0, ""},
		{"unknown type", user(`[{"type":"odd"}]`), 0, ""},
		{"instructions behind a question", hi + "," + system + "," + reply(`"yes"`), 0, ""},
		{"instructions at the end", hi + "," + reply("["+callA+"]") + "," + user("["+resultA+"]") + "," + system, 0, ""},
		{"instructions behind a tool of the API", hi + "," + reply(`[{"type":"server_tool_use","id":"s"},{"type":"web_search_tool_result","tool_use_id":"s"}]`) + "," + system, 0, ""},
		{"instructions behind a tool of the API and a call", hi + "," + reply("["+callA+`,{"type":"server_tool_use","id":"s"}]`) + "," + system, 2, "follows no message of the user"},
		{"instructions first", system + "," + hi, 0, "first message"},
		{"instructions behind an answer", hi + "," + reply(`"yes"`) + "," + system, 2, "follows no message of the user"},
		{"instructions twice", hi + "," + system + "," + system, 2, "follows no message of the user"},
		{"instructions before a question", hi + "," + system + "," + hi, 1, "before one of the user"},
		{"instructions before the result", hi + "," + reply("["+callA+"]") + "," + system + "," + user("["+resultA+"]"), 2, "follows no message"},
		{"nothing", "", 0, "no messages"},
		{"assistant first", reply(`"hi"`), 0, "first message"},
		{"no blocks", hi + "," + user(`[]`), 1, "empty content"},
		{"empty string", hi + "," + user(`""`), 1, "empty text"},
		{"white space alone", hi + "," + user(`" \n\t"`), 1, "empty text"},
		{"empty text beside others", user(`[` + words + `,{"type":"text","text":""}]`), 0, "empty text"},
		{"call of the user", user("[" + callA + "]"), 0, "not from the assistant"},
		{"result of the assistant", hi + "," + reply("["+resultA+"]"), 1, "not from the user"},
		{"call without id", hi + "," + reply(`[{"type":"tool_use","name":"n","input":{}}]`), 1, "without id or name"},
		{"call without name", hi + "," + reply(`[{"type":"tool_use","id":"a","input":{}}]`), 1, "without id or name"},
		{"id twice in a message", hi + "," + reply("["+callA+","+callA+"]"), 1, "used before"},
		{"id used again later", hi + "," + reply("["+callA+"]") + "," + user("["+resultA+"]") + "," + reply("["+callA+"]"), 3, "used before"},
		{"orphan result at the start", user("[" + resultA + "]"), 0, "answers no call"},
		{"orphan result", hi + "," + reply(`"yes"`) + "," + user("["+resultA+"]"), 2, "answers no call"},
		{"result for another call", hi + "," + reply("["+callA+"]") + "," + user("["+resultB+"]"), 2, "answers no call"},
		{"result twice", hi + "," + reply("["+callA+"]") + "," + user("["+resultA+","+resultA+"]"), 2, "answers no call"},
		{"result a message late", hi + "," + reply("["+callA+"]") + "," + hi + "," + user("["+resultA+"]"), 2, "not answered"},
		{"result two messages later again", hi + "," + reply("["+callA+"]") + "," + user("["+resultA+"]") + "," + user("["+resultA+"]"), 3, "answers no call"},
		{"words before the result", hi + "," + reply("["+callA+"]") + "," + user("["+words+","+resultA+"]"), 2, "come first"},
		{"one of two unanswered", hi + "," + reply("["+callA+","+callB+"]") + "," + user("["+resultA+"]"), 2, `"b" is not answered`},
		{"call at the end", hi + "," + reply("["+callA+"]"), 1, "not answered"},
		{"call before another reply", hi + "," + reply("["+callA+"]") + "," + reply(`"x"`), 2, "not answered"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := tidemark.Check(list(t, tc.list))
			if tc.rule == "" {
				if err != nil {
					t.Errorf("got %v, want no breach", err)
				}
				return
			}
			var shape *tidemark.ShapeError
			if !errors.As(err, &shape) || shape.Index != tc.index || !strings.Contains(err.Error(), tc.rule) {
				t.Errorf("got %v, want message %d: %q", err, tc.index, tc.rule)
			}
		})
	}
	if err := tidemark.Check([]tidemark.Message{{Role: "system", Content: []tidemark.Block{tidemark.Text("x")}}}); err == nil {
		t.Error("a system message first")
	}
	if err := tidemark.Check([]tidemark.Message{tidemark.NewText(tidemark.User, "x"), {Role: "tool", Content: []tidemark.Block{tidemark.Text("x")}}}); err == nil || !strings.Contains(err.Error(), `role "tool"`) {
		t.Errorf("unknown role: %v", err)
	}
}

func TestErrors(t *testing.T) {
	for _, tc := range []struct {
		name      string
		err       tidemark.APIError
		says      string
		transient bool
	}{
		{"rate", tidemark.APIError{Class: tidemark.ClassRate, Status: 429, Type: "rate_limit_error", Message: "slow down", RequestID: "req_1"},
			"model API: rate (429 rate_limit_error): slow down [request req_1]", true},
		{"overloaded", tidemark.APIError{Class: tidemark.ClassOverloaded, Status: 529, Type: "overloaded_error"}, "model API: overloaded (529 overloaded_error)", true},
		{"network", tidemark.APIError{Class: tidemark.ClassNetwork, Message: "EOF"}, "model API: network: EOF", true},
		{"auth", tidemark.APIError{Class: tidemark.ClassAuth, Status: 401}, "model API: auth (401)", false},
		{"overflow", tidemark.APIError{Class: tidemark.ClassOverflow}, "model API: overflow", false},
		{"bad request", tidemark.APIError{Class: tidemark.ClassBadRequest}, "model API: bad_request", false},
		{"refusal", tidemark.APIError{Class: tidemark.ClassRefusal}, "model API: refusal", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.err.Error() != tc.says || tc.err.Transient() != tc.transient {
				t.Errorf("%q, transient %v; want %q, %v", tc.err.Error(), tc.err.Transient(), tc.says, tc.transient)
			}
		})
	}
}

// TestCheckCalls: of what Check refuses, this is what chat completions allow.
func TestCheckCalls(t *testing.T) {
	round := user(`"hi"`) + "," + reply("["+callA+"]") + "," + user("["+resultA+"]")
	for _, tc := range []struct {
		name, list string
		fine       bool
	}{
		{"nothing", "", true},
		{"a greeting first", reply(`"hi"`), true},
		{"an id again", round + "," + round, true},
		{"an id twice in one message", user(`"hi"`) + "," + reply("["+callA+","+callA+"]") + "," + user("["+resultA+"]"), false},
		{"a call without its result", user(`"hi"`) + "," + reply("["+callA+"]"), false},
		{"a result without its call", user("[" + resultA + "]"), false},
		{"no blocks", user(`[]`), false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if err := tidemark.CheckCalls(list(t, tc.list)); (err == nil) != tc.fine {
				t.Error(err)
			}
			if tidemark.Check(list(t, tc.list)) == nil {
				t.Error("Check allows it")
			}
		})
	}
}
