package transcript

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/scan"
)

// Defaults of [Options].
const (
	DefaultMaxLine = 8 << 20
	// DefaultMaxMessage is what the Messages API takes in a whole request
	// (https://docs.anthropic.com/en/api/errors#request-size-limits): a larger message was never sent.
	DefaultMaxMessage = 32 << 20
)

const (
	minMaxLine = 64
	pieceBytes = 256 << 10
	maxSpool   = 64 << 30 // what a pipe may write to the temporary file
	maxStalls  = 100      // reads in a row that give neither bytes nor an error
)

// Options bound and direct a reading. The zero value is good.
type Options struct {
	MaxLine    int64  // bytes of a line that may stand in memory; 0 is DefaultMaxLine
	MaxMessage int64  // bytes of a message's content that are decoded; 0 is DefaultMaxMessage
	Chain      Chain  // which messages Messages gives; the zero value is the main chain
	TempDir    string // for the temporary file that a pipe needs; "" is the system's
}

func (o Options) withDefaults() Options {
	if o.MaxLine <= 0 {
		o.MaxLine = DefaultMaxLine
	}
	o.MaxLine = max(o.MaxLine, minMaxLine)
	if o.MaxMessage <= 0 {
		o.MaxMessage = DefaultMaxMessage
	}
	return o
}

// Lines yields every line of r in order: blank ones, such as are no JSON, and one without a line
// break at the end too. Only "\n" ends a line; "\r", U+2028 and U+2029 do not. A byte order mark at
// the very beginning belongs to the first line and not to its value.
//
// When r can be read at any place (a file, a bytes.Reader), it is read from its current position to
// its end and the position stays; the sequence may then be walked again. A pipe is read once, and its
// lines beyond Options.MaxLine are written to a temporary file that is removed at the end.
//
// An error of the input or the temporary file is the last value, behind what was read before it.
func Lines(r io.Reader, o Options) iter.Seq2[Line, error] {
	o = o.withDefaults()
	return func(yield func(Line, error) bool) {
		lr := newLineReader(r, o)
		defer lr.close()
		for {
			l, err := lr.read()
			if errors.Is(err, io.EOF) {
				return
			}
			if !yield(l, err) || err != nil {
				return
			}
		}
	}
}

// seekable returns r as something that can be read at any place, with its current position.
func seekable(r io.Reader) (at io.ReaderAt, pos int64, ok bool) {
	ra, ok := r.(interface {
		io.ReaderAt
		io.Seeker
	})
	if !ok {
		return nil, 0, false
	}
	pos, err := ra.Seek(0, io.SeekCurrent) // a pipe is an os.File too, but has no position
	return ra, pos, err == nil
}

// lineReader cuts an input into lines and scans them.
type lineReader struct {
	o   Options
	src io.Reader
	err error // of src, behind the bytes in buf

	at   io.ReaderAt // src can be read again there, nil for a pipe
	base int64       // where the reading began in at
	temp *os.File    // holds the present line of a pipe when it is long

	buf        []byte
	start, end int   // what is read of buf and not yet given out
	off        int64 // of buf[start]
	number     int64
	sc         scan.Scanner
	fields     []Field
	inner      []Field
}

func newLineReader(r io.Reader, o Options) *lineReader {
	lr := &lineReader{o: o, src: r}
	if at, pos, ok := seekable(r); ok {
		lr.restart(at, pos, 1<<62-pos)
	}
	return lr
}

// restart makes the reader begin anew at pos of at, for size bytes at most.
func (r *lineReader) restart(at io.ReaderAt, pos, size int64) {
	r.src, r.at, r.base = io.NewSectionReader(at, pos, size), at, pos
	r.start, r.end, r.off, r.number, r.err = 0, 0, 0, 0, nil
}

func (r *lineReader) close() {
	if r.temp != nil {
		name := r.temp.Name()
		_ = r.temp.Close()
		_ = os.Remove(name)
		r.temp = nil
	}
}

// piece is how much is read at once; small with a small MaxLine, so that its bound means something.
func (r *lineReader) piece() int { return int(min(pieceBytes, r.o.MaxLine)) }

// read returns the next line; behind the last one it returns io.EOF or the error of the input.
func (r *lineReader) read() (Line, error) {
	searched := 0
	for {
		if k := bytes.IndexByte(r.buf[r.start+searched:r.end], '\n'); k >= 0 {
			return r.line(searched + k + 1)
		}
		searched = r.end - r.start
		switch {
		case r.err != nil && searched == 0:
			return Line{}, r.err
		case r.err != nil || int64(searched) > r.o.MaxLine:
			return r.line(searched)
		}
		r.more()
	}
}

