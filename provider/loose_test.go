package provider

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	tidemark "github.com/tidemark-ai/tidemark"
)

// answering is a server that answers every request with these bytes: events if they begin with one, else a document.
func answering(t *testing.T, body string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if strings.HasPrefix(body, "data:") || strings.HasPrefix(body, "event:") {
			w.Header().Set("Content-Type", "text/event-stream")
		}
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// streamed are chunks as a stream of them.
func streamed(chunks ...string) string {
	return "data: " + strings.Join(chunks, "\n\ndata: ") + "\n\n"
}

var greeting = tidemark.Request{Model: "m", Messages: []tidemark.Message{tidemark.NewText(tidemark.User, "hi")}}

// TestLooseAnswers: an answer whose fields have other forms than the documentation says is read as it was meant. Each row
// cost the answer before.
func TestLooseAnswers(t *testing.T) {
	t.Parallel()
	start := `{"type":"message_start","message":{"id":"m","model":"m","usage":{"input_tokens":3}}}`
	open, text := `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`, `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"yes"}}`
	end, stop := `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":2}}`, `{"type":"message_stop"}`
	whole := func(rest string) string { return `{"choices":[{"message":{"content":"yes"}}],` + rest + `}` }
	for _, row := range []struct {
		name, body string
		anthropic  bool
		text       string // of the answer; empty: "yes"
		calls      string // ids and names
		input      tidemark.Tokens
	}{
		{"numbers with a point", streamed(strings.Replace(start, ":3}", ":3.0}", 1), open, text, end, stop), true, "", "", 3},
		{"numbers with an exponent", streamed(strings.Replace(start, ":3}", ":1e1}", 1), open, text, end, stop), true, "", "", 10},
		{"numbers in quotes", streamed(strings.Replace(start, ":3}", `:"77"}`, 1), open, text, end, stop), true, "", "", 77},
		{"figures that are none", streamed(strings.Replace(start, ":3}", `:{"n":1}}`, 1), open, text, end, stop), true, "", "", 0},
		{"figures that are no object", streamed(strings.Replace(start, `{"input_tokens":3}`, `"none"`, 1), open, text, end, stop), true, "", "", 0},
		{"an index with a point", streamed(start, strings.Replace(open, `:0,`, `:0.0,`, 1), strings.Replace(text, `:0,`, `:"0",`, 1), end, stop), true, "", "", 3},
		{"an id that is a number", streamed(strings.Replace(start, `"id":"m"`, `"id":17`, 1), open, text, end, stop), true, "", "", 3},
		{"a call's id that is a number", streamed(start, `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":17,"name":"look","input":{}}}`, end, stop), true, "-", "17 look", 3},
		{"a reason that is an object", streamed(start, open, text, `{"type":"message_delta","delta":{"stop_reason":{"a":1}}}`, stop), true, "", "", 3},
		{"the type beside the data", "event: content_block_start\n" + strings.Replace(streamed(open), `"type":"content_block_start",`, "", 1) + streamed(text, end, stop), true, "", "", 0},
		{"text that is a number", streamed(start, open, strings.Replace(text, `"yes"`, `1.50`, 1), end, stop), true, "1.50", "", 3},
		{"whole, with all of it", `{"id":1,"model":null,"content":[{"type":"text","text":"yes"}],"stop_reason":7,"usage":{"input_tokens":"12.0","output_tokens":null}}`, true, "", "", 12},

		{"chat: numbers with a point", whole(`"usage":{"prompt_tokens":12.0,"completion_tokens":1e0}`), false, "", "", 12},
		{"chat: numbers in quotes", whole(`"usage":{"prompt_tokens":"77","completion_tokens":"1","prompt_tokens_details":{"cached_tokens":null}}`), false, "", "", 77},
		{"chat: details that are none", whole(`"usage":{"prompt_tokens":9,"completion_tokens":1,"prompt_tokens_details":[]}`), false, "", "", 9},
		{"chat: figures that are a text", whole(`"usage":"n/a"`), false, "", "", 0},
		{"chat: an id that is a number", whole(`"id":5,"model":7`), false, "", "", 0},
		{"chat: a reason that is a number", `{"choices":[{"index":"0","finish_reason":1,"message":{"content":"yes"}}]}`, false, "", "", 0},
		{"chat: a call's id that is a number", `{"choices":[{"message":{"tool_calls":[{"id":17,"function":{"name":"look","arguments":{"a":1}}}]}}]}`, false, "-", "17 look", 0},
		{"chat: calls that are none", `{"choices":[{"message":{"content":"yes","tool_calls":"none"}}]}`, false, "", "", 0},
		{"chat: a call that is none", `{"choices":[{"message":{"content":"yes","tool_calls":[7,{"id":"a","function":null}]}}]}`, false, "", "", 0},
		{"chat: thoughts that are a list", `{"choices":[{"message":{"content":"yes","reasoning":{"a":1},"reasoning_content":[{"text":"hm"}]}}]}`, false, "", "", 0},
		{"chat: a part without text", `{"choices":[{"message":{"content":[{"type":"odd","text":{"a":1}},7,{"text":"yes"}]}}]}`, false, `{"a":1}yes`, "", 0},
		{"chat: streamed", streamed(`{"id":1,"choices":[{"index":0.0,"delta":{"content":"yes"},"finish_reason":null}]}`, `{"choices":[{"delta":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":4.0,"completion_tokens":1.0}}`, "[DONE]"), false, "", "", 4},
		{"chat: a call in pieces", streamed(`{"choices":[{"delta":{"tool_calls":[{"index":"0","id":3,"function":{"name":"look"}}]}}]}`, `{"choices":[{"delta":{"tool_calls":[{"index":0.0,"function":{"arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`, "[DONE]"), false, "-", "3 look", 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			url := answering(t, row.body)
			var p tidemark.Provider = &OpenAI{BaseURL: url, Transport: http.DefaultTransport}
			if row.anthropic {
				p = &Anthropic{BaseURL: url, Transport: http.DefaultTransport}
			}
			reply, err := tidemark.Complete(t.Context(), p, greeting)
			if err != nil {
				t.Fatal(err)
			}
			var calls []string
			for _, b := range reply.Message.Content {
				if b.Type == tidemark.TypeToolUse {
					calls = append(calls, b.ID+" "+b.Name)
				}
			}
			if got := or(reply.Message.PlainText(), "-"); got != or(row.text, "yes") || strings.Join(calls, ",") != row.calls {
				t.Errorf("said %q, calls %q", got, calls)
			}
			if reported := row.input > 0; reply.Call.Reported != reported || reported && reply.Call.Usage.Input != row.input {
				t.Errorf("usage %+v, reported %v, want %d", reply.Call.Usage, reply.Call.Reported, row.input)
			}
		})
	}
}

