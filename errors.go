package tidemark

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark/internal/json"
)

// Errors that callers tell apart. They are wrapped with the verb and the item that failed; one
// table (worker, errors.go) turns them into HTTP statuses.
var (
	ErrNotFound     = errors.New("not found")
	ErrConflict     = errors.New("conflict")                // a compare-and-swap lost, a fence held, a key exists
	ErrTooLarge     = errors.New("too large")               // a bound of size, depth or count
	ErrInvalid      = json.ErrInvalid                       // bad input; the message names the field and the fix
	ErrUnauthorized = errors.New("unauthorized")            // no or wrong token
	ErrForbidden    = errors.New("forbidden")               // known, but not allowed
	ErrBusy         = errors.New("busy")                    // a bound on work in flight; try again
	ErrAborted      = errors.New("aborted")                 // a person stopped it
	ErrTimeout      = errors.New("timed out")               // a deadline of ours
	ErrUnavailable  = errors.New("unavailable")             // storage or another part is down; try again
	ErrNoGain       = errors.New("no gain")                 // a plan that would free nothing
	ErrOverflow     = errors.New("context window exceeded") // even after compaction
	ErrDead         = errors.New("object is gone")          // its host dropped it
)

// sentinels are the errors above, for a wire that carries one of them between two objects.
var sentinels = []error{
	ErrNotFound, ErrConflict, ErrTooLarge, ErrInvalid, ErrUnauthorized, ErrForbidden, ErrBusy, ErrAborted,
	ErrTimeout, ErrUnavailable, ErrNoGain, ErrOverflow, ErrDead,
}

// Sentinel returns the error above that err wraps, nil for none.
func Sentinel(err error) error {
	for _, s := range sentinels {
		if errors.Is(err, s) {
			return s
		}
	}
	return nil
}

// SentinelOf returns the error above with that text, nil for none.
func SentinelOf(text string) error {
	for _, s := range sentinels {
		if s.Error() == text {
			return s
		}
	}
	return nil
}

// Class sorts the failures of a model API by what may be done about them.
type Class string

// The classes of an [APIError].
const (
	ClassOverflow   Class = "overflow"    // the request exceeds the window: compact once, call again
	ClassRate       Class = "rate"        // 429: wait, honouring RetryAfter
	ClassOverloaded Class = "overloaded"  // 5xx, 529: wait
	ClassNetwork    Class = "network"     // no answer, or cut off in the middle: try again
	ClassAuth       Class = "auth"        // wrong or missing key: tell the owner
	ClassBadRequest Class = "bad_request" // something in the request, an unsupported feature, or our mistake: see package mend
	ClassRefusal    Class = "refusal"     // a filter refused what is said, or the model declined without a word
)

// EmptyReply is the type of an [APIError] of ClassNetwork for an answer that came and has nothing in it.
const EmptyReply = "empty_reply"

// APIError is a failure of a model API: fields, not text, so that it can be classified once.
type APIError struct {
	Class      Class
	Status     int           // HTTP status, 0 when there was no answer
	Type       string        // the API's own error type or code
	Message    string        // the API's own message, keys redacted
	RequestID  string        // the API's request id, for its support
	RetryAfter time.Duration // what the API asked for, 0 when it did not
	Param      string        `json:"Param,omitempty"` // the field of the request that the API names, where it does
	Place      *Place        `json:"Place,omitempty"` // what it refused of the request, where it says so
	Limit      Tokens        `json:"Limit,omitempty"` // of ClassOverflow: the window of the model, where the API names it
	Asked      Tokens        `json:"Asked,omitempty"` // and how large it counts the request
}

// Place is what a model API refused of a [Request].
type Place struct {
	Message int    // index of the message, -1: none
	Block   int    // index of the block in it, -1: all of the message
	Inner   int    // of a result, index of the block in its content, -1: all of it
	Tool    string // name of the tool whose definition it was
}

// Error names the class, the status and the API's own words.
func (e *APIError) Error() string {
	s := fmt.Sprintf("model API: %s", e.Class)
	if e.Status != 0 {
		s += " (" + strings.TrimSpace(fmt.Sprintf("%d %s", e.Status, e.Type)) + ")"
	}
	if e.Message != "" {
		s += ": " + e.Message
	}
	if e.RequestID != "" {
		s += " [request " + e.RequestID + "]"
	}
	return s
}

// Transient reports whether the same call may succeed later.
func (e *APIError) Transient() bool {
	return e.Class == ClassRate || e.Class == ClassOverloaded || e.Class == ClassNetwork
}
