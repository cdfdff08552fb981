package provider

import (
	"errors"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	tidemark "github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/internal/jsonscan"
)

const (
	maxErrorText  = 600            // of an API's own words that we pass on
	maxRetryAfter = 24 * time.Hour // more is nonsense
	maxLimit      = 100_000_000    // tokens; so is a larger window
)

// overflowTexts are pieces of what servers say when a request exceeds the window, and the numbers that they name. Anthropic
// advises not to match wording, but has no type of its own for it (https://docs.anthropic.com/en/api/errors), and of the
// others only OpenAI and llama.cpp have one.
var overflowTexts = [...]struct{ says, limit, asked string }{
	{"prompt is too long", `> ([\d,]+) maximum`, `too long: ([\d,]+)`},                              // Anthropic
	{"exceed context limit", `> ([\d,]+)`, `context limit: ([\d,]+)`},                               // Anthropic: input and max_tokens together
	{"input is too long", "", ""},                                                                   // Bedrock
	{"maximum context length", `(?:maximum context length(?: is| of|:)?|model with) ([\d,]+)`, ""},  // OpenAI, vLLM, SGLang, OpenRouter, Fireworks, Mistral
	{"longer than the maximum model length", `maximum model length of ([\d,]+)`, `length ([\d,]+)`}, // vLLM
	{"too long and exceeds limit", `exceeds limit of ([\d,]+)`, `prompt \(([\d,]+)`},                // vLLM
	{"longer than the model's context length", `context length \(([\d,]+)`, `input \(([\d,]+)`},     // SGLang
	{"exceeds the available context size", `context size \(([\d,]+)`, `request \(([\d,]+)`},         // llama.cpp
	{"exceed_context_size", "", ""},                                                                 // llama.cpp, its type
	{"context shift is disabled", "", ""},                                                           // llama.cpp, older, with 500: https://github.com/ggml-org/llama.cpp/pull/13577
	{"context size has been exceeded", "", ""},                                                      // llama.cpp, in the middle of an answer
	{"exceeds the context length", `context length(?: of| \()([\d,]+)`, ""},                         // Ollama
	{"exceeds maximum context length", `context length(?: of| \()([\d,]+)`, ""},                     // Ollama
	{"exceeded max context length", "", ""},                                                         // Ollama
	{"loaded with context length", `context length of only ([\d,]+)`, `first ([\d,]+) tokens`},      // LM Studio
	{"greater than the context length", `n_ctx: ([\d,]+)`, `n_keep: ([\d,]+)`},                      // LM Studio
	{"exceed the configured limit", `configured limit of ([\d,]+)`, ""},                             // OpenAI: https://github.com/cline/cline/issues/5474
	{"exceeds the context window", "", ""},                                                          // OpenAI Responses, LM Studio
	{"context window exceeded", "", ""},                                                             // LiteLLM
	{"context_window_exceeded", "", ""},                                                             // Anthropic's stop reason, proxies
	{"context_length_exceeded", "", ""},                                                             // OpenAI and its likes
	{"context length exceeded", "", ""},                                                             // Together, DeepInfra
	{"`inputs` must have less than", `less than ([\d,]+)`, `given: ([\d,]+)`},                       // TGI: https://github.com/huggingface/text-generation-inference/issues/695
	{"`max_new_tokens` must be <=", `must be <= ([\d,]+)`, `given: ([\d,]+)`},                       // TGI, Together
	{"maximum prompt length", `maximum prompt length is ([\d,]+)`, `contains ([\d,]+)`},             // xAI
	{"context window limit", `window limit \(([\d,]+)`, ""},                                         // Workers AI; the sum with the reply
	{"exceeds the maximum number of tokens", `tokens allowed \(([\d,]+)`, `token count \(([\d,]+)`}, // Gemini
	{"prompt token count of", `limit of ([\d,]+)`, `count of ([\d,]+)`},                             // Copilot
	{"exceeded model token limit", `token limit: ([\d,]+)`, ""},                                     // Kimi; the sum with the reply: https://platform.moonshot.cn/docs/guide/faq
	{"tokens in the prompt cannot exceed", `cannot exceed ([\d,]+)`, `received ([\d,]+)`},           // Cohere
	{"range of input length should be", `should be \[\d+, ?([\d,]+)\]`, ""},                         // Qwen
	{"context window exceeds limit", "", ""},                                                        // MiniMax
	{"prompt exceeds max length", "", ""},                                                           // GLM
	{"reduce the length of the messages", "", ""},                                                   // Groq; OpenAI, older
	{"request body too large for", `max size: ([\d,]+) tokens`, ""},                                 // GitHub Models, with 413
	{"context window of this model is", `this model is ([\d,]+)`, `has ([\d,]+) tokens`},
	{"request_too_large", "", ""},               // Anthropic: over 32 MB
	{"request too large", `limit ([\d,]+)`, ""}, // OpenAI and Groq: more than a minute's tokens at once, those of the reply among them
}

