package worker

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
)

func TestFailureOf(t *testing.T) {
	wrap := func(err error) error { return fmt.Errorf("do this: %w", err) }
	api := func(c tidemark.Class) error { return wrap(&tidemark.APIError{Class: c, Message: "words"}) }
	absent := fmt.Errorf("open session x: there is no such session: %w", tidemark.ErrNotFound)
	for _, tc := range []struct {
		name   string
		err    error
		status int
		kind   string
		retry  time.Duration
	}{
		{"not found", wrap(tidemark.ErrNotFound), 404, "not_found", 0},
		{"not found, said so", absent, 404, "not_found", 0},
		{"logged by the host", &LoggedError{wrap(tidemark.ErrUnavailable)}, 503, "unavailable", busyRetry},
		{"conflict", wrap(tidemark.ErrConflict), 409, "conflict", 0},
		{"aborted", wrap(tidemark.ErrAborted), 409, "aborted", 0},
		{"too large", wrap(tidemark.ErrTooLarge), 413, "too_large", 0},
		{"body too large", wrap(&http.MaxBytesError{Limit: 3}), 413, "too_large", 0},
		{"invalid", wrap(tidemark.ErrInvalid), 400, "invalid", 0},
		{"unauthorized", wrap(tidemark.ErrUnauthorized), 401, "unauthorized", 0},
		{"forbidden", wrap(tidemark.ErrForbidden), 403, "forbidden", 0},
		{"busy", wrap(tidemark.ErrBusy), 503, "busy", busyRetry},
		{"timeout", wrap(tidemark.ErrTimeout), 504, "timeout", 0},
		{"unavailable", wrap(tidemark.ErrUnavailable), 503, "unavailable", busyRetry},
		{"dead", wrap(tidemark.ErrDead), 503, "unavailable", busyRetry},
		{"no gain", wrap(tidemark.ErrNoGain), 422, "no_gain", 0},
		{"overflow", wrap(tidemark.ErrOverflow), 413, "overflow", 0},
		{"model: overflow", api(tidemark.ClassOverflow), 413, "overflow", 0},
		{"model: rate", api(tidemark.ClassRate), 429, "rate", busyRetry},
		{"model: rate with a time", wrap(&tidemark.APIError{Class: tidemark.ClassRate, RetryAfter: time.Minute}), 429, "rate", time.Minute},
		{"model: overloaded", api(tidemark.ClassOverloaded), 503, "overloaded", busyRetry},
		{"model: network", api(tidemark.ClassNetwork), 502, "network", busyRetry},
		{"model: auth", api(tidemark.ClassAuth), 502, "auth", 0},
		{"model: bad request", api(tidemark.ClassBadRequest), 502, "bad_request", 0},
		{"model: refusal", api(tidemark.ClassRefusal), 422, "refusal", 0},
		{"model: unknown class", api("other"), 500, "internal", 0},
		{"own", wrap(&refused{405, "method_not_allowed", "no"}), 405, "method_not_allowed", 0},
		{"too large beside invalid", errors.Join(tidemark.ErrInvalid, tidemark.ErrTooLarge), 413, "too_large", 0},
		{"canceled", context.Canceled, 500, "internal", 0},
		{"anything else", errors.New("disk /secret/path on fire"), 500, "internal", 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := failureOf(tc.err)
			if f.status != tc.status || f.kind != tc.kind || f.retry != tc.retry || f.text == "" {
				t.Errorf("got %+v", f)
			}
			if f.kind == "not_found" && !strings.Contains(f.text, "not found") && !strings.Contains(f.text, "no such") || f.kind == "busy" && strings.Contains(f.text, "busy") {
				t.Errorf("says %q", f.text)
			}
			if f.kind == "not_found" && strings.Contains(f.text, "no such") && strings.Contains(f.text, "not found") {
				t.Errorf("says it twice: %q", f.text)
			}
			if f.kind == "internal" && strings.Contains(f.text, tc.err.Error()) {
				t.Errorf("an unknown error is spelt out: %s", f.text)
			}
		})
	}
}
