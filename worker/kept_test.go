//go:build !js

package worker_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/worker"
)

// kept is an answer of chat completions.
type kept struct {
	Choices []struct {
		Message struct{ Content string }
	}
}

// TestKept: what a client of another API says is one message of a conversation, and a retry none.
func TestKept(t *testing.T) {
	s := serve(t, nil)
	ask := func(body string) (text, duplicate string) {
		t.Helper()
		res := s.do("POST", "/v1/chat/completions", body, "X-Tidemark-Session", "garden")
		if res.StatusCode != http.StatusOK || res.Header.Get("X-Tidemark-Session") != "agent:main:local:dm:garden" {
			t.Fatalf("%d %v", res.StatusCode, res.Header)
		}
		raw, err := io.ReadAll(res.Body)
		var got kept
		if err == nil {
			err = json.Unmarshal(raw, &got)
		}
		if err != nil || len(got.Choices) != 1 {
			t.Fatalf("%v: %s", err, raw)
		}
		return got.Choices[0].Message.Content, res.Header.Get("X-Tidemark-Duplicate")
	}
	const first = `{"messages":[{"role":"user","content":"yes"}]}`
	const second = `{"messages":[{"role":"user","content":"yes"},{"role":"assistant","content":"made up"},{"role":"user","content":"yes"}]}`
	for i, row := range []struct {
		body, duplicate string
		said            int // messages of the user so far
	}{
		{first, "", 1}, {first, "1", 1}, {second, "", 2}, {second, "1", 2}, {first, "", 3}, {first, "1", 3},
	} {
		text, duplicate := ask(row.body)
		if text == "" || duplicate != row.duplicate {
			t.Errorf("%d: %q, duplicate %q", i, text, duplicate)
		}
		if got := get[view](s, 200, "GET", "/v1/sessions/garden/view", "").Items; len(got) != 2*row.said {
			t.Errorf("%d: %d messages", i, len(got))
		}
	}
	if strings.Contains(s.text(200, "GET", "/v1/sessions/garden/log?format=jsonl", ""), "made up") {
		t.Error("the history of the client was taken for true")
	}
}

// TestKeptOthers: a client of the Messages API may say things between the messages of its user: where the conversation is kept
// here they are said in those, and what only counts down its own room is left out.
func TestKeptOthers(t *testing.T) {
	s := serve(t, nil)
	const hi, yes, short, left = `{"role":"user","content":"hi"}`, `{"role":"assistant","content":"yes"}`, `{"role":"system","content":"Be short."}`, `{"role":"system","content":[{"type":"text","text":"<total_tokens>9 tokens left</total_tokens>","cache_control":{"type":"ephemeral"}}]}`
	for i, row := range []struct {
		name, messages, want string
	}{
		{"at the end", hi + "," + short, `[{"type":"text","text":"hi"},{"type":"text","text":"<system-reminder>\nBe short.\n</system-reminder>"}]`},
		{"with a count-down", hi + "," + yes + "," + hi + "," + left, `"hi"`},
		{"first, and in the history", short + "," + hi + "," + left + "," + yes + "," + hi, `"hi"`},
		{"another role", hi + "," + yes + `,{"role":"user","content":"go"},{"role":"developer","content":[{"type":"text","text":"Fast."},{"odd":1}]}`, `[{"type":"text","text":"go"},{"type":"text","text":"<system-reminder>\nFast.\n</system-reminder>"}]`},
		{"before the user", hi + "," + yes + "," + short + "," + hi, `[{"type":"text","text":"hi"},{"type":"text","text":"<system-reminder>\nBe short.\n</system-reminder>"}]`},
	} {
		t.Run(row.name, func(t *testing.T) {
			key := fmt.Sprint("others", i)
			body := `{"max_tokens":9,"context_management":{"edits":[]},"output_config":{"effort":"low"},"messages":[` + row.messages + `]}`
			res := s.do("POST", "/v1/messages", body, "X-Tidemark-Session", key, "Anthropic-Beta", "unheard-of")
			if raw, err := io.ReadAll(res.Body); err != nil || res.StatusCode != http.StatusOK {
				t.Fatalf("%d %s %v", res.StatusCode, raw, err)
			}
			if got := s.text(200, "GET", "/v1/sessions/"+key+"/log?format=jsonl", ""); !strings.Contains(got, `"content":`+row.want) {
				t.Errorf("kept as %s, want %s", got, row.want)
			}
		})
	}
}

