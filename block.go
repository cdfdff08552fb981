package tidemark

import (
	"fmt"
	"strings"

	"github.com/tidemark-ai/tidemark/internal/json"
)

// Block types that strategies read; every other type passes through untouched.
const (
	TypeText             = "text"
	TypeThinking         = "thinking"
	TypeRedactedThinking = "redacted_thinking"
	TypeToolUse          = "tool_use"
	TypeToolResult       = "tool_result"
	TypeServerToolUse    = "server_tool_use" // of a tool that the API runs itself
	TypeImage            = "image"
	TypeDocument         = "document"
)

// Block is one content block of the Messages API (https://docs.anthropic.com/en/api/messages). It
// has the fields that strategies read and keeps its original JSON, so unknown types and fields,
// number forms and key order pass through unchanged. A decoded block is read-only: make another
// one to change it. The zero value is not a valid block.
type Block struct {
	Type      string
	Text      string          // text; the words of a thinking block
	ID        string          // tool_use: the call's id
	Name      string          // tool_use: the tool
	Input     json.RawMessage // tool_use: its arguments as sent
	ToolUseID string          // tool_result: the call it answers
	Content   []Block         // tool_result: its blocks; a string becomes one text block
	IsError   bool            // tool_result
	Signature string          // thinking: proves that it is untouched
	Source    *Source         // image and document

	raw  json.RawMessage // as it came; nil for a block made here
	str  json.RawMessage // the JSON string that this text was, when it stood for a whole content
	bare bool            // Content was a string on the wire
}

// Source says where the bytes of an image or document are.
type Source struct {
	Type      string // base64, url, file, text
	MediaType string
	URL       string
	Bytes     int // length of the inline data as written, 0 when there is none
}

// Text returns a text block.
func Text(s string) Block { return Block{Type: TypeText, Text: s} }

// ToolUse returns a call of a tool; an empty input is the empty object, one over several lines is
// compacted.
func ToolUse(id, name string, input json.RawMessage) Block {
	if len(input) == 0 {
		input = json.RawMessage("{}")
	}
	if line, err := oneLine(input); err == nil { // what is no JSON is not ours to mend
		input = line
	}
	return Block{Type: TypeToolUse, ID: id, Name: name, Input: input}
}

// ToolResult returns the answer to a call, as text.
func ToolResult(id, text string, isError bool) Block {
	return Block{Type: TypeToolResult, ToolUseID: id, Content: []Block{Text(text)}, IsError: isError, bare: true}
}

// DocumentText is what a document of plain text says, its title before it; ok is false for any other block.
func (b Block) DocumentText() (text string, ok bool) {
	if b.Source == nil || b.Source.Type != "text" {
		return "", false
	}
	text = b.Document()
	return text, text != ""
}

// Document is the title of a document in brackets and, where it is of plain text, what it says; empty for any other block.
func (b Block) Document() string {
	if b.Type != TypeDocument {
		return ""
	}
	var w struct {
		Source struct {
			Data json.RawMessage `json:"data"`
		} `json:"source"`
		Title string `json:"title"`
	}
	if json.Unmarshal(b.AppendJSON(nil), &w) != nil {
		return ""
	}
	data := ""
	if b.Source != nil && b.Source.Type == "text" && json.Unmarshal(w.Source.Data, &data) != nil {
		return ""
	}
	return strings.TrimSpace("[" + strings.TrimSpace("document "+w.Title) + "]\n" + data)
}

// maxBlockDepth bounds tool results within tool results; what is deeper stays raw.
const maxBlockDepth = 4

