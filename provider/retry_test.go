package provider

import (
	"context"
	"errors"
	"iter"
	"testing"
	"testing/synctest"
	"time"

	tidemark "github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// tries is a provider that ends each call as its list says; nil is success.
type tries struct {
	ends  []error
	after bool // a delta comes before the error
	hang  bool // until its context ends
	calls []time.Time
}

func (f *tries) Stream(ctx context.Context, _ tidemark.Request) iter.Seq2[tidemark.Delta, error] {
	return func(yield func(tidemark.Delta, error) bool) {
		f.calls = append(f.calls, time.Now())
		end := f.ends[min(len(f.calls), len(f.ends))-1]
		if f.hang {
			<-ctx.Done()
			yield(tidemark.Delta{}, context.Cause(ctx))
			return
		}
		if f.after && !yield(tidemark.Delta{Text: "x"}, nil) {
			return
		}
		if end != nil {
			yield(tidemark.Delta{}, end)
			return
		}
		m := tidemark.NewText(tidemark.Assistant, "x")
		yield(tidemark.Delta{Reply: &tidemark.Reply{Message: m}}, nil)
	}
}

func fault(class tidemark.Class, after time.Duration) error {
	return &tidemark.APIError{Class: class, RetryAfter: after, Message: "scripted"}
}

func TestRetry(t *testing.T) {
	busy := fault(tidemark.ClassOverloaded, 0)
	for _, c := range []struct {
		name  string
		fake  *tries
		retry Retry
		calls int
		ok    bool
		least time.Duration
		most  time.Duration
	}{
		{"at once", &tries{ends: []error{nil}}, Retry{}, 1, true, 0, 0},
		{"third time lucky", &tries{ends: []error{busy, fault(tidemark.ClassNetwork, 0), nil}}, Retry{}, 3, true, 1500 * time.Millisecond, 3 * time.Second},
		{"three are enough", &tries{ends: []error{busy}}, Retry{}, 3, false, 1500 * time.Millisecond, 3 * time.Second},
		{"retry-after is kept", &tries{ends: []error{fault(tidemark.ClassRate, 20*time.Second), nil}}, Retry{}, 2, true, 20 * time.Second, 22 * time.Second},
		{"retry-after too far away", &tries{ends: []error{fault(tidemark.ClassRate, time.Hour), nil}}, Retry{}, 1, false, 0, 0},
		{"a longer patience", &tries{ends: []error{fault(tidemark.ClassRate, time.Hour), nil}}, Retry{MaxWait: 2 * time.Hour, Total: 3 * time.Hour}, 2, true, time.Hour, 66 * time.Minute},
		{"wrong key", &tries{ends: []error{fault(tidemark.ClassAuth, 0)}}, Retry{}, 1, false, 0, 0},
		{"overflow", &tries{ends: []error{fault(tidemark.ClassOverflow, 0)}}, Retry{}, 1, false, 0, 0},
		{"bad request", &tries{ends: []error{fault(tidemark.ClassBadRequest, 0)}}, Retry{}, 1, false, 0, 0},
		{"refusal", &tries{ends: []error{fault(tidemark.ClassRefusal, 0)}}, Retry{}, 1, false, 0, 0},
		{"not after a delta", &tries{ends: []error{busy}, after: true}, Retry{}, 1, false, 0, 0},
		{"one try", &tries{ends: []error{busy}}, Retry{Tries: 1}, 1, false, 0, 0},
		{"the wait is bounded", &tries{ends: []error{busy}}, Retry{Tries: 6, MaxWait: 4 * time.Second}, 6, false, 7500 * time.Millisecond, 15 * time.Second},
		{"total", &tries{ends: []error{nil}, hang: true}, Retry{Total: time.Minute}, 1, false, time.Minute, time.Minute},
		{"total within a wait", &tries{ends: []error{fault(tidemark.ClassRate, 50*time.Second)}}, Retry{Total: time.Minute}, 2, false, time.Minute, time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := c.retry
				r.Provider, r.Runtime = c.fake, tidemarktest.NewRuntime(t)
				begun := time.Now()
				_, err := tidemark.Complete(t.Context(), &r, hi())
				if (err == nil) != c.ok || len(c.fake.calls) != c.calls {
					t.Errorf("%d calls, %v", len(c.fake.calls), err)
				}
				if err != nil {
					apiError(t, err)
				}
				if took := time.Since(begun); took < c.least || took > c.most {
					t.Errorf("took %s, want %s to %s", took, c.least, c.most)
				}
			})
		})
	}
}

func TestRetryEndsWithTheCause(t *testing.T) {
	stopped := errors.New("stopped by a person")
	for name, fake := range map[string]*tries{"in a call": {ends: []error{nil}, hang: true}, "in a wait": {ends: []error{fault(tidemark.ClassRate, 30*time.Second)}}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				go func() {
					time.Sleep(time.Second)
					cancel(stopped)
				}()
				begun := time.Now()
				_, err := tidemark.Complete(ctx, &Retry{Provider: fake, Runtime: tidemarktest.NewRuntime(t)}, hi())
				if !errors.Is(err, stopped) || time.Since(begun) != time.Second || len(fake.calls) != 1 {
					t.Errorf("%v after %s and %d calls", err, time.Since(begun), len(fake.calls))
				}
			})
		})
	}
}

// TestRetryWithoutRuntime: nothing can wait, so there is one try.
func TestRetryWithoutRuntime(t *testing.T) {
	fake := &tries{ends: []error{fault(tidemark.ClassNetwork, 0)}}
	if _, err := tidemark.Complete(t.Context(), &Retry{Provider: fake}, hi()); err == nil || len(fake.calls) != 1 {
		t.Errorf("%d calls, %v", len(fake.calls), err)
	}
}
