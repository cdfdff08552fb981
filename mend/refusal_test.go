package mend

import (
	"testing"

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
