package tidemarktest

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// dialectAnthropic is the Messages API, see https://docs.anthropic.com/en/api/messages.
var dialectAnthropic = dialect{key: anthropicKey, decode: decodeAnthropic, check: CheckAnthropic, fail: failAnthropic, events: anthropicEvents, whole: anthropicWhole}

// dialectCount counts the tokens of a Messages request.
var dialectCount = dialect{key: anthropicKey, decode: decodeCount, check: CheckAnthropic, fail: failAnthropic, count: true}

func anthropicKey(h http.Header) string { return h.Get("X-Api-Key") }

type anthropicRequest struct {
	Model     string             `json:"model"`
	MaxTokens tidemark.Tokens    `json:"max_tokens"`
	Stream    bool               `json:"stream"`
	System    json.RawMessage    `json:"system"`
	Tools     []tidemark.Tool    `json:"tools"`
	Messages  []tidemark.Message `json:"messages"`
}

func decodeAnthropic(c *APICall) error {
	if err := decodeCount(c); err != nil {
		return err
	}
	if c.Header.Get("Anthropic-Version") == "" {
		return errors.New("anthropic-version: header is required")
	}
	if c.MaxTokens < 1 {
		return errors.New("max_tokens: Field required")
	}
	units, err := cacheUnits(c.Body)
	if err != nil {
		return err
	}
	marked := 0
	for _, u := range units {
		if u.bad != "" {
			return errors.New(u.bad)
		}
		if u.marked {
			marked++
		}
	}
	if marked > 4 {
		return fmt.Errorf("a maximum of 4 blocks with cache_control may be provided, found %d", marked)
	}
	return nil
}

func decodeCount(c *APICall) error {
	var r anthropicRequest
	if err := json.Unmarshal(c.Body, &r); err != nil {
		return fmt.Errorf("the request is not valid: %w", err)
	}
	if r.Model == "" {
		return errors.New("model: Field required")
	}
	for _, t := range r.Tools {
		if t.Name == "" || len(t.InputSchema) == 0 {
			return errors.New("tools: name and input_schema are required")
		}
	}
	system, err := systemText(r.System)
	if err != nil {
		return err
	}
	c.Model, c.MaxTokens, c.Stream, c.System, c.Tools, c.Messages = r.Model, r.MaxTokens, r.Stream, system, r.Tools, r.Messages
	return nil
}

// systemText reads a system prompt: a string or a list of text blocks.
func systemText(raw json.RawMessage) (string, error) {
	if len(raw) == 0 {
		return "", nil
	}
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s, nil
	}
	var blocks []tidemark.Block
	if err := json.Unmarshal(raw, &blocks); err != nil {
		return "", fmt.Errorf("system: %w", err)
	}
	for _, b := range blocks {
		if b.Text == "" {
			return "", errors.New("system: text content blocks must be non-empty")
		}
		s += b.Text
	}
	return s, nil
}

// signature is what the fake signs thinking with, so that a changed block is found out.
func signature(thinking string) string {
	return "sig_" + string(tidemark.HashOf([]byte(thinking)))[:24]
}

// checkThinking refuses thinking whose signature is not of these words.
func checkThinking(messages []tidemark.Message) error {
	for i, m := range messages {
		for k, b := range m.Content {
			if b.Type == tidemark.TypeThinking && len(b.Signature) > 4 && b.Signature[:4] == "sig_" && b.Signature != signature(b.Text) {
				return fmt.Errorf("messages.%d.content.%d: Invalid `signature` in `thinking` block", i, k)
			}
		}
	}
	return nil
}

// anthropicTypes are the error types by status (https://docs.anthropic.com/en/api/errors).
var anthropicTypes = map[int]string{400: "invalid_request_error", 401: "authentication_error", 402: "billing_error", 403: "permission_error",
	404: "not_found_error", 413: "request_too_large", 429: "rate_limit_error", 500: "api_error", 504: "timeout_error", 529: "overloaded_error"}

func failAnthropic(w http.ResponseWriter, id string, e apiFailure) {
	typ := e.typ
	if typ == "" {
		typ = anthropicTypes[e.status]
	}
	if typ == "" {
		typ = "api_error"
	}
	message := e.message
	if message == "" {
		message = "scripted failure " + fmt.Sprint(e.status)
	}
	writeJSON(w, e.status, string(mustJSON(map[string]any{"type": "error", "error": map[string]string{"type": typ, "message": message}, "request_id": id})))
}

