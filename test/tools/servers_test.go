//go:build !js

package tools

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/config"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/mcp/stdio"
	"github.com/tidemark-ai/tidemark/setup"
	"github.com/tidemark-ai/tidemark/tidemarktest"
	"github.com/tidemark-ai/tidemark/toolbox"
)

// script is where the program of a server lies.
func script(t *testing.T, name string) string {
	modules := os.Getenv("TIDEMARK_TOOL_SERVERS")
	if modules == "" {
		modules = "../node_modules"
	}
	path, err := filepath.Abs(filepath.Join(modules, "@modelcontextprotocol", name, "dist", "index.js"))
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil && os.Getenv("TIDEMARK_TOOL_SERVERS") == "" {
		t.Skipf("%s is not installed; run: make e2e-tools", name)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// everything starts server-everything over HTTP and returns its address, and what ends it.
func everything(t *testing.T, port string) (url string, end func()) {
	cmd := exec.Command("node", script(t, "server-everything"), "streamableHttp")
	cmd.Env = append(os.Environ(), "PORT="+port)
	out, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := false
	end = func() {
		if !ended {
			ended = true
			_ = cmd.Process.Kill()
			_ = cmd.Wait() // it was killed
		}
	}
	t.Cleanup(end)
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadString('\n')
		if strings.Contains(line, "listening") {
			break
		}
		if err != nil {
			t.Fatalf("the server says %q: %v", line, err)
		}
	}
	go func() { _, _ = lines.WriteTo(discard{}) }() // it ends with the process
	return "http://127.0.0.1:" + port + "/mcp", end
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// freePort is a free port below those that systems give to whoever listens at any, so that hardly anybody takes it before it is used.
func freePort(t *testing.T) string {
	for range 100 {
		port := strconv.Itoa(15_000 + rand.IntN(15_000))
		if l, err := net.Listen("tcp", "127.0.0.1:"+port); err == nil {
			l.Close()
			return port
		}
	}
	t.Fatal("no port from 15000 to 29999 is free")
	return ""
}

// box is the tools of a document, natively or as on a Worker.
func box(t *testing.T, native bool, document any) *toolbox.Box {
	raw, err := json.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	c, err := config.Load("tidemark.jsonc", raw, nil)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	p := setup.ToolPorts{Runtime: tidemarktest.NewRuntime(t), Transport: transport}
	if native {
		p.Start = func(s setup.ToolProcess) toolbox.Source {
			out := &stdio.Client{Name: s.Name, Command: s.Command, Args: s.Args, Env: s.Env, MaxBytes: s.MaxBytes}
			t.Cleanup(func() { _ = out.Close() }) // a process that was killed says so
			return out
		}
	}
	return setup.Tools(c, p)
}

type object = map[string]any

func servers(of object) object {
	return object{"tools": object{"schemaTokens": 100_000, "mcp": of}}
}

var owner = tidemark.Key("agent:main:main").Scope()

func within(t *testing.T) context.Context {
	ctx, stop := context.WithTimeout(t.Context(), tidemarktest.Patience)
	t.Cleanup(stop)
	return ctx
}

func call(t *testing.T, b *toolbox.Box, name string, input object) tidemark.Block {
	raw, err := json.Marshal(input)
	if err != nil {
		t.Fatal(err)
	}
	return b.Call(within(t), owner, tidemark.ToolUse("call_1", name, raw))
}

func text(b tidemark.Block) string {
	var out []string
	for _, c := range b.Content {
		out = append(out, c.Text)
	}
	return strings.Join(out, "\n")
}

// testEverything uses server-everything as it is reached.
func testEverything(t *testing.T, b *toolbox.Box, version string) {
	tools, missing := b.Tools(within(t), owner)
	has := func(name string) bool {
		return slices.ContainsFunc(tools, func(tl tidemark.Tool) bool { return tl.Name == name })
	}
	if len(tools) < 8 || len(missing) > 0 || !has("every__echo") || !has("every__get-tiny-image") {
		t.Fatalf("%d tools, missing %q, %+v", len(tools), missing, b.Report(within(t), owner).Sources)
	}
	if r := b.Report(within(t), owner); r.Sources[0].State != "reachable" || r.Sources[0].Version != version {
		t.Errorf("%+v", r.Sources)
	}
	for _, k := range []struct {
		name, tool string
		input      object
		isError    bool
		words      string
	}{
		{"text", "every__echo", object{"message": "low at six"}, false, "low at six"},
		{"numbers", "every__get-sum", object{"a": 2, "b": 40}, false, "42"},
		{"structured", "every__get-structured-content", object{"location": "Chicago"}, false, "temperature"},
		{"refused", "every__get-sum", object{"a": "two"}, true, "-32602"},
		{"unknown", "every__nothing", object{}, true, "there is no tool"},
		{"progress on the way", "every__trigger-long-running-operation", object{"duration": 1, "steps": 4}, false, "completed"},
		{"links", "every__get-resource-links", object{"count": 2}, false, "[link to"},
	} {
		if r := call(t, b, k.tool, k.input); r.IsError != k.isError || !strings.Contains(text(r), k.words) {
			t.Errorf("%s: %s", k.name, r.AppendJSON(nil))
		}
	}
	r := call(t, b, "every__get-tiny-image", object{})
	if !slices.ContainsFunc(r.Content, func(c tidemark.Block) bool { return c.Type == tidemark.TypeImage && c.Source.Bytes > 100 }) {
		t.Errorf("image: %.300s", r.AppendJSON(nil))
	}
}

func TestEverythingStdio(t *testing.T) {
	testEverything(t, box(t, true, servers(object{"every": object{"command": "node", "args": []string{script(t, "server-everything"), "stdio"}}})), "2025-11-25")
}

func TestEverythingHTTP(t *testing.T) {
	for _, k := range []struct {
		name   string
		native bool
	}{{"natively", true}, {"as on a Worker", false}} {
		t.Run(k.name, func(t *testing.T) {
			port := freePort(t)
			url, end := everything(t, port)
			b := box(t, k.native, servers(object{"every": object{"url": url, "timeoutMs": 20000}}))
			testEverything(t, b, "2025-11-25")
			end()
			if r := call(t, b, "every__echo", object{"message": "a"}); !r.IsError || !strings.Contains(text(r), "every") {
				t.Errorf("a server that is gone: %s", r.AppendJSON(nil))
			}
			everything(t, port)
			if r := call(t, b, "every__echo", object{"message": "again"}); r.IsError || !strings.Contains(text(r), "again") {
				t.Errorf("a server that is back: %s", r.AppendJSON(nil))
			}
		})
	}
}

func TestFilesystem(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "tide.txt"), []byte("low at six"), 0o600); err != nil {
		t.Fatal(err)
	}
	b := box(t, true, servers(object{"files": object{"command": "node", "args": []string{script(t, "server-filesystem"), folder}, "allow": []string{"read_*", "list_*"}, "idempotent": []string{"read_*"}}}))
	tools, missing := b.Tools(within(t), owner)
	for _, tl := range tools {
		if !strings.HasPrefix(tl.Name, "files__read_") && !strings.HasPrefix(tl.Name, "files__list_") || tl.Idempotent != strings.HasPrefix(tl.Name, "files__read_") {
			t.Errorf("offered: %s, idempotent %v", tl.Name, tl.Idempotent)
		}
	}
	if len(tools) < 4 || len(missing) > 0 {
		t.Fatalf("%d tools, missing %q", len(tools), missing)
	}
	for _, k := range []struct {
		name, tool string
		input      object
		isError    bool
		words      string
	}{
		{"a file", "files__read_text_file", object{"path": filepath.Join(folder, "tide.txt")}, false, "low at six"},
		{"the folder", "files__list_directory", object{"path": folder}, false, "tide.txt"},
		{"outside", "files__read_text_file", object{"path": filepath.Join(filepath.Dir(folder), "other")}, true, "denied"},
		{"not allowed", "files__write_file", object{"path": filepath.Join(folder, "x"), "content": "x"}, true, "there is no tool"},
	} {
		if r := call(t, b, k.tool, k.input); r.IsError != k.isError || !strings.Contains(text(r), k.words) {
			t.Errorf("%s: %s", k.name, r.AppendJSON(nil))
		}
	}
	if _, err := os.Stat(filepath.Join(folder, "x")); err == nil {
		t.Error("a tool that is not allowed wrote a file")
	}
}

// TestNone: on a host that starts no programs, a server that is one is a gap that says so, and the others work.
func TestNone(t *testing.T) {
	b := box(t, false, servers(object{"files": object{"command": "node"}}))
	if tools, missing := b.Tools(within(t), owner); len(tools)+len(missing) != 0 { // it will not be there by itself
		t.Errorf("%d tools, missing %q", len(tools), missing)
	}
	if s := b.Report(within(t), owner).Sources[0]; s.State != "gap" || !strings.Contains(s.Error, "tools.mcp.files.url") {
		t.Errorf("%+v", s)
	}
	if r := call(t, b, "files__read", object{}); !r.IsError || !strings.Contains(text(r), "none can be started here") {
		t.Errorf("%s", fmt.Sprint(text(r)))
	}
}
