package wasi

import (
	"bytes"
	"encoding/base64"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// pictures are the media types of images that models take.
var pictures = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

// output reads what a module wrote: blocks when it is exactly an object with content and perhaps is_error, else
// text as it is. Without any text or image there are no blocks.
func output(out []byte) (blocks []tidemark.Block, isError bool) {
	if blocks, isError, ok := asBlocks(out); ok {
		return blocks, isError
	}
	text := strings.ToValidUTF8(string(out), "\uFFFD")
	if strings.TrimSpace(text) == "" {
		return nil, false
	}
	return []tidemark.Block{tidemark.Text(text)}, false
}

// asBlocks takes the shape of a tool result of the Messages API (https://docs.anthropic.com/en/docs/build-with-claude/tool-use),
// text and images only. An image comes with its bytes: one by URL would be a way out of the sandbox, because the
// model's API would fetch it.
func asBlocks(out []byte) (blocks []tidemark.Block, isError, ok bool) {
	out = bytes.TrimSpace(out)
	if len(out) == 0 || out[0] != '{' {
		return nil, false, false
	}
	in, ok := object(out, "content", "is_error")
	if !ok || in["content"] == nil {
		return nil, false, false
	}
	if raw := in["is_error"]; raw != nil && json.Unmarshal(raw, &isError) != nil {
		return nil, false, false
	}
	var list []json.RawMessage
	if json.Unmarshal(in["content"], &list) != nil || list == nil {
		return nil, false, false
	}
	for _, raw := range list {
		b, ok := asBlock(raw)
		if !ok {
			return nil, false, false
		}
		if b.Type == tidemark.TypeText && strings.TrimSpace(b.Text) == "" {
			continue // no API takes one
		}
		blocks = append(blocks, b)
	}
	return blocks, isError, true
}

func asBlock(raw json.RawMessage) (tidemark.Block, bool) {
	var typ struct {
		Type string `json:"type"`
	}
	if json.Unmarshal(raw, &typ) != nil {
		return tidemark.Block{}, false
	}
	switch typ.Type {
	case tidemark.TypeText:
		in, ok := object(raw, "type", "text")
		var text *string
		if !ok || json.Unmarshal(in["text"], &text) != nil || text == nil {
			return tidemark.Block{}, false
		}
		return tidemark.Text(strings.ToValidUTF8(*text, "\uFFFD")), true
	case tidemark.TypeImage:
		in, ok := object(raw, "type", "source")
		if !ok || !inline(in["source"]) {
			return tidemark.Block{}, false
		}
		var b tidemark.Block
		return b, json.Unmarshal(raw, &b) == nil
	}
	return tidemark.Block{}, false
}

// inline reports an image whose bytes are there, in a form that models take.
func inline(raw json.RawMessage) bool {
	in, ok := object(raw, "type", "media_type", "data")
	if !ok {
		return false
	}
	var typ, media, data string
	if json.Unmarshal(in["type"], &typ) != nil || json.Unmarshal(in["media_type"], &media) != nil || json.Unmarshal(in["data"], &data) != nil {
		return false
	}
	known := false
	for _, p := range pictures {
		known = known || p == media
	}
	n, err := base64.StdEncoding.DecodeString(data)
	return typ == "base64" && known && err == nil && len(n) > 0
}

// object decodes one that has no members but these.
func object(raw []byte, members ...string) (map[string]json.RawMessage, bool) {
	var in map[string]json.RawMessage
	if len(raw) == 0 || json.Unmarshal(raw, &in) != nil || in == nil {
		return nil, false
	}
	n := 0
	for _, m := range members {
		if in[m] != nil {
			n++
		}
	}
	return in, n == len(in)
}
