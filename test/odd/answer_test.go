package odd

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"unicode/utf16"

	"github.com/tidemark-ai/tidemark/internal/json"
)

// said is a block of an answer.
type said struct {
	kind string // text, thinking, redacted_thinking, tool_use, or another
	text string
	seal string // signature of thinking, data of redacted thinking
	id   string // of a call, as JSON
	name string
	args string // of a call, as the model wrote them
	more string // further members, each with a comma before it
}

// answer is what a model says, before it is written in the form of an API.
type answer struct {
	blocks []said
	stop   string // as the Messages API has it
	denied string // message.refusal of chat completions
	usage  []string
	whole  bool // in one document, though a stream was asked for
	split  bool // texts come in many pieces, cut anywhere
	cut    int  // bytes that come before it breaks off; -1: all
	number func(n int) string
	spoken string // what a person must read when it is the last of a turn; empty: that is open
}

// text of an answer.
func (a answer) text() string {
	var parts []string
	for _, b := range a.blocks {
		if b.kind == "text" && strings.TrimSpace(b.text) != "" {
			parts = append(parts, b.text)
		}
	}
	return strings.Join(parts, "")
}

// calls reports an answer with calls of tools.
func (a answer) calls() bool {
	for _, b := range a.blocks {
		if b.kind == "tool_use" {
			return true
		}
	}
	return false
}

// plainNumber writes a number as everybody does.
func plainNumber(n int) string { return fmt.Sprint(n) }

// oddNumber writes a number as some servers do.
func oddNumber(r *rand.Rand) func(n int) string {
	return func(n int) string {
		switch r.IntN(4) {
		case 0:
			return fmt.Sprintf("%d.0", n)
		case 1:
			return fmt.Sprintf("%de0", n)
		case 2:
			return fmt.Sprintf(`"%d"`, n)
		}
		return fmt.Sprint(n)
	}
}

// quoted is a JSON string of UTF-16 units, of which the halves of a pair may stand alone.
func quoted(units []uint16) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := 0; i < len(units); i++ {
		u := rune(units[i])
		if utf16.IsSurrogate(u) {
			if i+1 < len(units) {
				if full := utf16.DecodeRune(u, rune(units[i+1])); full != 0xfffd {
					b.WriteRune(full)
					i++
					continue
				}
			}
			fmt.Fprintf(&b, `\u%04x`, u)
			continue
		}
		switch {
		case u == '"' || u == '\\':
			b.WriteByte('\\')
			b.WriteRune(u)
		case u < ' ':
			fmt.Fprintf(&b, `\u%04x`, u)
		default:
			b.WriteRune(u)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// deltas are the JSON strings in which a text comes.
func (a answer) deltas(r *rand.Rand, text string) []string {
	units := utf16.Encode([]rune(text))
	if !a.split {
		return []string{quoted(units)}
	}
	var out []string
	for len(units) > 0 {
		n := min(1+r.IntN(9), len(units))
		if len(units) > 400 {
			n = min(100+r.IntN(100), len(units))
		}
		out = append(out, quoted(units[:n]))
		units = units[n:]
	}
	return out
}

func jsonText(s string) string { return quoted(utf16.Encode([]rune(s))) }

// object is the members of a JSON object without its braces, each given as name and value; those without a value are
// left out.
func object(pairs ...string) string {
	var out []string
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			out = append(out, `"`+pairs[i]+`":`+pairs[i+1])
		}
	}
	return strings.Join(out, ",")
}

// messagesUsage is the usage of the Messages API.
func messagesUsage(input, output string) string {
	return "{" + object("input_tokens", input, "cache_read_input_tokens", "0", "output_tokens", output) + "}"
}

// block is one of the Messages API, whole.
func (s said) block() string {
	switch s.kind {
	case "text":
		return "{" + object("type", `"text"`, "text", jsonText(s.text)) + s.more + "}"
	case "thinking":
		return "{" + object("type", `"thinking"`, "thinking", jsonText(s.text), "signature", jsonText(s.seal)) + s.more + "}"
	case "redacted_thinking":
		return "{" + object("type", `"redacted_thinking"`, "data", jsonText(s.seal)) + s.more + "}"
	case "tool_use":
		args := s.args
		if !json.Valid([]byte(args)) {
			args = jsonText(args)
		}
		return "{" + object("type", `"tool_use"`, "id", s.id, "name", jsonText(s.name), "input", args) + s.more + "}"
	}
	return "{" + object("type", jsonText(s.kind)) + s.more + "}"
}

