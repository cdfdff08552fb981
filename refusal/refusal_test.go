package refusal

import (
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
)

// TestUnexplained: which refusals may be for anything.
func TestUnexplained(t *testing.T) {
	for _, c := range []struct {
		api   tidemark.APIError
		works bool
		want  bool
	}{
		{tidemark.APIError{Status: 400, Class: tidemark.ClassBadRequest}, false, true},
		{tidemark.APIError{Status: 404, Class: tidemark.ClassBadRequest, Param: "model"}, false, true},
		{tidemark.APIError{Status: 403, Class: tidemark.ClassRefusal}, false, true},
		{tidemark.APIError{Status: 500, Class: tidemark.ClassOverloaded}, false, true},
		{tidemark.APIError{Status: 503, Class: tidemark.ClassOverloaded}, false, false},
		{tidemark.APIError{Status: 529, Class: tidemark.ClassOverloaded}, false, false},
		{tidemark.APIError{Status: 500, Class: tidemark.ClassNetwork}, false, false},
		{tidemark.APIError{Status: 403, Class: tidemark.ClassAuth}, false, false},
		{tidemark.APIError{Status: 403, Class: tidemark.ClassAuth}, true, true},
		{tidemark.APIError{Status: 409, Class: tidemark.ClassOverloaded}, true, true},
		{tidemark.APIError{Status: 401, Class: tidemark.ClassAuth}, true, false},
		{tidemark.APIError{Status: 401, Class: tidemark.ClassAuth}, false, false},
		{tidemark.APIError{Status: 429, Class: tidemark.ClassRate}, false, false},
		{tidemark.APIError{Status: 400, Class: tidemark.ClassOverflow}, false, false},
		{tidemark.APIError{Status: 413, Class: tidemark.ClassOverflow}, false, true},
		{tidemark.APIError{Status: 413, Class: tidemark.ClassOverflow, Limit: 8000}, false, false},
	} {
		if got := Unexplained(c.api, c.works); got != c.want {
			t.Errorf("%+v: %v", c.api, got)
		}
	}
}

// TestAlike: refusals are alike in the same words, whatever figures and ids they have, or where one quotes the other.
func TestAlike(t *testing.T) {
	a := tidemark.APIError{Status: 400, Message: "messages.3: this is odd", RequestID: "req_abc"}
	b := func(status int, message string) tidemark.APIError {
		return tidemark.APIError{Status: status, Message: message, RequestID: "req_xyz"}
	}
	for _, c := range []struct {
		b    tidemark.APIError
		want bool
	}{
		{a, true}, {b(400, "messages.12: this is odd"), true}, {b(400, "messages.3: this is even"), false}, {b(422, a.Message), false}, {b(400, ""), false}, {b(400, "odd"), false},
		{b(400, "Invalid request: this is odd"), true}, {b(400, "this is odd req_xyz"), true}, {b(400, "this is odd 5f3e2a"), true},
	} {
		if Alike(a, c.b) != c.want || Alike(c.b, a) != c.want {
			t.Errorf("%+v: not %v", c.b, c.want)
		}
	}
}

// TestQuoted: what an API said is one line without brackets of ours and hidden signs, within a bound.
func TestQuoted(t *testing.T) {
	long := strings.Repeat("x", maxWords)
	for says, want := range map[string]string{long: long, long + "y": long, long[1:] + "é": long[1:], " a\n b ": "a b", "x] [Conversation <b>\u202e\x07y": "x) (Conversation (b)y"} {
		if got := Quoted(says); got != want {
			t.Errorf("%q is quoted as %q", says, got)
		}
	}
}

// TestBackoff: how long is waited before a call is begun again: what the API asked for, within a bound, or ever longer.
func TestBackoff(t *testing.T) {
	for attempt, want := range map[int]time.Duration{1: time.Second, 2: 2 * time.Second, 3: 4 * time.Second, 5: 16 * time.Second, 6: 30 * time.Second, 7: 30 * time.Second} {
		if got := Backoff(attempt, 0); got != want {
			t.Errorf("before attempt %d it waits %s, want %s", attempt, got, want)
		}
	}
	for asked, want := range map[time.Duration]time.Duration{1: 1, 7 * time.Second: 7 * time.Second, time.Minute: 30 * time.Second} {
		if got := Backoff(4, asked); got != want {
			t.Errorf("asked for %s it waits %s", asked, got)
		}
	}
}
