package odd

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tidemark-ai/tidemark/internal/json"
)

// messagesTurn are messages of one role that follow each other: the API reads them as one
// (https://docs.anthropic.com/en/api/messages).
type messagesTurn struct {
	role    string
	at      int // the first of them
	calls   []string
	results []string
	other   bool // something stood before a result
	first   string
}

// messagesRequest reads one request of the Messages API.
type messagesRequest struct {
	*judge
	asked
	marks int // of the cache
	turns []messagesTurn
	last  []string // types of the blocks of the last message
}

// messages holds a request against the rules of the Messages API.
func (j *judge) messages(m *model, body []byte) (*asked, *refusal) {
	r := &messagesRequest{judge: j, asked: asked{model: m, body: body}}
	req, ok := members(body)
	if !ok {
		return &r.asked, &refusal{rule: "JSON", text: "The request body is not valid JSON"}
	}
	if odd := extra(req, "model", "stream", "system", "tools", "messages", "max_tokens", "thinking", "temperature", "top_p", "stop_sequences"); odd != "" {
		return &r.asked, &refusal{rule: "extra", at: odd, text: "Extra inputs are not permitted"}
	}
	for _, step := range []func(map[string]json.RawMessage) *refusal{r.bounds, r.system, r.tooling, r.list, r.pairs, r.thinking} {
		if no := step(req); no != nil {
			return &r.asked, no
		}
	}
	if r.pictures > 100 {
		return &r.asked, &refusal{rule: "pictures", at: "messages", text: fmt.Sprintf("Too many images and documents: %d > 100", r.pictures)}
	}
	if r.marks > 4 { // https://docs.anthropic.com/en/docs/build-with-claude/prompt-caching
		return &r.asked, &refusal{rule: "cache_control", text: fmt.Sprintf("A maximum of 4 blocks with cache_control may be provided. Found %d.", r.marks)}
	}
	return &r.asked, r.weigh()
}

func (r *messagesRequest) bounds(req map[string]json.RawMessage) *refusal {
	n, ok := number(req["max_tokens"])
	switch {
	case !ok:
		return &refusal{rule: "max_tokens", at: "max_tokens", text: "Input should be a valid integer"}
	case n < 1:
		return &refusal{rule: "max_tokens", at: "max_tokens", text: "Input should be greater than or equal to 1"}
	case n > r.model.most:
		return &refusal{rule: "max_tokens", at: "max_tokens", text: fmt.Sprintf("%d > %d, which is the maximum allowed number of output tokens for %s", n, r.model.most, r.model.name)}
	}
	r.most = n
	if raw := req["thinking"]; raw != nil { // https://docs.anthropic.com/en/docs/build-with-claude/extended-thinking
		m, _ := members(raw)
		budget, ok := number(m["budget_tokens"])
		if !ok || budget < 1024 || budget >= n {
			return &refusal{rule: "budget_tokens", text: "`max_tokens` must be greater than `thinking.budget_tokens`"}
		}
	}
	return nil
}

func (r *messagesRequest) system(req map[string]json.RawMessage) *refusal {
	raw := req["system"]
	if raw == nil {
		return nil
	}
	if text, ok := textOf(raw); ok && text != "" {
		return nil
	}
	l, ok := items(raw)
	for i, b := range l {
		m, _ := members(b)
		text, _ := textOf(m["text"])
		if kind, _ := textOf(m["type"]); kind != "text" || text == "" {
			return &refusal{rule: "system", at: fmt.Sprintf("system.%d.text", i), text: "text content blocks must be non-empty"}
		}
		r.mark(m)
	}
	if !ok {
		return &refusal{rule: "system", at: "system", text: "Input should be a valid list"}
	}
	return nil
}

func (r *messagesRequest) mark(m map[string]json.RawMessage) {
	if m["cache_control"] != nil && string(m["cache_control"]) != "null" {
		r.marks++
	}
}

