package provider

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	tidemark "github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// maxModels is how many bytes of a list of models are read; OpenRouter's has 500 KB.
const maxModels = 8 << 20

// Models says which models an endpoint has, and how large their windows are. Without Transport nobody is asked.
type Models struct {
	Anthropic bool   // it speaks the Messages API
	BaseURL   string // as [OpenAI] and [Anthropic] have it
	Key       string
	Transport http.RoundTripper
}

// Listed is a list of models as an endpoint gives it.
type Listed struct {
	Status int // of HTTP
	Names  []string
	Date   time.Time // of the answer, where it has one
	list   []listed
}

// listed is a model with what endpoints call its window. OpenRouter and Together have context_length, Groq
// context_window, Mistral and LM Studio max_context_length, Anthropic max_input_tokens.
type listed struct {
	ID      looseText `json:"id"`
	Running looseInt  `json:"max_model_len"`         // vLLM
	Loaded  looseInt  `json:"loaded_context_length"` // LM Studio
	Top     loose[struct {
		Length looseInt `json:"context_length"` // OpenRouter: of the endpoint that a request mostly goes to
	}] `json:"top_provider"`
	Window looseInt `json:"context_window"`
	Length looseInt `json:"context_length"`
	Most   looseInt `json:"max_context_length"`
	Input  looseInt `json:"max_input_tokens"`
	Meta   loose[struct {
		Running looseInt `json:"n_ctx"` // llama.cpp
	}] `json:"meta"`
}

func (l listed) tokens() tidemark.Tokens {
	for _, n := range []looseInt{l.Running, l.Loaded, l.Meta.is.Running, l.Top.is.Length, l.Window, l.Length, l.Most, l.Input} {
		if bounded(n) > 0 {
			return bounded(n)
		}
	}
	return 0
}

// bounded is a window, 0 for nonsense.
func bounded(n looseInt) tidemark.Tokens {
	if n.n <= 0 || n.n > maxLimit {
		return 0
	}
	return n.tokens()
}

// List asks for the list of models, as far as its first page goes; the error is of the network. Any status is an answer.
func (m *Models) List(ctx context.Context) (Listed, error) {
	path := m.base() + "/models"
	if m.Anthropic {
		path = m.base() + "/v1/models?limit=1000"
	}
	return m.listAt(ctx, path)
}

func (m *Models) listAt(ctx context.Context, url string) (out Listed, err error) {
	var body struct {
		Data []listed `json:"data"`
	}
	if out.Status, out.Date, err = m.get(ctx, url, nil, &body); err != nil {
		return out, fmt.Errorf("list models: %w", err)
	}
	for _, l := range body.Data {
		out.Names = append(out.Names, string(l.ID))
	}
	out.list = body.Data
	return out, nil
}

// find returns the window of a model of the list, 0 where it does not say.
func (l Listed) find(model string) tidemark.Tokens {
	for _, x := range l.list {
		if string(x.ID) == model {
			return x.tokens()
		}
	}
	if len(l.list) == 1 { // llama.cpp serves one model, whatever it is called
		return l.list[0].tokens()
	}
	return 0
}

// Window asks how many tokens a model takes as it runs now, 0 where the endpoint does not say: the list of models first,
// then what LM Studio, llama.cpp and Ollama tell beside it. What a model was trained with bounds what it may run with, and
// counts only where nobody says more than that.
func (m *Models) Window(ctx context.Context, model string) (tidemark.Window, error) {
	w := tidemark.Window{From: tidemark.WindowEndpoint}
	var trained tidemark.Tokens
	var err error
	if w.Tokens, trained, err = m.window(ctx, model); w.Tokens == 0 && trained > 0 {
		w = tidemark.Window{Tokens: trained, From: tidemark.WindowTrained}
	}
	return w, err
}

func (m *Models) window(ctx context.Context, model string) (running, trained tidemark.Tokens, err error) {
	if m.Transport == nil || m.BaseURL == "" && KnownWindow(model) > 0 {
		return 0, 0, nil // nobody can be asked, or need be
	}
	l, err := m.List(ctx)
	if err != nil || m.Anthropic {
		return l.find(model), 0, err
	}
	root := strings.TrimSuffix(m.base(), "/v1")
	if n := l.find(model); n > 0 || root == m.base() {
		return n, 0, nil
	}
	if l, err = m.listAt(ctx, root+"/api/v0/models"); err == nil { // LM Studio, which has what a model could take as well
		for _, x := range l.list {
			if string(x.ID) != model {
				continue
			}
			if n := bounded(x.Loaded); n > 0 {
				return n, 0, nil
			}
			trained = bounded(x.Most)
		}
	}
	var props struct {
		Settings struct {
			Context looseInt `json:"n_ctx"`
		} `json:"default_generation_settings"`
	}
	if _, _, err = m.get(ctx, root+"/props", nil, &props); err == nil && bounded(props.Settings.Context) > 0 { // llama.cpp
		return bounded(props.Settings.Context), 0, nil
	}
	running, other := m.ollama(ctx, root, model)
	return running, or(trained, other), nil
}

