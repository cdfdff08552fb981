package worker

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/clip"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// chatForm is a request of chat completions (https://platform.openai.com/docs/api-reference/chat/create).
type chatForm struct {
	model    string
	user     string
	kept     bool // its conversation is kept here
	stream   bool
	usage    bool // a last chunk with figures
	limit    tidemark.Tokens
	limits   []string // the parameters that it came by
	system   string
	messages []tidemark.Message         // neighbours of one role are merged
	tools    []tidemark.Tool            // of a call without a conversation
	options  []tidemark.Option          // parameters that go on to the model's API
	rest     map[string]json.RawMessage // asked for, and nothing here heeds it
}

// chatLimits are parameters that change what an answer is, where the model's API does not take them. Those
// that only colour it are ignored, and the answer's head says so.
var chatLimits = []limit{
	{"n", []string{"1"}, "one answer is given; ask again for another"},
	{"modalities", []string{`["text"]`, `[]`}, "answers are text"},
	{"audio", nil, "answers are text"},
	{"logprobs", []string{"false"}, "leave it out"},
	{"top_logprobs", []string{"0"}, "leave it out"},
	{"response_format", []string{`{"type":"text"}`}, "ask for the form in words, or by a tool"},
	{"functions", []string{"[]"}, `use "tools", which replaced it`},
	{"function_call", []string{`"auto"`, `"none"`}, `use "tool_choice", which replaced it`},
	{"stop", []string{"[]", `""`}, "leave it out, and cut the answer"},
	{"tool_choice", []string{`"auto"`, `"none"`}, "the model chooses; offer only the tool that it should take"},
	{"web_search_options", []string{"{}"}, "leave it out"},
}

// readChat decodes a request. kept says that its conversation is kept here, as is that of a request with a user.
func readChat(raw []byte, kept bool) (chatForm, error) {
	var f chatForm
	var messages []json.RawMessage
	var options struct {
		Usage bool `json:"include_usage"`
	}
	var newer tidemark.Tokens
	rest, err := decodeForm(raw, field{"model", "a string", &f.model}, field{"user", "a string", &f.user}, field{"stream", "true or false", &f.stream},
		field{"stream_options", "an object", &options}, field{"max_tokens", "a number", &f.limit}, field{"max_completion_tokens", "a number", &newer},
		field{"messages", "a list of messages", &messages})
	if err != nil {
		return f, err
	}
	f.rest, f.usage, f.kept = rest, options.Usage, kept || f.user != ""
	if newer > 0 {
		f.limits = append(f.limits, "max_completion_tokens")
	}
	if f.limit > 0 {
		f.limits = append(f.limits, "max_tokens")
	}
	if newer > 0 {
		f.limit = newer
	}
	if f.limit < 0 || len(f.user) > maxUser {
		return f, fmt.Errorf("max_tokens must not be negative, and \"user\" may have %d bytes: %w", maxUser, tidemark.ErrInvalid)
	}
	if err := f.readTools(); err != nil {
		return f, err
	}
	return f, f.read(messages)
}

// readTools takes the tools out of the rest, where somebody may call them: a conversation that is kept here has its own.
func (f *chatForm) readTools() error {
	raw, ok := f.rest["tools"]
	if !ok || f.kept && compactJSON(raw) != "[]" {
		return nil
	}
	delete(f.rest, "tools")
	var tools []chatTool
	if err := json.Unmarshal(raw, &tools); err != nil {
		return fmt.Errorf("tools: must be a list of tools: %w", tidemark.ErrInvalid)
	}
	var err error
	f.tools, err = toolsOf(tools)
	return err
}

// settle sorts out the parameters that are left: what the model's API takes goes on to it, what would make
// another answer is refused, and the rest is ignored.
func (f *chatForm) settle(takes func(option string) bool) error {
	for _, name := range slices.Sorted(maps.Keys(f.rest)) {
		if takes(name) {
			f.options = append(f.options, tidemark.Option{Name: name, Value: f.rest[name]})
			delete(f.rest, name)
		}
	}
	if compactJSON(f.rest["tool_choice"]) == `"none"` {
		f.tools = nil
	}
	return judge(f.rest, chatLimits)
}

