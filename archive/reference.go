package archive

import (
	"bytes"
	"fmt"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// The reference writes its own dialect (reference: "Archives and media"): tool results are messages
// of role toolResult, calls are blocks of type toolCall, images have data and mimeType or the key
// of a stored file. A bucket of its opens here by turning each into the block it stands for.

// foreignWords occur in lines of the reference's dialect; inside a JSON string their quotes would
// be escaped, so other lines have them only as keys of tool arguments, which does no harm.
var foreignWords = [...][]byte{[]byte(`"toolResult"`), []byte(`"toolCall"`), []byte(`"mimeType"`), []byte(`"thinkingSignature"`)}

// foreign reports lines that may be in the reference's dialect.
func foreign(raw []byte) bool {
	for _, w := range foreignWords {
		if bytes.Contains(raw, w) {
			return true
		}
	}
	return false
}

type refMessage struct {
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content"`
	ToolCallID string          `json:"toolCallId"`
	IsError    bool            `json:"isError"`
}

type refBlock struct {
	Type      string          `json:"type"`
	Thinking  string          `json:"thinking"`
	ThinkSig  string          `json:"thinkingSignature"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
	Data      string          `json:"data"`
	MimeType  string          `json:"mimeType"`
	R2Key     string          `json:"r2Key"`
	Source    json.RawMessage `json:"source"`
}

// decodeReference converts a line; result says that it is a tool result, which belongs into one
// message with those before and after it.
func decodeReference(raw []byte) (m tidemark.Message, result bool, err error) {
	var w refMessage
	if err := json.Unmarshal(raw, &w); err != nil {
		return m, false, err
	}
	result = w.Role == "toolResult"
	if bytes.HasPrefix(w.Content, []byte{'"'}) && !result {
		return m, false, json.Unmarshal(raw, &m)
	}
	blocks, err := refBlocks(w.Content)
	if err != nil {
		return m, false, err
	}
	if result {
		if w.ToolCallID == "" {
			return m, false, fmt.Errorf("role toolResult without \"toolCallId\": %w", tidemark.ErrInvalid)
		}
		b := tidemark.Block{Type: tidemark.TypeToolResult, ToolUseID: w.ToolCallID, Content: blocks, IsError: w.IsError}
		return tidemark.Message{Role: tidemark.User, Content: []tidemark.Block{b}}, true, nil
	}
	if w.Role == "" {
		return m, false, fmt.Errorf("no \"role\": %w", tidemark.ErrInvalid)
	}
	return tidemark.Message{Role: tidemark.Role(w.Role), Content: blocks}, false, nil
}

func refBlocks(content json.RawMessage) ([]tidemark.Block, error) {
	if bytes.HasPrefix(content, []byte{'"'}) {
		var s string
		if err := json.Unmarshal(content, &s); err != nil {
			return nil, err
		}
		return []tidemark.Block{tidemark.Text(s)}, nil
	}
	var raws []json.RawMessage
	if err := json.Unmarshal(content, &raws); err != nil {
		return nil, fmt.Errorf("\"content\": want a string or a list of blocks: %w", tidemark.ErrInvalid)
	}
	blocks := make([]tidemark.Block, len(raws))
	for i, r := range raws {
		b, err := refConvert(r)
		if err != nil {
			return nil, fmt.Errorf("block %d: %w", i, err)
		}
		blocks[i] = b
	}
	return blocks, nil
}

// refConvert converts one block; what needs no conversion keeps its bytes.
func refConvert(raw json.RawMessage) (tidemark.Block, error) {
	var w refBlock
	var b tidemark.Block
	if json.Unmarshal(raw, &w) != nil {
		return b, json.Unmarshal(raw, &b)
	}
	switch {
	case w.Type == "toolCall":
		if w.ID == "" || w.Name == "" {
			return b, fmt.Errorf("toolCall without \"id\" or \"name\": %w", tidemark.ErrInvalid)
		}
		return tidemark.ToolUse(w.ID, w.Name, w.Arguments), nil
	case w.Type == tidemark.TypeThinking && w.ThinkSig != "":
		return tidemark.Block{Type: tidemark.TypeThinking, Text: w.Thinking, Signature: w.ThinkSig}, nil
	case w.Type == tidemark.TypeImage && w.Source == nil && w.Data != "":
		src := map[string]any{"type": "base64", "media_type": w.MimeType, "data": w.Data}
		converted, err := json.Marshal(map[string]any{"type": tidemark.TypeImage, "source": src})
		if err != nil {
			return b, err
		}
		return b, json.Unmarshal(converted, &b)
	case w.Type == tidemark.TypeImage && w.Source == nil:
		// The reference deletes stored media at a reset, so the key may lead nowhere.
		return tidemark.Text("[Image " + w.R2Key + " (" + w.MimeType + ")]"), nil
	}
	return b, json.Unmarshal(raw, &b)
}
