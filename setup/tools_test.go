package setup_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/config"
	"github.com/tidemark-ai/tidemark/setup"
	"github.com/tidemark-ai/tidemark/tidemarktest"
	"github.com/tidemark-ai/tidemark/toolbox"
)

// dialed is a source that knows how it was made.
type dialed struct{ setup.ToolServer }

func (d dialed) Tools(context.Context) ([]tidemark.Tool, error) {
	return []tidemark.Tool{{Name: "tide", Idempotent: true}}, nil
}

func (d dialed) Call(_ context.Context, call tidemark.Block) (tidemark.Block, error) {
	return tidemark.ToolResult(call.ID, d.Token+" "+strings.Join(d.Env, " "), false), nil
}

func TestTools(t *testing.T) {
	c, err := config.Load("c.jsonc", []byte(`{"tools": {"mcp": {
		"a": {"url": "http://x", "secret": "TOOL_A"}, "b": {"command": "x", "env": ["HERE", "NOT", "AS=TOOL_A"]},
		"c": {"url": "http://x", "secret": "TOOL_C"}, "d": {"command": "x", "env": ["AS=TOOL_C"]}, "e": {"url": "http://x", "enabled": false}}}}`), []string{"TOOL_A=hush"})
	if err != nil {
		t.Fatal(err)
	}
	lookup := func(name string) (string, bool) { return "there", name == "HERE" }
	b := setup.Tools(c, setup.ToolPorts{Runtime: tidemarktest.NewRuntime(t), Lookup: lookup, Dial: func(s setup.ToolServer) toolbox.Source { return dialed{s} }}, dialed{})
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
	for name, want := range map[string]string{"a__tide": "[secret] ", "b__tide": " HERE=there AS=[secret]"} {
		if r := b.Call(t.Context(), owner, tidemark.ToolUse("1", name, nil)); r.IsError || r.Content[0].Text != want {
			t.Errorf("%s: %s", name, r.AppendJSON(nil))
		}
	}
	gaps := setup.ToolGaps(c, false)
	if len(gaps) != 3 || gaps[0].Setting != "tools.mcp.b.command" || gaps[1].Setting != "TOOL_C" || len(setup.ToolGaps(c, true)) != 2 {
		t.Errorf("%+v", gaps)
	}
}
