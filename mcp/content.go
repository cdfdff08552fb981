package mcp

import (
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// maxImage is how many bytes an image may have that is passed on: model APIs take no more
// (https://docs.anthropic.com/en/docs/build-with-claude/vision).
const maxImage = 5 << 20

// maxBlocks bounds the parts of a result.
const maxBlocks = 200

// images are the types of images that model APIs take.
var images = [...]string{"image/png", "image/jpeg", "image/gif", "image/webp"}

// part is a content block of MCP
// (https://modelcontextprotocol.io/specification/2025-11-25/server/tools#tool-result).
type part struct {
	Type        string `json:"type"`
	Text        string `json:"text"`
	Data        string `json:"data"`
	MIME        string `json:"mimeType"`
	URI         string `json:"uri"`
	Name        string `json:"name"`
	Description string `json:"description"`
	Resource    *struct {
		URI  string  `json:"uri"`
		MIME string  `json:"mimeType"`
		Text *string `json:"text"`
		Blob string  `json:"blob"`
	} `json:"resource"`

	odd json.RawMessage // all of it, where it cannot be read
}

// Result is the result of tools/call as a block that answers a call: texts and images as they are, of everything
// else in words what it is.
//
// # Errors
//
// ErrUnavailable when it is no such result, ErrForbidden when the server asks for something first.
func Result(id string, raw json.RawMessage) (tidemark.Block, error) {
	var r struct {
		Type       loose[string]   `json:"resultType"`
		Content    parts           `json:"content"`
		Structured json.RawMessage `json:"structuredContent"`
		IsError    loose[bool]     `json:"isError"`
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		return tidemark.Block{}, fmt.Errorf("the result of the tool cannot be read: %w", tidemark.ErrUnavailable)
	}
	if kind := r.Type.is; kind != "" && kind != "complete" {
		return tidemark.Block{}, fmt.Errorf("the tool asks for more first (%.40q), which is not done here: %w", kind, tidemark.ErrForbidden)
	}
	out := tidemark.Block{Type: tidemark.TypeToolResult, ToolUseID: id, IsError: r.IsError.is}
	said := false
	for i, p := range r.Content {
		if i >= maxBlocks {
			out.Content = append(out.Content, tidemark.Text(fmt.Sprintf("[%d more parts are left out]", len(r.Content)-i)))
			break
		}
		b := p.block()
		said = said || b.Type == tidemark.TypeText && p.Type == tidemark.TypeText
		out.Content = append(out.Content, b)
	}
	if s := string(r.Structured); !said && s != "" && s != "null" { // else the text is to say the same
		out.Content = append(out.Content, tidemark.Text(s))
	}
	return out, nil
}

// loose is a value that is zero where it has another form: what a tool found is worth more than what is said about it.
type loose[T any] struct{ is T }

// UnmarshalJSON never fails, for the reason above.
func (l *loose[T]) UnmarshalJSON(data []byte) error {
	var v T
	if json.Unmarshal(data, &v) == nil {
		l.is = v
	}
	return nil
}

// parts is the content of a result: a list of which each part is read by itself, so that one of a kind that nobody knows
// does not take the others with it. A text and a part alone are lists of one.
type parts []part

// UnmarshalJSON exists for the reason above.
func (p *parts) UnmarshalJSON(data []byte) error {
	var list []json.RawMessage
	if json.Unmarshal(data, &list) != nil {
		list = []json.RawMessage{data}
	}
	*p = make(parts, 0, len(list))
	for _, raw := range list {
		if string(raw) != "null" {
			*p = append(*p, partOf(raw))
		}
	}
	return nil
}

func partOf(raw json.RawMessage) part {
	var p part
	if json.Unmarshal(raw, &p) == nil && p.known() {
		return p
	}
	if text := ""; json.Unmarshal(raw, &text) == nil {
		return part{Type: "text", Text: text}
	}
	var odd struct {
		Type loose[string]          `json:"type"`
		Text loose[json.RawMessage] `json:"text"`
	}
	_ = json.Unmarshal(raw, &odd) // what it does not tell is empty
	if odd.Type.is == "text" && len(odd.Text.is) > 0 {
		return part{Type: "text", Text: string(odd.Text.is)}
	}
	return part{Type: odd.Type.is, odd: raw}
}

// known reports a part of a type that the protocol has.
func (p part) known() bool {
	switch p.Type {
	case "text", "image", "audio", "resource_link":
		return true
	}
	return p.Type == "resource" && p.Resource != nil
}

func (p part) block() tidemark.Block {
	switch {
	case p.Type == "text":
		return tidemark.Text(p.Text)
	case p.Type == "image":
		return image(p.MIME, p.Data)
	case p.Type == "audio":
		return tidemark.Text(fmt.Sprintf("[audio, %s, %d bytes: not shown]", short(p.MIME), decodedLen(p.Data)))
	case p.Type == "resource_link":
		return tidemark.Text(strings.TrimSpace(fmt.Sprintf("[link to %s %s %s]", short(p.Name), short(p.URI), short(p.Description))))
	case p.Type == "resource" && p.Resource != nil && p.Resource.Text != nil:
		return tidemark.Text("[" + short(p.Resource.URI) + "]\n" + *p.Resource.Text)
	case p.Type == "resource" && p.Resource != nil && strings.HasPrefix(p.Resource.MIME, "image/"):
		return image(p.Resource.MIME, p.Resource.Blob)
	case p.Type == "resource" && p.Resource != nil:
		return tidemark.Text(fmt.Sprintf("[file %s, %s, %d bytes: not shown]", short(p.Resource.URI), short(p.Resource.MIME), decodedLen(p.Resource.Blob)))
	}
	return tidemark.Text(strings.TrimSpace(fmt.Sprintf("[a part of the type %s, which is not known here] %s", short(p.Type), short(string(p.odd)))))
}

// image is an image block, or a note where model APIs would refuse it.
func image(mime, data string) tidemark.Block {
	known := false
	for _, m := range images {
		known = known || m == mime
	}
	raw, err := base64.StdEncoding.DecodeString(data)
	if !known || err != nil || len(raw) == 0 || len(raw) > maxImage {
		return tidemark.Text(fmt.Sprintf("[image, %s, %d bytes: not shown; wanted are png, jpeg, gif and webp up to %d bytes]", short(mime), decodedLen(data), maxImage))
	}
	var b tidemark.Block
	if err := json.Unmarshal([]byte(`{"type":"image","source":{"type":"base64","media_type":"`+mime+`","data":"`+base64.StdEncoding.EncodeToString(raw)+`"}}`), &b); err != nil {
		return tidemark.Text("[image: not shown]")
	}
	return b
}

func decodedLen(data string) int {
	return base64.RawStdEncoding.DecodedLen(len(strings.TrimRight(data, "=")))
}

// short bounds a text that is quoted within a note, on one line.
func short(s string) string {
	const most = 300
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}
