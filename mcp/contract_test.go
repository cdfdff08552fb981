//go:build !js

// The tests of this file listen for HTTP, which nothing does under js/wasm.

package mcp_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	gosdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/mcp"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// options are what a client is opened with; its name is "probe".
type options struct {
	URL, Token string
	MaxBytes   int
}

// probeToken is what servers of these tests want.
const probeToken = "hush-hush-7"

func open(t testing.TB, o options) *mcp.Client {
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &mcp.Client{Name: "probe", URL: o.URL, Token: o.Token, MaxBytes: o.MaxBytes, Transport: transport, Runtime: tidemarktest.NewRuntime(t)}
}

// pixel is a PNG of one point.
const pixel = "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89\x00\x00\x00\rIDATx\x9cc\xf8\xcf\xc0\xf0\x1f\x00\x05\x00\x01\xff\x89\x99=\x1d\x00\x00\x00\x00IEND\xaeB`\x82"

// waits is how long the tool waits takes.
const waits = 1500 * time.Millisecond

type echoed struct {
	Text string `json:"text" jsonschema:"what to say"`
}

// probeServer is a server with tools of each kind of result; versions are those it speaks, nil for all.
func probeServer(versions []string) *gosdk.Server {
	s := gosdk.NewServer(&gosdk.Implementation{Name: "probe", Version: "1"}, &gosdk.ServerOptions{SupportedProtocolVersions: versions, PageSize: 2})
	gosdk.AddTool(s, &gosdk.Tool{Name: "echo", Description: "Says it again.", Annotations: &gosdk.ToolAnnotations{ReadOnlyHint: true}},
		func(_ context.Context, _ *gosdk.CallToolRequest, in echoed) (*gosdk.CallToolResult, any, error) {
			return &gosdk.CallToolResult{Content: []gosdk.Content{&gosdk.TextContent{Text: in.Text}}}, nil, nil
		})
	raw := func(name string, f func(context.Context) (*gosdk.CallToolResult, error)) {
		s.AddTool(&gosdk.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)}, func(ctx context.Context, _ *gosdk.CallToolRequest) (*gosdk.CallToolResult, error) { return f(ctx) })
	}
	raw("parts", func(context.Context) (*gosdk.CallToolResult, error) {
		return &gosdk.CallToolResult{Content: []gosdk.Content{
			&gosdk.TextContent{Text: "first"},
			&gosdk.ImageContent{MIMEType: "image/png", Data: []byte(pixel)},
			&gosdk.ImageContent{MIMEType: "image/tiff", Data: []byte("II*")},
			&gosdk.AudioContent{MIMEType: "audio/wav", Data: []byte("RIFF")},
			&gosdk.ResourceLink{URI: "file:///notes.txt", Name: "notes"},
			&gosdk.EmbeddedResource{Resource: &gosdk.ResourceContents{URI: "file:///a.txt", MIMEType: "text/plain", Text: "inside"}},
			&gosdk.EmbeddedResource{Resource: &gosdk.ResourceContents{URI: "file:///a.bin", MIMEType: "application/x-bin", Blob: []byte{1, 2, 3}}},
		}}, nil
	})
	raw("structured", func(context.Context) (*gosdk.CallToolResult, error) {
		return &gosdk.CallToolResult{Content: []gosdk.Content{}, StructuredContent: map[string]any{"degrees": 21}}, nil
	})
	raw("fails", func(context.Context) (*gosdk.CallToolResult, error) {
		return &gosdk.CallToolResult{IsError: true, Content: []gosdk.Content{&gosdk.TextContent{Text: "no such file"}}}, nil
	})
	raw("waits", func(ctx context.Context) (*gosdk.CallToolResult, error) {
		select { // not every version tells a server that nobody waits
		case <-ctx.Done():
		case <-time.After(waits):
		}
		return nil, fmt.Errorf("waited: %w", tidemark.ErrTimeout)
	})
	s.AddTool(&gosdk.Tool{Name: "where", InputSchema: json.RawMessage(`{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}},"required":["region"]}`)},
		func(_ context.Context, r *gosdk.CallToolRequest) (*gosdk.CallToolResult, error) {
			return &gosdk.CallToolResult{Content: []gosdk.Content{&gosdk.TextContent{Text: r.Extra.Header.Get("Mcp-Param-Region")}}}, nil
		})
	return s
}

