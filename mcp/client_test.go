//go:build !js

// The tests of this file listen for HTTP, which nothing does under js/wasm.

package mcp_test

import (
	"net/http"
	"testing"

	"github.com/tidemark-ai/tidemark/mcp"
	"github.com/tidemark-ai/tidemark/mcp/mcptest"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

func open(t testing.TB, o mcptest.Options) *mcp.Client {
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &mcp.Client{Name: "probe", URL: o.URL, Token: o.Token, MaxBytes: o.MaxBytes, Transport: transport, Runtime: tidemarktest.NewRuntime(t)}
}

func TestClient(t *testing.T) {
	mcptest.TestClient(t, func(t *testing.T, o mcptest.Options) mcptest.Client { return open(t, o) })
}