// askedTexts are what those who speak of a maximum context length call the size of a request. The sum with the reply is
// none: who takes it for one finds that nothing fits.
var askedTexts = [...]string{`([\d,]+) (?:tokens )?(?:in the messages|in your prompt|of text input|tokens from the input messages|input tokens)`,
	`resulted in ([\d,]+)`, `prompt contains ([\d,]+)`, `too long: ([\d,]+)`}

// boundTexts are what servers say when the bound on the reply is over what the model answers at most, and that number.
var boundTexts = [...]string{
	`> ([\d,]+), which is the maximum allowed number of output tokens`, // Anthropic
	`at most ([\d,]+) completion tokens`,                               // OpenAI
	`valid range of max_tokens is \[1, ?([\d,]+)\]`,                    // DeepSeek
	"`max_tokens` must be less than or equal to `([\\d,]+)`",           // Groq
}

// bounds are what models take, as refusals said: how many tokens they answer with at most, how many tools they have, and what
// they do not know. They are kept while the process runs, and for all conversations.
type bounds struct{ said sync.Map }

// fact names what is known of a model.
type fact struct{ model, of string }

// known is a number that was said of a model, 0 for none.
func (b *bounds) known(model, of string) int64 {
	n, _ := b.said.Load(fact{model, of})
	known, _ := n.(int64)
	return known
}

func (b *bounds) keep(model, of string, n int64) { b.said.Store(fact{model, of}, n) }

// What is known of a model beside its quirks.
const (
	mostReply = "reply" // tokens
	mostTools = "tools"
)

// within is the bound on a reply of a model, 0 for none.
func (b *bounds) within(model string, most tidemark.Tokens) tidemark.Tokens {
	if n := tidemark.Tokens(b.known(model, mostReply)); n > 0 && most > n {
		return n
	}
	return most
}

// toolsText is what OpenAI says where a request has more tools than it takes: "Invalid 'tools': array too long. Expected an array
// with maximum length 128, but got an array with length 150 instead."
const toolsText = `'tools': array too long\. expected an array with maximum length (\d+)`

// learnTools reports whether an error says that an endpoint takes fewer tools than it was sent, and keeps that.
func (b *bounds) learnTools(model string, err error) bool {
	var api *tidemark.APIError
	if !errors.As(err, &api) || api.Class != tidemark.ClassBadRequest {
		return false
	}
	n := int64(numberAt(toolsText, strings.ToLower(api.Message)))
	if known := b.known(model, mostTools); n == 0 || known > 0 && n >= known {
		return false
	}
	b.keep(model, mostTools, n)
	return true
}

// learn reports whether an error says of a model that it answers with less than was asked for, and keeps that.
func (b *bounds) learn(model string, asked tidemark.Tokens, err error) bool {
	var api *tidemark.APIError
	if !errors.As(err, &api) || api.Class != tidemark.ClassBadRequest {
		return false
	}
	for _, text := range boundTexts {
		if n := numberAt(text, strings.ToLower(api.Message)); n > 0 && n < asked {
			b.keep(model, mostReply, int64(n))
			return true
		}
	}
	return false
}

// overflows reports whether the words of an error say that the request exceeds the window.
func overflows(texts ...string) bool {
	for _, t := range texts {
		t = strings.ToLower(t)
		for _, o := range overflowTexts {
			if strings.Contains(t, o.says) {
				return true
			}
		}
	}
	return false
}

// sizes reads from the words of a refusal how large the window is and how large the request was, 0 for what they do not
// say. An expression is compiled when it is needed: most processes never do.
func sizes(message string) (limit, asked tidemark.Tokens) {
	message = strings.ToLower(message)
	for _, o := range overflowTexts {
		if !strings.Contains(message, o.says) {
			continue
		}
		if limit == 0 {
			limit = numberAt(o.limit, message)
		}
		for _, text := range append([]string{o.asked}, askedTexts[:]...) {
			if asked == 0 {
				asked = numberAt(text, message)
			}
		}
	}
	return limit, asked
}

