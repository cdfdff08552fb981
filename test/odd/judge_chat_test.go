package odd

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tidemark-ai/tidemark/internal/json"
)

// chatRequest reads one request of chat completions, as OpenAI takes them, or Workers AI.
type chatRequest struct {
	*judge
	asked
	open []string // calls of the assistant that are not answered yet
}

// chat holds a request against the rules of chat completions (https://platform.openai.com/docs/api-reference/chat/create).
func (j *judge) chat(m *model, body []byte) (*asked, *refusal) {
	r := &chatRequest{judge: j, asked: asked{model: m, body: body}}
	req, ok := members(body)
	if !ok {
		return &r.asked, &refusal{rule: "JSON", text: "We could not parse the JSON body of your request."}
	}
	known := []string{"model", "stream", "stream_options", "tools", "messages", "max_tokens", "max_completion_tokens", "temperature", "top_p", "stop"}
	limit := "max_completion_tokens"
	if m.dialect == workers {
		known, limit = []string{"stream", "tools", "messages", "max_tokens", "temperature", "top_p"}, "max_tokens"
	}
	if odd := extra(req, known...); odd != "" {
		return &r.asked, &refusal{rule: "extra", at: odd, text: "Unrecognized request argument supplied: " + odd}
	}
	if raw := req[limit]; raw != nil {
		n, ok := number(raw)
		switch {
		case !ok || n < 1:
			return &r.asked, &refusal{rule: "max_tokens", at: limit, text: fmt.Sprintf("Invalid '%s': integer below minimum value. Expected a value >= 1, but got %s instead.", limit, raw)}
		case n > m.most:
			return &r.asked, &refusal{rule: "max_tokens", at: limit, text: fmt.Sprintf("max_tokens is too large: %d. This model supports at most %d completion tokens, whereas you provided %d.", n, m.most, n)}
		}
		r.most = n
	}
	if no := r.tooling(req); no != nil {
		return &r.asked, no
	}
	l, ok := items(req["messages"])
	if !ok || len(l) == 0 {
		return &r.asked, &refusal{rule: "messages", at: "messages", text: "[] is too short - 'messages'"}
	}
	for i, raw := range l {
		if no := r.message(raw, fmt.Sprintf("messages[%d]", i), i); no != nil {
			return &r.asked, no
		}
	}
	if len(r.open) > 0 {
		return &r.asked, r.unanswered(len(l))
	}
	return &r.asked, r.weigh()
}

func (r *chatRequest) unanswered(i int) *refusal {
	return &refusal{rule: "pairs", at: fmt.Sprintf("messages.[%d].role", i), text: "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: " + strings.Join(r.open, ", ")}
}

// tooling reads the definitions: "A max of 128 functions are supported."
func (r *chatRequest) tooling(req map[string]json.RawMessage) *refusal {
	l, ok := items(req["tools"])
	switch {
	case req["tools"] == nil:
		return nil
	case !ok || len(l) == 0:
		return &refusal{rule: "tools", at: "tools", text: "[] is too short - 'tools'"}
	case len(l) > 128:
		return &refusal{rule: "128 tools", at: "tools", text: fmt.Sprintf("Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with length %d instead.", len(l))}
	}
	for i, raw := range l {
		at := fmt.Sprintf("tools[%d].function", i)
		m, _ := members(raw)
		f, _ := members(m["function"])
		name, _ := textOf(f["name"])
		if kind, _ := textOf(m["type"]); kind != "function" {
			return &refusal{rule: "tools", at: fmt.Sprintf("tools[%d].type", i), text: "Missing required parameter"}
		}
		if !toolName.MatchString(name) {
			return &refusal{rule: "name of a tool", at: at + ".name", text: fmt.Sprintf("Invalid '%s.name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.", at)}
		}
		if fault := r.schema(f["parameters"], true); fault != "" {
			return &refusal{rule: "schema", at: at + ".parameters", text: fmt.Sprintf("Invalid schema for function '%s': %s", name, fault)}
		}
		r.define(name, f["parameters"], at, raw)
	}
	return nil
}

