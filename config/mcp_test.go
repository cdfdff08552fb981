package config_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark/config"
)

func TestToolServers(t *testing.T) {
	c, err := config.Load("c.jsonc", []byte(`{
		"agents": {"list": [{"id": "main", "tools": ["files__*"]}]},
		"tools": {"peers": ["weather__*"], "mcp": {
			"weather": {"url": "https://example.com/mcp", "secret": "TOOL_WEATHER", "idempotent": ["get_*"], "trustHints": true, "timeoutMs": 5000, "maxBytes": 2048, "parallel": 2},
			"files": {"command": "node", "args": ["server.js", "-v", "-v"], "env": ["DEBUG", "KEY=TOOL_KEY"], "allow": []},
			"off": {"url": "http://localhost:1", "enabled": false}
		}}}`), []string{"TOOL_WEATHER=hush", "TOOL_KEY=hush", "TOOL_=hush", "TIDEMARK_TOOLS_SCHEMATOKENS=9"})
	if err != nil {
		t.Fatal(err)
	}
	w, f := c.Tools.MCP["weather"], c.Tools.MCP["files"]
	if !w.Enabled || w.Secret != "TOOL_WEATHER" || w.TimeoutMs != 5000 || w.MaxBytes != 2048 || w.Parallel != 2 || !w.TrustHints || w.Allow != nil || len(f.Args) != 3 || f.Allow == nil || c.Tools.SchemaTokens != 9 {
		t.Errorf("%+v %+v", w, f)
	}
	if got := c.ToolServers(); !slices.Equal(got, []string{"files", "weather"}) {
		t.Errorf("enabled: %q", got)
	}
	if len(c.Secrets.Tools) != 2 || c.Secrets.Tools["TOOL_WEATHER"].Reveal() != "hush" {
		t.Errorf("secrets: %v", c.Secrets.Tools)
	}
	if a := c.Agent("main"); len(a.Tools) != 1 {
		t.Errorf("%+v", a)
	}
	raw, err := json.Marshal(c)
	if all := string(raw) + fmt.Sprintf("%v %+v %#v", c.Secrets, c.Secrets, c.Secrets) + fmt.Sprint(c.Values()); err != nil || strings.Contains(all, "hush") {
		t.Errorf("a secret stands in %s, %v", all, err)
	}
	if all := fmt.Sprint(c.Values()); !strings.Contains(all, "tools.mcp.weather.url") || !strings.Contains(all, "TOOL_WEATHER") {
		t.Errorf("values: %s", all)
	}
}

func TestToolServersThatCannotBeMeant(t *testing.T) {
	for _, k := range []struct{ name, server, doc, want string }{
		{"neither", "a", `{"enabled": true}`, "tools.mcp.a.url: missing"},
		{"both", "a", `{"url": "http://x", "command": "y"}`, "tools.mcp.a.command: is set, and so is url"},
		{"a secret that is not for servers", "a", `{"url": "http://x", "secret": "ANTHROPIC_API_KEY"}`, "begins with TOOL_, as TOOL_A"},
		{"a value", "a", `{"url": "http://x", "secret": "TOOL_ a"}`, "begins with TOOL_"},
		{"a secret of a command", "a", `{"command": "x", "secret": "TOOL_A"}`, `env: ["NAME=TOOL_A"]`},
		{"arguments of a url", "a", `{"url": "http://x", "args": ["x"]}`, "args and env are of a command"},
		{"a value in env", "a", `{"command": "x", "env": ["KEY=abc"]}`, "never a value"},
		{"our own secret in env", "a", `{"command": "x", "env": ["OPENAI_API_KEY"]}`, "OPENAI_API_KEY=TOOL_X"},
		{"our own secret under another name", "a", `{"command": "x", "env": ["KEY=OPENAI_API_KEY"]}`, "never a value"},
		{"a name with __", "a__b", `{"url": "http://x"}`, `the name "a__b"`},
		{"a name that ends in _", "a_", `{"url": "http://x"}`, `the name "a_"`},
		{"a name in capitals", "A", `{"url": "http://x"}`, `the name "A"`},
		{"a glob that cannot be read", "a", `{"url": "http://x", "allow": ["[a"]}`, "tools.mcp.a.allow: found"},
		{"a token", "a", `{"url": "http://x", "token": "abc"}`, "a"},
		{"a password", "a", `{"url": "http://x", "password": "abc"}`, "TOOL_X"},
		{"a user in the url", "a", `{"url": "http://u:p@x"}`, "xxxxx@x"},
	} {
		_, err := config.Parse("c.jsonc", []byte(fmt.Sprintf(`{"tools": {"mcp": {%q: %s}}}`, k.server, k.doc)))
		if err == nil || !strings.Contains(err.Error(), k.want) || !strings.Contains(err.Error(), "c.jsonc") || strings.Contains(err.Error(), "abc") && k.name != "a value in env" {
			t.Errorf("%s: %v", k.name, err)
		}
	}
}