// tooling reads the definitions (https://docs.anthropic.com/en/docs/agents-and-tools/tool-use/implement-tool-use).
func (r *messagesRequest) tooling(req map[string]json.RawMessage) *refusal {
	l, ok := items(req["tools"])
	if req["tools"] != nil && !ok {
		return &refusal{rule: "tools", at: "tools", text: "Input should be a valid list"}
	}
	seen := map[string]bool{}
	for i, raw := range l {
		m, _ := members(raw)
		name, _ := textOf(m["name"])
		at := fmt.Sprintf("tools.%d.custom", i)
		if odd := extra(m, "name", "description", "input_schema", "cache_control", "type", "strict"); odd != "" {
			return &refusal{rule: "extra", at: at + "." + odd, text: "Extra inputs are not permitted"}
		}
		switch fault := r.schema(m["input_schema"], false); {
		case !toolName.MatchString(name):
			return &refusal{rule: "name of a tool", at: at + ".name", text: "String should match pattern '^[a-zA-Z0-9_-]{1,64}$'"}
		case seen[name]:
			return &refusal{rule: "name of a tool", at: "tools", text: "Tool names must be unique."}
		case fault != "":
			return &refusal{rule: "schema", at: at + ".input_schema", text: fault}
		}
		seen[name] = true
		r.mark(m)
		r.define(name, m["input_schema"], at, raw)
	}
	return nil
}

func (a *asked) define(name string, schema []byte, at string, raw []byte) {
	m, _ := members(schema)
	props, _ := members(m["properties"])
	a.tools = append(a.tools, definition{name, props})
	a.pieces = append(a.pieces, piece{at, "tool", raw})
}

// list reads the messages.
func (r *messagesRequest) list(req map[string]json.RawMessage) *refusal {
	l, ok := items(req["messages"])
	if !ok || len(l) == 0 {
		return &refusal{rule: "messages", at: "messages", text: "at least one message is required"}
	}
	for _, raw := range l {
		r.pictures += strings.Count(string(raw), `"type":"image"`)
	}
	for i, raw := range l {
		m, _ := members(raw)
		role, _ := textOf(m["role"])
		switch odd := extra(m, "role", "content"); {
		case odd != "":
			return &refusal{rule: "extra", at: fmt.Sprintf("messages.%d.%s", i, odd), text: "Extra inputs are not permitted"}
		case role != "user" && role != "assistant":
			return &refusal{rule: "role", at: "messages", text: fmt.Sprintf("Unexpected role %q", role)}
		case i == 0 && role != "user":
			return &refusal{rule: "role", at: "messages", text: "first message must use the \"user\" role"}
		}
		if n := len(r.turns); n == 0 || r.turns[n-1].role != role {
			r.turns = append(r.turns, messagesTurn{role: role, at: i})
		}
		blocks, ok := items(m["content"])
		if text, bare := textOf(m["content"]); bare {
			quoted, _ := json.Marshal(text) // of a string it does not fail
			blocks, ok = []json.RawMessage{[]byte(`{"type":"text","text":` + string(quoted) + `}`)}, true
		}
		if !ok || len(blocks) == 0 {
			return &refusal{rule: "empty message", at: fmt.Sprintf("messages.%d", i), text: "all messages must have non-empty content except for the optional final assistant message"}
		}
		r.last, r.prompt = r.last[:0], ""
		for k, b := range blocks {
			if no := r.block(role, b, fmt.Sprintf("messages.%d.content.%d", i, k), k == len(blocks)-1); no != nil {
				return no
			}
		}
	}
	return nil
}

// blockFields are what a block may have, by its type.
var blockFields = map[string][]string{
	"text":              {"type", "text", "citations", "cache_control"},
	"image":             {"type", "source", "cache_control"},
	"document":          {"type", "source", "title", "context", "citations", "cache_control"},
	"tool_use":          {"type", "id", "name", "input", "cache_control", "caller"},
	"tool_result":       {"type", "tool_use_id", "content", "is_error", "cache_control"},
	"thinking":          {"type", "thinking", "signature"},
	"redacted_thinking": {"type", "data"},
}

