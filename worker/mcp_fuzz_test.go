package worker

import (
	"bytes"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark/internal/json"
)

// TestCalls holds whom a message is about to testdata/doors.json; build/doors.test.mjs does the same to the front.
func TestCalls(t *testing.T) {
	raw, err := os.ReadFile("../testdata/doors.json")
	var rows struct {
		Calls []struct {
			Body           json.RawMessage
			Session, Agent string
		}
	}
	if err == nil {
		err = json.Unmarshal(raw, &rows)
	}
	if err != nil || len(rows.Calls) < 10 {
		t.Fatalf("%d rows, %v", len(rows.Calls), err)
	}
	for _, row := range rows.Calls {
		m, bad := decodeRPC(append([]byte(`{"jsonrpc":"2.0","id":1,`), bytes.TrimLeft(row.Body, "{ ")...))
		if bad != nil {
			t.Fatalf("%s: %+v", row.Body, bad)
		}
		agent, _ := resourceOf(textOf(m.params["uri"]))
		call := &toolCall{m: m, agent: agent}
		if m.method == "tools/call" {
			call.args, _ = objectOf(m.params["arguments"])
			if err := call.find(); err != nil {
				t.Errorf("%s: %v", row.Body, err)
			}
		}
		if string(call.session.Root()) != row.Session || call.agent != row.Agent {
			t.Errorf("%s: session %q and agent %q", row.Body, call.session, call.agent)
		}
	}
}

// TestRPCRefusals: what HTTP refuses is an error of JSON-RPC with its status.
func TestRPCRefusals(t *testing.T) {
	status, body := jsonRPC.put(failure{status: http.StatusUnauthorized, kind: "unauthorized", text: "no token"}, &answer{id: "r"})
	raw, err := json.Marshal(body)
	if want := `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"no token","data":{"requestId":"r","type":"unauthorized"}}}`; err != nil || status != 401 || string(raw) != want {
		t.Errorf("%d %s, %v", status, raw, err)
	}
}

// TestToolTable: each tool has a schema that is one, names that are told apart, and either a route that is there or a
// function.
func TestToolTable(t *testing.T) {
	patterns := map[string]bool{}
	for _, r := range routes() {
		patterns[r.pattern] = true
	}
	size, seen := 0, map[string]bool{}
	for _, tool := range mcpTools() {
		if seen[tool.name] || (tool.run == nil) != patterns[tool.route] {
			t.Errorf("%s: route %q", tool.name, tool.route)
		}
		seen[tool.name] = true
		for _, doc := range []string{tool.schema(), tool.hints, "{" + tool.gives + "}"} {
			if !json.Valid([]byte(doc)) {
				t.Errorf("%s: %s", tool.name, doc)
			}
		}
		size += len(tool.schema()) + len(tool.about)
	}
	if size > 8_000 { // a client pays for them with every call of its model
		t.Errorf("descriptions and schemas have %d bytes", size)
	}
}

// FuzzRPC: a message is either refused in words or has a method and an id that comes back as it came, and every answer
// is JSON; what the headers agree to is carried out under a version that is spoken.
func FuzzRPC(f *testing.F) {
	for _, s := range []string{`{"jsonrpc":"2.0","id":1,"method":"ping"}`, `{"jsonrpc":"2.0","id":"a\u0000","method":"tools/call","params":{"name":"recall","arguments":{"query":"x","session":"main"}}}`,
		`[{}]`, `{"jsonrpc":"2.0","id":-0,"method":"x","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`,
		`{"jsonrpc":"2.0","id":1e5,"method":"x"}`, `{"jsonrpc":"2.0","method":"x","params":[]}`, `{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"tidemark://agents/main/memory/%zz"}}`} {
		f.Add([]byte(s), "2026-07-28")
		f.Add([]byte(s), "")
	}
	f.Fuzz(func(t *testing.T, raw []byte, version string) {
		m, bad := decodeRPC(raw)
		if bad == nil && m.id != nil {
			if m.method == "" {
				t.Fatalf("%q has no method", raw)
			}
			bad = m.agree(http.Header{headerMCPVersion: {version}, headerMCPMethod: {m.method}, headerMCPName: {m.named()}})
			if bad == nil && m.stateless() && (version != mcpStateless || textOf(m.meta[metaVersion]) != mcpStateless) {
				t.Errorf("%q under %q is of version %q", raw, version, m.version)
			}
		}
		if bad != nil && (bad.Message == "" || bad.Code >= 0) {
			t.Errorf("%q: %+v", raw, bad)
		}
		out, err := json.Marshal(rpcAnswer{Version: "2.0", ID: orNull(m.id), Error: bad})
		if err != nil || !json.Valid(out) {
			t.Errorf("%q: %v %s", raw, err, out)
		}
		if m.id != nil && !strings.Contains(string(out), `"id":`+string(m.id)) {
			t.Errorf("%q: id %s became %s", raw, m.id, out)
		}
		if agent, path := resourceOf(textOf(m.params["uri"])); agent != "" {
			if again, same := resourceOf(resourceURI(agent, path)); again != agent || same != path {
				t.Errorf("%q: %q and %q", raw, again, same)
			}
		}
	})
}
