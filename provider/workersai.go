package provider

import (
	"context"
	"crypto/rand"
	"errors"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	tidemark "github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

const (
	// WorkersAIURL stands for the binding of a Worker; host/cloudflare sends what goes there to it.
	WorkersAIURL = "https://workers-ai.binding"
	// workersaiTokens bounds replies of requests without a bound: the service's own default is 256
	// (https://developers.cloudflare.com/workers-ai/models/), which cuts an answer in the middle, and
	// models that think need room for that too.
	workersaiTokens tidemark.Tokens = 8192
	workersaiFirst                  = 2 * time.Minute
)

// What a host without the binding says, and what to do instead.
const (
	NoWorkersAI    = "workers-ai is the binding of a Worker, which this host has not"
	WorkersAIByAPI = `reach the same models by their API: set model.provider to "openai", model.id to the model, OPENAI_API_KEY to an API token ` +
		`with the permission Workers AI, and model.baseUrl to https://api.cloudflare.com/client/v4/accounts/ACCOUNT_ID/ai/v1`
)

// WorkersAI is Cloudflare's own models, through the binding of a Worker
// (https://developers.cloudflare.com/workers-ai/configuration/bindings/). Newer models answer in the
// shape of chat completions, older ones in one of their own, some in both at once; all are read.
// Messages are converted as for [OpenAI]. Images must be in the message itself, those that are only
// an address become a note; a model that refuses images is asked again with notes in their place. A
// model that cannot stream is asked again without. Only Transport must be set. The fields may not
// change after the first call.
type WorkersAI struct {
	Model     string            // for requests that name none, such as @cf/zai-org/glm-4.7-flash
	Transport http.RoundTripper // over the binding: host/cloudflare, Transport.AI
	Runtime   tidemark.Runtime  // nil: no deadlines
	MaxTokens tidemark.Tokens   // bound on replies of requests without one, 0: 8192
	BaseURL   string            // in front of /run/{model}; the binding when empty
	Key       string            // bearer token, for the REST API; the binding needs none
	FirstByte time.Duration     // longest wait for the answer to begin, 0: 2 minutes
	Idle      time.Duration     // longest silence within it, 0: 90 seconds
}

var _ tidemark.Provider = (*WorkersAI)(nil)

// NewWorkersAI returns the provider over a binding: transport is Transport.AI("AI") of host/cloudflare,
// nil on a host without bindings, where every call says what to do instead.
func NewWorkersAI(model string, transport http.RoundTripper, runtime tidemark.Runtime) *WorkersAI {
	return &WorkersAI{Model: model, Transport: transport, Runtime: runtime}
}

// attempt is how a call is made.
type attempt struct{ stream, images bool }

// Stream makes one call; see [OpenAI.Stream]. An older model does not say why it stopped: a reply as
// long as its bound was cut off by it.
func (w *WorkersAI) Stream(ctx context.Context, req tidemark.Request) iter.Seq2[tidemark.Delta, error] {
	return func(yield func(tidemark.Delta, error) bool) {
		if w.Transport == nil {
			yield(tidemark.Delta{}, &tidemark.APIError{Class: tidemark.ClassBadRequest, Message: NoWorkersAI + "; " + WorkersAIByAPI})
			return
		}
		fit := valid(req, chatRules(chatID))
		yield = fit.own(yield)
		for how := (attempt{stream: true, images: true}); ; {
			next, err := w.once(ctx, fit, how, yield)
			if err != nil {
				yield(tidemark.Delta{}, workersaiError(err))
				return
			}
			if next == how {
				return
			}
			how = next // each step takes one thing away
		}
	}
}

// once makes a call. When another way may do better it returns that way, else how itself. Its error
// has not been passed on yet.
func (w *WorkersAI) once(ctx context.Context, fit *sending, how attempt, yield yielder) (attempt, error) {
	req := fit.Request
	body, images, places := w.encode(req, how)
	ans, err := w.call(or(req.Model, w.Model)).do(ctx, body)
	if err != nil {
		if how.images && images && refusesImages(err) {
			how.images = false
			return how, nil
		}
		return how, fit.explained(workersaiError(err), places.find(fit))
	}
	defer ans.end()
	dec := newWorkersAIReply(req, w.Key, w.limit(req), rand.Text)
	dec.call.Model = or(req.Model, w.Model)
	dec.call.RequestID = requestID(ans.header)
	pass := func(d tidemark.Delta, e error) bool {
		err = e
		return e != nil || yield(d, nil)
	}
	if !ans.json() {
		readStream(ans, dec, pass)
		return how, err
	}
	readWhole(ans, dec.whole, pass)
	if how.stream && dec.empty {
		how.stream = false
		return how, nil
	}
	return how, err
}

// refusesImages reports whether a request may have failed for its images: models that take none say
// only that the input does not fit their schema.
func refusesImages(err error) bool {
	var api *tidemark.APIError
	return errors.As(err, &api) && api.Status == http.StatusBadRequest && api.Class == tidemark.ClassBadRequest && api.Type != codeNoModel
}

func (w *WorkersAI) call(model string) call {
	h := http.Header{}
	h.Set("Accept", "text/event-stream, application/json")
	if w.Key != "" {
		h.Set("Authorization", "Bearer "+w.Key)
	}
	return call{
		url: strings.TrimSuffix(or(w.BaseURL, WorkersAIURL), "/") + (&url.URL{Path: "/run/" + model}).EscapedPath(), header: h, key: w.Key,
		transport: w.Transport, runtime: w.Runtime, first: or(w.FirstByte, workersaiFirst), idle: or(w.Idle, defaultIdle),
	}
}

func (w *WorkersAI) limit(req tidemark.Request) tidemark.Tokens {
	return or(or(req.MaxTokens, w.MaxTokens), workersaiTokens)
}

// encode writes the inputs, reports whether images are among them, and tells where its blocks are.
func (w *WorkersAI) encode(req tidemark.Request, how attempt) (body []byte, images bool, places chatPlaces) {
	b := append(make([]byte, 0, 4096), `{"messages":[`...)
	cw := chatWriter{buf: b, strict: true, names: map[string]string{}, image: func(u string) string {
		switch {
		case !how.images:
			return "[image omitted: the model takes none]"
		case !strings.HasPrefix(u, "data:"):
			return "[image omitted: Workers AI takes none by address]"
		}
		images = true
		return ""
	}}
	if req.System != "" {
		cw.text("system", req.System)
	}
	for i, m := range req.Sent() {
		cw.message = i
		if m.Role == tidemark.Assistant {
			cw.assistant(m)
		} else {
			cw.user(m)
		}
	}
	b = appendFunctions(append(cw.buf, ']'), req.Tools)
	if how.stream {
		b = append(b, `,"stream":true`...)
	}
	b = append(b, `,"max_tokens":`...)
	b = strconv.AppendInt(b, int64(w.limit(req)), 10)
	return append(appendOptions(b, req.Options, w), '}'), images, cw.places
}

// codeNoModel is the code of a model that does not exist.
const codeNoModel = "5007"

// workersaiError sorts an error anew by the code in its type, or at the head of its message, where
// the binding puts it: "InferenceUpstreamError: 3040: Capacity temporarily exceeded".
func workersaiError(err error) error {
	var api *tidemark.APIError
	if !errors.As(err, &api) || api.Class == tidemark.ClassOverflow {
		return err
	}
	class := codeClasses[api.Type]
	for rest, i := api.Message, 0; class == "" && i < 5; i++ {
		head, tail, found := strings.Cut(rest, ":")
		if !found {
			break
		}
		words := strings.Fields(head)
		if len(words) > 0 {
			class = codeClasses[words[len(words)-1]]
		}
		rest = tail
	}
	if class != "" {
		api.Class = class
	}
	return err
}

// flatCall is a call as older models give it, whole, with an object for arguments; or in the shape of
// chat completions, perhaps in pieces.
type flatCall struct {
	openaiCall
	Name      looseName `json:"name"`
	Arguments looseText `json:"arguments"`
}

// workersaiChunk is a chunk, or a whole answer, in either shape or in both.
type workersaiChunk struct {
	openaiChunk
	Response     looseText                `json:"response"`
	ToolCalls    loose[[]loose[flatCall]] `json:"tool_calls"`
	FinishReason looseName                `json:"finish_reason"`
	Internal     json.RawMessage          `json:"internalCode"`
	Errors       json.RawMessage          `json:"errors"`
	Result       json.RawMessage          `json:"result"` // of the REST API, around a whole answer
}
