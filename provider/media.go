package provider

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"

	tidemark "github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/clip"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/internal/jsonscan"
	"github.com/tidemark-ai/tidemark/internal/picture"
)

// What the Messages API takes of pictures (https://docs.anthropic.com/en/docs/build-with-claude/vision#evaluate-image-size):
// 5 MB each, which it counts in base64; 8000 pixels a side, of more than 20 in a request 2000; and 100 in all.
var anthropicMedia = mediaRules{bytes: 5 << 20, side: 8000, many: 20, manySide: 2000, most: 100, pdf: true}

// mediaRules are what an API demands of pictures and documents; 0 is no bound.
type mediaRules struct {
	bytes    int  // of a picture, in base64
	side     int  // pixels
	many     int  // more pictures than that may have
	manySide int  // pixels
	most     int  // pictures in a request
	pdf      bool // of documents in base64 it takes no others
	more     bool // it takes what pictureField says
}

// How many of the oldest pictures leave together when there are too many: each that leaves changes the prefix.
const (
	batch     = 20
	manyBatch = 10 // where many is the bound
)

// pictures are those of a request, as they are looked at.
type pictures struct {
	all, nth int
	newest   int // the last that is larger than it may be among many
}

// count looks for how many pictures there are before any is judged, so that what is said of one does not hang on what
// comes of others.
func (p *pictures) count(messages []tidemark.Message, r mediaRules) {
	for _, m := range messages {
		p.all += m.Images()
	}
	if r.many == 0 || p.all <= r.many {
		return
	}
	nth := 0
	for _, m := range messages {
		for _, b := range m.Content {
			nth = p.wide(b, nth, r)
		}
	}
}

// wide counts the pictures of a block on from nth, and keeps which is the newest wide one.
func (p *pictures) wide(b tidemark.Block, nth int, r mediaRules) int {
	if b.Type == tidemark.TypeImage {
		nth++
		raw := jsonscan.Find(jsonscan.Find(b.Raw(), "source"), "data")
		w, h := picture.OfBase64(bytes.Trim(raw, `"`))
		if w == 0 { // it may be written in another way
			data, _ := base64Data(raw)
			w, h = picture.OfBase64(data)
		}
		if side := max(w, h); side > r.manySide && side <= r.side {
			p.newest = nth
		}
	}
	for _, c := range b.Content {
		nth = p.wide(c, nth, r)
	}
	return nth
}

// medium returns what stands for a picture or a document, nil for itself.
func (p *pictures) medium(b tidemark.Block, r mediaRules) *tidemark.Block {
	picture := b.Type == tidemark.TypeImage
	if picture {
		p.nth++
	}
	source := jsonscan.Find(b.Raw(), "source")
	if len(source) == 0 || source[0] != '{' {
		return leftOut(b, "", "it has no source")
	}
	media := scalar(jsonscan.Find(source, "media_type"))
	switch kind := scalar(jsonscan.Find(source, "type")); {
	case kind == "base64":
	case kind == "url":
		if u := scalar(jsonscan.Find(source, "url")); !strings.HasPrefix(u, "https://") && !strings.HasPrefix(u, "http://") {
			return leftOut(b, media, "its address is none of the web")
		}
		return p.tooMany(b, r, media)
	case kind == "text" && !picture:
		if strings.TrimSpace(scalar(jsonscan.Find(source, "data"))) == "" {
			return leftOut(b, media, "it is empty")
		}
		return nil
	case kind == "file", kind == "content" && !picture:
		return nil
	default:
		return leftOut(b, media, "its source is of no kind that is known")
	}
	data, repaired := base64Data(jsonscan.Find(source, "data"))
	if data == nil {
		return leftOut(b, media, "its base64 cannot be read")
	}
	is := sniff(data)
	if !picture {
		if r.pdf && is != "application/pdf" {
			return leftOut(b, media, "it is no PDF")
		}
	} else if why := p.unfit(data, is, r); why != "" {
		return leftOut(b, media, why)
	}
	if (is == media || !picture && !r.pdf) && !repaired {
		return p.tooMany(b, r, media)
	}
	if fit := p.tooMany(b, r, media); fit != nil {
		return fit
	}
	return altered(b, []field{{Key: "source", Value: jsonscan.Set(nil, source, field{Key: "media_type", Value: json.AppendString(nil, or(is, media))}, field{Key: "data", Value: json.AppendString(nil, string(data))})}})
}

