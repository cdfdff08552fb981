//go:build !js

package worker_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark/tidemarktest"
	"github.com/tidemark-ai/tidemark/worker"
)

// TestHead: a HEAD request of a stream has its head and an end, and the connection takes the next request.
func TestHead(t *testing.T) {
	g := newGate()
	s := serve(t, func(_ *worker.Config, a *actors) { a.provider = g })
	s.text(202, "POST", "/v1/sessions/agent:main:web:dm:c/messages?wait=0", `{"text":"hi"}`)
	<-g.begun
	for _, path := range []string{"/v1/sessions/agent:main:web:dm:c/events", "/events?session=agent:main:web:dm:c", "/api/chat/c/stream"} {
		conn, err := net.Dial("tcp", s.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if err := conn.SetDeadline(time.Now().Add(tidemarktest.Patience)); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "HEAD %s HTTP/1.1\r\nHost: localhost\r\n\r\nGET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", path)
		answers := bufio.NewReader(conn)
		for _, method := range []string{"HEAD", "GET"} {
			res, err := http.ReadResponse(answers, &http.Request{Method: method})
			if err != nil || res.StatusCode != 200 || (res.Header.Get("Content-Type") == "text/event-stream") != (method == "HEAD") {
				t.Fatalf("%s %s: %v %+v", method, path, err, res)
			}
		}
	}
	g.on <- nil
}
