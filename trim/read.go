package trim

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"hash/maphash"
	"io"
	"slices"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/jsonscan"
)

const maxText = 4096 // of ids, types and names that are looked at

// seed makes the hashes of one process; they never leave it.
var seed = maphash.MakeSeed()

// source gives the spans of the line at hand.
type source struct {
	data  []byte
	base  int64  // where it begins in the log
	plain []byte // scratch for what base64 stands for
}

// raw returns a span as it stands.
func (r *source) raw(s span) []byte { return r.data[s.from-r.base : s.to-r.base] }

// str returns the text of a string that is not longer than maxText, and nothing for a longer one.
func (r *source) str(s span) []byte {
	if s.size() < 2 || s.size() > maxText {
		return nil
	}
	return jsonscan.Unquoted(r.raw(s))
}

// id hashes a string that names something, 0 for none. Names beyond maxText are told apart as they are written.
func (r *source) id(s span) uint64 {
	t := r.raw(s)
	if s.size() <= maxText {
		if t = r.str(s); len(t) == 0 {
			return 0
		}
	}
	return max(maphash.Bytes(seed, t), 1)
}

// nameHash is the hash of a name, 0 for none.
func nameHash(name string) uint64 {
	if name == "" {
		return 0
	}
	return max(1, maphash.String(seed, name))
}

// handle is what a stub calls an original: the first bytes of a SHA-256.
type handle [6]byte

// handleOf is the handle of bytes.
func handleOf(b []byte) handle {
	sum := sha256.Sum256(b)
	return handle(sum[:len(handle{})])
}

// fileHandle is the handle of the file that base64 in a string stands for, false when it is none.
func (r *source) fileHandle(data span) (h handle, ok bool) {
	coded := r.raw(data)
	coded = coded[1 : len(coded)-1]
	r.plain = slices.Grow(r.plain[:0], base64.StdEncoding.DecodedLen(len(coded)))
	n, err := base64.StdEncoding.Decode(r.plain[:cap(r.plain)], coded)
	return handleOf(r.plain[:n]), err == nil
}

// live is the part of a log that counts, as the first reading finds it.
type live struct {
	from   int64  // where the last compaction stands; 0 without one
	before int64  // lines before it that are not blank
	kept   []byte // what it says of lines that it kept
	facts  []fact // of lines that a compaction kept, then of those behind it
}

// maxLive bounds the lines of the live part about which something is to be decided.
const maxLive = 1 << 20

// reading reads the lines of a log.
type reading struct {
	parser
	ctx  context.Context
	in   io.ReaderAt
	size int64
	most int // of a line; 0 is jsonscan.MaxLine
	wide int // of the live part; 0 is maxLive
}

// lines calls visit for each line from one place up to another, until it reports false. Those that are longer than a
// line may be come in pieces.
func (r *reading) lines(from, to int64, visit func(jsonscan.Line) bool) error {
	at := from
	for l, err := range jsonscan.Lines(io.NewSectionReader(r.in, from, to-from), cmp.Or(r.most, jsonscan.MaxLine)) {
		if err == nil {
			err = context.Cause(r.ctx)
		}
		if err != nil {
			return err
		}
		l.From += from
		if at = l.To(); !visit(l) {
			return nil
		}
	}
	if at < to {
		return fmt.Errorf("read log at byte %d: %w", at, io.ErrUnexpectedEOF) // it became shorter meanwhile
	}
	return nil
}

// look finds the live part.
func (r *reading) look() (v live, err error) {
	var lines, last int64
	err = r.lines(0, r.size, func(l jsonscan.Line) bool {
		if !l.Long && mayEnd(l.Raw) {
			if f, ok := r.parse(l); ok && r.boundary(&f) {
				v.from, v.before, v.kept = l.From, lines, nil
				if f.preserved.kind == '{' && f.preserved.size() <= maxPreserved {
					v.kept = bytes.Clone(r.raw(f.preserved.span))
				}
			}
		}
		if l.Number != last && !blank(l.Raw) {
			lines, last = lines+1, l.Number
		}
		return true
	})
	if err == nil {
		v.facts, err = r.preserved(v.from, v.kept)
	}
	if err == nil {
		err = r.each(v.from, r.size, func(*head) bool { return true }, &v.facts)
	}
	return v, err
}

// maxPreserved bounds what a boundary says of lines before it, in bytes.
const maxPreserved = 1 << 20

// mayEnd reports whether a line may be a boundary, without parsing it: the words for it may be written in escapes.
func mayEnd(line []byte) bool {
	return bytes.Contains(line, []byte("compact_boundary")) || bytes.Contains(line, []byte(`"summary"`)) || bytes.Contains(line, []byte(`\u00`))
}

// each appends the facts of lines from one place up to another that are wanted.
func (r *reading) each(from, to int64, want func(*head) bool, facts *[]fact) error {
	full, most := false, cmp.Or(r.wide, maxLive)
	err := r.lines(from, to, func(l jsonscan.Line) bool {
		f, ok := r.parse(l)
		if !ok || to < r.size && r.boundary(&f) || !want(&r.h) {
			return true
		}
		if one, ok := factOf(&r.h, r.ops); ok || r.h.flags&isKept != 0 {
			*facts = append(*facts, one)
		}
		full = len(*facts) > most
		return !full
	})
	if err == nil && full {
		err = fmt.Errorf("know all messages of the log: more than %d lines: %w", most, tidemark.ErrTooLarge)
	}
	return err
}

// boundary reports whether a line says that the conversation before it was compacted. A summary that names a leaf is
// the title of a session.
func (p *parser) boundary(f *fields) bool {
	switch string(p.word(f.typ)) {
	case "system":
		return string(p.word(f.subtype)) == "compact_boundary"
	case "summary":
		return f.leaf.kind == 0
	}
	return false
}

// blank reports whether there is nothing but white space.
func blank(line []byte) bool { return len(bytes.Trim(line, " \t\r\n")) == 0 }
