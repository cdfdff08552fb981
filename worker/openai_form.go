package worker

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// chatForm is a request of chat completions (https://platform.openai.com/docs/api-reference/chat/create).
type chatForm struct {
	model    string
	user     string
	stream   bool
	usage    bool // a last chunk with figures
	limit    tidemark.Tokens
	limits   []string // the parameters that it came by
	system   string
	messages []tidemark.Message // neighbours of one role are merged
	tools    []tidemark.Tool
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

// readChat decodes a request. remote says that files may be named by URL.
func readChat(raw []byte, remote bool) (chatForm, error) {
	var f chatForm
	var messages []json.RawMessage
	var tools []chatTool
	var options struct {
		Usage bool `json:"include_usage"`
	}
	var newer tidemark.Tokens
	rest, err := decodeForm(raw, field{"model", "a string", &f.model}, field{"user", "a string", &f.user}, field{"stream", "true or false", &f.stream},
		field{"stream_options", "an object", &options}, field{"max_tokens", "a number", &f.limit}, field{"max_completion_tokens", "a number", &newer},
		field{"messages", "a list of messages", &messages}, field{"tools", "a list of tools", &tools})
	if err != nil {
		return f, err
	}
	f.rest, f.usage = rest, options.Usage
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
	if f.tools, err = toolsOf(tools); err != nil {
		return f, err
	}
	return f, f.read(messages, remote)
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
			return nil, fmt.Errorf("tools[%d]: type %q: want a function with a name: %w", i, clip(t.Type, 40), tidemark.ErrInvalid)
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

// read converts the messages: those of the system become the system text, tool messages results.
func (f *chatForm) read(raws []json.RawMessage, remote bool) error {
	var system []string
	out := make([]tidemark.Message, 0, len(raws))
	for i, raw := range raws {
		var m chatMessage
		if err := json.Unmarshal(raw, &m); err != nil {
			return fmt.Errorf("messages[%d]: want an object with role and content: %w", i, tidemark.ErrInvalid)
		}
		one, text, err := m.convert(remote)
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
	f.system, f.messages = strings.Join(system, "\n\n"), merged(out)
	return nil
}

// convert gives a message, or system text.
func (m chatMessage) convert(remote bool) (out tidemark.Message, system string, err error) {
	blocks, err := chatContent(m.Content, remote)
	if err != nil {
		return out, "", err
	}
	switch m.Role {
	case "system", "developer":
		for _, b := range blocks {
			if b.Type != tidemark.TypeText {
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
	return out, "", fmt.Errorf("role %q: want system, developer, user, assistant or tool: %w", clip(m.Role, 40), tidemark.ErrInvalid)
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
	Type    string    `json:"type"`
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

// chatContent converts a content: a string, or a list of parts. Empty texts are left out, since no model
// takes them.
func chatContent(raw json.RawMessage, remote bool) ([]tidemark.Block, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	var parts []chatPartForm
	if raw[0] == '"' {
		var s string
		if err := json.Unmarshal(raw, &s); err != nil {
			return nil, fmt.Errorf("content: %w", tidemark.ErrInvalid)
		}
		parts = []chatPartForm{{Type: "text", Text: s}}
	} else if err := json.Unmarshal(raw, &parts); err != nil {
		return nil, fmt.Errorf("content: want a string or a list of parts: %w", tidemark.ErrInvalid)
	}
	out := make([]tidemark.Block, 0, len(parts))
	for i, p := range parts {
		b, err := p.block(remote)
		if err != nil {
			return nil, fmt.Errorf("content[%d]: %w", i, err)
		}
		if b.Type != tidemark.TypeText || strings.TrimSpace(b.Text) != "" {
			out = append(out, b)
		}
	}
	return out, nil
}

func (p chatPartForm) block(remote bool) (tidemark.Block, error) {
	switch p.Type {
	case "text", "input_text":
		return tidemark.Text(p.Text), nil
	case "refusal":
		return tidemark.Text(p.Refusal), nil
	case "image_url":
		return p.Image.block(remote)
	case "file":
		if p.File.Data == "" {
			return tidemark.Block{}, fmt.Errorf("a file without file_data: send its bytes as a data URL, since nothing is uploaded here: %w", tidemark.ErrInvalid)
		}
		return attachment{url: p.File.Data, name: p.File.Name}.block()
	}
	return tidemark.Block{}, fmt.Errorf("a part of type %q: want text, image_url or file: %w", clip(p.Type, 40), tidemark.ErrInvalid)
}
