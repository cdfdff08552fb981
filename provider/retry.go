package provider

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"time"

	tidemark "github.com/tidemark-ai/tidemark"
)

// Defaults of [Retry].
const (
	defaultTries = 3
	defaultBase  = time.Second
	defaultWait  = time.Minute
	defaultTotal = 15 * time.Minute
)

// Retry repeats calls that failed for a reason that may pass: rate limit, overload, network. It
// does so only until the first delta was passed on; a reader that has shown part of an answer must
// itself decide to begin again. The wait is what the API asked for, else it doubles from a second, with
// jitter, so that many sessions do not come back at the same moment. The zero values of all fields
// but Provider and Runtime are useful.
type Retry struct {
	Provider tidemark.Provider
	Runtime  tidemark.Runtime // nil: one try, no bound on time
	Tries    int              // calls in all, 0: 3
	MaxWait  time.Duration    // longest wait; a Retry-After beyond it ends the trying, 0: 1 minute
	Total    time.Duration    // bound on all tries and waits together, 0: 15 minutes
}

var _ tidemark.Provider = (*Retry)(nil)

// Stream makes up to Tries calls. The error is that of the last.
func (r *Retry) Stream(ctx context.Context, req tidemark.Request) iter.Seq2[tidemark.Delta, error] {
	return func(yield func(tidemark.Delta, error) bool) {
		inner, tries := ctx, 1
		if r.Runtime != nil {
			var stop context.CancelFunc
			inner, stop = r.Runtime.WithTimeout(ctx, or(r.Total, defaultTotal))
			defer stop()
			tries = max(or(r.Tries, defaultTries), 1)
		}
		for try := 1; ; try++ {
			again, err := r.once(inner, req, yield)
			if err == nil {
				return
			}
			if again && try < tries && r.wait(inner, try, err) {
				continue
			}
			yield(tidemark.Delta{}, r.judge(ctx, inner, err))
			return
		}
	}
}

// once makes a call. Its error is nil when the reply was passed on or the reader stopped; again
// says whether another try could help and would go unnoticed.
func (r *Retry) once(ctx context.Context, req tidemark.Request, yield yielder) (again bool, err error) {
	passed := false
	for d, err := range r.Provider.Stream(ctx, req) {
		if err != nil {
			var api *tidemark.APIError
			return !passed && ctx.Err() == nil && errors.As(err, &api) && api.Transient(), err
		}
		passed = true
		if !yield(d, nil) || d.Reply != nil {
			return false, nil
		}
	}
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	return !passed, networkError("the stream ended without a reply", "")
}

// wait waits before the next try; false means that there is none.
func (r *Retry) wait(ctx context.Context, try int, err error) bool {
	longest := or(r.MaxWait, defaultWait)
	var api *tidemark.APIError
	d := time.Duration(0)
	if errors.As(err, &api) {
		d = api.RetryAfter
	}
	if d > longest {
		return false // the caller keeps RetryAfter and can come back then
	}
	if d <= 0 {
		d = defaultBase
		for range min(try-1, 20) {
			d = min(2*d, longest)
		}
		d = d/2 + rand.N(d/2+1)
	} else {
		d += rand.N(d/10 + 1) // never before the time asked for
	}
	return r.Runtime.Sleep(ctx, d) == nil
}

// judge returns the error to pass on: the cause of the caller's context, or an *APIError when our
// own bound ended the call.
func (r *Retry) judge(ctx, inner context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var api *tidemark.APIError
	if inner.Err() != nil && !errors.As(err, &api) {
		return networkError(fmt.Sprintf("no reply within %s", or(r.Total, defaultTotal)), "")
	}
	return err
}
