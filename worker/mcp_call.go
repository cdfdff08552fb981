package worker

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/clip"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// Bounds of what tools give.
const (
	maxToolResult  = 1 << 20   // bytes of a result
	maxPage        = 256 << 10 // bytes of the messages of one page
	maxShown       = 4_000     // bytes of one of them
	maxWhole       = 64 << 10  // bytes of a message that is read by itself, at a time
	pageMessages   = 20
	maxReadMessage = 200

	defaultAgent = "main"
)

// toolCall is a tool at work.
type toolCall struct {
	mcpDoor
	m    rpc
	tool mcpTool
	args map[string]json.RawMessage // those that are there and of their kind

	session tidemark.Key // that it is about; empty: it is about the agent
	agent   string
}

// errToldRPC says that a tool has told its result on a stream.
var errToldRPC = errors.New("the result was told")

// callTool carries a tool out. What fails in it is a result, which the model reads; only what names no tool is an error
// of the protocol.
func (c mcpDoor) callTool(m rpc) (map[string]any, *rpcError, error) {
	name := textOf(m.params["name"])
	all := mcpTools()
	at := slices.IndexFunc(all, func(t mcpTool) bool { return t.name == name })
	if at < 0 {
		names := make([]string, len(all))
		for i, t := range all {
			names[i] = t.name
		}
		return nil, badRPC(rpcBadParams, "unknown tool %s", suggest(name, names)), nil
	}
	args, ok := objectOf(m.params["arguments"])
	if !ok {
		return nil, badRPC(rpcBadParams, "arguments: want an object"), nil
	}
	t := &toolCall{mcpDoor: c, m: m, tool: all[at], args: args}
	err := t.check()
	var out map[string]any
	switch {
	case err != nil:
	case t.tool.run != nil:
		out, err = t.tool.run(t)
	default:
		out, err = t.through()
	}
	if errors.Is(err, errToldRPC) {
		return nil, nil, nil
	}
	if err != nil && c.r.Context().Err() != nil {
		return nil, nil, err
	}
	if err != nil {
		out = t.failed(err)
	}
	return out, nil, nil
}

// failed is an error as a result.
func (t *toolCall) failed(err error) map[string]any {
	f := failureOf(err)
	t.Metrics.failure(f.kind)
	if f.status == http.StatusInternalServerError {
		t.Logger.Error("tool failed", "id", t.w.id, "tool", t.tool.name, "err", err)
	}
	return failedTool(f.kind + ": " + f.text)
}

func failedTool(text string) map[string]any {
	out := textResult(text)
	out["isError"] = true
	return out
}

// textResult is a result that is a text.
func textResult(text string) map[string]any {
	return map[string]any{"content": []any{map[string]any{"type": "text", "text": text}}}
}

// structured is a result with fields, which is a text for clients that do not read them.
func structured(v any) (map[string]any, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode result: %w", err)
	}
	out := textResult(string(raw))
	out["structuredContent"] = json.RawMessage(raw)
	return out, nil
}

// wants is what a value of a kind is, for people.
var wants = map[string]string{kindText: "a string", kindNumber: "a whole number", kindFlag: "true or false", kindStrings: "a list of strings"}

// check holds the arguments to the table, and finds whom the call is about. A null is as good as nothing.
func (t *toolCall) check() error {
	names := make([]string, len(t.tool.args))
	for i, a := range t.tool.args {
		names[i] = a.name
	}
	var unknown []string
	for name, value := range t.args {
		if !slices.Contains(names, name) {
			unknown = append(unknown, name)
		}
		if string(value) == "null" {
			delete(t.args, name)
		}
	}
	if len(unknown) > 0 {
		return fmt.Errorf("unknown argument %s: %w", suggest(slices.Min(unknown), names), tidemark.ErrInvalid)
	}
	for _, a := range t.tool.args {
		value, there := t.args[a.name]
		if !there && a.must {
			return fmt.Errorf("argument %q is missing: %s: %w", a.name, a.about, tidemark.ErrInvalid)
		}
		if there && !isKind(a.kind, value) {
			return fmt.Errorf("argument %q must be %s: %w", a.name, wants[a.kind], tidemark.ErrInvalid)
		}
	}
	return t.find()
}

func isKind(kind string, value json.RawMessage) bool {
	switch kind {
	case kindText:
		return value[0] == '"'
	case kindNumber:
		return len(value) <= maxRPCName && isRPCID(value) && value[0] != '"'
	case kindFlag:
		return value[0] == 't' || value[0] == 'f'
	}
	var list []string
	return value[0] == '[' && json.Unmarshal(value, &list) == nil
}

