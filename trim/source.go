package trim

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
)

// sizes bound what is in memory at once.
type sizes struct {
	chunk int64 // of the log that a worker takes at once; longer lines are read in pieces
	piece int64 // of a longer line
	held  int64 // of plans; what is more goes to a temporary file
}

var usual = sizes{chunk: 1 << 20, piece: 256 << 10, held: 4 << 20}

const (
	maxText     = 4096 // of ids, types and names that are looked at
	pieceOfLine = 16 << 10
)

// seed makes the hashes of one process; they never leave it.
var seed = maphash.MakeSeed()

// source gives spans of the log: out of the piece that is in memory, or from the log itself.
type source struct {
	sizes
	in    io.ReaderAt
	data  []byte // what is in memory
	base  int64  // where it begins
	text  []byte // scratch
	long  []byte // scratch for pieces
	plain []byte // scratch for what base64 stands for
	err   error  // the first error of in
}

func (r *source) held(s span) bool {
	return s.from >= r.base && s.to <= r.base+int64(len(r.data))
}

// load puts a part of the log into memory.
func (r *source) load(s span) []byte {
	if int64(cap(r.data)) < s.size() {
		r.data = make([]byte, max(s.size(), min(r.chunk, 4*s.size())))
	}
	r.data, r.base = r.data[:s.size()], s.from
	r.read(r.data, s.from)
	return r.data
}

func (r *source) read(to []byte, at int64) {
	n, err := r.in.ReadAt(to, at)
	if n == len(to) || r.err != nil {
		return
	}
	if err == nil || errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF // it became shorter meanwhile
	}
	clear(to[n:])
	r.err = fmt.Errorf("read log at byte %d: %w", at+int64(n), err)
}

// pieces gives a span in pieces: one, when it is in memory.
func (r *source) pieces(s span) func() []byte {
	if r.held(s) {
		return func() []byte {
			b := r.data[s.from-r.base : s.to-r.base]
			s.from = s.to
			return b
		}
	}
	var buf []byte
	return func() []byte {
		n := min(s.size(), r.sizes.piece)
		if n == 0 {
			return nil
		}
		if buf == nil {
			buf = make([]byte, n)
		}
		buf = buf[:n]
		r.read(buf, s.from)
		s.from += n
		return buf
	}
}

// raw returns a span as it stands; of one that is not in memory at most maxText bytes.
func (r *source) raw(s span) []byte {
	if r.held(s) {
		return r.data[s.from-r.base : s.to-r.base]
	}
	n := min(s.size(), maxText)
	if int64(cap(r.long)) < n {
		r.long = make([]byte, maxText)
	}
	r.long = r.long[:n]
	r.read(r.long, s.from)
	return r.long
}

// str returns the text of a string that is not longer than maxText, and nothing for a longer one. It holds until the
// next call.
func (r *source) str(s span) []byte {
	if s.size() < 2 || s.size() > maxText {
		return nil
	}
	raw := r.raw(s)
	raw = raw[1 : len(raw)-1]
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw
	}
	r.text = unescape(r.text[:0], raw)
	return r.text
}

// id hashes a string that names something, 0 for none. Names beyond maxText are told apart as they are written.
func (r *source) id(s span) uint64 {
	var h uint64
	if s.size() <= maxText {
		t := r.str(s)
		if len(t) == 0 {
			return 0
		}
		h = maphash.Bytes(seed, t)
	} else {
		var m maphash.Hash
		m.SetSeed(seed)
		for next := r.pieces(s); ; {
			b := next()
			if len(b) == 0 {
				break
			}
			_, _ = m.Write(b)
		}
		h = m.Sum64()
	}
	return max(h, 1)
}

// handle is what a stub calls the original in a span: the first bytes of its SHA-256.
func (r *source) handle(s span) (h [6]byte) {
	if r.held(s) {
		sum := sha256.Sum256(r.raw(s))
		copy(h[:], sum[:])
		return h
	}
	sum := sha256.New()
	for next := r.pieces(s); ; {
		b := next()
		if len(b) == 0 {
			break
		}
		_, _ = sum.Write(b)
	}
	copy(h[:], sum.Sum(nil))
	return h
}

// named is the handle of what a stub of so many characters stands for, when the stub or the cut is to name it.
func (p *parser) named(s span, chars int64) (h [6]byte) {
	if p.nameless && chars >= shortNote {
		return h
	}
	return p.handle(s)
}

// fileHandle is the handle of what base64 in a span stands for, false when it is none.
func (r *source) fileHandle(s span) (h [6]byte, ok bool) {
	if r.plain == nil {
		r.plain = make([]byte, base64.StdEncoding.DecodedLen(codedBytes))
	}
	sum, next, left := sha256.New(), r.fours(s), s.size()
	for {
		coded := next()
		left -= int64(len(coded))
		n, err := base64.StdEncoding.Decode(r.plain, coded)
		if err != nil || left > 0 && (n == 0 || n < len(coded)/4*3) {
			return h, false // padding ends it
		}
		_, _ = sum.Write(r.plain[:n])
		if left == 0 {
			break
		}
	}
	copy(h[:], sum.Sum(nil))
	return h, true
}

const codedBytes = 32 << 10

// fours gives a span of base64 in pieces that can be decoded alone.
func (r *source) fours(s span) func() []byte {
	if r.held(s) {
		b := r.raw(s)
		return func() []byte {
			piece := b[:min(codedBytes, len(b))]
			b = b[len(piece):]
			return piece
		}
	}
	from, coded := pieceReader{next: r.pieces(s)}, make([]byte, codedBytes)
	return func() []byte {
		n, _ := io.ReadFull(&from, coded) // what cannot be read is remembered
		return coded[:n]
	}
}

// pieceReader reads the pieces of a span.
type pieceReader struct {
	next func() []byte
	b    []byte
}

func (p *pieceReader) Read(to []byte) (int, error) {
	if len(p.b) == 0 {
		if p.b = p.next(); len(p.b) == 0 {
			return 0, io.EOF
		}
	}
	n := copy(to, p.b)
	p.b = p.b[n:]
	return n, nil
}

// chars counts the UTF-16 units of the text between two places of a string or of any JSON.
func (r *source) chars(s span) int64 {
	if s.size() <= 0 {
		return 0
	}
	if r.held(s) {
		n, _ := charsOf(r.raw(s))
		return n
	}
	total := int64(0)
	var carry []byte
	for next := r.pieces(s); ; {
		b := next()
		if len(b) == 0 {
			return total + int64(len(carry))
		}
		if len(carry) > 0 {
			b = append(carry, b...)
		}
		n, used := charsOf(b)
		total += n
		carry = append([]byte(nil), b[used:]...)
	}
}
