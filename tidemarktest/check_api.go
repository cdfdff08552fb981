package tidemarktest

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"

	tidemark "github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/internal/picture"
)

// What the Messages API takes of pictures (https://docs.anthropic.com/en/docs/build-with-claude/vision#evaluate-image-size):
// 5 MB each, which it counts in base64; 8000 pixels a side, of more than 20 in a request 2000; and 100 in all.
const (
	maxPictureBytes  = 5 << 20
	maxPictureSide   = 8000
	manyPictures     = 20
	manyPicturesSide = 2000
	maxPictures      = 100
)

// maxChatID is how long the id of a call may be in chat completions: "Invalid 'messages[1].tool_calls[0].id': string too
// long. Expected a string with maximum length 40".
const maxChatID = 40

// maxChatTools is how many tools OpenAI takes in a request: "Invalid 'tools': array too long. Expected an array with
// maximum length 128".
const maxChatTools = 128

// CheckAnthropic is tidemark.Check and what else the Messages API demands of a request, in its own words where it has them: it
// refuses all of a request for one such place. What goes to it is held against this in tests, and by the fakes that
// stand in for it; bringing it about is the provider's.
func CheckAnthropic(req tidemark.Request) error {
	if err := tidemark.Check(req.Messages); err != nil {
		return err
	}
	pictures := 0
	for _, m := range req.Messages {
		pictures += m.Images()
	}
	if pictures > maxPictures {
		return &tidemark.ShapeError{At: "messages", Rule: fmt.Sprintf("Too many images and documents: %d > %d", pictures, maxPictures)}
	}
	for i, m := range req.Messages {
		for k, b := range m.Content {
			at := fmt.Sprintf("messages.%d.content.%d", i, k)
			if rule := anthropicBlock(b, pictures > manyPictures, k == len(m.Content)-1); rule != "" {
				return &tidemark.ShapeError{Index: i, Rule: rule, At: at}
			}
			for n, c := range b.Content {
				if rule := anthropicInner(b, c, pictures > manyPictures); rule != "" {
					return &tidemark.ShapeError{Index: i, Rule: rule, At: fmt.Sprintf("%s.tool_result.content.%d", at, n)}
				}
			}
		}
		if n := len(m.Content); i == len(req.Messages)-1 && m.Role == tidemark.Assistant && m.Content[n-1].Type == tidemark.TypeText && strings.TrimRight(m.Content[n-1].Text, " \t\r\n") != m.Content[n-1].Text {
			return &tidemark.ShapeError{Index: i, At: "messages", Rule: "final assistant content cannot end with trailing whitespace"}
		}
	}
	return checkTools(req.Tools, func(t tidemark.Tool) string {
		for _, word := range [...]string{"oneOf", "allOf", "anyOf"} { // https://docs.anthropic.com/en/docs/agents-and-tools/tool-use/implement-tool-use
			if topMember(t.InputSchema, word) {
				return "input_schema does not support oneOf, allOf, or anyOf at the top level"
			}
		}
		var schema struct {
			Properties map[string]json.RawMessage `json:"properties"`
		}
		if json.Unmarshal(t.InputSchema, &schema) != nil {
			return "input_schema.properties: Input should be a valid dictionary"
		}
		for key := range schema.Properties {
			if !plainName(key, 64, ".") {
				return "input_schema.properties: Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'"
			}
		}
		return ""
	})
}

// anthropicBlock says what a block breaks, empty for nothing; many when there are many pictures.
func anthropicBlock(b tidemark.Block, many, last bool) string {
	switch b.Type {
	case tidemark.TypeThinking: // https://docs.anthropic.com/en/docs/build-with-claude/extended-thinking#preserving-thinking-blocks
		switch {
		case last:
			return "The final block in an assistant message cannot be `thinking`"
		case b.Signature == "":
			return "thinking.signature: Field required"
		}
	case tidemark.TypeRedactedThinking:
		if last {
			return "The final block in an assistant message cannot be `redacted_thinking`"
		}
	case tidemark.TypeToolUse:
		switch {
		case !plainName(b.ID, len(b.ID), ""):
			return "tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"
		case !plainName(b.Name, 128, ""):
			return "tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'"
		case len(b.Input) == 0 || b.Input[0] != '{':
			return "tool_use.input: Input should be a valid dictionary"
		}
	case tidemark.TypeToolResult:
		if !plainName(b.ToolUseID, len(b.ToolUseID), "") {
			return "tool_result.tool_use_id: String should match pattern '^[a-zA-Z0-9_-]+$'"
		}
	case tidemark.TypeImage, tidemark.TypeDocument:
		return anthropicMedium(b, many)
	}
	return ""
}

// anthropicInner says what a block within a result breaks.
func anthropicInner(b, c tidemark.Block, many bool) string {
	switch {
	case c.Type == tidemark.TypeText && strings.TrimSpace(c.Text) == "":
		return "text content blocks must contain non-whitespace text"
	case b.IsError && c.Type != tidemark.TypeText:
		return "all content must be type `text` if `is_error` is true"
	case c.Type == tidemark.TypeImage || c.Type == tidemark.TypeDocument:
		return anthropicMedium(c, many)
	}
	return ""
}

