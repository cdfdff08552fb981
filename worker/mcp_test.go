//go:build !js

package worker_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/worker"
)

// rpcWire is an answer of the door.
type rpcWire struct {
	ID     json.RawMessage `json:"id"`
	Result struct {
		ResultType string                  `json:"resultType"`
		Version    string                  `json:"protocolVersion"`
		Supported  []string                `json:"supportedVersions"`
		Tools      []toolWire              `json:"tools"`
		Content    []struct{ Text string } `json:"content"`
		IsError    bool                    `json:"isError"`
		Structured json.RawMessage         `json:"structuredContent"`
		Resources  []struct{ URI string }  `json:"resources"`
		Contents   []struct{ Text string } `json:"contents"`
	} `json:"result"`
	Error *struct {
		Code    int            `json:"code"`
		Message string         `json:"message"`
		Data    map[string]any `json:"data"`
	} `json:"error"`
}

type toolWire struct {
	Name, Description         string
	InputSchema, OutputSchema map[string]any
	Annotations               map[string]bool
}

// rpcCall is a message in the words of the handshake's versions.
func rpcCall(method, params string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":7,"method":%q,"params":%s}`, method, params)
}

// tool calls one.
func (s *server) tool(name, args string, headers ...string) rpcWire {
	s.t.Helper()
	return get[rpcWire](s, 200, "POST", "/mcp", rpcCall("tools/call", fmt.Sprintf(`{"name":%q,"arguments":%s}`, name, args)), headers...)
}

// fields calls a tool that must do well, and decodes what it gives.
func fields[T any](s *server, name, args string) (v T) {
	s.t.Helper()
	r := s.tool(name, args)
	if r.Error != nil || r.Result.IsError || len(r.Result.Content) != 1 {
		s.t.Fatalf("%s %s: %+v", name, args, r)
	}
	if r.Result.Content[0].Text != string(r.Result.Structured) {
		s.t.Errorf("%s: the text is %s, the fields %s", name, r.Result.Content[0].Text, r.Result.Structured)
	}
	if err := json.Unmarshal(r.Result.Structured, &v); err != nil {
		s.t.Fatalf("%s: %v: %s", name, err, r.Result.Structured)
	}
	return v
}

// modern is the head of a request without a handshake.
func modern(method, name string) []string {
	h := []string{"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", method}
	if name != "" {
		h = append(h, "Mcp-Name", name)
	}
	return h
}

const modernMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`

// TestMCPMessages: what the door says to messages, good and bad.
func TestMCPMessages(t *testing.T) {
	s := serve(t, nil)
	for _, tc := range []struct {
		name, body string
		headers    []string
		status     int
		want       string // that the answer has
	}{
		{"handshake of the newest", rpcCall("initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}`), nil, 200, `"protocolVersion":"2025-11-25"`},
		{"handshake of an older", rpcCall("initialize", `{"protocolVersion":"2025-03-26"}`), nil, 200, `"protocolVersion":"2025-03-26"`},
		{"handshake of one unknown", rpcCall("initialize", `{"protocolVersion":"1999-01-01"}`), nil, 200, `"protocolVersion":"2025-11-25"`},
		{"handshake of the one without", rpcCall("initialize", `{"protocolVersion":"2026-07-28"}`), nil, 200, `"protocolVersion":"2025-11-25"`},
		{"notification", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, nil, 202, ""},
		{"cancelled", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`, nil, 202, ""},
		{"an answer to nothing", `{"jsonrpc":"2.0","id":1,"result":{}}`, nil, 202, ""},
		{"ping", rpcCall("ping", `{}`), []string{"Mcp-Protocol-Version", "2025-06-18"}, 200, `"result":{}`},
		{"id that is a text", `{"jsonrpc":"2.0","id":"a\"b","method":"ping"}`, nil, 200, `"id":"a\"b"`},
		{"id that is large", `{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}`, nil, 200, `"id":9007199254740993`},
		{"id null", `{"jsonrpc":"2.0","id":null,"method":"ping"}`, nil, 400, `"id":null,"error":{"code":-32600`},
		{"id of half", `{"jsonrpc":"2.0","id":1.5,"method":"ping"}`, nil, 400, `-32600`},
		{"id that is a list", `{"jsonrpc":"2.0","id":[1],"method":"ping"}`, nil, 400, `-32600`},
		{"id without end", `{"jsonrpc":"2.0","id":"` + strings.Repeat("x", 300) + `","method":"ping"}`, nil, 400, `-32600`},
		{"no body", ``, nil, 400, `-32700`},
		{"no JSON", `{"jsonrpc":`, nil, 400, `-32700`},
		{"no UTF-8", "{\"jsonrpc\":\"\xff\"}", nil, 400, `-32700`},
		{"deep", strings.Repeat("[", 200) + strings.Repeat("]", 200), nil, 400, `nested more than 100 deep`},
		{"deep within params", rpcCall("ping", strings.Repeat(`{"a":`, 150)+"1"+strings.Repeat("}", 150)), nil, 400, `-32700`},
		{"batch", `[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, nil, 400, `send each by itself`},
		{"no object", `"ping"`, nil, 400, `-32600`},
		{"another JSON-RPC", `{"id":1,"method":"ping"}`, nil, 400, `jsonrpc: want \"2.0\"`},
		{"method of another kind", `{"jsonrpc":"2.0","id":1,"method":5}`, nil, 400, `method: want a string`},
		{"no method", `{"jsonrpc":"2.0","id":1}`, nil, 400, `-32600`},
		{"params that are a list", rpcCall("ping", `[1]`), nil, 200, `-32602`},
		{"_meta of another kind", rpcCall("ping", `{"_meta":1}`), nil, 200, `-32602`},
		{"unknown method", rpcCall("prompts/list", `{}`), nil, 200, `"code":-32601`},
		{"unknown version", rpcCall("ping", `{}`), []string{"Mcp-Protocol-Version", "2020-01-01"}, 400, `"supported":["2026-07-28"`},
		{"discover", rpcCall("server/discover", `{`+modernMeta+`}`), modern("server/discover", ""), 200, `"resultType":"complete"`},
		{"discover without the version", rpcCall("server/discover", `{}`), nil, 200, `-32601`},
		{"handshake where there is none", rpcCall("initialize", `{`+modernMeta+`}`), modern("initialize", ""), 404, `-32601`},
		{"ping where there is none", rpcCall("ping", `{`+modernMeta+`}`), modern("ping", ""), 404, `-32601`},
		{"no header", rpcCall("tools/list", `{`+modernMeta+`}`), nil, 400, `"code":-32020`},
		{"another header", rpcCall("tools/list", `{`+modernMeta+`}`), []string{"Mcp-Protocol-Version", "2025-11-25"}, 400, `-32020`},
		{"no _meta", rpcCall("tools/list", `{}`), modern("tools/list", ""), 400, `-32602`},
		{"no capabilities", rpcCall("tools/list", `{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}`), modern("tools/list", ""), 400, `clientCapabilities`},
		{"a later version", rpcCall("tools/list", strings.ReplaceAll(`{`+modernMeta+`}`, "2026-07-28", "2027-01-01")), []string{"Mcp-Protocol-Version", "2027-01-01", "Mcp-Method", "tools/list"}, 400, `"code":-32022`},
		{"method of another header", rpcCall("tools/list", `{`+modernMeta+`}`), modern("tools/call", ""), 400, `header Mcp-Method`},
		{"name of another header", rpcCall("tools/call", `{"name":"memory_read",`+modernMeta+`}`), modern("tools/call", "recall"), 400, `header Mcp-Name`},
		{"name in base64", rpcCall("tools/call", `{"name":"memory_read",`+modernMeta+`}`), modern("tools/call", "=?base64?bWVtb3J5X3JlYWQ=?="), 200, `no memory files`},
		{"unknown tool", rpcCall("tools/call", `{"name":"memory_reed"}`), nil, 200, `did you mean \"memory_read\"`},
		{"arguments that are a list", rpcCall("tools/call", `{"name":"memory_read","arguments":[]}`), nil, 200, `-32602`},
		{"a cursor that nobody gave", rpcCall("tools/list", `{"cursor":"x"}`), nil, 200, `-32602`},
		{"a resource of nobody", rpcCall("resources/read", `{"uri":"file:///etc/passwd"}`), nil, 200, `-32602`},
		{"a resource that is none", rpcCall("resources/read", `{"uri":"tidemark://agents/main/memory/../../secrets"}`), nil, 200, `-32602`},
		{"a resource that is not there", rpcCall("resources/read", `{"uri":"tidemark://agents/main/memory/MEMORY.md"}`), nil, 200, `-32002`},
		{"templates", rpcCall("resources/templates/list", `{}`), nil, 200, `tidemark://agents/{agent}/memory/{+path}`},
		{"too large", rpcCall("ping", `{"a":"`+strings.Repeat("x", 5<<20)+`"}`), nil, 413, `"code":-32000`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := s.text(tc.status, "POST", "/mcp", tc.body, tc.headers...)
			if !strings.Contains(got, tc.want) || tc.want == "" && got != "" {
				t.Errorf("%s, want %s", got, tc.want)
			}
			if tc.want != "" && !strings.HasPrefix(got, `{"jsonrpc":"2.0","id":`) {
				t.Errorf("no JSON-RPC: %s", got)
			}
		})
	}
	for _, method := range []string{"GET", "DELETE", "PUT"} {
		if res := s.do(method, "/mcp", ""); res.StatusCode != 405 || res.Header.Get("Allow") != "POST" {
			t.Errorf("%s: %d %v", method, res.StatusCode, res.Header)
		}
	}
}

// TestMCPToken: a stranger hears which setting the token is; it may stand in the path.
func TestMCPToken(t *testing.T) {
	s := serve(t, func(c *worker.Config, _ *actors) { c.Token, c.TokenWhere = "open sesame", "TIDEMARK_TOKEN" })
	ping := rpcCall("ping", `{}`)
	if r := get[rpcWire](s, 401, "POST", "/mcp", ping); r.Error == nil || !strings.Contains(r.Error.Message, "TIDEMARK_TOKEN") || r.Error.Data["type"] != "unauthorized" {
		t.Errorf("%+v", r)
	}
	s.text(401, "POST", "/mcp", ping, "Authorization", "Bearer wrong")
	s.text(200, "POST", "/mcp", ping, "Authorization", "Bearer open sesame")
	s.text(200, "POST", "/t/open%20sesame/mcp", ping)
	s.text(403, "POST", "/mcp", ping, "Authorization", "Bearer open sesame", "Origin", "https://evil.example")
}

// TestMCPTools: the table is what clients can use, and every tool has its effect.
func TestMCPTools(t *testing.T) {
	s := serve(t, nil)
	tools := get[rpcWire](s, 200, "POST", "/mcp", rpcCall("tools/list", `{}`)).Result.Tools
	names := map[string]toolWire{}
	for _, tool := range tools {
		names[tool.Name] = tool
		if tool.Description == "" || tool.InputSchema["type"] != "object" || tool.Annotations == nil || tool.InputSchema["additionalProperties"] != false {
			t.Errorf("%+v", tool)
		}
	}
	if len(names) != 10 || !names["recall"].Annotations["readOnlyHint"] || names["snapshot"].Annotations["readOnlyHint"] {
		t.Errorf("%d tools", len(names))
	}
	said := fields[struct{ State, ID, Text, Entry string }](s, "send_message", `{"session":"garden","text":"We plant beans in May.","id":"m-1"}`)
	if said.State != "done" || said.ID != "m-1" || said.Text == "" || said.Entry == "" {
		t.Errorf("%+v", said)
	}
	again := fields[struct {
		Text      string
		Duplicate bool
	}](s, "send_message", `{"session":"garden","text":"We plant beans in May.","id":"m-1"}`)
	if !again.Duplicate || again.Text != said.Text {
		t.Errorf("the same id: %+v", again)
	}
	if r := s.tool("send_message", `{"session":"garden","text":"another","id":"m-1"}`); !r.Result.IsError || !strings.HasPrefix(r.Result.Content[0].Text, "conflict") {
		t.Errorf("another text under the id: %+v", r)
	}
	s.settle()
	list := fields[struct{ Sessions []struct{ Key string } }](s, "sessions_list", `{}`)
	if len(list.Sessions) != 1 || list.Sessions[0].Key != "agent:main:local:dm:garden" {
		t.Errorf("%+v", list)
	}
	found := fields[struct{ Found []struct{ ID, Text string } }](s, "session_search", `{"session":"garden","query":"beans"}`)
	if len(found.Found) == 0 {
		t.Errorf("%+v", found)
	}
	for _, args := range []string{`{"query":"beans"}`, `{"query":"beans","session":"garden"}`} {
		recalled := fields[struct {
			Results []struct{ Text string }
			Verdict string
		}](s, "recall", args)
		if len(recalled.Results) == 0 || recalled.Verdict == "" {
			t.Errorf("%s: %+v", args, recalled)
		}
	}
	snap := fields[struct{ ID, Name string }](s, "snapshot", `{"session":"garden","name":"spring","tags":["a","b"]}`)
	branch := fields[struct{ Key string }](s, "branch", fmt.Sprintf(`{"session":"garden","snapshot":%q,"name":"peas","trim":false}`, snap.ID))
	if snap.Name != "spring" || branch.Key != "agent:main:local:dm:garden#peas" {
		t.Errorf("%+v %+v", snap, branch)
	}
	if r := fields[struct{ State string }](s, "send_message", fmt.Sprintf(`{"session":%q,"text":"And peas?"}`, branch.Key)); r.State != "done" {
		t.Errorf("%+v", r)
	}
}

// TestMCPMemory: what is written down is read, found, listed as a resource, and written once.
func TestMCPMemory(t *testing.T) {
	s := serve(t, nil)
	for range 2 {
		if r := s.tool("memory_append", `{"text":"The fence is green.","id":"n1"}`); r.Result.IsError {
			t.Errorf("%+v", r)
		}
	}
	s.settle()
	list := get[rpcWire](s, 200, "POST", "/mcp", rpcCall("resources/list", `{}`)).Result.Resources
	if len(list) != 1 {
		t.Fatalf("%+v", list)
	}
	path := strings.TrimPrefix(list[0].URI, "tidemark://agents/main/memory/")
	read := s.tool("memory_read", fmt.Sprintf(`{"path":%q}`, path)).Result.Content[0].Text
	resource := get[rpcWire](s, 200, "POST", "/mcp", rpcCall("resources/read", fmt.Sprintf(`{"uri":%q}`, list[0].URI))).Result.Contents[0].Text
	if n := strings.Count(read, "The fence is green."); n != 1 || !strings.Contains(resource, "The fence is green.") {
		t.Errorf("%q and %q", read, resource)
	}
	if r := s.tool("memory_read", `{}`).Result.Content[0].Text; !strings.Contains(r, path) {
		t.Errorf("the list is %q", r)
	}
	if f := fields[struct{ Found []struct{ Path string } }](s, "memory_search", `{"query":"fence"}`); len(f.Found) != 1 || f.Found[0].Path != path {
		t.Errorf("%+v", f)
	}
	s.text(200, "PUT", "/v1/agents/main/memory/MEMORY.md", "# Curated\nThe owner may read this.\n")
	if r := s.tool("memory_read", `{"path":"MEMORY.md"}`).Result.Content[0].Text; !strings.Contains(r, "may read") {
		t.Errorf("%q", r)
	}
}

// TestMCPRefusals: a tool that fails says what is wrong in its result.
func TestMCPRefusals(t *testing.T) {
	s := serve(t, nil)
	s.say("main", "hello")
	for _, tc := range []struct{ name, tool, args, want string }{
		{"unknown argument", "recall", `{"query":"x","sesion":"main"}`, `did you mean "session"`},
		{"missing argument", "session_read", `{}`, `"session" is missing`},
		{"null is missing", "session_read", `{"session":null}`, `"session" is missing`},
		{"another kind", "session_read", `{"session":5}`, `"session" must be a string`},
		{"half a number", "sessions_list", `{"limit":1.5}`, `must be a whole number`},
		{"a list of numbers", "snapshot", `{"session":"main","tags":[1]}`, `a list of strings`},
		{"out of bounds", "sessions_list", `{"limit":100000}`, `want a number from 1 to 1000`},
		{"out of bounds of ours", "session_read", `{"session":"main","limit":1000}`, `from 1 to 200`},
		{"no key", "session_read", `{"session":"a:b"}`, `invalid: `},
		{"dots", "session_search", `{"session":"..","query":"x"}`, `invalid: `},
		{"no such session", "session_read", `{"session":"nowhere"}`, `not_found: `},
		{"no such branch", "send_message", `{"session":"main#x","text":"a"}`, `there is no such branch`},
		{"no agent", "memory_read", `{"agent":"../main"}`, `agent "../main"`},
		{"a proxied conversation", "send_message", `{"session":"agent:main:proxy:dm:x","text":"a"}`, `its client keeps the history`},
		{"a path outside", "memory_read", `{"path":"../../secret"}`, `is not for this conversation: forbidden`},
		{"nothing to say", "send_message", `{"session":"main","text":"  "}`, `"text" is empty`},
		{"an id too long", "send_message", `{"session":"main","text":"a","id":"` + strings.Repeat("x", 500) + `"}`, `invalid: `},
		{"no such snapshot", "branch", `{"session":"main","snapshot":"snap-00000000000000000000000000"}`, `not_found`},
		{"no such entry", "session_read", `{"session":"main","entry":"x"}`, `not_found: `},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := s.tool(tc.tool, tc.args)
			if r.Error != nil || !r.Result.IsError || len(r.Result.Content) != 1 || !strings.Contains(r.Result.Content[0].Text, tc.want) {
				t.Errorf("%+v, want %q", r, tc.want)
			}
		})
	}
}

