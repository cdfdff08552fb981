package provider

import (
	"fmt"
	"strings"
	"unicode/utf8"

	tidemark "github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/internal/jsonscan"
)

// chatWriter appends messages in the shape of chat completions.
type chatWriter struct {
	buf     []byte
	many    bool
	message int // that is written
	places  chatPlaces

	bounded bool   // a string has a bound: it is OpenAI's own API
	lead    string // the system prompt, where it begins the first message of a user

	alternate bool // words of a user behind results of tools stand in the last of these

	// What Workers AI wants otherwise.
	strict bool              // content is never null
	names  map[string]string // of calls by id; a result tells the name too. nil: it does not
	image  func(url string) (note string)
}

// chatPlaces are the messages that were written: where the parts of each and its calls stood in the request.
type chatPlaces []chatPlace

type chatPlace struct{ parts, calls []spot }

// find returns what finds a place in the request.
func (p chatPlaces) find(s *sending) func(refusedPlace) spot {
	return func(at refusedPlace) spot {
		if at.n >= len(p) {
			return nowhere
		}
		own := p[at.n]
		from := own.parts
		k, _ := at.number("content")
		if call, _ := at.number("tool_calls"); call >= 0 {
			from, k = own.calls, call
		}
		switch {
		case k < 0 && len(from)+len(own.calls) == 1:
			from, k = append(from, own.calls...), 0
		case k < 0 && len(from) > 0: // the message as a whole
			if m := from[len(from)-1]; m.message < len(s.from) && m.block < len(s.from[m.message]) {
				return spot{s.from[m.message][m.block].message, -1, -1}
			}
			return nowhere
		case k < 0 || k >= len(from):
			return nowhere
		}
		inner := from[k].inner
		if from[k] == nowhere || from[k].message >= len(s.from) || from[k].block >= len(s.from[from[k].message]) {
			return nowhere
		}
		out := s.from[from[k].message][from[k].block]
		if inner >= 0 && out.message >= 0 {
			out.inner = s.inner(out, inner)
		}
		return out
	}
}

// stood notes where a part of the message that was begun last stood, and where a call.
func (w *chatWriter) stood(part spot) {
	last := &w.places[len(w.places)-1]
	last.parts = append(last.parts, part)
}

func (w *chatWriter) begin(role string) {
	w.places = append(w.places, chatPlace{})
	if w.many {
		w.buf = append(w.buf, ',')
	}
	w.many = true
	w.buf = append(w.buf, `{"role":`...)
	w.buf = json.AppendString(w.buf, role)
}

func (w *chatWriter) text(role, text string) {
	w.begin(role)
	w.content(text)
	w.buf = append(w.buf, '}')
}

// maxString is how many characters OpenAI takes in one string ("Invalid 'messages[1].content': string too long. Expected a
// string with maximum length 1048576"), counted in bytes here. Its larger windows hold more.
const maxString = 1 << 20

// long reports a text that goes out in pieces: only where one string may not hold it, since many local servers know nothing
// but strings.
func (w *chatWriter) long(text string) bool { return w.bounded && len(text) > maxString }

// content writes what a message says and returns in how many parts, one for a string.
func (w *chatWriter) content(text string) (parts int) {
	w.buf = append(w.buf, `,"content":`...)
	if !w.long(text) {
		w.buf = json.AppendString(w.buf, text)
		return 1
	}
	w.buf = append(w.buf, '[')
	parts = w.pieces(text)
	w.buf = append(w.buf, ']')
	return parts
}

// pieces writes a text as parts of content, one where it is not too long for that.
func (w *chatWriter) pieces(text string) (parts int) {
	for between := ""; text != "" || between == ""; between = "," {
		parts++
		n := len(text)
		if w.long(text) {
			for n = maxString; !utf8.RuneStart(text[n]); {
				n--
			}
		}
		w.buf = append(append(w.buf, between...), `{"type":"text","text":`...)
		w.buf = append(json.AppendString(w.buf, text[:n]), '}')
		text = text[n:]
	}
	return parts
}

// chatPart is a text, or the address of an image with what else the client said of it.
type chatPart struct {
	text, image string
	more        []byte
	at          spot
}