// message holds a message against the rules.
func (r *chatRequest) message(raw []byte, at string, i int) *refusal {
	m, _ := members(raw)
	role, _ := textOf(m["role"])
	known := []string{"role", "content"}
	switch role {
	case "assistant":
		known = append(known, "tool_calls", "refusal")
	case "tool":
		known = append(known, "tool_call_id")
		if r.model.dialect == workers {
			known = append(known, "name")
		}
	case "user", "system":
	default:
		return &refusal{rule: "role", at: at + ".role", text: "Invalid value: '" + role + "'"}
	}
	if odd := extra(m, known...); odd != "" {
		return &refusal{rule: "extra", at: at + "." + odd, text: "Unknown parameter: '" + at + "." + odd + "'."}
	}
	if role != "tool" && len(r.open) > 0 {
		return r.unanswered(i)
	}
	r.prompt = ""
	switch role {
	case "assistant":
		return r.assistant(m, at)
	case "tool":
		return r.tool(m, at, raw)
	case "system":
		if text, ok := textOf(m["content"]); !ok || text == "" {
			return &refusal{rule: "content", at: at + ".content", text: "Invalid value for 'content': expected a string"}
		}
		return nil
	}
	return r.user(m, at, raw)
}

func (r *chatRequest) assistant(m map[string]json.RawMessage, at string) *refusal {
	text, isText := textOf(m["content"])
	calls, ok := items(m["tool_calls"])
	switch {
	case m["tool_calls"] != nil && (!ok || len(calls) == 0):
		return &refusal{rule: "tool_calls", at: at + ".tool_calls", text: "[] is too short - '" + at + ".tool_calls'"}
	case !isText && (len(calls) == 0 || string(m["content"]) != "null" || r.model.dialect == workers):
		return &refusal{rule: "content", at: at + ".content", text: "Invalid value for 'content': expected a string, got null."}
	case isText && text == "" && len(calls) == 0:
		return &refusal{rule: "content", at: at + ".content", text: "content must not be empty"}
	}
	if isText {
		r.pieces = append(r.pieces, piece{at + ".content", "text", m["content"]})
	}
	var ids []string
	for k, raw := range calls {
		c, _ := members(raw)
		f, _ := members(c["function"])
		id, _ := textOf(c["id"])
		name, _ := textOf(f["name"])
		args, isArgs := textOf(f["arguments"])
		kind, _ := textOf(c["type"])
		_, dict := members([]byte(args))
		on := fmt.Sprintf("%s.tool_calls[%d]", at, k)
		switch {
		case kind != "function":
			return &refusal{rule: "tool_calls", at: on + ".type", text: "Missing required parameter"}
		case id == "":
			return &refusal{rule: "id of a call", at: on + ".id", text: "Missing required parameter"}
		case len(id) > 40:
			return &refusal{rule: "id of a call", at: on + ".id", text: fmt.Sprintf("Invalid '%s.id': string too long. Expected a string with maximum length 40, but got a string with length %d instead.", on, len(id))}
		case slices.Contains(ids, id):
			return &refusal{rule: "id of a call", at: on + ".id", text: "Duplicate value for 'tool_call_id' of " + id}
		case !toolName.MatchString(name):
			return &refusal{rule: "name of a call", at: on + ".function.name", text: fmt.Sprintf("Invalid '%s.function.name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.", on)}
		case !isArgs || !dict:
			return &refusal{rule: "input of a call", at: on + ".function.arguments", text: "arguments must be a JSON object in a string"}
		}
		ids = append(ids, id)
		r.pieces = append(r.pieces, piece{on, "tool_use", raw})
	}
	r.open = ids
	r.calls = append(r.calls, ids...)
	return nil
}

