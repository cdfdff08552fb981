package body

import (
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/internal/jsonscan"
)

// imageURL is the address of a part that is an image, "" for another.
func imageURL(part []byte) string {
	if typeOf(part) != "image_url" {
		return ""
	}
	return string(jsonscan.Unquoted(find(find(part, "image_url"), "url")))
}

// dataURL takes an address apart that holds the bytes themselves.
func dataURL(url string) (media, data string, ok bool) {
	rest, ok := strings.CutPrefix(url, "data:")
	if !ok {
		return "", "", false
	}
	return strings.Cut(rest, ";base64,")
}

// chatBlock is a block of ours, decoded; its JSON was checked before.
func chatBlock(raw []byte) tidemark.Block {
	var b tidemark.Block
	if json.Unmarshal(raw, &b) != nil {
		return tidemark.Text("[a block that cannot be read]")
	}
	return b
}

// blockText is what chat completions show of a block that has no other form there.
func blockText(b tidemark.Block) string {
	if b.Type == tidemark.TypeText {
		return b.Text
	}
	return "[" + b.Type + " omitted]"
}

// resultText is the content of a tool message.
func resultText(b tidemark.Block) string {
	texts := make([]string, len(b.Content))
	for n, c := range b.Content {
		texts[n] = blockText(c)
	}
	s := strings.Join(texts, "\n")
	if b.IsError {
		s = "[error] " + s
	}
	if s == "" {
		s = "[empty result]" // several servers refuse empty content
	}
	return s
}

// chatImage is an image block as a part, nil for what is none.
func chatImage(raw []byte) []byte {
	var w struct {
		Source struct {
			Type  string `json:"type"`
			Media string `json:"media_type"`
			Data  string `json:"data"`
			URL   string `json:"url"`
		} `json:"source"`
	}
	if json.Unmarshal(raw, &w) != nil {
		return nil
	}
	url := w.Source.URL
	if w.Source.Type == "base64" {
		url = "data:" + w.Source.Media + ";base64," + w.Source.Data
	}
	if url == "" {
		return nil
	}
	return append(append([]byte(`{"type":"image_url","image_url":{"url":`), quote(url)...), '}', '}')
}

// chatTool is a definition of the Messages API as chat completions want it.
func chatTool(raw []byte) []byte {
	var w struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Schema      json.RawMessage `json:"input_schema"`
	}
	if json.Unmarshal(raw, &w) != nil {
		return raw
	}
	out := append([]byte(`{"type":"function","function":{"name":`), quote(w.Name)...)
	if w.Description != "" {
		out = append(append(out, `,"description":`...), quote(w.Description)...)
	}
	if len(w.Schema) > 0 {
		out = append(append(out, `,"parameters":`...), w.Schema...)
	}
	return append(out, '}', '}')
}
