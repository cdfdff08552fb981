package tidemark

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tidemark-ai/tidemark/internal/json"
)

// Bounds of Attach.
const (
	maxAttachedText  = 256 << 10 // bytes of a text, which a model reads whole
	maxAttachedTitle = 200       // bytes of a name
)

// The kinds of files that models read in a message.
const (
	attachPicture = iota + 1
	attachPDF
	attachText
)

// attachKind says what a media type, in lower case and without parameters, is to a model; 0 for nothing
// (https://docs.anthropic.com/en/docs/build-with-claude/vision).
func attachKind(media string) int {
	switch media {
	case "image/jpeg", "image/png", "image/gif", "image/webp":
		return attachPicture
	case "application/pdf":
		return attachPDF
	case "application/json":
		return attachText
	}
	if strings.HasPrefix(media, "text/") {
		return attachText
	}
	return 0
}

// What is ours in what a person wrote.
const (
	KeptAs    = ", kept as "    // in the note of a file that no model reads, before the key of the object that holds it
	RepliesTo = "[In reply to " // begins the line that says which message is answered
)

// Attachable reports whether [Attach] takes a file of so many bytes by what is known before it is read. media
// is its type in lower case, without parameters.
func Attachable(media string, size int64) bool {
	kind := attachKind(media)
	return kind != 0 && size > 0 && (kind != attachText || size <= maxAttachedText)
}

// Attach makes the block by which a model reads a file: its type in lower case and without parameters, its
// name, which may be empty, and its bytes in base64. What no model reads is ErrInvalid, and a text that is
// too long to be read whole ErrTooLarge.
func Attach(media, name, coded string) (Block, error) {
	if !isBase64(coded) {
		return Block{}, fmt.Errorf("a file of type %s whose data is not base64: %w", clip(media), ErrInvalid)
	}
	source := `{"type":"base64","media_type":` + string(json.AppendString(nil, media)) + `,"data":"` + coded + `"}`
	switch attachKind(media) {
	case attachPicture:
		return sourced(TypeImage, "", source)
	case attachPDF:
		return sourced(TypeDocument, name, source)
	case attachText:
		raw, err := base64.StdEncoding.DecodeString(coded)
		switch {
		case len(raw) > maxAttachedText:
			return Block{}, fmt.Errorf("a text of %d bytes, at most %d: %w", len(raw), maxAttachedText, ErrTooLarge)
		case err != nil || !utf8.Valid(raw) || bytes.IndexByte(raw, 0) >= 0:
			return Block{}, fmt.Errorf("a file of type %s that is no text in UTF-8: %w", clip(media), ErrInvalid)
		}
		return TextDocument(name, string(raw))
	}
	return Block{}, fmt.Errorf("a file of type %s: models read images (JPEG, PNG, GIF, WebP), PDF and text: %w", clip(media), ErrInvalid)
}

// TextDocument is a document of plain text.
func TextDocument(title, text string) (Block, error) {
	return sourced(TypeDocument, title, `{"type":"text","media_type":"text/plain","data":`+string(json.AppendString(nil, text))+`}`)
}

// sourced makes a block that has a source, in JSON, and a title.
func sourced(kind, title, source string) (Block, error) {
	raw := `{"type":"` + kind + `","source":` + source
	if title = attachTitle(title); title != "" {
		raw += `,"title":` + string(json.AppendString(nil, title))
	}
	return decodeBlock([]byte(raw+`}`), 0)
}

// attachTitle is a name on one line, and not longer than a name is.
func attachTitle(name string) string {
	var b strings.Builder
	for _, r := range name {
		if !unicode.IsPrint(r) {
			r = ' '
		}
		if b.Len()+utf8.RuneLen(r) > maxAttachedTitle {
			break
		}
		b.WriteRune(r)
	}
	return strings.TrimSpace(b.String())
}

func isBase64(s string) bool {
	body := strings.TrimRight(s, "=")
	if len(s)-len(body) > 2 || len(s)%4 != 0 || s == "" {
		return false
	}
	for i := range len(body) {
		c := body[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '+' && c != '/' {
			return false
		}
	}
	return true
}