// assistant writes a reply: its text and its calls. One that held only thinking is left out.
func (w *chatWriter) assistant(m tidemark.Message) {
	var texts []string
	var calls []tidemark.Block
	var place chatPlace
	for k, b := range m.Content {
		switch b.Type {
		case tidemark.TypeText:
			texts, place.parts = append(texts, b.Text), append(place.parts, spot{w.message, k, -1})
		case tidemark.TypeToolUse:
			calls, place.calls = append(calls, b), append(place.calls, spot{w.message, k, -1})
		}
	}
	if len(texts) == 0 && len(calls) == 0 {
		return
	}
	w.begin("assistant")
	w.places[len(w.places)-1] = place
	if len(texts) == 0 && !w.strict {
		w.buf = append(w.buf, `,"content":null`...)
	} else {
		w.content(strings.Join(texts, "\n\n"))
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
	if w.lead != "" {
		rest, w.lead = []chatPart{{text: w.lead, at: nowhere}}, ""
	}
	for k, b := range m.Content {
		at := spot{w.message, k, -1}
		if b.Type == tidemark.TypeToolResult {
			behind := ""
			if w.alternate {
				behind = wordsBehind(m.Content[k+1:])
			}
			rest = append(rest, w.result(b, at, behind)...)
			if behind != "" {
				break
			}
			continue
		}
		rest = append(rest, w.part(b, at))
	}
	w.parts(rest)
}

// wordsBehind is what a user says behind the last result of a tool, "" where there is more than words.
func wordsBehind(blocks []tidemark.Block) string {
	var texts []string
	for _, b := range blocks {
		if b.Type != tidemark.TypeText {
			return ""
		}
		texts = append(texts, b.Text)
	}
	return strings.Join(texts, "\n\n")
}

// result writes a tool message, with what a user says behind it where that may not be a message of its own, and returns the
// images that it may not hold.
func (w *chatWriter) result(b tidemark.Block, at spot, behind string) []chatPart {
	var texts []string
	var images []chatPart
	for k, c := range b.Content {
		p := w.part(c, spot{at.message, at.block, k})
		if p.image != "" {
			images = append(images, p)
			continue
		}
		texts = append(texts, p.text)
	}
	if n := len(images); n > 0 {
		texts = append(texts, fmt.Sprintf("[%d image(s) of this result follow in the next user message]", n))
		images = append([]chatPart{{text: fmt.Sprintf("[image(s) of the result of call %s]", b.ToolUseID), at: at}}, images...)
	}
	text := strings.Join(texts, "\n")
	if b.IsError {
		text = "[error] " + text
	}
	if text == "" {
		text = "[empty result]" // several servers refuse empty content
	}
	if behind != "" {
		text += "\n\n" + behind
	}
	w.begin("tool")
	if name := w.names[b.ToolUseID]; name != "" {
		w.buf = append(w.buf, `,"name":`...)
		w.buf = json.AppendString(w.buf, name)
	}
	w.buf = append(w.buf, `,"tool_call_id":`...)
	w.buf = json.AppendString(w.buf, b.ToolUseID)
	for range w.content(text) {
		w.stood(at)
	}
	w.buf = append(w.buf, '}')
	return images
}

// parts writes a user message: a string when there are no images, and it is not too long for one.
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
	if text := strings.Join(texts, "\n\n"); !images && !w.long(text) {
		w.text("user", text)
		for _, p := range parts {
			w.stood(p.at)
		}
		return
	}
	w.begin("user")
	w.buf = append(w.buf, `,"content":[`...)
	for i, p := range parts {
		if i > 0 {
			w.buf = append(w.buf, ',')
		}
		if p.image == "" {
			for range w.pieces(p.text) {
				w.stood(p.at)
			}
			continue
		}
		w.stood(p.at)
		w.buf = append(w.buf, `{"type":"image_url","image_url":{"url":`...)
		w.buf = append(json.AppendString(w.buf, p.image), p.more...)
		w.buf = append(w.buf, `}}`...)
	}
	w.buf = append(w.buf, `]}`...)
}

// part converts a block; of an image that may not be sent only a note is left.
func (w *chatWriter) part(b tidemark.Block, at spot) chatPart {
	p := partOf(b)
	p.at = at
	if p.image == "" || w.image == nil {
		return p
	}
	if note := w.image(p.image); note != "" {
		return chatPart{text: note, at: at}
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
			return chatPart{image: u, more: pictureMore(b)}
		}
		return chatPart{text: "[image omitted]"}
	case tidemark.TypeDocument:
		return chatPart{text: documentText(b)}
	}
	return chatPart{text: "[" + b.Type + " omitted]"}
}

// pictureField is the member of a block of a picture with what a client of chat completions said of it beside its
// address, such as detail. Other APIs do not know it.
const pictureField = "image_url"

// pictureMore are those members, each with a comma before it.
func pictureMore(b tidemark.Block) (out []byte) {
	more := jsonscan.Find(b.Raw(), pictureField)
	if len(more) == 0 || more[0] != '{' {
		return nil
	}
	_ = jsonscan.Members(more, func(key, value []byte) { // it is valid
		if string(key) != "url" {
			out = append(json.AppendString(append(out, ','), string(key)), ':')
			out = append(out, value...)
		}
	})
	return out
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
	if text, ok := b.DocumentText(); ok {
		return text
	}
	var w wireSource
	if json.Unmarshal(b.AppendJSON(nil), &w) != nil {
		return "[document omitted]"
	}
	return "[document omitted: " + strings.TrimSpace(w.Title+" "+or(w.Source.MediaType, w.Source.Type)) + "]"
}
