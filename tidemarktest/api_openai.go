package tidemarktest

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// dialectOpenAI is chat completions, see https://platform.openai.com/docs/api-reference/chat.
var dialectOpenAI = dialect{key: openaiKey, decode: decodeOpenAI, check: CheckChat, fail: failOpenAI, events: openaiEvents, whole: openaiWhole}

func openaiKey(h http.Header) string { return strings.TrimPrefix(h.Get("Authorization"), "Bearer ") }

type openaiRequest struct {
	Model         string          `json:"model"`
	MaxTokens     tidemark.Tokens `json:"max_tokens"`
	MaxCompletion tidemark.Tokens `json:"max_completion_tokens"`
	Stream        bool            `json:"stream"`
	StreamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	Tools []struct {
		Function struct {
			Name        string          `json:"name"`
			Description string          `json:"description"`
			Parameters  json.RawMessage `json:"parameters"`
		} `json:"function"`
	} `json:"tools"`
	Messages []openaiMessage `json:"messages"`
}

type openaiMessage struct {
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content"`
	ToolCallID string          `json:"tool_call_id"`
	ToolCalls  []struct {
		ID       string `json:"id"`
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
}

func decodeOpenAI(c *APICall) error {
	var r openaiRequest
	if err := json.Unmarshal(c.Body, &r); err != nil {
		return fmt.Errorf("the request is not valid: %w", err)
	}
	return fillOpenAI(c, r)
}

// fillOpenAI takes a decoded request over into the call.
func fillOpenAI(c *APICall, r openaiRequest) error {
	if r.Model == "" {
		return errors.New("you must provide a model parameter")
	}
	c.Model, c.Stream, c.MaxTokens = r.Model, r.Stream, max(r.MaxTokens, r.MaxCompletion)
	c.noUsage = r.Stream && !r.StreamOptions.IncludeUsage
	for _, t := range r.Tools {
		if t.Function.Name == "" {
			return errors.New("tools: function.name is required")
		}
		c.Tools = append(c.Tools, tidemark.Tool{Name: t.Function.Name, Description: t.Function.Description, InputSchema: t.Function.Parameters})
	}
	for i, m := range r.Messages {
		if err := convertOpenAI(c, m); err != nil {
			return fmt.Errorf("messages[%d]: %w", i, err)
		}
	}
	return nil
}

// convertOpenAI appends a message to those of the call.
func convertOpenAI(c *APICall, m openaiMessage) error {
	blocks, err := openaiContent(m.Content)
	if err != nil {
		return err
	}
	switch m.Role {
	case "system", "developer":
		for _, b := range blocks {
			c.System += b.Text
		}
	case "user":
		c.Messages = append(c.Messages, tidemark.Message{Role: tidemark.User, Content: blocks})
	case "assistant":
		for _, t := range m.ToolCalls {
			if !json.Valid([]byte(t.Function.Arguments)) {
				return fmt.Errorf("tool_calls: arguments of %q are not JSON", t.ID)
			}
			blocks = append(blocks, tidemark.ToolUse(t.ID, t.Function.Name, json.RawMessage(t.Function.Arguments)))
		}
		c.Messages = append(c.Messages, tidemark.Message{Role: tidemark.Assistant, Content: blocks})
	case "tool":
		result := tidemark.ToolResult(m.ToolCallID, joinText(blocks), false)
		last := len(c.Messages) - 1
		if last >= 0 && len(c.Messages[last].Results()) > 0 {
			c.Messages[last].Content = append(c.Messages[last].Content, result)
			return nil
		}
		c.Messages = append(c.Messages, tidemark.Message{Role: tidemark.User, Content: []tidemark.Block{result}})
	default:
		return fmt.Errorf("unknown role %q", m.Role)
	}
	return nil
}

// openaiContent reads a string or a list of parts.
func openaiContent(raw json.RawMessage) ([]tidemark.Block, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	var s string
	if json.Unmarshal(raw, &s) == nil {
		if s == "" {
			return nil, nil
		}
		return []tidemark.Block{tidemark.Text(s)}, nil
	}
	var parts []struct {
		Type     string `json:"type"`
		Text     string `json:"text"`
		ImageURL struct {
			URL string `json:"url"`
		} `json:"image_url"`
	}
	if err := json.Unmarshal(raw, &parts); err != nil {
		return nil, errors.New("content must be a string or a list of parts")
	}
	var out []tidemark.Block
	for _, p := range parts {
		switch p.Type {
		case "text":
			out = append(out, tidemark.Text(p.Text))
		case "image_url":
			var b tidemark.Block
			if err := b.UnmarshalJSON(mustJSON(map[string]any{"type": "image", "source": imageSource(p.ImageURL.URL)})); err != nil {
				return nil, err
			}
			out = append(out, b)
		default:
			return nil, fmt.Errorf("content part of unknown type %q", p.Type)
		}
	}
	return out, nil
}

func imageSource(u string) map[string]string {
	if rest, ok := strings.CutPrefix(u, "data:"); ok {
		head, data, _ := strings.Cut(rest, ",")
		return map[string]string{"type": "base64", "media_type": strings.TrimSuffix(head, ";base64"), "data": data}
	}
	return map[string]string{"type": "url", "url": u}
}

func joinText(blocks []tidemark.Block) string {
	var texts []string
	for _, b := range blocks {
		texts = append(texts, b.Text)
	}
	return strings.Join(texts, "\n")
}

func failOpenAI(w http.ResponseWriter, _ string, e apiFailure) {
	typ, message := e.typ, e.message
	if typ == "" {
		typ = map[int]string{400: "invalid_request_error", 401: "invalid_request_error", 429: "requests"}[e.status]
	}
	if typ == "" {
		typ = "server_error"
	}
	if message == "" {
		message = "scripted failure " + fmt.Sprint(e.status)
	}
	if e.code == "context_length_exceeded" {
		message = "This model's maximum context length was exceeded (" + message + "). Please reduce the length of the messages."
	}
	var code any
	if e.code != "" {
		code = e.code
	}
	writeJSON(w, e.status, string(mustJSON(map[string]any{"error": map[string]any{"message": message, "type": typ, "param": nil, "code": code}})))
}

// finishReasons are those of chat completions for the stop reasons of the Messages API.
var finishReasons = map[string]string{"end_turn": "stop", "stop_sequence": "stop", "max_tokens": "length", "tool_use": "tool_calls",
	"refusal": "content_filter", "model_context_window_exceeded": "length"}

func openaiUsage(s Step) map[string]any {
	prompt := s.Usage.Input + s.Usage.CacheRead + s.Usage.CacheCreation
	return map[string]any{"prompt_tokens": prompt, "completion_tokens": s.Usage.Output, "total_tokens": prompt + s.Usage.Output,
		"prompt_tokens_details":     map[string]any{"cached_tokens": s.Usage.CacheRead},
		"completion_tokens_details": map[string]any{"reasoning_tokens": 0}}
}

func openaiHead(c APICall, object string) map[string]any {
	return map[string]any{"id": fmt.Sprintf("chatcmpl-fake-%04d", c.N), "object": object, "created": 1767225600, "model": c.Model}
}

func openaiWhole(c APICall, s Step) []byte {
	m := map[string]any{"role": "assistant", "content": nil, "refusal": nil}
	if s.Text != "" {
		m["content"] = s.Text
	}
	if s.Thinking != "" {
		m["reasoning_content"] = s.Thinking
	}
	var calls []any
	for _, t := range s.Calls {
		calls = append(calls, map[string]any{"id": t.ID, "type": "function", "function": map[string]string{"name": t.Name, "arguments": t.Input}})
	}
	if calls != nil {
		m["tool_calls"] = calls
	}
	out := openaiHead(c, "chat.completion")
	out["choices"] = []any{map[string]any{"index": 0, "message": m, "logprobs": nil, "finish_reason": finishReasons[s.Stop]}}
	if !s.NoUsage {
		out["usage"] = openaiUsage(s)
	}
	return mustJSON(out)
}

// openaiEvents returns the stream of a reply
// (https://platform.openai.com/docs/api-reference/chat-streaming).
func openaiEvents(c APICall, s Step) [][]byte {
	var out [][]byte
	emit := func(delta map[string]any, finish any) {
		e := openaiHead(c, "chat.completion.chunk")
		e["choices"] = []any{map[string]any{"index": 0, "delta": delta, "logprobs": nil, "finish_reason": finish}}
		if !c.noUsage {
			e["usage"] = nil
		}
		out = append(out, sseData("", mustJSON(e)))
	}
	emit(map[string]any{"role": "assistant", "content": "", "refusal": nil}, nil)
	for _, p := range cutPieces(s.Thinking, s.Piece) {
		emit(map[string]any{"reasoning_content": p}, nil)
	}
	for _, p := range cutPieces(s.Text, s.Piece) {
		emit(map[string]any{"content": p}, nil)
	}
	for i, t := range s.Calls {
		emit(map[string]any{"tool_calls": []any{map[string]any{"index": i, "id": t.ID, "type": "function", "function": map[string]string{"name": t.Name, "arguments": ""}}}}, nil)
		for _, p := range cutPieces(t.Input, s.Piece) {
			emit(map[string]any{"tool_calls": []any{map[string]any{"index": i, "function": map[string]string{"arguments": p}}}}, nil)
		}
	}
	if s.MidError != "" {
		return append(out, sseData("", mustJSON(map[string]any{"error": map[string]any{"message": "scripted failure", "type": s.MidError, "code": nil}})))
	}
	emit(map[string]any{}, finishReasons[s.Stop])
	if !s.NoUsage && !c.noUsage {
		e := openaiHead(c, "chat.completion.chunk")
		e["choices"], e["usage"] = []any{}, openaiUsage(s)
		out = append(out, sseData("", mustJSON(e)))
	}
	return append(out, []byte("data: [DONE]\n\n"))
}