// messages writes an answer as the Messages API does (https://docs.anthropic.com/en/docs/build-with-claude/streaming).
func (a answer) messages(r *rand.Rand, model string) string {
	if a.whole {
		var blocks []string
		for _, b := range a.blocks {
			blocks = append(blocks, b.block())
		}
		return "{" + object("id", `"msg_1"`, "type", `"message"`, "role", `"assistant"`, "model", jsonText(model), "content", "["+strings.Join(blocks, ",")+"]",
			"stop_reason", jsonText(a.stop), "usage", messagesUsage(a.usage[0], a.usage[1])) + "}"
	}
	var b strings.Builder
	event := func(name, members string) {
		fmt.Fprintf(&b, "event: %s\ndata: {\"type\":\"%s\",%s}\n\n", name, name, members)
	}
	event("message_start", `"message":{`+object("id", `"msg_1"`, "type", `"message"`, "role", `"assistant"`, "model", jsonText(model), "content", "[]", "stop_reason", "null", "usage", messagesUsage(a.usage[0], a.number(1)))+"}")
	for i, s := range a.blocks {
		at := a.number(i)
		open := s
		open.text, open.seal, open.args = "", "", "{}"
		if s.kind == "redacted_thinking" {
			open.seal = s.seal
		}
		event("content_block_start", object("index", at, "content_block", open.block()))
		delta := func(kind, field, value string) {
			event("content_block_delta", object("index", at, "delta", "{"+object("type", jsonText(kind), field, value)+"}"))
		}
		switch s.kind {
		case "text":
			for _, d := range a.deltas(r, s.text) {
				delta("text_delta", "text", d)
			}
		case "thinking":
			for _, d := range a.deltas(r, s.text) {
				delta("thinking_delta", "thinking", d)
			}
			if s.seal != "" {
				delta("signature_delta", "signature", jsonText(s.seal))
			}
		case "tool_use":
			for _, d := range a.deltas(r, s.args) {
				delta("input_json_delta", "partial_json", d)
			}
		}
		event("content_block_stop", object("index", at))
	}
	event("message_delta", object("delta", "{"+object("stop_reason", jsonText(a.stop), "stop_sequence", "null")+"}", "usage", "{"+object("output_tokens", a.usage[1])+"}"))
	event("message_stop", `"x":1`)
	return b.String()
}

// finish is a stop reason as chat completions have it.
func (a answer) finish() string {
	switch a.stop {
	case "max_tokens":
		return "length"
	case "tool_use":
		return "tool_calls"
	case "refusal":
		return "content_filter"
	}
	return "stop"
}

func chatUsage(input, output string) string {
	return "{" + object("prompt_tokens", input, "completion_tokens", output, "total_tokens", input) + "}"
}

// chat writes an answer as chat completions do (https://platform.openai.com/docs/api-reference/chat-streaming).
func (a answer) chat(r *rand.Rand, model string) string {
	if a.whole {
		return a.wholeChat(model)
	}
	var b strings.Builder
	chunk := func(delta, finish string) {
		fmt.Fprintf(&b, "data: {%s}\n\n", object("id", `"chatcmpl-1"`, "object", `"chat.completion.chunk"`, "created", a.number(1), "model", jsonText(model),
			"choices", "[{"+object("index", a.number(0), "delta", "{"+delta+"}", "finish_reason", finish)+"}]"))
	}
	chunk(`"role":"assistant","content":""`, "null")
	n := 0
	for _, s := range a.blocks {
		switch s.kind {
		case "text":
			for _, d := range a.deltas(r, s.text) {
				chunk(`"content":`+d+s.more, "null")
			}
		case "thinking":
			for _, d := range a.deltas(r, s.text) {
				chunk(`"reasoning_content":`+d, "null")
			}
		case "tool_use":
			chunk(`"tool_calls":[{`+object("index", a.number(n), "id", s.id, "type", `"function"`, "function", "{"+object("name", jsonText(s.name), "arguments", `""`)+"}")+s.more+"}]", "null")
			for _, d := range a.deltas(r, s.args) {
				chunk(`"tool_calls":[{`+object("index", a.number(n), "function", "{"+object("arguments", d)+"}")+"}]", "null")
			}
			n++
		default:
			chunk(`"`+s.kind+`":{"x":1}`, "null")
		}
	}
	if a.denied != "" {
		for _, d := range a.deltas(r, a.denied) {
			chunk(`"refusal":`+d, "null")
		}
	}
	chunk("", jsonText(a.finish()))
	fmt.Fprintf(&b, "data: {%s}\n\n", object("id", `"chatcmpl-1"`, "model", jsonText(model), "choices", "[]", "usage", chatUsage(a.usage[0], a.usage[1])))
	b.WriteString("data: [DONE]\n\n")
	return b.String()
}

// wholeChat writes an answer in one document.
func (a answer) wholeChat(model string) string {
	content, thought := "null", ""
	var calls []string
	for _, s := range a.blocks {
		switch s.kind {
		case "text":
			content = jsonText(a.text())
		case "thinking":
			thought = jsonText(s.text)
		case "tool_use":
			calls = append(calls, "{"+object("id", s.id, "type", `"function"`, "function", "{"+object("name", jsonText(s.name), "arguments", jsonText(s.args))+"}")+s.more+"}")
		}
	}
	list := ""
	if len(calls) > 0 {
		list = "[" + strings.Join(calls, ",") + "]"
	}
	denied := ""
	if a.denied != "" {
		denied = jsonText(a.denied)
	}
	return "{" + object("id", `"chatcmpl-1"`, "object", `"chat.completion"`, "model", jsonText(model),
		"choices", "[{"+object("index", a.number(0), "message", "{"+object("role", `"assistant"`, "content", content, "reasoning_content", thought, "tool_calls", list, "refusal", denied)+"}", "finish_reason", jsonText(a.finish()))+"}]",
		"usage", chatUsage(a.usage[0], a.usage[1])) + "}"
}
