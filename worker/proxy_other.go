package worker

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/tidemark-ai/tidemark"
)

// Paths behind the version of an API whose requests have a conversation.
const (
	messagesPath = "messages"
	countPath    = messagesPath + "/count_tokens"
	chatPath     = "chat/completions"
)

// passOther is any other route of an API, for a client that was told that the API is here: it goes on as it came,
// and nothing of it is kept.
func passOther(c *request) (any, error) {
	if c.r.Method == http.MethodConnect || c.r.Method == http.MethodTrace { // whose answer has the headers in it
		return nil, &refused{http.StatusMethodNotAllowed, "method_not_allowed", c.r.Method + " goes no further"}
	}
	path, _ := beyond(c.r.URL.EscapedPath())
	if err := straight(path); err != nil {
		return nil, err
	}
	p, err := c.passage(path)
	if err != nil {
		return nil, err
	}
	defer p.stop()
	p.Metrics.passed(modeOff, false)
	body := io.Reader(c.r.Body)
	if c.r.ContentLength == 0 {
		body = http.NoBody
	}
	return nil, p.relay(body, c.r.ContentLength)
}

// beyond gives what stands in a path behind /p/NAME/v1/, as it is encoded.
func beyond(path string) (rest string, ok bool) {
	name, ok := strings.CutPrefix(path, "/p/")
	if !ok {
		return "", false
	}
	if _, rest, ok = strings.Cut(name, "/"); !ok {
		return "", false
	}
	return strings.CutPrefix(rest, "v1/")
}

// ofOpenAI says which API a path behind the version is of: its own name, or else the headers that only clients of the
// Messages API send. build/proxy.mjs says the same, by testdata/doors.json.
func ofOpenAI(path string, h http.Header) bool {
	switch {
	case path == messagesPath, strings.HasPrefix(path, messagesPath+"/"):
		return false
	case path == chatPath, strings.HasPrefix(path, chatPath+"/"):
		return true
	}
	return h.Get("Anthropic-Version") == "" && h.Get("Anthropic-Beta") == "" && h.Get("X-Api-Key") == ""
}

// maxLayers is how often an encoding may be encoded again until nobody reads it.
const maxLayers = 5

// straight refuses a path, as it is encoded, that some reader behind could take for one elsewhere: with dots that
// climb, however often they are encoded, or with what no path has.
func straight(path string) error {
	no := fmt.Errorf("path %q: it does not lead straight to a route: %w", clip(path, 80), tidemark.ErrInvalid)
	if strings.Contains(path, "//") || strings.HasPrefix(path, "/") {
		return no
	}
	for range maxLayers {
		odd := func(r rune) bool { return r < ' ' || r == 0x7f }
		climbs := func(part string) bool {
			part, _, _ = strings.Cut(part, ";") // some cut parameters off
			return part == "." || part == ".."
		}
		parts := strings.FieldsFunc(path, func(r rune) bool { return r == '/' || r == '\\' })
		if strings.ContainsFunc(path, odd) || slices.ContainsFunc(parts, climbs) {
			return no
		}
		next, err := url.PathUnescape(path)
		if err == nil && next != path {
			path = next
			continue
		}
		return nil // what is left is its own name
	}
	return no
}