func numberAt(pattern, text string) tidemark.Tokens {
	if pattern == "" {
		return 0
	}
	found := regexp.MustCompile(pattern).FindStringSubmatch(text)
	if found == nil {
		return 0
	}
	n, err := strconv.ParseInt(strings.ReplaceAll(found[1], ",", ""), 10, 64)
	if err != nil || n > maxLimit {
		return 0
	}
	return tidemark.Tokens(n)
}

// statusClasses are what statuses mean; further ones from 500 on are of an overloaded server, and others of a bad request.
var statusClasses = map[int]tidemark.Class{
	http.StatusUnauthorized: tidemark.ClassAuth, http.StatusPaymentRequired: tidemark.ClassAuth, http.StatusForbidden: tidemark.ClassAuth,
	http.StatusRequestTimeout: tidemark.ClassNetwork, http.StatusTooEarly: tidemark.ClassNetwork, http.StatusConflict: tidemark.ClassOverloaded,
	http.StatusRequestEntityTooLarge: tidemark.ClassOverflow, http.StatusTooManyRequests: tidemark.ClassRate, http.StatusNotImplemented: tidemark.ClassBadRequest,
}

// typeClasses are what the types of errors mean, by how they begin. Those that are sure count whatever the status is but
// one that says more, the others only within an answer that had begun.
var typeClasses = [...]struct {
	begins string
	class  tidemark.Class
	sure   bool
}{
	{"rate_limit_error", tidemark.ClassRate, true}, {"overloaded_error", tidemark.ClassOverloaded, true},
	{"rate_limit", tidemark.ClassRate, false}, {"invalid_request", tidemark.ClassBadRequest, false}, {"not_found_error", tidemark.ClassBadRequest, false},
	{"badrequesterror", tidemark.ClassBadRequest, false}, {"authentication", tidemark.ClassAuth, false}, {"permission", tidemark.ClassAuth, false},
	{"invalid_api_key", tidemark.ClassAuth, false},
}

// codeClasses are what the codes of Workers AI mean (https://developers.cloudflare.com/workers-ai/platform/errors/), which say
// more than its status.
var codeClasses = map[string]tidemark.Class{
	"3040": tidemark.ClassOverloaded,                             // no capacity, under 429
	"3036": tidemark.ClassAuth,                                   // the day's free allocation is used up, under 429: waiting a minute does not help
	"3007": tidemark.ClassNetwork, "3008": tidemark.ClassNetwork, // timeout, aborted
	"3006": tidemark.ClassOverflow, "5021": tidemark.ClassOverflow, // too large, over the window
	"3023": tidemark.ClassAuth, "3041": tidemark.ClassAuth, "5016": tidemark.ClassAuth, "5018": tidemark.ClassAuth, // account blocked, model not allowed, terms not agreed to
	"3003": tidemark.ClassBadRequest, "3039": tidemark.ClassBadRequest, "3042": tidemark.ClassBadRequest, "5004": tidemark.ClassBadRequest,
	"5005": tidemark.ClassBadRequest, "5006": tidemark.ClassBadRequest, codeNoModel: tidemark.ClassBadRequest, "5019": tidemark.ClassBadRequest,
}

// contentTexts are what some say of what stands in the messages, under the statuses of other failures.
var contentTexts = [...]struct {
	status int
	says   string
	class  tidemark.Class
}{
	{http.StatusForbidden, "requires moderation", tidemark.ClassRefusal},                                // OpenRouter
	{http.StatusInternalServerError, "image input is not supported", tidemark.ClassBadRequest},          // llama.cpp
	{http.StatusInternalServerError, "missing data required for image input", tidemark.ClassBadRequest}, // Ollama
}

// ofContent is the class of a failure that is for what stands in the messages, though its status says otherwise, "" for others.
func ofContent(status int, message string) tidemark.Class {
	message = strings.ToLower(message)
	for _, c := range contentTexts {
		if status == c.status && strings.Contains(message, c.says) {
			return c.class
		}
	}
	return ""
}

// filterTypes are in the types by which filters of content refuse. What they quote is no word of theirs.
var filterTypes = [...]string{"content_filter", "content_policy", "invalid_prompt", "data_inspection", "moderation"}

