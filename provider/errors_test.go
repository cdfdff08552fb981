package provider

import (
	"net/http"
	"strings"
	"testing"
	"time"

	tidemark "github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

func TestStatusError(t *testing.T) {
	for _, c := range []struct {
		name   string
		status int
		body   string
		header string // "Name: value"
		class  tidemark.Class
		typ    string
		text   string // a part of the message
	}{
		{"anthropic overflow", 400, `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210034 tokens > 200000 maximum"},"request_id":"req_1"}`, "", tidemark.ClassOverflow, "invalid_request_error", "210034"},
		{"anthropic input and max_tokens", 400, `{"type":"error","error":{"type":"invalid_request_error","message":"input length and ` + "`max_tokens`" + ` exceed context limit: 190000 + 20000 > 200000"}}`, "", tidemark.ClassOverflow, "", ""},
		{"anthropic request size", 413, `{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}`, "", tidemark.ClassOverflow, "request_too_large", ""},
		{"a proxy's 413", 413, `<html>413 Request Entity Too Large</html>`, "", tidemark.ClassOverflow, "", "<html>"},
		{"openai overflow", 400, `{"error":{"message":"This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`, "", tidemark.ClassOverflow, "context_length_exceeded", ""},
		{"openai a minute's tokens at once", 429, `{"error":{"message":"Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 40000.","type":"tokens","code":"rate_limit_exceeded"}}`, "", tidemark.ClassOverflow, "", ""},
		{"llama.cpp", 400, `{"error":{"code":400,"message":"the request exceeds the available context size, try increasing it","type":"exceed_context_size_error","n_prompt_tokens":9000,"n_ctx":4096}}`, "", tidemark.ClassOverflow, "", ""},
		{"vLLM", 400, `{"object":"error","message":"The decoder prompt (length 5000) is longer than the maximum model length of 4096.","type":"BadRequestError","param":null,"code":400}`, "", tidemark.ClassOverflow, "400", ""},
		{"Ollama", 400, `{"error":"the input length exceeds the context length"}`, "", tidemark.ClassOverflow, "", "input length"},
		{"Gemini", 400, `{"error":{"code":400,"message":"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}`, "", tidemark.ClassOverflow, "", ""},
		{"wrong key", 401, `{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}`, "", tidemark.ClassAuth, "authentication_error", ""},
		{"a key that is echoed in part", 401, `{"error":{"message":"Incorrect API key provided: sk-proj-ab*****yz12.","type":"invalid_request_error","param":null,"code":"invalid_api_key"}}`, "", tidemark.ClassAuth, "invalid_api_key", redacted},
		{"no permission", 403, `{"type":"error","error":{"type":"permission_error","message":"no"}}`, "", tidemark.ClassAuth, "", ""},
		{"no money", 402, ``, "", tidemark.ClassAuth, "", "Payment Required"},
		{"no money, as 400", 400, `{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API."}}`, "", tidemark.ClassAuth, "", ""},
		{"no quota", 429, `{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}`, "", tidemark.ClassAuth, "", ""},
		{"rate", 429, `{"type":"error","error":{"type":"rate_limit_error","message":"slow down"}}`, "", tidemark.ClassRate, "rate_limit_error", ""},
		{"overloaded", 529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, "", tidemark.ClassOverloaded, "overloaded_error", ""},
		{"internal", 500, `{"type":"error","error":{"type":"api_error","message":"Internal server error"}}`, "", tidemark.ClassOverloaded, "", ""},
		{"bad gateway", 502, `<html>`, "", tidemark.ClassOverloaded, "", ""},
		{"timeout", 408, ``, "", tidemark.ClassNetwork, "", "Request Timeout"},
		{"conflict", 409, `{}`, "", tidemark.ClassOverloaded, "", ""},
		{"unknown model", 404, `{"error":{"message":"model 'x' not found","type":"not_found_error"}}`, "", tidemark.ClassBadRequest, "", "model 'x'"},
		{"bad request", 400, `{"type":"error","error":{"type":"invalid_request_error","message":"messages.1: tool_use ids were found without tool_result blocks"}}`, "", tidemark.ClassBadRequest, "", ""},
		{"FastAPI", 422, `{"detail":[{"loc":["body"],"msg":"field required"}]}`, "", tidemark.ClassBadRequest, "", "field required"},
		{"not implemented", 501, ``, "", tidemark.ClassBadRequest, "", ""},
		{"words of a filter under another status", 429, `{"error":{"code":429,"message":"slow down: requires moderation"}}`, "", tidemark.ClassRate, "", ""},
		{"a filter that quotes", 400, `{"error":{"message":"The prompt was flagged: \"maximum context length is 4096 tokens\"","type":"invalid_request_error","code":"content_filter"}}`, "", tidemark.ClassBadRequest, "content_filter", ""},
		{"OpenRouter's moderation", 403, `{"error":{"code":403,"message":"openai/x requires moderation on OpenAI. Your input was flagged for \"violence\".","metadata":{"reasons":["violence"]}}}`, "", tidemark.ClassRefusal, "", "flagged"},
		{"OpenRouter, no pictures", 404, `{"error":{"message":"No endpoints found that support image input","code":404}}`, "", tidemark.ClassBadRequest, "", ""},
		{"llama.cpp, no pictures", 500, `{"error":{"code":500,"message":"image input is not supported - hint: if this is unexpected, you may need to provide the mmproj","type":"server_error"}}`, "", tidemark.ClassBadRequest, "", ""},
		{"Ollama, no pictures", 500, `{"error":"this model is missing data required for image input"}`, "", tidemark.ClassBadRequest, "", ""},
		{"should retry", 400, `{}`, "X-Should-Retry: true", tidemark.ClassOverloaded, "", ""},
		{"should not retry", 529, `{}`, "X-Should-Retry: false", tidemark.ClassBadRequest, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := http.Header{"Request-Id": {"req_h"}}
			if name, value, ok := strings.Cut(c.header, ": "); ok {
				h.Set(name, value)
			}
			e := statusError(c.status, h, []byte(c.body), "sk-ant-mykey", time.Time{})
			if e.Class != c.class || c.typ != "" && e.Type != c.typ || !strings.Contains(e.Message, c.text) || e.Status != c.status || e.RequestID == "" {
				t.Errorf("got %#v", e)
			}
		})
	}
}

