package worker

import (
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/session"
)

// failure is what a client is told of an error.
type failure struct {
	status int
	kind   string
	text   string
	retry  time.Duration // what Retry-After says, 0 for none
}

// refused is an error of HTTP itself, which no sentinel of the root names.
type refused struct {
	status int
	kind   string
	text   string
}

func (e *refused) Error() string { return e.text }

// LoggedError is an error that the host logs by itself, once for many requests that find it.
type LoggedError struct{ Err error }

// Error is the error's own text.
func (e *LoggedError) Error() string { return e.Err.Error() }

// Unwrap is the error.
func (e *LoggedError) Unwrap() error { return e.Err }

// statuses is the one table from error to status; the first row that fits counts.
var statuses = []struct {
	err    error
	status int
	kind   string
}{
	{tidemark.ErrAborted, http.StatusConflict, "aborted"},
	{tidemark.ErrOverflow, http.StatusRequestEntityTooLarge, "overflow"},
	{tidemark.ErrUnauthorized, http.StatusUnauthorized, "unauthorized"},
	{tidemark.ErrForbidden, http.StatusForbidden, "forbidden"},
	{tidemark.ErrNotFound, http.StatusNotFound, "not_found"},
	{tidemark.ErrTooLarge, http.StatusRequestEntityTooLarge, "too_large"},
	{tidemark.ErrInvalid, http.StatusBadRequest, "invalid"},
	{tidemark.ErrConflict, http.StatusConflict, "conflict"},
	{tidemark.ErrBusy, http.StatusServiceUnavailable, "busy"},
	{tidemark.ErrNoGain, http.StatusUnprocessableEntity, "no_gain"},
	{tidemark.ErrTimeout, http.StatusGatewayTimeout, "timeout"},
	{tidemark.ErrUnavailable, http.StatusServiceUnavailable, "unavailable"},
	{tidemark.ErrDead, http.StatusServiceUnavailable, "unavailable"},
}

// classes is the same for failures of a model API.
var classes = map[tidemark.Class]int{
	tidemark.ClassOverflow:   http.StatusRequestEntityTooLarge,
	tidemark.ClassRate:       http.StatusTooManyRequests,
	tidemark.ClassOverloaded: http.StatusServiceUnavailable,
	tidemark.ClassNetwork:    http.StatusBadGateway,
	tidemark.ClassAuth:       http.StatusBadGateway,
	tidemark.ClassBadRequest: http.StatusBadGateway,
	tidemark.ClassRefusal:    http.StatusUnprocessableEntity,
}

// busyRetry is when a client may try again if nobody said otherwise.
const busyRetry = 2 * time.Second

// failureOf says what a client is told. What no row knows reads "internal"; the log has it in full.
func failureOf(err error) failure {
	var api *tidemark.APIError
	var own *refused
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &own):
		return failure{status: own.status, kind: own.kind, text: own.text}
	case errors.As(err, &large):
		return failure{status: http.StatusRequestEntityTooLarge, kind: "too_large", text: err.Error()}
	case errors.As(err, &api) && classes[api.Class] != 0:
		f := failure{status: classes[api.Class], kind: string(api.Class), text: session.Explain(err), retry: api.RetryAfter}
		if api.Transient() && f.retry == 0 {
			f.retry = busyRetry
		}
		return f
	}
	for _, row := range statuses {
		if !errors.Is(err, row.err) {
			continue
		}
		f := failure{status: row.status, kind: row.kind, text: session.Explain(err)}
		// Of the others the type says enough: a person reads "not found" in the words, once.
		if !errors.Is(row.err, tidemark.ErrNotFound) || strings.Contains(f.text, "there is no such") {
			f.text = strings.TrimSuffix(f.text, ": "+row.err.Error())
		}
		if row.status == http.StatusServiceUnavailable {
			f.retry = busyRetry
		}
		return f
	}
	return failure{status: http.StatusInternalServerError, kind: "internal", text: "internal error; the server's log has it under this requestId"}
}

// wireError is the body of an answer that reports a failure.
type wireError struct {
	Type  string    `json:"type,omitempty"` // "error" as an event
	Error wireFault `json:"error"`
}

type wireFault struct {
	Type      string `json:"type"`
	Message   string `json:"message"`
	RequestID string `json:"requestId"`
	Input     string `json:"input,omitempty"` // id of the input, when it is durable
}