// takesOf says which parameters of a client a provider heeds.
func takesOf(p tidemark.Provider) func(option string) bool {
	if t, ok := p.(tidemark.Taker); ok {
		return t.Takes
	}
	return takesNone
}

func takesNone(string) bool { return false }

// maxUser bounds the name of a user in bytes.
const maxUser = 1000

// chatTool is a tool as a client offers it.
type chatTool struct {
	Type     string       `json:"type"`
	Function chatToolForm `json:"function"`
}

// chatToolForm is a definition, with the members that nothing here reads, such as strict.
type chatToolForm struct {
	Name        string
	Description string
	Parameters  json.RawMessage
	more        []tidemark.Option
}

// UnmarshalJSON exists for the members that go on as they came.
func (f *chatToolForm) UnmarshalJSON(raw []byte) error {
	rest, err := decodeForm(raw, field{"name", "a string", &f.Name}, field{"description", "a string", &f.Description}, field{"parameters", "an object", &f.Parameters})
	for _, name := range slices.Sorted(maps.Keys(rest)) {
		f.more = append(f.more, tidemark.Option{Name: name, Value: rest[name]})
	}
	return err
}

func toolsOf(tools []chatTool) ([]tidemark.Tool, error) {
	const most = 1000
	if len(tools) > most {
		return nil, fmt.Errorf("tools: %d of them, at most %d: %w", len(tools), most, tidemark.ErrTooLarge)
	}
	out := make([]tidemark.Tool, 0, len(tools))
	for i, t := range tools {
		if t.Type != "function" || t.Function.Name == "" {
			return nil, fmt.Errorf("tools[%d]: type %q: want a function with a name: %w", i, clip.To(t.Type, 40), tidemark.ErrInvalid)
		}
		schema := t.Function.Parameters
		if string(schema) == "null" {
			schema = nil
		}
		out = append(out, tidemark.Tool{Name: t.Function.Name, Description: t.Function.Description, InputSchema: schema, More: t.Function.more})
	}
	return out, nil
}

// chatMessage is a message of chat completions.
type chatMessage struct {
	Role     string          `json:"role"`
	Content  json.RawMessage `json:"content"`
	Refusal  string          `json:"refusal"` // of an answer that declined, which has no content then
	Calls    []chatCallForm  `json:"tool_calls"`
	CallID   string          `json:"tool_call_id"`
	Function json.RawMessage `json:"function_call"`
}

type chatCallForm struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// read converts the messages: those of the system become the system text, tool messages results. Of a conversation that is
// kept here what stands before the last answer only tells one request from another, so it is taken in any form.
func (f *chatForm) read(raws []json.RawMessage) error {
	var system []string
	out := make([]tidemark.Message, 0, len(raws))
	past := 0
	if f.kept {
		past = answered(raws)
	}
	for i, raw := range raws {
		one, text, err := readChatMessage(raw, f.kept)
		if err != nil && i < past && raw[0] == '{' {
			one, err = unread(raw)
		}
		if err != nil {
			return fmt.Errorf("messages[%d]: %w", i, err)
		}
		if text != "" {
			system = append(system, text)
		}
		if len(one.Content) > 0 {
			out = append(out, one)
		}
	}
	f.system, f.messages = strings.Join(system, "\n\n"), merged(folded(out))
	return nil
}

// answered is how many messages end with the last one of the assistant.
func answered(raws []json.RawMessage) int {
	for i, raw := range slices.Backward(raws) {
		if roleOf(raw) == string(tidemark.Assistant) {
			return i + 1
		}
	}
	return 0
}

// roleOf is the role of a message in any form, empty for none.
func roleOf(raw json.RawMessage) string {
	var m struct {
		Role string `json:"role"`
	}
	_ = json.Unmarshal(raw, &m) // it has no role then
	return m.Role
}