// anthropicMedium says what a picture or a document breaks.
func anthropicMedium(b tidemark.Block, many bool) string {
	var w struct {
		Source struct {
			Type  string `json:"type"`
			Media string `json:"media_type"`
			Data  string `json:"data"`
			URL   string `json:"url"`
		} `json:"source"`
	}
	if json.Unmarshal(b.AppendJSON(nil), &w) != nil {
		return b.Type + ".source: Field required"
	}
	src := w.Source
	switch src.Type {
	case "base64":
	case "url":
		if !strings.HasPrefix(src.URL, "http://") && !strings.HasPrefix(src.URL, "https://") {
			return b.Type + ".source.url.url: Only HTTP(S) URLs are supported"
		}
		return ""
	case "file", "text", "content":
		return ""
	default:
		return b.Type + ".source: Input tag '" + src.Type + "' does not match any of the expected tags"
	}
	data, err := base64.StdEncoding.DecodeString(src.Data)
	if err != nil || len(data) == 0 {
		return b.Type + ".source.base64: invalid base64 data"
	}
	if b.Type == tidemark.TypeDocument {
		if !bytes.HasPrefix(data, []byte("%PDF")) {
			return "document.source.base64.data: The PDF specified was not valid."
		}
		return ""
	}
	if is := http.DetectContentType(data); is != src.Media {
		return fmt.Sprintf("image.source.base64: The image was specified using the %s media type, but the image appears to be a %s image", src.Media, is)
	}
	w1, h1 := picture.Size(data)
	switch side := max(w1, h1); {
	case len(src.Data) > maxPictureBytes:
		return fmt.Sprintf("image.source.base64: image exceeds 5 MB maximum: %d bytes > %d bytes", len(src.Data), maxPictureBytes)
	case side > maxPictureSide:
		return fmt.Sprintf("image.source.base64.data: At least one of the image dimensions exceed max allowed size: %d pixels", maxPictureSide)
	case many && side > manyPicturesSide:
		return fmt.Sprintf("image.source.base64.data: At least one of the image dimensions exceed max allowed size for many-image requests: %d pixels", manyPicturesSide)
	}
	return ""
}

// CheckChat is tidemark.CheckCalls and what else chat completions demand of a request.
func CheckChat(req tidemark.Request) error {
	if err := tidemark.CheckCalls(req.Messages); err != nil {
		return err
	}
	for i, m := range req.Messages {
		for k, b := range m.Content {
			if id := b.ID + b.ToolUseID; len(id) > maxChatID {
				return &tidemark.ShapeError{Index: i, At: fmt.Sprintf("messages[%d].tool_calls[%d].id", i, k), Rule: fmt.Sprintf("string too long. Expected a string with maximum length %d, but got %d", maxChatID, len(id))}
			}
		}
	}
	if n := len(req.Tools); n > maxChatTools {
		return &tidemark.ShapeError{At: "tools", Rule: fmt.Sprintf("array too long. Expected an array with maximum length %d, but got %d", maxChatTools, n)}
	}
	return checkTools(req.Tools, func(t tidemark.Tool) string {
		// https://platform.openai.com/docs/guides/structured-outputs#supported-schemas
		for _, word := range [...]string{"oneOf", "anyOf", "allOf", "enum", "not"} {
			if topMember(t.InputSchema, word) {
				return "schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level"
			}
		}
		if !topMember(t.InputSchema, "properties") {
			return "object schema missing properties"
		}
		return ""
	})
}

// checkTools holds definitions against what both APIs demand: a name that is plain
// (https://docs.anthropic.com/en/docs/agents-and-tools/tool-use/implement-tool-use#specifying-client-tools) and a schema of
// an object. A tool without a schema has none to break.
func checkTools(tools []tidemark.Tool, more func(t tidemark.Tool) string) error {
	for i, t := range tools {
		at := fmt.Sprintf("tools.%d.custom", i)
		if !plainName(t.Name, 64, "") {
			return &tidemark.ShapeError{At: at + ".name", Rule: "String should match pattern '^[a-zA-Z0-9_-]{1,64}$'"}
		}
		if len(t.InputSchema) == 0 {
			continue
		}
		var schema struct {
			Type json.RawMessage `json:"type"`
		}
		if json.Unmarshal(t.InputSchema, &schema) != nil {
			return &tidemark.ShapeError{At: at + ".input_schema", Rule: "Input should be a valid dictionary"}
		}
		if len(schema.Type) == 0 {
			return &tidemark.ShapeError{At: at + ".input_schema.type", Rule: "Field required"}
		}
		if string(schema.Type) != `"object"` {
			return &tidemark.ShapeError{At: at + ".input_schema.type", Rule: "Input should be 'object'"}
		}
		if rule := more(t); rule != "" {
			return &tidemark.ShapeError{At: at, Rule: rule}
		}
	}
	return nil
}

// topMember reports whether an object has a member.
func topMember(obj json.RawMessage, name string) bool {
	var members map[string]json.RawMessage
	return json.Unmarshal(obj, &members) == nil && members[name] != nil
}

// plainName reports letters, digits, _, - and some other signs, at least one and at most so many.
func plainName(s string, most int, others string) bool {
	return s != "" && len(s) <= most && strings.IndexFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-' && !strings.ContainsRune(others, r)
	}) < 0
}
