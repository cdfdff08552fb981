package trim

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	"github.com/klauspost/compress/s2"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// CutsFile is a cuts file that was opened: it was written to its end.
type CutsFile struct {
	head   cutsHead
	foot   cutsFoot
	stream *io.SectionReader
}

// CutsFacts are what a cuts file says of its trim.
type CutsFacts struct {
	At        time.Time `json:"at"`
	Threshold int       `json:"threshold"`
	Cuts      int64     `json:"cuts"`
	Bytes     int64     `json:"bytes"`   // of the log
	Trimmed   int64     `json:"trimmed"` // bytes of its trimmed form
}

// Original is a cut with what was cut.
type Original struct {
	Cut
	At   int64     // where its Put bytes stand in the trimmed form
	Body io.Reader // the bytes that were cut, good until the next cut is asked for
}

// OpenCuts opens a cuts file of that size. Its cuts are not read yet.
//
// # Errors
//
// tidemark.ErrInvalid for a file that is none, that is damaged or that was not written to its end.
func OpenCuts(r io.ReaderAt, size int64) (*CutsFile, error) {
	f := &CutsFile{}
	begin, err := f.readHead(r, size)
	if err != nil {
		return nil, fmt.Errorf("read cuts: %w", err)
	}
	end, err := f.readFoot(r, size)
	if err != nil {
		return nil, fmt.Errorf("read cuts: %w", err)
	}
	if end < begin {
		return nil, damaged("its end begins before its cuts")
	}
	f.stream = io.NewSectionReader(r, begin, end-begin)
	return f, nil
}

// damaged is the error of a cuts file whose parts do not fit.
func damaged(format string, args ...any) error {
	return fmt.Errorf("read cuts: the file is damaged: %s: %w", fmt.Sprintf(format, args...), tidemark.ErrInvalid)
}

// readHead reads the first line and returns where the next begins.
func (f *CutsFile) readHead(r io.ReaderAt, size int64) (int64, error) {
	buf := make([]byte, min(size, maxCutsHead))
	if n, err := r.ReadAt(buf, 0); n < len(buf) {
		return 0, noEOF(err)
	}
	n := bytes.IndexByte(buf, '\n') + 1
	if json.Unmarshal(buf[:n], &f.head) != nil || f.head.Format != cutsFormat {
		return 0, fmt.Errorf("this is no cuts file: %w", tidemark.ErrInvalid)
	}
	if f.head.Version != cutsVersion {
		return 0, fmt.Errorf("the file has version %d, this program knows %d: %w", f.head.Version, cutsVersion, tidemark.ErrInvalid)
	}
	return int64(n), nil
}

var errTorn = fmt.Errorf("the file has no end: the trim was stopped, or the file was cut off: %w", tidemark.ErrInvalid)

// readFoot reads the last two lines and returns where they begin.
func (f *CutsFile) readFoot(r io.ReaderAt, size int64) (int64, error) {
	last := make([]byte, cutsLastLen)
	if size < int64(cutsLastLen) {
		return 0, errTorn
	}
	if n, err := r.ReadAt(last, size-int64(cutsLastLen)); n < len(last) {
		return 0, noEOF(err)
	}
	var n int64
	var sum uint32
	if _, err := fmt.Sscanf(string(last), cutsLast, &n, &sum); err != nil || string(last) != fmt.Sprintf(cutsLast, n, sum) {
		return 0, errTorn
	}
	begin := size - int64(cutsLastLen) - n
	if n < 0 || n > maxCutsFoot || begin < 0 {
		return 0, damaged("its end has %d bytes", n)
	}
	raw := make([]byte, n)
	if got, err := r.ReadAt(raw, begin); got < len(raw) {
		return 0, noEOF(err)
	}
	if crc(raw) != sum || json.Unmarshal(raw, &f.foot) != nil || !f.foot.sound() {
		return 0, damaged("its end does not fit its sum")
	}
	return begin, nil
}