// ollama asks for the window of a model that is loaded, or that its Modelfile sets
// (https://github.com/ollama/ollama/blob/main/docs/api.md), and where that sets none, what it was trained with.
func (m *Models) ollama(ctx context.Context, root, model string) (runs, trained tidemark.Tokens) {
	var running struct {
		Models []struct {
			Name    string   `json:"name"`
			Model   string   `json:"model"`
			Context looseInt `json:"context_length"`
		} `json:"models"`
	}
	if _, _, err := m.get(ctx, root+"/api/ps", nil, &running); err != nil {
		return 0, 0
	}
	for _, r := range running.Models {
		if (r.Name == model || r.Model == model || r.Name == model+":latest") && bounded(r.Context) > 0 {
			return bounded(r.Context), 0
		}
	}
	var show struct {
		Parameters string                     `json:"parameters"`
		Info       map[string]json.RawMessage `json:"model_info"`
	}
	ask := append(json.AppendString([]byte(`{"model":`), model), '}')
	if _, _, err := m.get(ctx, root+"/api/show", ask, &show); err != nil {
		return 0, 0
	}
	for line := range strings.Lines(show.Parameters) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), " "); ok && name == "num_ctx" {
			return numberAt(`^\s*"?(\d+)`, value), 0
		}
	}
	return 0, numberAt(`^(\d+)$`, string(show.Info[scalar(show.Info["general.architecture"])+".context_length"]))
}

// Known is [KnownWindow].
func (m *Models) Known(model string) tidemark.Tokens { return KnownWindow(model) }

// Place names the endpoint, for what is remembered of it.
func (m *Models) Place() string { return m.base() }

func (m *Models) base() string {
	usual := openaiURL
	if m.Anthropic {
		usual = anthropicURL
	}
	return strings.TrimRight(or(m.BaseURL, usual), "/")
}

// get reads an answer of JSON; with a body it posts. What is no JSON, or another status, leaves out as it was.
func (m *Models) get(ctx context.Context, url string, body []byte, out any) (status int, date time.Time, err error) {
	method := http.MethodGet
	if body != nil {
		method = http.MethodPost
	}
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return 0, date, fmt.Errorf("the base URL is not a URL: %w", tidemark.ErrInvalid)
	}
	switch {
	case m.Anthropic:
		req.Header.Set("X-Api-Key", m.Key)
		req.Header.Set("Anthropic-Version", anthropicVersion)
	case m.Key != "":
		req.Header.Set("Authorization", "Bearer "+m.Key)
	}
	resp, err := m.Transport.RoundTrip(req)
	if err != nil {
		return 0, date, networkError(err.Error(), m.Key)
	}
	defer resp.Body.Close()
	date, _ = http.ParseTime(resp.Header.Get("Date")) // the zero time where there is none
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxModels))
	if err != nil {
		return 0, date, networkError(err.Error(), m.Key)
	}
	if resp.StatusCode == http.StatusOK {
		_ = json.Unmarshal(raw, out) // of another form it says nothing
	}
	return resp.StatusCode, date, nil
}

// windows are the windows of models by how their names begin, the longest beginning counts, as their makers had them in
// November 2026: https://docs.anthropic.com/en/docs/about-claude/models, https://platform.openai.com/docs/models,
// https://ai.google.dev/gemini-api/docs/models, https://api-docs.deepseek.com,
// https://developers.cloudflare.com/workers-ai/models.
var windows = map[string]tidemark.Tokens{
	"claude-": 200_000, "claude-opus-4-6": 1_000_000, "claude-opus-4-7": 1_000_000, "claude-opus-4-8": 1_000_000, "claude-opus-5": 1_000_000,
	"claude-sonnet-4-6": 1_000_000, "claude-sonnet-5": 1_000_000, "claude-2": 100_000, "claude-2.1": 200_000,
	"gpt-3.5-turbo": 16_385, "gpt-4": 8_192, "gpt-4-32k": 32_768, "gpt-4-turbo": 128_000, "gpt-4-1106": 128_000, "gpt-4-0125": 128_000, "gpt-4-vision": 128_000,
	"gpt-4o": 128_000, "chatgpt-4o": 128_000, "gpt-4.1": 1_047_576, "gpt-4.5": 128_000, "gpt-5": 400_000, "gpt-5-chat": 128_000,
	"gpt-oss": 131_072, "o1": 200_000, "o1-mini": 128_000, "o1-preview": 128_000, "o3": 200_000, "o4-mini": 200_000,
	"gemini-": 1_048_576, "deepseek-": 131_072, "mistral-large": 131_072, "mistral-small": 131_072, "codestral": 131_072,
	"grok-3": 131_072, "grok-4": 256_000, "kimi-k2": 262_144, "moonshot-v1-8k": 8_192, "moonshot-v1-32k": 32_768, "moonshot-v1-128k": 131_072,
	"@cf/zai-org/glm-4.7-flash": 131_072, "@cf/meta/llama-3.3-70b": 24_000, "@cf/meta/llama-3.1-8b-instruct": 7_968, "@cf/meta/llama-4-scout": 131_000,
	"@cf/mistralai/mistral-small-3.1": 128_000, "@cf/qwen/qwen3-30b": 32_768, "@cf/openai/gpt-oss": 128_000, "@hf/nousresearch/hermes-2-pro": 24_000,
}

// KnownWindow returns the window of a model as its maker has it, 0 for one that we do not know. A server may run a model
// with less.
func KnownWindow(model string) tidemark.Tokens {
	id := strings.ToLower(model)
	if !strings.HasPrefix(id, "@") {
		id = id[strings.LastIndexByte(id, '/')+1:] // anthropic/claude-…, of a router
	}
	if strings.HasPrefix(id, "claude-") && !strings.HasPrefix(id, "claude-2") {
		id = strings.ReplaceAll(id, ".", "-")
	}
	longest, tokens := "", tidemark.Tokens(0)
	for begins, n := range windows {
		if strings.HasPrefix(id, begins) && len(begins) > len(longest) {
			longest, tokens = begins, n
		}
	}
	return tokens
}
