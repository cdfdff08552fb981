package sdk_test

import (
	"net/http/httptest"
	"testing"

	gosdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/mcp"
	"github.com/tidemark-ai/tidemark/mcp/mcptest"
	"github.com/tidemark-ai/tidemark/tidemarktest"
	"github.com/tidemark-ai/tidemark/toolbox"
)

// BenchmarkCall is a call over HTTP on this machine, through the box: by the small client and by the SDK, one after
// the other and a hundred at once.
func BenchmarkCall(b *testing.B) {
	server := httptest.NewServer(mcptest.Handler(mcptest.Server(nil), &gosdk.StreamableHTTPOptions{Stateless: true, JSONResponse: true}))
	defer server.Close()
	defer server.CloseClientConnections() // the client, which is closed behind this, listens on one
	o := mcptest.Options{URL: server.URL, Token: mcptest.Token}
	own := open(b, o)
	small := &mcp.Client{Name: "probe", URL: o.URL, Token: o.Token, Transport: own.Transport, Runtime: tidemarktest.NewRuntime(b)}
	for _, k := range []struct {
		name string
		toolbox.Source
	}{{"small", small}, {"sdk", own}} {
		box := toolbox.New(toolbox.Config{Runtime: tidemarktest.NewRuntime(b), Servers: []toolbox.Server{{Name: "probe", Source: k.Source, Parallel: 100}}})
		call := func() bool {
			r := box.Call(b.Context(), tidemark.Key("agent:main:main").Scope(), tidemark.ToolUse("call_1", "probe__echo", json.RawMessage(`{"text":"a"}`)))
			return !r.IsError
		}
		b.Run(k.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if !call() {
					b.Fatal("the call failed")
				}
			}
		})
		b.Run(k.name+" 100 at once", func(b *testing.B) {
			b.ReportAllocs()
			done := make(chan bool)
			for b.Loop() {
				for range 100 {
					go func() { done <- call() }()
				}
				for range 100 {
					if !<-done {
						b.Fatal("a call failed")
					}
				}
			}
		})
	}
}