// TestMCPRead: pages go back to the first message, without a gap and none twice; a long message is read whole.
func TestMCPRead(t *testing.T) {
	s := serve(t, nil)
	long := strings.Repeat("grün und weiß. ", 10_000)
	for _, text := range []string{"one", "two", "three", long} {
		s.say("main", text)
	}
	type page struct {
		Messages []struct {
			ID, Role, Text string
			Cut            int
		}
		Next int64
	}
	var all []string
	var cut string
	for before, n := int64(0), 0; n == 0 || before > 0; n++ {
		p := fields[page](s, "session_read", fmt.Sprintf(`{"session":"main","limit":3,"before":%d}`, before))
		var texts []string
		for _, m := range p.Messages {
			if m.Role == "user" {
				texts = append(texts, m.Text[:min(len(m.Text), 5)])
			}
			if m.Role == "user" && m.Cut > 0 {
				cut = m.ID
			}
		}
		all = append(texts, all...)
		if before = p.Next; n > 20 {
			t.Fatal("it has no end")
		}
	}
	if got := strings.Join(all, " "); got != "one two three "+long[:5] {
		t.Errorf("%q", got)
	}
	var whole strings.Builder
	for offset := int64(0); ; {
		p := fields[page](s, "session_read", fmt.Sprintf(`{"session":"main","entry":%q,"offset":%d}`, cut, offset))
		whole.WriteString(p.Messages[0].Text)
		if offset = p.Next; offset == 0 {
			break
		}
	}
	if whole.String() != strings.TrimSpace(long) {
		t.Errorf("%d bytes, want %d", whole.Len(), len(long))
	}
}

