package cloudflare

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"

	"github.com/syumai/workers/cloudflare"
	"github.com/tidemark-ai/tidemark"
)

// AI is an http.RoundTripper over the binding of Workers AI
// (https://developers.cloudflare.com/workers-ai/configuration/bindings/): it runs the model that the
// path names behind /run/, with the request's body as inputs, and answers as the service does. The
// answer's body streams; when the request's context ends the run is aborted, as with [Transport].
type AI struct {
	o    *Obj
	name string // of the binding
}

var _ http.RoundTripper = (*AI)(nil)

// AI runs models through the binding of that name.
func (t *Transport) AI(binding string) http.RoundTripper { return &AI{t.o, binding} }

// RoundTrip runs a model. Without a binding the error is an *APIError that says how to make one.
func (a *AI) RoundTrip(req *http.Request) (*http.Response, error) {
	if !Bound(a.name) {
		return nil, &tidemark.APIError{Class: tidemark.ClassBadRequest,
			Message: fmt.Sprintf("Workers AI is not bound as %s: add to wrangler.toml [ai] binding = %q and deploy again", a.name, a.name)}
	}
	res, err := a.run(req)
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", modelOf(req), err)
	}
	return res, nil
}

func modelOf(req *http.Request) string {
	_, model, _ := strings.Cut(req.URL.Path, "/run/")
	return model
}

func (a *AI) run(req *http.Request) (*http.Response, error) {
	inputs, err := upload(req)
	if err != nil {
		return nil, err
	}
	row := []any{modelOf(req), "x-session-affinity", a.affinity()}
	v, err := a.o.await(req.Context(), "runModel", cloudflare.GetBinding(a.name), toBytes(packRows(row)), inputs)
	if err != nil {
		return nil, err
	}
	return a.o.response(req, v)
}

// affinity keeps the calls of one object where the start of its prompt is cached
// (https://github.com/cloudflare/ai/pull/444). The name may hold a telephone number, so it is hashed.
func (a *AI) affinity() string {
	sum := sha256.Sum256([]byte(a.o.name))
	return hex.EncodeToString(sum[:16])
}
