package trim

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/cespare/xxhash/v2"

	"github.com/tidemark-ai/tidemark"
)

// Untrimmed says what an untrim wrote.
type Untrimmed struct {
	Bytes    int64 `json:"bytes"`    // of the log as it was
	Cuts     int64 `json:"cuts"`     // that were undone
	Appended int64 `json:"appended"` // bytes that were written behind the trimmed form since, and stay behind the log
}

// Untrim writes the log that was trimmed, byte for byte, from its trimmed form of that size and its cuts. What was
// appended to the trimmed form since is kept behind it. What was written when it fails is no log.
//
// # Errors
//
// tidemark.ErrConflict when the trimmed form is another than the trim wrote, naming the first place;
// tidemark.ErrInvalid for damaged cuts; errors of out and w.
func Untrim(ctx context.Context, out io.ReaderAt, size int64, cuts *CutsFile, w io.Writer) (Untrimmed, error) {
	if err := cuts.Check(ctx, out, size); err != nil {
		return Untrimmed{}, err
	}
	u := &untrim{out: out, w: w, sum: xxhash.New()}
	for o, err := range cuts.All() {
		if err == nil {
			err = context.Cause(ctx)
		}
		if err == nil {
			err = u.copy(io.NewSectionReader(out, u.at, o.At-u.at))
		}
		if err == nil {
			err = u.copy(o.Body)
		}
		if err != nil {
			return Untrimmed{}, err
		}
		u.at = o.At + o.Put
	}
	if err := u.copy(io.NewSectionReader(out, u.at, cuts.foot.Trimmed-u.at)); err != nil {
		return Untrimmed{}, err
	}
	if sumText(u.sum) != cuts.foot.Sum {
		return Untrimmed{}, damaged("what it gives is not the log that was trimmed")
	}
	done := Untrimmed{Bytes: u.n, Cuts: cuts.foot.Cuts, Appended: size - cuts.foot.Trimmed}
	return done, u.copy(io.NewSectionReader(out, cuts.foot.Trimmed, done.Appended))
}

const untrimPiece = 256 << 10

// untrim is one at work.
type untrim struct {
	out    io.ReaderAt
	at     int64 // how far it is in out
	w      io.Writer
	n      int64 // bytes that were written
	sum    *xxhash.Digest
	failed error // of w
}

// copy writes what is read.
func (u *untrim) copy(r io.Reader) error {
	if _, err := io.Copy(u, r); err != nil && u.failed == nil {
		return fmt.Errorf("read trimmed log: %w", err)
	}
	return u.failed
}

// Write implements io.Writer.
func (u *untrim) Write(p []byte) (int, error) {
	n, err := u.w.Write(p)
	_, _ = u.sum.Write(p[:n]) // it never fails
	if u.n += int64(n); err != nil {
		u.failed = fmt.Errorf("write log: %w", err)
	}
	return n, err
}

// Check reads the part of a log of that size that the trim wrote, and fails where it is another one now.
//
// # Errors
//
// tidemark.ErrConflict naming the first place that differs, and errors of out.
func (f *CutsFile) Check(ctx context.Context, out io.ReaderAt, size int64) error {
	c := &check{block: f.foot.Block, buf: make([]byte, min(f.foot.Block, untrimPiece)), line: 1}
	for i := int64(0); i*c.block < f.foot.Trimmed; i++ {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		from, to := i*c.block, min((i+1)*c.block, f.foot.Trimmed)
		if to > size {
			break
		}
		sum, lines, err := c.read(out, from, to)
		if err != nil {
			return fmt.Errorf("read trimmed log: %w", err)
		}
		if sum != binary.LittleEndian.Uint64(f.foot.Marks[i*markLen:]) {
			return changed(c.line, c.line+lines, from, to)
		}
		c.line += lines
	}
	if size < f.foot.Trimmed {
		return fmt.Errorf("read trimmed log: it has %d bytes, and had %d when it was trimmed: %w", size, f.foot.Trimmed, tidemark.ErrConflict)
	}
	return nil
}

// changed says where a trimmed log is another one.
func changed(first, last, from, to int64) error {
	lines := fmt.Sprintf("in line %d", first)
	if last > first {
		lines = fmt.Sprintf("between line %d and line %d", first, last)
	}
	if first == 1 {
		lines += ", or it is the log of another trim"
	}
	return fmt.Errorf("read trimmed log: it was changed after the trim: %s (bytes %d to %d): %w", lines, from, to, tidemark.ErrConflict)
}

// check sums blocks and counts lines.
type check struct {
	block int64
	buf   []byte
	line  int64
}

func (c *check) read(out io.ReaderAt, from, to int64) (sum uint64, lines int64, err error) {
	var d xxhash.Digest
	d.Reset()
	for at := from; at < to; {
		n := min(to-at, int64(len(c.buf)))
		if got, err := out.ReadAt(c.buf[:n], at); int64(got) < n {
			return 0, 0, noEOF(err)
		}
		_, _ = d.Write(c.buf[:n]) // it never fails
		lines += int64(bytes.Count(c.buf[:n], []byte{'\n'}))
		at += n
	}
	return d.Sum64(), lines, nil
}