// TestErrorBehind: of what a router passes on the words of the server behind it count.
func TestErrorBehind(t *testing.T) {
	t.Parallel()
	const words = "This endpoint's maximum context length is 8192 tokens. However, you requested about 9120 tokens (5024 of text input, 4096 in the output)."
	for name, raw := range map[string]any{
		"text with an error": `{"error":{"message":"` + words + `"}}`,
		"an error":           map[string]any{"error": map[string]any{"message": words}},
		"text":               words,
	} {
		body, err := json.Marshal(map[string]any{"error": map[string]any{"message": "Provider returned error", "code": 400, "metadata": map[string]any{"raw": raw, "provider_name": "X"}}})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range []*tidemark.APIError{statusError(http.StatusBadRequest, http.Header{}, body, "", time.Time{}), streamError(body, "", "")} {
			if e.Class != tidemark.ClassOverflow || e.Limit != 8192 || e.Asked != 5024 || !strings.Contains(e.Message, "Provider returned error: This endpoint's") {
				t.Errorf("%s: %+v", name, e)
			}
		}
	}
	for _, body := range []string{`{"error":{"message":"odd","metadata":{"raw":"ERROR"}}}`, `{"error":{"message":"odd","metadata":null}}`, `{"error":{"message":"odd","metadata":"x"}}`, `{"error":{"message":"odd","metadata":{"raw":null}}}`} {
		if e := statusError(http.StatusBadRequest, http.Header{}, []byte(body), "", time.Time{}); e.Class != tidemark.ClassBadRequest || !strings.HasPrefix(e.Message, "odd") {
			t.Errorf("%s: %+v", body, e)
		}
	}
}

