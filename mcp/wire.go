package mcp

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// Versions of the protocol. The newest has no handshake and no session; the others, newest first, have both.
const (
	Stateless = "2026-07-28"
	newestOld = "2025-11-25"
)

// handshakes are the versions that begin with a handshake and are spoken here.
var handshakes = [...]string{newestOld, "2025-06-18", "2025-03-26"}

// Codes of JSON-RPC and of MCP that are told apart
// (https://modelcontextprotocol.io/specification/2026-07-28/basic).
const (
	codeInvalidParams = -32602
	codeNoMethod      = -32601
	codeCapability    = -32021 // the client lacks an ability
	codeVersion       = -32022
)

// methodChanged is how a server says that its list of tools is another one.
const methodChanged = "notifications/tools/list_changed"

// Keys of _meta that each request of the stateless protocol has.
const (
	metaVersion      = "io.modelcontextprotocol/protocolVersion"
	metaInfo         = "io.modelcontextprotocol/clientInfo"
	metaCapabilities = "io.modelcontextprotocol/clientCapabilities"
)

// message is a JSON-RPC message as it comes: an answer to a request of ours, a notification, or a request to us.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Result json.RawMessage `json:"result"`
	Error  *rpcError       `json:"error"`
}

// rpcError is an error of the protocol.
type rpcError struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data"`
}

// refusedError is an error of the protocol as a caller has it: err says what it means, code what the server said.
type refusedError struct {
	code int
	err  error
}

func (e *refusedError) Error() string { return e.err.Error() }
func (e *refusedError) Unwrap() error { return e.err }

// decode reads a message.
func decode(data []byte) (message, error) {
	var m message
	var version struct {
		JSONRPC string `json:"jsonrpc"`
	}
	if err := json.Unmarshal(data, &m); err != nil {
		return message{}, fmt.Errorf("the answer is no JSON-RPC message: %w", tidemark.ErrUnavailable)
	}
	if err := json.Unmarshal(data, &version); err != nil || version.JSONRPC != "2.0" {
		return message{}, fmt.Errorf(`the answer is no JSON-RPC message, it lacks "jsonrpc":"2.0": %w`, tidemark.ErrUnavailable)
	}
	if m.Method == "" && m.Error == nil && len(m.Result) == 0 {
		return message{}, fmt.Errorf("the answer has neither a result nor an error: %w", tidemark.ErrUnavailable)
	}
	return m, nil
}

// answers reports whether a message answers the request of a number. An error without an id is one about a request
// that the server could not read; as we sent one only, it is about that.
func (m message) answers(id int64) bool {
	if m.Method != "" {
		return false
	}
	return string(m.ID) == strconv.FormatInt(id, 10) || m.Error != nil && (len(m.ID) == 0 || string(m.ID) == "null")
}

// reply answers a request of a server: a ping is taken, all else is not done here.
func (m message) reply() []byte {
	out := map[string]any{"jsonrpc": "2.0", "id": m.ID}
	if m.Method == "ping" {
		out["result"] = map[string]any{}
	} else {
		out["error"] = map[string]any{"code": codeNoMethod, "message": "this client does not do " + short(m.Method)}
	}
	raw, err := json.Marshal(out)
	if err != nil {
		return nil
	}
	return raw
}

// Heard is what a message of a server means to a transport that has all of them in one stream.
type Heard struct {
	Answers int64  // the request that it answers; 0: none of ours
	Changed bool   // the list of tools is another one
	Reply   []byte // what it is to be answered; nil: nothing
}

// Hear reads a message. Of what is none it gives nothing.
func Hear(raw []byte) (h Heard) {
	m, err := decode(raw)
	switch {
	case err != nil:
	case m.Method == methodChanged:
		h.Changed = true
	case m.Method == "":
		h.Answers, _ = strconv.ParseInt(string(m.ID), 10, 64) // ours are numbers
	case len(m.ID) > 0:
		h.Reply = m.reply()
	}
	return h
}

// refused is what an error of the protocol means to a caller; said are the words of the server, as [Quote] gives them.
func refused(code int, said string) error {
	low := strings.ToLower(said)
	switch {
	case code == codeInvalidParams && (strings.Contains(low, "unknown tool") || strings.Contains(low, "not found")):
		return fmt.Errorf("%s: %w", said, tidemark.ErrNotFound)
	case code == codeInvalidParams:
		return fmt.Errorf("%s: %w", said, tidemark.ErrInvalid)
	case code == codeCapability:
		return fmt.Errorf("the server wants something of its client that is not done here (sampling, questions to the user): %s: %w", said, tidemark.ErrForbidden)
	}
	return fmt.Errorf("the server says error %d: %s: %w", code, said, tidemark.ErrConflict)
}

// fault is an error of the protocol as a caller has it.
func (e *rpcError) fault(token string) error {
	return &refusedError{e.Code, refused(e.Code, Quote(e.Message, token))}
}

// request is a message of ours.
type request struct {
	JSONRPC string `json:"jsonrpc"`
	ID      int64  `json:"id,omitempty"` // 0: a notification
	Method  string `json:"method"`
	Params  any    `json:"params,omitempty"`
}

// params are those of every request that is sent; what is empty is left out.
type params struct {
	Meta      map[string]any  `json:"_meta,omitempty"`
	Cursor    string          `json:"cursor,omitempty"`
	Name      string          `json:"name,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Listen    map[string]bool `json:"notifications,omitempty"`
}

// listing is a page of tools/list.
type listing struct {
	Tools []json.RawMessage `json:"tools"` // each a listed
	Next  string            `json:"nextCursor"`
	TTL   int64             `json:"ttlMs"`
}

// listed is a tool. What is said of it beside its name and schema may be of any kind: it costs no tool.
type listed struct {
	Name        string          `json:"name"`
	Title       any             `json:"title"`
	Description any             `json:"description"`
	InputSchema json.RawMessage `json:"inputSchema"`
	Annotations any             `json:"annotations"`
}

// hints reports whether the server says of the tool that it changes nothing, or nothing more when called again.
func (l listed) hints() bool {
	told, _ := l.Annotations.(map[string]any)
	return told["readOnlyHint"] == true || told["idempotentHint"] == true
}

// tool is what the rest of the program is told of a listed tool.
func (l listed) tool() tidemark.Tool {
	text, _ := l.Description.(string)
	if text == "" {
		text, _ = l.Title.(string)
	}
	return tidemark.Tool{Name: l.Name, Description: text, InputSchema: l.InputSchema, Idempotent: l.hints()}
}
