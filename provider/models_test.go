package provider

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	tidemark "github.com/tidemark-ai/tidemark"
)

// TestSizes has what servers say when a request exceeds the window: most of them name it, and how large the request was.
func TestSizes(t *testing.T) {
	for _, c := range []struct {
		who, text    string
		limit, asked tidemark.Tokens
	}{
		{"Anthropic", `prompt is too long: 213462 tokens > 200000 maximum`, 200_000, 213_462},
		{"Anthropic, with max_tokens", "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length or `max_tokens` and try again", 200_000, 188_240},
		{"Bedrock", `Input is too long for requested model.`, 0, 0},
		{"OpenAI", `This model's maximum context length is 8192 tokens. However, your messages resulted in 8545 tokens. Please reduce the length of the messages.`, 8192, 8545},
		{"OpenAI, with a reply", `This model's maximum context length is 8191 tokens, however you requested 10346 tokens (10341 in your prompt; 5 for the completion).`, 8191, 10_341},
		{"OpenAI Responses", `Your input exceeds the context window of this model. Please adjust your input and try again.`, 0, 0},
		{"OpenAI, a minute's", `Request too large for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, Requested 46821.`, 30_000, 0},
		{"Groq", "Request too large for model `llama-3.1-8b-instant` on tokens per minute (TPM): Limit 6000, Requested 9021, please reduce your message size", 6000, 0},
		{"OpenRouter", `This endpoint's maximum context length is 131072 tokens. However, you requested about 152311 tokens (140000 of text input, 311 of tool input, 12000 in the output).`, 131_072, 140_000},
		{"vLLM", `This model's maximum context length is 16384 tokens. However, you requested 122946 tokens (112946 in the messages, 10000 in the completion). Please reduce the length of the messages or completion.`, 16_384, 112_946},
		{"vLLM, of 2026", `This model's maximum context length is 4096 tokens. However, you requested 1000 output tokens and your prompt contains 5000 input tokens, for a total of 6000 tokens.`, 4096, 5000},
		{"vLLM, older", `The decoder prompt (length 9001) is longer than the maximum model length of 8192. Make sure that max_model_len is no smaller than the number of text tokens.`, 8192, 9001},
		{"vLLM, oldest", `Input prompt (9001 tokens) is too long and exceeds limit of 8192`, 8192, 9001},
		{"SGLang", `The input (9001 tokens) is longer than the model's context length (8192 tokens).`, 8192, 9001},
		{"SGLang, with a reply", `Requested token count exceeds the model's maximum context length of 8192 tokens. You requested a total of 9001 tokens: 8001 tokens from the input messages and 1000 tokens for the completion.`, 8192, 8001},
		{"llama.cpp", `request (9001 tokens) exceeds the available context size (8192 tokens), try increasing it`, 8192, 9001},
		{"LM Studio", `Trying to keep the first 111490 tokens when context the overflows. However, the model is loaded with context length of only 32768 tokens, which is not enough.`, 32_768, 111_490},
		{"TGI", "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens and 500 `max_new_tokens`", 4096, 5000},
		{"TGI, the input alone", "Input validation error: `inputs` must have less than 1024 tokens. Given: 1168", 1024, 1168},
		{"OpenAI, newer", "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 289650 tokens. Please reduce the length of the messages.", 272_000, 289_650},
		{"llama.cpp, older", "context shift is disabled", 0, 0},
		{"xAI", `This model's maximum prompt length is 131072 but the request contains 537812 tokens.`, 131_072, 537_812},
		{"Gemini", `The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).`, 1_048_575, 1_196_265},
		{"Mistral", `Prompt contains 150000 tokens and 0 draft tokens, too large for model with 131072 maximum context length`, 131_072, 150_000},
		{"Fireworks", `The prompt is too long: 140000, model maximum context length: 131071`, 131_071, 140_000},
		{"Workers AI", `The estimated number of input and maximum output tokens (9000) exceeded this model context window limit (7968).`, 7968, 0},
		{"Copilot", `prompt token count of 130001 exceeds the limit of 128000`, 128_000, 130_001},
		{"GitHub Models", `Request body too large for gpt-4o model. Max size: 8000 tokens.`, 8000, 0},
		{"a gateway", `Your prompt has 9,001 tokens, but the context window of this model is 8,192 tokens.`, 8192, 9001},
		{"Kimi", `Invalid request: Your request exceeded model token limit: 262,144 (requested: 300,000)`, 262_144, 0},
		{"Cohere", `too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 5001.`, 4081, 5001},
		{"Qwen", `<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 129024]`, 129_024, 0},
		{"MiniMax, whose number is a code", `invalid params, context window exceeds limit (2013)`, 0, 0},
		{"nonsense", `This model's maximum context length is 99999999999999999999 tokens.`, 0, 0},
	} {
		e := statusError(http.StatusBadRequest, http.Header{}, fmt.Appendf(nil, `{"error":{"message":%q}}`, c.text), "", time.Time{})
		if e.Class != tidemark.ClassOverflow || e.Limit != c.limit || e.Asked != c.asked {
			t.Errorf("%s: %s, limit %d, asked %d; want %d, %d", c.who, e.Class, e.Limit, e.Asked, c.limit, c.asked)
		}
	}
	e := statusError(http.StatusBadRequest, http.Header{}, []byte(`{"error":{"code":400,"message":"the request exceeds the available context size, try increasing it","type":"exceed_context_size_error","n_prompt_tokens":9001,"n_ctx":4096}}`), "", time.Time{})
	if e.Limit != 4096 || e.Asked != 9001 {
		t.Errorf("llama.cpp's fields: %+v", e)
	}
	if e := statusError(http.StatusTooManyRequests, http.Header{}, []byte(`{"error":{"message":"Rate limit reached: Limit 30000, Used 29000"}}`), "", time.Time{}); e.Limit != 0 {
		t.Errorf("a rate limit is a window of %d", e.Limit)
	}
}