// replyBlocks returns the content of a reply.
func replyBlocks(s Step) []json.RawMessage {
	var out []json.RawMessage
	if s.Thinking != "" {
		out = append(out, mustJSON(struct {
			Type      string `json:"type"`
			Thinking  string `json:"thinking"`
			Signature string `json:"signature"`
		}{"thinking", s.Thinking, signature(s.Thinking)}))
	}
	if s.Text != "" {
		out = append(out, tidemark.Text(s.Text).AppendJSON(nil))
	}
	out = append(out, s.Blocks...)
	for _, c := range s.Calls {
		input := json.RawMessage(c.Input)
		if !json.Valid(input) {
			input = json.RawMessage("{}")
		}
		out = append(out, tidemark.ToolUse(c.ID, c.Name, input).AppendJSON(nil))
	}
	return out
}

func anthropicUsage(s Step, output tidemark.Tokens) map[string]tidemark.Tokens {
	return map[string]tidemark.Tokens{"input_tokens": s.Usage.Input, "cache_read_input_tokens": s.Usage.CacheRead,
		"cache_creation_input_tokens": s.Usage.CacheCreation, "output_tokens": output}
}

func anthropicMessage(c APICall, s Step, content []json.RawMessage, stop any, output tidemark.Tokens) map[string]any {
	if content == nil {
		content = []json.RawMessage{}
	}
	m := map[string]any{"id": fmt.Sprintf("msg_fake_%04d", c.N), "type": "message", "role": "assistant", "model": c.Model,
		"content": content, "stop_reason": stop, "stop_sequence": nil}
	if !s.NoUsage {
		m["usage"] = anthropicUsage(s, output)
	}
	return m
}

func anthropicWhole(c APICall, s Step) []byte {
	return mustJSON(anthropicMessage(c, s, replyBlocks(s), s.Stop, s.Usage.Output))
}

// anthropicEvents returns the stream of a reply, in the order of
// https://docs.anthropic.com/en/docs/build-with-claude/streaming.
func anthropicEvents(c APICall, s Step) [][]byte {
	var out [][]byte
	emit := func(name string, v map[string]any) {
		v["type"] = name
		out = append(out, sseData(name, mustJSON(v)))
	}
	emit("message_start", map[string]any{"message": anthropicMessage(c, s, nil, nil, 1)})
	emit("ping", map[string]any{})
	index := 0
	block := func(start any, deltas []map[string]any) {
		emit("content_block_start", map[string]any{"index": index, "content_block": start})
		for _, d := range deltas {
			emit("content_block_delta", map[string]any{"index": index, "delta": d})
		}
		emit("content_block_stop", map[string]any{"index": index})
		index++
	}
	if s.Thinking != "" {
		deltas := deltasOf("thinking_delta", "thinking", s.Thinking, s.Piece)
		deltas = append(deltas, map[string]any{"type": "signature_delta", "signature": signature(s.Thinking)})
		block(map[string]any{"type": "thinking", "thinking": "", "signature": ""}, deltas)
	}
	if s.Text != "" {
		block(map[string]any{"type": "text", "text": ""}, deltasOf("text_delta", "text", s.Text, s.Piece))
	}
	for _, raw := range s.Blocks {
		block(raw, nil)
	}
	for _, t := range s.Calls {
		block(map[string]any{"type": "tool_use", "id": t.ID, "name": t.Name, "input": map[string]any{}}, deltasOf("input_json_delta", "partial_json", t.Input, s.Piece))
	}
	if s.MidError != "" {
		emit("error", map[string]any{"error": map[string]string{"type": s.MidError, "message": "scripted failure"}})
		return out
	}
	end := map[string]any{"delta": map[string]any{"stop_reason": s.Stop, "stop_sequence": nil}}
	if !s.NoUsage {
		end["usage"] = anthropicUsage(s, s.Usage.Output)
	}
	emit("message_delta", end)
	emit("message_stop", map[string]any{})
	return out
}

func deltasOf(typ, field, text string, piece int) []map[string]any {
	var out []map[string]any
	for _, p := range cutPieces(text, piece) {
		out = append(out, map[string]any{"type": typ, field: p})
	}
	return out
}
