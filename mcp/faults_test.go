//go:build !js

// The tests of this file listen for HTTP, which nothing does under js/wasm.

package mcp_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// maxScripted bounds what a scripted server reads of a request.
const maxScripted = 1 << 20

// script is a server of the version 2025-11-25 with one tool, probe, whose calls do as told. id is as it stood in the
// request.
func script(call func(w http.ResponseWriter, id string)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			http.Error(w, "no", http.StatusMethodNotAllowed)
			return
		}
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
		}
		raw, err := io.ReadAll(io.LimitReader(r.Body, maxScripted))
		if err != nil || json.Unmarshal(raw, &m) != nil {
			http.Error(w, "no JSON", http.StatusBadRequest)
			return
		}
		answer := func(result string) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,%s}`, m.ID, result)
		}
		switch m.Method {
		case "initialize":
			answer(`"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"script","version":"1"}}`)
		case "tools/list":
			answer(`"result":{"tools":[{"name":"probe","inputSchema":{"type":"object"}}]}`)
		case "tools/call":
			call(w, string(m.ID))
		case "server/discover":
			answer(`"error":{"code":-32601,"message":"unknown method"}`)
		default:
			w.WriteHeader(http.StatusAccepted)
		}
	})
}

func typed(w http.ResponseWriter, kind string) { w.Header().Set("Content-Type", kind) }

// endless writes until nobody reads.
func endless(w http.ResponseWriter, piece string, most int) {
	block := strings.Repeat(piece, max(1, (64<<10)/len(piece)))
	for n := 0; n < most; n += len(block) {
		if _, err := io.WriteString(w, block); err != nil {
			return
		}
	}
}

// fault is what a server does to a call, and which errors it may be.
type fault struct {
	name string
	want []error
	call func(w http.ResponseWriter, id string)
}

func faults() []fault {
	const huge = 100 << 20
	return []fault{
		{"100 MB of JSON", []error{tidemark.ErrTooLarge}, func(w http.ResponseWriter, id string) {
			typed(w, "application/json")
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"`, id)
			endless(w, "a", huge)
		}},
		{"an event of 100 MB", []error{tidemark.ErrTooLarge, tidemark.ErrUnavailable}, func(w http.ResponseWriter, _ string) {
			typed(w, "text/event-stream")
			fmt.Fprint(w, "data: ")
			endless(w, "a", huge)
		}},
		{"events without end", []error{tidemark.ErrTooLarge, tidemark.ErrTimeout}, func(w http.ResponseWriter, _ string) {
			typed(w, "text/event-stream")
			endless(w, ": still here\n\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\"}\n\n", huge)
		}},
		{"a stream that ends too early", []error{tidemark.ErrUnavailable}, func(w http.ResponseWriter, _ string) {
			typed(w, "text/event-stream")
			fmt.Fprint(w, "data: {\"jsonrpc\":\"2.0\"")
		}},
		{"less than announced", []error{tidemark.ErrUnavailable}, func(w http.ResponseWriter, id string) {
			typed(w, "application/json")
			w.Header().Set("Content-Length", "100000")
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{`, id)
		}},
		{"invalid JSON", []error{tidemark.ErrUnavailable}, func(w http.ResponseWriter, _ string) {
			typed(w, "application/json")
			fmt.Fprint(w, `{"jsonrpc":"2.0","id":`)
		}},
		{"another id", []error{tidemark.ErrUnavailable, tidemark.ErrTimeout}, func(w http.ResponseWriter, _ string) {
			typed(w, "application/json")
			fmt.Fprint(w, `{"jsonrpc":"2.0","id":987654,"result":{"content":[]}}`)
		}},
		{"a page", []error{tidemark.ErrUnavailable}, func(w http.ResponseWriter, _ string) {
			typed(w, "text/html; charset=utf-8")
			fmt.Fprint(w, "<html>sign in</html>")
		}},
		{"nothing, slowly", []error{tidemark.ErrTimeout}, func(w http.ResponseWriter, _ string) {
			<-w.(interface{ CloseNotify() <-chan bool }).CloseNotify()
		}},
		{"a cut connection", []error{tidemark.ErrUnavailable}, func(http.ResponseWriter, string) { panic(http.ErrAbortHandler) }},
		{"overloaded", []error{tidemark.ErrUnavailable}, func(w http.ResponseWriter, _ string) { http.Error(w, "later", http.StatusServiceUnavailable) }},
		{"an error of its own", []error{tidemark.ErrConflict}, func(w http.ResponseWriter, id string) {
			typed(w, "application/json")
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"the disk is full"}}`, id)
		}},
		{"refused arguments", []error{tidemark.ErrInvalid}, func(w http.ResponseWriter, id string) {
			typed(w, "application/json")
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":"path is required"}}`, id)
		}},
	}
}

// testFaults: whatever a server does, a call ends, with an error that can be told apart and little memory.
func testFaults(t *testing.T) {
	for _, k := range faults() {
		t.Run(k.name, func(t *testing.T) {
			c := open(t, options{URL: serve(t, script(k.call)), MaxBytes: 64 << 10})
			if _, err := c.Tools(within(t, tidemarktest.Patience)); err != nil {
				t.Fatal(err)
			}
			defer debug.SetGCPercent(debug.SetGCPercent(50)) // what is garbage is not held
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			_, err := c.Call(within(t, time.Second), use("probe", `{}`))
			runtime.ReadMemStats(&after)
			fits := false
			for _, want := range k.want {
				fits = fits || errors.Is(err, want)
			}
			if !fits {
				t.Errorf("%v, want one of %v", err, k.want)
			}
			if used := int64(after.HeapAlloc) - int64(before.HeapAlloc); used > 16<<20 {
				t.Errorf("took %d MB", used>>20)
			}
		})
	}
	t.Run("nobody listens", func(t *testing.T) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		at := "http://" + l.Addr().String()
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := open(t, options{URL: at}).Tools(within(t, tidemarktest.Patience)); !errors.Is(err, tidemark.ErrUnavailable) {
			t.Error(err)
		}
	})
}