// find says whom the call is about. build/doors.mjs finds the object by the same rule, and testdata/doors.json holds
// both to it.
func (t *toolCall) find() (err error) {
	if name := t.text("session"); name != "" {
		t.session, err = tidemark.ParseKey(name)
		return err
	}
	t.agent = cmp.Or(t.text("agent"), defaultAgent)
	if key, err := tidemark.ParseKey("agent:" + t.agent + ":main"); err != nil || key.Agent() != t.agent {
		return fmt.Errorf("agent %q: want letters in lower case, digits, - and _: %w", clip.To(t.agent, 80), tidemark.ErrInvalid)
	}
	return nil
}

// text is an argument that is a string, "" for one that is not there.
func (t *toolCall) text(name string) string { return textOf(t.args[name]) }

// within reads an argument that is a number.
func (t *toolCall) within(name string, otherwise, least, most int64) (n int64, err error) {
	if value := t.args[name]; value != nil {
		if err = json.Unmarshal(value, &otherwise); err != nil || otherwise < least || otherwise > most {
			return 0, fmt.Errorf("argument %q: want a number from %d to %d: %w", name, least, most, tidemark.ErrInvalid)
		}
	}
	return otherwise, nil
}

// toRoute is a request to a route of ours, on behalf of this call.
func (t *toolCall) toRoute(method, path string, query url.Values, body []byte) (*http.Request, error) {
	path = strings.NewReplacer("{key}", url.PathEscape(string(t.session)), "{agent}", url.PathEscape(t.agent)).Replace(path)
	r, err := http.NewRequestWithContext(t.r.Context(), method, path+"?"+query.Encode(), bytes.NewReader(body))
	if err == nil {
		r.Host, r.RemoteAddr = t.r.Host, t.r.RemoteAddr
	}
	return r, err
}

// through has the route of a tool do its work.
func (t *toolCall) through() (map[string]any, error) {
	method, path, _ := strings.Cut(t.tool.route, " ")
	query, fields := url.Values{}, map[string]json.RawMessage{}
	for _, a := range t.tool.args {
		value := t.args[a.name]
		switch {
		case value == nil || a.to == "":
		case method == http.MethodPost:
			fields[a.to] = value
		case a.kind == kindText:
			query.Set(a.to, textOf(value))
		default:
			query.Set(a.to, string(value))
		}
	}
	if t.session != "" && query.Has("session") { // of a recall: there alone
		query.Set("session", string(t.session))
		query.Set("scope", "session")
	}
	var body []byte
	if method == http.MethodPost {
		var err error
		if body, err = json.Marshal(fields); err != nil {
			return nil, fmt.Errorf("encode arguments: %w", err)
		}
	}
	r, err := t.toRoute(method, path, query, body)
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", path, err)
	}
	kept := &keptAnswer{header: http.Header{}}
	a := &answer{ResponseWriter: kept, door: t.door, id: t.w.id, known: true}
	t.table.mux.ServeHTTP(a, r)
	raw := bytes.TrimSpace(kept.body.Bytes())
	switch {
	case kept.over:
		return nil, fmt.Errorf("the result has over %d bytes; ask for less, with a smaller limit: %w", maxToolResult, tidemark.ErrTooLarge)
	case a.status >= http.StatusMultipleChoices:
		var w wireError
		if json.Unmarshal(raw, &w) == nil && w.Error.Message != "" {
			return failedTool(w.Error.Type + ": " + w.Error.Message), nil
		}
		fallthrough
	case a.broken || a.status == 0:
		return nil, fmt.Errorf("route %s answered with %d: %w", t.tool.route, a.status, tidemark.ErrUnavailable)
	}
	return structured(json.RawMessage(raw))
}

// keptAnswer keeps what a route answers, up to a bound.
type keptAnswer struct {
	header http.Header
	body   bytes.Buffer
	over   bool // there was more
}

// Header implements http.ResponseWriter.
func (k *keptAnswer) Header() http.Header { return k.header }

// WriteHeader implements http.ResponseWriter.
func (k *keptAnswer) WriteHeader(int) {}

// Write implements http.ResponseWriter.
func (k *keptAnswer) Write(p []byte) (int, error) {
	if k.over = k.over || k.body.Len()+len(p) > maxToolResult; k.over {
		return len(p), nil
	}
	return k.body.Write(p)
}

