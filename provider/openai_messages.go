package provider

import (
	"fmt"
	"strings"

	tidemark "github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// chatWriter appends messages in the shape of chat completions.
type chatWriter struct {
	buf  []byte
	many bool

	// What Workers AI wants otherwise.
	strict bool              // content is never null
	names  map[string]string // of calls by id; a result tells the name too. nil: it does not
	image  func(url string) (note string)
}

func (w *chatWriter) begin(role string) {
	if w.many {
		w.buf = append(w.buf, ',')
	}
	w.many = true
	w.buf = append(w.buf, `{"role":`...)
	w.buf = json.AppendString(w.buf, role)
}

func (w *chatWriter) text(role, text string) {
	w.begin(role)
	w.buf = append(w.buf, `,"content":`...)
	w.buf = append(json.AppendString(w.buf, text), '}')
}

// chatPart is a text, or the address of an image.
type chatPart struct{ text, image string }

// assistant writes a reply: its text and its calls. One that held only thinking is left out.
func (w *chatWriter) assistant(m tidemark.Message) {
	var texts []string
	var calls []tidemark.Block
	for _, b := range m.Content {
		switch b.Type {
		case tidemark.TypeText:
			texts = append(texts, b.Text)
		case tidemark.TypeToolUse:
			calls = append(calls, b)
		}
	}
	if len(texts) == 0 && len(calls) == 0 {
		return
	}
	w.begin("assistant")
	w.buf = append(w.buf, `,"content":`...)
	if len(texts) == 0 && !w.strict {
		w.buf = append(w.buf, `null`...)
	} else {
		w.buf = json.AppendString(w.buf, strings.Join(texts, "\n\n"))
	}
	for i, c := range calls {
		if i == 0 {
			w.buf = append(w.buf, `,"tool_calls":[`...)
		} else {
			w.buf = append(w.buf, ',')
		}
		if w.names != nil {
			w.names[c.ID] = c.Name
		}
		w.buf = append(w.buf, `{"id":`...)
		w.buf = json.AppendString(w.buf, c.ID)
		w.buf = append(w.buf, `,"type":"function","function":{"name":`...)
		w.buf = json.AppendString(w.buf, c.Name)
		w.buf = append(w.buf, `,"arguments":`...)
		w.buf = json.AppendString(w.buf, string(c.Input))
		w.buf = append(w.buf, `}}`...)
	}
	if len(calls) > 0 {
		w.buf = append(w.buf, ']')
	}
	w.buf = append(w.buf, '}')
}

// user writes tool messages for the results, then one user message for all else.
func (w *chatWriter) user(m tidemark.Message) {
	var rest []chatPart
	for _, b := range m.Content {
		if b.Type == tidemark.TypeToolResult {
			rest = append(rest, w.result(b)...)
			continue
		}
		rest = append(rest, w.part(b))
	}
	w.parts(rest)
}

// result writes a tool message and returns the images that it may not hold.
func (w *chatWriter) result(b tidemark.Block) []chatPart {
	var texts []string
	var images []chatPart
	for _, c := range b.Content {
		p := w.part(c)
		if p.image != "" {
			images = append(images, p)
			continue
		}
		texts = append(texts, p.text)
	}
	if n := len(images); n > 0 {
		texts = append(texts, fmt.Sprintf("[%d image(s) of this result follow in the next user message]", n))
		images = append([]chatPart{{text: fmt.Sprintf("[image(s) of the result of call %s]", b.ToolUseID)}}, images...)
	}
	text := strings.Join(texts, "\n")
	if b.IsError {
		text = "[error] " + text
	}
	if text == "" {
		text = "[empty result]" // several servers refuse empty content
	}
	w.begin("tool")
	if name := w.names[b.ToolUseID]; name != "" {
		w.buf = append(w.buf, `,"name":`...)
		w.buf = json.AppendString(w.buf, name)
	}
	w.buf = append(w.buf, `,"tool_call_id":`...)
	w.buf = json.AppendString(w.buf, b.ToolUseID)
	w.buf = append(w.buf, `,"content":`...)
	w.buf = append(json.AppendString(w.buf, text), '}')
	return images
}

// parts writes a user message: a string when there are no images, since many local servers know
// nothing else.
func (w *chatWriter) parts(parts []chatPart) {
	if len(parts) == 0 {
		return
	}
	images := false
	texts := make([]string, 0, len(parts))
	for _, p := range parts {
		images = images || p.image != ""
		texts = append(texts, p.text)
	}
	if !images {
		w.text("user", strings.Join(texts, "\n\n"))
		return
	}
	w.begin("user")
	w.buf = append(w.buf, `,"content":[`...)
	for i, p := range parts {
		if i > 0 {
			w.buf = append(w.buf, ',')
		}
		if p.image == "" {
			w.buf = append(w.buf, `{"type":"text","text":`...)
			w.buf = append(json.AppendString(w.buf, p.text), '}')
			continue
		}
		w.buf = append(w.buf, `{"type":"image_url","image_url":{"url":`...)
		w.buf = append(json.AppendString(w.buf, p.image), `}}`...)
	}
	w.buf = append(w.buf, `]}`...)
}

// part converts a block; of an image that may not be sent only a note is left.
func (w *chatWriter) part(b tidemark.Block) chatPart {
	p := partOf(b)
	if p.image == "" || w.image == nil {
		return p
	}
	if note := w.image(p.image); note != "" {
		return chatPart{text: note}
	}
	return p
}

// partOf converts a block. What this API has no form for becomes a note, so that the model knows
// that something was there.
func partOf(b tidemark.Block) chatPart {
	switch b.Type {
	case tidemark.TypeText:
		return chatPart{text: b.Text}
	case tidemark.TypeImage:
		if u := sourceURL(b); u != "" {
			return chatPart{image: u}
		}
		return chatPart{text: "[image omitted]"}
	case tidemark.TypeDocument:
		return chatPart{text: documentText(b)}
	}
	return chatPart{text: "[" + b.Type + " omitted]"}
}

type wireSource struct {
	Source struct {
		Type      string `json:"type"`
		MediaType string `json:"media_type"`
		Data      string `json:"data"`
		URL       string `json:"url"`
	} `json:"source"`
	Title string `json:"title"`
}

func sourceURL(b tidemark.Block) string {
	var w wireSource
	if json.Unmarshal(b.AppendJSON(nil), &w) != nil {
		return ""
	}
	switch w.Source.Type {
	case "url":
		return w.Source.URL
	case "base64":
		return "data:" + w.Source.MediaType + ";base64," + w.Source.Data
	}
	return ""
}

func documentText(b tidemark.Block) string {
	var w wireSource
	if json.Unmarshal(b.AppendJSON(nil), &w) != nil {
		return "[document omitted]"
	}
	if w.Source.Type == "text" {
		return strings.TrimSpace("[document " + w.Title + "]\n" + w.Source.Data)
	}
	return "[document omitted: " + strings.TrimSpace(w.Title+" "+or(w.Source.MediaType, w.Source.Type)) + "]"
}