// guarded serves a server to holders of probeToken.
func guarded(s *gosdk.Server, o *gosdk.StreamableHTTPOptions) http.Handler {
	inner := gosdk.NewStreamableHTTPHandler(func(*http.Request) *gosdk.Server { return s }, o)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+probeToken {
			http.Error(w, "who are you? not "+r.Header.Get("Authorization"), http.StatusUnauthorized)
			return
		}
		inner.ServeHTTP(w, r)
	})
}

// serve starts a server that ends with the test.
func serve(t *testing.T, h http.Handler) string {
	s := httptest.NewServer(h)
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s.URL
}

func within(t *testing.T, d time.Duration) context.Context {
	ctx, stop := context.WithTimeoutCause(t.Context(), d, tidemark.ErrTimeout)
	t.Cleanup(stop)
	return ctx
}

func use(name, input string) tidemark.Block {
	return tidemark.ToolUse("call_1", name, json.RawMessage(input))
}

func text(b tidemark.Block) string {
	var parts []string
	for _, c := range b.Content {
		parts = append(parts, c.Text)
	}
	return strings.Join(parts, "\n")
}

// TestClient holds a client to the contract of toolbox.Source.
func TestClient(t *testing.T) {
	for _, k := range []struct {
		name, version string
		speaks        []string
		o             *gosdk.StreamableHTTPOptions
	}{
		{"stateless", mcp.Stateless, nil, &gosdk.StreamableHTTPOptions{Stateless: true}},
		{"stateless in JSON", mcp.Stateless, nil, &gosdk.StreamableHTTPOptions{Stateless: true, JSONResponse: true}},
		{"2025-11-25", "2025-11-25", []string{"2025-11-25"}, nil},
		{"2025-06-18", "2025-06-18", []string{"2025-06-18"}, nil},
		{"2025-03-26 in JSON", "2025-03-26", []string{"2025-03-26"}, &gosdk.StreamableHTTPOptions{JSONResponse: true}},
		{"old without sessions", "2025-11-25", []string{"2025-11-25"}, &gosdk.StreamableHTTPOptions{Stateless: true}},
	} {
		t.Run(k.name, func(t *testing.T) {
			url := serve(t, guarded(probeServer(k.speaks), k.o))
			testCalls(t, open(t, options{URL: url, Token: probeToken}), k.version)
		})
	}
	t.Run("session lost", func(t *testing.T) { testLost(t) })
	t.Run("list changed", func(t *testing.T) { testChanged(t) })
	t.Run("token", func(t *testing.T) { testToken(t) })
	t.Run("parallel", func(t *testing.T) { testParallel(t) })
	t.Run("odd parts", func(t *testing.T) { testOdd(t) })
	t.Run("faults", func(t *testing.T) { testFaults(t) })
}