// TestKeptOdd: of what is said only what is plainly wrong is refused. What is of no known kind is kept as it came; what stands
// before the last answer is not kept at all.
func TestKeptOdd(t *testing.T) {
	s := serve(t, nil)
	const chat, messages = "/v1/chat/completions", "/v1/messages"
	const yes = `,{"role":"assistant","content":"yes"},{"role":"user","content":"go"}`
	for i, row := range []struct {
		name, path, messages string
		want                 string // of the log, or of the refusal
		status               int
	}{
		{"a block without a list", messages, `{"role":"user","content":{"type":"text","text":"hi"}}`, `"content":"hi"`, 200},
		{"a block of an unknown type", messages, `{"role":"user","content":[{"type":"text","text":"hi"},{"type":"hologram","text":7,"of":{"a":1.0}}]}`, `{"type":"hologram","text":7,"of":{"a":1.0}}`, 200},
		{"one without a list", messages, `{"role":"user","content":{"type":"hologram","of":1}}`, `[{"type":"hologram","of":1}]`, 200},
		{"blocks of tools that the API runs", messages, `{"role":"user","content":"hi"},{"role":"assistant","content":[{"type":"server_tool_use","id":"s","name":"f","input":{}},{"type":"mcp_tool_result","tool_use_id":"s","content":[]}]},{"role":"user","content":"go"}`, `"content":"go"`, 200},
		{"a call of the client's tools, and its result", messages, `{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":{"type":"text","text":"r"}}]}` + yes, `"content":"go"`, 200},
		{"only a result", messages, `{"role":"user","content":[{"type":"tool_result","tool_use_id":"a"}]}`, "answers a tool call", 400},
		{"no role", messages, `{"role":"user","content":"hi"},{"content":"x"}`, `messages[1]: decode message: no \"role\"`, 400},
		{"no message", messages, `7`, "messages[0]: decode message", 400},
		{"content is a number", messages, `{"role":"user","content":7}`, "messages[0]: decode message: decode content: want a string or a list of blocks", 400},
		{"content is no block", messages, `{"role":"user","content":{"parts":["x"]}}`, "want a string or a list of blocks", 400},
		{"content is a list of strings", messages, `{"role":"user","content":["x"]}`, "block 0: decode block: want an object", 400},
		{"text is a number", messages, `{"role":"user","content":[{"type":"text","text":7}]}`, "block 0", 400},

		{"a part without a list", chat, `{"role":"user","content":{"type":"text","text":"hi"}}`, `"content":"hi"`, 200},
		{"a part of an unknown type", chat, `{"role":"user","content":[{"type":"text","text":"hi"},{"type":"video_url","text":7,"video_url":{"url":"x"}}]}`, `{"type":"video_url","text":7,"video_url":{"url":"x"}}`, 200},
		{"an unknown role", chat, `{"role":"user","content":"hi"},{"role":"critic","content":"Be short."}`, `<system-reminder>\nBe short.\n</system-reminder>`, 200},
		{"an unknown part of the system", chat, `{"role":"system","content":[{"type":"hologram"}]},{"role":"user","content":"hi"}`, `"content":"hi"`, 200},
		{"whatever was said before", chat, `{"role":"user","content":[{"type":"input_audio","input_audio":{}},{"type":"image_url","image_url":{"url":"https://x.example/a.png"}},7]},{"role":"function","name":"f","content":"r"},{"role":"tool","content":"r"},
			{"role":"assistant","function_call":{"name":"f"},"tool_calls":{}}` + yes, `"content":"go"`, 200},
		{"what is no message", chat, `7` + yes, "messages[0]: want an object", 400},
		{"spoken", chat, `{"role":"user","content":[{"type":"input_audio","input_audio":{}}]}`, `a part of type \"input_audio\"`, 400},
		{"a part without a type", chat, `{"role":"user","content":[{"text":"x"}]}`, `content[0]: a part of type`, 400},
		{"text of a part is a number", chat, `{"role":"user","content":[{"type":"text","text":7}]}`, `content[0]: a part of type \"text\"`, 400},
		{"content of chat is a number", chat, `{"role":"user","content":7}`, "want a string or a list of parts", 400},
		{"a result of chat", chat, `{"role":"tool","tool_call_id":"a","content":"r"}`, "answers a tool call", 400},
	} {
		t.Run(row.name, func(t *testing.T) {
			key := fmt.Sprint("odd", i)
			got := s.text(row.status, "POST", row.path, `{"max_tokens":9,"messages":[`+row.messages+`]}`, "X-Tidemark-Session", key)
			if row.status == 200 {
				got = s.text(200, "GET", "/v1/sessions/"+key+"/log?format=jsonl", "")
			}
			if !strings.Contains(got, row.want) {
				t.Errorf("%s\nwant %s", got, row.want)
			}
		})
	}
}

