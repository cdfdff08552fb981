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
	n := s.size() - 2
	if n >= 2 {
		tail := p.tail(s)
		n -= int64(bytes.Count(tail, []byte("=")))
	}
	return n * 3 / 4
}

// tail returns the last two characters of a string.
func (p *parser) tail(s span) []byte { return p.raw(span{max(s.from, s.to-3), s.to - 1}) }

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
		if b.text.kind != 0 {
			p.weigh(p.textOf(b.text))
		}
		return
	}
	p.putPicture(pic)
}

// putPicture plans the note of a picture. What is no base64 has the handle of the block.
func (p *parser) putPicture(pic picture) {
	said, sum, ok := p.describe(pic)
	if ok {
		said += ", sha256"
	} else {
		said, sum = said+", handle", p.handle(pic.span)
	}
	p.put(op{kind: opStub, what: byte(pic.form), span: pic.span, n: pic.bytes, handle: sum, extra: []byte(said)})
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
func (p *parser) describe(pic picture) (said string, sum [6]byte, ok bool) {
	sum, ok = p.fileHandle(span{pic.data.from + 1, pic.data.to - 1})
	if !ok {
		return pic.kind + ", no base64", sum, false
	}
	return pic.kind + ", " + thousands(pic.bytes) + " bytes", sum, true
}

// Bounds of what the note of a result says of the pictures in it. With all else an op takes no more than maxOp.
const (
	namedPictures = 8
	maxNamed      = maxOp - 52 // bytes
)

// picturesNote says what pictures went with a result: each of the first, and how many more.
func (p *parser) picturesNote(l *listed) []byte {
	if l.many == 0 {
		return nil
	}
	what := "images"
	if l.many == 1 {
		what = "image"
	}
	b := fmt.Appendf(nil, ", %d %s (", l.many, what)
	all := fmt.Sprintf(" more, %s bytes in all)", thousands(l.files))
	for i := range p.pictures[:min(len(p.pictures), namedPictures)] {
		said, sum, ok := p.describe(p.pictures[i])
		if ok {
			said += fmt.Sprintf(", sha256 %x", sum)
		}
		left := l.many - int64(i)
		if more := fmt.Sprint("and ", left, all); i > 0 && len(b)+len(said)+len("; ")+len(more) > maxNamed {
			return append(b, more...)
		}
		if b = append(b, said...); left == 1 {
			return append(b, ')')
		}
		b = append(b, "; "...)
	}
	return append(b, fmt.Sprint("and ", l.many-namedPictures, all)...)
}
