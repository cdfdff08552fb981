package tidemarktest

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/tidemark-ai/tidemark"
)

// API is a fake model server over real HTTP. It speaks Anthropic's Messages API
// (POST /v1/messages, streaming or not, and /v1/messages/count_tokens) and chat completions
// (POST /v1/chat/completions, streaming or not), Workers AI in all its shapes (below /ai/; see
// api_workersai.go), lists models (GET /v1/models), refuses with 400 what the real ones refuse (CheckAnthropic, CheckChat, more than four cache markers, changed
// signed thinking),
// counts tokens with our estimator, accounts prompt caching by prefix as the Messages API does, and
// records all it was sent. What it answers is a script: queued steps, then a function, then an
// echo. A test that runs the real binary gives it the URL.
type API struct {
	// URL is the server's address without a path: the base URL for Anthropic clients. Those of chat
	// completions want URL + "/v1".
	URL string

	server *httptest.Server
	quit   chan struct{} // closed by Close: frees what hangs

	mu      sync.Mutex // guards the following
	window  tidemark.Tokens
	key     string
	steps   []Step
	respond func(APICall) Step
	calls   []APICall
	open    int
	idle    chan struct{} // closed when open falls to 0; nil while nobody waits
	more    chan struct{} // closed at the next call; nil while nobody waits
	closed  bool
	cache   map[tidemark.Hash]bool
}

// APICall is a request as the server read it. Messages of chat completions are converted.
type APICall struct {
	N         int // 1 for the first
	Path      string
	Header    http.Header
	Body      []byte
	Model     string
	System    string
	Messages  []tidemark.Message
	Tools     []tidemark.Tool
	MaxTokens tidemark.Tokens
	Stream    bool
	Tokens    tidemark.Tokens // estimate of all that was sent
	Usage     tidemark.Usage  // what the reply reports of the input, unless the step says otherwise

	noUsage bool // a stream of chat completions that did not ask for figures
}

// LastText is the text of the last message, results of tools left out.
func (c APICall) LastText() string {
	if len(c.Messages) == 0 {
		return ""
	}
	return c.Messages[len(c.Messages)-1].PlainText()
}

// maxAPIBody is the limit of the Messages API on requests.
const maxAPIBody = 32 << 20

// NewAPI starts a server; it ends with the test.
func NewAPI(tb testing.TB) *API {
	a := &API{quit: make(chan struct{}), cache: map[tidemark.Hash]bool{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/messages", a.serve(dialectAnthropic))
	mux.HandleFunc("POST /v1/messages/count_tokens", a.serve(dialectCount))
	mux.HandleFunc("POST /v1/chat/completions", a.serve(dialectOpenAI))
	mux.HandleFunc("POST /ai/{shape}/run/{model...}", a.serve(dialectWorkersAI))
	mux.HandleFunc("POST /ai/binding", a.serve(dialectWorkersAIBinding))
	mux.HandleFunc("GET /v1/models", serveModels)
	a.server = httptest.NewServer(mux)
	a.URL = a.server.URL
	tb.Cleanup(a.Close)
	return a
}

// Close ends the server and all requests that hang. It may be called twice.
func (a *API) Close() {
	a.mu.Lock()
	closed := a.closed
	a.closed = true
	a.mu.Unlock()
	if !closed {
		close(a.quit)
		a.server.CloseClientConnections()
		a.server.Close()
	}
}

// Push queues answers, one for each request that is to be answered by a model.
func (a *API) Push(steps ...Step) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.steps = append(a.steps, steps...)
}

// Respond sets what answers when no step is queued; nil for the echo. It may be called by several
// requests at once.
func (a *API) Respond(f func(APICall) Step) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.respond = f
}

// SetWindow makes requests whose estimate exceeds it fail with 400, in the words of the real APIs;
// 0 for no limit.
func (a *API) SetWindow(n tidemark.Tokens) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.window = n
}

// SetKey makes requests without this key fail with 401; empty for no check.
func (a *API) SetKey(key string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.key = key
}

// Calls returns what was requested so far, refused requests included.
func (a *API) Calls() []APICall {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]APICall(nil), a.calls...)
}

