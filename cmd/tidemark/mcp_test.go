package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark/cmd/cli"
	"github.com/tidemark-ai/tidemark/cmd/node"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// piped runs a bridge in front of a door until its input ends, and returns the messages that it wrote.
func piped(t *testing.T, door http.HandlerFunc, lines ...string) (out []string, said string) {
	t.Helper()
	var written, told bytes.Buffer
	m := &cli.Main{Stdin: strings.NewReader(strings.Join(lines, "\n"))}
	m.Out, m.Err = &cli.Output{W: &written}, &cli.Output{W: &told}
	b := &bridge{m: m, work: map[string]context.CancelFunc{}, c: &client{Caller: &cli.Caller{Base: "http://localhost", RT: node.InThisProcess(door), Where: "the door"}, local: &node.Node{}}}
	if err := b.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(written.String()) {
		if !json.Valid([]byte(line)) {
			t.Errorf("no message: %q", line)
		}
		out = append(out, strings.TrimSuffix(line, "\n"))
	}
	slices.Sort(out) // they are carried out at the same time
	return out, told.String()
}

// TestBridge: each message gets what the door answers, on one line, under its own id; nothing else is on standard output.
func TestBridge(t *testing.T) {
	answer := func(status int, kind, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}
	}
	const ask, tell = `{"jsonrpc":"2.0","id":3,"method":"x"}`, `{"jsonrpc":"2.0","method":"notifications/x"}`
	for _, tc := range []struct {
		name string
		door http.HandlerFunc
		line string
		want []string
		said string
	}{
		{"an answer of many lines", answer(200, "application/json", "{\n \"jsonrpc\":\"2.0\",\n \"id\":3,\"result\":{\"a\":\"<\"}}\n"), ask, []string{`{"jsonrpc":"2.0","id":3,"result":{"a":"<"}}`}, ""},
		{"a stream", answer(200, "text/event-stream", ": hello\n\ndata: {\"method\":\"notifications/progress\"}\n\ndata: {\"id\":3}\n\n"), ask, []string{`{"id":3}`, `{"method":"notifications/progress"}`}, ""},
		{"a stream that breaks off", answer(200, "text/event-stream", ": hello\n\n"), ask, []string{`{"error":{"code":-32000,"message":"the answer of the door broke off (unexpected EOF); send the same call with the same id again"},"id":3,"jsonrpc":"2.0"}`}, ""},
		{"a notification", answer(202, "", ""), tell, nil, ""},
		{"no token", answer(401, "application/json", `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"no token"}}`), ask, []string{`{"error":{"code":-32000,"message":"no token"},"id":3,"jsonrpc":"2.0"}`}, ""},
		{"no door", answer(404, "text/html", "<html>"), ask, []string{`{"error":{"code":-32000,"message":"the door answered with status 404 and no JSON-RPC; is it a Tidemark server of this version?"},"id":3,"jsonrpc":"2.0"}`}, ""},
		{"no door for a notification", answer(502, "text/html", "<html>"), tell, nil, "the door answered with status 502"},
		{"an error of the door", answer(400, "application/json", `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no JSON"}}`), `nonsense`, []string{`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no JSON"}}`}, ""},
		{"too long", answer(200, "application/json", ask), strings.Repeat("x", maxMCPLine+1), []string{`{"error":{"code":-32700,"message":"a message of over 8388608 bytes"},"id":null,"jsonrpc":"2.0"}`}, ""},
		{"nothing", answer(500, "", ""), " \r", nil, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, said := piped(t, tc.door, tc.line)
			if !slices.Equal(got, tc.want) || !strings.Contains(said, tc.said) || tc.said == "" && said != "" {
				t.Errorf("%q and %q, want %q and %q", got, said, tc.want, tc.said)
			}
		})
	}
}

// TestBridgeHeaders: a message of the version without a handshake gets the headers that a client over HTTP would send.
func TestBridgeHeaders(t *testing.T) {
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}`
	for _, tc := range []struct{ name, line, version, method, called string }{
		{"before", `{"id":1,"method":"tools/call","params":{"name":"recall"}}`, "", "", ""},
		{"a tool", `{"id":1,"method":"tools/call","params":{"name":"recall",` + meta + `}}`, "2026-07-28", "tools/call", "recall"},
		{"a resource", `{"id":1,"method":"resources/read","params":{"uri":"a:b",` + meta + `}}`, "2026-07-28", "resources/read", "a:b"},
		{"not ASCII", `{"id":1,"method":"tools/call","params":{"name":"ä\n",` + meta + `}}`, "2026-07-28", "tools/call", "=?base64?w6QK?="},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var h http.Header
			piped(t, func(w http.ResponseWriter, r *http.Request) { h = r.Header; w.WriteHeader(http.StatusAccepted) }, tc.line)
			if h.Get("Mcp-Protocol-Version") != tc.version || h.Get("Mcp-Method") != tc.method || h.Get("Mcp-Name") != tc.called || !strings.Contains(h.Get("Accept"), "text/event-stream") {
				t.Errorf("%v", h)
			}
		})
	}
}

// TestBridgeCancel: a request that its client gives up ends at the door and gets no answer; others go on.
func TestBridgeCancel(t *testing.T) {
	in, feed := io.Pipe()
	var written bytes.Buffer
	m := &cli.Main{Stdin: in}
	m.Out, m.Err = &cli.Output{W: &written}, &cli.Output{W: io.Discard}
	begun, left := make(chan bool), make(chan error, 1)
	door := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body) // what is missing is no such request
		if strings.Contains(string(raw), `"slow"`) {
			close(begun)
			<-r.Context().Done()
			left <- context.Cause(r.Context())
			return
		}
		w.WriteHeader(http.StatusAccepted)
	})
	b := &bridge{m: m, work: map[string]context.CancelFunc{}, c: &client{Caller: &cli.Caller{Base: "http://localhost", RT: node.InThisProcess(door), Where: "the door"}, local: &node.Node{}}}
	ended := make(chan error, 1)
	go func() { ended <- b.run(t.Context()) }()
	write := func(line string) {
		if _, err := io.WriteString(feed, line+"\n"); err != nil {
			t.Error(err)
		}
	}
	write(`{"jsonrpc":"2.0","id":"a","method":"slow"}`)
	<-begun
	write(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"b"}}`)
	write(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"a"}}`)
	if err := <-left; err == nil {
		t.Error("it did not end")
	}
	if err := errors.Join(feed.Close(), <-ended); err != nil || written.Len() > 0 {
		t.Errorf("%v: %q", err, written.String())
	}
}

// FuzzMessageLines: every line that is not blank comes, in order, without the spaces around it.
func FuzzMessageLines(f *testing.F) {
	f.Add("a\nb\r\n\n  c")
	f.Add(strings.Repeat("x", 70_000) + "\n{}\n")
	f.Fuzz(func(t *testing.T, text string) {
		var want, got []string
		for _, line := range strings.Split(text, "\n") {
			if line = string(bytes.TrimSpace([]byte(line))); line != "" {
				want = append(want, line)
			}
		}
		lines, failed := make(chan []byte), make(chan error, 1)
		go func() { failed <- messageLines(t.Context(), strings.NewReader(text), lines); close(lines) }()
		for line := range lines {
			got = append(got, string(line))
			headOf(line) // of nothing it fails
		}
		if err := <-failed; err != nil || !slices.Equal(got, want) {
			t.Errorf("%q became %q, %v", text, got, err)
		}
	})
}