// filtered reports a refusal of a filter by its type.
func filtered(typ string) bool {
	return slices.ContainsFunc(filterTypes[:], func(f string) bool { return strings.Contains(strings.ToLower(typ), f) })
}

// classify sorts a failure. Status 0 or 200 is an error in the middle of a stream: what we do not know broke a running
// answer, which the same request may not do again.
func classify(status int, typ, message string) tidemark.Class {
	typ = strings.ToLower(typ)
	begun := status == 0 || status == http.StatusOK
	class := statusClasses[status]
	switch code, err := strconv.Atoi(typ); {
	case ofContent(status, message) != "":
		return ofContent(status, message)
	case overflows(typ, message) && !filtered(typ) && status != http.StatusUnauthorized && status != http.StatusForbidden:
		return tidemark.ClassOverflow
	case typ == "insufficient_quota" || typ == "billing_error" || strings.Contains(strings.ToLower(message), "credit balance is too low"):
		return tidemark.ClassAuth // waiting does not help, the owner can
	case begun && err == nil && code >= http.StatusBadRequest: // OpenRouter sends the status as code
		return classify(code, "", message)
	case class == tidemark.ClassAuth || class == tidemark.ClassOverflow || class == tidemark.ClassRate:
		return class
	}
	for _, t := range typeClasses {
		if (begun || t.sure) && strings.HasPrefix(typ, t.begins) {
			return t.class
		}
	}
	switch {
	case class != "":
		return class
	case begun || status >= http.StatusInternalServerError:
		return tidemark.ClassOverloaded
	}
	return tidemark.ClassBadRequest
}

// wireError is the error object of all dialects; see parseError.
type wireError struct {
	Type    string
	Message string
	ID      string
	Param   string
	Limit   tidemark.Tokens // the window, 0 where it is not a field
	Asked   tidemark.Tokens // the size of the request
}

// parseError reads what an API says of a failure: Anthropic's {"error":{"type","message"}}, OpenAI's
// {"error":{"message","type","code"}}, Ollama's {"error":"…"}, vLLM's {"message","type","code"},
// FastAPI's {"detail":…}, Workers AI's {"internalCode","description"} and {"errors":[{"code","message"}]},
// OpenRouter's {"error":{"message","code","metadata":{"raw"}}} with one of these as text;
// anything else is its own message.
func parseError(body []byte) wireError {
	var outer struct {
		Error     json.RawMessage `json:"error"`
		Detail    json.RawMessage `json:"detail"`
		Message   json.RawMessage `json:"message"`
		Type      json.RawMessage `json:"type"`
		Code      json.RawMessage `json:"code"`
		Param     json.RawMessage `json:"param"`
		RequestID looseName       `json:"request_id"`
		Internal  json.RawMessage `json:"internalCode"`
		Text      json.RawMessage `json:"description"`
		Context   looseInt        `json:"n_ctx"` // llama.cpp
		Prompt    looseInt        `json:"n_prompt_tokens"`
		Errors    json.RawMessage `json:"errors"`
		Metadata  json.RawMessage `json:"metadata"` // OpenRouter
	}
	if json.Unmarshal(body, &outer) != nil {
		return wireError{Message: strings.TrimSpace(string(body))}
	}
	switch {
	case len(outer.Error) > 0 && outer.Error[0] == '{':
		e := parseError(outer.Error)
		e.ID = string(outer.RequestID)
		return e
	case len(outer.Error) > 0 && outer.Error[0] == '"':
		return wireError{Message: scalar(outer.Error), ID: string(outer.RequestID)}
	case len(outer.Internal) > 0:
		return wireError{Type: scalar(outer.Internal), Message: scalar(outer.Text)}
	case len(outer.Message) > 0:
		typ := scalar(outer.Code) // the finer of the two, where there are both
		if typ == "" {
			typ = scalar(outer.Type)
		}
		e := wireError{Type: typ, Message: scalar(outer.Message), ID: string(outer.RequestID), Param: scalar(outer.Param),
			Limit: outer.Context.tokens(), Asked: outer.Prompt.tokens()}
		if raw := scalar(jsonscan.Find(outer.Metadata, "raw")); raw != "" { // what the server behind it said
			behind := parseError([]byte(raw))
			e.Message += ": " + behind.Message
			e.Param, e.Limit, e.Asked = or(e.Param, behind.Param), or(e.Limit, behind.Limit), or(e.Asked, behind.Asked)
		}
		return e
	case len(outer.Detail) > 0:
		return wireError{Message: scalar(outer.Detail)}
	}
	var list []struct {
		Code    json.RawMessage `json:"code"`
		Message json.RawMessage `json:"message"`
	}
	if json.Unmarshal(outer.Errors, &list) == nil && len(list) > 0 {
		return wireError{Type: scalar(list[0].Code), Message: scalar(list[0].Message)}
	}
	return wireError{Type: scalar(outer.Type), Message: strings.TrimSpace(string(body))}
}

