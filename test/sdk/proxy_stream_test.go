package sdk

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/option"
	"github.com/openai/openai-go/v3"
	openaioption "github.com/openai/openai-go/v3/option"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/proxy/body"
	"github.com/tidemark-ai/tidemark/proxy/stream"
)

// proxied serves what the proxy makes of answers of an API, cut anywhere.
type proxied struct {
	*httptest.Server
	legs [][]byte
	o    stream.Options
	r    *rand.Rand
	done chan served // one for each request
}

// served is what a request came to.
type served struct {
	turn stream.Turn
	err  error
}

func newProxied(t *testing.T, d stream.Dialect) *proxied {
	p := &proxied{r: rand.New(rand.NewPCG(3, uint64(d))), done: make(chan served, 1)}
	p.o = stream.Options{Dialect: d, Tags: true, Phantom: func(name string) bool { return strings.HasPrefix(name, "memory_") }}
	p.Server = httptest.NewServer(p)
	t.Cleanup(p.Close)
	return p
}

func (p *proxied) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if p.o.Stream {
		w.Header().Set("Content-Type", "text/event-stream")
	}
	f, failed := stream.New(p.o), error(nil)
	send := func(out []byte) {
		if len(out) > 0 {
			_, _ = w.Write(out) // a client that went is seen by its own test
			w.(http.Flusher).Flush()
		}
	}
	for i, leg := range p.legs {
		for len(leg) > 0 {
			n := min(1+p.r.IntN(400), len(leg))
			out, err := f.Feed(leg[:n])
			if err != nil {
				failed = err
			}
			send(out)
			leg = leg[n:]
		}
		if l := f.EndLeg(); i+1 < len(p.legs) {
			if !l.Again() {
				failed = fmt.Errorf("leg %d is not to be continued", i)
			}
			f.Next()
		}
	}
	out, turn := f.Finish()
	send(out)
	p.done <- served{turn, failed}
}

// block is what a fake model says.
type block struct{ kind, text, id, name string }

const cleanupTags = "<memory_cleanup>\nrelease: a.go\n</memory_cleanup>\n"

// turns are answers in all the ways in which calls of ours and tags come; all but the last leg end in our calls.
func turns() map[string][][]block {
	say := func(s string) block { return block{kind: "text", text: s} }
	think := block{kind: "thinking", text: "Let me see."}
	ours := func(id string) block {
		return block{kind: "tool_use", id: id, name: "memory_fault", text: `{"paths":["a.go"]}`}
	}
	theirs := func(id string) block {
		return block{kind: "tool_use", id: id, name: "look", text: `{"place":"Paris, “5e”","n":1.5}`}
	}
	return map[string][][]block{
		"none":      {{think, say("Hello\n  you 👋"), theirs("c1")}},
		"only":      {{think, say("A moment."), ours("p1")}, {say("Here it is.")}},
		"silent":    {{ours("p1")}, {think, say("Here it is.")}},
		"mixed":     {{think, say("Both."), ours("p1"), theirs("c1"), ours("p2"), theirs("c2")}},
		"nested":    {{say("One."), ours("p1"), ours("p2")}, {think, ours("p3")}, {say("Two.\n" + cleanupTags + "Three."), theirs("c1"), ours("p4")}},
		"tags only": {{think, say(cleanupTags), theirs("c1")}},
		"tags":      {{say("Before.\n" + cleanupTags), ours("p1")}, {say("```\n" + cleanupTags + "```\n")}},
	}
}