// TestMCPLarge: a result that is too large is an error that says what to do, and not a part.
func TestMCPLarge(t *testing.T) {
	s := serve(t, nil)
	big := strings.Repeat("y", 2<<20)
	s.text(200, "PUT", "/v1/agents/main/memory/MEMORY.md", big[:1_700_000])
	if r := get[rpcWire](s, 200, "POST", "/mcp", rpcCall("resources/read", `{"uri":"tidemark://agents/main/memory/MEMORY.md"}`)); r.Error == nil || !strings.Contains(r.Error.Message, "memory_read") {
		t.Errorf("%+v", r.Error)
	}
}

// TestMCPWait: while the turn runs its pieces are progress; a wait that is over says how to wait on, and the same id
// does; nothing is said twice.
func TestMCPWait(t *testing.T) {
	g := newGate()
	s := serve(t, func(_ *worker.Config, a *actors) { a.provider = g })
	queued := fields[struct{ State, ID, Text string }](s, "send_message", `{"session":"main","text":"hello","id":"w1","wait_seconds":0}`)
	if queued.State != "working" || queued.ID != "w1" || !strings.Contains(queued.Text, "this id") {
		t.Errorf("%+v", queued)
	}
	<-g.begun
	if r := fields[struct{ State string }](s, "send_message", `{"session":"main","text":"hello","id":"w1","wait_seconds":1}`); r.State != "working" {
		t.Errorf("%+v", r)
	}
	e := s.listen("POST", "/mcp", rpcCall("tools/call", `{"name":"send_message","arguments":{"session":"main","text":"hello","id":"w1"},"_meta":{"progressToken":"p1"}}`))
	_, first := e.next() // a sign of life
	for first == "" {
		_, first = e.next()
	}
	if !strings.Contains(first, `"notifications/progress"`) || !strings.Contains(first, `"progressToken":"p1"`) || !strings.Contains(first, `"message":"first "`) {
		t.Errorf("%s", first)
	}
	g.on <- nil
	var last string
	for name, data := e.next(); name != "EOF"; name, data = e.next() {
		if data != "" {
			last = data
		}
	}
	var r rpcWire
	if err := json.Unmarshal([]byte(last), &r); err != nil || string(r.ID) != "7" || !strings.Contains(string(r.Result.Structured), `"text":"first second"`) {
		t.Errorf("%v: %s", err, last)
	}
	messages := s.text(200, "GET", "/v1/sessions/main/view?messages=1", "")
	if n := strings.Count(messages, "hello"); n != 1 {
		t.Errorf("it was said %d times: %s", n, messages)
	}
}