// sound reports whether the numbers can be.
func (t *cutsFoot) sound() bool {
	return t.Cuts >= 0 && t.Bytes >= 0 && t.Trimmed >= 0 && t.Block > 0 && t.Block <= 1<<40 &&
		t.Trimmed/t.Block <= maxCutsFoot && int64(len(t.Marks)) == (t.Trimmed+t.Block-1)/t.Block*markLen
}

const markLen = 8

// Facts returns what the file says of its trim.
func (f *CutsFile) Facts() CutsFacts {
	return CutsFacts{At: f.head.At, Threshold: f.head.Threshold, Cuts: f.foot.Cuts, Bytes: f.foot.Bytes, Trimmed: f.foot.Trimmed}
}

// All returns the cuts in order. The sequence ends with the first error.
func (f *CutsFile) All() iter.Seq2[Original, error] {
	return func(yield func(Original, error) bool) {
		c := &cursor{f: f, z: s2.NewReader(io.NewSectionReader(f.stream, 0, f.stream.Size()))}
		c.body.c = c
		for {
			o, err := c.next()
			if errors.Is(err, errNoMore) {
				return
			}
			if err != nil && !errors.Is(err, tidemark.ErrInvalid) {
				err = damaged("behind cut %d: %v", c.n, noEOF(err))
			}
			if !yield(o, err) || err != nil {
				return
			}
		}
	}
}

// cursor reads the stream of cuts.
type cursor struct {
	f      *CutsFile
	z      *s2.Reader
	n      int64 // cuts so far
	to, at int64 // how far the log and its trimmed form are told
	body   body  // of the cut in work
}

var errNoMore = errors.New("there is no cut more")

// next returns the next cut, errNoMore behind the last.
func (c *cursor) next() (o Original, err error) {
	if err := c.z.Skip(c.body.left); err != nil {
		return o, err
	}
	tag, err := c.z.ReadByte()
	if err != nil {
		return o, err
	}
	var gap, length, handle int64
	if gap, err = c.number(); err != nil {
		return o, err
	}
	switch {
	case tag == recordEnd:
		return o, c.end(gap)
	case tag != recordCut:
		return o, damaged("behind cut %d is none", c.n)
	}
	for _, n := range []*int64{&length, &o.Put, &handle} {
		if *n, err = c.number(); err != nil {
			return o, err
		}
	}
	o.From, o.At = c.to+gap, c.at+gap
	if o.To = o.From + length; handle > maxHandle || o.To > c.f.foot.Bytes || o.At+o.Put > c.f.foot.Trimmed {
		return o, damaged("cut %d lies behind the end of the log", c.n+1)
	}
	name := make([]byte, handle)
	if _, err := io.ReadFull(c.z, name); err != nil {
		return o, err
	}
	o.Handle = string(name)
	c.n++
	c.to, c.at, c.body.left = o.To, o.At+o.Put, length
	o.Body = &c.body
	return o, nil
}

// number reads one of the numbers of a record: none is greater than a file can be, so that sums of two do not overflow.
func (c *cursor) number() (int64, error) {
	const most = 1 << 60
	n, err := binary.ReadUvarint(c.z)
	if err == nil && n > most {
		err = damaged("a number behind cut %d is %d", c.n, n)
	}
	return int64(n), err
}

// end checks that nothing is missing at the end.
func (c *cursor) end(gap int64) error {
	if _, err := c.z.ReadByte(); !errors.Is(err, io.EOF) {
		return damaged("something stands behind the last cut")
	}
	if c.n != c.f.foot.Cuts || c.to+gap != c.f.foot.Bytes || c.at+gap != c.f.foot.Trimmed {
		return damaged("it has %d cuts of %d", c.n, c.f.foot.Cuts)
	}
	return errNoMore
}

// body reads what was cut.
type body struct {
	c    *cursor
	left int64
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	if b.left == 0 {
		return 0, io.EOF
	}
	n, err := b.c.z.Read(p[:min(int64(len(p)), b.left)])
	if b.left -= int64(n); n > 0 || err == nil {
		return n, nil
	}
	return 0, damaged("in cut %d: %v", b.c.n, noEOF(err))
}