func testCalls(t *testing.T, c *mcp.Client, version string) {
	ctx := within(t, tidemarktest.Patience)
	tools, err := c.Tools(ctx)
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]tidemark.Tool{}
	for _, tool := range tools {
		byName[tool.Name] = tool
	}
	if len(tools) != 6 || !byName["echo"].Idempotent || byName["fails"].Idempotent || !strings.Contains(string(byName["echo"].InputSchema), "what to say") {
		t.Errorf("tools of three pages: %d, %+v", len(tools), tools)
	}
	if c.Version() != version {
		t.Errorf("speaks %q, want %s", c.Version(), version)
	}
	for _, k := range []struct {
		name, tool, input, want string
		isError                 bool
	}{
		{"text", "echo", `{"text":"low at six"}`, "low at six", false},
		{"structured", "structured", `{}`, `{"degrees":21}`, false},
		{"an error of the tool", "fails", `{}`, "no such file", true},
		{"an argument that is a header", "where", `{"region":"eu"}`, "eu", false},
	} {
		if k.tool == "where" && version != mcp.Stateless {
			k.want = ""
		}
		b, err := c.Call(ctx, use(k.tool, k.input))
		if err != nil || text(b) != k.want || b.IsError != k.isError || b.ToolUseID != "call_1" || b.Type != tidemark.TypeToolResult {
			t.Errorf("%s: %s, %v", k.name, b.AppendJSON(nil), err)
		}
	}
	testParts(t, c)
	for _, k := range []struct {
		name, tool, input string
		want              error
	}{
		{"no such tool", "gone", `{}`, tidemark.ErrNotFound},
	} {
		if _, err := c.Call(ctx, use(k.tool, k.input)); !errors.Is(err, k.want) {
			t.Errorf("%s: %v", k.name, err)
		}
	}
	if b, err := c.Call(ctx, use("echo", `{"text":7}`)); err == nil && !b.IsError || err != nil && !errors.Is(err, tidemark.ErrInvalid) {
		t.Errorf("arguments of the wrong type: %s, %v", b.AppendJSON(nil), err)
	}
	short, stop := context.WithTimeoutCause(ctx, 200*time.Millisecond, tidemark.ErrTimeout)
	defer stop()
	if _, err := c.Call(short, use("waits", `{}`)); !errors.Is(err, tidemark.ErrTimeout) {
		t.Errorf("a tool that does not end: %v", err)
	}
	if b, err := c.Call(ctx, use("echo", `{"text":"still here"}`)); err != nil || text(b) != "still here" {
		t.Errorf("behind a call that was given up: %v", err)
	}
}

func testParts(t *testing.T, c *mcp.Client) {
	b, err := c.Call(within(t, tidemarktest.Patience), use("parts", `{}`))
	if err != nil || len(b.Content) != 7 {
		t.Fatalf("parts: %s, %v", b.AppendJSON(nil), err)
	}
	if img := b.Content[1]; img.Type != tidemark.TypeImage || img.Source == nil || img.Source.MediaType != "image/png" {
		t.Errorf("image: %s", img.AppendJSON(nil))
	}
	for i, want := range map[int]string{0: "first", 2: "image/tiff", 3: "audio/wav, 4 bytes", 4: "file:///notes.txt", 5: "inside", 6: "3 bytes"} {
		if b.Content[i].Type != tidemark.TypeText || !strings.Contains(b.Content[i].Text, want) {
			t.Errorf("part %d: %s, want %q", i, b.Content[i].AppendJSON(nil), want)
		}
	}
}

// testLost: a server that began anew knows no session of before, and the call is made in a new one.
func testLost(t *testing.T) {
	for _, status := range []int{http.StatusNotFound, http.StatusBadRequest} {
		var now atomic.Pointer[http.Handler]
		begin := func() {
			h := guarded(probeServer([]string{"2025-11-25"}), nil)
			now.Store(&h)
		}
		begin()
		url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			rec := w
			if status == http.StatusBadRequest {
				rec = &changed{ResponseWriter: w, from: http.StatusNotFound, to: status}
			}
			(*now.Load()).ServeHTTP(rec, r)
		}))
		c := open(t, options{URL: url, Token: probeToken})
		for i := range 3 {
			if b, err := c.Call(within(t, tidemarktest.Patience), use("echo", `{"text":"a"}`)); err != nil || text(b) != "a" {
				t.Errorf("unknown sessions are %d, life %d: %v", status, i, err)
			}
			begin()
		}
	}
}

// changed has one status sent as another.
type changed struct {
	http.ResponseWriter
	from, to int
}

func (c *changed) WriteHeader(status int) {
	if status == c.from {
		status = c.to
	}
	c.ResponseWriter.WriteHeader(status)
}