func quote(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

// pieces cuts a text between characters.
func pieces(s string) (out []string) {
	runes := []rune(s)
	for len(runes) > 0 {
		n := min(5, len(runes))
		out, runes = append(out, string(runes[:n])), runes[n:]
	}
	return out
}

func stopOf(blocks []block) string {
	for _, b := range blocks {
		if b.kind == "tool_use" {
			return "tool_use"
		}
	}
	return "end_turn"
}

func messagesStream(blocks []block, id string) []byte {
	var w strings.Builder
	ev := func(name, data string) { w.WriteString("event: " + name + "\r\ndata: " + data + "\r\n\r\n") }
	ev("message_start", `{"type":"message_start","message":{"id":"`+id+`","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":10,"cache_read_input_tokens":3,"cache_creation_input_tokens":2,"output_tokens":1}}}`)
	ev("ping", `{"type":"ping"}`)
	for i, b := range blocks {
		begin := map[string]string{"text": `{"type":"text","text":""}`, "thinking": `{"type":"thinking","thinking":"","signature":""}`,
			"tool_use": `{"type":"tool_use","id":"` + b.id + `","name":"` + b.name + `","input":{}}`}[b.kind]
		ev("content_block_start", fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":%s}`, i, begin))
		d := map[string]string{"text": `"text_delta","text"`, "thinking": `"thinking_delta","thinking"`, "tool_use": `"input_json_delta","partial_json"`}[b.kind]
		for _, p := range pieces(b.text) {
			ev("content_block_delta", fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":{"type":%s:%s}}`, i, d, quote(p)))
		}
		if b.kind == "thinking" {
			ev("content_block_delta", fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":{"type":"signature_delta","signature":"s%d"}}`, i, i))
		}
		ev("content_block_stop", fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, i))
	}
	ev("message_delta", `{"type":"message_delta","delta":{"stop_reason":"`+stopOf(blocks)+`","stop_sequence":null},"usage":{"output_tokens":7}}`)
	ev("message_stop", `{"type":"message_stop"}`)
	return []byte(w.String())
}

func messagesWhole(blocks []block, id string) []byte {
	var list []string
	for i, b := range blocks {
		switch b.kind {
		case "text":
			list = append(list, `{"type":"text","text":`+quote(b.text)+`}`)
		case "thinking":
			list = append(list, fmt.Sprintf(`{"type":"thinking","thinking":%s,"signature":"s%d"}`, quote(b.text), i))
		case "tool_use":
			list = append(list, `{"type":"tool_use","id":"`+b.id+`","name":"`+b.name+`","input":`+b.text+`}`)
		}
	}
	return []byte(`{"id":"` + id + `","type":"message","role":"assistant","model":"m","content":[` + strings.Join(list, ",") + `],"stop_reason":"` + stopOf(blocks) +
		`","stop_sequence":null,"usage":{"input_tokens":10,"cache_read_input_tokens":3,"cache_creation_input_tokens":2,"output_tokens":7}}`)
}

func chatFinish(blocks []block) string {
	return map[string]string{"tool_use": "tool_calls", "end_turn": "stop"}[stopOf(blocks)]
}

const chatFigures = `{"prompt_tokens":15,"completion_tokens":7,"total_tokens":22,"prompt_tokens_details":{"cached_tokens":3}}`

func chatStream(blocks []block, id string) []byte {
	var w strings.Builder
	chunk := func(choices, usage string) {
		w.WriteString(`data: {"id":"` + id + `","object":"chat.completion.chunk","created":1,"model":"m","choices":[` + choices + `],"usage":` + usage + "}\n\n")
	}
	delta := func(d string) { chunk(`{"index":0,"delta":`+d+`,"finish_reason":null}`, "null") }
	delta(`{"role":"assistant","content":"","refusal":null}`)
	calls := 0
	for _, b := range blocks {
		switch b.kind {
		case "text":
			for _, p := range pieces(b.text) {
				delta(`{"content":` + quote(p) + `}`)
			}
		case "tool_use":
			delta(fmt.Sprintf(`{"tool_calls":[{"index":%d,"id":"%s","type":"function","function":{"name":"%s","arguments":""}}]}`, calls, b.id, b.name))
			for _, p := range pieces(b.text) {
				delta(fmt.Sprintf(`{"tool_calls":[{"index":%d,"function":{"arguments":%s}}]}`, calls, quote(p)))
			}
			calls++
		}
	}
	chunk(`{"index":0,"delta":{},"finish_reason":"`+chatFinish(blocks)+`"}`, "null")
	chunk("", chatFigures)
	return []byte(w.String() + "data: [DONE]\n\n")
}

func chatWhole(blocks []block, id string) []byte {
	text, calls := "", []string{}
	for _, b := range blocks {
		switch b.kind {
		case "text":
			text += b.text
		case "tool_use":
			calls = append(calls, `{"id":"`+b.id+`","type":"function","function":{"name":"`+b.name+`","arguments":`+quote(b.text)+`}}`)
		}
	}
	message := `{"role":"assistant","content":` + quote(text) + `,"refusal":null}`
	if len(calls) > 0 {
		message = strings.TrimSuffix(message, "}") + `,"tool_calls":[` + strings.Join(calls, ",") + `]}`
	}
	return []byte(`{"id":"` + id + `","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":` + message + `,"finish_reason":"` + chatFinish(blocks) + `"}],"usage":` + chatFigures + `}`)
}

// prepare sets what the server answers next.
func (p *proxied) prepare(streams bool, legs [][]block) {
	write := map[stream.Dialect]map[bool]func([]block, string) []byte{
		stream.Messages: {true: messagesStream, false: messagesWhole}, stream.Chat: {true: chatStream, false: chatWhole}}[p.o.Dialect][streams]
	p.o.Stream, p.legs = streams, nil
	for i, blocks := range legs {
		p.legs = append(p.legs, write(blocks, fmt.Sprintf("leg%d", i)))
	}
}

// known holds what a client sends back against what the proxy says it saw.
func (p *proxied) known(t *testing.T, sent []byte) {
	t.Helper()
	var m tidemark.Message
	was := <-p.done // a client is through with a stream before its server is
	if err := json.Unmarshal(sent, &m); err != nil || was.err != nil {
		t.Fatalf("%v, %v: %s", was.err, err, sent)
	}
	if tidemark.Chain("", m) != tidemark.Chain("", was.turn.Seen) || len(m.Content) != len(was.turn.Seen.Content) || !was.turn.Whole {
		t.Errorf("the client sends back %s\nthe proxy saw %s", sent, was.turn.Seen.AppendJSON(nil))
	}
	if strings.Contains(string(sent), "memory_fault") {
		t.Errorf("the client saw a call of ours: %s", sent)
	}
}

// TestProxyAnthropicSDK: the official client reads what the proxy makes of several answers, and what it
// sends back is what the proxy noted.
func TestProxyAnthropicSDK(t *testing.T) {
	p := newProxied(t, stream.Messages)
	client := anthropic.NewClient(anthropicoption.WithAPIKey("k"), anthropicoption.WithBaseURL(p.URL), anthropicoption.WithMaxRetries(0))
	check := func(t *testing.T, m *anthropic.Message, legs [][]block) {
		t.Helper()
		n := int64(len(legs))
		if string(m.StopReason) != stopOf(legs[len(legs)-1]) || m.ID != "leg0" || m.Usage.InputTokens != 10*n || m.Usage.OutputTokens != 7*n || m.Usage.CacheReadInputTokens != 3*n || m.Usage.CacheCreationInputTokens != 2*n {
			t.Errorf("stop %s, id %s, usage %+v", m.StopReason, m.ID, m.Usage)
		}
		sent, err := json.Marshal(m.ToParam())
		if err != nil {
			t.Fatal(err)
		}
		p.known(t, sent)
	}
	for name, legs := range turns() {
		t.Run(name, func(t *testing.T) {
			p.prepare(true, legs)
			events := client.Messages.NewStreaming(t.Context(), anthropicAsk())
			var m anthropic.Message
			for events.Next() {
				if err := m.Accumulate(events.Current()); err != nil {
					t.Fatal(err)
				}
			}
			if err := events.Err(); err != nil {
				t.Fatal(err)
			}
			check(t, &m, legs)
			p.prepare(false, legs)
			whole, err := client.Messages.New(t.Context(), anthropicAsk())
			if err != nil {
				t.Fatal(err)
			}
			check(t, whole, legs)
		})
	}
}

// TestProxyOpenAISDK is the same for chat completions.
func TestProxyOpenAISDK(t *testing.T) {
	p := newProxied(t, stream.Chat)
	client := openai.NewClient(openaioption.WithAPIKey("k"), openaioption.WithBaseURL(p.URL+"/v1"), openaioption.WithMaxRetries(0))
	check := func(t *testing.T, c *openai.ChatCompletion, legs [][]block) {
		t.Helper()
		n := int64(len(legs))
		if len(c.Choices) != 1 || c.Choices[0].FinishReason != chatFinish(legs[len(legs)-1]) || c.ID != "leg0" || c.Usage.PromptTokens != 15*n || c.Usage.CompletionTokens != 7*n || c.Usage.TotalTokens != 22*n {
			t.Fatalf("completion %+v", c)
		}
		sent, err := json.Marshal(c.Choices[0].Message.ToParam())
		if err != nil {
			t.Fatal(err)
		}
		r, err := body.Scan(body.Chat, []byte(`{"model":"m","messages":[{"role":"user","content":"hi"},`+string(sent)+`]}`))
		if err != nil {
			t.Fatalf("%v: %s", err, sent)
		}
		p.known(t, r.Items[1].Raw)
	}
	for name, legs := range turns() {
		t.Run(name, func(t *testing.T) {
			p.prepare(true, legs)
			chunks := client.Chat.Completions.NewStreaming(t.Context(), openaiAsk())
			var acc openai.ChatCompletionAccumulator
			for chunks.Next() {
				if !acc.AddChunk(chunks.Current()) {
					t.Fatalf("a chunk does not fit: %s", chunks.Current().RawJSON())
				}
			}
			if err := chunks.Err(); err != nil {
				t.Fatal(err)
			}
			check(t, &acc.ChatCompletion, legs)
			p.prepare(false, legs)
			ask := openaiAsk()
			ask.StreamOptions = openai.ChatCompletionStreamOptionsParam{}
			whole, err := client.Chat.Completions.New(t.Context(), ask)
			if err != nil {
				t.Fatal(err)
			}
			check(t, whole, legs)
		})
	}
}