// Await waits until n calls have come in, or until ctx ends and then returns its cause.
func (a *API) Await(ctx context.Context, n int) error {
	for {
		a.mu.Lock()
		if len(a.calls) >= n {
			a.mu.Unlock()
			return nil
		}
		if a.more == nil {
			a.more = make(chan struct{})
		}
		more := a.more
		a.mu.Unlock()
		select {
		case <-more:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Open is the number of requests in work.
func (a *API) Open() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.open
}

// Idle waits until no request is in work, or until ctx ends and then returns its cause. A client
// that goes away ends its request.
func (a *API) Idle(ctx context.Context) error {
	a.mu.Lock()
	if a.open == 0 {
		a.mu.Unlock()
		return nil
	}
	if a.idle == nil {
		a.idle = make(chan struct{})
	}
	idle := a.idle
	a.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (a *API) enter() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.open++
}

func (a *API) leave() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.open--; a.open == 0 && a.idle != nil {
		close(a.idle)
		a.idle = nil
	}
}

// dialect is what differs between the APIs.
type dialect struct {
	key    func(http.Header) string
	decode func(*APICall) error
	check  func(tidemark.Request) error // what this API demands beside tidemark.Check
	fail   func(w http.ResponseWriter, id string, e apiFailure)
	events func(APICall, Step) [][]byte // of a stream
	whole  func(APICall, Step) []byte
	count  bool // counts tokens instead of answering
}

// apiFailure is an error of the API.
type apiFailure struct {
	status  int
	typ     string
	code    string // chat completions only
	message string
}

// serve returns the handler of a dialect.
func (a *API) serve(d dialect) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		a.enter()
		defer a.leave()
		body, err := io.ReadAll(io.LimitReader(r.Body, maxAPIBody+1))
		if err != nil {
			return // the client went away
		}
		call := APICall{Path: r.URL.Path, Header: r.Header.Clone(), Body: body}
		failure := a.read(d, &call)
		step := a.record(&call, failure == nil && !d.count)
		id := fmt.Sprintf("req_%04d", call.N)
		w.Header().Set("Request-Id", id)
		w.Header().Set("X-Request-Id", id)
		switch {
		case failure != nil:
			d.fail(w, id, *failure)
		case d.count:
			writeJSON(w, http.StatusOK, fmt.Sprintf(`{"input_tokens":%d}`, call.Tokens))
		default:
			a.play(w, r, d, call, step)
		}
	}
}

// read decodes and judges a request.
func (a *API) read(d dialect, c *APICall) *apiFailure {
	a.mu.Lock()
	key, window := a.key, a.window
	a.mu.Unlock()
	if key != "" && d.key(c.Header) != key {
		return &apiFailure{status: http.StatusUnauthorized, typ: "authentication_error", code: "invalid_api_key", message: "invalid x-api-key"}
	}
	if len(c.Body) > maxAPIBody {
		return &apiFailure{status: http.StatusRequestEntityTooLarge, typ: "request_too_large", message: "Request exceeds the maximum size"}
	}
	err := d.decode(c)
	if err == nil {
		err = tidemark.Check(c.Messages)
	}
	if err == nil && d.check != nil {
		err = d.check(tidemark.Request{Messages: c.Messages, Tools: c.Tools})
	}
	if err == nil {
		err = checkThinking(c.Messages)
	}
	if err != nil {
		return &apiFailure{status: http.StatusBadRequest, typ: "invalid_request_error", message: err.Error()}
	}
	c.Tokens = tidemark.EstimateText(c.System)
	for _, t := range c.Tools {
		c.Tokens += tidemark.EstimateChars(tidemark.UTF16Len(t.Name) + tidemark.UTF16Len(t.Description) + tidemark.UTF16Len([]byte(t.InputSchema)))
	}
	for _, m := range c.Messages {
		c.Tokens += tidemark.Estimate(m)
	}
	if window > 0 && c.Tokens > window {
		return &apiFailure{status: http.StatusBadRequest, typ: "invalid_request_error", code: "context_length_exceeded",
			message: fmt.Sprintf("prompt is too long: %d tokens > %d maximum", c.Tokens, window)}
	}
	c.Usage = tidemark.Usage{Input: c.Tokens}
	return nil
}

// record numbers and keeps a call and returns its answer, unless it gets none.
func (a *API) record(c *APICall, answered bool) Step {
	a.mu.Lock()
	c.N = len(a.calls) + 1
	if answered {
		a.account(c)
	}
	a.calls = append(a.calls, *c)
	if a.more != nil {
		close(a.more)
		a.more = nil
	}
	respond := a.respond
	if answered && len(a.steps) > 0 {
		step := a.steps[0]
		a.steps = a.steps[1:]
		a.mu.Unlock()
		return step
	}
	a.mu.Unlock()
	if answered && respond != nil {
		return respond(*c)
	}
	return Step{}
}

func writeJSON(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body) // the client may be gone
}

// APIModel is the model that the fake server lists. It answers for any name.
const APIModel = "fake-1"

func serveModels(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Anthropic-Version") != "" {
		writeJSON(w, http.StatusOK, `{"data":[{"type":"model","id":"`+APIModel+`","display_name":"Fake 1","created_at":"2026-01-01T00:00:00Z"}],"has_more":false,"first_id":"`+APIModel+`","last_id":"`+APIModel+`"}`)
		return
	}
	writeJSON(w, http.StatusOK, `{"object":"list","data":[{"id":"`+APIModel+`","object":"model","created":1767225600,"owned_by":"tidemark"}]}`)
}