type wireBlock struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Thinking  string          `json:"thinking"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	Content   json.RawMessage `json:"content"`
	IsError   bool            `json:"is_error"`
	Signature string          `json:"signature"`
	Source    *wireSource     `json:"source"`
}

type wireSource struct {
	Type      string          `json:"type"`
	MediaType string          `json:"media_type"`
	URL       string          `json:"url"`
	Data      json.RawMessage `json:"data"`
}

// UnmarshalJSON decodes one block and keeps its bytes.
func (b *Block) UnmarshalJSON(data []byte) error {
	out, err := decodeBlock(data, 0)
	if err != nil {
		return err
	}
	*b = out
	return nil
}

func decodeBlock(data []byte, depth int) (Block, error) {
	raw, err := oneLine(data)
	if err != nil {
		return Block{}, fmt.Errorf("decode block: %w: %w", err, ErrInvalid)
	}
	if len(raw) == 0 || raw[0] != '{' {
		return Block{}, fmt.Errorf("decode block: want an object: %w", ErrInvalid)
	}
	var w wireBlock
	if err := json.Unmarshal(raw, &w); err != nil {
		// A block whose known fields have foreign types still passes through by its type.
		var t struct {
			Type string `json:"type"`
		}
		if e := json.Unmarshal(raw, &t); e != nil || core(t.Type) {
			return Block{}, fmt.Errorf("decode block: %w: %w", err, ErrInvalid)
		}
		return Block{Type: t.Type, raw: raw}, nil
	}
	b := Block{Type: w.Type, Text: w.Text, ID: w.ID, Name: w.Name, Input: w.Input, ToolUseID: w.ToolUseID,
		IsError: w.IsError, Signature: w.Signature, raw: raw}
	if w.Type == TypeThinking {
		b.Text = w.Thinking
	}
	if w.Source != nil {
		b.Source = &Source{Type: w.Source.Type, MediaType: w.Source.MediaType, URL: w.Source.URL, Bytes: max(0, len(w.Source.Data)-2)}
	}
	if w.Type == TypeToolResult && depth < maxBlockDepth {
		b.Content, b.bare, err = decodeContent(w.Content, depth+1)
		if err != nil {
			return Block{}, err
		}
	}
	return b, nil
}

// core reports the types whose fields we must be able to read.
func core(t string) bool {
	return t == TypeText || t == TypeToolUse || t == TypeToolResult
}

// decodeContent decodes a string, a list of blocks, or one block that stands without a list; missing and null are no blocks.
func decodeContent(data json.RawMessage, depth int) (blocks []Block, bare bool, err error) {
	if len(data) == 0 || string(data) == "null" {
		return nil, false, nil
	}
	if data[0] == '"' {
		var s string
		if err := json.Unmarshal(data, &s); err != nil {
			return nil, false, fmt.Errorf("decode content: %w: %w", err, ErrInvalid)
		}
		return []Block{{Type: TypeText, Text: s, str: copyUTF8(data)}}, true, nil // a lone surrogate would not survive decoding
	}
	if data[0] == '{' {
		b, err := decodeBlock(data, depth)
		if err == nil && b.Type != "" {
			return []Block{b}, false, nil
		}
	}
	var raws []json.RawMessage
	if err := json.Unmarshal(data, &raws); err != nil {
		return nil, false, fmt.Errorf("decode content: want a string or a list of blocks: %w", ErrInvalid)
	}
	blocks = make([]Block, len(raws))
	for i, r := range raws {
		if blocks[i], err = decodeBlock(r, depth); err != nil {
			return nil, false, fmt.Errorf("block %d: %w", i, err)
		}
	}
	return blocks, false, nil
}

// MarshalJSON gives the block as it came, or as the API wants a new one.
func (b Block) MarshalJSON() ([]byte, error) { return b.AppendJSON(nil), nil }

// Raw is the JSON that the block came as, nil for a block made here. It must not be changed.
func (b Block) Raw() json.RawMessage { return b.raw }

// AppendJSON appends the block's JSON to dst, without line breaks.
func (b Block) AppendJSON(dst []byte) []byte {
	if b.raw != nil {
		return append(dst, b.raw...)
	}
	dst = append(dst, `{"type":`...)
	dst = json.AppendString(dst, b.Type)
	switch b.Type {
	case TypeToolUse:
		dst = append(dst, `,"id":`...)
		dst = json.AppendString(dst, b.ID)
		dst = append(dst, `,"name":`...)
		dst = json.AppendString(dst, b.Name)
		dst = append(dst, `,"input":`...)
		if len(b.Input) == 0 {
			dst = append(dst, "{}"...)
		}
		dst = append(dst, b.Input...)
	case TypeToolResult:
		dst = append(dst, `,"tool_use_id":`...)
		dst = json.AppendString(dst, b.ToolUseID)
		dst = append(dst, `,"content":`...)
		dst = appendContent(dst, b.Content, b.bare)
		if b.IsError {
			dst = append(dst, `,"is_error":true`...)
		}
	case TypeThinking:
		dst = append(dst, `,"thinking":`...)
		dst = json.AppendString(dst, b.Text)
		dst = append(dst, `,"signature":`...)
		dst = json.AppendString(dst, b.Signature)
	default:
		dst = append(dst, `,"text":`...)
		if b.str != nil {
			return append(append(dst, b.str...), '}')
		}
		dst = json.AppendString(dst, b.Text)
	}
	return append(dst, '}')
}

func appendContent(dst []byte, blocks []Block, bare bool) []byte {
	if bare && len(blocks) == 1 && blocks[0].Type == TypeText && blocks[0].raw == nil {
		if blocks[0].str != nil {
			return append(dst, blocks[0].str...)
		}
		return json.AppendString(dst, blocks[0].Text)
	}
	dst = append(dst, '[')
	for i, b := range blocks {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = b.AppendJSON(dst)
	}
	return append(dst, ']')
}
