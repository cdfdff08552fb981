package worker

import (
	"net/http"
	"strings"
)

// errorForm is the form in which a door tells a failure.
type errorForm int

const (
	native    errorForm = iota // docs/http.md
	openAI                     // https://platform.openai.com/docs/guides/error-codes
	anthropic                  // https://docs.anthropic.com/en/api/errors
	jsonRPC                    // https://www.jsonrpc.org/specification#error_object
)

// errorFormOf says which one a path is of. build/doors.mjs says the same, by testdata/doors.json.
func errorFormOf(r *http.Request) errorForm {
	path := r.URL.EscapedPath()
	if rest, ok := beyond(path); ok {
		if ofOpenAI(rest, r.Header) {
			return openAI
		}
		return anthropic
	}
	if strings.HasPrefix(path, "/s/") {
		_, rest, _ := strings.Cut(path[len("/s/"):], "/")
		path = "/" + rest
	}
	switch {
	case path == "/v1/messages", strings.HasPrefix(path, "/v1/messages/"):
		return anthropic
	case path == "/v1/chat/completions":
		return openAI
	case path == "/mcp":
		return jsonRPC
	case path == "/v1/models", strings.HasPrefix(path, "/v1/models/"):
		if r.Header.Get("Anthropic-Version") != "" {
			return anthropic
		}
		return openAI
	}
	return native
}

// word is what a failure is called in another API.
type word struct {
	status int // 0: as here
	kind   string
	code   string // OpenAI only; empty: the type here
}

// openAIWords and anthropicWords name failures by their type here. What they do not name goes by its
// status, in the tables behind.
var (
	openAIWords = map[string]word{
		"unauthorized": {0, "invalid_request_error", "invalid_api_key"},
		"overflow":     {http.StatusBadRequest, "invalid_request_error", "context_length_exceeded"},
		"bad_request":  {http.StatusBadRequest, "invalid_request_error", "bad_request"},
		"refusal":      {http.StatusBadRequest, "invalid_request_error", "content_filter"},
		"rate":         {0, "requests", "rate_limit_exceeded"},
		"invalid":      {0, "invalid_request_error", "invalid_value"},
	}
	anthropicWords = map[string]word{
		"overflow":    {http.StatusBadRequest, "invalid_request_error", ""},
		"bad_request": {http.StatusBadRequest, "invalid_request_error", ""},
		"refusal":     {http.StatusBadRequest, "invalid_request_error", ""},
		"busy":        {statusOverloaded, "overloaded_error", ""},
		"overloaded":  {statusOverloaded, "overloaded_error", ""},
		"unavailable": {statusOverloaded, "overloaded_error", ""},
	}
	anthropicStatuses = map[int]string{
		http.StatusUnauthorized: "authentication_error", http.StatusForbidden: "permission_error", http.StatusNotFound: "not_found_error",
		http.StatusRequestEntityTooLarge: "request_too_large", http.StatusTooManyRequests: "rate_limit_error", http.StatusGatewayTimeout: "timeout_error",
	}
)

// statusOverloaded is the Messages API's own.
const statusOverloaded = 529

// Forms of an error.
type (
	openAIError struct {
		Error openAIFault `json:"error"`
	}
	openAIFault struct {
		Message string  `json:"message"`
		Type    string  `json:"type"`
		Param   *string `json:"param"`
		Code    string  `json:"code"`
	}
	anthropicError struct {
		Type      string         `json:"type"`
		Error     anthropicFault `json:"error"`
		RequestID string         `json:"request_id"`
	}
	anthropicFault struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	}
)

// put gives the status and the body of a failure. Clients of both APIs may try again by themselves, as a
// header says: what was durable when it failed was tried already, and would be said twice.
func (t errorForm) put(f failure, a *answer) (status int, body any) {
	switch t {
	case openAI:
		w, ok := openAIWords[f.kind]
		if !ok {
			if w.kind = "invalid_request_error"; f.status >= http.StatusInternalServerError {
				w.kind = "server_error"
			}
		}
		if w.code == "" {
			w.code = f.kind
		}
		return orStatus(w.status, f.status), openAIError{openAIFault{Message: f.text, Type: w.kind, Code: w.code}}
	case anthropic:
		w, ok := anthropicWords[f.kind]
		if !ok {
			w.kind = anthropicStatuses[f.status]
		}
		switch {
		case w.kind != "":
		case f.status >= http.StatusInternalServerError:
			w.kind = "api_error"
		default:
			w.kind = "invalid_request_error"
		}
		return orStatus(w.status, f.status), anthropicError{"error", anthropicFault{w.kind, f.text}, a.id}
	}
	if t == jsonRPC {
		return f.status, rpcAnswer{Version: "2.0", ID: orNull(nil), Error: &rpcError{rpcServer, f.text, map[string]string{"type": f.kind, "requestId": a.id}}}
	}
	return f.status, wireError{Error: f.wire(a)}
}

// heads sets what clients of these APIs look for beside the body.
func (t errorForm) heads(h http.Header, f failure, a *answer) {
	if t == native || t == jsonRPC {
		return
	}
	again := "false"
	if a.input == "" && f.retry > 0 {
		again = "true"
	}
	h.Set("X-Should-Retry", again)
	if t == anthropic {
		h.Set("Request-Id", a.id)
	}
}

func orStatus(status, otherwise int) int {
	if status == 0 {
		return otherwise
	}
	return status
}