// block holds a block of a message against the rules.
func (r *messagesRequest) block(role string, raw []byte, at string, last bool) *refusal {
	m, ok := members(raw)
	kind, _ := textOf(m["type"])
	known := blockFields[kind]
	if !ok || known == nil && !r.kinds[kind] {
		return &refusal{rule: "type of a block", at: at, text: fmt.Sprintf("Input tag '%s' found using 'type' does not match any of the expected tags: 'document', 'image', 'redacted_thinking', 'search_result', 'text', 'thinking', 'tool_result', 'tool_use'", kind)}
	}
	for name := range m {
		if known != nil && !slices.Contains(known, name) && !r.fields[kind+"."+name] {
			return &refusal{rule: "extra", at: at + "." + kind + "." + name, text: "Extra inputs are not permitted"}
		}
	}
	r.mark(m)
	r.pieces = append(r.pieces, piece{at, kind, raw})
	r.last = append(r.last, kind)
	t := &r.turns[len(r.turns)-1]
	if t.first == "" {
		t.first = kind
	}
	if kind != "tool_result" {
		t.other = true
	}
	switch kind {
	case "text":
		text, ok := textOf(m["text"])
		if !ok || strings.TrimSpace(text) == "" {
			return &refusal{rule: "empty text", at: at, text: "text content blocks must contain non-whitespace text"}
		}
		r.prompt += text
	case "image", "document":
		return r.medium(kind, m, at)
	case "tool_use":
		return r.call(role, m, at, t)
	case "tool_result":
		return r.result(role, m, at, t)
	case "thinking", "redacted_thinking":
		return r.thought(role, kind, m, at, last)
	}
	return nil
}

func (r *messagesRequest) call(role string, m map[string]json.RawMessage, at string, t *messagesTurn) *refusal {
	id, _ := textOf(m["id"])
	name, _ := textOf(m["name"])
	_, dict := members(m["input"])
	switch {
	case role != "assistant":
		return &refusal{rule: "role", at: at, text: "`tool_use` blocks can only be in `assistant` messages"}
	case !messagesID.MatchString(id):
		return &refusal{rule: "id of a call", at: at + ".tool_use.id", text: "String should match pattern '^[a-zA-Z0-9_-]+$'"}
	case !longToolName.MatchString(name):
		return &refusal{rule: "name of a call", at: at + ".tool_use.name", text: "String should match pattern '^[a-zA-Z0-9_-]{1,128}$'"}
	case !dict:
		return &refusal{rule: "input of a call", at: at + ".tool_use.input", text: "Input should be a valid dictionary"}
	case slices.Contains(r.calls, id):
		return &refusal{rule: "id of a call", at: at, text: "`tool_use` ids must be unique"}
	}
	r.calls = append(r.calls, id)
	t.calls = append(t.calls, id)
	return nil
}

func (r *messagesRequest) result(role string, m map[string]json.RawMessage, at string, t *messagesTurn) *refusal {
	id, _ := textOf(m["tool_use_id"])
	switch {
	case role != "user":
		return &refusal{rule: "role", at: at, text: "`tool_result` blocks can only be in `user` messages"}
	case t.other: // https://docs.anthropic.com/en/docs/agents-and-tools/tool-use/handle-tool-calls
		return &refusal{rule: "results come first", at: at, text: "`tool_result` blocks must come first"}
	case slices.Contains(t.results, id):
		return &refusal{rule: "pairs", at: at, text: "each tool_use must have a single result. Found multiple `tool_result` blocks with id: " + id}
	}
	t.results = append(t.results, id)
	if _, ok := textOf(m["content"]); ok || m["content"] == nil {
		return nil
	}
	l, ok := items(m["content"])
	if !ok {
		return &refusal{rule: "result", at: at + ".tool_result.content", text: "Input should be a valid list"}
	}
	failed := string(m["is_error"]) == "true"
	for n, raw := range l {
		if no := r.inner(raw, fmt.Sprintf("%s.tool_result.content.%d", at, n), failed); no != nil {
			return no
		}
	}
	return nil
}