// TestModelsWindow: endpoints tell the window of a model in forms and places of their own.
func TestModelsWindow(t *testing.T) {
	for _, c := range []struct {
		who   string
		paths map[string]string
		base  string // behind the server's address
		want  tidemark.Tokens
		from  tidemark.WindowFrom
	}{
		{"vLLM", map[string]string{"/v1/models": `{"data":[{"id":"m","max_model_len":16384}]}`}, "/v1", 16_384, tidemark.WindowEndpoint},
		{"OpenRouter", map[string]string{"/api/v1/models": `{"data":[{"id":"other","context_length":4096},{"id":"m","context_length":131072}]}`}, "/api/v1", 131_072, tidemark.WindowEndpoint},
		{"OpenRouter, an endpoint with less", map[string]string{"/api/v1/models": `{"data":[{"id":"m","context_length":32768,"top_provider":{"context_length":16000}}]}`}, "/api/v1", 16_000, tidemark.WindowEndpoint},
		{"Groq", map[string]string{"/v1/models": `{"data":[{"id":"m","context_window":8192},{"id":"n"}]}`}, "/v1", 8192, tidemark.WindowEndpoint},
		{"LM Studio", map[string]string{"/v1/models": `{"data":[{"id":"m"},{"id":"n"}]}`, "/api/v0/models": `{"data":[{"id":"m","max_context_length":131072,"loaded_context_length":4096}]}`}, "/v1", 4096, tidemark.WindowEndpoint},
		{"LM Studio, not loaded", map[string]string{"/v1/models": `{"data":[{"id":"m"},{"id":"n"}]}`, "/api/v0/models": `{"data":[{"id":"m","max_context_length":131072}]}`}, "/v1", 131_072, tidemark.WindowTrained},
		{"an absurd one", map[string]string{"/v1/models": `{"data":[{"id":"m"}]}`, "/props": `{"default_generation_settings":{"n_ctx":1e15}}`}, "/v1", 0, tidemark.WindowEndpoint},
		{"llama.cpp", map[string]string{"/v1/models": `{"data":[{"id":"/models/m.gguf","meta":{"n_ctx_train":131072}}]}`, "/props": `{"default_generation_settings":{"n_ctx":8192}}`}, "/v1", 8192, tidemark.WindowEndpoint},
		{"llama.cpp, of 2026", map[string]string{"/v1/models": `{"data":[{"id":"/models/m.gguf","meta":{"n_ctx_train":131072,"n_ctx":8192}}]}`}, "/v1", 8192, tidemark.WindowEndpoint},
		{"Ollama, loaded", map[string]string{"/v1/models": `{"data":[{"id":"m"},{"id":"n"}]}`, "/api/ps": `{"models":[{"name":"m:latest","context_length":4096}]}`}, "/v1", 4096, tidemark.WindowEndpoint},
		{"Ollama, set", map[string]string{"/v1/models": `{"data":[{"id":"m"},{"id":"n"}]}`, "/api/ps": `{"models":[]}`,
			"POST /api/show": `{"parameters":"stop \"<|end|>\"\nnum_ctx                        16384","model_info":{"llama.context_length":131072}}`}, "/v1", 16_384, tidemark.WindowEndpoint},
		{"Ollama, not loaded", map[string]string{"/v1/models": `{"data":[{"id":"m"}]}`, "/api/ps": `{}`, "POST /api/show": `{"model_info":{"general.architecture":"qwen3","qwen3.context_length":40960}}`}, "/v1", 40_960, tidemark.WindowTrained},
		{"another form", map[string]string{"/v1/models": `{"data":[{"id":7,"max_model_len":"16384"},{"id":"m","max_model_len":"16384.0","meta":[]}]}`}, "/v1", 16_384, tidemark.WindowEndpoint},
		{"no JSON", map[string]string{"/v1/models": `<html>`, "/props": `null`, "/api/ps": `[`}, "/v1", 0, tidemark.WindowEndpoint},
	} {
		t.Run(c.who, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				path := r.URL.Path
				if r.Method == http.MethodPost {
					path = "POST " + path
				}
				if body, ok := c.paths[path]; ok {
					fmt.Fprint(w, body)
					return
				}
				http.NotFound(w, r)
			}))
			t.Cleanup(server.Close)
			m := &Models{BaseURL: server.URL + c.base, Transport: http.DefaultTransport}
			if w, err := m.Window(t.Context(), "m"); w.Tokens != c.want || w.From != c.from || err != nil {
				t.Errorf("%+v, %v; want %d", w, err, c.want)
			}
		})
	}
	m := &Models{BaseURL: "http://127.0.0.1:1/v1", Transport: http.DefaultTransport}
	if n, err := m.Window(t.Context(), "m"); n.Tokens != 0 || err == nil {
		t.Errorf("nobody there: %+v, %v", n, err)
	}
	if n, err := (&Models{}).Window(t.Context(), "gpt-4o"); n.Tokens != 0 || err != nil {
		t.Errorf("a model that its maker has in the table is asked for: %+v, %v", n, err)
	}
}

// TestKnownWindow: the longest beginning counts, and routers put names before.
func TestKnownWindow(t *testing.T) {
	for model, want := range map[string]tidemark.Tokens{
		"gpt-4": 8192, "gpt-4-0613": 8192, "gpt-4o-mini": 128_000, "openai/gpt-4.1-mini": 1_047_576, "claude-sonnet-4-5-20250929": 200_000,
		"anthropic/claude-opus-4.8": 1_000_000, "claude-haiku-4-5": 200_000, "Claude-2.1": 200_000, "@cf/zai-org/glm-4.7-flash": 131_072, "@cf/x/y": 0, "llama3": 0, "": 0,
	} {
		if n := KnownWindow(model); n != want {
			t.Errorf("%s: %d, want %d", model, n, want)
		}
	}
}
