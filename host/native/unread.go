//go:build !js

package native

import (
	"io"
	"net/http"
	"time"
)

// Bounds of what is read behind an answer.
const (
	unreadBytes = 64 << 20
	unreadTime  = 30 * time.Second
)

// ReadRest reads what is left of a body that h refused, within bounds. net/http reads 256 KiB of it and ends the
// connection: a client that is still sending learns that its connection broke, not why. Who waits for leave to send
// hears the answer at once.
func ReadRest(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := r.Body // handlers may wrap it
		h.ServeHTTP(w, r)
		if r.ContentLength == 0 || r.Header.Get("Expect") != "" {
			return
		}
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(unreadTime))
		_, _ = io.CopyN(io.Discard, body, unreadBytes) // what cannot be read ends the connection, as without
	})
}
