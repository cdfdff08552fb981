package worker

import (
	"net/http"
	"strings"

	"github.com/tidemark-ai/tidemark/proxy"
)

// OnwardPath is where the front of a Worker asks on behalf of a request that no object needs to see: its body is too
// large for one to hold, or nothing of it is kept. Behind it is the request's own path. Nobody comes here from outside.
const OnwardPath = "/internal/onward"

// bound is where a request goes, and with which headers. The front carries the body, as it comes.
type bound struct {
	URL     string     `json:"url"`
	Headers [][]string `json:"headers"`
}

// OnwardOf answers the front, by the door that [New] gave.
func OnwardOf(h http.Handler) http.Handler {
	d := h.(*door) //nolint:forcetypeassert // it is what New gave
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a := &answer{ResponseWriter: w, id: requestID(givenID(r), d.Runtime.Now())}
		secure(w.Header())
		w.Header().Set(requestIDHeader, a.id)
		own := *r.URL
		r = r.Clone(r.Context())
		r.URL = &own
		r.URL.Path, r.URL.RawPath = strings.TrimPrefix(r.URL.Path, OnwardPath), strings.TrimPrefix(r.URL.EscapedPath(), OnwardPath)
		c := &request{door: d, w: a, r: r}
		if err := c.bound(); err != nil {
			d.fail(a, r, err)
		}
	})
}

func (c *request) bound() error {
	path, ok := beyond(c.r.URL.EscapedPath())
	if !ok {
		path = strings.TrimPrefix(c.r.URL.EscapedPath(), "/v1/")
	}
	if err := straight(path); err != nil {
		return err
	}
	p, err := c.passage(path)
	if err != nil {
		return err
	}
	defer p.stop()
	talk := path == messagesPath || path == countPath || path == chatPath // of other routes nothing is ever kept
	p.Metrics.passed(modeOff, talk && p.treatment != modeOff)
	if talk {
		p.untouched(proxy.TooLarge, "the body is larger than a Worker holds")
	}
	to := bound{URL: p.url}
	for name, values := range p.header {
		for _, v := range values {
			to.Headers = append(to.Headers, []string{name, v})
		}
	}
	return c.reply(http.StatusOK, to)
}
