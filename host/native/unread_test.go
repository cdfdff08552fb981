//go:build !js

package native

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// TestReadRest: who sends a body that is refused hears so, however long it is and whoever wraps it.
func TestReadRest(t *testing.T) {
	const size = 16 << 20 // more than the buffers of a connection
	srv := httptest.NewServer(ReadRest(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, 10)
		_, err := io.ReadAll(r.Body)
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	})))
	defer srv.Close()
	for range 5 {
		// Its length is not known, so that the client cannot know that it is refused before it has sent all of it.
		body := &countingReader{r: strings.NewReader(strings.Repeat("x", size))}
		res, err := http.Post(srv.URL, "text/plain", body)
		if err != nil {
			t.Fatal(err)
		}
		said, err := io.ReadAll(res.Body)
		if res.StatusCode != http.StatusServiceUnavailable || err != nil || !strings.Contains(string(said), "too large") {
			t.Errorf("%d %q, %v", res.StatusCode, said, err)
		}
		if n := body.n.Load(); n != size {
			t.Errorf("%d of %d bytes were taken", n, size)
		}
		_ = res.Body.Close()
	}
}

type countingReader struct {
	r io.Reader
	n atomic.Int64
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n.Add(int64(n))
	return n, err
}
