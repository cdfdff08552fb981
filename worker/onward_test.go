//go:build !js

package worker_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark/host/hosttest"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/worker"
)

// TestOnward: the front of a Worker hears where a body goes that no object can hold, and under which key.
func TestOnward(t *testing.T) {
	h := worker.OnwardOf(worker.New(worker.Config{Runtime: hosttest.Runtime(t), Token: token, Network: http.DefaultTransport, Model: func(context.Context) (worker.Model, error) {
		return worker.Model{Treatment: "page", Messages: worker.Upstream{Base: "http://messages.test", Key: "sk-ours"}, Chat: worker.Upstream{Base: "http://chat.test/v1"}}, nil
	}}))
	for _, row := range []struct {
		path, header, key string
		status            int
		url, sent         string
	}{
		{"/v1/messages?beta=true", "X-Api-Key", ownKey, 200, "http://messages.test/v1/messages?beta=true", ownKey},
		{"/v1/messages", "X-Api-Key", token, 200, "http://messages.test/v1/messages", "sk-ours"},
		{"/p/a%20b/v1/messages/count_tokens", "X-Api-Key", ownKey, 200, "http://messages.test/v1/messages/count_tokens", ownKey},
		{"/v1/chat/completions", "Authorization", "Bearer sk-chat", 200, "http://chat.test/v1/chat/completions", "Bearer sk-chat"},
		{"/v1/messages", "X-Tidemark-Mode", "fast", 400, "", ""},
	} {
		t.Run(row.path+" "+row.header, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodGet, worker.OnwardPath+row.path, nil)
			r.Header.Set(row.header, row.key)
			r.Header.Set("X-Tidemark-Token", token)
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			var got struct {
				URL     string
				Headers [][]string
			}
			if why := w.Header().Get("X-Tidemark-Untouched"); (why != "") != (row.status == 200) { // its treatment is not said to be off
				t.Errorf("untouched since %q", why)
			}
			if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != row.status || got.URL != row.url {
				t.Fatalf("%v: %d %s", err, w.Code, w.Body)
			}
			sent := ""
			for _, h := range got.Headers {
				if strings.HasPrefix(h[0], "X-Tidemark") || strings.Contains(h[1], token) {
					t.Errorf("%s goes on", h)
				}
				if h[0] == "X-Api-Key" || h[0] == "Authorization" {
					sent = h[1]
				}
			}
			if sent != row.sent {
				t.Errorf("under %q, want %q", sent, row.sent)
			}
		})
	}
}