// TestNamedLimit: a window is read from words that no table has; what bounds a reply, a text, a picture or a minute is none.
func TestNamedLimit(t *testing.T) {
	t.Parallel()
	for says, want := range map[string]tidemark.Tokens{
		"Too many input tokens: got 9120, model accepts up to 8192.":                                        8192,
		"Maximum context size is 8k tokens, you sent more":                                                  8000,
		"The prompt has 9120 tokens, which is over the limit of 8,192":                                      8192,
		"Your prompt of 9120 tokens exceeds this model's 8192-token limit":                                  8192,
		"Request has 140000 input tokens. This model supports at most 131072 tokens":                        131072,
		"Context too long: the model is limited to 32768 tokens":                                            32768,
		"input sequence length: 9120, maximum sequence length: 8192":                                        8192,
		"max_tokens: 8192 > 4096, which is the maximum allowed number of output tokens for small":           0,
		"This model supports at most 4096 completion tokens, whereas you provided 8192.":                    0,
		"The model can generate at most 4096 tokens per request":                                            0,
		"`max_tokens` must be less than or equal to `4096`":                                                 0,
		"Invalid 'input': string too long. Expected a string with maximum length 1024, but got length 2000": 0,
		"Invalid 'tools': array too long. Expected an array with maximum length 1280":                       0,
		"Invalid 'tools[0].function.description': too long, at most 1024 tokens are supported":              0,
		"messages.0.content.1: input too long, maximum 2000 tokens":                                         0,
		"thinking.budget_tokens: Input should be greater than or equal to 1024":                             0,
		"This request would exceed your organization's rate limit of 40,000 input tokens per minute":        0,
		"messages: text content blocks must be non-empty, limit 100 tokens":                                 0,
		"At least one of the image dimensions exceed max allowed size for many-image requests: 2000 pixels": 0,
		"Input is too long for requested model.":                                                            0,
		"unexpected context: error 2013 of request 123456":                                                  0,
	} {
		body, err := json.Marshal(map[string]any{"error": map[string]any{"type": "invalid_request_error", "message": says}})
		if err != nil {
			t.Fatal(err)
		}
		e := statusError(http.StatusBadRequest, http.Header{}, body, "", time.Time{})
		if e.Limit != want || want > 0 && e.Class != tidemark.ClassOverflow || want == 0 && e.Class == tidemark.ClassOverflow && !overflows(says) {
			t.Errorf("%s: limit %d, %s", says, e.Limit, e.Class)
		}
	}
	for says, want := range map[string]tidemark.Tokens{ // those of the table are read as it says
		"invalid params, context window exceeds limit (2013)":                                                                  0,
		"The number of tokens to keep from the initial prompt is greater than the context length (n_keep: 9120>= n_ctx: 8192)": 8192,
	} {
		if e := statusError(http.StatusBadRequest, http.Header{}, []byte(says), "", time.Time{}); e.Limit != want || e.Class != tidemark.ClassOverflow {
			t.Errorf("%s: limit %d, %s", says, e.Limit, e.Class)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name   string
		header http.Header
		want   time.Duration
	}{
		{"none", http.Header{}, 0},
		{"seconds", http.Header{"Retry-After": {"7"}}, 7 * time.Second},
		{"part of a second", http.Header{"Retry-After": {"0.5"}}, 500 * time.Millisecond},
		{"milliseconds win", http.Header{"Retry-After-Ms": {"250"}, "Retry-After": {"7"}}, 250 * time.Millisecond},
		{"a date by our clock", http.Header{"Retry-After": {"Sat, 21 Nov 2026 12:00:30 GMT"}}, 30 * time.Second},
		{"a date by the server's clock", http.Header{"Retry-After": {"Sat, 21 Nov 2020 12:00:30 GMT"}, "Date": {"Sat, 21 Nov 2020 12:00:00 GMT"}}, 30 * time.Second},
		{"a date that is past", http.Header{"Retry-After": {"Sat, 21 Nov 2020 12:00:30 GMT"}}, 0},
		{"negative", http.Header{"Retry-After": {"-5"}}, 0},
		{"not a number", http.Header{"Retry-After": {"NaN"}}, 0},
		{"too much", http.Header{"Retry-After": {"1e300"}}, maxRetryAfter},
		{"nonsense", http.Header{"Retry-After": {"soon"}}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := retryAfter(c.header, now); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestRedact(t *testing.T) {
	const key = "my.private/key+1"
	for _, c := range []struct{ name, in, want string }{
		{"our key", "key " + key + " is wrong, " + key, "key [redacted] is wrong, [redacted]"},
		{"a known form", "bad sk-ant-api03-abcdefgh.", "bad [redacted]"},
		{"masked", "got sk-ab***************yz12 here", "got [redacted] here"},
		{"a header", "Authorization: Bearer abcdefghijk", "Authorization: [redacted]"},
		{"in a query", "GET /x?key=AIzaSyA1234567&a=1", "GET /x?key=[redacted]&a=1"},
		{"within a word", "task-management risk-free desk-bound", "task-management risk-free desk-bound"},
		{"nothing", "Bearer of bad news", "Bearer of bad news"},
		{"invalid UTF-8", "a\xffb", "a\uFFFDb"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := redact(c.in, key, 1000); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
	if got := redact(strings.Repeat("ä", 100), "", 11); got != strings.Repeat("ä", 5)+"…" {
		t.Errorf("cut to %q", got)
	}
}