// unread is a message in a form that is not known.
func unread(raw json.RawMessage) (tidemark.Message, error) {
	m := tidemark.Message{Role: tidemark.User, Content: make([]tidemark.Block, 1)}
	if roleOf(raw) == string(tidemark.Assistant) {
		m.Role = tidemark.Assistant
	}
	return m, m.Content[0].UnmarshalJSON(slices.Concat([]byte(`{"unread":`), raw, []byte("}")))
}

func readChatMessage(raw json.RawMessage, kept bool) (out tidemark.Message, system string, err error) {
	var m chatMessage
	if err := json.Unmarshal(raw, &m); err != nil {
		return out, "", fmt.Errorf("want an object with role and content: %w", tidemark.ErrInvalid)
	}
	return m.convert(kept)
}

// convert gives a message, or system text.
func (m chatMessage) convert(kept bool) (out tidemark.Message, system string, err error) {
	blocks, err := chatContent(m.Content, kept)
	if err != nil {
		return out, "", err
	}
	switch m.Role {
	case "system", "developer":
		for _, b := range blocks {
			if b.Type != tidemark.TypeText && !kept {
				return out, "", fmt.Errorf("a message of the system is text: %w", tidemark.ErrInvalid)
			}
			system += b.Text
		}
		return out, system, nil
	case "user":
		if len(blocks) == 1 && m.Content[0] == '"' {
			return tidemark.NewText(tidemark.User, blocks[0].Text), "", nil
		}
		return tidemark.Message{Role: tidemark.User, Content: blocks}, "", nil
	case "tool":
		if m.CallID == "" {
			return out, "", fmt.Errorf("a tool message needs a tool_call_id: %w", tidemark.ErrInvalid)
		}
		var text strings.Builder
		for _, b := range blocks {
			text.WriteString(b.Text)
		}
		return tidemark.Message{Role: tidemark.User, Content: []tidemark.Block{tidemark.ToolResult(m.CallID, text.String(), false)}}, "", nil
	case "assistant":
		if len(m.Function) > 0 && string(m.Function) != "null" {
			return out, "", fmt.Errorf("function_call: use tool_calls, which replaced it: %w", tidemark.ErrInvalid)
		}
		if len(blocks) == 0 && strings.TrimSpace(m.Refusal) != "" {
			blocks = []tidemark.Block{tidemark.Text(m.Refusal)}
		}
		for _, c := range m.Calls {
			if c.Function.Name == "" || c.ID == "" {
				return out, "", fmt.Errorf("a tool call needs an id and the name of a function: %w", tidemark.ErrInvalid)
			}
			blocks = append(blocks, tidemark.ToolUse(c.ID, c.Function.Name, argumentsOf(c.Function.Arguments)))
		}
		return tidemark.Message{Role: tidemark.Assistant, Content: blocks}, "", nil
	}
	if kept && m.Role != "" && m.Role != "function" {
		return tidemark.Message{Role: tidemark.Role(m.Role), Content: blocks}, "", nil
	}
	return out, "", fmt.Errorf("role %q: want system, developer, user, assistant or tool: %w", clip.To(m.Role, 40), tidemark.ErrInvalid)
}

// argumentsOf is the input of a call. Models write arguments that are no object, and clients send them
// back: they stay readable.
func argumentsOf(s string) json.RawMessage {
	raw := json.RawMessage(strings.TrimSpace(s))
	if len(raw) == 0 {
		return nil
	}
	if raw[0] == '{' && json.Valid(raw) {
		return raw
	}
	return append(json.AppendString([]byte(`{"arguments":`), s), '}')
}

// chatPartForm is a part of a content.
type chatPartForm struct {
	Text    string    `json:"text"`
	Refusal string    `json:"refusal"`
	Image   chatImage `json:"image_url"`
	File    struct {
		Name string `json:"filename"`
		Data string `json:"file_data"`
	} `json:"file"`
}

