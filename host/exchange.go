package host

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// MaxExchange bounds a question of one object to another, and its answer, in bytes.
const MaxExchange = 16 << 20

// Refusal is how an answer between two objects carries an error. Its zero value is none.
type Refusal struct {
	Error string `json:"error,omitempty"`
	Is    string `json:"is,omitempty"` // the sentinel of the root that Error wraps
}

// Refuse returns the refusal that says err; nil gives none.
func Refuse(err error) Refusal {
	if err == nil {
		return Refusal{}
	}
	out := Refusal{Error: err.Error()}
	if is := tidemark.Sentinel(err); is != nil {
		out.Is = is.Error()
	}
	return out
}

// Err returns the error in the other object's words. It is the sentinel that it was there, ErrUnavailable
// when it was none.
func (r Refusal) Err() error {
	if r.Error == "" {
		return nil
	}
	is := tidemark.SentinelOf(r.Is)
	if is == nil {
		is = tidemark.ErrUnavailable
	}
	return &told{r.Error, is}
}

// told is an error of another object.
type told struct {
	text string
	is   error
}

func (e *told) Error() string { return e.text }
func (e *told) Unwrap() error { return e.is }

// Call asks another object and returns its answer, also where that one refuses: there may be something beside.
//
// # Errors
//
// The other object's own, see [Refusal.Err]; ErrUnavailable without an answer of it, or the cause of a context that has ended.
func Call[A any](ctx context.Context, to http.RoundTripper, url string, question any) (A, error) {
	var out struct {
		Answer A `json:"answer"`
		Refusal
	}
	err := exchange(ctx, to, url, question, &out)
	if err == nil {
		err = out.Err()
	}
	return out.Answer, err
}

func exchange(ctx context.Context, to http.RoundTripper, url string, question, answer any) error {
	raw, err := json.Marshal(question)
	if err != nil {
		return fmt.Errorf("encode question: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(raw))
	if err != nil {
		return err
	}
	res, err := to.RoundTrip(req)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
		return fmt.Errorf("%w: %w", err, tidemark.ErrUnavailable)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d: %w", res.StatusCode, tidemark.ErrUnavailable)
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, MaxExchange))
	if err == nil {
		err = json.Unmarshal(body, answer)
	}
	if err != nil {
		return fmt.Errorf("status %d without an answer: %w: %w", res.StatusCode, err, tidemark.ErrUnavailable)
	}
	return nil
}

// Answer answers one question of another object, see [Answering] and [Obeying].
type Answer func(ctx context.Context, r *http.Request) (any, error)

// Answering is an [Answer] by a function that returns something.
func Answering[Q, A any](f func(context.Context, Q) (A, error)) Answer {
	return func(ctx context.Context, r *http.Request) (any, error) {
		raw, err := io.ReadAll(io.LimitReader(r.Body, MaxExchange+1))
		switch {
		case err != nil:
			return nil, fmt.Errorf("read question: %w", err)
		case len(raw) > MaxExchange:
			return nil, fmt.Errorf("question over %d bytes: %w", MaxExchange, tidemark.ErrTooLarge)
		}
		var q Q
		if err := json.Unmarshal(raw, &q); err != nil {
			return nil, fmt.Errorf("read question: %w: %w", err, tidemark.ErrInvalid)
		}
		return f(ctx, q)
	}
}

// Obeying is an [Answer] by a function that only does something.
func Obeying[Q any](f func(context.Context, Q) error) Answer {
	return Answering(func(ctx context.Context, q Q) (any, error) { return nil, f(ctx, q) })
}

// Keyed is a question to one of the sessions that live in an object.
type Keyed[Q any] struct {
	Key tidemark.Key `json:"key"`
	Ask Q            `json:"ask"`
}

// AnsweringTo is [Answering] of a [Keyed] question.
func AnsweringTo[Q, A any](f func(context.Context, tidemark.Key, Q) (A, error)) Answer {
	return Answering(func(ctx context.Context, q Keyed[Q]) (A, error) { return f(ctx, q.Key, q.Ask) })
}

// ObeyingTo is [Obeying] of a [Keyed] question.
func ObeyingTo[Q any](f func(context.Context, tidemark.Key, Q) error) Answer {
	return Obeying(func(ctx context.Context, q Keyed[Q]) error { return f(ctx, q.Key, q.Ask) })
}

// Serve answers a [Call] by the name at the end of its path. One that nobody answers is refused as ErrInvalid.
func Serve(w http.ResponseWriter, r *http.Request, name string, answers map[string]Answer) {
	var out struct {
		Answer any `json:"answer,omitempty"`
		Refusal
	}
	err := fmt.Errorf("question %.40q: %w", name, tidemark.ErrInvalid)
	if answer := answers[name]; answer != nil {
		out.Answer, err = answer(r.Context(), r)
	}
	out.Refusal = Refuse(err)
	body, err := json.Marshal(out)
	if err != nil { // one that does not arrive is asked for again
		http.Error(w, "encode answer", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body)
}