// memory is a tool of the agent's, which a model of ours is given, too.
func (t *toolCall) memory() (map[string]any, error) {
	a, err := t.owner(t.agent)
	if err != nil {
		return nil, err
	}
	id := cmp.Or(t.text("id"), tidemark.NewID(t.Runtime.Now()))
	delete(t.args, "agent")
	delete(t.args, "id")
	input, err := json.Marshal(t.args)
	if err != nil {
		return nil, fmt.Errorf("encode arguments: %w", err)
	}
	scope := tidemark.Key("agent:" + t.agent + ":main").Scope() // whoever holds the token is the owner
	got := a.Call(t.r.Context(), scope, tidemark.ToolUse(id, t.tool.name, input))
	text := tidemark.Message{Content: got.Content}.PlainText()
	if got.IsError {
		return failedTool(strings.TrimPrefix(text, "Error: ")), nil
	}
	return textResult(text), nil
}

// wireSaid is a message as it is read by others.
type wireSaid struct {
	ID   tidemark.EntryID `json:"id"`
	Role tidemark.Role    `json:"role"`
	From string           `json:"from,omitempty"` // person, model, tool, recall, system
	At   string           `json:"at"`
	Text string           `json:"text"`
	Cut  int              `json:"cut,omitempty"` // bytes of the text, of which this is a piece
}

// wireHeard is a page of them, in the order in which they were said.
type wireHeard struct {
	Messages []wireSaid `json:"messages"`
	Next     int64      `json:"next,omitempty"`
}

// readSession reads messages of a session, or one of them.
func (t *toolCall) readSession() (map[string]any, error) {
	before, err := t.within("before", 0, 0, 1<<53)
	if err != nil {
		return nil, err
	}
	limit, err := t.within("limit", pageMessages, 1, maxReadMessage)
	if err != nil {
		return nil, err
	}
	offset, err := t.within("offset", 0, 0, 1<<53)
	if err != nil {
		return nil, err
	}
	r, err := t.toRoute(http.MethodGet, "/v1/sessions/{key}/log", nil, nil)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", t.session, err)
	}
	r.SetPathValue("key", string(t.session))
	in := &request{door: t.door, w: t.w, r: r}
	if id := t.text("entry"); id != "" {
		return wholeMessage(in, tidemark.EntryID(id), int(offset))
	}
	s, err := in.shown()
	if err != nil {
		return nil, err
	}
	out := wireHeard{Messages: []wireSaid{}}
	entries, err := s.Reader.Entries(r.Context(), before, int(limit))
	if err != nil {
		return nil, err
	}
	size := 0
	for i, e := range entries {
		m, err := pieceOf(e, 0, maxShown)
		if err != nil {
			return nil, err
		}
		if size += len(m.Text); size > maxPage && i > 0 {
			break
		}
		if e.Kind == tidemark.KindMessage {
			out.Messages = append(out.Messages, m)
		}
		if out.Next = e.Seq; i == len(entries)-1 && len(entries) < int(limit) {
			out.Next = 0
		}
	}
	slices.Reverse(out.Messages)
	return structured(out)
}

// wholeMessage reads one message from a byte on.
func wholeMessage(c *request, id tidemark.EntryID, offset int) (map[string]any, error) {
	s, err := c.rooted()
	if err != nil {
		return nil, err
	}
	e, err := s.Reader.Entry(c.r.Context(), id)
	if err != nil {
		return nil, err
	}
	m, err := pieceOf(e, offset, maxWhole)
	if err != nil {
		return nil, err
	}
	out := wireHeard{Messages: []wireSaid{m}}
	if end := offset + len(m.Text); end < m.Cut {
		out.Next = int64(end)
	}
	return structured(out)
}

// pieceOf is a piece of a message. What is no message has no text.
func pieceOf(e tidemark.Entry, offset, most int) (wireSaid, error) {
	w := wireSaid{ID: e.ID, From: e.Origin.From, At: e.At.UTC().Format("2006-01-02T15:04:05Z07:00")}
	if e.Kind != tidemark.KindMessage {
		return w, nil
	}
	m, err := e.Message()
	if err != nil {
		return w, fmt.Errorf("read message %s: %w", e.ID, err)
	}
	w.Role = m.Role
	raw, err := appendMarkdown(nil, e)
	if err != nil {
		return w, fmt.Errorf("read message %s: %w", e.ID, err)
	}
	_, text, _ := strings.Cut(strings.TrimSpace(string(raw)), "\n\n") // without its heading, which says who and when
	end := min(len(text), offset+most)
	for end > offset && end < len(text) && !utf8.RuneStart(text[end]) {
		end--
	}
	if offset = min(offset, len(text)); offset > 0 || end < len(text) {
		w.Cut = len(text)
	}
	w.Text = strings.ToValidUTF8(text[offset:max(offset, end)], "\uFFFD")
	return w, nil
}
