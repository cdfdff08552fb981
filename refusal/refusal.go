// Package refusal reads what a model API refused a request for: whether it is too large, and whether anything in it may be why.
// The words themselves are read by the providers. Begin with [Unexplained].
package refusal

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/tidemark-ai/tidemark"
)

const (
	maxWords   = 200 // bytes of what an API said
	leastWords = 8   // and by how many bytes they are known again within others
)

// Unexplained reports a refusal that may be for anything in a request: a server has words of its own for it, or none. After an
// overloaded one (500) a request was made some times; one for its bytes (413) may be of a gate on the way, and so may one that
// forbids it (403, 409), where the key works: the model has answered before.
func Unexplained(api tidemark.APIError, works bool) bool {
	if works && (api.Status == http.StatusForbidden || api.Status == http.StatusConflict) {
		return true
	}
	switch api.Class {
	case tidemark.ClassBadRequest: // one of our own has no status
		return api.Status >= http.StatusBadRequest || api.Status == http.StatusOK && api.Type != ""
	case tidemark.ClassRefusal:
		return true
	case tidemark.ClassOverloaded:
		return api.Status == http.StatusInternalServerError
	}
	return TooManyBytes(api)
}

// TooManyBytes reports a refusal that is for the bytes of a request, which says nothing of tokens.
func TooManyBytes(api tidemark.APIError) bool {
	return api.Class == tidemark.ClassOverflow && api.Status == http.StatusRequestEntityTooLarge && api.Limit == 0
}

// OverTokens reports a refusal for the tokens of a request, in words that are known.
func OverTokens(api tidemark.APIError) bool {
	return api.Class == tidemark.ClassOverflow && !TooManyBytes(api)
}

// Alike reports that two refusals are in the same words, whatever places, figures and ids they name.
func Alike(a, b tidemark.APIError) bool {
	plain := func(e tidemark.APIError) string {
		said := strings.Fields(Quoted(strings.ReplaceAll(e.Message, cmp.Or(e.RequestID, "\x00"), "")))
		return strings.Join(slices.DeleteFunc(said, func(w string) bool { return strings.ContainsAny(w, "0123456789") }), " ")
	}
	x, y := plain(a), plain(b)
	if len(x) > len(y) {
		x, y = y, x
	}
	return a.Status == b.Status && (x == y || len(x) >= leastWords && strings.Contains(y, x))
}

// Quoted is what an API said, as it stands in a line or a note: of ours are the brackets, and nothing is hidden in it.
func Quoted(text string) string {
	if len(text) > maxWords {
		text = text[:maxWords]
	}
	text = strings.Map(func(r rune) rune {
		switch {
		case r == '[' || r == '<':
			return '('
		case r == ']' || r == '>':
			return ')'
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsControl(r) || unicode.Is(unicode.Cf, r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, ""))
	return strings.Join(strings.Fields(text), " ")
}

// Backoff is how long to wait before a call is begun again: what the API asked for, within a
// bound, or 1, 2, 4 seconds.
func Backoff(attempt int, asked time.Duration) time.Duration {
	const most = 30 * time.Second
	if asked > 0 {
		return min(asked, most)
	}
	return min(time.Second<<(attempt-1), most)
}
