package sdk_test

import (
	"net/http"
	"testing"

	"github.com/tidemark-ai/tidemark/mcp/mcptest"
	"github.com/tidemark-ai/tidemark/mcp/sdk"
)

func open(t testing.TB, o mcptest.Options) *sdk.Client {
	transport := &http.Transport{}
	c := &sdk.Client{Name: "probe", URL: o.URL, Token: o.Token, MaxBytes: o.MaxBytes, Transport: transport}
	t.Cleanup(func() {
		_ = c.Close()
		transport.CloseIdleConnections()
	})
	return c
}

func TestClient(t *testing.T) {
	mcptest.TestClient(t, func(t *testing.T, o mcptest.Options) mcptest.Client { return open(t, o) })
}
