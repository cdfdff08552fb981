package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark/cmd/cli"
)

// TestImportRefused: who imports hears why a server refused the log, also when the connection broke
// before the reason came.
func TestImportRefused(t *testing.T) {
	const conflict = `{"error":{"type":"conflict","message":"session a holds another conversation","requestId":"R"}}`
	event := func(w http.ResponseWriter, name, data string) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "event: %s\ndata: %s\n\n", name, data)
		_ = http.NewResponseController(w).Flush() // a client that has gone is seen otherwise
	}
	answers := map[string]func(http.ResponseWriter, *http.Request){
		"refuses": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(409); fmt.Fprint(w, conflict) },
		"ends so": func(w http.ResponseWriter, _ *http.Request) { event(w, "error", conflict) },
		"breaks":  func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"breaks late": func(w http.ResponseWriter, _ *http.Request) {
			event(w, "progress", `{"done":1}`)
			panic(http.ErrAbortHandler)
		},
		"proxy": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503); fmt.Fprint(w, "restarted\nmore") },
		"page":  func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(502); fmt.Fprint(w, "<html>") },
		"done": func(w http.ResponseWriter, r *http.Request) {
			n, _ := io.Copy(io.Discard, r.Body)
			event(w, "done", fmt.Sprintf(`{"messages":%d,"badLines":1,"warnings":["line 7"]}`, n))
		},
	}
	log := strings.Repeat("x", 1<<20)
	file := filepath.Join(t.TempDir(), "log.jsonl")
	if err := os.WriteFile(file, []byte(log), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name  string
		seen  []string // answers, one after the other
		from  string
		code  int
		want  string // what is said
		tries int
	}{
		{"at once", []string{"refuses"}, file, 1, "session a holds another conversation\n  what to do: choose another --session", 1},
		{"in the stream", []string{"ends so"}, file, 1, "session a holds another conversation\n", 1},
		{"the connection breaks first", []string{"breaks", "breaks late", "refuses"}, file, 1, "session a holds another conversation\n", 3},
		{"it goes on after a break", []string{"breaks late", "done"}, file, 0, "passed over: line 7\n", 2},
		{"it always breaks", []string{"breaks late", "breaks late", "breaks late", "breaks late", "done"}, file, 1, "  what to do: import it again", 4},
		{"a pipe is sent once", []string{"breaks late", "done"}, "-", 1, "what to do: import it again", 1},
		{"a proxy's own words", []string{"proxy"}, file, 1, "answered 503 Service Unavailable: restarted\n", 1},
		{"a proxy's page", []string{"page"}, file, 1, "answered 502 Bad Gateway\n", 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tries := 0
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				answer := tc.seen[tries]
				tries++
				switch {
				case strings.HasPrefix(answer, "breaks"):
					_, _ = io.CopyN(io.Discard, r.Body, 100) // in the middle of the log
				case answer != "done":
					_, _ = io.Copy(io.Discard, r.Body) // so that its answer is not lost itself
				}
				answers[answer](w, r)
			}))
			defer s.Close()
			var out, told bytes.Buffer
			m := &cli.Main{Stdin: strings.NewReader(log), Stdout: &out, Stderr: &told, Environ: []string{"TIDEMARK_SERVER=" + s.URL}}
			if code := m.Run(t.Context(), commands(), []string{"import", tc.from, "--session", "a"}); code != tc.code || !strings.Contains(told.String(), tc.want) {
				t.Errorf("exit code %d, want %d; said %q, want %q", code, tc.code, told.String(), tc.want)
			}
			if tries != tc.tries {
				t.Errorf("sent %d times, want %d", tries, tc.tries)
			}
			if tc.code == 0 && !strings.Contains(out.String(), fmt.Sprint(len(log))) {
				t.Errorf("not all of the log was sent: %s", out.String())
			}
		})
	}
}