// TestRefusalIsAnAnswer: what a model says when it declines is its answer, and what thinks alone has one without text.
func TestRefusalIsAnAnswer(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, body, text, stop, kind string }{
		{"whole", `{"choices":[{"finish_reason":"stop","message":{"content":null,"refusal":"I cannot."}}]}`, "I cannot.", tidemark.StopRefusal, "text"},
		{"streamed", streamed(`{"choices":[{"delta":{"refusal":"I can"}}]}`, `{"choices":[{"delta":{"refusal":"not."},"finish_reason":"stop"}]}`, "[DONE]"), "I cannot.", tidemark.StopRefusal, "text"},
		{"null", `{"choices":[{"finish_reason":"stop","message":{"content":"yes","refusal":null}}]}`, "yes", stopEnd, "text"},
		{"thinking that was cut off", `{"choices":[{"finish_reason":"length","message":{"content":"","reasoning_content":"hm, so"}}]}`, "", stopLength, "thinking"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			reply, err := tidemark.Complete(t.Context(), &OpenAI{BaseURL: answering(t, row.body), Transport: http.DefaultTransport}, greeting)
			if err != nil {
				t.Fatal(err)
			}
			if len(reply.Message.Content) != 1 || reply.Message.Content[0].Type != row.kind || reply.Message.PlainText() != row.text || reply.Call.Stop != row.stop {
				t.Errorf("got %s, %q", reply.Message.AppendJSON(nil), reply.Call.Stop)
			}
		})
	}
}

// TestHalvesJoin: a character that was cut between the halves of its surrogate pair comes out whole, to the reader of the
// stream and in the reply; a half without its other is a replacement character.
func TestHalvesJoin(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name   string
		pieces []string // as they stand in JSON
		want   string
	}{
		{"one piece", []string{`a\ud83d\ude00b`}, "a😀b"},
		{"two pieces", []string{`a\ud83d`, `\ude00b`}, "a😀b"},
		{"capital digits", []string{`\uD83D`, `\uDE00`}, "😀"},
		{"a row of them", []string{`\ud83d`, `\ude00\ud83d`, `\ude01\ud83d`, `\ude02`}, "😀😁😂"},
		{"an empty piece between", []string{`\ud83d`, ``, `\ude00`}, "😀"},
		{"no other half", []string{`a\ud83d`, `b`}, "a\ufffdb"},
		{"no other half at the end", []string{`a\ud83d`}, "a\ufffd"},
		{"the second alone", []string{`a`, `\ude00b`}, "a\ufffdb"},
		{"an escaped backslash", []string{`a\\ud83d`, `\\ude00`}, `a\ud83d\ude00`},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			chat, messages := []string{}, []string{`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
				`{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"c","name":"look","input":{}}}`}
			for _, p := range row.pieces {
				chat = append(chat, `{"choices":[{"delta":{"content":"`+p+`","reasoning":"`+p+`"}}]}`)
				messages = append(messages, `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"`+p+`"}}`)
			}
			chat = append(chat, `{"choices":[{"finish_reason":"stop","delta":{}}]}`, "[DONE]")
			messages = append(messages, `{"type":"message_delta","delta":{"stop_reason":"tool_use"}}`, `{"type":"message_stop"}`)
			for name, p := range map[string]tidemark.Provider{
				"chat":     &OpenAI{BaseURL: answering(t, streamed(chat...)), Transport: http.DefaultTransport},
				"messages": &Anthropic{BaseURL: answering(t, streamed(messages...)), Transport: http.DefaultTransport},
			} {
				said := ""
				for d, err := range p.Stream(t.Context(), greeting) {
					if err != nil {
						t.Fatal(name, err)
					}
					if said += d.Text; d.Reply != nil && d.Reply.Message.PlainText() != row.want {
						t.Errorf("%s: the reply is %q, want %q", name, d.Reply.Message.PlainText(), row.want)
					}
				}
				if said != row.want && said+"\ufffd" != row.want {
					t.Errorf("%s: streamed %q, want %q", name, said, row.want)
				}
			}
		})
	}
}
