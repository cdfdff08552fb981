//go:build !js

package worker_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark/worker"
)

// TestProxyStopping: a stream that passes through ends with an event of its API when the host does, whatever is done with it, and
// not within an event.
func TestProxyStopping(t *testing.T) {
	const chat = `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"Hel"},"finish_reason":null}]}` + "\n\n"
	messages := helloEvents()[:strings.Index(helloEvents(), "event: content_block_stop")]
	const again = "the server is stopping; send the request again when it is back"
	for path, row := range map[string]struct{ came, half, rest, want string }{
		"/v1/messages":         {messages, "event: ping\nda", "ta: {\"type\":\"ping\"}\n\n", "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"api_error\",\"message\":\"" + again},
		"/v1/chat/completions": {chat, "data: ", strings.TrimPrefix(chat, "data: "), "data: {\"error\":{\"message\":\"" + again + "\",\"type\":\"server_error\",\"param\":null,\"code\":\"stopping\"}}\n\n"},
	} {
		for _, mode := range []string{"off", "observe", "page"} {
			for _, half := range []string{"", row.half} {
				t.Run(fmt.Sprintf("%s %s %q", path, mode, half), func(t *testing.T) {
					up, down := io.Pipe()
					halt := make(chan struct{})
					p := serveProxy(t, func(_ int, r *http.Request, _ string) *http.Response {
						context.AfterFunc(r.Context(), func() { down.CloseWithError(r.Context().Err()) })
						return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: up}
					}, func(c *worker.Config) { c.Stopping = halt })
					more := make(chan struct{})
					go func() {
						_, _ = io.WriteString(down, row.came+half)
						<-more
						if half != "" {
							_, _ = io.WriteString(down, row.rest)
						}
					}()
					got := bufio.NewReader(p.ask(path, fmt.Sprintf(withAct, true), "X-Tidemark-Mode", mode, "Authorization", "Bearer "+ownKey).Body)
					head, err := got.ReadString('\n')
					if err != nil {
						t.Fatal(err)
					}
					close(halt)
					close(more)
					rest, err := io.ReadAll(got)
					all := head + string(rest)
					if i := strings.LastIndex(all, row.want); err != nil || i < 0 || !strings.HasSuffix(all[:i], "\n\n") || strings.Count(all, "\n\n") != strings.Count(all[:i], "\n\n")+1 {
						t.Errorf("%v: %s", err, all)
					}
					if _, quiet := p.keys(); !quiet {
						t.Error("the exchange has not ended")
					}
				})
			}
		}
	}
}
