package tidemarktest

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// Workers AI (https://developers.cloudflare.com/workers-ai/models/) answers in three shapes, by model:
// flat, its own; choices, that of chat completions; or both at once. The path says which, or the
// vendor of the model, as in @cf/both/x:
//
//	POST /ai/{shape}/run/{model}   as its REST API
//	POST /ai/binding               as the binding of a Worker sends it, also through Miniflare's proxy
var (
	dialectWorkersAI        = dialect{key: openaiKey, decode: decodeWorkersAI, fail: failWorkersAI, events: workersaiEvents, whole: workersaiWhole}
	dialectWorkersAIBinding = dialect{key: openaiKey, decode: decodeBinding, fail: failBinding, events: workersaiEvents, whole: workersaiBare}
)

// decodeBinding reads {inputs, options}; the model is in a header.
func decodeBinding(c *APICall) error {
	for name, values := range c.Header {
		if own, ok := strings.CutPrefix(name, "Mf-Header-"); ok { // Miniflare's proxy
			c.Header[http.CanonicalHeaderKey(own)] = values
		}
	}
	var r struct {
		Inputs json.RawMessage `json:"inputs"`
	}
	if err := json.Unmarshal(c.Body, &r); err != nil || len(r.Inputs) == 0 {
		return fmt.Errorf("the request is no {inputs, options}: %w", err)
	}
	return decodeInputs(c, c.Header.Get("Cf-Consn-Model-Id"), r.Inputs)
}

func decodeWorkersAI(c *APICall) error {
	_, model, _ := strings.Cut(c.Path, "/run/")
	model, err := url.PathUnescape(model)
	if err != nil {
		return err
	}
	return decodeInputs(c, model, c.Body)
}

// decodeInputs reads the inputs of a model, which are stricter than chat completions.
func decodeInputs(c *APICall, model string, inputs []byte) error {
	var r openaiRequest
	if err := json.Unmarshal(inputs, &r); err != nil {
		return fmt.Errorf("the inputs are not valid: %w", err)
	}
	for i, m := range r.Messages {
		if len(m.Content) == 0 || string(m.Content) == "null" {
			return fmt.Errorf("messages[%d].content: null is not of type string", i)
		}
	}
	if r.MaxTokens <= 0 {
		r.MaxTokens = 256
	}
	r.Model, r.StreamOptions.IncludeUsage = model, true
	if err := fillOpenAI(c, r); err != nil {
		return err
	}
	for _, m := range c.Messages {
		for _, b := range m.Content {
			if raw := string(b.AppendJSON(nil)); b.Type == tidemark.TypeImage && strings.Contains(raw, `"type":"url"`) {
				return errors.New("image_url: not a data URL")
			}
		}
	}
	return nil
}

// workersaiCode gives the code and the words of a failure.
func workersaiCode(e apiFailure) (code, message string) {
	code, message = e.typ, e.message
	switch {
	case e.code == "context_length_exceeded":
		code, message = "5021", "AiError: "+strings.Replace(message, "prompt is too long", "this exceeded this model context window limit", 1)
	case e.typ == "invalid_request_error":
		code = "5006"
	case e.typ == "overloaded_error":
		code = "3040"
	case e.typ == "authentication_error":
		code = "10000"
	case code == "":
		code = strconv.Itoa(e.status)
	}
	if message == "" {
		message = "scripted failure " + strconv.Itoa(e.status)
	}
	return code, message
}

func failWorkersAI(w http.ResponseWriter, _ string, e apiFailure) {
	code, message := workersaiCode(e)
	writeJSON(w, e.status, string(mustJSON(map[string]any{"result": nil, "success": false, "messages": []any{},
		"errors": []any{map[string]any{"code": json.Number(code), "message": message}}})))
}

func failBinding(w http.ResponseWriter, _ string, e apiFailure) {
	code, message := workersaiCode(e)
	writeJSON(w, e.status, string(mustJSON(map[string]any{"internalCode": json.Number(code), "description": message, "name": "AiError"})))
}