func (r *chatRequest) tool(m map[string]json.RawMessage, at string, raw []byte) *refusal {
	id, _ := textOf(m["tool_call_id"])
	k := slices.Index(r.open, id)
	if k < 0 {
		return &refusal{rule: "pairs", at: at + ".role", text: "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."} //nolint:misspell // it is in their words
	}
	r.open = slices.Delete(r.open, k, k+1)
	text, ok := textOf(m["content"])
	if !ok || text == "" && r.model.dialect == workers {
		return &refusal{rule: "content", at: at + ".content", text: "Invalid value for 'content': expected a string"}
	}
	r.pieces = append(r.pieces, piece{at + ".content", "tool_result", raw})
	return nil
}

// user holds the content of a message of the user's against the rules.
func (r *chatRequest) user(m map[string]json.RawMessage, at string, raw []byte) *refusal {
	if text, ok := textOf(m["content"]); ok {
		if text == "" {
			return &refusal{rule: "content", at: at + ".content", text: "content must not be empty"}
		}
		r.prompt = text
		r.pieces = append(r.pieces, piece{at + ".content", "user", raw})
		return nil
	}
	parts, ok := items(m["content"])
	if !ok || len(parts) == 0 {
		return &refusal{rule: "content", at: at + ".content", text: "Invalid type for '" + at + ".content': expected one of a string or array of objects"}
	}
	for k, raw := range parts {
		p, _ := members(raw)
		on := fmt.Sprintf("%s.content[%d]", at, k)
		switch kind, _ := textOf(p["type"]); kind {
		case "text":
			text, ok := textOf(p["text"])
			if odd := extra(p, "type", "text"); !ok || text == "" || odd != "" {
				return &refusal{rule: "content", at: on, text: "Invalid value for '" + on + ".text'"}
			}
			r.prompt += text
			r.pieces = append(r.pieces, piece{on, "text", raw})
		case "image_url":
			r.pieces = append(r.pieces, piece{on, "image", raw})
			if no := r.picture(p, on); no != nil {
				return no
			}
		default:
			return &refusal{rule: "type of a block", at: on + ".type", text: "Invalid value: '" + kind + "'. Supported values are: 'text', 'image_url', 'input_audio', 'refusal', 'audio', and 'file'."}
		}
	}
	return nil
}

// picture holds a picture against the rules (https://platform.openai.com/docs/guides/images-vision). What it says of one
// that it cannot read names no place.
func (r *chatRequest) picture(p map[string]json.RawMessage, at string) *refusal {
	m, ok := members(p["image_url"])
	url, _ := textOf(m["url"])
	if odd := extra(m, "url", "detail"); !ok || odd != "" {
		return &refusal{rule: "extra", at: at + ".image_url", text: "Unknown parameter: '" + at + ".image_url." + odd + "'."}
	}
	r.pictures++
	media, data, inline := strings.Cut(strings.TrimPrefix(url, "data:"), ";base64,")
	switch {
	case inline && strings.HasPrefix(url, "data:"):
	case r.model.dialect != workers && (strings.HasPrefix(url, "https://") || strings.HasPrefix(url, "http://")):
		if r.gone(url) {
			return &refusal{text: "Error while downloading " + url + ".", placeless: true}
		}
		return nil
	default:
		return &refusal{rule: "address of a picture", at: at + ".image_url.url", text: "Invalid '" + at + ".image_url.url'. Expected a valid URL"}
	}
	r.hidden += len(data)
	s := r.look(data)
	switch {
	case s.is == "no base64":
		return &refusal{rule: "base64", at: at + ".image_url.url", text: "Invalid base64 image_url."}
	case s.is != media || !slices.Contains([]string{"image/png", "image/jpeg", "image/gif", "image/webp"}, s.is):
		return &refusal{rule: "type of a picture", text: "You uploaded an unsupported image. Please make sure your image has of one the following formats: ['png', 'jpeg', 'gif', 'webp'].", placeless: true}
	case s.broken:
		return &refusal{text: "The image data you provided does not represent a valid image. Please check your input and try again.", placeless: true}
	}
	return nil
}
