package stream

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// ours are the calls that tests take out.
func ours(name string) bool { return strings.HasPrefix(name, "memory_") }

// said is a block that a fake model says.
type said struct {
	typ, text, id, name, input string
}

func textOf(s string) said { return said{typ: "text", text: s} }
func think(s string) said  { return said{typ: "thinking", text: s} }
func call(id, name, input string) said {
	return said{typ: "tool_use", id: id, name: name, input: input}
}

// answer is what a fake model says in one leg.
type answer struct {
	blocks []said
	stop   string
	usage  [2]int // in, out
}

// wire says in what form an answer is sent.
type wire struct {
	eol   string
	piece int // bytes of a delta
	pings bool
	cut   *rand.Rand // deltas of random size
}

func str(s string) string { return string(json.AppendString(nil, s)) }

// pieces cuts a text between runes.
func (w wire) pieces(s string) (out []string) {
	n := w.piece
	for len(s) > 0 {
		if w.cut != nil {
			n = 1 + w.cut.IntN(25)
		}
		k := min(max(n, 1), len(s))
		for k < len(s) && s[k]&0xC0 == 0x80 {
			k++
		}
		out, s = append(out, s[:k]), s[k:]
	}
	return out
}

func (w wire) messages(a answer, id string) []byte {
	var b strings.Builder
	ev := func(name, data string) {
		b.WriteString("event: " + name + w.eol + "data: " + data + w.eol + w.eol)
	}
	ev("message_start", `{"type":"message_start","message":{"id":`+str(id)+`,"type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":`+fmt.Sprint(a.usage[0])+`,"cache_read_input_tokens":3,"cache_creation":{"ephemeral_5m_input_tokens":2},"odd_tokens":1,"output_tokens":1,"service_tier":"standard"}}}`)
	for i, s := range a.blocks {
		begin := map[string]string{"text": `{"type":"text","text":""}`, "thinking": `{"type":"thinking","thinking":"","signature":""}`,
			"tool_use": `{"type":"tool_use","id":` + str(s.id) + `,"name":` + str(s.name) + `,"input":{}}`, "redacted_thinking": `{"type":"redacted_thinking","data":"` + s.text + `"}`,
			"server_tool_use": `{"type":"server_tool_use","id":"s1","name":"web_search","input":{}}`}[s.typ]
		ev("content_block_start", fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":%s}`, i, begin))
		if w.pings && i == 0 {
			ev("ping", `{"type": "ping"}`)
			b.WriteString(": still there" + w.eol + w.eol)
		}
		delta := func(typ, key, piece string) {
			ev("content_block_delta", fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":{"type":%q,%q:%s}}`, i, typ, key, str(piece)))
		}
		for _, p := range w.pieces(s.text) {
			switch s.typ {
			case "text":
				delta("text_delta", "text", p)
			case "thinking":
				delta("thinking_delta", "thinking", p)
			}
		}
		if s.typ == "thinking" {
			delta("signature_delta", "signature", "sig/"+fmt.Sprint(i))
		}
		for _, p := range w.pieces(s.input) {
			delta("input_json_delta", "partial_json", p)
		}
		ev("content_block_stop", fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, i))
	}
	ev("message_delta", `{"type":"message_delta","delta":{"stop_reason":`+str(a.stop)+`,"stop_sequence":null},"usage":{"output_tokens":`+fmt.Sprint(a.usage[1])+`}}`)
	ev("message_stop", `{"type":"message_stop"}`)
	return []byte(b.String())
}

func (w wire) chat(a answer, id string) []byte {
	var b strings.Builder
	chunk := func(delta, finish, tail string) {
		choices := `[{"index":0,"delta":` + delta + `,"finish_reason":` + finish + `}]`
		if delta == "" {
			choices = "[]"
		}
		b.WriteString(`data: {"id":` + str(id) + `,"object":"chat.completion.chunk","created":1,"model":"m","choices":` + choices + tail + `}` + w.eol + w.eol)
	}
	chunk(`{"role":"assistant","content":""}`, "null", "")
	if w.pings {
		b.WriteString(": waiting" + w.eol + w.eol)
	}
	n := 0
	for _, s := range a.blocks {
		switch s.typ {
		case "text":
			for _, p := range w.pieces(s.text) {
				chunk(`{"content":`+str(p)+`}`, "null", "")
			}
		case "thinking":
			for _, p := range w.pieces(s.text) {
				chunk(`{"reasoning_content":`+str(p)+`}`, "null", "")
			}
		case "tool_use":
			chunk(fmt.Sprintf(`{"tool_calls":[{"index":%d,"id":%s,"type":"function","function":{"name":%s,"arguments":""}}]}`, n, str(s.id), str(s.name)), "null", "")
			for _, p := range w.pieces(s.input) {
				chunk(fmt.Sprintf(`{"tool_calls":[{"index":%d,"function":{"arguments":%s}}]}`, n, str(p)), "null", "")
			}
			n++
		}
	}
	finish := map[string]string{"tool_use": "tool_calls", "end_turn": "stop", "max_tokens": "length"}[a.stop]
	chunk("{}", str(finish), "")
	chunk("", "", fmt.Sprintf(`,"usage":{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d,"prompt_tokens_details":{"cached_tokens":1},"cost":0.5}`, a.usage[0], a.usage[1], a.usage[0]+a.usage[1]))
	b.WriteString("data: [DONE]" + w.eol + w.eol)
	return []byte(b.String())
}

// whole is an answer in one piece.
func (a answer) whole(d Dialect, id string) []byte {
	var list []string
	content, calls := "", []string{}
	for i, s := range a.blocks {
		switch s.typ {
		case "text":
			list = append(list, `{"type":"text","text":`+str(s.text)+`}`)
			content += s.text
		case "thinking":
			list = append(list, `{"type":"thinking","thinking":`+str(s.text)+`,"signature":"sig/`+fmt.Sprint(i)+`"}`)
		case "redacted_thinking":
			list = append(list, `{"type":"redacted_thinking","data":"`+s.text+`"}`)
		case "server_tool_use":
			list = append(list, `{"type":"server_tool_use","id":"s1","name":"web_search","input":`+s.input+`}`)
		case "tool_use":
			list = append(list, `{"type":"tool_use","id":`+str(s.id)+`,"name":`+str(s.name)+`,"input":`+s.input+`}`)
			calls = append(calls, `{"id":`+str(s.id)+`,"type":"function","function":{"name":`+str(s.name)+`,"arguments":`+str(s.input)+`}}`)
		}
	}
	if d == Messages {
		return []byte(`{"id":` + str(id) + `,"type":"message","role":"assistant","model":"m","content":[` + strings.Join(list, ",") + `],"stop_reason":` + str(a.stop) +
			fmt.Sprintf(`,"stop_sequence":null,"usage":{"input_tokens":%d,"cache_read_input_tokens":3,"cache_creation":{"ephemeral_5m_input_tokens":2},"odd_tokens":1,"output_tokens":%d,"service_tier":"standard"}}`, a.usage[0], a.usage[1]))
	}
	message := `{"role":"assistant","content":` + str(content) + `}`
	if len(calls) > 0 {
		message = `{"role":"assistant","content":` + str(content) + `,"tool_calls":[` + strings.Join(calls, ",") + `]}`
	}
	finish := map[string]string{"tool_use": "tool_calls", "end_turn": "stop", "max_tokens": "length"}[a.stop]
	return []byte(`{"id":` + str(id) + `,"object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":` + message + `,"finish_reason":` + str(finish) +
		fmt.Sprintf(`}],"usage":{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d,"prompt_tokens_details":{"cached_tokens":1},"cost":0.5}}`, a.usage[0], a.usage[1], a.usage[0]+a.usage[1]))
}

// bodies are the legs on the wire.
func bodies(d Dialect, stream bool, w wire, legs []answer) (out [][]byte) {
	for i, a := range legs {
		id := fmt.Sprintf("id%d", i)
		switch {
		case !stream:
			out = append(out, a.whole(d, id))
		case d == Chat:
			out = append(out, w.chat(a, id))
		default:
			out = append(out, w.messages(a, id))
		}
	}
	return out
}

// run feeds the legs in the sizes that next gives, and continues as long as there is something to
// continue with.
func run(t testing.TB, o Options, legs [][]byte, next func() int) (string, Turn) {
	t.Helper()
	f := New(o)
	var out []byte
	for i, body := range legs {
		for len(body) > 0 {
			n := min(next(), len(body))
			p, err := f.Feed(body[:n])
			if err != nil {
				t.Fatal(err)
			}
			out, body = append(out, p...), body[n:]
		}
		if leg := f.EndLeg(); i+1 < len(legs) {
			if !leg.Again() {
				t.Fatalf("leg %d is not to be continued: %+v", i, leg)
			}
			f.Next()
		}
	}
	rest, turn := f.Finish()
	return string(append(out, rest...)), turn
}

func atOnce() int { return 1 << 30 }

// client is what a client reads: a reader of its own, which shares nothing with the filter.
type client struct {
	message tidemark.Message
	stop    string
	usage   map[string]any
	errors  int
	ended   bool
}

// readMessages reads a stream as a strict client does.
func readMessages(t testing.TB, out string) (c client) {
	t.Helper()
	c.message.Role = tidemark.Assistant
	var parts []*heard
	starts, open := 0, -1
	for _, data := range datas(out) {
		var e struct {
			Type    string
			Index   int
			Message map[string]any
			Block   map[string]any `json:"content_block"`
			Delta   map[string]any
			Usage   map[string]any
		}
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			t.Fatalf("%v in %s", err, data)
		}
		if c.ended {
			t.Fatalf("%s behind message_stop", data)
		}
		switch e.Type {
		case "message_start":
			starts++
			c.usage, _ = e.Message["usage"].(map[string]any)
		case "content_block_start":
			if e.Index != len(parts) || open >= 0 {
				t.Fatalf("block %d begins behind %d, open %d\n%s", e.Index, len(parts), open, out)
			}
			open = e.Index
			parts = append(parts, &heard{raw: e.Block, kind: fmt.Sprint(e.Block["type"])})
		case "content_block_delta":
			if e.Index != open {
				t.Fatalf("a delta of block %d, open is %d\n%s", e.Index, open, out)
			}
			p := parts[open]
			get := func(k string) string { s, _ := e.Delta[k].(string); return s }
			p.text += get("text") + get("thinking")
			p.sig += get("signature")
			p.in += get("partial_json")
		case "content_block_stop":
			if e.Index != open {
				t.Fatalf("block %d ends, open is %d", e.Index, open)
			}
			open = -1
		case "message_delta":
			c.stop, _ = e.Delta["stop_reason"].(string)
			for k, v := range e.Usage {
				c.usage[k] = v
			}
		case "message_stop":
			c.ended = true
		case "error":
			c.errors++
		}
	}
	if starts > 1 {
		t.Fatalf("%d message_start", starts)
	}
	for _, p := range parts {
		c.message.Content = append(c.message.Content, p.block(t, c.ended))
	}
	return c
}