// workersaiShape is flat, choices or both.
func workersaiShape(c APICall) string {
	from := strings.TrimPrefix(c.Path, "/ai/")
	if from == "binding" {
		_, from, _ = strings.Cut(c.Model, "/")
	}
	shape, _, _ := strings.Cut(from, "/")
	return shape
}

// flatCalls gives calls as older models do: whole, without ids, arguments as an object.
func flatCalls(s Step) []any {
	out := []any{}
	for _, t := range s.Calls {
		args := json.RawMessage(t.Input)
		if !json.Valid(args) {
			args = mustJSON(t.Input)
		}
		out = append(out, map[string]any{"name": t.Name, "arguments": args})
	}
	return out
}

// flatUsage shows a reply that met its bound by its figures alone: older models give no reason.
func flatUsage(c APICall, s Step) map[string]any {
	out := openaiUsage(s)
	if s.Stop == "max_tokens" {
		out["completion_tokens"] = c.MaxTokens
	}
	return out
}

func workersaiWhole(c APICall, s Step) []byte {
	return mustJSON(map[string]any{"result": json.RawMessage(workersaiBare(c, s)), "success": true, "errors": []any{}, "messages": []any{}})
}

func workersaiBare(c APICall, s Step) []byte {
	shape := workersaiShape(c)
	if shape == "choices" {
		return openaiWhole(c, s)
	}
	out := map[string]any{}
	if shape == "both" {
		if err := json.Unmarshal(openaiWhole(c, s), &out); err != nil {
			panic("tidemarktest: " + err.Error())
		}
	}
	out["response"], out["tool_calls"] = s.Text, flatCalls(s)
	if s.Stop == "refusal" {
		out["finish_reason"] = finishReasons[s.Stop]
	}
	if !s.NoUsage {
		out["usage"] = flatUsage(c, s)
	}
	return mustJSON(out)
}

// workersaiPad stands for the filler by which the service hides the lengths of tokens.
var workersaiPad = strings.Repeat("abcdefgh", 20)

func workersaiEvents(c APICall, s Step) [][]byte {
	switch workersaiShape(c) {
	case "choices":
		return openaiEvents(c, s)
	case "both":
		return bothEvents(c, s)
	}
	var out [][]byte
	emit := func(e map[string]any) {
		e["p"] = workersaiPad
		out = append(out, sseData("", mustJSON(e)))
	}
	for _, p := range cutPieces(s.Text, s.Piece) {
		emit(map[string]any{"response": p})
	}
	if len(s.Calls) > 0 {
		emit(map[string]any{"response": nil, "tool_calls": flatCalls(s)})
	}
	if s.MidError != "" {
		code, message := workersaiCode(apiFailure{typ: s.MidError})
		emit(map[string]any{"errors": []any{map[string]any{"code": json.Number(code), "message": message}}})
		return out
	}
	last := map[string]any{"response": "", "tool_calls": []any{}}
	if s.Stop == "refusal" {
		last["finish_reason"] = finishReasons[s.Stop]
	}
	if !s.NoUsage {
		last["usage"] = flatUsage(c, s)
	}
	emit(last)
	return append(out, []byte("data: [DONE]\n\n"))
}

// bothEvents adds to the chunks of chat completions what an older client reads, saying the same.
func bothEvents(c APICall, s Step) [][]byte {
	events := openaiEvents(c, s)
	for i, e := range events {
		data, ok := strings.CutPrefix(string(e), "data: {")
		if !ok {
			continue
		}
		var chunk struct {
			Choices []struct {
				Delta struct {
					Content   string            `json:"content"`
					ToolCalls []json.RawMessage `json:"tool_calls"`
				} `json:"delta"`
			} `json:"choices"`
		}
		if err := json.Unmarshal([]byte("{"+data), &chunk); err != nil {
			panic("tidemarktest: " + err.Error())
		}
		more := map[string]any{"response": "", "tool_calls": []any{}}
		if len(chunk.Choices) > 0 {
			more["response"] = chunk.Choices[0].Delta.Content
			more["tool_calls"] = append([]json.RawMessage{}, chunk.Choices[0].Delta.ToolCalls...)
		}
		events[i] = []byte("data: " + strings.TrimSuffix(string(mustJSON(more)), "}") + "," + data)
	}
	return events
}