// inner holds a block within a result against the rules.
func (r *messagesRequest) inner(raw []byte, at string, failed bool) *refusal {
	m, _ := members(raw)
	kind, _ := textOf(m["type"])
	if kind != "text" && kind != "image" && kind != "document" {
		return &refusal{rule: "type in a result", at: at, text: fmt.Sprintf("Input tag '%s' found using 'type' does not match any of the expected tags: 'document', 'image', 'search_result', 'text'", kind)}
	}
	if odd := extra(m, blockFields[kind]...); odd != "" {
		return &refusal{rule: "extra", at: at + "." + kind + "." + odd, text: "Extra inputs are not permitted"}
	}
	r.mark(m)
	r.pieces = append(r.pieces, piece{at, kind, raw})
	if kind != "text" {
		if failed {
			return &refusal{rule: "failed results", at: at, text: "all content must be type `text` if `is_error` is true"}
		}
		return r.medium(kind, m, at)
	}
	if text, ok := textOf(m["text"]); !ok || strings.TrimSpace(text) == "" {
		return &refusal{rule: "empty text", at: at, text: "text content blocks must contain non-whitespace text"}
	}
	return nil
}

func (r *messagesRequest) thought(role, kind string, m map[string]json.RawMessage, at string, last bool) *refusal {
	if role != "assistant" {
		return &refusal{rule: "role", at: at, text: "`thinking` blocks can only be in `assistant` messages"}
	}
	if last {
		return &refusal{rule: "trailing thinking", at: at, text: "The final block in an assistant message cannot be `thinking`."}
	}
	if kind == "redacted_thinking" {
		if data, _ := textOf(m["data"]); !r.redacted[data] {
			return &refusal{rule: "signature", at: at + ".data", text: "Invalid `data` in `redacted_thinking` block"}
		}
		return nil
	}
	text, _ := textOf(m["thinking"])
	signature, _ := textOf(m["signature"])
	if was, ok := r.signed[signature]; !ok || was != text {
		return &refusal{rule: "signature", at: at, text: "Invalid `signature` in `thinking` block"}
	}
	return nil
}

// pairs holds calls against the results behind them.
func (r *messagesRequest) pairs(map[string]json.RawMessage) *refusal {
	var open []string
	for i, t := range r.turns {
		for _, id := range t.results {
			if !slices.Contains(open, id) {
				return &refusal{rule: "pairs", at: fmt.Sprintf("messages.%d.content.0", t.at), text: "unexpected `tool_use_id` found in `tool_result` blocks: " + id + ". Each `tool_result` block must have a corresponding `tool_use` block in the previous message."}
			}
		}
		for _, id := range open {
			if !slices.Contains(t.results, id) {
				return &refusal{rule: "pairs", at: fmt.Sprintf("messages.%d", r.turns[i-1].at), text: "`tool_use` ids were found without `tool_result` blocks immediately after: " + id + ". Each `tool_use` block must have a corresponding `tool_result` block in the next message."}
			}
		}
		open = t.calls
	}
	if len(open) > 0 {
		return &refusal{rule: "pairs", at: fmt.Sprintf("messages.%d", r.turns[len(r.turns)-1].at), text: "`tool_use` ids were found without `tool_result` blocks immediately after: " + open[0]}
	}
	return nil
}

// thinking: "When `thinking` is enabled, a final `assistant` message must start with a thinking block (preceding the
// lastmost set of `tool_use` and `tool_result` blocks)".
func (r *messagesRequest) thinking(req map[string]json.RawMessage) *refusal {
	n := len(r.turns)
	if last := r.turns[n-1]; last.role == "assistant" {
		text := strings.TrimRight(r.prompt, " \t\r\n")
		if r.last[len(r.last)-1] == "text" && text != r.prompt {
			return &refusal{rule: "trailing space", at: "messages", text: "final assistant content cannot end with trailing whitespace"}
		}
	}
	if req["thinking"] == nil || n < 2 || len(r.turns[n-1].results) == 0 {
		return nil
	}
	if t := r.turns[n-2]; t.first != "thinking" && t.first != "redacted_thinking" {
		return &refusal{rule: "thinking first", at: fmt.Sprintf("messages.%d.content.0.type", t.at), text: fmt.Sprintf("Expected `thinking` or `redacted_thinking`, but found `%s`. When `thinking` is enabled, a final `assistant` message must start with a thinking block", t.first)}
	}
	return nil
}