// TestKeptForced: a call that must be made is refused, since no answer of a kept conversation could have it.
func TestKeptForced(t *testing.T) {
	s := serve(t, nil)
	for _, row := range []struct{ path, choice string }{
		{"/v1/messages", `{"type":"any"}`}, {"/v1/messages", `{"disable_parallel_tool_use":true,"type":"tool","name":"f"}`},
		{"/v1/chat/completions", `"required"`}, {"/v1/chat/completions", `{"type":"function","function":{"name":"f"}}`},
	} {
		got := s.text(400, "POST", row.path, `{"tools":[{"name":"f"}],"tool_choice":`+row.choice+`,"messages":[{"role":"user","content":"x"}]}`, "X-Tidemark-Session", "garden")
		if !strings.Contains(got, "tool_choice: ") || !strings.Contains(got, "the model chooses") {
			t.Errorf("%s %s: %s", row.path, row.choice, got)
		}
	}
}

// TestIgnored: what a kept conversation does not heed is named, at every door.
func TestIgnored(t *testing.T) {
	s := serve(t, nil)
	for i, row := range []struct{ name, path, body, want string }{
		{"nothing", "/v1/chat/completions", ``, ""},
		{"colour", "/v1/chat/completions", `"temperature":0.5,`, "temperature"},
		{"a bound", "/v1/chat/completions", `"max_tokens":9,"seed":1,`, "seed, max_tokens"},
		{"its newer name", "/v1/chat/completions", `"max_completion_tokens":9,`, "max_completion_tokens"},
		{"both", "/v1/chat/completions", `"max_completion_tokens":9,"max_tokens":9,`, "max_completion_tokens, max_tokens"},
		{"no bound", "/v1/chat/completions", `"max_tokens":null,`, ""},
		{"the other API", "/v1/messages", `"max_tokens":9,"system":"x",`, "max_tokens, system"},
		{"tools", "/v1/messages", `"tools":[{"name":"f","input_schema":{}},{"type":"web_search_20250305","name":"web_search"},7],"tool_choice":{"type":"auto","disable_parallel_tool_use":true},`, "tools"},
		{"no tools", "/v1/messages", `"tools":[],"mcp_servers":[],"tool_choice":{"type":"none"},`, ""},
		{"tools of servers", "/v1/messages", `"mcp_servers":[{"type":"url","url":"https://x.example","name":"x"}],"container":{"skills":[]},`, "container, mcp_servers"},
		{"what is new", "/v1/messages", `"context_management":{"edits":[]},"output_config":{"effort":"low"},"unheard_of":[[]],`, "context_management, output_config, unheard_of"},
		{"tools of chat", "/v1/chat/completions", `"tools":[{"type":"function","function":{"name":"f"}},{"type":"custom","custom":{}},{"type":"unheard_of"}],"tool_choice":"auto",`, "tools"},
		{"no tools of chat", "/v1/chat/completions", `"tools":[],"tool_choice":"none",`, ""},
		{"what is new in chat", "/v1/chat/completions", `"unheard_of":{"a":1},"mcp_servers":[{}],`, "mcp_servers, unheard_of"},
	} {
		t.Run(row.name, func(t *testing.T) {
			body := fmt.Sprintf(`{%s"messages":[{"role":"user","content":"question %d"}]}`, row.body, i)
			res := s.do("POST", row.path, body, "X-Tidemark-Session", "garden")
			if got := res.Header.Get("X-Tidemark-Ignored"); res.StatusCode != 200 || got != row.want {
				t.Errorf("%d, ignored %q, want %q", res.StatusCode, got, row.want)
			}
		})
	}
}