// TestMCPFailure: a turn that fails is a result, on a stream too; a client that leaves stops nothing.
func TestMCPFailure(t *testing.T) {
	g := newGate()
	s := serve(t, func(_ *worker.Config, a *actors) { a.provider = g })
	e := s.listen("POST", "/mcp", rpcCall("tools/call", `{"name":"send_message","arguments":{"session":"main","text":"hello"}}`))
	<-g.begun
	g.on <- &tidemark.APIError{Class: tidemark.ClassBadRequest, Status: 400, Message: "no"}
	_, data := e.next()
	for !strings.Contains(data, `"id":7`) {
		var name string
		if name, data = e.next(); name == "EOF" {
			t.Fatal("no result")
		}
	}
	if !strings.Contains(data, `"isError":true`) {
		t.Errorf("%s", data)
	}
	res := s.do("POST", "/mcp", rpcCall("tools/call", `{"name":"send_message","arguments":{"session":"main","text":"go on","id":"g1"}}`), "Accept", "application/json, text/event-stream")
	if res.StatusCode != http.StatusOK {
		t.Fatal(res.Status)
	}
	<-g.begun
	res.Body.Close()
	g.on <- nil
	s.settle()
	if r := fields[struct {
		State     string
		Duplicate bool
	}](s, "send_message", `{"session":"main","text":"go on","id":"g1"}`); r.State != "done" || !r.Duplicate {
		t.Errorf("%+v", r)
	}
}
