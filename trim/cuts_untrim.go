package trim

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"

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
	u := &untrim{ctx: ctx, out: out, w: w, buf: make([]byte, untrimPiece)}
	c := cuts.cursor()
	for {
		o, ok, err := c.next()
		if err != nil {
			return Untrimmed{}, err
		}
		if !ok {
			break
		}
		if err := u.copy(o.At); err != nil {
			return Untrimmed{}, err
		}
		if err := u.put(o.Body); err != nil {
			return Untrimmed{}, err
		}
		u.at = o.At + o.Put
	}
	if err := u.copy(cuts.foot.Trimmed); err != nil {
		return Untrimmed{}, err
	}
	if u.sum.n != cuts.foot.Bytes || sumText(u.sum.sum()) != cuts.foot.Sum {
		return Untrimmed{}, damaged("what it gives is not the log that was trimmed")
	}
	done := Untrimmed{Bytes: u.sum.n, Cuts: c.n, Appended: size - cuts.foot.Trimmed}
	return done, u.copy(size)
}

const untrimPiece = 256 << 10

// untrim is one at work.
type untrim struct {
	ctx context.Context
	out io.ReaderAt
	at  int64 // how far it is in out
	w   io.Writer
	sum sum64 // of what was written
	buf []byte
}

// copy writes what both files have, up to a place of the trimmed form.
func (u *untrim) copy(to int64) error {
	for u.at < to {
		n := min(to-u.at, int64(len(u.buf)))
		if got, err := u.out.ReadAt(u.buf[:n], u.at); int64(got) < n {
			return fmt.Errorf("read trimmed log: %w", noEOF(err))
		}
		if err := u.write(u.buf[:n]); err != nil {
			return err
		}
		u.at += n
	}
	return nil
}

// put writes what was cut.
func (u *untrim) put(r io.Reader) error {
	for {
		n, err := r.Read(u.buf)
		if n > 0 {
			if err := u.write(u.buf[:n]); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (u *untrim) write(p []byte) error {
	if err := context.Cause(u.ctx); err != nil {
		return err
	}
	u.sum.add(p)
	if _, err := u.w.Write(p); err != nil {
		return fmt.Errorf("write log: %w", err)
	}
	return nil
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
	var s sum64
	for at := from; at < to; {
		n := min(to-at, int64(len(c.buf)))
		if got, err := out.ReadAt(c.buf[:n], at); int64(got) < n {
			return 0, 0, noEOF(err)
		}
		s.add(c.buf[:n])
		lines += int64(bytes.Count(c.buf[:n], []byte{'\n'}))
		at += n
	}
	return s.sum(), lines, nil
}