// heard is a block as a client puts it together.
type heard struct {
	raw                 map[string]any
	text, sig, in, kind string
}

func (p *heard) block(t testing.TB, ended bool) (b tidemark.Block) {
	t.Helper()
	switch p.kind {
	case "text":
		p.raw["text"] = p.text
	case "thinking":
		p.raw["thinking"], p.raw["signature"] = p.text, p.sig
	case "tool_use", "server_tool_use":
		if p.in != "" && ended {
			p.raw["input"] = json.RawMessage(p.in)
		}
	}
	raw, err := json.Marshal(p.raw)
	if err == nil {
		err = json.Unmarshal(raw, &b)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// readChat reads the chunks of a stream as a strict client does.
func readChat(t testing.TB, out string) (c client) {
	t.Helper()
	c.message.Role = tidemark.Assistant
	type part struct{ id, name, args string }
	var calls []*part
	words, id := "", ""
	for _, data := range datas(out) {
		if data == "[DONE]" {
			c.ended = true
			continue
		}
		var e struct {
			ID      string
			Error   any
			Usage   map[string]any
			Choices []struct {
				Delta struct {
					Content   string
					ToolCalls []struct {
						Index    int
						ID       string
						Function struct{ Name, Arguments string }
					} `json:"tool_calls"`
				}
				Finish *string `json:"finish_reason"`
			}
		}
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			t.Fatalf("%v in %s", err, data)
		}
		if c.ended || id != "" && e.ID != id && e.Error == nil {
			t.Fatalf("chunk %s of another answer, or behind the end", data)
		}
		if e.Error != nil {
			c.errors++
			continue
		}
		id = e.ID
		if e.Usage != nil {
			c.usage = e.Usage
		}
		for _, ch := range e.Choices {
			words += ch.Delta.Content
			for _, k := range ch.Delta.ToolCalls {
				if k.Index == len(calls) {
					calls = append(calls, &part{id: k.ID, name: k.Function.Name})
				}
				if k.Index != len(calls)-1 {
					t.Fatalf("piece of call %d of %d", k.Index, len(calls))
				}
				calls[k.Index].args += k.Function.Arguments
			}
			if ch.Finish != nil {
				if c.stop != "" {
					t.Fatal("two finish reasons")
				}
				c.stop = *ch.Finish
			}
		}
	}
	if words != "" {
		c.message.Content = append(c.message.Content, tidemark.Text(words))
	}
	for _, k := range calls {
		c.message.Content = append(c.message.Content, tidemark.ToolUse(k.id, k.name, json.RawMessage(k.args)))
	}
	return c
}

// datas are the data of the events of a stream, several lines joined.
func datas(out string) (list []string) {
	out = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(strings.TrimPrefix(out, "\ufeff"))
	for ev := range strings.SplitSeq(out, "\n\n") {
		var lines []string
		for l := range strings.SplitSeq(ev, "\n") {
			if v, ok := strings.CutPrefix(l, "data:"); ok {
				lines = append(lines, strings.TrimPrefix(v, " "))
			}
		}
		if len(lines) > 0 {
			list = append(list, strings.Join(lines, "\n"))
		}
	}
	return list
}

// readWhole reads an answer in one piece.
func readWhole(t testing.TB, d Dialect, out string) (c client) {
	t.Helper()
	if d == Messages {
		var m struct {
			Stop  string `json:"stop_reason"`
			Usage map[string]any
		}
		if err := json.Unmarshal([]byte(out), &m); err != nil {
			t.Fatalf("%v in %s", err, out)
		}
		if err := json.Unmarshal([]byte(out), &c.message); err != nil {
			t.Fatalf("%v in %s", err, out)
		}
		c.stop, c.usage, c.ended = m.Stop, m.Usage, true
		return c
	}
	var m struct {
		ID      string
		Usage   map[string]any
		Choices []struct {
			Message struct {
				Content   string
				ToolCalls []struct {
					ID       string
					Function struct{ Name, Arguments string }
				} `json:"tool_calls"`
			}
			Finish string `json:"finish_reason"`
		}
	}
	if err := json.Unmarshal([]byte(out), &m); err != nil || len(m.Choices) != 1 {
		t.Fatalf("%v in %s", err, out)
	}
	c.message.Role, c.ended, c.stop, c.usage = tidemark.Assistant, true, m.Choices[0].Finish, m.Usage
	if s := m.Choices[0].Message.Content; s != "" {
		c.message.Content = append(c.message.Content, tidemark.Text(s))
	}
	for _, k := range m.Choices[0].Message.ToolCalls {
		c.message.Content = append(c.message.Content, tidemark.ToolUse(k.ID, k.Function.Name, json.RawMessage(k.Function.Arguments)))
	}
	return c
}

// read reads what came out.
func read(t testing.TB, d Dialect, stream bool, out string) client {
	t.Helper()
	switch {
	case !stream:
		return readWhole(t, d, out)
	case d == Chat:
		return readChat(t, out)
	}
	return readMessages(t, out)
}
