//go:build !js

package worker_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/channel"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/worker"
)

// TestMaxWebhook holds the bound to that of the front, which build/webhook.test.mjs holds to the same file.
func TestMaxWebhook(t *testing.T) {
	raw, err := os.ReadFile("../testdata/front.json")
	var table struct{ MaxWebhook int }
	if err == nil {
		err = json.Unmarshal(raw, &table)
	}
	if err != nil || table.MaxWebhook != channel.MaxBody {
		t.Errorf("%d, %v; want %d", table.MaxWebhook, err, channel.MaxBody)
	}
}

// post is a platform: what says "yes" may be of it, and nothing else.
type post struct{ received chan int }

func (p *post) Handshake(string, url.Values) (string, error) { return "", nil }

func (p *post) Expect(platform string, h http.Header) error {
	switch {
	case platform != "there":
		return fmt.Errorf("channel: %w", tidemark.ErrNotFound)
	case h.Get("X-Signed") != "yes":
		return fmt.Errorf("signature: %w", tidemark.ErrUnauthorized)
	}
	return nil
}

func (p *post) Receive(_ context.Context, _ string, _ http.Header, body []byte) error {
	p.received <- len(body)
	return nil
}

// TestWebhookUnread: what cannot be a platform's is refused before its body is there, and of what may be one
// no more is held than there is room for.
func TestWebhookUnread(t *testing.T) {
	p := &post{make(chan int, 100)}
	s := serve(t, func(c *worker.Config, _ *actors) {
		c.Webhooks = func(context.Context, string) (worker.Ingress, error) { return p, nil }
	})
	const size = 3 << 20
	// begin sends all but the last byte.
	begin := func(path, head string, body int) net.Conn {
		c, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		_, _ = fmt.Fprintf(c, "POST /webhooks/%s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n%s\r\n", path, head) // a refusal may end it
		_, _ = io.WriteString(c, strings.Repeat("x", body))
		return c
	}
	status := func(c net.Conn) (int, http.Header) {
		res, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		return res.StatusCode, res.Header
	}
	length := fmt.Sprintf("Content-Length: %d\r\n", size)
	for _, row := range []struct {
		name, path, head string
		want             int
	}{
		{"no such channel", "other", length + "X-Signed: yes\r\n", http.StatusNotFound},
		{"unsigned", "there", length, http.StatusUnauthorized},
		{"unsigned, of unknown length", "there", "Transfer-Encoding: chunked\r\n", http.StatusUnauthorized},
		{"too long", "there", "Content-Length: 4000000\r\nX-Signed: yes\r\n", http.StatusRequestEntityTooLarge},
	} {
		if got, _ := status(begin(row.path, row.head, 0)); got != row.want {
			t.Errorf("%s: %d, want %d", row.name, got, row.want)
		}
	}
	// One that may come in is told to go on.
	const most = 32 << 20 / size
	var held []net.Conn
	for range most + 1 {
		c := begin("there", length+"X-Signed: yes\r\nExpect: 100-continue\r\n", 0)
		got, h := status(c)
		if got == http.StatusContinue && len(held) < most {
			_, _ = io.WriteString(c, strings.Repeat("x", size-1))
			held = append(held, c)
			continue
		}
		if got != http.StatusServiceUnavailable || h.Get("Retry-After") == "" || len(held) != most {
			t.Errorf("behind %d: %d, %v", len(held), got, h)
		}
	}
	if c := begin("there", "Content-Length: 2\r\nX-Signed: yes\r\n", 2); true {
		if got, _ := status(c); got != http.StatusOK || <-p.received != 2 {
			t.Errorf("a short one without room: %d", got)
		}
	}
	for _, c := range held {
		if _, err := io.WriteString(c, "x"); err != nil {
			t.Fatal(err)
		}
		if got, _ := status(c); got != http.StatusOK || <-p.received != size {
			t.Errorf("one that was let in: %d", got)
		}
	}
	if got, _ := status(begin("there", length+"X-Signed: yes\r\n", size)); got != http.StatusOK {
		t.Errorf("with room again: %d", got)
	}
}
