//go:build !js

// The tests of this folder listen for HTTP, which nothing does under js/wasm.

package worker_test

import (
	"context"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/toolbox"
	"github.com/tidemark-ai/tidemark/worker"
)

// oneTool is a source of one tool.
type oneTool struct{}

func (oneTool) Tools(context.Context) ([]tidemark.Tool, error) {
	return []tidemark.Tool{{Name: "tide", Description: "Says when.", InputSchema: json.RawMessage(`{"type":"object"}`)}}, nil
}

func (oneTool) Call(_ context.Context, call tidemark.Block) (tidemark.Block, error) {
	return tidemark.ToolResult(call.ID, "low at six", false), nil
}

func TestTools(t *testing.T) {
	none := serve(t, nil)
	if r := get[toolbox.Report](none, 200, "GET", "/v1/agents/main/tools", ""); len(r.Sources) != 0 || r.Sources == nil || r.Tools == nil {
		t.Errorf("without any: %+v", r)
	}
	s := serve(t, func(c *worker.Config, a *actors) {
		box := toolbox.New(toolbox.Config{Runtime: a.rt, Servers: []toolbox.Server{{Name: "sea", Source: oneTool{}}, {Name: "far", Gap: "no programs here"}}})
		c.Tools = func(context.Context) (*toolbox.Box, error) { return box, nil }
	})
	r := get[toolbox.Report](s, 200, "GET", "/v1/agents/main/tools", "")
	if len(r.Tools) != 1 || r.Tools[0].Name != "sea__tide" || len(r.Sources) != 2 || r.Sources[0].State != "gap" || r.Sources[1].State != "reachable" || r.Sources[1].Count != 1 {
		t.Errorf("%+v", r)
	}
	get[fault](s, 400, "GET", "/v1/agents/No%20body/tools", "")
	get[fault](s, 400, "GET", "/v1/agents/main/tools?x=1", "")
}
