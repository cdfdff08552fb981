package worker

import (
	"errors"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/provider"
	"github.com/tidemark-ai/tidemark/provider/offline"
)

// TestChatForm: what clients send, and what is refused by its name.
func TestChatForm(t *testing.T) {
	const hello = `"messages":[{"role":"user","content":"hello"}]`
	for _, row := range []struct {
		name, body, want string // of the error, empty for none
	}{
		{"least", `{` + hello + `}`, ""},
		{"all that clients send", `{"model":"m","temperature":1,"top_p":0.5,"n":1,"stream":true,"stream_options":{"include_usage":true},"stop":null,"seed":1,
			"presence_penalty":0,"frequency_penalty":0,"logit_bias":{},"user":"u","logprobs":false,"metadata":{},"store":false,"parallel_tool_calls":true,
			"reasoning_effort":"low","service_tier":"auto","response_format":{ "type": "text" },"modalities":[ "text" ],"tool_choice":"auto","made_up":[1],` + hello + `}`, ""},
		{"two answers", `{"n":2,` + hello + `}`, "n: 2 is not supported"},
		{"audio", `{"audio":{"voice":"x"},` + hello + `}`, "audio: "},
		{"spoken", `{"modalities":["text","audio"],` + hello + `}`, "modalities: "},
		{"functions", `{"functions":[{"name":"f"}],` + hello + `}`, `use "tools"`},
		{"schema", `{"response_format":{"type":"json_schema"},` + hello + `}`, "response_format: "},
		{"forced tool", `{"tool_choice":{"type":"function","function":{"name":"f"}},` + hello + `}`, "tool_choice: "},
		{"stop", `{"stop":["x"],` + hello + `}`, "stop: "},
		{"odd tool", `{"tools":[{"type":"custom"}],` + hello + `}`, `tools[0]: type "custom"`},
		{"no object", `[]`, "want a JSON object"},
		{"no JSON", `{`, "no JSON"},
		{"model is no string", `{"model":1,` + hello + `}`, "model: must be a string"},
		{"messages are no list", `{"messages":"x"}`, "messages: must be a list"},
		{"message is no object", `{"messages":[1]}`, "messages[0]: want an object"},
		{"role", `{"messages":[{"role":"king","content":"x"}]}`, `messages[0]: role "king"`},
		{"function message", `{"messages":[{"role":"function","name":"f","content":"x"}]}`, `role "function"`},
		{"tool without id", `{"messages":[{"role":"tool","content":"x"}]}`, "needs a tool_call_id"},
		{"call without name", `{"messages":[{"role":"assistant","tool_calls":[{"id":"a"}]}]}`, "needs an id and the name"},
		{"spoken part", `{"messages":[{"role":"user","content":[{"type":"input_audio"}]}]}`, `content[0]: a part of type "input_audio"`},
		{"file that was uploaded", `{"messages":[{"role":"user","content":[{"type":"file","file":{"file_id":"f"}}]}]}`, "nothing is uploaded here"},
		{"image that is none", `{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,%%%"}}]}]}`, "is not base64"},
		{"image of another type", `{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/tiff;base64,AAAA"}}]}]}`, "image/tiff"},
		{"file of this machine", `{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"file:///etc/passwd"}}]}]}`, "want http, https or data"},
		{"long user", `{"user":"` + strings.Repeat("x", maxUser+1) + `",` + hello + `}`, `"user" may have`},
		{"deep", `{"x":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `,` + hello + `}`, "nested more than"},
	} {
		t.Run(row.name, func(t *testing.T) {
			f, err := readChat([]byte(row.body), false)
			if err == nil {
				err = f.settle(takesNone)
			}
			if row.want == "" && err != nil || row.want != "" && (!errors.Is(err, tidemark.ErrInvalid) || !strings.Contains(err.Error(), row.want)) {
				t.Errorf("%v, want %q", err, row.want)
			}
		})
	}
}

// TestSettle: what the model's API takes goes on, the rest is refused or named.
func TestSettle(t *testing.T) {
	const body = `{"temperature":0.20,"stop":["x"],"seed":7,"tool_choice":"none","n":1,"made_up":1,"tools":[{"type":"function","function":{"name":"f"}}],"messages":[]}`
	for _, row := range []struct {
		name           string
		to             tidemark.Provider
		options, rest  string
		tools, refused int
	}{
		{"OpenAI", &provider.Retry{Provider: &provider.OpenAI{}}, "seed=7 stop=[\"x\"] temperature=0.20 tool_choice=\"none\"", "made_up", 1, 0},
		{"Anthropic", &provider.Anthropic{}, "stop=[\"x\"] temperature=0.20", "made_up seed", 0, 0},
		{"none", offline.Model{}, "", "", 0, 1},
	} {
		f, err := readChat([]byte(body), false)
		if err != nil {
			t.Fatal(err)
		}
		err = f.settle(takesOf(row.to))
		if row.refused > 0 {
			if err == nil || !strings.Contains(err.Error(), "stop: ") {
				t.Errorf("%s: %v", row.name, err)
			}
			continue
		}
		var options []string
		for _, o := range f.options {
			options = append(options, o.Name+"="+string(o.Value))
		}
		if got := strings.Join(options, " "); err != nil || got != row.options || strings.Join(named(f.rest), " ") != row.rest || len(f.tools) != row.tools {
			t.Errorf("%s: %v, %s, the rest %v, %d tools", row.name, err, got, named(f.rest), len(f.tools))
		}
	}
}

// TestChatMessages: the messages of one API in the shape of the other.
func TestChatMessages(t *testing.T) {
	f, err := readChat([]byte(`{"messages":[{"role":"system","content":"a"},{"role":"developer","content":[{"type":"text","text":"b"}]},
		{"role":"user","content":"one"},{"role":"user","content":[{"type":"text","text":"two"},{"type":"image_url","image_url":{"url":"https://x.example/a.png","detail":"low"}}]},
		{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"a\":1.0}"}},{"id":"c2","type":"function","function":{"name":"f","arguments":"oops"}}]},
		{"role":"tool","tool_call_id":"c1","content":"r1"},{"role":"tool","tool_call_id":"c2","content":[{"type":"text","text":"r2"}]},{"role":"user","content":"and?"},
		{"role":"assistant","content":""},{"role":"user","content":"x"}],"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}],"max_tokens":5,"max_completion_tokens":7}`), false)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(f.messages)
	const want = `[{"role":"user","content":[{"type":"text","text":"one"},{"type":"text","text":"two"},{"type":"image","source":{"type":"url","url":"https://x.example/a.png"},"image_url":{"detail":"low"}}]},` +
		`{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"f","input":{"a":1.0}},{"type":"tool_use","id":"c2","name":"f","input":{"arguments":"oops"}}]},` +
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"r1"},{"type":"tool_result","tool_use_id":"c2","content":"r2"},{"type":"text","text":"and?"},{"type":"text","text":"x"}]}]`
	if err != nil || string(raw) != want || f.system != "a\n\nb" || f.limit != 7 || len(f.tools) != 1 {
		t.Errorf("%v, system %q, limit %d\n%s", err, f.system, f.limit, raw)
	}
	if err := tidemark.Check(f.messages); err != nil {
		t.Error(err)
	}
}

// TestTalk: what is new in a request, and what names it.
func TestTalk(t *testing.T) {
	u, a := tidemark.User, tidemark.Assistant
	one := func(role tidemark.Role, text string) tidemark.Message { return tidemark.NewText(role, text) }
	in := func(ms ...tidemark.Message) string {
		got, err := talk{messages: merged(ms)}.input()
		if err != nil {
			t.Fatal(err)
		}
		return got.ID
	}
	first := in(one(u, "yes"))
	if first != in(one(u, "yes")) {
		t.Error("a retry has another id")
	}
	if first == in(one(u, "yes"), one(a, "ok"), one(u, "yes")) || first == in(one(u, "no")) {
		t.Error("other words have the same id")
	}
	marked := tidemark.Message{}
	if err := json.Unmarshal([]byte(`{"role":"user","content":[{"type":"text","text":"yes","cache_control":{"type":"ephemeral"}}]}`), &marked); err != nil || in(marked) != first {
		t.Errorf("a cache marker makes another message: %v", err)
	}
	for _, row := range []struct {
		name string
		ms   []tidemark.Message
		want string
	}{
		{"nothing", nil, "none from the user"},
		{"ends with the assistant", []tidemark.Message{one(u, "x"), one(a, "y")}, "end with what the user says"},
		{"answers a tool", []tidemark.Message{{Role: u, Content: []tidemark.Block{tidemark.ToolResult("c", "r", false)}}}, "answers a tool call"},
		{"empty", []tidemark.Message{one(u, " ")}, "empty"},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := talk{messages: row.ms}.input()
			if !errors.Is(err, tidemark.ErrInvalid) || !strings.Contains(err.Error(), row.want) {
				t.Errorf("%v, want %q", err, row.want)
			}
		})
	}
}

// badOnly reports an error that is not the client's fault.
func badOnly(t *testing.T, err error) {
	t.Helper()
	if err != nil && failureOf(err).status >= 500 {
		t.Errorf("a request is answered as a fault of the server: %v", err)
	}
}

// sayable holds what was read to what a session takes: it is valid, or refused, and its id does not change
// when it is read again.
func sayable(t *testing.T, ms []tidemark.Message) {
	t.Helper()
	in, err := talk{messages: ms}.input()
	badOnly(t, err)
	if err != nil {
		return
	}
	again, err := talk{messages: ms}.input()
	if err != nil || again.ID != in.ID || in.Validate() != nil {
		t.Errorf("%v, %s and %s", err, in.ID, again.ID)
	}
}

func FuzzChat(f *testing.F) {
	f.Add([]byte(`{"model":"m","stream":true,"messages":[{"role":"system","content":"s"},{"role":"user","content":[{"type":"text","text":"x"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]}]}`))
	f.Add([]byte(`{"messages":[{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{"}}]},{"role":"tool","tool_call_id":"a","content":"r"}],"tools":[]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		form, err := readChat(raw, true)
		badOnly(t, err)
		if err == nil {
			badOnly(t, form.settle((&provider.Anthropic{}).Takes))
			sayable(t, form.messages)
		}
	})
}

func FuzzMessages(f *testing.F) {
	f.Add([]byte(`{"model":"m","max_tokens":1,"messages":[{"role":"user","content":[{"type":"text","text":"x","cache_control":{"type":"ephemeral"}}]},{"role":"user","content":"y"}]}`))
	f.Add([]byte(`{"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"a"}]}],"tools":[],"stop_sequences":[]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		form, err := readMessages(raw)
		badOnly(t, err)
		if err == nil {
			sayable(t, form.messages)
		}
	})
}

func FuzzUI(f *testing.F) {
	f.Add([]byte(`{"id":"a","trigger":"submit-message","messages":[{"id":"m","role":"user","parts":[{"type":"text","text":"x"},{"type":"file","mediaType":"text/plain","filename":"a","url":"data:text/plain,x%20y"}]}]}`))
	f.Add([]byte(`{"id":"a","messages":[{"role":"user","parts":[{"type":"data-x"},{"type":"file","url":"data:;base64,"}]}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		form, err := readUI(raw)
		badOnly(t, err)
		if err != nil {
			return
		}
		in, err := form.input()
		badOnly(t, err)
		if err == nil && in.Validate() != nil {
			t.Errorf("it is read and cannot be said: %v", in.Validate())
		}
	})
}

func FuzzPeer(f *testing.F) {
	f.Add("anna", "Anna")
	f.Add("x-0123456789abcdef0123456789abcdef", "")
	f.Fuzz(func(t *testing.T, a, b string) {
		x, y := peerOf(a), peerOf(b)
		if a != b && x == y {
			t.Errorf("%q and %q are one conversation", a, b)
		}
		if _, err := keyOf("", "web", a); err != nil || strings.ToLower(x) != x {
			t.Errorf("%q: %q, %v", a, x, err)
		}
	})
}
