package worker

import (
	"net/http"
	"slices"
	"strings"
)

// What a page of another origin may do here, if server.origins lists it
// (https://fetch.spec.whatwg.org/#http-cors-protocol). Answers carry no cookies and need no credentials of
// a browser: the token is a header, which the page must have. build/doors.mjs says the same, and
// testdata/doors.json holds both to it.
const (
	corsMethods = "GET, HEAD, POST, PUT, PATCH, DELETE"
	corsExposed = "x-request-id, request-id, retry-after, etag, x-tidemark-session, x-tidemark-ignored, x-tidemark-duplicate, x-vercel-ai-ui-message-stream"
	corsMaxAge  = "600"
	maxCorsAsk  = 1000 // bytes of the headers that a page asks for
)

// cross sets what a browser needs to hand an answer to a page of another origin, and reports whether the
// request is only the browser's question whether it may ask, which is then answered. Every answer says
// that it depends on the origin, so that no cache gives one page's to another.
func (g guard) cross(h http.Header, r *http.Request) (asked bool) {
	if len(g.origins) == 0 {
		return false
	}
	h.Add("Vary", "Origin")
	origin := r.Header.Get("Origin")
	if origin == "" || sameOrigin(origin, r.Host) || !slices.Contains(g.origins, origin) {
		return false
	}
	h.Set("Access-Control-Allow-Origin", origin)
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		h.Set("Access-Control-Expose-Headers", corsExposed)
		return false
	}
	h.Set("Access-Control-Allow-Methods", corsMethods)
	if ask := r.Header.Get("Access-Control-Request-Headers"); headerNames(ask) {
		h.Set("Access-Control-Allow-Headers", ask)
	}
	if r.Header.Get("Access-Control-Request-Private-Network") == "true" {
		h.Set("Access-Control-Allow-Private-Network", "true")
	}
	h.Set("Access-Control-Max-Age", corsMaxAge)
	return true
}

// headerNames reports whether s is a list of names of headers.
func headerNames(s string) bool {
	if s == "" || len(s) > maxCorsAsk {
		return false
	}
	for name := range strings.SplitSeq(s, ",") {
		if name = strings.Trim(name, " \t"); name == "" || !plainWord(name) {
			return false
		}
	}
	return true
}
