package worker

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"
	"net/http"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// refusal is an answer of the API that is none to what it was asked behind its own questions to us.
type refusal struct {
	res *http.Response // its body was read
	raw []byte
}

// maxRefusal is how much of such an answer is read.
const maxRefusal = 1 << 20

// Error is the API's status; its words are those of the wrapped error.
func (r *refusal) Error() string { return fmt.Sprintf("go on with the answer: %v", r.Unwrap()) }

// Unwrap is what became of the call, as of those of a session.
func (r *refusal) Unwrap() error {
	var told struct {
		Error struct{ Type, Message string }
	}
	_ = json.Unmarshal(r.raw, &told) // what cannot be read says nothing
	api := &tidemark.APIError{Class: tidemark.ClassBadRequest, Status: r.res.StatusCode, Type: clip(told.Error.Type, 80), Message: clip(told.Error.Message, 1000)}
	switch status := r.res.StatusCode; {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		api.Class = tidemark.ClassAuth
	case status == http.StatusTooManyRequests:
		api.Class = tidemark.ClassRate
	case status >= http.StatusInternalServerError:
		api.Class = tidemark.ClassOverloaded
	case status == http.StatusRequestEntityTooLarge:
		api.Class = tidemark.ClassOverflow
	}
	return api
}

// again makes a further call of the API and reads its answer, which must be of the kind of the first one.
func (e *exchange) again(ctx context.Context, raw []byte) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		raw, header := e.wire(raw)
		res, err := e.post(ctx, header, bytes.NewReader(raw), int64(len(raw)))
		if err != nil {
			yield(nil, err)
			return
		}
		defer res.Body.Close()
		if res.StatusCode == e.res.StatusCode && mediaOf(res.Header) == mediaOf(e.res.Header) {
			chunks(res.Body)(yield)
			return
		}
		no := &refusal{res: res}
		if no.raw, err = io.ReadAll(io.LimitReader(res.Body, maxRefusal)); err != nil {
			yield(nil, fmt.Errorf("go on with the answer: %w", err))
			return
		}
		yield(nil, no)
	}
}

// say answers with what the API refused with, as if it had done so at once: the client knows what to do.
func (e *exchange) say(no *refusal) error {
	e.w.Header().Set("Content-Length", fmt.Sprint(len(no.raw)))
	e.head(no.res, false)
	_, err := e.w.Write(no.raw)
	return err
}