// Unwrap is for http.ResponseController.
func (c *changed) Unwrap() http.ResponseWriter { return c.ResponseWriter }

// testChanged: the server says during a call that its list is another.
func testChanged(t *testing.T) {
	url := serve(t, script(func(w http.ResponseWriter, id string) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, ": hello\nevent: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":\"info\",\"data\":\"x\"}}\n\n")
		fmt.Fprint(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\r\n\r\n")
		fmt.Fprint(w, "data: {\"jsonrpc\":\"2.0\",\ndata: \"id\":"+id+",\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"done\"}]}}\n\n")
	}))
	c := open(t, options{URL: url})
	_, before := c.Fresh()
	if b, err := c.Call(within(t, tidemarktest.Patience), use("probe", `{}`)); err != nil || text(b) != "done" {
		t.Fatalf("%s, %v", b.AppendJSON(nil), err)
	}
	for range 1000 { // a client may hear of it on another goroutine
		if _, after := c.Fresh(); after != before {
			return
		}
		if _, err := c.Call(within(t, tidemarktest.Patience), use("probe", `{}`)); err != nil {
			t.Fatal(err)
		}
	}
	t.Error("the client did not notice that the list is another")
}

// testToken: a token that is not taken is not told, and which setting it is, is.
func testToken(t *testing.T) {
	url := serve(t, guarded(probeServer(nil), &gosdk.StreamableHTTPOptions{Stateless: true}))
	for _, token := range []string{"", "wrong-token-9"} {
		_, err := open(t, options{URL: url, Token: token}).Tools(within(t, tidemarktest.Patience))
		if !errors.Is(err, tidemark.ErrUnauthorized) || !strings.Contains(err.Error(), "tools.mcp.probe.secret") || token != "" && strings.Contains(err.Error(), token) {
			t.Errorf("token %q: %v", token, err)
		}
	}
	var asked atomic.Int64
	elsewhere := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		guarded(probeServer(nil), &gosdk.StreamableHTTPOptions{Stateless: true}).ServeHTTP(w, r)
	}))
	for _, status := range []int{301, 302, 303, 307, 308} {
		from := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, elsewhere, status) }))
		if _, err := open(t, options{URL: from, Token: probeToken}).Tools(within(t, tidemarktest.Patience)); !errors.Is(err, tidemark.ErrForbidden) || !strings.Contains(err.Error(), "tools.mcp.probe.url") {
			t.Errorf("redirected elsewhere by %d: %v", status, err)
		}
	}
	if n := asked.Load(); n != 0 {
		t.Errorf("another origin got %d requests", n)
	}
	mux := http.NewServeMux()
	mux.Handle("/new", guarded(probeServer(nil), &gosdk.StreamableHTTPOptions{Stateless: true}))
	mux.Handle("/old", http.RedirectHandler("/new", http.StatusPermanentRedirect))
	if _, err := open(t, options{URL: serve(t, mux) + "/old", Token: probeToken}).Tools(within(t, tidemarktest.Patience)); err != nil {
		t.Errorf("redirected to another path: %v", err)
	}
}

// testParallel: a hundred calls at once each get their own answer.
func testParallel(t *testing.T) {
	c := open(t, options{URL: serve(t, guarded(probeServer(nil), &gosdk.StreamableHTTPOptions{Stateless: true})), Token: probeToken})
	ctx := within(t, tidemarktest.Patience)
	out := make(chan error, 100)
	for i := range cap(out) {
		go func() {
			b, err := c.Call(ctx, use("echo", fmt.Sprintf(`{"text":"%d"}`, i)))
			if err == nil && text(b) != fmt.Sprint(i) {
				err = fmt.Errorf("call %d was answered %q", i, text(b))
			}
			out <- err
		}()
	}
	for range cap(out) {
		if err := <-out; err != nil {
			t.Error(err)
		}
	}
}
