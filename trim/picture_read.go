package trim

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"hash"
	"io"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/scan"
)

// Picture is an image or a document that stands in base64 in what was cut.
type Picture struct {
	Kind   string // its media type
	Handle string // the beginning of the SHA-256 of its file, as notes tell it
	data   span   // its base64
}

// Pictures calls visit for each picture in what was cut: in the content of a result, or a block that is one itself. It
// returns how many blocks there are. What is no such JSON has none. Nothing is held but a piece at a time.
func Pictures(body io.Reader, visit func(Picture)) (blocks int, err error) {
	r := &pictureReader{body: body, from: -1, buf: make([]byte, codedBytes)}
	s := &r.scan
	s.Reset(r.next(), 0, r.next)
	var ok bool
	switch s.Space() {
	case '{':
		blocks, ok = 1, r.block(visit)
	case '[':
		var m scan.Member
		for ok = s.Open(); ok && s.Next(&m); blocks++ {
			if m.Kind == '{' {
				ok = r.block(visit)
			} else {
				ok = s.Value()
			}
		}
	}
	if r.err != nil {
		return 0, fmt.Errorf("look for pictures: %w", r.err)
	}
	if !ok || s.Err != nil {
		blocks = 0
	}
	return blocks, nil
}

// Write writes the file that the picture was, from the same bytes that it was found in.
func (p Picture) Write(body io.Reader, w io.Writer) error {
	if _, err := io.CopyN(io.Discard, body, p.data.from); err != nil {
		return fmt.Errorf("read the picture: %w", noEOF(err))
	}
	coded := base64.NewDecoder(base64.StdEncoding, io.LimitReader(body, p.data.size()))
	sum := sha256.New()
	if _, err := io.Copy(io.MultiWriter(w, sum), coded); err != nil {
		return fmt.Errorf("write the picture: %w", err)
	}
	if got := shortSum(sum); got != p.Handle {
		return fmt.Errorf("write the picture: it is %s, not %s: %w", got, p.Handle, tidemark.ErrInvalid)
	}
	return nil
}

// pictureReader scans blocks, and hands what stands in a string to whom it may concern.
type pictureReader struct {
	scan scan.Scanner
	body io.Reader
	err  error
	buf  []byte
	data []byte // the piece at hand
	base int64  // where it begins
	from int64  // where what is still to be handed on begins; -1 for nothing
	to   func([]byte)
}

func (r *pictureReader) next() []byte {
	r.hand(r.base + int64(len(r.data)))
	r.base += int64(len(r.data))
	n, err := io.ReadFull(r.body, r.buf)
	if err != nil && n == 0 && err != io.EOF {
		r.err = err
	}
	r.data = r.buf[:n]
	return r.data
}

// hand hands on what is before a place.
func (r *pictureReader) hand(end int64) {
	if r.from >= 0 && r.from < end {
		r.to(r.data[r.from-r.base : end-r.base])
		r.from = end
	}
}

// str scans a string and hands its bytes on, as they are written.
func (r *pictureReader) str(m *scan.Member, to func([]byte)) (span, bool) {
	r.from, r.to = m.Start+1, to
	ok := r.scan.String()
	at := span{m.Start + 1, r.scan.Pos() - 1}
	if ok {
		r.hand(at.to)
	}
	r.from = -1
	return at, ok
}

// word scans a string of which only the beginning matters.
func (r *pictureReader) word(m *scan.Member, to *string) bool {
	var b []byte
	_, ok := r.str(m, func(p []byte) { b = append(b, p[:min(len(p), maxText-len(b))]...) })
	*to = string(unescape(nil, b))
	return ok
}

// block scans a block and tells of the picture that it is.
func (r *pictureReader) block(visit func(Picture)) bool {
	s := &r.scan
	if !s.Open() {
		return false
	}
	var typ, of string
	var pic Picture
	var m scan.Member
	for s.Next(&m) {
		var ok bool
		switch name := string(nameOf(&m)); {
		case name == "type" && m.Kind == '"':
			ok = r.word(&m, &typ)
		case name == "source" && m.Kind == '{':
			of, pic = "", Picture{}
			ok = r.source(&of, &pic)
		case name == "source":
			pic = Picture{}
			ok = s.Value()
		default:
			ok = s.Value()
		}
		if !ok {
			return false
		}
	}
	if s.Err != nil {
		return false
	}
	if (typ == "image" || typ == "document") && of != "text" && pic.Handle != "" {
		visit(pic)
	}
	return true
}

// source scans the source of a picture, and hashes the file that it is.
func (r *pictureReader) source(of *string, pic *Picture) bool {
	s := &r.scan
	if !s.Open() {
		return false
	}
	var m scan.Member
	var media string
	for s.Next(&m) {
		var ok bool
		switch name := string(nameOf(&m)); {
		case m.Kind != '"':
			ok = s.Value()
		case name == "type":
			ok = r.word(&m, of)
		case name == "media_type":
			ok = r.word(&m, &media)
		case name == "data":
			file := fileSum{sum: sha256.New()}
			pic.data, ok = r.str(&m, file.add)
			pic.Handle = file.handle()
		default:
			ok = s.Value()
		}
		if !ok {
			return false
		}
	}
	pic.Kind = mediaType([]byte(media))
	return s.Err == nil
}

// fileSum hashes what base64 stands for that comes in pieces.
type fileSum struct {
	sum   hash.Hash
	left  []byte // less than four characters
	plain []byte
	ended bool // by padding, or it is none
	bad   bool
}

func (f *fileSum) add(p []byte) {
	for len(p) > 0 && !f.bad {
		if f.ended {
			f.bad = true
			return
		}
		if n := len(p) &^ 3; len(f.left) == 0 && n > 0 {
			n = min(n, codedBytes)
			f.decode(p[:n])
			p = p[n:]
			continue
		}
		n := min(4-len(f.left), len(p))
		f.left = append(f.left, p[:n]...)
		if p = p[n:]; len(f.left) == 4 {
			f.decode(f.left)
			f.left = f.left[:0]
		}
	}
}

func (f *fileSum) decode(coded []byte) {
	if f.plain == nil {
		f.plain = make([]byte, base64.StdEncoding.DecodedLen(codedBytes))
	}
	n, err := base64.StdEncoding.Decode(f.plain, coded)
	f.bad = err != nil
	f.ended = n < len(coded)/4*3
	_, _ = f.sum.Write(f.plain[:n])
}

// handle is the beginning of the hash, "" for what is no base64.
func (f *fileSum) handle() string {
	if f.bad || len(f.left) > 0 {
		return ""
	}
	return shortSum(f.sum)
}

func shortSum(h hash.Hash) string { return hex.EncodeToString(h.Sum(nil)[:len(op{}.handle)]) }
