//go:build !js

package worker_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tidemark-ai/tidemark/worker"
)

// TestAdmit: a large body is asked for before it is read, refused when there is no room, and given
// back once, however its request ends.
func TestAdmit(t *testing.T) {
	const room = 3 << 20
	var held, most, asked atomic.Int64
	s := serve(t, func(c *worker.Config, _ *actors) {
		c.MaxBody, c.MaxMessage = 2<<20+1000, 1<<20
		c.Admit = func(n int64) (func(), bool) {
			asked.Add(1)
			if held.Load()+n > room {
				return nil, false
			}
			most.Store(max(most.Load(), held.Add(n)))
			return func() { held.Add(-n) }, true
		}
	})
	message := func(size int) string { return `{"text":"` + strings.Repeat("tide ", size/5) + `"}` }
	for _, tc := range []struct {
		name    string
		size    int
		chunked bool
		status  int
		asks    int64
	}{
		{"small", 1000, false, 200, 0},
		{"small, of unknown length", 1000, true, 200, 0},
		{"large", 2 << 20, false, 200, 1},
		{"large, of unknown length", 2 << 20, true, 200, 1},
		{"too large", 3 << 20, false, 413, 0},
		{"too large, of unknown length", 3 << 20, true, 413, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			asked.Store(0)
			var body io.Reader = strings.NewReader(message(tc.size))
			if tc.chunked {
				body = io.MultiReader(body) // hides the length
			}
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/v1/sessions/main/messages", body)
			if err != nil {
				t.Fatal(err)
			}
			res, err := s.Client().Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			raw, err := io.ReadAll(res.Body)
			if err != nil || res.StatusCode != tc.status || asked.Load() != tc.asks || held.Load() != 0 {
				t.Errorf("%d, asked %d times, %d held, %v: %.200s", res.StatusCode, asked.Load(), held.Load(), err, raw)
			}
		})
	}
	held.Store(2 << 20)
	f := get[fault](s, 503, "POST", "/v1/sessions/main/messages", message(2<<20))
	if f.Error.Type != "busy" || held.Load() != 2<<20 || most.Load() > room {
		t.Errorf("%+v, %d held, %d at most", f, held.Load(), most.Load())
	}
}

// TestImportedMessageTooLong: where memory is scarce a long message ends the import, which says so, and
// what stands before it is there.
func TestImportedMessageTooLong(t *testing.T) {
	s := serve(t, func(c *worker.Config, _ *actors) { c.MaxSpool, c.MaxMessage = 8<<20, 1<<20 })
	line := func(size int) string {
		raw, err := json.Marshal(strings.Repeat("x", size))
		if err != nil {
			t.Fatal(err)
		}
		return `{"role":"user","content":` + string(raw) + "}\n"
	}
	f := get[fault](s, 413, "POST", "/v1/sessions/lines/import?format=jsonl", line(1000)+line(1<<19)+line(1<<20+100_000))
	if !strings.Contains(f.Error.Message, "a line is longer than 1114112 bytes") {
		t.Errorf("%+v", f)
	}
	if info := get[struct{ Messages int }](s, 200, "GET", "/v1/sessions/lines", ""); info.Messages != 2 {
		t.Errorf("%d messages are there, want 2", info.Messages)
	}
	claude := strings.ReplaceAll(line(1000)+line(1<<20+100_000)+line(2000), `{"role":"user",`, `{"type":"user","sessionId":"s","message":{"role":"user",`)
	claude = strings.ReplaceAll(claude, "\"}\n", "\"}}\n")
	got := get[importing](s, 200, "POST", "/v1/sessions/claude/import?format=claude", claude)
	if got.Messages != 2 || got.BadLines != 1 || !strings.Contains(strings.Join(got.Warnings, ""), "line 2: the message has more than 1048576 bytes") {
		t.Errorf("%+v", got)
	}
}
