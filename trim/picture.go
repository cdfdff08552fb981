package trim

import (
	"bytes"
	"fmt"
)

// picture is an image or a document whose bytes stand in the log.
type picture struct {
	span
	data  span // its bytes in base64, with the quotes
	form  form
	kind  string // its media type
	bytes int64  // without the coding
}

// picture reports whether a block is one whose bytes stand in it.
func (p *parser) picture(at span, b *blockFields) (picture, bool) {
	pic, data := picture{span: at, form: formImage}, b.source.data
	if string(p.word(b.typ)) == "document" {
		pic.form = formDocument
	}
	if b.source.kind != '{' || data.kind != '"' || string(p.word(b.source.typ)) == "text" {
		return pic, false
	}
	pic.kind = mediaType(p.word(b.source.media))
	pic.data, pic.bytes = data.span, p.decoded(data.span)
	return pic, true
}

// decoded is how many bytes base64 in a string stands for.
func (p *parser) decoded(s span) int64 {
	raw := p.raw(s)
	n := len(raw) - 2
	if n >= 2 {
		n -= bytes.Count(raw[n-1:n+1], []byte("="))
	}
	return int64(n) * 3 / 4
}

// mediaType makes a name that may stand in a note.
func mediaType(raw []byte) string {
	out := make([]byte, 0, 40)
	for _, c := range raw[:min(len(raw), 40)] {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '/', c == '-', c == '+', c == '.':
			out = append(out, c)
		}
	}
	if len(out) == 0 {
		return "unknown type"
	}
	return string(out)
}

func (p *parser) imageBlock(at span, b *blockFields) {
	pic, ok := p.picture(at, b)
	if !ok {
		if string(p.word(b.source.typ)) == "text" { // a document in words
			p.weigh(p.textOf(b.source.data))
		}
		return
	}
	p.putPicture(pic)
}

// putPicture plans the note of a picture.
func (p *parser) putPicture(pic picture) {
	p.put(op{kind: opStub, form: pic.form, span: pic.span, n: pic.bytes, pictures: []picture{pic}})
}

// thousands writes a number with commas.
func thousands(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// describe says what a picture is, and gives the beginning of the hash of the file it was, so that who has the file
// finds it; false for what is no base64.
func (r *source) describe(pic picture) (said string, sum handle, ok bool) {
	sum, ok = r.fileHandle(pic.data)
	if !ok {
		return pic.kind + ", no base64", sum, false
	}
	return pic.kind + ", " + thousands(pic.bytes) + " bytes", sum, true
}

// Bounds of what the note of a result says of the pictures in it.
const (
	namedPictures = 8
	maxNamed      = 460 // bytes
)

// picturesNote says what pictures went with a result: each of the first, and how many more.
func (r *source) picturesNote(o *op) []byte {
	if o.many == 0 {
		return nil
	}
	what := "images"
	if o.many == 1 {
		what = "image"
	}
	b := fmt.Appendf(nil, ", %d %s (", o.many, what)
	all := fmt.Sprintf(" more, %s bytes in all)", thousands(o.files))
	for i, pic := range o.pictures {
		said, sum, ok := r.describe(pic)
		if ok {
			said += fmt.Sprintf(", sha256 %x", sum)
		}
		left := o.many - int64(i)
		if more := fmt.Sprint("and ", left, all); i > 0 && len(b)+len(said)+len("; ")+len(more) > maxNamed {
			return append(b, more...)
		}
		if b = append(b, said...); left == 1 {
			return append(b, ')')
		}
		b = append(b, "; "...)
	}
	return append(b, fmt.Sprint("and ", o.many-namedPictures, all)...)
}