// TestRelay: without a key of its own nothing of a client is passed on, and never the token.
func TestRelay(t *testing.T) {
	var onward []http.Header
	s := serve(t, func(c *worker.Config, _ *actors) {
		c.Token = "secret-token"
		c.Model = func(context.Context) (worker.Model, error) {
			return worker.Model{Messages: worker.Upstream{Base: "http://upstream.test"}}, nil
		}
		c.Network = answered(func(r *http.Request) *http.Response {
			onward = append(onward, r.Header.Clone())
			return &http.Response{StatusCode: 418, Header: http.Header{"Content-Type": {"text/odd"}, "Set-Cookie": {"a=b"}}, Body: http.NoBody, Request: r}
		})
	})
	for _, row := range []struct {
		name    string
		headers []string
		status  int
	}{
		{"its key only", []string{"X-Api-Key", "k"}, 401},
		{"the token only", []string{"X-Api-Key", "secret-token"}, 401},
		{"the token twice", []string{"X-Api-Key", "secret-token", "Authorization", "Bearer secret-token"}, 401},
		{"both", []string{"X-Api-Key", "k", "Authorization", "Bearer secret-token"}, 418},
		{"both, the other way", []string{"X-Tidemark-Token", "secret-token", "Authorization", "Bearer oauth", "X-Odd", "a secret-token b"}, 418},
	} {
		t.Run(row.name, func(t *testing.T) {
			onward = nil
			res := s.do("POST", "/v1/messages", `{}`, row.headers...)
			if res.StatusCode != row.status || len(onward) != row.status/418 {
				t.Errorf("%d, passed on %d times", res.StatusCode, len(onward))
			}
			for _, h := range onward {
				for name, values := range h {
					if strings.Contains(strings.Join(values, " "), "secret-token") || strings.HasPrefix(name, "X-Tidemark") {
						t.Errorf("%s: %q goes on", name, values)
					}
				}
				if res.Header.Get("Content-Type") != "text/odd" || res.Header.Get("Set-Cookie") != "" {
					t.Errorf("it comes back with %v", res.Header)
				}
			}
		})
	}
}

// TestRelayedHeaders: what an API says of its answer comes back, but not in the place of what this server says for safety.
func TestRelayedHeaders(t *testing.T) {
	s := serve(t, func(c *worker.Config, _ *actors) {
		c.Origins = []string{"https://chat.example.com"}
		c.Model = func(context.Context) (worker.Model, error) {
			return worker.Model{Messages: worker.Upstream{Base: "http://upstream.test"}}, nil
		}
		c.Network = answered(func(r *http.Request) *http.Response {
			return &http.Response{StatusCode: 200, Body: http.NoBody, Request: r, Header: http.Header{"Cache-Control": {"public"}, "Content-Security-Policy": {"default-src *"},
				"Vary": {"Accept-Encoding"}, "X-Request-Id": {"theirs"}, "Request-Id": {"req_1"}, "Retry-After": {"3"}}}
		})
	})
	res := s.do("POST", "/v1/messages", `{}`, "X-Api-Key", "k", "Origin", "https://chat.example.com")
	for name, want := range map[string]string{"Cache-Control": "no-store", "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
		"Vary": "Origin, Accept-Encoding", "Request-Id": "req_1", "Retry-After": "3"} {
		if got := strings.Join(res.Header.Values(name), ", "); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if res.Header.Get("X-Request-Id") == "theirs" {
		t.Error("the request's id is replaced")
	}
}

// TestSilence: who waits for a model that is silent hears a sign of life, and of a relayed answer no event
// is torn by it.
func TestSilence(t *testing.T) {
	g := newGate()
	up, down := io.Pipe()
	s := serve(t, func(c *worker.Config, _ *actors) {
		c.Ping = 20 * time.Millisecond
		c.Model = func(context.Context) (worker.Model, error) { return worker.Model{Provider: g, ID: "m"}, nil }
		c.Network = answered(func(r *http.Request) *http.Response {
			return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: up, Request: r}
		})
	})
	until := func(t *testing.T, r *bufio.Reader, want string) string {
		t.Helper()
		for all := ""; ; {
			line, err := r.ReadString('\n')
			if err != nil {
				t.Fatalf("%v behind %q", err, all)
			}
			if all += line; strings.HasSuffix(all, want) {
				return all
			}
		}
	}
	t.Run("stateless", func(t *testing.T) {
		r := bufio.NewReader(s.do("POST", "/v1/chat/completions", `{"stream":true,"messages":[{"role":"user","content":"x"}]}`).Body)
		until(t, r, ": ping\n\n")
		g.on <- nil
		if rest := until(t, r, "[DONE]\n\n"); !strings.Contains(rest, `"finish_reason":"stop"`) {
			t.Error(rest)
		}
	})
	t.Run("relay", func(t *testing.T) {
		r := bufio.NewReader(s.do("POST", "/v1/messages", `{}`, "X-Api-Key", "k").Body)
		until(t, r, ": ping\n\n")
		for _, piece := range []string{"event: a\ndata: ", "1\n", "\n", "data: 2\n\n"} {
			if _, err := io.WriteString(down, piece); err != nil {
				t.Fatal(err)
			}
			if strings.HasSuffix(piece, "\n\n") {
				until(t, r, ": ping\n\n")
			}
		}
		if err := down.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// answered is a network of one server.
type answered func(*http.Request) *http.Response

// RoundTrip implements http.RoundTripper.
func (f answered) RoundTrip(r *http.Request) (*http.Response, error) { return f(r), nil }