// more reads behind the bytes in buf, which grows up to the bound of a line and one piece.
func (r *lineReader) more() {
	if r.start > 0 {
		copy(r.buf, r.buf[r.start:r.end])
		r.start, r.end = 0, r.end-r.start
	}
	if r.end == len(r.buf) {
		grown := make([]byte, min(max(2*len(r.buf), r.piece()), int(r.o.MaxLine)+r.piece()))
		copy(grown, r.buf)
		r.buf = grown
	}
	r.fill(r.buf[r.end:])
}

// fill reads into room, which begins at r.end of buf.
func (r *lineReader) fill(room []byte) {
	for range maxStalls {
		n, err := r.src.Read(room)
		r.end += n
		if err != nil {
			r.err = err
			if !errors.Is(err, io.EOF) {
				r.err = fmt.Errorf("read log behind byte %d: %w", r.off+int64(r.end-r.start), err)
			}
		}
		if n > 0 || err != nil {
			return
		}
	}
	r.err = fmt.Errorf("read log behind byte %d: %w", r.off+int64(r.end-r.start), io.ErrNoProgress)
}

// line gives out the next line, of which the first have bytes stand in buf: all, if that is at most
// MaxLine.
func (r *lineReader) line(have int) (Line, error) {
	r.number++
	l := Line{Number: r.number, Offset: r.off}
	if int64(have) <= r.o.MaxLine {
		l.Raw, l.Size = r.buf[r.start:r.start+have:r.start+have], int64(have)
		r.start += have
		r.scan(&l, l.Raw, nil)
	} else {
		p := linePieces{r: r}
		r.scan(&l, nil, p.next)
		for len(p.next()) > 0 { // what is left of a line that is no JSON
		}
		if p.err != nil {
			return Line{}, fmt.Errorf("keep line %d of a pipe in a temporary file: %w", r.number, p.err)
		}
		l.Size, l.at, l.atStart = p.size, r.at, r.base+l.Offset
		if r.at == nil {
			l.at, l.atStart = r.temp, 0
		}
	}
	r.off += l.Size
	return l, nil
}

// scan finds the value of a line and its fields.
func (r *lineReader) scan(l *Line, data []byte, next func() []byte) {
	s := &r.sc
	s.Reset(data, 0, next)
	r.fields, r.inner = r.fields[:0], r.inner[:0]
	if l.Number == 1 {
		s.SkipMark()
	}
	c := s.Space()
	if s.AtEnd() {
		return
	}
	l.Value = Field{Key: -1, Start: s.Pos(), Kind: kindOf(c)}
	if c == '{' {
		object(s, &r.fields, &r.inner)
	} else {
		s.Value()
	}
	l.Value.End = s.Pos()
	if s.Err == nil {
		if s.Space(); !s.AtEnd() {
			s.Fail("more behind the value")
		}
	}
	if s.Err != nil {
		l.Err, l.Value = s.Err, Field{}
		return
	}
	l.Fields, l.Inner = r.fields, r.inner
}

// linePieces gives a long line piece by piece, and keeps it if its input cannot be read again.
type linePieces struct {
	r    *lineReader
	size int64
	done bool
	err  error
}

func (p *linePieces) next() []byte {
	r := p.r
	if !p.done && r.start == r.end && r.err == nil {
		r.start, r.end = 0, 0
		r.fill(r.buf[:r.piece()])
	}
	if p.done || r.start == r.end {
		return nil
	}
	b := r.buf[r.start:r.end]
	if k := bytes.IndexByte(b, '\n'); k >= 0 {
		b, p.done = b[:k+1], true
	}
	r.start += len(b)
	if r.at == nil {
		p.keep(b)
	}
	p.size += int64(len(b))
	return b
}

func (p *linePieces) keep(b []byte) {
	if p.err != nil {
		return
	}
	if p.size+int64(len(b)) > maxSpool {
		p.err = fmt.Errorf("more than %d bytes: %w", int64(maxSpool), tidemark.ErrTooLarge)
		return
	}
	if p.r.temp == nil {
		if p.r.temp, p.err = os.CreateTemp(p.r.o.TempDir, "tidemark-line-*"); p.err != nil {
			return
		}
	}
	_, p.err = p.r.temp.WriteAt(b, p.size)
}