// chatImage is the address of a picture, with what else the client says of it, such as detail.
type chatImage struct {
	URL  string
	more json.RawMessage // an object; nil for nothing
}

// UnmarshalJSON exists for the members that go on as they came.
func (c *chatImage) UnmarshalJSON(raw []byte) error {
	if string(raw) == "null" {
		return nil
	}
	rest, err := decodeForm(raw, field{"url", "a string", &c.URL})
	if err != nil || len(rest) == 0 {
		return err
	}
	c.more, err = json.Marshal(rest)
	return err
}

// block is a picture as providers know it: those of chat completions send the member image_url on, others leave it out.
func (c chatImage) block(remote bool) (tidemark.Block, error) {
	b, err := attachment{url: c.URL, remote: remote}.block()
	if err != nil || c.more == nil || b.Type != tidemark.TypeImage {
		return b, err
	}
	raw := b.AppendJSON(nil)
	raw = append(append(raw[:len(raw)-1], `,"image_url":`...), c.more...)
	var out tidemark.Block
	err = out.UnmarshalJSON(append(raw, '}'))
	return out, err
}

// chatContent converts a content: a string, a list of parts, or a part alone. Empty texts are left out, since no model
// takes them. A conversation that is kept here takes parts of a kind that is not known as they came: providers know what to say
// of them.
func chatContent(raw json.RawMessage, kept bool) ([]tidemark.Block, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	var parts []json.RawMessage
	switch raw[0] {
	case '"':
		var s string
		if err := json.Unmarshal(raw, &s); err != nil {
			return nil, fmt.Errorf("content: %w", tidemark.ErrInvalid)
		}
		if strings.TrimSpace(s) == "" {
			return nil, nil
		}
		return []tidemark.Block{tidemark.Text(s)}, nil
	case '{':
		parts = []json.RawMessage{raw}
	default:
		if err := json.Unmarshal(raw, &parts); err != nil {
			return nil, fmt.Errorf("content: want a string or a list of parts: %w", tidemark.ErrInvalid)
		}
	}
	out := make([]tidemark.Block, 0, len(parts))
	for i, p := range parts {
		b, err := readPart(p, kept)
		if err != nil {
			return nil, fmt.Errorf("content[%d]: %w", i, err)
		}
		if b.Type != tidemark.TypeText || strings.TrimSpace(b.Text) != "" {
			out = append(out, b)
		}
	}
	return out, nil
}

// partTypes are those that are read, or refused since nobody here could hear or fetch what they hold.
var partTypes = []string{"text", "input_text", "refusal", "image_url", "file", "input_audio", ""}

func readPart(raw json.RawMessage, kept bool) (b tidemark.Block, err error) {
	var kind struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(raw, &kind); err != nil {
		return b, fmt.Errorf("want a part, an object with a type: %w", tidemark.ErrInvalid)
	}
	if kept && !slices.Contains(partTypes, kind.Type) {
		return b, b.UnmarshalJSON(raw)
	}
	var p chatPartForm
	if err := json.Unmarshal(raw, &p); err != nil {
		return b, fmt.Errorf("a part of type %q: %w: %w", clip.To(kind.Type, 40), err, tidemark.ErrInvalid)
	}
	switch kind.Type {
	case "text", "input_text":
		return tidemark.Text(p.Text), nil
	case "refusal":
		return tidemark.Text(p.Refusal), nil
	case "image_url":
		return p.Image.block(!kept)
	case "file":
		if p.File.Data == "" {
			return b, fmt.Errorf("a file without file_data: send its bytes as a data URL, since nothing is uploaded here: %w", tidemark.ErrInvalid)
		}
		return attachment{url: p.File.Data, name: p.File.Name}.block()
	}
	return b, fmt.Errorf("a part of type %q: want text, image_url or file: %w", clip.To(kind.Type, 40), tidemark.ErrInvalid)
}