// scalar returns the text of a JSON string, other JSON as written, and nothing for null.
func scalar(raw json.RawMessage) string {
	var s string
	if len(raw) == 0 || string(raw) == "null" {
		return ""
	}
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}

// statusError makes the error of an answer with a status that is not 200. The zero of now makes a
// date in Retry-After count from the answer's own Date.
func statusError(status int, h http.Header, body []byte, key string, now time.Time) *tidemark.APIError {
	w := parseError(body)
	if w.Message == "" {
		w.Message = http.StatusText(status)
	}
	if w.ID == "" {
		w.ID = requestID(h)
	}
	e := &tidemark.APIError{
		Class:      classify(status, w.Type, w.Message),
		Status:     status,
		Type:       redact(w.Type, key, 80),
		Message:    redact(w.Message, key, maxErrorText),
		RequestID:  redact(w.ID, key, 120),
		RetryAfter: retryAfter(h, now),
		Param:      redact(w.Param, key, 200),
	}
	w.overflow(e)
	// The SDKs of both APIs let this header decide over the status.
	switch h.Get("X-Should-Retry") {
	case "true":
		if e.Class == tidemark.ClassBadRequest {
			e.Class = tidemark.ClassOverloaded
		}
	case "false":
		if e.Transient() {
			e.Class = tidemark.ClassBadRequest
		}
	}
	return e
}

// streamError makes the error of an event in a stream that began with 200.
func streamError(body []byte, id, key string) *tidemark.APIError {
	w := parseError(body)
	if w.ID != "" {
		id = w.ID
	}
	e := &tidemark.APIError{
		Class:     classify(http.StatusOK, w.Type, w.Message),
		Status:    http.StatusOK,
		Type:      redact(w.Type, key, 80),
		Message:   redact(w.Message, key, maxErrorText),
		RequestID: redact(id, key, 120),
	}
	w.overflow(e)
	return e
}

// overflow adds what an error says of the window that the request exceeds.
func (w wireError) overflow(e *tidemark.APIError) {
	if n := namedLimit(w.Message); n > 0 && e.Class == tidemark.ClassBadRequest && !filtered(w.Type) {
		e.Class, w.Limit = tidemark.ClassOverflow, or(w.Limit, n)
	}
	if e.Class != tidemark.ClassOverflow {
		return
	}
	limit, asked := sizes(w.Message)
	e.Limit, e.Asked = or(w.Limit, limit), or(w.Asked, asked)
}

// networkError makes the error of an answer that did not come or was cut off.
func networkError(message, key string) *tidemark.APIError {
	return &tidemark.APIError{Class: tidemark.ClassNetwork, Message: redact(message, key, maxErrorText)}
}

// requestID finds the id that the API's support asks for.
func requestID(h http.Header) string {
	for _, name := range [...]string{"Request-Id", "X-Request-Id", "Cf-Ai-Req-Id", "Cf-Ray"} {
		if id := h.Get(name); id != "" {
			return id
		}
	}
	return ""
}

// retryAfter reads how long the API asks to wait: retry-after-ms, or Retry-After in seconds or as a
// date (https://www.rfc-editor.org/rfc/rfc9110#field.retry-after).
func retryAfter(h http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil {
		return bound(ms, time.Millisecond)
	}
	v := strings.TrimSpace(h.Get("Retry-After"))
	if s, err := strconv.ParseFloat(v, 64); err == nil {
		return bound(s, time.Second)
	}
	at, err := http.ParseTime(v)
	if err != nil {
		return 0
	}
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		now = date // both by the same clock
	}
	return min(max(at.Sub(now), 0), maxRetryAfter)
}

func bound(n float64, unit time.Duration) time.Duration {
	if !(n > 0) { // NaN too
		return 0
	}
	if n >= float64(maxRetryAfter/unit) {
		return maxRetryAfter
	}
	return time.Duration(n * float64(unit))
}
