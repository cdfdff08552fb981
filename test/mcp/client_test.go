// Package mcp tries the server of the Model Context Protocol with the official client in Go.
package mcp

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const patience = 2 * time.Minute

// bearer adds the token to requests.
type bearer struct{ token string }

// RoundTrip implements http.RoundTripper.
func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if b.token != "" {
		r.Header.Set("Authorization", "Bearer "+b.token)
	}
	return http.DefaultTransport.RoundTrip(r)
}

// peer is a client that is connected, and what it heard beside answers.
type peer struct {
	t *testing.T
	*mcp.ClientSession

	progress chan string // the client tells it from a queue of its own, so it may come behind the answer
}

// heard takes the progress of a call that has this text in all, or what there is when it goes another way.
func (p *peer) heard(text string) string {
	got := ""
	for got != text && strings.HasPrefix(text, got) {
		select {
		case more := <-p.progress:
			got += more
		case <-time.After(patience):
			return got
		}
	}
	return got
}

// connect asks for a version, which must be the one that is agreed on.
func connect(t *testing.T, url, version string) *peer {
	p := &peer{t: t, progress: make(chan string, 1000)}
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			p.progress <- r.Params.Message
		},
	})
	transport := &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: bearer{os.Getenv("TIDEMARK_MCP_TOKEN")}}}
	s, err := client.Connect(t.Context(), transport, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	if got := s.InitializeResult(); got.ProtocolVersion != version || got.ServerInfo.Name != "tidemark" || got.Instructions == "" {
		t.Errorf("%+v", got)
	}
	p.ClientSession = s
	return p
}

// call calls a tool and returns its text.
func (p *peer) call(fails bool, name string, args map[string]any) string {
	p.t.Helper()
	params := &mcp.CallToolParams{Name: name, Arguments: args}
	params.SetProgressToken("p")
	r, err := p.CallTool(p.t.Context(), params)
	if err != nil || r.IsError != fails || len(r.Content) != 1 {
		p.t.Fatalf("%s: %+v, %v", name, r, err)
	}
	return r.Content[0].(*mcp.TextContent).Text
}

// TestClient uses the server at TIDEMARK_MCP_URL in each version of the protocol.
func TestClient(t *testing.T) {
	url := os.Getenv("TIDEMARK_MCP_URL")
	if url == "" {
		t.Skip("TIDEMARK_MCP_URL names no server; make e2e-mcp starts one")
	}
	for _, version := range []string{"2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26"} {
		t.Run(version, func(t *testing.T) {
			p := connect(t, url, version)
			tools := 0
			for tool, err := range p.Tools(t.Context(), nil) {
				if err != nil || tool.Annotations == nil {
					t.Fatalf("%+v, %v", tool, err)
				}
				tools++
			}
			if tools != 10 {
				t.Errorf("%d tools", tools)
			}
			p.talk("go-"+strings.ReplaceAll(version, "-", ""), "hello "+version)
			p.memory("The Go client spoke " + version + ".")
			if _, err := p.CallTool(t.Context(), &mcp.CallToolParams{Name: "no_such_tool"}); err == nil || !strings.Contains(err.Error(), "unknown tool") {
				t.Errorf("%v", err)
			}
			if _, err := p.ListPrompts(t.Context(), nil); err == nil {
				t.Error("it lists prompts")
			}
			p.call(false, "sessions_list", nil) // after errors it goes on
			if err := p.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// talk says something and reads it back.
func (p *peer) talk(session, text string) {
	p.t.Helper()
	var said struct{ State, Text string }
	if err := json.Unmarshal([]byte(p.call(false, "send_message", map[string]any{"session": session, "text": text})), &said); err != nil || said.State != "done" || said.Text == "" {
		p.t.Errorf("%+v, %v", said, err)
	}
	if got := p.call(false, "session_read", map[string]any{"session": session}); !strings.Contains(got, text) {
		p.t.Errorf("%s", got)
	}
	if got := p.heard(said.Text); got != said.Text {
		p.t.Errorf("progress %q, the answer is %q", got, said.Text)
	}
	p.call(true, "session_read", map[string]any{"session": "no-such-session"})
}

// memory writes something down and finds it in a resource.
func (p *peer) memory(fact string) {
	p.t.Helper()
	p.call(false, "memory_append", map[string]any{"text": fact})
	if got := p.call(false, "memory_search", map[string]any{"query": fact}); !strings.Contains(got, fact) {
		p.t.Errorf("%s", got)
	}
	list, err := p.ListResources(p.t.Context(), nil)
	if err != nil || len(list.Resources) == 0 {
		p.t.Fatalf("%+v, %v", list, err)
	}
	if f, err := p.ReadResource(p.t.Context(), &mcp.ReadResourceParams{URI: list.Resources[0].URI}); err != nil || f.Contents[0].Text == "" {
		p.t.Errorf("%+v, %v", f, err)
	}
}