// testOdd: one part of a type that nobody knows does not lose the text beside it, as a document and as an event.
func testOdd(t *testing.T) {
	for _, k := range []struct{ name, content, want string }{
		{"known", `{"type":"text","text":"before"},{"type":"text","text":"behind"}`, "before|behind"},
		{"another type", `{"type":"text","text":"before"},{"type":"table","data":{"rows":[[1,2]]},"text":["x"]},{"type":"text","text":"behind"}`, "before|[a part of the type table|behind"},
		{"without a type", `{"type":"text","text":"before"},{"uri":{"a":1}},{"type":"text","text":"behind"}`, "before|[a part of the type|behind"},
	} {
		for _, kind := range []string{"application/json", "text/event-stream"} {
			t.Run(k.name+", "+kind, func(t *testing.T) {
				url := serve(t, script(func(w http.ResponseWriter, id string) {
					typed(w, kind)
					body := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"content":[%s]}}`, id, k.content)
					if kind == "text/event-stream" {
						body = "event: message\ndata: " + body + "\n\n"
					}
					_, _ = io.WriteString(w, body) // the client may be gone
				}))
				b, err := open(t, options{URL: url}).Call(within(t, 10*time.Second), use("probe", `{}`))
				if err != nil {
					t.Fatal(err)
				}
				want := strings.Split(k.want, "|")
				if len(b.Content) != len(want) {
					t.Fatalf("%d parts: %s", len(b.Content), b.AppendJSON(nil))
				}
				for i, w := range want {
					if !strings.HasPrefix(b.Content[i].Text, w) {
						t.Errorf("part %d is %q, want %q", i, b.Content[i].Text, w)
					}
				}
			})
		}
	}
}

// TestOddHints: what a server says beside a tool's name and schema may be of any kind, and costs neither the tool nor the others.
func TestOddHints(t *testing.T) {
	plain := script(nil)
	url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, err := io.ReadAll(io.LimitReader(r.Body, maxScripted))
		if err != nil || !strings.Contains(string(raw), `"tools/list"`) {
			r.Body = io.NopCloser(strings.NewReader(string(raw)))
			plain.ServeHTTP(w, r)
			return
		}
		var m struct {
			ID json.RawMessage `json:"id"`
		}
		_ = json.Unmarshal(raw, &m) // without an id the client says so
		typed(w, "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"tools":[
			{"name":"a","description":5,"title":"A","annotations":{"readOnlyHint":"yes"}},
			"odd", {"name":5}, {"description":"of no name"},
			{"name":"b","description":["x"],"title":7,"annotations":[]},
			{"name":"c","description":"C","title":null,"annotations":{"readOnlyHint":1,"idempotentHint":true}},
			{"name":"d","annotations":{"readOnlyHint":true,"idempotentHint":"no"}}]}}`, m.ID)
	}))
	tools, err := open(t, options{URL: url}).Tools(within(t, 10*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, tool := range tools {
		got = append(got, fmt.Sprintf("%s %q %v", tool.Name, tool.Description, tool.Idempotent))
	}
	if want := `[a "A" false b "" false c "C" true d "" true]`; fmt.Sprint(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
