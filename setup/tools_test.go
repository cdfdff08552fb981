package setup_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/config"
	"github.com/tidemark-ai/tidemark/mcp"
	"github.com/tidemark-ai/tidemark/setup"
	"github.com/tidemark-ai/tidemark/tidemarktest"
	"github.com/tidemark-ai/tidemark/toolbox"
)

// dialed is a source that knows how it was made.
type dialed struct{ setup.ToolProcess }

func (d dialed) Tools(context.Context) ([]tidemark.Tool, error) {
	return []tidemark.Tool{{Name: "tide", Idempotent: true}}, nil
}

func (d dialed) Call(_ context.Context, call tidemark.Block) (tidemark.Block, error) {
	return tidemark.ToolResult(call.ID, strings.Join(d.Env, " "), false), nil
}

// web is a server over HTTP whose tool says the header by which it was asked.
type web struct{}

func (web) RoundTrip(r *http.Request) (*http.Response, error) {
	var m struct {
		ID     int64  `json:"id"`
		Method string `json:"method"`
	}
	if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
		return nil, err
	}
	result := map[string]any{
		"server/discover": map[string]any{"supportedVersions": []string{mcp.Stateless}},
		"tools/list":      map[string]any{"tools": []any{map[string]any{"name": "tide", "inputSchema": map[string]any{"type": "object"}, "annotations": map[string]any{"idempotentHint": true}}}},
		"tools/call":      map[string]any{"content": []any{map[string]any{"type": "text", "text": r.Header.Get("Authorization")}}},
	}[m.Method]
	w := httptest.NewRecorder()
	w.Header().Set("Content-Type", "application/json")
	err := json.NewEncoder(w).Encode(map[string]any{"jsonrpc": "2.0", "id": m.ID, "result": result})
	return w.Result(), err
}

func TestTools(t *testing.T) {
	c, err := config.Load("c.jsonc", []byte(`{"tools": {"mcp": {
		"a": {"url": "http://x", "secret": "TOOL_A"}, "b": {"command": "x", "env": ["HERE", "NOT", "AS=TOOL_A"]},
		"c": {"url": "http://x", "secret": "TOOL_C"}, "d": {"command": "x", "env": ["AS=TOOL_C"]}, "e": {"url": "http://x", "enabled": false}}}}`), []string{"TOOL_A=hush"})
	if err != nil {
		t.Fatal(err)
	}
	lookup := func(name string) (string, bool) { return "there", name == "HERE" }
	b := setup.Tools(c, setup.ToolPorts{Runtime: tidemarktest.NewRuntime(t), Transport: web{}, Lookup: lookup, Start: func(s setup.ToolProcess) toolbox.Source { return dialed{s} }}, dialed{})
	owner := tidemark.Key("agent:main:main").Scope()
	tools, missing := b.Tools(t.Context(), owner)
	var names []string
	for _, tl := range tools {
		names = append(names, tl.Name)
		if tl.Idempotent != (tl.Name == "tide") { // of a module it is trusted
			t.Errorf("%s: idempotent %v", tl.Name, tl.Idempotent)
		}
	}
	if !slices.Equal(names, []string{"tide", "a__tide", "b__tide"}) || len(missing) > 0 {
		t.Errorf("%q, missing %q", names, missing)
	}
	// What they were given is not passed on, and stands there all the same.
	for name, want := range map[string]string{"a__tide": "Bearer [secret]", "b__tide": "HERE=there AS=[secret]"} {
		if r := b.Call(t.Context(), owner, tidemark.ToolUse("1", name, nil)); r.IsError || r.Content[0].Text != want {
			t.Errorf("%s: %s", name, r.AppendJSON(nil))
		}
	}
	gaps := setup.ToolGaps(c, false)
	if len(gaps) != 3 || gaps[0].Setting != "tools.mcp.b.command" || gaps[1].Setting != "TOOL_C" || len(setup.ToolGaps(c, true)) != 2 {
		t.Errorf("%+v", gaps)
	}
}
