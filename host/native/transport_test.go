//go:build !js

package native

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestTransport: one connection serves calls one after the other, and a redirect is handed back.
func TestTransport(t *testing.T) {
	var addrs []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		addrs = append(addrs, r.RemoteAddr)
		w.Header().Set("Location", "http://elsewhere.invalid/")
		w.WriteHeader(http.StatusTemporaryRedirect)
	}))
	defer srv.Close()
	rt := Transport()
	for range 2 {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := rt.RoundTrip(req)
		if err != nil || res.StatusCode != http.StatusTemporaryRedirect {
			t.Fatalf("got %v, %v", res, err)
		}
		if _, err := io.Copy(io.Discard, res.Body); err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
	}
	if len(addrs) != 2 || addrs[0] != addrs[1] {
		t.Errorf("calls came from %v, want one connection", addrs)
	}
}