// unfit says why a picture is not taken, empty for one that is.
func (p *pictures) unfit(data []byte, is string, r mediaRules) string {
	if !strings.HasPrefix(is, "image/") {
		return "it is no PNG, JPEG, GIF or WebP"
	}
	if r.bytes > 0 && len(data) > r.bytes {
		return fmt.Sprintf("it has %d bytes in base64, and at most %d are taken", len(data), r.bytes)
	}
	if r.side == 0 {
		return ""
	}
	w, h := picture.OfBase64(data)
	switch side := max(w, h); {
	case side > r.side:
		return fmt.Sprintf("it has %d × %d pixels, and at most %d a side are taken", w, h, r.side)
	case side > r.manySide && p.nth <= leaving(p.all, r.many, manyBatch):
		return fmt.Sprintf("it has %d × %d pixels, and of more than %d pictures each may have %d a side", w, h, r.many, r.manySide)
	}
	return ""
}

// leaving is how many of the oldest leave of so many pictures, many at once, so that at most so many stay.
func leaving(all, most, batch int) int {
	if most == 0 || all <= most {
		return 0
	}
	return (all - most + batch - 1) / batch * batch
}

// tooMany stands for a picture where there are more than may be: the oldest leave. Where a wide one stays, fewer may.
func (p *pictures) tooMany(b tidemark.Block, r mediaRules, media string) *tidemark.Block {
	most, out := r.most, leaving(p.all, r.most, batch)
	if few := leaving(p.all, r.many, manyBatch); p.newest > few {
		most, out = r.many, few
	}
	if b.Type != tidemark.TypeImage || p.nth > out {
		return nil
	}
	return leftOut(b, media, fmt.Sprintf("at most %d pictures are taken, and newer ones are", most))
}

// leftOut is what the model is told in the place of a picture or a document.
func leftOut(b tidemark.Block, media, why string) *tidemark.Block {
	kind := "document"
	if b.Type == tidemark.TypeImage {
		kind = "picture"
	}
	if media = clip.To(media, 60); media != "" {
		kind += " (" + media + ")"
	}
	t := tidemark.Text(fmt.Sprintf("[A %s stood here and is left out: %s. It is whole in the log.]", kind, why))
	return &t
}

// base64Data is the text of a JSON string that is base64 as it is to be sent; repaired when it was not quite that. nil is
// for what is none.
func base64Data(raw []byte) (data []byte, repaired bool) {
	if len(raw) < 2 || raw[0] != '"' {
		return nil, false
	}
	if data = raw[1 : len(raw)-1]; isBase64(data) {
		return data, false
	}
	text := scalar(raw)
	if head, rest, ok := strings.Cut(text, ";base64,"); ok && strings.HasPrefix(head, "data:") {
		text = rest
	}
	text = strings.TrimRight(strings.Map(func(r rune) rune {
		switch r {
		case ' ', '\n', '\r', '\t':
			return -1
		case '-':
			return '+'
		case '_':
			return '/'
		}
		return r
	}, text), "=")
	const group = 4
	text += strings.Repeat("=", (group-len(text)%group)%group)
	if data = []byte(text); !isBase64(data) {
		return nil, false
	}
	return data, true
}

// isBase64 reports base64 with its padding (https://www.rfc-editor.org/rfc/rfc4648#section-4), at least a byte of it.
func isBase64(data []byte) bool {
	const group, most = 4, 2
	body := bytes.TrimRight(data, "=")
	if len(body) < 2 || len(data)%group != 0 || len(data)-len(body) > most {
		return false
	}
	for _, c := range body {
		if (c|0x20 < 'a' || c|0x20 > 'z') && (c < '/' || c > '9') && c != '+' {
			return false
		}
	}
	return true
}

// sniff is what kind of file begins so, in base64; empty for none that an API takes.
func sniff(data []byte) string {
	const head = 24 // characters
	b := make([]byte, head)
	n, _ := base64.StdEncoding.Decode(b, data[:min(len(data), head)]) // what stands before an error is right
	b = b[:n]
	switch kind := http.DetectContentType(b); kind {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		return kind
	}
	if bytes.HasPrefix(b, []byte("%PDF")) {
		return "application/pdf"
	}
	return ""
}
